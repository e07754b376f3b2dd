/* copy.c: copies an array to another layout or dtype on the GPU.
 *
 * Axes of size 1 are removed and contiguous neighbours are collapsed.  If both arrays have the same innermost
 * axis, elements are copied in that order, else in tiles that are transposed in shared memory.
 *
 * Invariant: no axis of `to` has stride 0 unless its size is 1. */
#include "heavy/cuda/copy_args.h"
#include "heavy/cuda/cuda.h"
#include "value/value.h"
#include <stdlib.h>

static const char text[] = {
#include "heavy/cuda/copy_text.h"
    , 0 };
const struct mc_cuda_text mc_cuda_copy_text = { "heavy/cuda/copy.cu", text };

struct mc_cuda_copy {
    int64_t from_first;         /* offset in bytes of the element that is read first */
    void *kernel;
    struct mc_grid grid;
    struct mc_cuda_copy_args args;
};

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

static void swap(int64_t *v, int i, int k)
{
    const int64_t t = v[i];
    v[i] = v[k];
    v[k] = t;
}

static void remove_axis(struct mc_cuda_axes *a, int i)
{
    a->rank--;
    for (int k = i; k < a->rank; k++) {
        a->size[k] = a->size[k + 1];
        for (int z = 0; z < a->arrays; z++) {
            a->stride[z][k] = a->stride[z][k + 1];
        }
    }
}

/* Are axes i and i + 1 contiguous to each other in every array? */
static bool can_collapse(const struct mc_cuda_axes *a, int i)
{
    bool all = true;
    for (int z = 0; z < a->arrays; z++) {
        all = all && a->stride[z][i] == a->stride[z][i + 1] * a->size[i + 1];
    }
    return all;
}

void mc_cuda_axes_collapse(struct mc_cuda_axes *a)
{
    for (int i = a->rank - 1; i >= 0; i--) {
        if (a->size[i] == 1) {
            remove_axis(a, i);
        }
    }
    for (int i = 1; i < a->rank; i++) {
        for (int k = i; k > 0 && magnitude(a->stride[0][k]) > magnitude(a->stride[0][k - 1]); k--) {
            swap(a->size, k, k - 1);
            for (int z = 0; z < a->arrays; z++) {
                swap(a->stride[z], k, k - 1);
            }
        }
    }
    for (int i = a->rank - 2; i >= 0; i--) {
        if (can_collapse(a, i)) {
            a->size[i + 1] *= a->size[i];
            remove_axis(a, i);
        }
    }
    if (a->rank == 0) {
        a->rank = 1;
        a->size[0] = 1;
        for (int z = 0; z < a->arrays; z++) {
            a->stride[z][0] = 1;
        }
    }
}

/* The axis with the smallest stride in `from`, broadcast axes excepted. */
static int innermost_axis(const struct mc_cuda_layout *l)
{
    int best = l->rank - 1;
    for (int i = 0; i < l->rank; i++) {
        const int64_t f = magnitude(l->from_stride[i]), b = magnitude(l->from_stride[best]);
        best = f && (!b || f < b) ? i : best;
    }
    return best;
}

/* Moves axis i to the last position but one. */
static void before_last(struct mc_cuda_layout *l, int i)
{
    const int64_t size = l->size[i], to = l->to_stride[i], from = l->from_stride[i];
    for (int k = i; k < l->rank - 2; k++) {
        l->size[k] = l->size[k + 1];
        l->to_stride[k] = l->to_stride[k + 1];
        l->from_stride[k] = l->from_stride[k + 1];
    }
    l->size[l->rank - 2] = size;
    l->to_stride[l->rank - 2] = to;
    l->from_stride[l->rank - 2] = from;
}

struct mc_cuda_copy *mc_cuda_copy_new(const struct mc_cuda_layout *layout)
{
    struct mc_cuda_layout l = *layout;
    struct mc_str defines = { 0 };
    int64_t count = 1, first = 0;
    for (int i = 0; i < l.rank; i++) {
        count *= l.size[i];
        first += l.flip[i] ? (l.size[i] - 1) * l.from_stride[i] : 0;
        l.from_stride[i] = l.flip[i] ? -l.from_stride[i] : l.from_stride[i];
    }
    struct mc_cuda_copy *c = mc_calloc(1, sizeof *c, "plans");
    if (!c || count == 0) {
        return c;
    }
    c->from_first = first * mc_dtypes[l.from].size;
    const int64_t all = count;
    struct mc_cuda_axes axes = { l.rank, 2, l.size, { l.to_stride, l.from_stride } };
    mc_cuda_axes_collapse(&axes);
    l.rank = axes.rank;
    const int inner = innermost_axis(&l);
    const int64_t side = mc_dtypes[l.from].size <= 2 ? COPY_SIDE_SMALL : COPY_SIDE;
    const bool transposes = inner != l.rank - 1 && l.size[inner] >= 4 && l.size[l.rank - 1] >= 4;
    if (transposes) {
        before_last(&l, inner);
        count /= l.size[l.rank - 1] * l.size[l.rank - 2];
    }
    c->args.count = count;
    memcpy(c->args.size, l.size, sizeof l.size);
    memcpy(c->args.ts, l.to_stride, sizeof l.to_stride);
    memcpy(c->args.fs, l.from_stride, sizeof l.from_stride);
    mc_str_addf(&defines, "#define TO %s\n#define FROM %s\n#define RANK %d\n", mc_dtypes[l.to].c,
                mc_dtypes[l.from].c, l.rank);
    mc_cuda_index(&defines, all);
    c->grid = mc_cuda_grid_1d(transposes ? count * ((l.size[l.rank - 1] + side - 1) / side) *
                                               ((l.size[l.rank - 2] + side - 1) / side) * 256
                                         : count,
                              256);
    if (!mc_cuda_kernels(&mc_cuda_copy_text, &defines,
                         &(struct mc_cuda_kernel_ref){ &c->kernel, transposes ? "tile" : "line" }, 1)) {
        mc_free(c);
        return NULL;
    }
    return c;
}

mc_status mc_cuda_copy_run(const struct mc_cuda_copy *c, void *to, const void *from)
{
    struct mc_cuda_copy_args args = c->args;
    args.to = to;
    args.from = (const char *)from + c->from_first;
    return c->kernel
               ? mc_cuda_launch_dependent(mc_cuda_current(), c->kernel, "copy", &c->grid, &args, sizeof args)
               : MC_OK;
}

void mc_cuda_copy_free(struct mc_cuda_copy *c)
{
    mc_free(c);
}
