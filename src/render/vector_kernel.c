/* vector_kernel.c: vector kernels: kernels whose elements are float32, printed over vectors of sixteen
 * (vector.h).
 *
 * Invariant: a kernel that mc_kernel_can_vectorize() allows computes the same values as otherwise, within the
 * error bounds of the functions of math_f32.def; an exact one computes the same bits. */
#include "render/print.h"
#include <stdio.h>

const char mc_vector_kernel_text[] = {
#include "render/vector_text.h"
    , 0 };
const char mc_vector_kernel_names[] =
    "#undef M\n#undef SEL\n#undef NOT\n#undef C\n#undef LT\n#undef LE\n#undef GT\n#undef GE\n#undef EQ\n"
    "#undef NE\n#undef CLIP\n"
    "#define M(x) v_##x\n#define SEL v_sel\n#define CLIP v_clip\n#define NOT(c) ((vm)~(c))\n"
    "#define C v_all\n#define LT v_lt\n"
    "#define LE v_le\n#define GT v_gt\n#define GE v_ge\n#define EQ v_eq\n#define NE v_ne\n";

enum { AHEAD = 8 }; /* rows of a column kernel that are prefetched */

/* ---- which kernels ---- */

const struct mc_vector_kernel_function mc_vector_kernel_functions_known[] = {
    { "exp" }, { "expm1" }, { "tanh", .differs = true }, { "sigmoid" }, { "log" }, { "log1p" },
    { "softplus", .differs = true }, { "sqrt" }, { "fabs" }, { "copysign" },
    { "rint" }, { "floor" }, { "ceil" }, { "trunc" } };
const int mc_nwide = NELEM(mc_vector_kernel_functions_known);

static bool known(const char *word, size_t n, bool exact)
{
    for (int i = 0; i < mc_nwide; i++) {
        const struct mc_vector_kernel_function *f = &mc_vector_kernel_functions_known[i];
        if (strlen(f->name) == n && strncmp(f->name, word, n) == 0) {
            return !(exact && f->differs);
        }
    }
    return false;
}

/* The length of the word at s: a name, a number, or one sign. */
static size_t word_at(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    size_t n = strspn(s, letters);
    return n ? n : 1;
}

/* Can the number stand beside a vector as it is?  The compiler accepts no double there, and no integer that
 * float cannot represent. */
static bool can_use_number(const char *s, size_t n)
{
    size_t digits = strspn(s, "0123456789");
    return digits == n ? n <= 7 : strspn(s, "0123456789.") == n - 1 && s[n - 1] == 'f';
}

/* Can an op's expression be computed on vectors?  A user's expression may be any C. */
static bool can_use_code(const char *code, bool exact)
{
    static const char *const macros[] = { "SEL", "CLIP", "NOT", "LT", "LE", "GT", "GE", "EQ", "NE" };
    for (size_t n; *code; code += n) {
        n = word_at(code);
        bool can = strchr(" +-*/(),|&^~", *code);
        if (strncmp(code, "M(", 2) == 0) {
            size_t m = word_at(code + 2);
            can = known(code + 2, m, exact) && code[2 + m] == ')';
            n = m + 2;
        } else if (strncmp(code, "C(", 2) == 0) {
            size_t m = strspn(code + 2, "-.0123456789e");
            can = m && code[2 + m] == ')';
            n = m + 2;
        } else if (*code == '.' || (*code >= '0' && *code <= '9')) {
            can = can_use_number(code, n);
        } else if (n == 1 && *code >= 'a' && *code <= 'c') {
            can = true;
        }
        for (size_t i = 0; i < NELEM(macros) && !can; i++) {
            can = strlen(macros[i]) == n && strncmp(code, macros[i], n) == 0;
        }
        if (!can || (code[0] == code[1] && strchr("&|", *code))) {
            return false;
        }
    }
    return true;
}

static bool compares_position(const struct mc_kernel *k, const struct mc_kval *v)
{
    return v->kind == K_OP && v->op->typing == TYPE_BOOL && v->narg == 2 &&
           (k->val.at[v->arg[0]].kind == K_INDEX) != (k->val.at[v->arg[1]].kind == K_INDEX);
}

