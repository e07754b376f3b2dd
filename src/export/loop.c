/* loop.c: loops in an exported file: a loop of C around the steps of the body, with the addresses of
 * src/schedule/loop.c.
 *
 *   inK    what step t reads: an element of each sequence, the states, the constants
 *   outK   where step t writes: states by turns in two buffers, or in the result that keeps them
 *
 * K is 1, in a loop or a branch inside of that one 2, and so on.
 *
 * Invariant: nothing is read of a result before the step that writes it. */
#include "export/exporting.h"
#include <inttypes.h>

/* A loop that is being printed. */
struct printing {
    struct mc_export_one *x;        /* the function that has the loop */
    const struct mc_step *st;
    struct mc_loop_planned p;
    struct mc_export_one body;
    char t[16], last[16];           /* variables: the step, and whether the step before was the last */
};

/* "AT + STEP * BYTES" */
static const char *moved(struct mc_export_one *x, const char *at, const char *step, int64_t bytes)
{
    return bytes ? mc_export_format(x, "%s + %s * %" PRId64, at, step, bytes) : at;
}

/* ---- states ---- */

static const char *buffer_of(struct printing *q, int i)
{
    const int64_t at = (int64_t)q->body.arena_at + q->p.buffer[i];
    return mc_export_format(q->x, at ? "arena + %" PRId64 : "arena", at);
}

/* Where the initial value is; the body reads states that are contiguous. */
static const char *initial(struct printing *q, int i)
{
    const int v = q->st->src[1 + q->p.l.nsequence + i];
    return mc_slot_contiguous(&q->x->p->slot[v])
               ? mc_export_address(q->x, v)
               : moved(q->x, buffer_of(q, i), "1", mc_loop_rounded(q->p.bytes[i]));
}

/* Where state i is written by step t, or, with `before`, by the step before. */
static const char *state_at(struct printing *q, int i, bool before)
{
    const int kept = mc_loop_kept_result(&q->p.l, i);
    const char *step = mc_export_format(q->x,
                                        kept >= 0 ? before ? "(%s - 1)" : "%s"
                                        : before  ? "(~%s & 1)"
                                                  : "(%s & 1)",
                                        q->t);
    return kept >= 0 ? moved(q->x, mc_export_address(q->x, q->st->dst[kept]), step, q->p.bytes[i])
                     : moved(q->x, buffer_of(q, i), step, mc_loop_rounded(q->p.bytes[i]));
}

/* The state after t steps. */
static const char *state_after(struct printing *q, int i)
{
    return mc_export_format(q->x, "%s ? %s : %s", q->t, state_at(q, i, true), initial(q, i));
}

/* ---- the body ---- */

static void print_pointers(struct printing *q)
{
    const struct mc_loop *l = &q->p.l;
    struct mc_str *out = &q->x->to->code;
    const struct mc_program *pr = &q->p.body->code->program;
    mc_str_addf(out, "const void *const %s[] = {\n", mc_export_in(&q->body));
    for (int i = 0; i < l->body->nin; i++) {
        const int v = q->st->src[1 + i];
        const char *at = mc_export_address(q->x, v);
        mc_str_addf(out, "%s,\n",
                    i < l->nsequence               ? moved(q->x, at, q->t, q->x->p->slot[v].strides[0])
                    : i < l->nsequence + l->nstate ? state_after(q, i - l->nsequence)
                                                   : at);
    }
    mc_str_addf(out, "NULL\n};\nvoid *const %s[] = {\n", mc_export_out(&q->body));
    for (int i = 0; i < pr->noutput; i++) {
        const int64_t bytes = (int64_t)mc_slot_bytes(&q->p.plan->slot[pr->output[i]]);
        const int collected = i - l->nstate, result = mc_loop_collect_result(l, collected);
        mc_str_addf(out, "%s,\n",
                    i < l->nstate ? state_at(q, i, false)
                    : collected < l->ncollect
                        ? moved(q->x, mc_export_address(q->x, q->st->dst[result]), q->t, bytes)
                        : mc_export_format(q->x, "&%s", q->last));
    }
    mc_str_addf(out, "NULL\n};\n(void)%s, (void)%s;\n", mc_export_in(&q->body), mc_export_out(&q->body));
}

/* ---- around it ---- */

