/* print_value.c: scalar ops as functions, and one value of a kernel as an expression. */
#include "render/print.h"
#include "render/math.h"
#include <stdio.h>

const char *mc_print_calc(const struct print *p, mc_dtype d)
{
    return p->d->calc[d];
}

/* ---- functions of scalar ops ---- */

const char *mc_print_op_code(const struct mc_op *op, mc_dtype d)
{
    return op->icode && !mc_is_float(d) ? op->icode : op->code;
}

mc_dtype mc_print_op_dtype(const struct mc_kernel *k, const struct mc_kval *v)
{
    return k->val.at[v->arg[v->op->typing == TYPE_WHERE ? 1 : 0]].dtype;
}

/* The definition of mcf_exp and the like: the compiler's own function if the dialect has it.  Those names go
 * after all of our own texts: otherwise a text that calls mcf_exp itself would get a second definition of
 * it. */
static void function(struct mc_str *texts, struct mc_str *names, const struct mc_dialect *d, uint64_t *have,
                     const char *word, mc_dtype t)
{
    char name[40];
    mc_snprintf(name, sizeof name, " %s ", word);
    if (d->native && strstr(d->native, name)) {
        mc_str_addf(names, t == MC_FLOAT64 ? "#define mcd_%s %s\n" : "#define mcf_%s %sf\n", word, word);
    } else {
        mc_math_add(texts, have, word, t);
    }
}

/* Does the expression consist of sums, differences and products alone?  Signed integers must then be computed
 * as unsigned, unless the compiler knows that they wrap (MC_KERNEL_FLAGS for cc): otherwise it assumes, for
 * example, a * a >= 0. */
static bool must_wrap(const struct mc_dialect *d, const char *code, mc_dtype t)
{
    const bool has_sign = strcmp(d->calc[t], d->calc[MC_INT32]) == 0 ||
                          t == MC_INT64; /* smaller integers are computed in int32 */
    return (d->native || d->standard) && t != MC_BOOL && has_sign && !strpbrk(code, "/%<>=?:&|^~!(");
}

/* The same for adjacent elements, whose block is kept: its parameter hides the function that the code calls.
 */
static void keeping_function(struct mc_str *out, const struct mc_dialect *d, const struct mc_kval *v,
                             mc_dtype t, const char *name)
{
    mc_str_addf(out, "INLINE %s kept_%s(philox_ &mc_random_word", d->calc[v->dtype], name);
    for (int a = 0; a < v->narg; a++) {
        mc_str_addf(out, ", %s %c", d->calc[t], 'a' + a);
    }
    mc_str_addf(out, ") { return (%s)(%s); }\n", d->calc[v->dtype], mc_print_op_code(v->op, t));
}

/* "INLINE float op_tanh_f(float a) { ... }", once for each op and dtype. */
void mc_print_functions(struct mc_str *out, const struct mc_dialect *d, int n,
                        struct mc_kernel *const *kernels)
{
    struct mc_dict seen = { 0 };
    uint64_t have[MC_MATH_WORDS] = { 0 };
    struct mc_str body = { 0 };
    for (int i = 0; i < n; i++) {
        for (size_t j = 0; j < kernels[i]->val.n; j++) {
            const struct mc_kval *v = &kernels[i]->val.at[j];
            if (v->kind != K_OP || (kernels[i]->wide && v->element)) {
                continue;
            }
            mc_dtype t = mc_print_op_dtype(kernels[i], v);
            char name[80];
            mc_snprintf(name, sizeof name, "%s_%s", v->op->name, d->suffix[t]);
            if (mc_dict_get(&seen, name)) {
                continue;
            }
            body.bad |= !mc_dict_put(&seen, name, name); /* or the function would be defined twice */
            const char *code = mc_print_op_code(v->op, t);
            for (const char *m = strstr(code, "M("); m; m = strstr(m + 1, "M(")) {
                char word[32] = { 0 };
                size_t len = strcspn(m + 2, ")");
                memcpy(word, m + 2, MC_MIN(len, sizeof word - 1));
                if (mc_is_float(t)) {
                    function(out, &body, d, have, word, t);
                }
            }
            mc_str_addf(&body,
                        "#undef T\n#undef M\n#undef IS_BOOL\n#define T %s\n#define M(x) mc%c_##x\n#define "
                        "IS_BOOL %d\n",
                        d->calc[t], t == MC_FLOAT64 ? 'd' : 'f', t == MC_BOOL);
            mc_str_addf(&body, "INLINE %s op_%s(", d->calc[v->dtype], name);
            for (int a = 0; a < v->narg; a++) {
                mc_str_addf(&body, "%s%s %c", a ? ", " : "",
                            v->op->typing == TYPE_WHERE && a == 0 ? d->calc[MC_BOOL] : d->calc[t], 'a' + a);
            }
            mc_str_add(&body, ") { ");
            if (must_wrap(d, code, t)) {
                const char *u = d->calc[t == MC_INT64 ? MC_UINT64 : MC_UINT32];
                const char second = v->narg > 1 ? 'b' : 'a';
                if (d->standard) {
                    mc_str_addf(&body,
                                "typedef %s U; const T p = a, q = %c; { const U a = (U)p, b = (U)q; (void)b; "
                                "return (T)(%s); }",
                                u, second, code);
                } else {
                    mc_str_addf(
                        &body,
                        "typedef %s U; return (T)[](U a, U b) -> U { (void)b; return %s; }((U)a, (U)%c);", u,
                        code, second);
                }
            } else if (mc_is_float(t) && v->op->typing == TYPE_INT64) {
                mc_str_addf(&body, "const T y = %s; return to_i64(y);", code);
            } else {
                mc_str_addf(&body, "return (%s)(%s);", d->calc[v->dtype], code);
            }
            mc_str_add(&body, " }\n");
            if (mc_print_keeps(v) && d->keeps) {
                keeping_function(&body, d, v, t, name);
            }
        }
    }
    mc_str_add(out, body.s ? body.s : "");
    out->bad |= body.bad;
    mc_str_free(&body);
    mc_dict_free(&seen);
}

