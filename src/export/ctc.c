/* ctc.c: costs of connectionist temporal classification in an exported file: calls of the text of
 * src/op/ctc_sums.h, which the file contains.
 *
 * Invariant: the bits are those of the reference. */
#include "export/exporting.h"
#include "op/ctc.h"

#include <inttypes.h>

/* Before the text: how it reads and writes.  Labels are copied to int64_t. */
static const char reading[] =
    "#define CTC_READ(e, p) ((e)->dtype ? *(const double *)(const void *)(p) : "
    "(double)*(const float *)(const void *)(p))\n"
    "TARGET static void ctc_write(int dtype, char *to, double v)\n{\n    if (dtype) {\n"
    "        *(double *)(void *)to = v;\n    } else {\n        *(float *)(void *)to = (float)v;\n    }\n}\n"
    "#define CTC_WRITE(e, p, v) ctc_write((e)->dtype, p, v)\n"
    "#define CTC_LABEL(e, k) ((const int64_t *)(const void *)(e)->label)[k]\n"
    "#define CTC_EACH(i, n) for (int64_t i = 0; i < (n); i++)\n"
    "#define CTC_ONE 1\n#define CTC_SYNC (void)0\n";

void mc_export_ctc_text(struct mc_str *out)
{
    mc_str_add(out, "#define TARGET\n");
    mc_str_add(out, reading);
    mc_str_add(out, mc_ctc_text());
    mc_str_add(out, "#undef TARGET\n");
}

bool mc_export_is_ctc(const struct mc_step *st)
{
    return st->kind == STEP_HOST && st->nnode == 1 && mc_ctc_kind(st->node[0]->op) >= 0;
}

/* The values of a step: its inputs, and its result. */
struct values {
    int kind;
    const struct mc_slot *x, *labels, *lengths, *v, *y; /* v: x, if there is none */
    int x_value, labels_value, lengths_value, v_value, y_value;
};

static struct values find(const struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const mc_node *n = st->node[0];
    const int *of = f->code->program.value_of;
    struct values q = { .kind = mc_ctc_kind(n->op) };
    q.x_value = of[n->in[0]->id];
    q.labels_value = of[n->in[1]->id];
    q.lengths_value = of[n->in[2]->id];
    q.v_value = of[n->in[n->nin > 3 ? 3 : 0]->id];
    q.y_value = of[n->id];
    q.x = &p->slot[q.x_value];
    q.labels = &p->slot[q.labels_value];
    q.lengths = &p->slot[q.lengths_value];
    q.v = &p->slot[q.v_value];
    q.y = &p->slot[q.y_value];
    return q;
}

/* The scratch: labels and lengths as int64_t, then the memory of an example. */
static size_t copies(const struct values *q)
{
    const int64_t *dims = q->labels->type.dims;
    return (size_t)(dims[0] * (dims[1] + 1)) * sizeof(int64_t);
}

mc_status mc_export_ctc_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct values q = find(f, p, step);
    size_t work = 0;
    TRY(mc_ctc_work(q.kind, q.x->type.dims[1], q.labels->type.dims[1], &work));
    p->step[step].workspace = copies(&q) + work + 64;
    return MC_OK;
}

/* Prints loops that copy integers of any type and strides. */
static void print_integers(struct mc_export_one *x, const struct mc_slot *at, int value, const char *to)
{
    const char *type = mc_export_type(at->type.dtype);
    struct mc_str *out = &x->to->code;
    const int64_t columns = at->type.rank > 1 ? at->type.dims[1] : 1;
    mc_str_addf(out, "for (int64_t i = 0; i < %" PRId64 "; i++) {\n", at->type.dims[0]);
    mc_str_addf(out, "for (int64_t k = 0; k < %" PRId64 "; k++) {\n", columns);
    mc_str_addf(out,
                "%s[i * %" PRId64 " + k] = (int64_t)*(const %s *)(const void *)(%s + i * %" PRId64
                " + k * %" PRId64 ");\n}\n}\n",
                to, columns, type, mc_export_address(x, value), at->strides[0],
                at->type.rank > 1 ? at->strides[1] : 0);
}

/* e.NAME is example i of the value, (examples, steps, classes). */
static void print_operand(struct mc_export_one *x, const char *name, const struct mc_slot *at, int value)
{
    mc_str_addf(&x->to->code,
                "e.%s = %s + i * %" PRId64 ";\ne.%s_step = %" PRId64 ";\ne.%s_class = %" PRId64 ";\n", name,
                mc_export_address(x, value), at->strides[0], name, at->strides[1], name, at->strides[2]);
}

static void print_cost(struct mc_export_one *x, const struct values *q, bool zero_infinity)
{
    const char *type = mc_export_type(q->y->type.dtype);
    mc_str_addf(&x->to->code, "*(%s *)(void *)(%s + i * %" PRId64 ") = %s(%s)cost;\n", type,
                mc_export_address(x, q->y_value), q->y->strides[0],
                zero_infinity ? "cost == INFINITY ? 0 : " : "", type);
}

mc_status mc_export_ctc(struct mc_export_one *x, int step)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const struct values q = find(x->f, x->p, step);
    const mc_dtype d = q.x->type.dtype;
    const int64_t *dims = q.x->type.dims;
    struct mc_str *out = &x->to->code;
    if (x->to->freestanding) {
        return mc_fail(MC_EUNSUPPORTED, "a freestanding file has no ctc_loss");
    }
    if (d != MC_FLOAT32 && d != MC_FLOAT64) {
        return mc_fail(MC_EUNSUPPORTED,
                       "export as C: ctc_loss: half types; cast to float32 before and back after");
    }
    if (dims[2] < 1) {
        return mc_fail(MC_ESHAPE, "ctc_loss: there are no classes; class 0 is the blank");
    }
    x->to->ctc = true;
    mc_str_addf(out,
                "int64_t *const label = (int64_t *)(void *)(%s), *const length = label + %" PRId64
                ";\ndouble *const work = (double *)(void *)(length + %" PRId64 ");\n",
                mc_export_scratch(x, step, 0), dims[0] * q.labels->type.dims[1], dims[0]);
    print_integers(x, q.labels, q.labels_value, "label");
    print_integers(x, q.lengths, q.lengths_value, "length");
    mc_str_addf(out,
                "for (int64_t i = 0; i < %" PRId64 "; i++) {\nstruct ctc_sequence e;\ndouble cost = 0;\n",
                dims[0]);
    mc_str_addf(out, "memset(&e, 0, sizeof e);\ne.kind = %d;\ne.dtype = %d;\n", q.kind, d == MC_FLOAT64);
    mc_str_addf(out, "e.label = (const char *)(label + i * %" PRId64 ");\ne.labels = %" PRId64 ";\n",
                q.labels->type.dims[1], q.labels->type.dims[1]);
    mc_str_addf(out, "e.rows = %" PRId64 ";\ne.classes = %" PRId64 ";\ne.steps = length[i];\n", dims[1],
                dims[2]);
    print_operand(x, "x", q.x, q.x_value);
    print_operand(x, "v", q.v, q.v_value);
    if (q.y->type.rank == 3) {
        print_operand(x, "y", q.y, q.y_value);
    }
    mc_str_add(out, "ctc_place(&e, work);\nif (ctc_example(&e, &cost)) {\nreturn 1;\n}\n");
    if (q.y->type.rank == 1) {
        print_cost(x, &q, mc_attr_int(&st->node[0]->attr[0]) != 0);
    }
    mc_str_add(out, "}\n");
    return out->bad ? MC_EMEMORY : MC_OK;
}
