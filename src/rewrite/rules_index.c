/* rules_index.c: subtensors.
 *
 * A subtensor of a result is computed from subtensors of the operands if the result has no other user. A
 * subtensor of a subtensor becomes one. An index out of range must stay an error, so two indices are merged
 * only where the inner sizes prove that no error is lost. */
#include "rewrite/index.h"

/* ---- one notation ---- */

/* Bounds that became constants are moved into the spec; a stop at or after the end is dropped. */
static mc_node *tidy(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0];
    struct index to = { .nbound = 0 };
    bool changed = x->op->form == FORM_STACK || x->op->form == FORM_SHAPE;
    for (int k = n->op->sig->ntensor; k < n->nin; k++) {
        changed |= mc_is_const(n->in[k]);
    }
    for (int i = 0; i < x->type.rank; i++) {
        const int64_t *s = index_entry(n, i);
        int64_t size = x->type.dims[i];
        bool forward = s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] > 0;
        bool ends = s[SPEC_STOP_KIND] == BOUND_CONST
                        ? size >= 0 && s[SPEC_STOP] >= size
                        : s[SPEC_STOP_KIND] == BOUND_INPUT && mc_size_is(index_bound(n, s[SPEC_STOP]), x, i);
        index_copy(&to, i, n, i);
        int64_t *d = &to.spec[i * SPEC_N];
        if (!s[SPEC_INDEX] && forward && ends) {
            d[SPEC_STOP_KIND] = BOUND_NONE;
            d[SPEC_STOP] = 0;
            changed = true;
        }
        if (s[SPEC_START_KIND] == BOUND_CONST && s[SPEC_START] < 0 && size >= 0 &&
            (s[SPEC_INDEX] ? s[SPEC_START] >= -size : forward)) {
            d[SPEC_START] = MC_MAX(s[SPEC_START] + size, 0);
            changed = true;
        }
    }
    return changed || index_all_whole(n) ? index_part(x, &to) : NULL;
}

/* ---- parts of parts ---- */

static bool counts_forward(const int64_t *s)
{
    return (s[SPEC_START_KIND] == BOUND_NONE || (s[SPEC_START_KIND] == BOUND_CONST && s[SPEC_START] >= 0)) &&
           (s[SPEC_STOP_KIND] == BOUND_NONE || (s[SPEC_STOP_KIND] == BOUND_CONST && s[SPEC_STOP] >= 0)) &&
           (s[SPEC_INDEX] || (s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] > 0));
}

/* x[a:b:s][c:d:t] is x[a + s*c : min(b, a + s*d) : s*t]; x[a:b:s][c] is x[a + s*c]. */
static bool compose(int64_t *d, const int64_t *in, const int64_t *out, int64_t known)
{
    int64_t a = in[SPEC_START], b = in[SPEC_STOP], s = in[SPEC_STEP], lo, hi, step;
    if (index_is_reversal(in) && index_is_reversal(out)) {
        d[SPEC_STEP_KIND] = BOUND_CONST;
        d[SPEC_STEP] = 1;
        return true;
    }
    if (!counts_forward(in) || !counts_forward(out) || !mc_mul_i64(s, out[SPEC_START], &lo) ||
        !mc_add_i64(a, lo, &lo) || !mc_mul_i64(s, out[SPEC_STOP], &hi) || !mc_add_i64(a, hi, &hi) ||
        !mc_mul_i64(s, out[SPEC_STEP], &step)) {
        return false;
    }
    d[SPEC_START_KIND] = BOUND_CONST;
    d[SPEC_START] = lo;
    if (out[SPEC_INDEX]) {
        d[SPEC_INDEX] = 1;
        return in[SPEC_STOP_KIND] == BOUND_NONE || (known >= 0 && out[SPEC_START] < known);
    }
    bool ends = in[SPEC_STOP_KIND] || out[SPEC_STOP_KIND];
    d[SPEC_STOP_KIND] = ends ? BOUND_CONST : BOUND_NONE;
    d[SPEC_STOP] = !ends ? 0 : !out[SPEC_STOP_KIND] ? b : !in[SPEC_STOP_KIND] ? hi : MC_MIN(b, hi);
    d[SPEC_STEP_KIND] = BOUND_CONST;
    d[SPEC_STEP] = step;
    return true;
}

static mc_node *of_part(mc_node *n, mc_node *p)
{
    struct index to = { .nbound = 0 };
    for (int i = 0, k = 0; i < p->in[0]->type.rank; i++) {
        const int64_t *in = index_entry(p, i), *out = index_entry(n, MC_MIN(k, p->type.rank - 1));
        if (in[SPEC_INDEX]) {
            index_copy(&to, i, p, i);
            continue;
        }
        int64_t *d = &to.spec[i * SPEC_N];
        if (index_is_whole(in)) {
            index_copy(&to, i, n, k);
        } else if (index_is_whole(out)) {
            index_copy(&to, i, p, i);
        } else if (!compose(d, in, out, p->type.dims[k])) {
            return NULL;
        }
        k++;
    }
    return index_part(p->in[0], &to);
}

/* ---- parts of results ---- */

