/* prototype.c: the signature of an op in formulas and in C; monochord_ops.h has these prototypes. */
#include "op/op.h"

/* Ops whose C name is used by another function. The comment on such a function begins with the signature
 * of the op. */
static const struct { const char *op, *function; } renamed[] = {
    { "var", "variance" },      /* mc_var finds a variable by name */
    { "alloc", "full" },        /* mc_alloc allocates memory */
    { "full", "full_of" },
    { "shuffle", "shuffled" },  /* mc_shuffle permutes axes */
};
/* Words of C and C++ that cannot be names of parameters. */
static const char *const reserved[] = {
    "default", "switch", "register", "new", "this", "class", "template", "int", "long", "char",
};

const char *mc_op_function(const struct mc_op *op)
{
    for (size_t i = 0; i < NELEM(renamed); i++) {
        if (strcmp(renamed[i].op, op->name) == 0) {
            return renamed[i].function;
        }
    }
    return op->name;
}

static const char *safe(const char *name)
{
    for (size_t i = 0; i < NELEM(reserved); i++) {
        if (strcmp(reserved[i], name) == 0) {
            return "_";
        }
    }
    return "";
}

int mc_op_prototype(struct mc_str *out, const struct mc_op *op)
{
    const struct mc_signature *s = op->sig;
    int n = 0;
    mc_str_addf(out, "mc_node *mc_%s(", mc_op_function(op));
    if (!s->ntensor && !s->variadic) {
        mc_str_add(out, "mc_graph *g");
        n++;
    }
    for (int i = 0; i < s->nparam; i++) {
        const struct mc_param *p = &s->param[i];
        if (p->kind == ATTR_TENSOR) {
            mc_str_addf(out, "%smc_node *%s%s", n++ ? ", " : "", p->name, safe(p->name));
        } else if (p->kind == ATTR_TENSORS) {
            mc_str_addf(out, "%sint n, mc_node *const *%s%s", n ? ", " : "", p->name, safe(p->name));
            n += 2;
        }
    }
    if (s->nattr) {
        mc_str_addf(out, "%sconst char *how, ...", n ? ", " : "");
        n++;
    }
    mc_str_add(out, ")");
    return s->nattr ? n : 0;
}

void mc_op_call_text(struct mc_str *out, const struct mc_op *op)
{
    const struct mc_signature *s = op->sig;
    mc_str_addf(out, "%s(", op->name);
    for (int i = 0; i < s->nparam; i++) {
        const struct mc_param *p = &s->param[i];
        mc_str_addf(out, "%s%s%s", i ? ", " : "", p->kind == ATTR_TENSORS ? "*" : "", p->name);
        if (p->optional && p->kind == ATTR_TENSOR) {
            mc_str_add(out, "=None");
        } else if (p->optional) {
            mc_str_add(out, "=");
            mc_attr_text(out, &p->dflt);
        }
    }
    mc_str_add(out, ")");
}
