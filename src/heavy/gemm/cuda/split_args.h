/* split_args.h: the arguments of the kernels of split.cu and split_pack.cu. */
#ifndef MC_GEMM_SPLIT_ARGS_H
#define MC_GEMM_SPLIT_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(int2);

enum { SPLIT_TM = 128, SPLIT_TK = 64 };     /* rows of a tile of A; k of a step */
/* Shared memory of pack_columns: two steps of halves, largest elements. */
enum { SPLIT_COLUMN_HALVES = 2 * 2 * 32 * 128, SPLIT_COLUMN_SHARED = SPLIT_COLUMN_HALVES + 9 * 64 * 4 };

struct mc_split_seen {          /* of the elements of a row */
    unsigned most;              /* the bits of the largest finite |x| */
    unsigned infinite;          /* nonzero: there is an infinity */
};
MC_ARGS_SIZE(mc_split_seen, 8);

struct mc_split_where {         /* strides of C or C0; a group of rows is an image */
    i64 batch, group, row, col;
};
MC_ARGS_SIZE(mc_split_where, 32);

/* The shift of terms beyond the last tap: no row that it leads to is inside an image. */
enum { SPLIT_OUTSIDE = 0x40000000 };

/* The taps along one axis of an image.  A gradient of inputs with a stride is one product for each phase:
 * the positions of the result that are congruent modulo the stride, and the taps that reach them.  Other
 * products have one phase. */
enum { SPLIT_MOST_PHASES = 8 };
struct mc_split_phase {
    int first, size;            /* first position of the result; number of positions */
    int tap, taps;              /* first tap; number of taps */
    int shift;                  /* of the first tap: from a window's position to what the tap reads */
};
MC_ARGS_SIZE(mc_split_phase, 20);
struct mc_split_axis {
    struct mc_split_phase at[SPLIT_MOST_PHASES];     /* the phase with most taps first */
    int phases, tap_step, shift_step;           /* steps: from tap to tap of a phase */
};
MC_ARGS_SIZE(mc_split_axis, 172);

/* split_tiles.cu explains MODE. */
struct mc_split_args {
    const unsigned short *a, *b;
    i64 a_low, b_low, a_batch, b_batch;         /* low: in images, offset from high to low halves */
    const struct mc_split_seen *a_seen, *b_seen;
    i64 a_seen_batch, b_seen_batch;
    float *c, *partial;         /* partial: partial sums of each split; NULL: no split */
    const float *c0, *bias;
    struct mc_split_where cs, c0s;
    i64 bias_batch;
    int m, n, steps, splits, parts;             /* parts: products, of a batch and of phases */
    int a_seen_rows, b_seen_cols, group_rows;   /* rows or columns that share one `seen`; rows of a group */
    float alpha, beta;
    int act;
    /* MODE 0: the original operands, for sums with infinities */
    const float *plain_a, *plain_b;
    i64 as[3], bs[3];
    int k;
    /* MODE 1 and 2 */
    /* MODE 1: for each UNIT channels of k: the offset in the image, and the tap's shift along both axes */
    const int2 *taps;
    int in[2], out[2], stride[2], pad[2], dilation[2], taps1;
    /* image: stride of an image in halves, of A (MODE 1) or of x (MODE 2) */
    int channels, channels_pad, y_pad, image;
    i64 y_image;
    i64 tap_stride[2];          /* MODE 2: of the result */
    /* PHASES: m, group_rows and steps are the largest of all phases, out is of the whole result, b_batch is
     * of a phase */
    struct mc_split_axis axis[2];
};
MC_ARGS_SIZE(mc_split_args, 744);

enum { SPLIT_UP = 2048 };      /* the scale of low halves of split.cu */

struct mc_split_pack {          /* outer x `inner` matrices, stored one after another in `to` */
    const float *x;
    unsigned short *to;
    struct mc_split_seen *rows;
    i64 low;                    /* without tiles: offset from the high to the low halves */
    i64 xs[4];                  /* strides: outer and inner batch, row, column */
    int inner, n_rows, n_cols, rows_pad, cols_pad, tile;    /* tile: rows of a tile; 0: C order, no tiles */
    int seen_outer, seen_row;   /* strides in rows[] by outer batch and by row */
    float up;                   /* the scale of low halves */
};
MC_ARGS_SIZE(mc_split_pack, 104);

struct mc_split_filters {
    const float *w;
    unsigned short *to;
    struct mc_split_seen *rows;
    int2 *taps;
    i64 group, row, channel, tap[2];
    int n_rows, rows_pad, tile, channels, channels_pad, k[2], k_pad, reverse;
    int unit, line, position;   /* line, position: strides of an image's rows and positions, in halves */
    int kept;                   /* shared memory has room for a row */
    struct mc_split_axis axis[2];
};
MC_ARGS_SIZE(mc_split_filters, 472);

struct mc_split_images {        /* images and the filters that they meet */
    struct mc_split_pack images;
    struct mc_split_filters filters;
    int groups, look[3];        /* look: blocks that look for the largest elements of images */
};
MC_ARGS_SIZE(mc_split_images, 592);

#endif