/* ---- one value ---- */

static void number(struct print *p, const struct mc_kval *v)
{
    if (mc_is_float(v->dtype)) {
        double x = mc_load_f64(v->dtype, v->bits);
        const char *s = v->dtype == MC_FLOAT64 ? "" : "f";
        if (x != x) {
            mc_str_addf(p->out, "__builtin_nan%s(\"\")", s);
        } else if (x - x != 0) {
            mc_str_addf(p->out, "%s__builtin_inf%s()", x < 0 ? "-" : "", s);
        } else {
            char word[40];
            mc_snprintf(word, sizeof word, "%.*g", v->dtype == MC_FLOAT64 ? 17 : 9, x);
            mc_str_addf(p->out, "%s%s%s", word, strpbrk(word, ".e") ? "" : ".0", s);
        }
    } else if (v->dtype == MC_UINT64) {
        mc_str_addf(p->out, "%lluull", (unsigned long long)mc_load_i64(v->dtype, v->bits));
    } else {
        int64_t x = mc_load_i64(v->dtype, v->bits);
        if (x == INT64_MIN) {
            mc_str_add(p->out, "(-0x7fffffffffffffffll - 1)");
        } else {
            mc_str_addf(p->out, "%lld%s", (long long)x,
                        v->dtype == MC_INT64    ? "ll"
                        : v->dtype == MC_UINT32 ? "u"
                                                : "");
        }
    }
}

/* The name of value v where it is used.  Column kernels have row values in arrays. */
void mc_print_ref(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (x->kind == K_CONST) {
        number(p, x);
    } else if (p->k->mode == KERNEL_COLUMN && !x->element && x->varies) {
        mc_str_addf(p->out, "r%d[j]", v);
    } else {
        mc_str_addf(p->out, "v%d", v);
    }
}

/* Does operand o vary along the innermost loop? */
bool mc_print_moves(const struct mc_kernel *k, const struct mc_koperand *o)
{
    return k->inner >= 0 && o->varies & 1u << k->inner;
}

/* The index of operand o's element: "[j]" if it varies along the innermost loop. */
void mc_print_index(struct print *p, int o, bool inner)
{
    mc_str_add(p->out, inner && mc_print_moves(p->k, &p->k->operand.at[o]) ? "[j]" : "[0]");
}

static bool is_narrow(mc_dtype d)
{
    return d != MC_BOOL && !mc_is_float(d) && mc_dtypes[d].size < 4;
}

/* Float to integer: the nearest representable value.  To a half type: through its form in memory, as an
 * explicit cast rounds, unlike the intermediate results of a kernel. */
