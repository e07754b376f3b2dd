/* conv_grid.h: the shapes that every solver of convolutions is tested on, on every device. */
#ifndef CONV_GRID_H
#define CONV_GRID_H

#include "op/conv.h"
#include <stdlib.h>

/* n, c, f, g: sizes; i, k: of x and w; s, d: stride, dilation; p, q: zeros in front and behind (q: as p) */
static const char *const conv_grid[] = {
    /* tiny */
    "n1c1f1 i1x1 k1x1", "n1c1f1 i2x3 k2x3", "n2c1f1 i5x4 k3x2", "n1c2f3 i4x4 k1x1", "n3c2f1 i1x7 k1x4",
    /* ragged */
    "n2c3f5 i7x9 k3x3", "n3c5f7 i11x13 k5x2", "n2c17f19 i6x7 k3x3 p1x1", "n5c4f33 i9x5 k2x2 p0x1",
    "n1c31f3 i8x8 k3x3 p1x1", "n7c1f16 i12x12 k5x5", "n4c3f8 i15x14 k7x7 p3x3", "n2c16f16 i10x10 k3x3 p1x1",
    "n9c2f2 i3x3 k3x3 p1x1", "n17c3f4 i5x5 k2x3 p1x1", "n2c8f8 i9x9 k1x1", "n3c20f12 i7x5 k1x1", "n16c6f10 i6x6 k3x3",
    /* larger */
    "n4c16f24 i20x21 k3x3 p1x1", "n2c48f32 i14x14 k3x3", "n3c4f20 i28x28 k5x5", "n1c64f64 i13x13 k1x1", "n2c3f16 i35x35 k11x11",
    "n20c10f12 i10x9 k9x8", "n1c160f20 i9x9 k4x4",
    /* rows of whole vectors; pointwise with many positions */
    "n2c3f16 i64x64 k3x3 p1x1", "n1c4f40 i48x48 k1x1", "n2c64f40 i40x44 k1x1",
    /* strides, dilations, pads of every kind */
    "n2c3f4 i9x11 k3x3 s2x2", "n2c3f4 i10x12 k3x2 s2x3 p1x1", "n2c3f4 i11x9 k3x3 d2x2", "n2c3f4 i12x9 k2x3 s2x1 d3x2 p2x1",
    "n2c4f6 i9x9 k1x1 s2x2", "n2c4f6 i8x9 k1x1 s3x2 p1x1", "n3c2f3 i7x7 k2x2 s3x3", "n2c3f4 i6x6 k3x3 p2x2", "n2c3f4 i5x6 k3x3 p4x5",
    "n2c3f4 i7x8 k3x4 p0x0 q1x2", "n2c3f4 i7x8 k3x4 p2x1 q0x0", "n2c3f4 i8x8 k3x3 s2x2 p0x0 q1x1", "n2c3f4 i8x9 k3x3 p-1x-2 q0x-1",
    "n2c3f4 i8x8 k3x3 s3x3 p2x2 q5x4", "n2c8f16 i16x16 k4x4 s4x4", "n2c3f8 i23x23 k7x7 s2x2 p3x3",
    /* kernels larger than the image, windows that see nothing */
    "n2c2f3 i4x4 k6x7 p5x6", "n1c2f2 i3x3 k12x12 p11x11", "n1c2f2 i3x2 k1x1 p2x2", "n1c1f2 i2x2 k2x2 s5x5 p4x4 q6x6",
    /* flipped */
    "n2c3f4 i7x8 k3x4 flip", "n2c3f4 i9x8 k3x2 s2x2 d2x1 p1x1 flip", "n2c16f16 i10x11 k3x3 p2x2 flip",
    /* groups */
    "n2c4f6 i7x8 k3x3 p1x1 g2", "n3c6f6 i8x8 k3x3 p1x1 g6", "n2c8f4 i6x6 k2x2 g4 flip", "n2c6f12 i5x5 k1x1 g3", "n2c5f15 i9x9 k3x3 s2x2 g5",
    "n2c32f32 i7x7 k3x3 p1x1 g2", "n2c7f7 i21x37 k3x3 p1x1 g7", "n2c3f6 i11x40 k5x4 s2x3 d1x2 p2x3 g3 flip", "n1c4f4 i5x9x8 k3x2x3 s1x2x2 p1x1x1 g4",
    "n1c2f2 i9x70 k3x3 p1x1 g2", "n2c3f9 i20x21 k3x3 p1x1 g3 flip", "n2c24f16 i9x9 k3x4 g2",
    "n2c18f18 i9x8 k3x3 p1x1 g18", "n1c20f20 i15x14 k5x3 s2x2 p2x1 g20 flip", "n2c17f17 i11x13 k3x3 d2x2 p2x2 g17",
    "n2c9f9 i9x50 k3x3 p-1x-2 q0x-1 g9", "n1c24f24 i7x33 k3x2 s2x1 p0x0 q1x2 g24", "n3c8f16 i6x6 k3x3 p1x1 g8", "n2c9f9 i40 k5 p2 g9",
    /* one and three axes */
    "n3c4f5 i17 k4", "n2c3f6 i23 k5 s2 d2 p3 flip", "n1c2f3 i300 k7 p3", "n2c3f4 i5x6x7 k2x3x3", "n1c2f5 i6x7x5 k3x2x3 s2x1x2 d1x2x1 p1x2x1",
    "n2c4f8 i8x9x9 k4x3x5 s2x1x1 p1x0x1 flip", "n2c4f4 i4x4x4 k3x3x3 p1x1x1 g2 flip", "n2c3f4 i3x4x5 k1x1x1",
    /* a filter for each place */
    "n2c3f4 i6x7 k3x3 unshared", "n2c4f4 i7x6 k2x3 s2x1 p1x1 g2 flip unshared", "n3c2f3 i5x5x4 k2x2x2 unshared",
    /* empty */
    "n0c3f4 i5x5 k3x3", "n2c0f4 i5x5 k3x3", "n2c3f0 i5x5 k3x3", "n2c3f4 i5x5 k3x3 q-3x0", "n0c0f0 i3x3 k2x2",
};

