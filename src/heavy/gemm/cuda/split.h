/* split.h: float32 products on tensor cores, with operands split into pairs of halves (split.cu has the
 * algebra).
 *
 * A solver packs both operands into halves, fills a struct mc_split_args and runs it.  split_solver.c packs
 * matrices; src/heavy/conv/cuda/split_fp16 packs images and filters.  split_args.h declares the structs. */
#ifndef MC_GEMM_SPLIT_H
#define MC_GEMM_SPLIT_H

#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/hopper.h"
#include "heavy/gemm/cuda/split_args.h"

enum mc_split_mode { SPLIT_MATRICES, SPLIT_WINDOWS, SPLIT_FILTERS, SPLIT_WINDOWS_PHASES };

struct mc_split_packers {       /* kernels of split_pack.cu */
    void *look, *rows, *narrow, *lines, *columns, *filters;
};
bool mc_split_packers_make(struct mc_split_packers *k);

struct mc_split_size {          /* of `parts` products: a batch, and phases */
    int64_t m, n, parts;        /* m: the largest */
    int64_t steps, longest;     /* steps of a product: on average, and the most */
};
/* Products of one mode and size: their kernels, tile width and split-K. */
struct mc_split {
    void *product, *add_up;
    struct mc_split_packers pack;
    int tn, splits;
    size_t partial;             /* bytes of workspace for partial sums */
    struct mc_grid grid;
};
int mc_split_width(int64_t n, enum mc_split_mode mode); /* columns of a tile, for a result of n columns */
/* unit: channels that are gathered at once, 8 or 4; inside: no window reads the border. */
mc_status mc_split_make(struct mc_split *s, enum mc_split_mode mode, int unit, bool inside,
                        const struct mc_split_size *z);
mc_status mc_split_run(const struct mc_split *s, struct mc_split_args *a, void *partial);
/* Finds the largest element of each row of x and packs the halves.  seen: number of entries of p->rows. */
mc_status mc_split_pack_rows(const struct mc_split_packers *k, const struct mc_split_pack *p, int outer,
                             size_t seen);
/* The same, and packs filters. */
mc_status mc_split_pack_images(const struct mc_split_packers *k, const struct mc_split_pack *p, int outer,
                               size_t seen, const struct mc_split_filters *f, int groups);
/* Estimated time; packed: number of elements of the operands. */
double mc_split_seconds(int tn, const struct mc_split_size *z, double packed);

extern const struct mc_cuda_text mc_gemm_split_text, mc_gemm_split_pack_text, mc_gemm_split_large_text;
/* adds the defines of the product's text */
void mc_split_defines(struct mc_str *out, enum mc_split_mode mode, int tn, int unit, bool inside);
/* the same for split_large.cu; together: blocks of a cluster, 1 or 2; adds: C0 is added */
void mc_split_large_defines(struct mc_str *out, int tn, int together, bool adds, enum mc_act act);

#endif