/* Is it a row value of a column kernel, one for each column? */
static bool in_columns(const struct mc_kernel *k, const struct mc_kval *v)
{
    return k->mode == KERNEL_COLUMN && !v->element && v->varies && v->kind != K_CONST;
}

static bool can_use_op(const struct mc_kernel *k, const struct mc_kval *v)
{
    mc_dtype t = mc_print_op_dtype(k, v);
    if (compares_position(k, v)) {
        const struct mc_kval *x = &k->val.at[v->arg[k->val.at[v->arg[0]].kind == K_INDEX]];
        return x->dtype == MC_INT64 && !x->element && !(k->mode == KERNEL_COLUMN && x->varies);
    }
    for (int i = 0; i < v->narg; i++) {
        bool mask = t == MC_BOOL || (v->op->typing == TYPE_WHERE && i == 0);
        const struct mc_kval *a = &k->val.at[v->arg[i]];
        if (a->dtype != (mask ? MC_BOOL : MC_FLOAT32) || (mask && in_columns(k, a))) {
            return false;
        }
    }
    return (t == MC_BOOL ? v->op->typing == TYPE_BITS : v->dtype == MC_BOOL || v->dtype == MC_FLOAT32) &&
           can_use_code(mc_print_op_code(v->op, t), k->exact);
}

/* Positions may only be compared, not computed with. */
static bool can_use_index(const struct mc_kernel *k, int v)
{
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *x = &k->val.at[i];
        for (int j = 0; j < x->narg; j++) {
            if (x->arg[j] == v && !compares_position(k, x)) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        if (k->operand.at[i].dst && k->operand.at[i].val == v) {
            return false;
        }
    }
    return mc_print_moves(k, &k->operand.at[k->val.at[v].operand]);
}

static bool can_use_value(const struct mc_kernel *k, int i)
{
    const struct mc_kval *v = &k->val.at[i];
    if (v->kind == K_REDUCE) {
        return k->val.at[v->arg[0]].dtype == MC_FLOAT32 && mc_print_monoid(v)->combine;
    }
    if (!v->element) {
        return true;
    }
    switch (v->kind) {
    case K_LOAD: return v->dtype == MC_FLOAT32;
    case K_INDEX: return can_use_index(k, i);
    case K_OP: return can_use_op(k, v);
    case K_CAST:
        return v->dtype == MC_FLOAT32 &&
               (k->val.at[v->arg[0]].dtype == MC_BOOL || k->val.at[v->arg[0]].dtype == MC_FLOAT32);
    default: return false;
    }
}

bool mc_kernel_can_vectorize(const struct mc_dialect *d, const struct mc_kernel *k)
{
    if (!d->vectors || !mc_flag_int(FLAG_vectors) || k->inner < 0) {
        return false;
    }
    bool elements = false;
    for (size_t i = 0; i < k->val.n; i++) {
        elements |= k->val.at[i].element;
        if (!can_use_value(k, (int)i)) {
            return false;
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst && k->val.at[o->val].element &&
            (o->dtype != MC_FLOAT32 || k->val.at[o->val].dtype != MC_FLOAT32)) {
            return false;
        }
    }
    return elements;
}

/* ---- one value ---- */

static const char *type_of(mc_dtype d)
{
    return d == MC_BOOL ? "vm" : "vf";
}

/* Value v in a vector expression; row values and constants are in every lane. */
static void ref(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (x->element || in_columns(p->k, x)) {
        mc_str_addf(p->out, x->element ? "v%d" : "*(const vu *)(r%d + j)", v);
        return;
    }
    if (x->dtype == MC_FLOAT32 && x->kind != K_CONST) {
        mc_str_addf(p->out, "w%d", v);
        return;
    }
    mc_str_add(p->out, x->dtype == MC_BOOL ? "(vm)-(0 != " : "v_all(");
    mc_print_ref(p, v);
    mc_str_add(p->out, ")");
}

