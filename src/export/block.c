/* block.c: nests of loops over strided arrays as C text, and the copy of one array to another.
 *
 * Invariant: a nest visits elements in C order of its axes. */
#include "export/block.h"

/* ---- elements ---- */

static const char *const stored[MC_NDTYPE] = {
    [MC_BOOL] = "uint8_t",     [MC_INT8] = "int8_t",      [MC_INT16] = "int16_t",   [MC_INT32] = "int32_t",
    [MC_INT64] = "int64_t",    [MC_UINT8] = "uint8_t",    [MC_UINT16] = "uint16_t", [MC_UINT32] = "uint32_t",
    [MC_UINT64] = "uint64_t",  [MC_FLOAT16] = "uint16_t", [MC_BFLOAT16] = "uint16_t", [MC_FLOAT32] = "float",
    [MC_FLOAT64] = "double",
};

const char *mc_export_type(mc_dtype d)
{
    return stored[d];
}

bool mc_block_half(mc_dtype d)
{
    return mc_is_float(d) && mc_dtypes[d].size == 2;
}

int64_t mc_block_step(const struct mc_export_value *v, int axis)
{
    return v->strides[axis] / mc_dtypes[v->type.dtype].size;
}

bool mc_block_contiguous(const struct mc_export_value *v)
{
    int64_t next = 1;
    bool yes = true;
    for (int i = v->type.rank - 1; i >= 0; i--) {
        yes &= v->type.dims[i] == 1 || mc_block_step(v, i) == next;
        next *= v->type.dims[i];
    }
    return yes || next == 0;
}

mc_status mc_block_refuse(const mc_node *n, const char *why)
{
    return mc_fail(MC_EUNSUPPORTED, "export as C: %s: %s", n->op->name, why);
}

/* ---- operands ---- */

void mc_block_in(struct mc_block *b, int k)
{
    const char *type = stored[b->in[k].type.dtype];
    LINE(b, "const %s *in_%d = (const %s *)(const void *)(%s);", type, k, type, b->in[k].at);
}

void mc_block_out(struct mc_block *b)
{
    const char *type = stored[b->result[0].type.dtype];
    LINE(b, "%s *out_0 = (%s *)(void *)(%s);", type, type, b->result[0].at);
}

/* ---- nests ---- */

void mc_nest_add(struct mc_nest *s, int64_t size, const int64_t *step)
{
    if (size != 1) {
        s->size[s->n] = size;
        for (int k = 0; k < s->arrays; k++) {
            s->step[k][s->n] = step[k];
        }
        s->n++;
    }
}

void mc_nest_join(struct mc_nest *s)
{
    for (int i = s->n - 2; i >= 0; i--) {
        bool joins = true;
        for (int k = 0; k < s->arrays; k++) {
            joins &= s->step[k][i] == s->step[k][i + 1] * s->size[i + 1];
        }
        if (joins) {
            s->size[i] *= s->size[i + 1];
            s->n--;
            for (int k = 0; k < s->arrays; k++) {
                s->step[k][i] = s->step[k][i + 1];
            }
            for (int j = i + 1; j < s->n; j++) {
                s->size[j] = s->size[j + 1];
                for (int k = 0; k < s->arrays; k++) {
                    s->step[k][j] = s->step[k][j + 1];
                }
            }
        }
    }
}

bool mc_nest_empty(const struct mc_nest *s)
{
    bool none = false;
    for (int i = 0; i < s->n; i++) {
        none |= s->size[i] == 0;
    }
    return none;
}

void mc_nest_open(struct mc_block *b, const struct mc_nest *s, const char *name)
{
    for (int i = 0; i < s->n; i++) {
        char loop[32];
        mc_snprintf(loop, sizeof loop, "%s%d", name, i);
        mc_c_loop(&b->c, loop, 0, s->size[i]);
    }
}

struct mc_c_sum mc_nest_place(const struct mc_nest *s, int array, const char *name)
{
    struct mc_c_sum p = { "0" };
    for (int i = 0; i < s->n; i++) {
        char loop[32];
        mc_snprintf(loop, sizeof loop, "%s%d", name, i);
        mc_c_add(&p, loop, s->step[array][i]);
    }
    return p;
}

/* ---- copies ---- */

void mc_block_copy(struct mc_block *b, struct mc_nest *s, int in, mc_dtype d, int64_t offset)
{
    const int depth = b->c.depth;
    mc_nest_join(s);
    if (mc_nest_empty(s)) {
        return;
    }
    const int last = s->n - 1;
    const bool dense = d != MC_BOOL && last >= 0 && s->step[0][last] == 1 && s->step[1][last] == 1;
    struct mc_nest outer = *s;
    outer.n -= dense;
    struct mc_c_sum to = mc_nest_place(&outer, 0, "i"), from = mc_nest_place(&outer, 1, "i");
    mc_c_add(&to, "", offset);
    mc_nest_open(b, &outer, "i");
    if (dense) {
        LINE(b, "memcpy(out_0 + %s, in_%d + %s, %" PRId64 " * sizeof *out_0);", to.s, in, from.s,
             s->size[last]);
    } else if (d == MC_BOOL) {
        LINE(b, "out_0[%s] = in_%d[%s] != 0;", to.s, in, from.s);
    } else {
        LINE(b, "out_0[%s] = in_%d[%s];", to.s, in, from.s);
    }
    mc_c_close(&b->c, depth);
}

mc_status mc_export_copy(struct mc_str *out, const struct mc_export_value *from,
                         const struct mc_export_value *to)
{
    struct mc_block b = { .c = { out, 1 }, .in = from, .result = to };
    struct mc_nest s = { .arrays = 2 };
    const struct mc_type *t = &to->type;
    if (t->dtype != from->type.dtype || !mc_dims_equal(t->rank, t->dims, from->type.rank, from->type.dims)) {
        return mc_fail(MC_EINTERNAL, "export as C: a copy between two types");
    }
    for (int i = 0; i < t->rank; i++) {
        mc_nest_add(&s, t->dims[i], (int64_t[]){ mc_block_step(to, i), mc_block_step(from, i) });
    }
    mc_c_open(&b.c, "copy");
    if (!mc_nest_empty(&s)) {
        mc_block_in(&b, 0);
        mc_block_out(&b);
        mc_block_copy(&b, &s, 0, t->dtype, 0);
    }
    mc_c_close(&b.c, 1);
    return out->bad ? MC_EMEMORY : MC_OK;
}
