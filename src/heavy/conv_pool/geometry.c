/* geometry.c: what the solvers of pooled convolutions share: windows, the operands of a run, refusals.
 *
 * Invariant: y is in C order wherever it exists. */
#include "heavy/conv_pool/solver.h"

int mc_pooled_result(const struct mc_pooled_problem *p)
{
    static const int written[] = {
        [CONV_FORWARD] = POOLED_G, [CONV_INPUTS] = POOLED_X, [CONV_WEIGHTS] = POOLED_W
    };
    return written[p->conv.s.pass];
}

struct mc_pool_shape mc_pooled_windows(const struct mc_pooled_problem *p, enum mc_pool_pass pass)
{
    const struct mc_conv_shape *s = &p->conv.s;
    struct mc_pool_shape w = { .pass = pass,
                               .mode = POOL_MAX,
                               .key = p->bits ? POOL_KEY_BITS : POOL_KEY_MARKS,
                               .rank = 5,
                               .nd = 3,
                               .axis = { 2, 3, 4 },
                               .dims = { s->n, s->f, s->out[0], s->out[1], s->out[2] },
                               .mark = p->marks };
    memcpy(w.in, s->out, sizeof w.in);
    memcpy(w.out, p->out, sizeof w.out);
    memcpy(w.w, p->w, sizeof w.w);
    memcpy(w.stride, p->stride, sizeof w.stride);
    memcpy(w.pad, p->pad, sizeof w.pad);
    return w;
}

struct mc_conv_run mc_pooled_bind(const struct mc_plan *plan, void *const *operand, int threads)
{
    const struct mc_pooled_problem *p = pooled(plan->problem);
    struct mc_conv_run r = { .p = &p->conv,
                             .at = { operand[POOLED_X], operand[POOLED_W] },
                             .result = operand[mc_pooled_result(p)],
                             .arg = operand[POOLED_EPILOGUE_ARG],
                             .size = sizeof(float),
                             .threads = threads > 0 ? threads : mc_team_size() };
    if (p->conv.has_epilogue) {
        memcpy(&r.epilogue, &operand[POOLED_EPILOGUE],
               sizeof r.epilogue); /* a function pointer stored in a void pointer */
    }
    return r;
}

const char *mc_pooled_not_plain(const struct mc_pooled_problem *p)
{
    const struct mc_conv_shape *s = &p->conv.s;
    const char *no = mc_conv_not_plain(&p->conv);
    return no                                           ? no
           : s->groups != 1                             ? "takes one group"
           : p->out[0] != 1 || p->w[0] != 1             ? "pools one or two axes"
           : s->dilation[1] != 1 || s->dilation[2] != 1 ? "takes no dilation"
           : p->marks != MC_UINT8                       ? "takes marks of one byte"
           : (p->out[2] > 1 && p->g[4] != 1) || (p->out[1] > 1 && p->g[3] != p->out[2])
               ? "needs contiguous maxima"
           : (p->out[2] > 1 && p->mark[4] != 1) || (p->out[1] > 1 && p->mark[3] != p->out[2])
               ? "needs contiguous marks"
               : NULL;
}
