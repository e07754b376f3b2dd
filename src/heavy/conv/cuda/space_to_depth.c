/* space_to_depth.c: on a GPU, a strided convolution as one of stride 1 whose channels are the phases of x
 * (space_to_depth.cu).
 *
 *   y[u] = sum of x[s u - p + a] w[a],  a = s q + r:   sum over q and r of x'[r][u + q] w'[r][q]
 *
 * Few channels and large strides, as in first layers, leave tensor cores idle; s * s times the channels do
 * not.  The price: filters are rounded up to multiples of s, and x is copied.  The copy includes the
 * border.
 *
 * Invariant: the child sums the problem's terms and zeros. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/space_to_depth_args.h"

static const char text[] = {
#include "heavy/conv/cuda/space_to_depth_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_space_to_depth_text = { "heavy/conv/cuda/space_to_depth.cu", text };

/* MOST_CHANNELS: of x; with more, tensor cores are busy anyway.  WORD: bytes that a thread writes */
enum { MOST_CHANNELS = 16, WORD = 16 };
struct side {                   /* x or w */
    void *kernel;
    const char *name;
    struct mc_grid grid;
    struct mc_space_to_depth_args args;
    int64_t first;              /* bytes from the array to its element (0, 0) */
    size_t at;                  /* of the folded copy, in the workspace */
};
struct space_to_depth {
    struct mc_plan base;
    struct side side[2];        /* CONV_X, CONV_W */
    size_t child_at;
};

/* ---- a call ---- */

static mc_status move(const struct side *s, void *plain, void *workspace)
{
    struct mc_space_to_depth_args a = s->args;
    a.plain = (char *)plain + s->first;
    a.folded = (char *)workspace + s->at;
    return mc_cuda_launch_dependent(mc_cuda_current(), s->kernel, s->name, &s->grid, &a, sizeof a);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct space_to_depth *d = (const struct space_to_depth *)(const void *)plan;
    const int result = mc_conv_result(conv(plan->problem)->s.pass);
    void *with[8];
    memcpy(with, operand, sizeof with);
    for (int role = CONV_X; role <= CONV_W; role++) {
        with[role] = (char *)workspace + d->side[role].at;
        if (role != result) {
            TRY(move(&d->side[role], operand[role], workspace));
        }
    }
    TRY(plan->child[0]->run(plan->child[0], with, (char *)workspace + d->child_at, threads));
    return result == CONV_Y ? MC_OK : move(&d->side[result], operand[result], workspace);
}

/* ---- a plan ---- */

/* The new channels are innermost. */
static void lay_out(int64_t stride[5], int64_t c, const int64_t size[3])
{
    stride[1] = 1;
    stride[4] = c;
    stride[3] = size[2] * stride[4];
    stride[2] = size[1] * stride[3];
    stride[0] = size[0] * stride[2];
}

static struct mc_conv_problem child_of(const struct mc_conv_problem *p)
{
    struct mc_conv_problem c = *p;
    c.s.c *= conv_volume(p->s.stride);
    for (int i = 0; i < 3; i++) {
        c.s.k[i] = conv_ceil(p->s.k[i], p->s.stride[i]);
        c.s.in[i] = p->s.out[i] + c.s.k[i] - 1;
        c.s.stride[i] = 1;
        c.s.pad[i] = 0;
    }
    c.s.flip = false;
    lay_out(c.at.x, c.s.c, c.s.in);
    lay_out(c.at.w, c.s.c, c.s.k);
    c.inner |= INNER_SPACE_TO_DEPTH;
    return c;
}

static int64_t elements(const struct mc_conv_problem *c, int role)
{
    const struct mc_conv_array a = mc_conv_array(c, role);
    return mc_conv_count(&a);
}