static void cast(struct print *p, const struct mc_kval *x)
{
    const struct mc_kval *a = &p->k->val.at[x->arg[0]];
    bool to_float = mc_is_float(x->dtype), ends = mc_is_float(a->dtype) && !to_float && x->dtype != MC_BOOL;
    if (a->dtype != x->dtype && *p->d->store_as[x->dtype]) {
        const bool wide = a->dtype == MC_FLOAT64 ||
                          (!mc_is_float(a->dtype) &&
                           mc_dtypes[a->dtype].size > 2); /* float has fewer digits than the operand */
        mc_str_addf(p->out, "%s(%s(%s", p->d->load_as[x->dtype], p->d->store_as[x->dtype],
                    wide ? "odd_((double)(" : "");
        mc_print_ref(p, x->arg[0]);
        mc_str_add(p->out, wide ? "))))" : "))");
        return;
    }
    if (x->dtype == MC_BOOL) {
        mc_str_add(p->out, "0 != ");
    } else if (ends) {
        mc_str_addf(p->out, "to_%s", p->d->store[x->dtype]);
    } else {
        mc_str_addf(p->out, "(%s)", mc_print_calc(p, x->dtype));
        if (!to_float) {
            mc_str_addf(p->out, "(%s)", p->d->store[x->dtype]);
        }
    }
    mc_str_add(p->out, "(");
    mc_print_ref(p, x->arg[0]);
    mc_str_add(p->out, ")");
}

/* The expression of value v; inner: in the innermost loop. */
void mc_print_expression(struct print *p, int v, bool inner)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (x->kind == K_LOAD) {
        const char *as = p->d->load_as[x->dtype];
        mc_str_addf(p->out, "%s(a%d", as, x->operand);
        mc_print_index(p, x->operand, inner);
        mc_str_add(p->out, ")");
    } else if (x->kind == K_INDEX) {
        mc_str_addf(p->out, "a%d", x->operand);
        mc_str_add(p->out, inner && mc_print_moves(p->k, &p->k->operand.at[x->operand]) ? " + j" : "");
    } else if (x->kind == K_CAST) {
        cast(p, x);
    } else if (x->kind == K_CHECK) {
        mc_print_ref(p, x->arg[0]);
    } else {
        if (is_narrow(x->dtype)) { /* wraps as in memory */
            mc_str_addf(p->out, "(%s)", p->d->store[x->dtype]);
        }
        mc_str_add(p->out, x->dtype == MC_BOOL ? "0 != " : ""); /* true + true is true */
        const bool kept = p->keeps && inner && mc_print_keeps(x);
        mc_str_addf(p->out, "%s_%s_%s(", kept ? "kept" : "op", x->op->name,
                    p->d->suffix[mc_print_op_dtype(p->k, x)]);
        if (kept) {
            mc_str_addf(p->out, "w%d, ", v);
        }
        for (int i = 0; i < x->narg; i++) {
            mc_str_add(p->out, i ? ", " : "");
            mc_print_ref(p, x->arg[i]);
        }
        mc_str_add(p->out, ")");
    }
}

void mc_print_beyond(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (x->bounded && !p->grid) {
        /* Forms that gcc vectorises: with lanes after a selection of NaN; else without comparing the result,
         * for gcc would branch at that selection. */
        static const char *const part[][5] = { { " |= (", " >= ", ") & (", " - ", " == 0); " },
                                               { " |= ", " != ", " ? ", " - ", " == 0 ? 1 : 0 : 0; " } };
        const bool wide = mc_print_op_dtype(p->k, x) == MC_FLOAT64;
        const int lanes = p->k->lanes, of[] = { lanes ? v : x->arg[0], v, x->arg[0], x->arg[0] };
        mc_str_add(p->out, p->lanes ? "far[i]" : "beyond");
        for (size_t i = 0; i < NELEM(part[0]); i++) {
            mc_str_add(p->out, part[lanes][i]);
            if (!lanes && i == 0) {
                mc_str_add(p->out, wide ? "__builtin_fabs(" : "__builtin_fabsf(");
            }
            if (!lanes && i == 1) {
                mc_str_addf(p->out, "%.17g%s", mc_math_range(x->op->code, x->dtype), wide ? "." : ".f");
            } else if (i < NELEM(of)) {
                mc_print_ref(p, of[i]);
                mc_str_add(p->out, !lanes && i == 0 ? ")" : "");
            }
        }
    }
}

/* "const float v7 = ...;" */
void mc_print_define(struct print *p, int v, bool inner)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "const %s v%d = ", mc_print_calc(p, x->dtype), v);
    mc_print_expression(p, v, inner);
    mc_str_add(p->out, "; ");
    mc_print_beyond(p, v);
    if (x->kind == K_CHECK) {
        mc_str_addf(p->out, "if ((u64)v%d >= (u64)", v);
        mc_print_ref(p, x->arg[1]);
        mc_str_addf(p->out, ") { err[0] = %d; err[1] = v%d; err[2] = (i64)", v + 1, v);
        mc_print_ref(p, x->arg[1]);
        mc_str_add(p->out, p->grid ? "; err[3] = A.number; } " : "; } ");
    }
}
