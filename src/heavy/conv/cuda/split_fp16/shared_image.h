/* shared_image.h: float32 convolutions of small images as pairs of halves on tensor cores, by blocks that
 * keep whole images in shared memory: shared by shared_image_forward.c, register_weights.c and scatter.c. */
#ifndef MC_HEAVY_CONV_CUDA_SPLIT_FP16_SHARED_IMAGE_H
#define MC_HEAVY_CONV_CUDA_SPLIT_FP16_SHARED_IMAGE_H

#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/split_fp16/shared_image_args.h"

enum { SHARED_IMAGE_TILE = 32, SHARED_IMAGE_MOST_WARPS = 16, SHARED_IMAGE_MOST_SHARED = 220 << 10 };

struct mc_shared_image_kernel {
    const char *name;           /* NULL: none */
    struct mc_grid grid;
    void *loaded;
};
struct mc_shared_image {
    struct mc_plan base;
    struct mc_shared_image_kernel kernel[3];  /* in the order in which they run */
    struct mc_shared_image_args args;
    int warps;                  /* on a multiprocessor at once; it determines the registers of each */
    int work;                   /* the index of the kernel that multiplies */
    int cc, fb;                 /* channels, and filters of y, that are taken at once */
    int nt;                     /* eights of results of a warp, up to 4 */
    /* register_weights.cu: sixteens of y's positions that are taken at once; else 0 */
    int ks;
    int64_t w_first;            /* elements from w to the tap that is read first */
    size_t scale_at, split_at;    /* in the workspace */
    bool fours, edges;          /* edges: windows reach beyond the image */
};

/* Everything but the division among blocks. turned: taps are read in reverse; from_y: the images are y's,
 * not x's. */
void mc_shared_image_shape(struct mc_shared_image *h, const struct mc_conv_problem *p, bool from_y,
                           bool turned);
/* The channels in chunks of `most` channels at most, of whole `unit`s. */
void mc_shared_image_chunks(struct mc_shared_image *h, int most, int unit);
/* The number of warps by results if each has the same number of eights; sets nt. */
int mc_shared_image_columns(struct mc_shared_image *h);
/* Packed filters of a tile: sets steps, tiles, the kernel `pack` and the workspace. */
void mc_shared_image_filters(struct mc_shared_image *h, int steps, int across);
/* Solver-specific: fills in all of a plan but the loaded kernels. */
typedef void mc_shared_image_lay_out(struct mc_shared_image *h, const struct mc_conv_problem *p);
/* A plan with its kernels, or NULL with an error. */
struct mc_plan *mc_shared_image_plan(mc_shared_image_lay_out *lay_out, const struct mc_conv_problem *p,
                               const struct mc_cuda_text *t);
/* why none of them takes p; NULL: one may */
const char *mc_shared_image_refuse(const struct mc_conv_problem *p);
/* NULL: threads and shared memory of all kernels are within the limits */
const char *mc_shared_image_fit(mc_shared_image_lay_out *lay_out, const struct mc_conv_problem *p);
/* The time of three multiplications of halves for each term, of so many positions an image and results, at
 * a share of the tensor cores' speed. */
double mc_shared_image_seconds(const struct mc_shared_image *h, const struct mc_conv_problem *p,
                               int positions, int results, double share);
/* blocks of so many threads that a multiprocessor runs at once */
unsigned mc_shared_image_blocks(const struct mc_shared_image *h, unsigned threads);

/* Do windows reach beyond the image? */
static inline bool mc_shared_image_edges(const struct mc_shared_image_args *a)
{
    bool edges = false;
    for (int i = 0; i < 2; i++) {
        edges = edges || a->pad[i] != 0 ||
                (a->out[i] - 1) * a->stride[i] + (a->k[i] - 1) * a->dilation[i] >= a->in[i];
    }
    return edges;
}

static inline int mc_shared_image_up(int64_t n, int unit)
{
    return (int)((n + unit - 1) / unit * unit);
}

#endif
