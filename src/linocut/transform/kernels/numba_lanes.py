"""64 pixels against a list of colours, in vector registers: the inner loop of the palette search and of painting.

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

BITS, INT, FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
INTS, FLOATS = ir.VectorType(INT, LANES), ir.VectorType(FLOAT, LANES)


@intrinsic
def search(typingctx, pixels, first, colors, listed, count, best, owner):
    """Find the best of listed[:count] for one block of pixels, from `first` on; ties stay with the one listed earlier.

    `best` and `owner` hold the block's leading scores and whose they are, and are updated.
    """
    sig = types.void(pixels, types.intp, colors, listed, types.intp, best, owner)

    def codegen(context, builder, signature, args):
        lanes = Lanes(context, builder, signature, args)
        here = ir.Constant(args[1].type, 0)
        at = lanes.places(5, here, FLOATS), lanes.places(6, here, INTS)

        def compete(rivals, rival, best, owner):
            wins = lanes.each(lambda r, b: builder.fcmp_ordered("<", r, b), rivals, best)
            return lanes.each(builder.select, wins, rivals, best), lanes.each(builder.select, wins, rival, owner)

        found = lanes.run(compete, [lanes.each(lanes.load, group) for group in at])
        for group, values in zip(at, found, strict=True):
            lanes.each(lanes.store, values, group)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def search_again(typingctx, pixels, first, colors, listed, count, best, bound, owner, winner):
    """Let listed[:count] challenge the owners of one block of pixels; returns two masks, one bit for each pixel.

    `best` holds the owner's score and `bound` a number not above any other colour's, both for all pixels; they are
    updated and the block's winners written to `winner`. The first mask says where the bound does not exclude that
    another colour wins, or ties; the second, where the winner is another than the owner.
    """
    sig = types.UniTuple(types.uint64, 2)(pixels, types.intp, colors, listed, types.intp, best, bound, owner, winner)

    def codegen(context, builder, signature, args):
        lanes = Lanes(context, builder, signature, args)
        best_at, bound_at = lanes.places(5, args[1], FLOATS), lanes.places(6, args[1], FLOATS)
        owners = lanes.each(lanes.load, lanes.places(7, args[1], INTS))

        def less(a, b):
            return builder.fcmp_ordered("<", a, b)

        def compete(rivals, rival, best, bound, owner):
            wins = lanes.each(less, rivals, best)
            loser = lanes.each(builder.select, wins, best, rivals)
            bound = lanes.each(lambda a, b: builder.select(less(a, b), a, b), loser, bound)
            best = lanes.each(builder.select, wins, rivals, best)
            return best, bound, lanes.each(builder.select, wins, rival, owner)

        start = [lanes.each(lanes.load, best_at), lanes.each(lanes.load, bound_at), owners]
        best, bound, winners = lanes.run(compete, start)
        for values, group in ((best, best_at), (bound, bound_at)):
            lanes.each(lanes.store, values, group)
        lanes.each(lanes.store, winners, lanes.places(8, ir.Constant(args[1].type, 0), INTS))
        open_ = lanes.mask(lanes.each(lambda a, b: builder.fcmp_ordered(">=", a, b), best, bound))
        changed = lanes.mask(lanes.each(lambda a, b: builder.icmp_signed("!=", a, b), winners, owners))
        return context.make_tuple(builder, signature.return_type, (open_, changed))

    return sig, codegen


class Lanes:
    """Writes code for a block of pixels in groups of lanes; a value is a list, one vector for each group.

    The arguments begin as those of `search` do.
    """

    def __init__(self, context, builder, signature, args):
        self.builder, self.args = builder, args
        self.arrays = [
            context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else None
            for kind, value in zip(signature.args, args, strict=True)
        ]

    def each(self, what, *values):
        return [what(*group) for group in zip(*values, strict=True)]

    def row(self, which, index):
        """Pointer to the start of a row of a C-contiguous array of float32."""
        array = self.arrays[which]
        stride = cgutils.unpack_tuple(self.builder, array.strides)[0]
        byte = self.builder.bitcast(array.data, ir.IntType(8).as_pointer())
        at = self.builder.gep(byte, [self.builder.mul(stride, ir.Constant(stride.type, index))])
        return self.builder.bitcast(at, FLOAT.as_pointer())

    def groups(self, pointer, start, kind):
        """Pointers to the block's groups of lanes."""
        offsets = [self.builder.add(start, ir.Constant(start.type, g)) for g in range(0, BLOCK, LANES)]
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
        total = ir.Constant(BITS, 0)
        for g, group in enumerate(flags):
            bits = self.builder.zext(self.builder.bitcast(group, ir.IntType(LANES)), BITS)
            total = self.builder.or_(total, self.builder.shl(bits, ir.Constant(BITS, g * LANES)))
        return total

    def run(self, compete, start):
        """The values after compete(scores, index, *values) for each listed colour, from `start` on."""
        builder, count, one = self.builder, self.args[4], ir.Constant(self.args[4].type, 1)
        points = [self.each(self.load, self.groups(self.row(0, c), self.args[1], FLOATS)) for c in range(3)]
        tables = [self.row(2, c) for c in range(4)]
        listed = self.arrays[3].data
        entry = builder.block
        loop, done = builder.append_basic_block("color"), builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed("<", ir.Constant(count.type, 0), count), loop, done)

        builder.position_at_end(loop)
        k = builder.phi(count.type)
        values = [[builder.phi(group.type) for group in value] for value in start]
        index = builder.load(builder.gep(listed, [k]))
        j = builder.zext(index, count.type)
        *color, square = (self.splat(builder.load(builder.gep(table, [j])), FLOATS) for table in tables)
        scores = [square] * len(points[0])
        for a, channel in zip(color, points, strict=True):
            scores = [
                builder.fadd(s, builder.fmul(a, p, flags=("contract",)), flags=("contract",))
                for s, p in zip(scores, channel, strict=True)
            ]
        new = compete(scores, [self.splat(index, INTS)] * len(scores), *values)
        following = builder.add(k, one)
        again = builder.block
        builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
        k.add_incoming(ir.Constant(count.type, 0), entry)
        k.add_incoming(following, again)

        builder.position_at_end(done)
        results = [[builder.phi(group.type) for group in value] for value in start]
        for phis, source in ((values, new), (results, new)):
            for phi_groups, start_groups, new_groups in zip(phis, start, source, strict=True):
                for phi, before, after in zip(phi_groups, start_groups, new_groups, strict=True):
                    phi.add_incoming(before, entry)
                    phi.add_incoming(after, again)
        return results


@intrinsic
def lowest_bit(typingctx, bits):
    """The place of the lowest bit set in a number that is not 0."""
    sig = types.intp(types.uint64)

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return sig, codegen