static void position_compare(struct print *p, const struct mc_kval *x)
{
    for (int i = 0; i < 2; i++) {
        const struct mc_kval *a = &p->k->val.at[x->arg[i]], *b = &p->k->val.at[x->arg[!i]];
        mc_str_add(p->out, i ? ", " : "");
        if (a->kind == K_INDEX) {
            mc_str_add(p->out, "v_lanes()");
        } else {
            mc_str_add(p->out, "v_distance(");
            mc_print_ref(p, x->arg[i]);
            mc_str_addf(p->out, ", a%d + j)", b->operand);
        }
    }
}

/* Row value v in every lane, once a row: inside the loop it would be broadcast again in each iteration. */
void mc_vector_kernel_spread(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (p->k->wide && x->dtype == MC_FLOAT32 && !in_columns(p->k, x)) {
        mc_str_addf(p->out, "const vf w%d = v_all(v%d); ", v, v);
    }
}

void mc_vector_kernel_define(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (x->kind == K_INDEX) {
        return;
    }
    mc_str_addf(p->out, "const %s v%d = ", type_of(x->dtype), v);
    if (x->kind == K_LOAD) {
        bool moves = mc_print_moves(p->k, &p->k->operand.at[x->operand]);
        mc_str_addf(p->out,
                    !moves      ? "v_all(a%d[0]); "
                    : p->single ? "v_all(a%d[j]); "
                    : p->held   ? "v_load(a%d, keep); "
                                : "*(const vu *)(a%d + j); ",
                    x->operand);
        if (moves &&
            /* rows are pages apart: the hardware does not prefetch the next one */
            p->k->mode == KERNEL_COLUMN) {
            mc_str_addf(p->out, "__builtin_prefetch(a%d + j + %d * s[%d]); ", x->operand, AHEAD,
                        3 * x->operand + 1);
        }
        return;
    }
    if (x->kind == K_CAST && p->k->val.at[x->arg[0]].dtype == MC_BOOL) {
        mc_str_addf(p->out, "v_sel(v%d, v_all(1), v_all(0)); ", x->arg[0]);
        return;
    }
    if (x->kind == K_CAST) { /* a copy */
        ref(p, x->arg[0]);
        mc_str_add(p->out, "; ");
        return;
    }
    mc_str_addf(p->out, "op_%s_%s(", x->op->name, mc_print_op_dtype(p->k, x) == MC_BOOL ? "m" : "v");
    if (compares_position(p->k, x)) {
        position_compare(p, x);
    } else {
        for (int i = 0; i < x->narg; i++) {
            mc_str_add(p->out, i ? ", " : "");
            ref(p, x->arg[i]);
        }
    }
    mc_str_add(p->out, "); ");
}

/* "VECTOR vf op_tanh_v(vf a) { return v_tanh(a); }", once for each op */
void mc_vector_kernel_functions(struct mc_str *out, int n, struct mc_kernel *const *kernels)
{
    struct mc_dict seen = { 0 };
    for (int i = 0; i < n; i++) {
        for (size_t j = 0; kernels[i]->wide && j < kernels[i]->val.n; j++) {
            const struct mc_kval *v = &kernels[i]->val.at[j];
            if (v->kind != K_OP || !v->element) {
                continue;
            }
            mc_dtype t = compares_position(kernels[i], v) ? MC_FLOAT32 : mc_print_op_dtype(kernels[i], v);
            char name[80];
            mc_snprintf(name, sizeof name, "op_%s_%s", v->op->name, t == MC_BOOL ? "m" : "v");
            if (mc_dict_get(&seen, name)) {
                continue;
            }
            out->bad |= !mc_dict_put(&seen, name, name); /* or the function would be defined twice */
            mc_str_addf(out, "VECTOR %s %s(", type_of(v->dtype), name);
            for (int a = 0; a < v->narg; a++) {
                mc_str_addf(out, "%s%s %c", a ? ", " : "",
                            v->op->typing == TYPE_WHERE && a == 0 ? "vm" : type_of(t), 'a' + a);
            }
            mc_str_addf(out, ") { return (%s)(%s); }\n", type_of(v->dtype), mc_print_op_code(v->op, t));
        }
    }
    mc_dict_free(&seen);
}
