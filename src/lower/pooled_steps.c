/* pooled_steps.c: finds steps whose solver may also do the work of the step before: a max pooling and the
 * convolution that it pools; the gradients of a convolution and the step that spreads gradients to the maxima
 * of its y; a convolution and the convolution that makes its x.  Whether the solver does is decided for each
 * shape.  Not under the flag strict_math: such a solver does not read a NaN that would be multiplied by one
 * of y's zeros.
 *
 * Invariant: only such steps read the result of the step before. */
#include "lower/lower.h"
#include "op/conv.h"
#include "op/pool.h"

static bool is_forward(const mc_node *n)
{
    return mc_conv_pass_of(n->op) == CONV_FORWARD;
}

/* The one input of n that the step before may make; NULL: none. */
static mc_node *candidate_of(const mc_node *n)
{
    const int pass = mc_conv_pass_of(n->op);
    return mc_pool_marks(n) || is_forward(n)             ? n->in[0]
           : pass == CONV_INPUTS || pass == CONV_WEIGHTS ? n->in[mc_conv_operand[pass][CONV_Y]]
                                                         : NULL;
}

/* A max pooling reads a convolution's result; gradients of a convolution read a gradient that was spread by
 * argmax marks. */
static bool can_merge(const mc_node *n, const mc_node *made)
{
    int role[POOL_NARRAY];
    return mc_pool_marks(n) || is_forward(n)
               ? mc_conv_pass_of(made->op) == CONV_FORWARD
               : mc_pool_pass_of(made) == POOL_SPREAD && mc_pool_roles(made, role) && role[POOL_KEY] >= 0;
}

/* The step that makes that input of step s, by such an op; -1: there is none. Only before a convolution it
 * may have an epilogue kernel. */
static int producer_of(const struct mc_program *p, const struct mc_step *s)
{
    mc_node *x = s->heavy ? candidate_of(s->heavy) : NULL;
    const int v = x ? p->value_of[x->id] : -1,
              made = v < 0 || p->value.at[v].kind != VALUE_TEMP ? -1 : p->value.at[v].step;
    const struct mc_step *m = made < 0 ? NULL : &p->step.at[made];
    return m && m->heavy && (!m->kernel || is_forward(s->heavy)) && can_merge(s->heavy, m->heavy) ? made : -1;
}

static bool is_result(const struct mc_program *p, int v)
{
    bool yes = false;
    for (int i = 0; i < p->noutput; i++) {
        yes |= p->output[i] == v;
    }
    for (int i = 0; i < p->nupdate; i++) {
        yes |= p->update[i] == v;
    }
    return yes;
}

static int count_readers(const struct mc_step *s, int v)
{
    int n = 0;
    for (int k = 0; k < s->nsrc; k++) {
        n += s->src[k] == v;
    }
    return n;
}

/* Is result v of step `made` read only by steps whose `before` is `made`, once by each, and by itself? */
static bool is_separate(const struct mc_program *p, int made, int v)
{
    bool yes = !is_result(p, v);
    for (size_t i = 0; i < p->step.n; i++) {
        const int n = (int)i == made ? 0 : count_readers(&p->step.at[i], v);
        yes = yes && n <= (p->step.at[i].before == made);
    }
    return yes;
}

static bool are_separate(const struct mc_program *p, int made)
{
    bool yes = true;
    for (int k = 0; k < p->step.at[made].ndst; k++) {
        yes = yes && is_separate(p, made, p->step.at[made].dst[k]);
    }
    return yes;
}

void mc_find_pooled_steps(struct mc_program *p)
{
    for (size_t i = 0; i < p->step.n; i++) {
        p->step.at[i].before = mc_flag_int(FLAG_strict_math) ? -1 : producer_of(p, &p->step.at[i]);
    }
    for (size_t i = 0; i < p->step.n; i++) {
        const int made = p->step.at[i].before;
        for (size_t k = i; made >= 0 && !are_separate(p, made) && k < p->step.n; k++) {
            p->step.at[k].before = p->step.at[k].before == made ? -1 : p->step.at[k].before;
        }
    }
}
