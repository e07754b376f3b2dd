/* custom.c: users' ops that are given as CUDA C.  The text is compiled with the function.  A launch passes a
 * view of each input with its strides, then of each result, and has as many threads as the first result has
 * elements.
 *
 * Invariant: x[i] of a view checks i before it reads memory, so an index out of range is an error of the call
 * and not a fault of the GPU. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/custom_view_args.h"

enum { THREADS = 256, MOST_VIEWS = 16 };
struct view { MC_VIEW_MEMBERS(void) };
MC_ARGS_SIZE(view, 168);
_Static_assert(MC_MAX_RANK == 8, "custom_view_args.h has room for 8 axes");
struct mc_cuda_fn_custom {
    struct mc_exec exec;
    void *kernel;
    struct mc_grid grid;
    int nview, value[MOST_VIEWS];
    struct view view[MOST_VIEWS];
};

static const char views[] = {
#include "exec/cuda/custom_view_text.h"
    , 0 };

/* ---- the text ---- */

/* A static_assert that the kernel's parameters match the graph: "same_<decltype(&double_it), void
 * (*)(view<const float>, view<float>)>". */
static void print_prototypes(const mc_node *n, struct mc_str *out)
{
    const char *name = n->op->name;
    struct mc_str types = { 0 };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const mc_node *x = i < n->nin ? n->in[i] : n->nout == 1 ? n : mc_item((mc_node *)n, i - n->nin);
        mc_str_addf(&types, "%sview<%s%s>", i ? ", " : "", i < n->nin ? "const " : "",
                    mc_dtypes[x->type.dtype].c);
    }
    mc_str_addf(out, "\nstatic_assert(same_<decltype(&%s), void (*)(%s)>::value, \"%s takes (%s)\");\n", name,
                types.s ? types.s : "", name, types.s ? types.s : "");
    out->bad |= types.bad;
    mc_str_free(&types);
}

/* Compiles the kernel. requires: the device is entered. */
static void *load(const mc_node *n)
{
    const struct mc_custom *c = n->op->custom;
    struct mc_str defines = { 0 }, text = { 0 };
    void *kernel = NULL;
    mc_str_addf(&defines, "%s\n#line 1 \"%s\"\n", views, n->op->name);
    mc_str_add(&text, c->cuda);
    print_prototypes(n, &text);
    if (defines.bad || text.bad) {
        mc_fail_memory(0, "kernels");
    } else {
        kernel = mc_cuda_kernel(&(struct mc_cuda_text){ n->op->name, text.s }, defines.s, n->op->name);
    }
    mc_str_free(&defines);
    mc_str_free(&text);
    return kernel;
}

static bool has_cuda_text(const struct mc_step *st)
{
    return st->kind == STEP_HOST && st->nnode == 1 && st->node[0]->op->custom &&
           st->node[0]->op->custom->cuda;
}

mc_status mc_cuda_fn_custom_compile(struct mc_code_unit *u)
{
    mc_status s = MC_OK;
    for (size_t i = 0; i < u->program.step.n && s == MC_OK; i++) {
        struct mc_step *st = &u->program.step.at[i];
        if (!has_cuda_text(st)) {
            continue;
        }
        st->reason = "";
        ((struct mc_cuda_fn_code *)u->own)->checks = true;
        TRY(mc_cuda_enter(mc_cuda_of(u)));
        mc_code_list *before = mc_cuda_note(&((struct mc_cuda_fn_code *)u->own)->code);
        s = load(st->node[0]) ? MC_OK : mc_last_status();
        mc_cuda_note(before);
        mc_cuda_leave(mc_cuda_of(u));
    }
    return s;
}

/* ---- a shape ---- */

static void fill_view(const struct mc_slot *at, struct view *v)
{
    const int64_t size = (int64_t)mc_dtypes[at->type.dtype].size;
    *v = (struct view){ .n = mc_dims_count(at->type.rank, at->type.dims),
                        .rank = at->type.rank,
                        .dense = mc_slot_contiguous(at) };
    for (int a = 0; a < at->type.rank; a++) {
        v->size[a] = at->type.dims[a];
        v->stride[a] = at->type.dims[a] == 1 ? 0 : at->strides[a] / size;
    }
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)scratch;
    struct mc_cuda_fn_custom *c = (struct mc_cuda_fn_custom *)e;
    for (int i = 0; i < c->nview; i++) {
        c->view[i].data = f->ptr[c->value[i]];
        c->view[i].err = (int64_t *)mc_cuda_fn_of(f)->failed;
    }
    const char *name = f->code->program.step.at[step].node[0]->op->name;
    return mc_cuda_launch(mc_cuda_of(f->code), c->kernel, name, &c->grid, c->view,
                          (size_t)c->nview * sizeof *c->view);
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

mc_status mc_cuda_fn_custom_plan(struct mc_function *f, const struct mc_shape_plan *p, int step,
                                 struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    if (!has_cuda_text(st)) {
        return MC_OK;
    }
    const mc_node *n = st->node[0];
    struct mc_cuda_fn_custom *c = mc_calloc(1, sizeof *c, "plan");
    if (!c) {
        return MC_EMEMORY;
    }
    c->exec.ops = &ops;
    *made = &c->exec;
    c->nview = n->nin + n->nout;
    for (int i = 0; i < c->nview; i++) {
        c->value[i] = i < n->nin ? f->code->program.value_of[n->in[i]->id] : st->dst[i - n->nin];
        fill_view(&p->slot[c->value[i]], &c->view[i]);
        c->view[i].number = mc_cuda_fn_number(f, step);
    }
    const int64_t elements = c->view[n->nin].n;
    const unsigned threads = n->op->custom->threads > 0 ? (unsigned)n->op->custom->threads : THREADS;
    c->grid = (struct mc_grid){ { (unsigned)MC_MIN((elements + threads - 1) / threads, (int64_t)INT32_MAX), 1,
                                  1 },
                                { threads, 1, 1 },
                                0 };
    TRY(mc_cuda_enter(mc_cuda_of(f->code)));
    c->kernel = load(n);
    mc_cuda_leave(mc_cuda_of(f->code));
    return c->kernel ? MC_OK : mc_last_status();
}
