/* split.h: float32 products on tensor cores, with operands split into pairs of halves (split.cu has the
 * algebra).
 *
 * Who has a product to make packs both operands into halves, fills a struct mc_split_args and runs it.
 * Matrices are packed by cuda_split.c of gemm, images and filters by that of conv.
 *
 * Invariant: the structs are those of split.cu and split_pack.cu, field for field. */
#ifndef MC_GEMM_SPLIT_H
#define MC_GEMM_SPLIT_H

#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/hopper.h"

enum mc_split_mode { SPLIT_MATRICES, SPLIT_WINDOWS, SPLIT_FILTERS };
enum { SPLIT_TM = 128, SPLIT_TK = 64 };
struct mc_split_seen { uint32_t most, infinite; };
struct mc_split_where { int64_t batch, group, row, col; };
struct mc_split_args {
    const void *a, *b;
    int64_t a_low, b_low, a_batch, b_batch;
    const struct mc_split_seen *a_seen, *b_seen;
    int64_t a_seen_batch, b_seen_batch;
    float *c, *partial;
    const float *c0, *bias;
    struct mc_split_where cs, c0s;
    int64_t bias_batch;
    int m, n, steps, splits, batch;
    int a_seen_rows, b_seen_cols, group_rows;
    float alpha, beta;
    int act;
    const float *plain_a, *plain_b;
    int64_t as[3], bs[3];
    int k;
    const void *taps;
    int in[2], out[2], stride[2], pad[2], dilation[2], taps1;
    int channels, channels_pad, y_pad, image;
    int64_t y_image, tap_stride[2];
};
struct mc_split_pack {          /* of `inner` x outer matrices, one after another in `to` */
    const void *x;
    void *to;
    struct mc_split_seen *rows;
    int64_t low, xs[4];         /* outer and inner batch, row, column */
    int inner, n_rows, n_cols, rows_pad, cols_pad, tile; /* tile: rows of one; 0: none, row after row */
    int seen_outer, seen_row;
};
struct mc_split_filters {
    const void *w;
    void *to;
    struct mc_split_seen *rows;
    void *taps;
    int64_t group, row, channel, tap[2];
    int n_rows, rows_pad, tile, channels, channels_pad, k[2], k_pad, reverse;
    int unit, shift[2], line, place;
};

/* A product of one mode and size: its kernels, and how it is cut. */
struct mc_split {
    void *product, *add_up, *look, *pack, *few, *filters;
    int tn, splits;
    size_t partial;             /* bytes of the workspace that splits need */
    struct mc_grid grid;
};
int mc_split_width(int64_t n, enum mc_split_mode mode); /* columns of a tile for n columns */
/* unit: channels that are gathered at once, 8 or 4; inside: no window leaves its image. */
mc_status mc_split_make(struct mc_split *s, enum mc_split_mode mode, int unit, bool inside, int64_t m,
                        int64_t n, int64_t steps, int64_t batch);
mc_status mc_split_run(const struct mc_split *s, struct mc_split_args *a, void *partial);
/* What the rows of x hold, then their halves; clears what was seen before. */
mc_status mc_split_pack_rows(const struct mc_split *s, const struct mc_split_pack *p, int outer, size_t seen);
mc_status mc_split_pack_filters(const struct mc_split *s, const struct mc_split_filters *p, int groups);
/* Of so many results and terms; packed: elements of the operands. */
double mc_split_seconds(int tn, int64_t m, int64_t n, int64_t steps, int64_t batch, double packed);

extern const struct mc_cuda_text mc_gemm_split_text, mc_gemm_split_pack_text;
/* of the product's text */
void mc_split_defines(struct mc_str *out, enum mc_split_mode mode, int tn, int unit, bool inside);

#endif