static void copy_initial_states(struct printing *q)
{
    for (int i = 0; i < q->p.l.nstate; i++) {
        const int v = q->st->src[1 + q->p.l.nsequence + i];
        const struct mc_slot *at = &q->x->p->slot[v];
        if (!mc_slot_contiguous(at)) {
            mc_export_dense(&q->x->to->code, at, mc_export_address(q->x, v), initial(q, i));
        }
    }
}

/* Zeros behind the steps that were made. */
static void print_zeros(struct printing *q, int result, int64_t bytes)
{
    if (bytes && q->p.steps) {
        mc_str_addf(&q->x->to->code, "memset(%s, 0, (size_t)((%" PRId64 " - %s) * %" PRId64 "));\n",
                    moved(q->x, mc_export_address(q->x, q->st->dst[result]), q->t, bytes), q->p.steps, q->t,
                    bytes);
    }
}

static void print_results(struct printing *q)
{
    const struct mc_loop *l = &q->p.l;
    const struct mc_program *pr = &q->p.body->code->program;
    struct mc_str *out = &q->x->to->code;
    for (int i = 0; i < l->nstate; i++) {
        const int v = q->st->dst[i], kept = mc_loop_kept_result(l, i);
        struct mc_slot plain = q->x->p->slot[v];
        mc_slot_set(&plain, &plain.type);
        mc_str_addf(out, "{\nconst char *const state = %s;\n", state_after(q, i));
        mc_export_dense(out, &plain, "state", mc_export_address(q->x, v));
        mc_str_add(out, "}\n");
        if (l->until && kept >= 0) {
            print_zeros(q, kept, q->p.bytes[i]);
        }
    }
    for (int i = 0; i < l->ncollect && l->until; i++) {
        print_zeros(q, mc_loop_collect_result(l, i),
                    (int64_t)mc_slot_bytes(&q->p.plan->slot[pr->output[l->nstate + i]]));
    }
    if (l->until) {
        mc_str_addf(out, "*(int64_t *)(%s) = %s;\n", mc_export_address(q->x, q->st->dst[q->st->ndst - 1]),
                    q->t);
    }
}

/* ---- results that are cut ---- */

static bool is_count(const mc_node *n)
{
    const mc_node *of = n->op == &mc_op_item ? n->in[0] : n;
    return of != n && of->op->form == FORM_LOOP && n->item == of->nout - 1 && mc_loop_of(of->attr).until;
}

bool mc_export_has_cut_loop(const struct mc_program *pr)
{
    const size_t count = pr->graph->nodes.n;
    bool *counts = mc_calloc(count + 1, sizeof *counts, "export"),
         cut = false; /* by node: follows from a count */
    for (size_t i = 0; i < count && counts; i++) {
        const mc_node *n = pr->graph->nodes.at[i];
        counts[n->id] = is_count(n);
        for (int k = 0; k < n->nin; k++) {
            const bool read = counts[n->in[k]->id];
            counts[n->id] |= read && n->type.rank == 0;
            cut |= read && mc_is_shape_arg(n, k) && pr->value_of[n->id] >= 0;
        }
    }
    mc_free(counts);
    return cut;
}

mc_status mc_export_loop(struct mc_export_one *x, int step)
{
    struct printing q = { .x = x, .st = &x->f->code->program.step.at[step] };
    struct mc_str *out = &x->to->code;
    if (!mc_loop_planned(x->f, x->p, step, &q.p)) {
        return mc_fail(MC_EINTERNAL, "a loop is not planned");
    }
    q.body = mc_export_body_of(x, step, q.p.body, q.p.plan);
    mc_snprintf(q.t, sizeof q.t, "step%d", q.body.depth);
    mc_snprintf(q.last, sizeof q.last, "last%d", q.body.depth);
    mc_export_body_text(out, q.p.l.body);
    copy_initial_states(&q);
    mc_str_addf(out, "int64_t %s = 0;\n", q.t);
    if (q.p.l.until) {
        mc_str_addf(out, "uint8_t %s = 0;\n", q.last);
    }
    mc_str_addf(out, "for (; %s < %" PRId64 "%s%s; %s++) {\n", q.t, q.p.steps, q.p.l.until ? " && !" : "",
                q.p.l.until ? q.last : "", q.t);
    print_pointers(&q);
    const mc_status s = mc_export_body(x, &q.body);
    mc_str_add(out, "}\nNEXT_STEP;\n");
    if (s == MC_OK) {
        print_results(&q);
    }
    mc_free(q.body.constant);
    mc_arena_free(&q.body.names);
    return s < 0 ? s : out->bad ? MC_EMEMORY : MC_OK;
}
