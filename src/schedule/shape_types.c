/* shape_types.c: the types of a step's nodes at the sizes of a call, by each op's infer function. If the
 * sizes do not fit, the error quotes the formula. */
#include "schedule/schedule.h"

/* The type of x as an input of a node of the step: x is a node of the same kernel, a value or a constant. */
mc_status mc_step_input_type(struct mc_step_types *q, mc_node *x, struct mc_type *t, const mc_array **value)
{
    int v = q->f->code->program.value_of[x->id];
    *value = x->value;
    for (int i = 0; i < q->step->nnode && q->step->kernel; i++) {
        if (q->step->node[i] == x) {
            *t = q->type[i];
            return MC_OK;
        }
    }
    if (v >= 0 && q->p->slot[v].base != BASE_NONE) {
        const struct mc_slot *at = &q->p->slot[v];
        const struct mc_program *pr = &q->f->code->program;
        *t = at->type;
        *value = at->fixed;
        if (at->base == BASE_INPUT && pr->value.at[v].kind == VALUE_INPUT && pr->key_input[at->index]) {
            *value = q->f->arg[at->index];
        }
        return MC_OK;
    }
    if (x->value) {
        *t = x->type;
        return MC_OK;
    }
    struct mc_type in[8]; /* a node without a value, such as a position */
    const mc_array *val[8];
    struct mc_infer n = {
        .op = x->op, .nin = x->nin, .in = in, .value = val, .attr = x->attr, .nout = x->op->nout
    };
    for (int i = 0; i < x->nin && i < 8; i++) {
        TRY(mc_step_input_type(q, x->in[i], &in[i], &val[i]));
    }
    TRY(x->op->infer(&n));
    *t = n.out[0];
    return MC_OK;
}

/* Only an axis whose size 1 was known at compile time is broadcast. */
static mc_status check_broadcast(const struct mc_node *n, const struct mc_type *in)
{
    for (int i = 0; n->op->arity && i < n->nin; i++) {
        for (int a = 0; a < in[i].rank; a++) {
            if (in[i].dims[a] != 1 || n->in[i]->type.dims[a] == 1) {
                continue;
            }
            for (int j = 0; j < n->nin; j++) {
                if (in[j].rank == in[i].rank && in[j].dims[a] != 1) {
                    return mc_fail(MC_ESHAPE,
                                   "%s: axis %d has size 1 in argument %d and %lld in argument %d; declare "
                                   "the size 1 to "
                                   "broadcast it",
                                   n->op->name, a, i + 1, (long long)in[j].dims[a], j + 1);
                }
            }
        }
    }
    return MC_OK;
}

/* Extends the error, such as "step: dot: inner sizes 3 and 4 differ", by the formula, the types of its
 * operands at this call and the user's source line. */
static mc_status blame(const struct mc_step_types *q, const mc_node *n, const struct mc_type *in, mc_status s)
{
    struct mc_str out = { 0 };
    if (s == MC_EMEMORY) {
        return s;
    }
    mc_str_addf(&out, "%s: %s\n    in ", q->f->name, mc_last_error());
    mc_node_print(&out, n, 3);
    for (int i = 0; i < n->nin && i < 4; i++) {
        mc_str_add(&out, i ? ", " : "  [");
        mc_node_print(&out, n->in[i], 2);
        mc_str_add(&out, ": ");
        mc_type_text(&out, &in[i]);
    }
    mc_str_add(&out, n->nin ? "]" : "");
    if (n->file) {
        mc_str_addf(&out, "\n    at %s:%d", n->file, n->line);
    }
    s = out.bad ? s : mc_fail(s, "%s", out.s);
    mc_str_free(&out);
    return s;
}

mc_status mc_step_infer(struct mc_step_types *q, mc_node *n, struct mc_infer *out)
{
    struct mc_type on_stack[8], *in = n->nin <= 8 ? on_stack : mc_alloc((size_t)n->nin * sizeof *in, "plan");
    const mc_array *some[8], **value = n->nin <= 8 ? some : mc_alloc((size_t)n->nin * sizeof *value, "plan");
    mc_status s = in && value ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < n->nin && s == MC_OK; i++) {
        s = mc_step_input_type(q, n->in[i], &in[i], &value[i]);
    }
    bool typed = s == MC_OK;
    if (typed) {
        *out = (struct mc_infer){
            .op = n->op, .nin = n->nin, .in = in, .value = value, .attr = n->attr, .nout = n->op->nout
        };
        s = check_broadcast(n, in);
        s = s < 0 ? s : n->op->infer(out);
        s = s < 0 || n->op->form != FORM_ALLOC ? s : mc_alloc_fits(n, in[0].dims, out->out[0].dims);
    }
    for (int i = 0; s == MC_OK && i < out->nout; i++) {
        for (int a = 0; a < out->out[i].rank; a++) {
            if (out->out[i].dims[a] < 0) {
                s = mc_fail(MC_ESHAPE, "%s: size of axis %d is not known", n->op->name, a);
            }
        }
        if (s == MC_OK && mc_dims_count(out->out[i].rank, out->out[i].dims) < 0) {
            s = mc_fail(MC_ESHAPE, "%s: the result would have more elements than 64 bits count", n->op->name);
        }
    }
    if (s < 0 && typed) {
        s = blame(q, n, in, s);
    }
    if (in != on_stack) {
        mc_free(in);
    }
    if (value != some) {
        mc_free(value);
    }
    return s;
}
