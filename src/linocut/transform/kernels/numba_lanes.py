"""64 pixels against many colours, in vector registers: the inner loop of the palette search and of painting.

Left to itself the compiler keeps each pixel's running best in memory; written as vectors it stays in registers, at
about a quarter of a cycle for each pixel and colour with AVX-512. Other processors get as many narrower vectors.

With a = -2c the score |c|² + a·p orders colours as the squared distance does, and all its partial sums are whole
numbers below 2^24, so float32 is exact, fused or not.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 64
LANES = 16
NOT_SEARCHED = np.float32(1e9)  # above every score

PLACE, INT, FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
INTS, FLOATS = ir.VectorType(INT, LANES), ir.VectorType(FLOAT, LANES)
NOTHING = ir.Constant(PLACE, 0)


@intrinsic
def search(typingctx, pixels, first, colors, best, owner):
    """Find the best of all colours for one block of pixels, from `first` on; ties stay with the earlier colour.

    `best` and `owner` hold the block's leading scores and whose they are, and are updated.
    """
    sig = types.void(pixels, types.intp, colors, best, owner)

    def codegen(context, builder, signature, args):
        lanes = Lanes(context, builder, signature, args)
        best_at, owner_at = lanes.places(3, NOTHING, FLOATS), lanes.places(4, NOTHING, INTS)

        def compete(rivals, rival, best, owner):
            wins = lanes.each(lanes.less, rivals, best)
            return lanes.each(builder.select, wins, rivals, best), lanes.each(builder.select, wins, rival, owner)

        count = cgutils.unpack_tuple(builder, lanes.arrays[2].shape)[1]
        best, owner = lanes.run(compete, [lanes.each(lanes.load, at) for at in (best_at, owner_at)], count)
        lanes.each(lanes.store, best + owner, best_at + owner_at)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def search_again(typingctx, pixels, first, colors, best, bound, owner, winner, listed, count):
    """Let listed[:count] challenge the owners of one block of pixels; returns two masks, one bit for each pixel.

    `best` holds the owners' scores and `bound` numbers not above any other colour's, both for all pixels; they are
    updated and the block's winners written to `winner`. The first mask says where the bound does not exclude that
    another colour wins, or ties; the second, where the winner is another than the owner.
    """
    sig = types.UniTuple(types.uint64, 2)(pixels, types.intp, colors, best, bound, owner, winner, listed, types.intp)

    def codegen(context, builder, signature, args):
        lanes = Lanes(context, builder, signature, args)
        best_at, bound_at = lanes.places(3, args[1], FLOATS), lanes.places(4, args[1], FLOATS)
        owner = lanes.each(lanes.load, lanes.places(5, args[1], INTS))

        def compete(rivals, rival, best, bound, winner):
            wins = lanes.each(lanes.less, rivals, best)
            loser = lanes.each(builder.select, wins, best, rivals)
            bound = lanes.each(builder.select, lanes.each(lanes.less, loser, bound), loser, bound)
            best = lanes.each(builder.select, wins, rivals, best)
            return best, bound, lanes.each(builder.select, wins, rival, winner)

        start = [lanes.each(lanes.load, best_at), lanes.each(lanes.load, bound_at), owner]
        best, bound, winner = lanes.run(compete, start, args[8], lanes.arrays[7].data)
        lanes.each(lanes.store, best + bound + winner, best_at + bound_at + lanes.places(6, NOTHING, INTS))
        doubtful = lanes.mask(lanes.each(lambda a, b: builder.fcmp_ordered(">=", a, b), best, bound))
        changed = lanes.mask(lanes.each(lambda a, b: builder.icmp_signed("!=", a, b), winner, owner))
        return context.make_tuple(builder, signature.return_type, (doubtful, changed))

    return sig, codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """The place of the lowest bit set in a number that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.intp(types.uint64), codegen


