/* branch.c: a choice as it is compiled: two bodies over the same inputs, one of which is computed.
 *
 * Invariant: a mistake in the body that is not taken, such as sizes that do not fit, is no error. */
#include "op/ifelse.h"
#include "op/loop.h"

struct mc_branch mc_branch_of(const struct mc_attr *attr)
{
    const struct mc_body *yes = attr[BRANCH_TRUE].body, *no = attr[BRANCH_FALSE].body;
    const int n = (int)mc_attr_int(&attr[BRANCH_VALUES]);
    return (struct mc_branch){ .side = { no, yes },
                               .nvalue = n,
                               .nown = { no->nout - n, yes->nout - n },
                               .ragged = mc_attr_int(&attr[BRANCH_RAGGED]) != 0 };
}

/* ---- types ---- */

/* The types of a body's results at known sizes.  false: they do not fit, or there is no memory. */
static bool types_of(const struct mc_infer *q, const struct mc_body *b, struct mc_type *out, mc_status *s)
{
    if (q->graph) {
        for (int i = 0; i < b->nout; i++) {
            out[i] = b->out[i]->type;
        }
        return true;
    }
    mc_array **value = mc_alloc((size_t)q->nin * sizeof *value, "ifelse");
    for (int i = 0; i + 1 < q->nin && value; i++) {
        value[i] = (mc_array *)q->value[1 + i];
    }
    *s = value ? mc_body_types(b, q->in + 1, value, out) : MC_EMEMORY;
    mc_free(value);
    return *s == MC_OK;
}

/* Result i from its types on both sides. */
static mc_status merge(const struct mc_branch *b, int i, const struct mc_type *yes, const struct mc_type *no,
                       struct mc_type *out)
{
    bool fit = yes->dtype == no->dtype && yes->rank == no->rank;
    *out = *yes;
    for (int k = 0; k < yes->rank && fit; k++) {
        const int64_t m = yes->dims[k], n = no->dims[k];
        fit = b->ragged || m < 0 || n < 0 || m == n;
        out->dims[k] = m == n ? m : b->ragged ? -1 : MC_MAX(m, n);
    }
    return fit ? MC_OK : mc_ifelse_differ(i, yes, no);
}

/* Results of a body that is not taken, and whose sizes may not fit: nothing reads them. */
static void no_types(const struct mc_body *b, struct mc_type *out)
{
    for (int i = 0; i < b->nout; i++) {
        out[i] = b->out[i]->type;
        for (int k = 0; k < out[i].rank; k++) {
            out[i].dims[k] = 0;
        }
    }
}

/* Are the inputs of the types that the bodies were made for? */
static bool inputs_fit(const struct mc_infer *q, const struct mc_branch *b)
{
    bool fit = true;
    for (int i = 0; i + 1 < q->nin && fit; i++) {
        const struct mc_type *have = &q->in[1 + i];
        fit = mc_types_meet(have, &b->side[0]->in[i]->type) && mc_types_meet(have, &b->side[1]->in[i]->type);
    }
    return fit;
}

static mc_status branch_infer(struct mc_infer *q)
{
    const struct mc_branch b = mc_branch_of(q->attr);
    struct mc_type out[2][MC_MOST_RESULTS];
    mc_status s = MC_OK;
    bool known[2];
    if (q->nin < 1 || b.side[0]->nin != q->nin - 1 || b.side[1]->nin != q->nin - 1 || b.nvalue < 1 ||
        b.nown[0] < 0 || b.nown[1] < 0 || b.nvalue + b.nown[0] + b.nown[1] > MC_MOST_RESULTS ||
        !inputs_fit(q, &b)) {
        return mc_fail(MC_EARG, "branch: the attributes do not fit the bodies and the inputs");
    }
    if (q->in[0].rank || q->in[0].dtype != MC_BOOL) {
        return mc_fail(MC_ETYPE, "branch: the condition is a bool scalar");
    }
    for (int side = 1; side >= 0; side--) {
        known[side] = types_of(q, b.side[side], out[side], &s);
        if (!known[side] && (s == MC_EMEMORY || (q->value[0] && *q->value[0]->data == side))) {
            return s;
        }
        if (!known[side]) {
            no_types(b.side[side], out[side]);
        }
    }
    if (!known[0] && !known[1]) {
        return s;
    }
    const bool clean = known[0] && known[1];
    for (int i = 0; i < b.nvalue; i++) {
        const bool decided = !q->graph && q->value[0], side = decided ? *q->value[0]->data != 0 : known[1];
        if (decided || !clean) {
            q->out[i] = out[side][i];
        } else {
            TRY(merge(&b, i, &out[1][i], &out[0][i], &q->out[i]));
        }
    }
    for (int side = 0; side < 2; side++) {
        for (int i = b.nvalue; i < b.side[side]->nout; i++) {
            q->out[mc_branch_result(&b, side, i)] = out[side][i];
        }
    }
    if (!clean) {
        mc_clear_error();
    }
    q->nout = b.nvalue + b.nown[0] + b.nown[1];
    return MC_OK;
}

/* ---- the reference ---- */

static mc_status branch_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const struct mc_branch b = mc_branch_of(n->attr);
    const bool side = *in[0]->data != 0;
    const struct mc_body *body = b.side[side];
    mc_array *made[MC_MOST_RESULTS] = { 0 };
    TRY(mc_eval(body->nin, body->in, in + 1, body->nout, body->out, made));
    mc_status s = MC_OK;
    for (int i = b.nvalue; i < n->nout; i++) {
        memset(out[i]->data, 0, (size_t)mc_array_size(out[i]) * mc_dtypes[out[i]->dtype].size);
    }
    for (int i = 0; i < body->nout; i++) {
        mc_array *to = out[mc_branch_result(&b, side, i)];
        s = s < 0 ? s
            : mc_dims_equal(to->rank, to->dims, made[i]->rank, made[i]->dims)
                ? mc_array_assign(to, made[i])
                : mc_fail(MC_ESHAPE, "ifelse: the sizes of value %d depend on the condition", i + 1);
        mc_array_unref(&made[i]);
    }
    return s;
}

/* ---- making ---- */

mc_node *mc_branch_make(mc_graph *g, int nin, mc_node *const *in, const struct mc_body *yes,
                        const struct mc_body *no, int nvalue, bool ragged)
{
    int64_t number[2] = { nvalue, ragged };
    struct mc_attr attr[MC_BRANCH_ATTRS] = {
        [BRANCH_TRUE] = { .kind = ATTR_BODY, .text = yes->text, .body = yes },
        [BRANCH_FALSE] = { .kind = ATTR_BODY, .text = no->text, .body = no },
        [BRANCH_VALUES] = { .kind = ATTR_INT, .n = 1, .ints = &number[0] },
        [BRANCH_RAGGED] = { .kind = ATTR_BOOL, .n = 1, .ints = &number[1] },
    };
    return mc_node_make(g, mc_op_named(g, "branch"), nin, in, attr);
}

const struct mc_op mc_ops_branch[] = {
    { .name = "branch", .params = "c, *inputs, true:body, false:body, values=1:int, ragged=False:bool", .flags = OP_HIDDEN | OP_NOFOLD,
      .form = FORM_BRANCH, .nout = 1, .infer = branch_infer, .eval = branch_eval, .disconnected = 1,
      .doc = MANUAL("a choice between two bodies; the compiler makes it of ifelse") },
};
const int mc_nops_branch = (int)NELEM(mc_ops_branch);
