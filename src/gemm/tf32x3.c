/* tf32x3.c: float32 matrix products on tensor cores: operands are split in what TF32 can hold and what is left
 * (plan/split.cu), k becomes three times as long, and one TF32 product sums it all.
 *
 *   A B = [Ah Ah Al] [Bh; Bl; Bh], less Al Bl
 *
 * Invariant: the error keeps the bound of float32 sums of k products. */
#include "gemm/cuda.h"

struct tf32x3 {
    struct mc_plan base;
    struct mc_cuda_copy *a, *b;
    size_t b_at, child_at;      /* in the workspace */
};

static struct tf32x3 *tf32x3(const struct mc_plan *p)
{
    return (struct tf32x3 *)(void *)(uintptr_t)p;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct tf32x3 *d = tf32x3(plan);
    char *at = workspace;
    void *with[8];
    memcpy(with, operand, sizeof with);
    with[GEMM_A] = at;
    with[GEMM_B] = at + d->b_at;
    TRY(mc_cuda_copy_run(d->a, with[GEMM_A], operand[GEMM_A]));
    TRY(mc_cuda_copy_run(d->b, with[GEMM_B], operand[GEMM_B]));
    return plan->child[0]->run(plan->child[0], with, at + d->child_at, threads);
}

/* ---- a plan ---- */

/* A (rows, cols) matrix whose axis `k` (1 or 2) becomes three times as long, in the order it has; a batch that shares it
 * shares the copy.  to: the strides of the copy; returns its elements. */
static int64_t split(const int64_t *from, int64_t batch, int64_t rows, int64_t cols, int k, enum mc_cuda_split side, int64_t *to,
                     struct mc_cuda_layout *l)
{
    const int64_t r = k == 1 ? 3 * rows : rows, c = k == 2 ? 3 * cols : cols, many = from[0] == 0 ? 1 : batch;
    const bool turned = from[2] != 1 && cols > 1;
    to[0] = from[0] == 0 ? 0 : r * c;
    to[1] = turned ? 1 : c;
    to[2] = turned ? r : 1;
    *l = (struct mc_cuda_layout){ .to = MC_FLOAT32, .from = MC_FLOAT32, .rank = 3, .size = { many, rows, cols },
                                  .to_stride = { r * c, to[1], to[2] }, .from_stride = { from[0], from[1], from[2] },
                                  .split = side, .part = to[k] * (k == 1 ? rows : cols) };
    return many * r * c;
}

static size_t room(int64_t elements)
{
    return ((size_t)elements * sizeof(float) + 255) / 256 * 256;
}

static void destroy(struct mc_plan *plan)
{
    mc_cuda_copy_free(tf32x3(plan)->a);
    mc_cuda_copy_free(tf32x3(plan)->b);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_gemm_problem c = *p;
    struct mc_cuda_layout a, b;
    struct tf32x3 *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    c.k = 3 * p->k;
    c.tf32 = true;
    d->b_at = room(split(p->as, p->batch, p->m, p->k, 2, SPLIT_LEFT, c.as, &a));
    d->child_at = d->b_at + room(split(p->bs, p->batch, p->k, p->n, 1, SPLIT_RIGHT, c.bs, &b));
    d->base.run = run;
    d->base.destroy = destroy;
    d->a = mc_cuda_copy_new(&a);
    d->b = d->a ? mc_cuda_copy_new(&b) : NULL;
    d->base.child[0] = d->b ? mc_gemm_cuda_inner(&c) : NULL;
    if (!d->base.child[0]) {
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->child_at + d->base.child[0]->workspace;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    return p->dtype != MC_FLOAT32 || p->tf32            ? "serves float32 to its full precision"
           : mc_gemm_hollow(p)                          ? mc_gemm_hollow(p)
           : !mc_cuda_narrow()                          ? "finds no tensor cores for TF32"
           : p->k > INT64_MAX / 3                       ? "takes shorter sums"
           : !mc_nv_found(NV_CUBLASLT)->there           ? "finds no library for the product"
                                                        : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_gemm_problem c = *p;
    const double b = (double)p->batch, k = (double)p->k, moved = 16 * b * ((double)p->m * k + k * (double)p->n);
    c.k = 3 * p->k;
    c.tf32 = true;
    return mc_gemm_cuda_seconds(&c, 0.6) + mc_cuda_seconds(MC_FLOAT32, false, 0, moved / 2, 1) + mc_cuda_seconds(MC_FLOAT32, false, 0, moved / 2, 1);
}

const struct mc_solver mc_gemm_tf32x3 = { .name = "tf32x3", .refuse = refuse, .estimate = estimate, .plan = plan };
