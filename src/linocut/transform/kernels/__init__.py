"""The same six functions, written once for each kind of machine; forward, every backend gives the same bits.

    blur(x, rule)                    float32 (B,C,H,W) -> eighths int16 (B,C,H,W), kernel choice uint8 (B,C,H,W)
    blur_transpose(grad, level, rule)   the blur's exact transpose, its kernel choice frozen: float32 -> float32
    find_palette(y, rule)            eighths -> colours int16 (B,K,C), populations int32 (B,K), num_colors int32 (B,)
    paint(y, palette, num_colors)    eighths -> float32 (B,C,H,W), every pixel its nearest colour
    paint_linf(y, colors)            eighths, one list of codes (K,C) -> float32 (B,C,H,W), nearest in L-infinity
    through_soft_codebook(grad, y, palette, num_colors, softness)   the soft codebook's slope: float32 (B,C,H,W)

A soft codebook turns each pixel into the mean of all colours, weighed by the softmax of -softness times the L-infinity
distance in levels (Paper: Alternative adaptive attacks, after Chen et al.). Where several channels hold the largest
difference they share its slope.

`blur` also enters (spec: round 2040 x to whole eighths; NaN is 0), so with NO_BLUR it does only that.
K is rule.most_colors(C, H, W), a function of the shape alone; rows from num_colors on are 0.
An empty batch gives empty results. No input is changed.

The modules here: numpy_loop (the reference, image by image), torch_ops (any device), numba_cpu, triton_cuda.
"""
