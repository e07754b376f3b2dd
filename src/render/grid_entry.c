/* grid_entry.c: the entries of a kernel for a grid: NAME for single elements, NAME_v for vectors, NAME_s for
 * short rows, without prefetch. */
#include "render/grid.h"

/* Can several blocks share a point?  Not with column sums, as a team sums whole rows. */
bool mc_grid_can_split(const struct mc_kernel *k)
{
    return k->nreduce > 0 && !mc_grid_column_sums(k);
}

/* Elements that a thread loads at once: 16 bytes of the largest dtype. */
int mc_grid_vector(const struct mc_kernel *k)
{
    size_t most = 2;
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        most = !o->index && mc_print_moves(k, o) ? MC_MAX(most, mc_dtypes[o->dtype].size) : most;
    }
    bool along = k->inner >= 0 && (k->mode == KERNEL_MAP || k->reduced & 1u << k->inner);
    return along && !mc_grid_column_sums(k) && !(k->never & GRID_VECTOR)
               ? (int)(16 / most)
               : 1; /* a team's column sums are indexed by element */
}

/* If the row length is unknown, only kernels of several stages have NAME_s: a sum over a batch is not worth
 * another entry. */
bool mc_grid_few_elements(const struct mc_kernel *k)
{
    return mc_grid_can_split(k) && !(k->never & GRID_FEW_ELEMENTS) &&
           (k->nstage > 1 || k->never & GRID_PLAIN);
}

static void entry(struct print *p, const char *form, int v, const char *more)
{
    const char *name = p->k->name;
    mc_str_add(p->out, "ENTRY ");
    if (p->k->mode != KERNEL_MAP) { /* limits the registers so that this many threads fit */
        mc_str_addf(p->out, "__launch_bounds__(%d) ", GRID_LANES);
    }
    mc_str_addf(p->out, "%s%s(const %s_args A) { BEGIN %s_of<%d%s>(A); }\n", name, form, name, name, v, more);
}

void mc_grid_entries(struct print *p)
{
    const int v = mc_grid_vector(p->k);
    const bool by_elements = mc_grid_few_elements(p->k);
    const char *ahead = p->k->mode == KERNEL_MAP ? "" : ", true";
    if (by_elements) {
        entry(p, "_s", 1, ", false");
    }
    if (!by_elements || !(p->k->never & GRID_PLAIN)) {
        entry(p, "", 1, ahead);
    }
    if (v > 1) {
        entry(p, "_v", v, ahead);
    }
}
