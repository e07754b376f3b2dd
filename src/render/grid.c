/* grid.c: prints kernels for a grid of threads: the same values as render.c prints, in other loops.
 *
 *   map          each thread takes elements at a fixed distance, in vectors where possible: grid_map.c
 *   many         a map of many arrays, which equal maps of any number of axes share: grid_many.c
 *   reducing     several threads share a point of the kept axes, several blocks a long one: grid_reduce.c
 *   row          the lanes of a row keep it in registers: grid_row.c
 *   column       each thread has a few adjacent columns: grid_column.c
 *   column_sums  column sums of a row kernel: grid_column_sums.c
 *
 * All arguments are one struct, made by mc_grid_args.  Axes are innermost first; steps are in bytes
 * (positions for an index).  Invariant: the order in which numbers are added depends on the launch alone. */
#include "render/grid.h"
#include "render/prelude.h"

/* Prints the entries that keep a row in registers. */
static void forms_of_rows(struct print *p, const struct mc_kernel *of)
{
    const struct {
        struct mc_grid_row row;
        char form;
    } forms[] = { { mc_grid_row(of), 'r' },
                  { mc_grid_row_cluster(of), 't' },
                  { mc_grid_row_scalar(of), 'q' } };
    for (size_t i = 0; i < NELEM(forms); i++) {
        if (forms[i].row.vector) {
            mc_grid_print_row(p, forms[i].row, forms[i].form);
        }
    }
    memset(p->done, 0, p->k->val.n);
}

static void print_kernel(struct mc_str *out, const struct mc_dialect *d, const struct mc_kernel *of)
{
    /* Only NAME_r and NAME_t save values for later stages.  The other entries recompute them, or read back
     * what an earlier stage stored if that reads fewer operands. */
    struct mc_kernel k = *of;
    struct print p = { .out = out, .d = d, .k = &k, .grid = true, .above = of->mode == KERNEL_COLUMN };
    p.need = mc_calloc(k.val.n + 1, 3, "kernel");
    k.val.at = mc_alloc((k.val.n + 1) * sizeof *k.val.at, "kernel");
    unsigned char *back = mc_calloc(k.operand.n + 1, 1, "kernel");
    if (!p.need || !k.val.at || !back) {
        out->bad = true;
    } else {
        p.done = p.need + k.val.n;
        memcpy(k.val.at, of->val.at, k.val.n * sizeof *k.val.at);
        k.wide = false;
        k.mode = k.mode == KERNEL_MAP ? KERNEL_MAP : KERNEL_ROW; /* row values are scalars of a thread */
        mc_str_addf(out,
                    "\nstruct %s_args { char *p[%zu]; i64 *err; char *scratch; u32 count[2], axes[2], "
                    "size[8], splits, chunk, column, number, flat, teams, first, held, near, magic[8], "
                    "shift[8]; i64 step[%zu][8]; };\n",
                    k.name, MC_MAX(k.operand.n, (size_t)1), MC_MAX(k.operand.n, (size_t)1));
        if (!mc_grid_row_segmented(of)) {
            forms_of_rows(&p, of);
        }
        for (size_t i = 0; i < k.val.n; i++) {
            k.val.at[i].saved = 0;
        }
        k.nsaved = 0;
        if (mc_grid_row_segmented(of)) {
            forms_of_rows(&p, of);
        }
        if (k.mode == KERNEL_MAP) {
            mc_grid_print_map(&p);
            if (of->many) {
                mc_grid_print_many(&p);
            }
        } else {
            p.back = back;
            mc_grid_print_reducing(&p);
            if (mc_grid_column(of)) {
                k.mode = KERNEL_COLUMN;
                p.wait = p.done + k.val.n;
                mc_grid_print_column(&p);
                p.wait = NULL;
            }
            p.back = NULL;
            if (mc_grid_column_sums(&k)) {
                mc_grid_print_column_sum(&p);
            }
        }
    }
    mc_free(back);
    mc_free(k.val.at);
    mc_free(p.need);
}

static bool has_cluster(const struct mc_kernel *k)
{
    return mc_grid_row_cluster(k).vector > 0;
}

static bool has_column(const struct mc_kernel *k)
{
    return mc_grid_column(k) > 0;
}

/* Adds the functions that kernels of a form call, if any kernel has that form. */
static void add_calls(struct mc_str *out, const char *text, bool (*has)(const struct mc_kernel *k), int n,
                      struct mc_kernel *const *kernels)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        any |= has(kernels[i]);
    }
    mc_str_add(out, any ? text : "");
}

void mc_render_grid(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    mc_print_prelude(out, d, n, kernels);
    add_calls(out, mc_grid_meeting, has_cluster, n, kernels);
    add_calls(out, mc_grid_column_reduce, has_column, n, kernels);
    mc_print_functions(out, d, n, kernels);
    for (int i = 0; i < n; i++) {
        print_kernel(out, d, kernels[i]);
    }
}

/* ---- arguments, in the layout of NAME_args ---- */

size_t mc_grid_args_size(size_t operands)
{
    return sizeof(struct mc_grid_head) + MC_MAX(operands, 1) * (8 + 8 * MC_MAX_RANK);
}

struct mc_grid_args mc_grid_args(void *memory, size_t operands)
{
    char *at = memory;
    operands = MC_MAX(operands, 1);
    return (struct mc_grid_args){ .p = memory,
                                  .head = (void *)(at + 8 * operands),
                                  .step = (void *)(at + 8 * operands + sizeof(struct mc_grid_head)) };
}