/* Numbers joined by x, right-aligned among three. */
static inline const char *triple(const char *s, int64_t v[3], int64_t missing, int *axes)
{
    int64_t got[3];
    int n = 0;
    do {
        char *end;
        got[n++] = strtoll(s, &end, 10);
        s = end;
    } while (*s == 'x' && s++);
    for (int i = 0; i < 3; i++) {
        v[i] = i < 3 - n ? missing : got[i - (3 - n)];
    }
    *axes = n;
    return s;
}

static inline struct mc_conv_shape conv_parse(const char *s)
{
    struct mc_conv_shape p = { .groups = 1, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 } };
    int64_t q[3], n[3];
    bool behind = false;
    int axes;
    while (*s) {
        const char *key = s;
        if (strncmp(s, "flip", 4) == 0 || strncmp(s, "unshared", 8) == 0) {
            *(*s == 'f' ? &p.flip : &p.unshared) = true;
            s += *s == 'f' ? 4 : 8;
            continue;
        }
        if (*s == ' ') {
            s++;
            continue;
        }
        const bool pad = *s == 'p' || *s == 'q';
        s = triple(s + 1, n, pad ? 0 : 1, &axes);
        int64_t *many = *key == 'i'   ? p.in
                        : *key == 'k' ? p.k
                        : *key == 's' ? p.stride
                        : *key == 'd' ? p.dilation
                        : *key == 'p' ? p.pad
                        : *key == 'q' ? q
                                      : NULL;
        int64_t *one = *key == 'n' ? &p.n : *key == 'c' ? &p.c : *key == 'f' ? &p.f : &p.groups;
        memcpy(many ? many : one, many ? n : n + 2, many ? sizeof n : sizeof *n);
        behind |= *key == 'q';
        p.nd = *key == 'i' ? axes : p.nd;
    }
    for (int i = 0; i < 3; i++) {
        const int64_t room = p.in[i] + p.pad[i] + (behind ? q[i] : p.pad[i]) - (p.k[i] - 1) * p.dilation[i] -
                             1;
        p.out[i] = room < 0 ? 0 : room / p.stride[i] + 1;
    }
    return p;
}

/* Libraries are tried when they are named, but not under a sanitizer, which misjudges their threads. */
static inline void name_solver(const char *name)
{
    mc_flag_set("conv.algo_fwd", name);
    mc_flag_set("conv.algo_bwd_data", name);
    mc_flag_set("conv.algo_bwd_filter", name);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    mc_flags_parse("onednn=none,blas=none");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    mc_flags_parse("onednn=none,blas=none");
#endif
#endif
}

#endif