static bool make_side(struct side *s, const struct mc_conv_problem *p, const struct mc_conv_problem *c,
                      int role)
{
    const struct mc_conv_array plain = mc_conv_array(p, role), folded = mc_conv_array(c, role);
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_space_to_depth_args *a = &s->args;
    struct mc_str defines = { 0 };
    bool into = role != mc_conv_result(p->s.pass);
    *a = (struct mc_space_to_depth_args){ .outer = plain.size[0],
                                          .c = plain.size[1],
                                          .at = { plain.stride[0], plain.stride[1] } };
    for (int i = 0; i < 2; i++) {
        const bool flipped = role == CONV_W && p->s.flip;
        a->size[i] = plain.size[3 + i];
        a->folds[i] = folded.size[3 + i];
        a->stride[i] = p->s.stride[1 + i];
        a->pad[i] = role == CONV_X ? p->s.pad[1 + i] : 0;
        a->at[2 + i] = flipped ? -plain.stride[3 + i] : plain.stride[3 + i];
        s->first += flipped ? (a->size[i] - 1) * plain.stride[3 + i] * size : 0;
    }
    int64_t pack = WORD / size;
    while (c->s.c % pack) {
        pack /= 2;
    }
    const int64_t count = into ? mc_conv_count(&folded) / pack : mc_conv_count(&plain);
    mc_str_addf(&defines, "#define T unsigned %s\n#define PACK %d\n",
                size == 2   ? "short"
                : size == 4 ? "int"
                            : "long long",
                (int)pack);
    mc_cuda_index(&defines, MC_MAX(mc_conv_count(&folded), mc_conv_count(&plain)));
    s->name = into ? "fold" : "unfold";
    s->grid = mc_cuda_grid_1d(count, 256);
    return mc_cuda_kernels(&mc_conv_space_to_depth_text, &defines,
                           &(struct mc_cuda_kernel_ref){ &s->kernel, s->name }, 1);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_), c = child_of(p);
    struct space_to_depth *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    if (make_side(&d->side[CONV_X], p, &c, CONV_X) && make_side(&d->side[CONV_W], p, &c, CONV_W)) {
        d->base.child[0] = mc_conv_plan_in(p->base.family, &c, &p->base.options);
    }
    if (!d->base.child[0]) {
        mc_free(d);
        return NULL;
    }
    for (int role = CONV_X; role <= CONV_W; role++) {
        d->side[role].at = d->child_at;
        d->child_at += mc_work_rounded((size_t)elements(&c, role) * mc_dtypes[p->dtype].size);
    }
    d->base.workspace = d->child_at + d->base.child[0]->workspace;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    if (p->inner & INNER_SPACE_TO_DEPTH || mc_conv_hollow(p)) {
        return p->inner & INNER_SPACE_TO_DEPTH ? "cannot be nested" : mc_conv_hollow(p);
    }
    if (s->unshared || s->groups != 1 || s->c > MOST_CHANNELS) {
        return s->unshared      ? "has one filter for all positions"
               : s->groups != 1 ? "takes one group"
                                : "takes up to 16 channels";
    }
    if (s->in[0] != 1 || s->out[0] != 1 || s->k[0] != 1 || s->pad[0] != 0) {
        return "takes two spatial axes";
    }
    if (conv_volume(s->dilation) != 1 || s->stride[1] * s->stride[2] == 1 || s->k[1] < s->stride[1] ||
        s->k[2] < s->stride[2]) {
        return "takes strides above 1 and up to the filter, and no dilation";
    }
    return p->has_bias || p->act != ACT_NONE || (p->beta != 0 && s->pass != CONV_FORWARD) ? "fuses nothing"
                                                                                          : NULL;
}

/* The child's best time, and a copy of x. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_), c = child_of(p);
    const double moved = (double)(elements(p, CONV_X) + elements(&c, CONV_X)) * mc_dtypes[p->dtype].size;
    return 3e-6 + mc_plan_cheapest(&c.base) + mc_cuda_seconds(p->dtype, false, 0, 1.5 * moved, 1);
}

const struct mc_solver mc_conv_cuda_space_to_depth = { .name = "fold", .refuse = refuse, .estimate = estimate,
                                                       .plan = plan, .wraps = true };
