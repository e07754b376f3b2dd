/* print_reduce.c: reductions as text: a lane's sum within a block, the accumulator over blocks, the value at
 * the end. */
#include "render/print.h"

/* ---- reductions, in the letters of struct mc_monoid_text ---- */

static const struct mc_monoid_text texts[] = {
    [REDUCE_SUM]      = { "0", "reduction(+:l@)", "l@ += #;", "c@ += l@;", "C += #;", false, "v_add", "v_sum" },
    [REDUCE_PRODUCT]  = { "1", "reduction(*:l@)", "l@ *= #;", "c@ *= l@;", "C *= #;", false },
    [REDUCE_MOST]     = { "<", "reduction(max:l@) reduction(|:q@)", "l@ = # > l@ ? # : l@; q@ |= # != #;",
      "c@ = l@ > c@ ? l@ : c@; z@ |= q@;", "C = # > C ? # : C; Z |= # != #;", true, "v_most", "v_max_lane" },
    [REDUCE_LEAST]    = { ">", "reduction(min:l@) reduction(|:q@)", "l@ = # < l@ ? # : l@; q@ |= # != #;",
      "c@ = l@ < c@ ? l@ : c@; z@ |= q@;", "C = # < C ? # : C; Z |= # != #;", true, "v_least", "v_min_lane" },
    [REDUCE_ANY]      = { "0", "reduction(|:l@)", "l@ |= # != 0;", "c@ |= l@;", "C |= # != 0;", false },
    [REDUCE_ALL]      = { "1", "reduction(&:l@)", "l@ &= # != 0;", "c@ &= l@;", "C &= # != 0;", false },
    [REDUCE_POSITION] = { "<", NULL, NULL,
      "if (q@ >= 0 && (z@ < 0 || l@ > c@ || (l@ == c@ && q@ < z@) || (l@ != l@ && (c@ == c@ || q@ < z@)))) "
      "{ c@ = l@; z@ = q@; }",
      "if (Z < 0 || # > C || (# != # && C == C)) { C = #; Z = $; }", true,
      "v_first_most", "v_first_lane" },
};

const struct mc_monoid_text *mc_print_monoid(const struct mc_kval *v)
{
    return &texts[v->op->reduction];
}

bool mc_print_by_position(const struct mc_kval *v)
{
    return v->op->reduction == REDUCE_POSITION;
}

/* The type of an accumulator.  Sums and products accumulate in v->acc, except that a lane sums floats in
 * their own type; comparisons use the element's type.  Integers wrap: where no flag of the compiler says
 * so (must_wrap of print_value.c), the type is unsigned. */
const char *mc_print_acc_type(const struct print *p, const struct mc_kval *v, bool lane)
{
    mc_dtype arg = p->k->val.at[v->arg[0]].dtype;
    if (mc_print_monoid(v)->flags) {
        return mc_print_calc(p, arg);
    }
    if (v->op->reduction == REDUCE_ANY || v->op->reduction == REDUCE_ALL) {
        return "i32";
    }
    /* of numbers near 1: float would lose the small parts, always in the same direction */
    bool product = v->op->reduction == REDUCE_PRODUCT;
    const mc_dtype acc = lane && mc_is_float(arg) && !product ? arg : v->acc;
    return mc_print_calc(p, p->d->native && acc == MC_INT64 ? MC_UINT64 : acc);
}

static const char *lowest(mc_dtype d, bool greatest)
{
    static const char *const low[] = { [MC_BOOL] = "0", [MC_INT8] = "-128", [MC_INT16] = "-32768",
        [MC_INT32] = "(-2147483647 - 1)", [MC_INT64] = "(-0x7fffffffffffffffll - 1)",
        [MC_UINT8] = "0", [MC_UINT16] = "0", [MC_UINT32] = "0", [MC_UINT64] = "0",
        [MC_FLOAT16] = "-__builtin_inff()", [MC_BFLOAT16] = "-__builtin_inff()",
        [MC_FLOAT32] = "-__builtin_inff()", [MC_FLOAT64] = "-__builtin_inf()" };
    static const char *const high[] = { [MC_BOOL] = "1", [MC_INT8] = "127", [MC_INT16] = "32767",
        [MC_INT32] = "2147483647", [MC_INT64] = "0x7fffffffffffffffll",
        [MC_UINT8] = "255", [MC_UINT16] = "65535", [MC_UINT32] = "0xffffffffu",
        [MC_UINT64] = "0xffffffffffffffffull",
        [MC_FLOAT16] = "__builtin_inff()", [MC_BFLOAT16] = "__builtin_inff()",
        [MC_FLOAT32] = "__builtin_inff()", [MC_FLOAT64] = "__builtin_inf()" };
    return greatest ? high[d] : low[d];
}

const char *mc_print_first(const struct print *p, const struct mc_kval *v)
{
    const char *f = mc_print_monoid(v)->first;
    return *f == '<' || *f == '>' ? lowest(p->k->val.at[v->arg[0]].dtype, *f == '>') : f;
}

void mc_print_fill(struct print *p, const char *text, int v, const char *position)
{
    bool column = p->k->mode == KERNEL_COLUMN;
    for (; *text; text++) {
        if (p->lanes && (*text == 'l' || *text == 'q') && text[1] == '@') {
            mc_str_addf(p->out, "%c%d[i]", *text == 'l' ? 'm' : 'y', v);
            text++;
        } else if (*text == '@') {
            mc_str_addf(p->out, "%d", v);
        } else if (*text == '#') {
            mc_print_ref(p, p->k->val.at[v].arg[0]);
        } else if (*text == 'C' || *text == 'Z') {
            mc_str_addf(p->out, "%c%d%s", *text == 'C' ? 'c' : 'z', v, column ? "[j]" : "");
        } else if (*text == '$') {
            mc_str_add(p->out, position);
        } else {
            mc_str_addn(p->out, text, 1);
        }
    }
    mc_str_add(p->out, " ");
}


/* The reduction's value from its accumulator. */
void mc_print_finish(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    const struct mc_monoid_text *m = mc_print_monoid(x);
    bool column = p->k->mode == KERNEL_COLUMN;
    const char *at = column ? "[j]" : "", *t = mc_print_calc(p, x->dtype);
    mc_dtype arg = p->k->val.at[x->arg[0]].dtype;
    if (column) {
        mc_str_addf(p->out, "r%d[j] = ", v);
    } else {
        mc_str_addf(p->out, "const %s v%d = ", t, v);
    }
    if (mc_print_by_position(x)) {
        mc_str_addf(p->out, "(%s)z%d%s; ", t, v, at);
    } else if (m->flags && mc_is_float(arg)) {
        mc_str_addf(p->out, "z%d%s ? __builtin_nan%s(\"\") : c%d%s; ", v, at, arg == MC_FLOAT64 ? "" : "f", v,
                    at);
    } else {
        mc_str_addf(p->out, "(%s)c%d%s; ", t, v, at);
    }
    mc_vector_kernel_spread(p, v);
}
