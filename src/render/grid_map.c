/* grid_map.c: maps for a grid: each thread takes elements at a fixed distance, V at a time where operands are
 * contiguous.  ELEMENTS of the dialect says which, unless the text defines it before.
 *
 * Invariant: results that do not vary by element are stored by the first thread alone. */
#include "render/grid.h"

/* Offsets where all operands are contiguous: no size or step is read. */
static void flat(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (mc_grid_varies(p, i) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, " o%zu = (i64)t * (V * %zu);", i,
                        o->index ? (size_t)1 : mc_dtypes[o->dtype].size);
        }
    }
}

/* Declares what is kept of random words from one of V elements to the next. */
static void kept_words(struct print *p)
{
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->need[i] && mc_print_keeps(&p->k->val.at[i])) {
            mc_str_addf(p->out, "philox_ w%zu; ", i);
        }
    }
}

/* NAME_of or NAME_part, over the elements that the line `elements` names. */
static void function(struct print *p, const char *suffix, const char *elements)
{
    mc_str_addf(p->out,
                "template <int V> INLINE void %s%s(const %s_args &A)\n{\ni64 *const err = A.err; "
                "(void)err;\nif (A.held && err[0]) return;\n",
                p->k->name, suffix, p->k->name);
    mc_grid_pointers(p, 0);
    mc_print_row_values(p);
    mc_str_add(p->out, "if (blockIdx.x == 0 && threadIdx.x == 0) {\n");
    mc_print_row_stores(p);
    mc_str_add(p->out, "}\n");
    if (mc_print_mark(p)) {
        mc_str_addf(p->out, "%s {\n", elements);
        mc_grid_offsets(p, 'o', true, 0);
        mc_str_add(p->out, "if (A.flat) {");
        flat(p);
        mc_str_add(p->out, " } else ");
        mc_grid_print_split_index(p, 'o', true, "t", "A.axes[0]", "0");
        mc_grid_open_elements(p, 'o');
        kept_words(p);
        mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
        p->keeps = true;
        mc_print_body(p, false, "");
        p->keeps = false;
        mc_str_add(p->out, "}\n");
        mc_grid_close_elements(p, 'o');
        mc_str_add(p->out, "}\n");
    }
    mc_str_add(p->out, "}\n");
}

void mc_grid_print_map(struct print *p)
{
    function(p, "_of", "ELEMENTS(t, A.count[0])");
    mc_grid_entries(p);
}

void mc_grid_print_part(struct print *p)
{
    memset(p->done, 0, p->k->val.n);
    function(p, "_part", "for (u32 t = A.first + threadIdx.x; t < A.count[0]; t += blockDim.x)");
}
