"""64 pixels against a run of colours, in vector registers: the inner loop of the palette search and of painting.

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


@intrinsic
def search(typingctx, pixels, first_pixel, colors, first_color, end_color, best, owner):
    """Let colours first_color..end_color-1 compete for one block of pixels; ties stay with the earlier colour.

    `best` and `owner` hold the block's leading score and its index, and are updated.
    """
    sig = types.void(pixels, types.intp, colors, types.intp, types.intp, best, owner)

    def codegen(context, builder, signature, args):
        def array(i):
            return context.make_array(signature.args[i])(context, builder, args[i])

        intp = context.get_value_type(types.intp)
        f32, i32 = ir.FloatType(), ir.IntType(32)
        floats, ints = ir.VectorType(f32, LANES), ir.VectorType(i32, LANES)
        pix, col, top, own = array(0), array(2), array(5), array(6)

        def row(arr, index):  # pointer to the start of a row of a C-contiguous array
            stride = cgutils.unpack_tuple(builder, arr.strides)[0]
            byte = builder.bitcast(arr.data, ir.IntType(8).as_pointer())
            at = builder.gep(byte, [builder.mul(stride, ir.Constant(intp, index))])
            return builder.bitcast(at, f32.as_pointer())

        def lanes(pointer, offset, kind):
            return builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())

        def load(pointer):
            value = builder.load(pointer)
            value.align = 4
            return value

        def splat(value, kind):
            one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(i32, 0))
            zero = ir.Constant(ir.VectorType(i32, LANES), [0] * LANES)
            return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zero)

        groups = range(0, BLOCK, LANES)
        offsets = [ir.Constant(intp, g) for g in groups]
        points = [[load(lanes(row(pix, c), builder.add(args[1], o), floats)) for o in offsets] for c in range(3)]
        best_at = [lanes(top.data, o, floats) for o in offsets]
        owner_at = [lanes(own.data, o, ints) for o in offsets]
        start_best, start_owner = [load(p) for p in best_at], [load(p) for p in owner_at]
        tables = [row(col, c) for c in range(4)]

        first_index = splat(builder.trunc(args[3], i32), ints)
        entry = builder.block
        loop = builder.append_basic_block("color")
        done = builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed("<", args[3], args[4]), loop, done)

        builder.position_at_end(loop)
        j = builder.phi(intp)
        index = builder.phi(ints)  # j in every lane: counting there is cheaper than copying it over each time
        scores = [builder.phi(floats) for _ in groups]
        owners = [builder.phi(ints) for _ in groups]
        ax, ay, az, c2 = (splat(builder.load(builder.gep(t, [j])), floats) for t in tables)
        new_scores, new_owners = [], []
        for g in range(len(offsets)):
            s = c2
            for a, p in ((ax, points[0][g]), (ay, points[1][g]), (az, points[2][g])):
                s = builder.fadd(s, builder.fmul(a, p, flags=("contract",)), flags=("contract",))
            wins = builder.fcmp_ordered("<", s, scores[g])
            new_scores.append(builder.select(wins, s, scores[g]))
            new_owners.append(builder.select(wins, index, owners[g]))
        following = builder.add(j, ir.Constant(intp, 1))
        j.add_incoming(args[3], entry)
        j.add_incoming(following, builder.block)
        index.add_incoming(first_index, entry)
        index.add_incoming(builder.add(index, ir.Constant(ints, [1] * LANES)), builder.block)
        for phi, start, new in zip(scores + owners, start_best + start_owner, new_scores + new_owners, strict=True):
            phi.add_incoming(start, entry)
            phi.add_incoming(new, builder.block)
        again = builder.block
        builder.cbranch(builder.icmp_signed("<", following, args[4]), loop, done)

        builder.position_at_end(done)
        results = []
        for start, new in zip(start_best + start_owner, new_scores + new_owners, strict=True):
            result = builder.phi(start.type)
            result.add_incoming(start, entry)
            result.add_incoming(new, again)
            results.append(result)
        for result, at in zip(results, best_at + owner_at, strict=True):
            builder.store(result, at).align = 4
        return context.get_dummy_value()

    return sig, codegen
