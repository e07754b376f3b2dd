/* custom.c: users' ops. A registered op is a row like any other. It is reference-counted, because
 * functions outlive the graph in which it was registered. */
#include "op/op.h"

struct custom {
    struct mc_op op;         /* first: graphs hold its address */
    _Atomic int refs;
    mc_custom row;
    struct mc_arena memory;  /* names, texts, the signature */
    struct mc_signature sig;
    VEC(struct mc_custom_code) code; /* compiled forms, if it came with them */
};

/* Computes an op given as kernel text, for the reference; set by the module that compiles C. */
mc_status (*mc_custom_kernel_hook)(const mc_node *n, mc_array *const *in, mc_array *const *out);

static mc_status infer(struct mc_infer *q)
{
    const mc_custom *c = q->op->custom;
    q->nout = c->nout;
    for (int i = 0; i < c->nout; i++) {
        struct mc_type *t = &q->out[i];
        *t = q->nin ? q->in[0] : (struct mc_type){ .dtype = MC_FLOAT32 };
        if (c->infer) {
            mc_dtype dtype[8];
            int rank[8];
            const int64_t *dims[8];
            for (int k = 0; k < q->nin; k++) {
                dtype[k] = q->in[k].dtype;
                rank[k] = q->in[k].rank;
                dims[k] = q->in[k].dims;
            }
            mc_clear_error();
            mc_status s = c->infer(c->arg, q->nin, dtype, rank, dims, i, &t->dtype, &t->rank, t->dims);
            if (s < 0) {
                return *mc_last_error() ? s
                                        : mc_fail(s, "%s: infer failed with %s", c->name, mc_status_name(s));
            }
            if (t->rank < 0 || t->rank > MC_MAX_RANK || (unsigned)t->dtype >= MC_NDTYPE) {
                return mc_fail(MC_EARG, "%s: infer gave result %d an invalid type: rank %d, dtype %d",
                               c->name, i, t->rank, (int)t->dtype);
            }
        }
    }
    return MC_OK;
}

static mc_status eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_custom *c = n->op->custom;
    mc_array *dense[8] = { 0 };
    mc_status s = c->run
                      ? MC_OK
                      : mc_fail(MC_EUNSUPPORTED, "%s: has only CUDA C code and runs only on a GPU", c->name);
    for (int i = 0; i < n->nin && s == MC_OK; i++) { /* callbacks may rely on C order */
        dense[i] = mc_array_is_contiguous(in[i]) ? mc_array_ref(in[i]) : mc_array_copy(in[i]);
        s = dense[i] ? MC_OK : mc_last_status();
    }
    if (s == MC_OK) {
        mc_clear_error();
        s = c->run(c->arg, n->nin, (const mc_array *const *)dense, c->nout, out);
        if (s < 0 && !*mc_last_error()) {
            mc_fail(s, "%s: run failed with %s", c->name, mc_status_name(s));
        }
    }
    for (int i = 0; i < n->nin; i++) {
        mc_array_unref(&dense[i]);
    }
    return s;
}

static mc_status kernel_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    return mc_custom_kernel_hook
               ? mc_custom_kernel_hook(n, in, out)
               : mc_fail(MC_EUNSUPPORTED, "%s: kernel text needs a C compiler", n->op->name);
}

static void drop(struct custom *c)
{
    if (c && atomic_fetch_sub(&c->refs, 1) == 1) {
        if (c->row.release) {
            c->row.release(c->row.arg);
        }
        VEC_FREE(c->code);
        mc_arena_free(&c->memory);
        mc_free(c);
    }
}

void mc_custom_unref(struct mc_op *op)
{
    drop((struct custom *)op);
}

mc_status mc_custom_share(mc_graph *to, const mc_graph *from)
{
    for (size_t i = 0; i < from->custom.n; i++) {
        if (!VEC_PUSH(to->custom, from->custom.at[i])) {
            return MC_EMEMORY;
        }
        atomic_fetch_add(&((struct custom *)from->custom.at[i])->refs, 1);
    }
#ifndef MC_RUNTIME /* which has no ranks */
    for (size_t i = 0; i < from->groups.n; i++) {
        const struct mc_rank_group *g = &from->groups.at[i];
        struct mc_rank_group row = { mc_arena_str(&to->arena, g->name, strlen(g->name)), g->comm };
        if (!row.name || !VEC_PUSH(to->groups, row)) {
            return MC_EMEMORY;
        }
        mc_comm_ref(row.comm);
    }
#endif
    return MC_OK;
}

