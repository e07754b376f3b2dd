/* grid_address.c: addresses of operands in a grid: offsets at a point or an element, pointers made of them,
 * and loads and stores of V elements at a time.
 *
 * Invariant: an operand either varies by element, and is addressed in each iteration, or is addressed once
 * for each point. */
#include "render/grid.h"

static bool is_element(const struct mc_kernel *k, const struct mc_koperand *o)
{
    return o->dst ? k->val.at[o->val].element : (o->varies & (k->mode == KERNEL_MAP ? ~0u : k->reduced)) != 0;
}

bool mc_grid_varies(const struct print *p, size_t i)
{
    return is_element(p->k, &p->k->operand.at[i]);
}

/* "o3 += i * A.step[3][axis]" for all operands, or for those that vary by element. */
static void move(struct print *p, char name, bool elements, const char *axis, const char *by)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (!elements || mc_grid_varies(p, i)) {
            mc_str_addf(p->out, " %c%zu += %s * A.step[%zu][%s];", name, i, by, i, axis);
        }
    }
}

void mc_grid_print_split_index(struct print *p, char name, bool elements, const char *index, const char *n,
                            const char *first)
{
    mc_str_addf(
        p->out,
        "{ u32 left = %s;\n_Pragma(\"unroll 1\") for (u32 d = 0; d < %s; d++) { u32 i = left; if (d + 1 < "
        "%s) { left = over_(i, A.magic[%s + d], A.shift[%s + d]); i -= left * A.size[%s + d]; }",
        index, n, n, first, first, first);
    struct mc_str axis = { 0 };
    mc_str_addf(&axis, "%s + d", first);
    move(p, name, elements, axis.s ? axis.s : "d", "(i64)i");
    p->out->bad |= axis.bad;
    mc_str_free(&axis);
    mc_str_add(p->out, " } }\n");
}

void mc_grid_offsets(struct print *p, char name, bool elements, char from)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (!elements || mc_grid_varies(p, i)) {
            mc_str_addf(p->out, "i64 %c%zu = ", name, i);
            mc_str_addf(p->out, from ? "%c%zu; " : "0; ", from, i);
        }
    }
    mc_str_add(p->out, "\n");
}

void mc_grid_pointers(struct print *p, char name)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (mc_grid_varies(p, i)) {
            continue;
        }
        if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu]", i, i);
        } else {
            mc_str_addf(p->out, "%s%s *const a%zu = (%s%s *)(A.p[%zu]", o->dst ? "" : "const ", t, i,
                        o->dst ? "" : "const ", t, i);
        }
        if (name) {
            mc_str_addf(p->out, " + %c%zu", name, i);
        }
        mc_str_add(p->out, o->index ? ";\n" : ");\n");
    }
}

/* ---- V elements at a time ---- */

bool mc_grid_computed_in_stage(const struct print *p, const struct mc_koperand *o)
{
    return o->dst && !o->column_sums && p->k->val.at[o->val].element &&
           p->k->val.at[o->val].stage == p->stage;
}

void mc_grid_open_elements(struct print *p, char name)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype], *constant = o->dst ? "" : "const ";
        if (!mc_grid_varies(p, i)) {
            continue;
        }
        if (o->column_sums) {
            mc_str_addf(p->out, "%s *const a%zu = (%s *)(sums%zu) + r * V; (void)a%zu;\n", t, i, t, i, i);
        } else if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu] + %c%zu; (void)a%zu;\n", i, i, name, i, i);
        } else if (!mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "%s%s *const a%zu = (%s%s *)(A.p[%zu] + %c%zu); (void)a%zu;\n", constant, t,
                        i, constant, t, i, name, i, i);
        } else if (mc_grid_computed_in_stage(p, o)) {
            mc_str_addf(p->out, "alignas(16) %s a%zu[V];\n", t, i);
        } else if (!o->dst && p->k->mode == KERNEL_MAP) {
            mc_str_addf(p->out,
                        "alignas(16) %s a%zu[V]; load_<%s, V>(a%zu, (const %s *)(A.p[%zu] + %c%zu));\n", t, i,
                        t, i, t, i, name, i);
        }
    }
}

void mc_grid_close_elements(struct print *p, char name)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (mc_grid_computed_in_stage(p, o) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "store_<%s, V>((%s *)(A.p[%zu] + %c%zu), a%zu);\n", t, t, i, name, i, i);
        }
    }
}

void mc_grid_point(struct print *p)
{
    mc_str_add(p->out, "const bool live = at < A.count[0]; i64 none = 0, unheard[4]; (void)none;\ni64 *const "
                       "err = live ? A.err : unheard; (void)err;\n");
    mc_grid_offsets(p, 'o', false, 0);
    mc_str_add(p->out, "if (A.axes[0] == 1) {");
    move(p, 'o', false, "0", "(i64)(live ? at : 0)");
    mc_str_add(p->out, " } else ");
    mc_grid_print_split_index(p, 'o', false, "(live ? at : 0)", "A.axes[0]", "0");
    mc_grid_pointers(p, 'o');
}
