/* grid_many.c: NAME_many computes a map for many arrays at once, such as the step of an optimizer for all
 * parameters.  A block has a part of one array.
 *
 * Invariant: each element is computed by the text that NAME_of has, so the bits are those of a launch for
 * each array. */
#include "render/grid.h"

bool mc_kernel_flat(const struct mc_kernel *k)
{
    bool flat = k->mode == KERNEL_MAP && k->varies && !mc_kernel_checks(k);
    for (size_t i = 0; i < k->operand.n && flat; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        flat = !o->index && !o->column_sums && (o->varies == k->varies || (!o->varies && !o->dst));
    }
    for (size_t i = 0; i < k->val.n && flat; i++) {
        const struct mc_kval *v = &k->val.at[i];
        flat = v->kind != K_INDEX && (v->varies == k->varies || !v->varies);
    }
    return flat;
}

bool mc_kernel_alike(const struct mc_kernel *a, const struct mc_kernel *b)
{
    bool alike = a->val.n == b->val.n && a->operand.n == b->operand.n;
    for (size_t i = 0; i < a->val.n && alike; i++) {
        struct mc_kval v = b->val.at[i];
        v.varies = v.varies ? a->varies : 0;
        alike = mc_kernel_same_value(&a->val.at[i], &v);
    }
    for (size_t i = 0; i < a->operand.n && alike; i++) {
        struct mc_koperand o = b->operand.at[i];
        o.varies = o.varies ? a->varies : 0;
        alike = mc_kernel_same_operand(&a->operand.at[i], &o);
    }
    return alike;
}

/* ---- the argument ---- */

enum { LIST_HEAD = 24 };

size_t mc_grid_list_most(size_t operands)
{
    return (GRID_LIST_BYTES - LIST_HEAD) / (8 * operands + 8);
}

size_t mc_grid_list_size(size_t operands)
{
    return LIST_HEAD + mc_grid_list_most(operands) * (8 * operands + 8);
}

struct mc_grid_list mc_grid_list(void *memory, size_t operands)
{
    const size_t most = mc_grid_list_most(operands);
    char *at = memory;
    uint32_t *word = (void *)(at + 8);
    return (struct mc_grid_list){ .err = memory,
                                  .n = word,
                                  .held = word + 1,
                                  .wide = word + 2,
                                  .first = (void *)(at + LIST_HEAD),
                                  .count = (void *)(at + LIST_HEAD + 4 * most),
                                  .p = (void *)(at + LIST_HEAD + 8 * most) };
}

/* ---- the text ---- */

void mc_grid_print_many(struct print *p)
{
    const char *name = p->k->name;
    const size_t operands = p->k->operand.n, most = mc_grid_list_most(operands);
    struct mc_kernel any = *p->k;
    any.never = 0;
    mc_grid_print_part(p);
    mc_str_addf(
        p->out,
        "struct %s_list { i64 *err; u32 n, held, wide, none, first[%zu], count[%zu]; char *p[%zu][%zu]; "
        "};\n",
        name, most, most, most, operands);
    mc_str_addf(p->out,
                "template <int V> INLINE void %s_block(%s_args &A, u32 count, u32 block) { A.first = block * "
                "(%d / V); A.count[0] = min(count, A.first + %d / V); %s_part<V>(A); }\n",
                name, name, GRID_LIST_ELEMENTS, GRID_LIST_ELEMENTS, name);
    mc_str_addf(
        p->out,
        "ENTRY __launch_bounds__(%d) %s_many(const __grid_constant__ %s_list M)\n{\nBEGIN\nu32 a = 0;\n"
        "for (u32 d = %d; d; d /= 2) if (a + d < M.n && M.first[a + d] <= blockIdx.x) a += d;\n"
        "%s_args A; A.err = M.err; A.held = M.held; A.flat = 1;\n"
        "_Pragma(\"unroll\") for (int i = 0; i < %zu; i++) A.p[i] = M.p[a][i];\n"
        "const u32 block = blockIdx.x - M.first[a];\n",
        GRID_LIST_THREADS, name, name, GRID_LIST_BYTES / 16, name, operands);
    mc_str_addf(p->out, "if (a < M.wide) %s_block<%d>(A, M.count[a], block); else ", name,
                mc_grid_vector(&any));
    mc_str_addf(p->out, "%s_block<1>(A, M.count[a], block);\n}\n", name);
}