mc_status mc_custom_code_add(const struct mc_op *op, const struct mc_custom_code *code)
{
    return mc_custom_code_of(op, code->dtype) || VEC_PUSH(((struct custom *)op)->code, *code) ? MC_OK
                                                                                              : MC_EMEMORY;
}

const struct mc_custom_code *mc_custom_code_of(const struct mc_op *op, const mc_dtype *dtype)
{
    const struct custom *c = (const struct custom *)op;
    const size_t n = (size_t)op->arity + 1;
    for (size_t i = 0; i < c->code.n; i++) {
        if (memcmp(c->code.at[i].dtype, dtype, n * sizeof *dtype) == 0) {
            return &c->code.at[i];
        }
    }
    return NULL;
}

static char *keep(struct custom *c, const char *s)
{
    return s ? mc_arena_str(&c->memory, s, strlen(s)) : NULL;
}

static bool fill(struct custom *c, const mc_custom *row)
{
    static const char *const params[] = { "", "a", "a, b", "a, b, c", "a, b, c, d", "a, b, c, d, e", "a, b, c, d, e, f",
                                          "a, b, c, d, e, f, g_", "a, b, c, d, e, f, g_, h" };
    c->row = *row;
    c->row.name = keep(c, row->name);
    c->row.kernel = keep(c, row->kernel);
    c->row.cuda = keep(c, row->cuda);
    bool ok = c->row.name && (!row->kernel || c->row.kernel) && (!row->cuda || c->row.cuda) &&
              mc_signature_parse(params[row->nin], &c->memory, &c->sig) == MC_OK;
    struct mc_op op = { .name = c->row.name, .params = params[row->nin], .nout = row->nout, .infer = infer, .eval = eval,
                        .doc = MANUAL("a custom op"), .sig = &c->sig, .custom = &c->row, .index = -1 };
    if (row->kernel) {
        op.arity = row->nin;
        op.typing = TYPE_FLOAT;
        op.flags = OP_COSTLY;
        op.infer = mc_scalar_infer;
        op.eval = kernel_eval;
#ifndef MC_RUNTIME /* there, no graph is made or compiled */
        op.code = c->row.kernel;
        op.size = mc_scalar_size;
        for (int i = 0; i < 4 && i < row->nin; i++) {
            op.dx[i] = keep(c, row->kernel_grad[i] ? row->kernel_grad[i] : "!");
            ok = ok && op.dx[i];
        }
#endif
    }
    c->op = op;
    return ok;
}

/* Is s a valid name in formulas and in kernels? */
static bool is_word(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return s[strspn(s, letters)] == '\0' && !(*s >= '0' && *s <= '9') && strlen(s) < 48;
}

mc_status mc_register(mc_graph *g, const mc_custom *row)
{
    if (!g || !row || !row->name || !*row->name) {
        return mc_fail(MC_EARG, "register: the %s is missing", !g ? "graph" : "name");
    }
    const char *wrong = row->nin < 0 || row->nin > 8     ? "must have 0 to 8 inputs"
                        : row->nout < 1 || row->nout > 8 ? "must have 1 to 8 results"
                        : row->kernel && (row->nin > 3 || row->nin < 1)
                            ? "has kernel text and must have 1 to 3 inputs"
                        : row->kernel && row->nout != 1 ? "has kernel text and must have one result"
                        : row->kernel && row->cuda
                            ? "must not have both kernel text, which GPUs run too, and CUDA C"
                        : row->threads < 0 || row->threads > 1024 ? "must have blocks of 1 to 1024 threads"
                        : !row->kernel && !row->run && !row->cuda
                            ? "has no implementation: give run, kernel or cuda"
                        : !is_word(row->name)       ? "is not a valid name: use letters, digits and _"
                        : mc_op_named(g, row->name) ? "is the name of an existing op"
                                                    : NULL;
    for (size_t i = 0; i < g->custom.n; i++) {
        wrong = strcmp(g->custom.at[i]->name, row->name) == 0 ? "is already registered" : wrong;
    }
    if (wrong) {
        mc_node_fail(g, MC_EARG, "register: %s %s", row->name, wrong);
        return MC_EARG;
    }
    struct custom *c = mc_calloc(1, sizeof *c, "custom");
    if (!c) {
        return mc_last_status();
    }
    c->refs = 1;
    if (!fill(c, row) || !VEC_PUSH(g->custom, &c->op)) {
        c->row.release = NULL; /* the caller still owns its data */
        drop(c);
        return mc_last_status();
    }
    return MC_OK;
}