class Lanes:
    """Writes code for a block of pixels in groups of lanes; a value is a list, one vector for each group.

    The arguments begin with pixels, the block's first pixel and a table of colours.
    """

    def __init__(self, context, builder, signature, args):
        self.builder, self.first = builder, args[1]
        self.arrays = {
            i: context.make_array(kind)(context, builder, args[i])
            for i, kind in enumerate(signature.args)
            if isinstance(kind, types.Array)
        }

    def each(self, what, *values):
        return [what(*group) for group in zip(*values, strict=True)]

    def less(self, a, b):
        return self.builder.fcmp_ordered("<", a, b)

    def row(self, which, index):
        """Pointer to the start of a row of a C-contiguous array of float32."""
        array = self.arrays[which]
        stride = cgutils.unpack_tuple(self.builder, array.strides)[0]
        byte = self.builder.bitcast(array.data, ir.IntType(8).as_pointer())
        at = self.builder.gep(byte, [self.builder.mul(stride, ir.Constant(PLACE, index))])
        return self.builder.bitcast(at, FLOAT.as_pointer())

    def groups(self, pointer, start, kind):
        """Pointers to a block's groups of lanes."""
        offsets = [self.builder.add(start, ir.Constant(PLACE, g)) for g in range(0, BLOCK, LANES)]
        return [self.builder.bitcast(self.builder.gep(pointer, [o]), kind.as_pointer()) for o in offsets]

    def places(self, which, start, kind):
        return self.groups(self.arrays[which].data, start, kind)

    def load(self, pointer):
        value = self.builder.load(pointer)
        value.align = 4
        return value

    def store(self, value, pointer):
        self.builder.store(value, pointer).align = 4

    def splat(self, value, kind):
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(INT, 0))
        return self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), ir.Constant(INTS, [0] * LANES))

    def mask(self, flags):
        """The flags as bits of one number, the first pixel's lowest."""
        bits = NOTHING
        for g, group in enumerate(flags):
            some = self.builder.zext(self.builder.bitcast(group, ir.IntType(LANES)), PLACE)
            bits = self.builder.or_(bits, self.builder.shl(some, ir.Constant(PLACE, g * LANES)))
        return bits

    def run(self, compete, start, count, listed=None):
        """The values, `start` at first, after compete(scores, index, *values) for `count` colours or those listed."""
        builder, groups = self.builder, BLOCK // LANES
        points = [self.each(self.load, self.groups(self.row(0, c), self.first, FLOATS)) for c in range(3)]
        tables = [self.row(2, c) for c in range(4)]
        entry = builder.block
        loop, done = builder.append_basic_block("color"), builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed("<", NOTHING, count), loop, done)

        builder.position_at_end(loop)
        k = builder.phi(PLACE)
        values = [[builder.phi(group.type) for group in value] for value in start]
        if listed is None:
            j, index = k, builder.phi(INTS)  # k in every lane: counting there is cheaper than copying it over
            index.add_incoming(ir.Constant(INTS, [0] * LANES), entry)
            index.add_incoming(builder.add(index, ir.Constant(INTS, [1] * LANES)), loop)
        else:
            number = builder.load(builder.gep(listed, [k]))
            j, index = builder.zext(number, PLACE), self.splat(number, INTS)
        *color, square = (self.splat(builder.load(builder.gep(table, [j])), FLOATS) for table in tables)
        scores = [square] * groups
        for a, channel in zip(color, points, strict=True):
            product = [builder.fmul(a, p, flags=("contract",)) for p in channel]
            scores = self.each(lambda s, p: builder.fadd(s, p, flags=("contract",)), scores, product)
        new = compete(scores, [index] * groups, *values)
        following = builder.add(k, ir.Constant(PLACE, 1))
        builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
        k.add_incoming(NOTHING, entry)
        k.add_incoming(following, loop)

        builder.position_at_end(done)
        results = [[builder.phi(group.type) for group in value] for value in start]
        for phis in (values, results):
            for value in zip(phis, start, new, strict=True):
                for phi, before, after in zip(*value, strict=True):
                    phi.add_incoming(before, entry)
                    phi.add_incoming(after, loop)
        return results