/* The subtensor of an element-wise op f. An operand that is broadcast along an axis keeps its one element. */
static mc_node *of_scalar(const struct mc_match *m, mc_node *n, mc_node *f)
{
    mc_node *in[4];
    for (int k = 0; k < f->nin; k++) {
        mc_node *x = f->in[k];
        struct index to = { .nbound = 0 };
        for (int i = 0; i < x->type.rank; i++) {
            bool broadcast = x->type.dims[i] == 1 && f->type.dims[i] != 1;
            if (!broadcast) {
                index_copy(&to, i, n, i);
            } else if (index_entry(n, i)[SPEC_INDEX]) {
                index_set_first(&to, i);
            } else {
                index_set_whole(&to, i);
            }
        }
        in[k] = x->type.rank ? index_part(x, &to) : x;
        if (mc_is_error(in[k])) {
            return in[k];
        }
    }
    return mc_apply(m->g, f->op, f->nin, in, f->attr);
}

/* A subtensor of a dimshuffle becomes a dimshuffle of a subtensor. */
static mc_node *of_shuffle(mc_node *n, mc_node *s)
{
    mc_node *x = s->in[0];
    struct index to = { .nbound = 0 };
    int64_t order[MC_MAX_RANK], at[MC_MAX_RANK] = { 0 };
    int rank = 0;
    bool used[MC_MAX_RANK] = { 0 }, gone[MC_MAX_RANK] = { 0 };
    for (int i = 0; i < s->type.rank; i++) {
        const int64_t *e = index_entry(n, i);
        int64_t from = s->attr[0].ints[i];
        if (from < 0) {
            bool first = e[SPEC_INDEX] && e[SPEC_START_KIND] == BOUND_CONST &&
                         (e[SPEC_START] == 0 || e[SPEC_START] == -1);
            if (!first && !index_is_whole(e)) {
                return NULL;
            }
        } else {
            index_copy(&to, (int)from, n, i);
            used[from] = true;
            gone[from] = e[SPEC_INDEX];
        }
    }
    for (int i = 0; i < x->type.rank; i++) {
        if (!used[i]) {
            index_set_first(&to, i);
        }
        at[i] = rank;
        rank += used[i] && !gone[i];
    }
    rank = 0;
    for (int i = 0; i < s->type.rank; i++) {
        int64_t from = s->attr[0].ints[i];
        if (!index_entry(n, i)[SPEC_INDEX]) {
            order[rank++] = from < 0 ? -1 : at[from];
        }
    }
    mc_node *y = index_part(x, &to);
    return mc_is_error(y) ? y : mc_shuffle(y, rank, order);
}

/* Rows of a product are rows of the left operand, columns those of the right one. */
static mc_node *of_product(mc_node *n, mc_node *p)
{
    struct index rows = { .nbound = 0 }, columns = { .nbound = 0 };
    index_copy(&rows, 0, n, 0);
    index_set_whole(&rows, 1);
    index_set_whole(&columns, 0);
    index_copy(&columns, 1, n, 1);
    mc_node *a = index_part(p->in[0], &rows), *b = index_part(p->in[1], &columns);
    return mc_is_error(a) || mc_is_error(b) ? n->graph->error
                                            : mc_apply(n->graph, p->op, 2, (mc_node *[]){ a, b }, NULL);
}

/* A subtensor of a repeated number is a smaller alloc. Not for an index: it might be out of range. */
static mc_node *of_alloc(mc_node *n, mc_node *a)
{
    for (int i = 0; i < a->type.rank; i++) {
        if (index_entry(n, i)[SPEC_INDEX]) {
            return NULL;
        }
    }
    for (int i = 0; i < n->type.rank; i++) {
        if (n->type.dims[i] < 0 && !mc_lifted_size(n, 0, i)) {
            return NULL;
        }
    }
    return a->in[0]->type.rank ? NULL : mc_op2("alloc", a->in[0], mc_shape_vector(n));
}

static mc_node *subtensor(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0], *y = tidy(m);
    if (y && y != n) {
        return y;
    }
    if (x->op->form == FORM_SUBTENSOR) {
        return of_part(n, x);
    }
    if (x->op->form == FORM_SUBTENSOR_UPDATE && mc_attr_int(&x->attr[1]) && index_same_region(n, x)) {
        return x->in[1];
    }
    if (x->op->form == FORM_ALLOC) {
        return of_alloc(n, x);
    }
    if (x->op->form == FORM_DIMSHUFFLE) {
        return of_shuffle(n, x);
    }
    if (!mc_used_once(m, x)) {
        return NULL;
    }
    return mc_is_elementwise(x)                            ? of_scalar(m, n, x)
           : x->op->flags & OP_MATMUL && x->type.rank == 2 ? of_product(n, x)
                                                           : NULL;
}

static const struct mc_rule rows[] = {
    { .op = "subtensor", .make = subtensor, .promise = ROUND, .name = "subtensor",
      .sample = "x[1:][0]; x[1:4][1:3]; x[::-1][::-1]; (x + y[0])[1:3]; transpose(x)[1]; expand_dims(x, 0)[0, 2:]; "
                "dot(x, transpose(y))[1:3, 2]; alloc(2.0f64, x.shape)[1:]; set_subtensor(x[1:3], y[1:3])[1:3]; x[0:x.shape[0]]; "
                "cast(x, float32)[1]" },
};
const struct mc_rule_table mc_rules_index = { rows, (int)NELEM(rows) };
