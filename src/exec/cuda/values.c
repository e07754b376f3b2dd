/* values.c: a function's values on a GPU, where that differs from other remote memory: results may be written
 * to pinned memory, or fetched while later steps run, and views are made contiguous by a kernel. */
#include "exec/cuda/cuda.h"

void mc_cuda_fn_made_in_free(const struct mc_function *f, struct mc_cuda_fn_plan *q)
{
    for (int i = 0; i < f->code->program.noutput && q->made_in; i++) {
        mc_cuda_free(mc_cuda_of(f->code), q->made_in[i]);
    }
    mc_free(q->made_in);
    q->made_in = NULL;
}

int mc_cuda_fn_memory_of(const struct mc_function *f, const struct mc_shape_plan *p, int v)
{
    const struct mc_program *pr = &f->code->program;
    v = v < 0 ? v : mc_memory_of(pr, p, v);
    return v >= 0 && p->slot[v].inside ? p->slot[v].inside - 1 : v;
}

/* Allocates or frees the memory of the plan that result i is copied from.  Where there is none, it is made
 * in its own array. */
static void make_or_free(const struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    struct mc_cuda_fn_plan *q = p->own;
    const struct mc_slot *at = &p->slot[f->code->program.output[i]];
    if (q->way != MC_CUDA_CAPTURE_COPIED) {
        mc_cuda_fn_made_in_free(f, q);
    } else if (at->base == BASE_OUTPUT) {
        q->made_in = q->made_in ? q->made_in
                                : mc_calloc((size_t)f->code->program.noutput, sizeof *q->made_in, "plan");
        if (q->made_in && !q->made_in[i]) {
            q->made_in[i] = mc_cuda_alloc(mc_cuda_of(f->code), mc_slot_bytes(at), f->name);
        }
    }
}

char *mc_cuda_fn_address(const struct mc_function *f, const struct mc_shape_plan *p, size_t v)
{
    const struct mc_cuda_fn_plan *q = p->own;
    const struct mc_slot *at = &p->slot[v];
    char *const made_in = at->base == BASE_OUTPUT && q->made_in ? q->made_in[at->index] : NULL;
    return made_in ? made_in + at->offset : mc_remote_address(f, p, v);
}

mc_status mc_cuda_fn_result_make(struct mc_function *f, const struct mc_shape_plan *p, int i,
                                 const mc_arg *out)
{
    make_or_free(f, p, i);
    const struct mc_type *t = &p->slot[f->code->program.output[i]].type;
    const bool fresh = mc_result_wanted(out) && out->kind == 3 && !*out->u.slot && !f->output[i].on_device;
    mc_cuda_fn_of(f)->pinned[i] = false;
    if (fresh && mc_cuda_fn_plan(p)->runs > 0) { /* for a single call pinning costs more than it gains */
        TRY(mc_result_given(f, i, out, t->dtype, t->rank, t->dims));
        f->result[i] = mc_cuda_pinned_array(mc_cuda_of(f->code), t->dtype, t->rank, t->dims);
        mc_cuda_fn_of(f)->pinned[i] = f->result[i] != NULL;
    }
    return mc_cuda_fn_of(f)->pinned[i] ? MC_OK : mc_remote_result_make(f, p, i, out);
}

/* Fetches a result that the call's recording had made at its mark.  The error words come along: no check
 * follows the mark. */
static mc_status take_early(struct mc_function *f, const struct mc_cuda_captured *r,
                            const struct mc_cuda_fetch *result)
{
    const void *failed = mc_cuda_fn_of(f)->failed;
    int64_t error = 0;
    const struct mc_cuda_fetch all[] = { *result, { &error, failed, sizeof error, false } };
    TRY(mc_cuda_fetch_at_mark(mc_cuda_of(f->code), r->replay, failed ? 2 : 1, all));
    return error ? mc_cuda_fn_error_wait(f) : MC_OK;
}

static bool comes_early(const struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    const struct mc_cuda_captured *r = mc_cuda_fn_plan(p)->replayed;
    const struct mc_slot *at = &p->slot[f->code->program.output[i]];
    return r && mc_cuda_graph_has_mark(r->replay) && f->result[i] && !mc_array_space(f->result[i]) &&
           mc_array_size(f->result[i]) && mc_slot_contiguous(at) &&
           (mc_cuda_fn_of(f)->pinned[i] || mc_slot_bytes(at) + sizeof(int64_t) <= MC_CUDA_PAGE);
}

mc_status mc_cuda_fn_result_take(struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    const int v = f->code->program.output[i];
    if (comes_early(f, p, i)) {
        return take_early(f, mc_cuda_fn_plan(p)->replayed,
                          &(struct mc_cuda_fetch){ f->result[i]->data, f->ptr[v], mc_slot_bytes(&p->slot[v]),
                                                   mc_cuda_fn_of(f)->pinned[i] });
    }
    if (!mc_cuda_fn_of(f)->pinned[i] || !mc_array_size(f->result[i]) || !mc_slot_contiguous(&p->slot[v])) {
        return mc_remote_result_take(f, p, i);
    }
    return mc_cuda_get_pinned(mc_cuda_of(f->code), f->result[i]->data, f->ptr[v], mc_slot_bytes(&p->slot[v]));
}

mc_status mc_cuda_fn_copy(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst)
{
    if (mc_slot_contiguous(from)) {
        return mc_cuda_copy(mc_cuda_of(f->code), dst, src, mc_slot_bytes(from));
    }
    struct mc_cuda_layout l = { .to = from->type.dtype, .from = from->type.dtype, .rank = from->type.rank };
    int64_t size = (int64_t)mc_dtypes[from->type.dtype].size, step = 1;
    for (int a = l.rank; a-- > 0;) {
        l.size[a] = from->type.dims[a];
        l.to_stride[a] = step;
        l.from_stride[a] = from->strides[a] / size;
        step *= l.size[a];
    }
    mc_code_list *before = mc_cuda_note(&mc_cuda_fn_code(f)->code);
    struct mc_cuda_copy *c = mc_cuda_copy_new(&l);
    mc_cuda_note(before);
    mc_status s = c ? mc_cuda_copy_run(c, dst, src) : mc_last_status();
    mc_cuda_copy_free(c);
    return s;
}
