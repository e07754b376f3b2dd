/* shared_image.h: float32 convolutions of small images as pairs of halves on tensor cores, by blocks that keep
 * whole images in shared memory: what their solvers, cuda_whole.c, cuda_taps.c and cuda_spread.c, share. */
#ifndef MC_HEAVY_CONV_CUDA_SPLIT_FP16_SHARED_IMAGE_H
#define MC_HEAVY_CONV_CUDA_SPLIT_FP16_SHARED_IMAGE_H

#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/split_fp16/shared_image_args.h"

enum { HALVES_TILE = 32, HALVES_MOST_WARPS = 16, HALVES_SLOTS = 3, HALVES_MOST_SHARED = 220 << 10 };

struct mc_shared_image_kernel {
    const char *name;           /* NULL: none */
    struct mc_grid grid;
    void *loaded;
};
struct mc_shared_image {
    struct mc_plan base;
    struct mc_shared_image_kernel kernel[3];  /* in the order in which they run */
    struct mc_shared_image_args args;
    int warps;                  /* on a multiprocessor at once: what tells how many registers each has */
    int work;                   /* which of the kernels multiplies */
    int cc, fb;                 /* channels, and filters of y, that are taken at once */
    int ks;                     /* register_weights.cu: sixteens of y's places that are; else 0 */
    int64_t w_first;            /* elements from w to the tap that is read first */
    size_t scale_at, cut_at;    /* in the workspace */
    bool fours, edges;          /* edges: windows reach beyond the image */
};

/* All but the split among blocks.  turned: filters are read from their end; from_y: windows, or what is
 * spread, are y's. */
void mc_shared_image_shape(struct mc_shared_image *h, const struct mc_conv_problem *p, bool from_y, bool turned);
/* A tile's filters, packed: sets steps, tiles and what of the workspace they take. */
void mc_shared_image_filters(struct mc_shared_image *h, int steps, int across);
/* A solver's own: all of a plan but what kernels are loaded as. */
typedef void mc_shared_image_lay_out(struct mc_shared_image *h, const struct mc_conv_problem *p);
/* A plan with its kernels, or NULL with an error. */
struct mc_plan *mc_shared_image_plan(mc_shared_image_lay_out *lay_out, const struct mc_conv_problem *p,
                               const struct mc_cuda_text *t);
/* what none of them takes */
const char *mc_shared_image_refuse(const struct mc_conv_problem *p);
/* NULL: threads and shared memory of all kernels do */
const char *mc_shared_image_fit(mc_shared_image_lay_out *lay_out, const struct mc_conv_problem *p);
/* Three multiplications of halves for each, of so many places an image, at a share of the tensor cores'
 * speed. */
double mc_shared_image_seconds(const struct mc_shared_image *h, const struct mc_conv_problem *p, int places,
                         double share);
/* of so many threads, on a multiprocessor at once */
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
