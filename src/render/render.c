/* render.c: kernels as text.  One renderer, dialects as data.  Each kernel is printed as a loop nest
 * whose innermost loop is plain enough for the compiler to vectorise.
 *
 * Invariant: along the innermost loop an operand has stride 1 if it varies along the kernel's innermost
 * axis, else 0; whoever launches the kernel copies what is laid out otherwise. */
#include "render/kernel.h"
#include "render/math.h"
#include <stdio.h>
#include <stdlib.h>

struct print {
    struct mc_str *out;
    const struct mc_dialect *d;
    const struct mc_kernel *k;
    int stage;
    unsigned char *need;       /* elements of this stage */
    unsigned char *done;       /* row values printed so far */
};

static const char *calc(const struct print *p, mc_dtype d) { return p->d->calc[d]; }

/* ---- functions of scalar ops ---- */

static const char *op_code(const struct mc_op *op, mc_dtype d)
{
    return op->icode && !mc_is_float(d) ? op->icode : op->code;
}

static mc_dtype op_dtype(const struct mc_kernel *k, const struct mc_kval *v)
{
    return k->val.at[v->arg[v->op->typing == TYPE_WHERE ? 1 : 0]].dtype;
}

/* "INLINE float op_tanh_f(float a) { ... }", once for each op and type it is used with. */
static void op_functions(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    struct mc_dict seen = { 0 };
    uint64_t have[MC_MATH_WORDS] = { 0 };
    struct mc_str body = { 0 };
    for (int i = 0; i < n; i++) {
        for (size_t j = 0; j < kernels[i]->val.n; j++) {
            const struct mc_kval *v = &kernels[i]->val.at[j];
            if (v->kind != K_OP) {
                continue;
            }
            mc_dtype t = op_dtype(kernels[i], v);
            char name[80];
            snprintf(name, sizeof name, "%s_%s", v->op->name, d->suffix[t]);
            if (mc_dict_get(&seen, name)) {
                continue;
            }
            mc_dict_put(&seen, name, name);
            const char *code = op_code(v->op, t);
            for (const char *m = strstr(code, "M("); m; m = strstr(m + 1, "M(")) {
                char word[32] = { 0 };
                size_t len = strcspn(m + 2, ")");
                memcpy(word, m + 2, MC_MIN(len, sizeof word - 1));
                if (mc_is_float(t)) {
                    mc_math_add(out, have, word, t);
                }
            }
            mc_str_addf(&body, "#undef T\n#undef M\n#undef IS_BOOL\n#define T %s\n#define M(x) mc%c_##x\n#define IS_BOOL %d\n", d->calc[t],
                        t == MC_FLOAT64 ? 'd' : 'f', t == MC_BOOL);
            mc_str_addf(&body, "INLINE %s op_%s(", d->calc[v->dtype], name);
            for (int a = 0; a < v->narg; a++) {
                mc_str_addf(&body, "%s%s %c", a ? ", " : "", v->op->typing == TYPE_WHERE && a == 0 ? d->calc[MC_BOOL] : d->calc[t], 'a' + a);
            }
            mc_str_addf(&body, ") { return (%s)(%s); }\n", d->calc[v->dtype], code);
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
            snprintf(word, sizeof word, "%.*g", v->dtype == MC_FLOAT64 ? 17 : 9, x);
            mc_str_addf(p->out, "%s%s%s", word, strpbrk(word, ".e") ? "" : ".0", s);
        }
    } else if (v->dtype == MC_UINT64) {
        mc_str_addf(p->out, "%lluull", (unsigned long long)mc_load_i64(v->dtype, v->bits));
    } else {
        int64_t x = mc_load_i64(v->dtype, v->bits);
        if (x == INT64_MIN) {
            mc_str_add(p->out, "(-0x7fffffffffffffffll - 1)");
        } else {
            mc_str_addf(p->out, "%lld%s", (long long)x, v->dtype == MC_INT64 ? "ll" : v->dtype == MC_UINT32 ? "u" : "");
        }
    }
}

/* How value v is called where it is used: column kernels keep row values in arrays. */
static void ref(struct print *p, int v)
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

/* Does operand o move along the innermost loop? */
static bool moves(const struct mc_kernel *k, const struct mc_koperand *o)
{
    return k->inner >= 0 && o->varies & 1u << k->inner;
}

/* The index of operand o's element: "[j]" if it moves along the innermost loop. */
static void place(struct print *p, int o, bool inner)
{
    mc_str_add(p->out, inner && moves(p->k, &p->k->operand.at[o]) ? "[j]" : "[0]");
}

static bool is_narrow(mc_dtype d)
{
    return d != MC_BOOL && !mc_is_float(d) && mc_dtypes[d].size < 4;
}

/* From float to an integer by way of a wide one: in range there, then wrapped.  To a half type by way of
 * memory's form of it: what is asked for by name is rounded, unlike what is only passed on. */
static void cast(struct print *p, const struct mc_kval *x)
{
    const struct mc_kval *a = &p->k->val.at[x->arg[0]];
    bool to_float = mc_is_float(x->dtype);
    if (a->dtype != x->dtype && *p->d->store_as[x->dtype]) {
        mc_str_addf(p->out, "%s(%s(", p->d->load_as[x->dtype], p->d->store_as[x->dtype]);
        ref(p, x->arg[0]);
        mc_str_add(p->out, "))");
        return;
    }
    if (x->dtype == MC_BOOL) {
        mc_str_add(p->out, "0 != ");
    } else {
        mc_str_addf(p->out, "(%s)", calc(p, x->dtype));
        mc_str_addf(p->out, to_float ? "" : "(%s)", p->d->store[x->dtype]);
        mc_str_add(p->out, !to_float && mc_is_float(a->dtype) && x->dtype != MC_UINT64 ? "(i64)" : "");
    }
    mc_str_add(p->out, "(");
    ref(p, x->arg[0]);
    mc_str_add(p->out, ")");
}

/* The expression of value v; inner: within the innermost loop. */
static void expression(struct print *p, int v, bool inner)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (x->kind == K_LOAD) {
        const char *as = p->d->load_as[x->dtype];
        mc_str_addf(p->out, "%s(a%d", as, x->operand);
        place(p, x->operand, inner);
        mc_str_add(p->out, ")");
    } else if (x->kind == K_INDEX) {
        mc_str_addf(p->out, "a%d", x->operand);
        mc_str_add(p->out, inner && moves(p->k, &p->k->operand.at[x->operand]) ? " + j" : "");
    } else if (x->kind == K_CAST) {
        cast(p, x);
    } else if (x->kind == K_CHECK) {
        ref(p, x->arg[0]);
    } else {
        if (is_narrow(x->dtype)) { /* wraps as its memory would */
            mc_str_addf(p->out, "(%s)", p->d->store[x->dtype]);
        }
        mc_str_add(p->out, x->dtype == MC_BOOL ? "0 != " : ""); /* true + true is true */
        mc_str_addf(p->out, "op_%s_%s(", x->op->name, p->d->suffix[op_dtype(p->k, x)]);
        for (int i = 0; i < x->narg; i++) {
            mc_str_add(p->out, i ? ", " : "");
            ref(p, x->arg[i]);
        }
        mc_str_add(p->out, ")");
    }
}

/* "const float v7 = ...;" */
static void define(struct print *p, int v, bool inner)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "const %s v%d = ", calc(p, x->dtype), v);
    expression(p, v, inner);
    mc_str_add(p->out, "; ");
    if (x->kind == K_CHECK) {
        mc_str_addf(p->out, "if ((u64)v%d >= (u64)", v);
        ref(p, x->arg[1]);
        mc_str_addf(p->out, ") { err[0] = %d; err[1] = v%d; err[2] = (i64)", v + 1, v);
        ref(p, x->arg[1]);
        mc_str_add(p->out, "; } ");
    }
}

/* ---- reductions: @ is the value's number, # the element, C the accumulator's place, $ its position ---- */

static const struct monoid_text {
    const char *name, *first, *clause, *lane, *merge, *direct;
    bool flags;     /* z@ beside c@: NaN seen (max, min) or the position (argmax) */
} texts[] = {
    { "sum",    "0",  "reduction(+:l@)", "l@ += #;", "c@ += l@;", "C += #;", false },
    { "prod",   "1",  "reduction(*:l@)", "l@ *= #;", "c@ *= l@;", "C *= #;", false },
    { "max",    "<",  "reduction(max:l@) reduction(|:q@)", "l@ = # > l@ ? # : l@; q@ |= # != #;",
      "c@ = l@ > c@ ? l@ : c@; z@ |= q@;", "C = # > C ? # : C; Z |= # != #;", true },
    { "min",    ">",  "reduction(min:l@) reduction(|:q@)", "l@ = # < l@ ? # : l@; q@ |= # != #;",
      "c@ = l@ < c@ ? l@ : c@; z@ |= q@;", "C = # < C ? # : C; Z |= # != #;", true },
    { "any",    "0",  "reduction(|:l@)", "l@ |= # != 0;", "c@ |= l@;", "C |= # != 0;", false },
    { "all",    "1",  "reduction(&:l@)", "l@ &= # != 0;", "c@ &= l@;", "C &= # != 0;", false },
    { "argmax", "<",  NULL, NULL, "if (q@ >= 0 && (z@ < 0 || l@ > c@ || (l@ != l@ && c@ == c@))) { c@ = l@; z@ = q@; }",
      "if (Z < 0 || # > C || (# != # && C == C)) { C = #; Z = $; }", true },
};

static const struct monoid_text *monoid_text(const struct mc_kval *v)
{
    for (size_t i = 0; i < NELEM(texts); i++) {
        if (strcmp(texts[i].name, v->op->name) == 0) {
            return &texts[i];
        }
    }
    return &texts[0];
}

static bool by_position(const struct mc_kval *v)
{
    return monoid_text(v)->lane == NULL;
}

/* Sums of floats and products accumulate in acc; what compares, in the element's own type. */
static const char *acc_type(const struct print *p, const struct mc_kval *v, bool lane)
{
    const struct monoid_text *m = monoid_text(v);
    mc_dtype arg = p->k->val.at[v->arg[0]].dtype;
    if (m->flags) {
        return calc(p, arg);
    }
    if (m->name[0] == 'a') {
        return "i32";
    }
    return calc(p, lane && mc_is_float(arg) ? arg : v->acc);
}

static const char *lowest(mc_dtype d, bool greatest)
{
    static const char *const low[] = { [MC_BOOL] = "0", [MC_INT8] = "-128", [MC_INT16] = "-32768", [MC_INT32] = "(-2147483647 - 1)",
        [MC_INT64] = "(-0x7fffffffffffffffll - 1)", [MC_UINT8] = "0", [MC_UINT16] = "0", [MC_UINT32] = "0", [MC_UINT64] = "0",
        [MC_FLOAT16] = "-__builtin_inff()", [MC_BFLOAT16] = "-__builtin_inff()", [MC_FLOAT32] = "-__builtin_inff()",
        [MC_FLOAT64] = "-__builtin_inf()" };
    static const char *const high[] = { [MC_BOOL] = "1", [MC_INT8] = "127", [MC_INT16] = "32767", [MC_INT32] = "2147483647",
        [MC_INT64] = "0x7fffffffffffffffll", [MC_UINT8] = "255", [MC_UINT16] = "65535", [MC_UINT32] = "0xffffffffu",
        [MC_UINT64] = "0xffffffffffffffffull", [MC_FLOAT16] = "__builtin_inff()", [MC_BFLOAT16] = "__builtin_inff()",
        [MC_FLOAT32] = "__builtin_inff()", [MC_FLOAT64] = "__builtin_inf()" };
    return greatest ? high[d] : low[d];
}

static const char *first_value(const struct print *p, const struct mc_kval *v)
{
    const char *f = monoid_text(v)->first;
    return *f == '<' || *f == '>' ? lowest(p->k->val.at[v->arg[0]].dtype, *f == '>') : f;
}

static void fill_in(struct print *p, const char *text, int v, const char *position)
{
    bool column = p->k->mode == KERNEL_COLUMN;
    for (; *text; text++) {
        if (*text == '@') {
            mc_str_addf(p->out, "%d", v);
        } else if (*text == '#') {
            ref(p, p->k->val.at[v].arg[0]);
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
static void finish(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    const struct monoid_text *m = monoid_text(x);
    bool column = p->k->mode == KERNEL_COLUMN;
    const char *at = column ? "[j]" : "", *t = calc(p, x->dtype);
    mc_dtype arg = p->k->val.at[x->arg[0]].dtype;
    if (column) {
        mc_str_addf(p->out, "r%d[j] = ", v);
    } else {
        mc_str_addf(p->out, "const %s v%d = ", t, v);
    }
    if (by_position(x)) {
        mc_str_addf(p->out, "(%s)z%d%s; ", t, v, at);
    } else if (m->flags && mc_is_float(arg)) {
        mc_str_addf(p->out, "z%d%s ? __builtin_nan%s(\"\") : c%d%s; ", v, at, arg == MC_FLOAT64 ? "" : "f", v, at);
    } else {
        mc_str_addf(p->out, "(%s)c%d%s; ", t, v, at);
    }
}

/* ---- loops ---- */

static void mark_need(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (!x->element || p->need[v]) {
        return;
    }
    p->need[v] = 1;
    if (x->saved && x->stage < p->stage) {
        return;
    }
    for (int i = 0; i < x->narg; i++) {
        mark_need(p, x->arg[i]);
    }
}

/* Which elements walk `stage` computes; false: nothing. */
static bool mark_stage(struct print *p)
{
    bool any = false;
    memset(p->need, 0, p->k->val.n);
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        if (v->kind == K_REDUCE && v->stage == p->stage) {
            mark_need(p, v->arg[0]);
            any = true;
        }
        if (v->saved && v->stage == p->stage) {
            mark_need(p, (int)i);
        }
    }
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (o->dst && p->k->val.at[o->val].element && p->k->val.at[o->val].stage == p->stage) {
            mark_need(p, o->val);
            any = true;
        }
    }
    return any;
}

static void store(struct print *p, int o, bool inner)
{
    const struct mc_koperand *x = &p->k->operand.at[o];
    mc_str_addf(p->out, "a%d", o);
    place(p, o, inner);
    mc_str_addf(p->out, *p->d->store_as[x->dtype] ? " = %s(" : " = (%s)(",
                *p->d->store_as[x->dtype] ? p->d->store_as[x->dtype] : p->d->store[x->dtype]);
    ref(p, x->val);
    mc_str_add(p->out, "); ");
}

/* What happens for one element. */
static void body(struct print *p, bool lanes, const char *position)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!p->need[i] || v->kind == K_CONST) {
            continue;
        }
        if (v->saved && v->stage < p->stage) {
            mc_str_addf(p->out, "const %s v%d = b%d[j]; ", calc(p, v->dtype), (int)i, v->saved);
            continue;
        }
        define(p, (int)i, true);
        if (v->saved) {
            mc_str_addf(p->out, "b%d[j] = v%d; ", v->saved, (int)i);
        }
    }
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (v->kind == K_REDUCE && v->stage == p->stage) {
            fill_in(p, lanes ? monoid_text(v)->lane : monoid_text(v)->direct, (int)i, position);
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst && k->val.at[o->val].element && k->val.at[o->val].stage == p->stage) {
            store(p, (int)i, true);
        }
    }
}

/* The addresses of operand o at the current outer indices: "+ i1 * s[4]". */
static void pointers(struct print *p, bool elements, const char *offset)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        bool element = o->dst ? p->k->val.at[o->val].element : (o->varies & (p->k->mode == KERNEL_MAP ? ~0u : p->k->reduced)) != 0;
        if (element != elements) {
            continue;
        }
        const char *t = p->d->store[o->dtype];
        if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)p[%zu]", i, i);
        } else {
            mc_str_addf(p->out, "%s%s *a%zu = (%s%s *)p[%zu]", o->dst ? "" : "const ", t, i, o->dst ? "" : "const ", t, i);
        }
        for (const char *f = offset; *f; f++) { /* "12": + i1 * s[3k+1] + i2 * s[3k+2]; "j": + j0 * s[3k] */
            if (*f == 'j') {
                mc_str_add(p->out, moves(p->k, o) ? " + j0" : "");
            } else {
                mc_str_addf(p->out, " + i%c * s[%zu]", *f, 3 * i + (size_t)(*f - '0'));
            }
        }
        mc_str_add(p->out, ";\n");
    }
}

/* Row values that are there from this stage on (and are not reductions), as scalars. */
static void row_values(struct print *p)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!v->element && v->kind != K_CONST && v->kind != K_REDUCE && v->stage == p->stage && !p->done[i] &&
            !(k->mode == KERNEL_COLUMN && v->varies)) {
            p->done[i] = 1;
            define(p, (int)i, false);
            mc_str_add(p->out, "\n");
        }
    }
}

static void row_stores(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (o->dst && !p->k->val.at[o->val].element) {
            store(p, (int)i, false);
            mc_str_add(p->out, "\n");
        }
    }
}

static bool stage_reduces(const struct print *p, bool *positions)
{
    bool any = false;
    *positions = false;
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        if (v->kind == K_REDUCE && v->stage == p->stage) {
            any = true;
            *positions |= by_position(v);
        }
    }
    return any;
}

static void each_reduction(struct print *p, void (*f)(struct print *p, int v))
{
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].kind == K_REDUCE && p->k->val.at[i].stage == p->stage) {
            f(p, (int)i);
        }
    }
}

static void declare_acc(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s c%d = %s; ", acc_type(p, x, false), v, first_value(p, x));
    if (monoid_text(x)->flags) {
        mc_str_addf(p->out, "i64 z%d = %d; ", v, by_position(x) ? -1 : 0);
    }
}

static void declare_lane(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s l%d = %s; ", acc_type(p, x, true), v, first_value(p, x));
    if (monoid_text(x)->flags) {
        mc_str_addf(p->out, "i32 q%d = 0; ", v);
    }
}

static void merge_lane(struct print *p, int v)
{
    fill_in(p, monoid_text(&p->k->val.at[v])->merge, v, "");
}

/* The innermost loop of row and fold kernels: lanes of a block go into the accumulators, so long
 * rows lose no digits. */
static void row_loop(struct print *p)
{
    bool positions, reduces = stage_reduces(p, &positions);
    if (!reduces || positions) {
        if (!reduces) {
            mc_str_add(p->out, p->d->loop);
        }
        mc_str_add(p->out, "for (i64 j = 0; j < n0; j++) { ");
        body(p, false, "(base + i2 * n0 + j)");
        mc_str_add(p->out, "}\n");
        return;
    }
    mc_str_add(p->out, "for (i64 b = 0; b < n0; b += 2048) {\nconst i64 e = n0 - b < 2048 ? n0 : b + 2048;\n");
    each_reduction(p, declare_lane);
    struct mc_str clauses = { 0 }, *out = p->out;
    p->out = &clauses;
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].kind == K_REDUCE && p->k->val.at[i].stage == p->stage) {
            fill_in(p, monoid_text(&p->k->val.at[i])->clause, (int)i, "");
        }
    }
    p->out = out;
    mc_str_add(p->out, "\n");
    mc_str_addf(p->out, p->d->reduce_loop, clauses.s ? clauses.s : "");
    mc_str_free(&clauses);
    mc_str_add(p->out, "for (i64 j = b; j < e; j++) { ");
    body(p, true, "");
    mc_str_add(p->out, "}\n");
    each_reduction(p, merge_lane);
    mc_str_add(p->out, "}\n");
}

/* One walk over the reduced loops. */
static void walk(struct print *p, const char *offset, void (*loop)(struct print *p))
{
    mc_str_add(p->out, "for (i64 i2 = 0; i2 < n2; i2++) {\n");
    pointers(p, true, offset);
    for (int b = 1; b <= p->k->nsaved; b++) {
        const char *t = "float";
        for (size_t i = 0; i < p->k->val.n; i++) {
            t = p->k->val.at[i].saved == b ? calc(p, p->k->val.at[i].dtype) : t;
        }
        mc_str_addf(p->out, "%s *b%d = (%s *)(p[%zu] + %d * n0 * n2 * 8) + i2 * n0; (void)b%d;\n", t, b, t, p->k->operand.n, b - 1, b);
    }
    loop(p);
    mc_str_add(p->out, "}\n");
}

static void map_loop(struct print *p)
{
    mc_str_add(p->out, p->d->loop);
    mc_str_add(p->out, "for (i64 j = 0; j < n0; j++) { ");
    body(p, false, "");
    mc_str_add(p->out, "}\n");
}

static void print_map(struct print *p)
{
    pointers(p, false, "");
    row_values(p);
    row_stores(p);
    if (!mark_stage(p)) {
        return;
    }
    mc_str_add(p->out, "for (i64 i1 = 0; i1 < n1; i1++)\n");
    walk(p, "12", map_loop);
}

static void print_row(struct print *p)
{
    mc_str_add(p->out, "const i64 base = 0; (void)base;\nfor (i64 i1 = 0; i1 < n1; i1++) {\n");
    pointers(p, false, "1");
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        row_values(p);
        if (mark_stage(p)) {
            each_reduction(p, declare_acc);
            mc_str_add(p->out, "\n");
            walk(p, "12", row_loop);
            each_reduction(p, finish);
            mc_str_add(p->out, "\n");
        }
    }
    row_stores(p);
    mc_str_add(p->out, "}\n");
}

static void keep_acc(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    int slot = 0;
    for (int i = 0; i < v; i++) {
        slot += p->k->val.at[i].kind == K_REDUCE;
    }
    mc_str_addf(p->out, "*(%s *)(p[%zu] + %d) = c%d; ", acc_type(p, x, false), p->k->operand.n, 16 * slot, v);
    if (monoid_text(x)->flags) {
        mc_str_addf(p->out, "*(i64 *)(p[%zu] + %d) = z%d; ", p->k->operand.n, 16 * slot + 8, v);
    }
}

static void fetch_acc(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    int slot = 0;
    for (int i = 0; i < v; i++) {
        slot += p->k->val.at[i].kind == K_REDUCE;
    }
    const char *t = acc_type(p, x, false);
    mc_str_addf(p->out, "const %s l%d = *(%s *)(acc + %d); ", t, v, t, 16 * slot);
    if (monoid_text(x)->flags) {
        mc_str_addf(p->out, "const i64 q%d = *(i64 *)(acc + %d); ", v, 16 * slot + 8);
    }
}

static void print_fold(struct print *p)
{
    pointers(p, false, "");
    row_values(p);
    mc_str_add(p->out, "const i64 base = n[3]; (void)base;\n");
    mark_stage(p);
    each_reduction(p, declare_acc);
    mc_str_add(p->out, "\nfor (i64 i1 = 0; i1 < n1; i1++)\n");
    walk(p, "12", row_loop);
    each_reduction(p, keep_acc);
    mc_str_add(p->out, "\n}\n");

    memset(p->done, 0, p->k->val.n);
    mc_str_addf(p->out, p->d->join, p->k->name);
    mc_str_add(p->out, "const i64 chunks = n[0]; (void)s; (void)err;\n");
    pointers(p, false, "");
    each_reduction(p, declare_acc);
    mc_str_addf(p->out, "\nfor (i64 i = 0; i < chunks; i++) { const char *acc = p[%zu] + i * %d;\n", p->k->operand.n, 16 * p->k->nreduce);
    each_reduction(p, fetch_acc);
    each_reduction(p, merge_lane);
    mc_str_add(p->out, "}\n");
    row_values(p);
    each_reduction(p, finish);
    mc_str_add(p->out, "\n");
    for (p->stage = 1; p->stage <= p->k->nstage; p->stage++) {
        row_values(p);
    }
    row_stores(p);
}

/* ---- column kernels: row values are arrays over the columns at hand ---- */

static void column_loop(struct print *p)
{
    mc_str_add(p->out, p->d->loop);
    mc_str_add(p->out, "for (i64 j = 0; j < nb; j++) { ");
    body(p, false, "(i2 * n1 + i1)");
    mc_str_add(p->out, "}\n");
}

static void declare_columns(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s c%d[%d]; ", acc_type(p, x, false), v, KERNEL_COLUMNS);
    if (monoid_text(x)->flags) {
        mc_str_addf(p->out, "i64 z%d[%d]; ", v, KERNEL_COLUMNS);
    }
    mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) { c%d[j] = %s; ", v, first_value(p, x));
    if (monoid_text(x)->flags) {
        mc_str_addf(p->out, "z%d[j] = %d; ", v, by_position(x) ? -1 : 0);
    }
    mc_str_add(p->out, "}\n");
}

/* Row values of this stage, column by column; loads too. */
static void column_values(struct print *p)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!v->element && v->varies && v->kind != K_CONST && v->kind != K_REDUCE && v->stage == p->stage) {
            mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) { r%zu[j] = ", i);
            expression(p, (int)i, true);
            mc_str_add(p->out, "; }\n");
            if (v->kind == K_CHECK) {
                mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) if ((u64)r%zu[j] >= (u64)", i);
                ref(p, v->arg[1]);
                mc_str_addf(p->out, ") { err[0] = %zu; err[1] = r%zu[j]; err[2] = (i64)", i + 1, i);
                ref(p, v->arg[1]);
                mc_str_add(p->out, "; }\n");
            }
        }
    }
}

static void print_column(struct print *p)
{
    const struct mc_kernel *k = p->k;
    mc_str_addf(p->out, "for (i64 j0 = 0; j0 < n0; j0 += %d) {\nconst i64 nb = n0 - j0 < %d ? n0 - j0 : %d;\n", KERNEL_COLUMNS,
                KERNEL_COLUMNS, KERNEL_COLUMNS);
    for (size_t i = 0; i < k->val.n; i++) {
        if (!k->val.at[i].element && k->val.at[i].varies && k->val.at[i].kind != K_CONST) {
            mc_str_addf(p->out, "%s r%zu[%d];\n", calc(p, k->val.at[i].dtype), i, KERNEL_COLUMNS);
        }
    }
    pointers(p, false, "j");
    for (p->stage = 0; p->stage <= k->nstage; p->stage++) {
        row_values(p);
        column_values(p);
        if (mark_stage(p)) {
            each_reduction(p, declare_columns);
            mc_str_add(p->out, "for (i64 i2 = 0; i2 < n2; i2++) for (i64 i1 = 0; i1 < n1; i1++) {\n");
            pointers(p, true, "j12");
            column_loop(p);
            mc_str_add(p->out, "}\n");
            mc_str_add(p->out, "for (i64 j = 0; j < nb; j++) { ");
            each_reduction(p, finish);
            mc_str_add(p->out, "}\n");
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst && !k->val.at[o->val].element) {
            mc_str_add(p->out, "for (i64 j = 0; j < nb; j++) { ");
            store(p, (int)i, true);
            mc_str_add(p->out, "}\n");
        }
    }
    mc_str_add(p->out, "}\n");
}

static void print_kernel(struct print *p)
{
    static void (*const mode[])(struct print *p) = {
        [KERNEL_MAP] = print_map, [KERNEL_ROW] = print_row, [KERNEL_COLUMN] = print_column, [KERNEL_FOLD] = print_fold,
    };
    p->need = mc_calloc(p->k->val.n + 1, 2, "kernel");
    if (!p->need) {
        p->out->bad = true;
        return;
    }
    p->done = p->need + p->k->val.n;
    p->stage = 0;
    mc_str_add(p->out, "\n");
    mc_str_addf(p->out, p->d->head, p->k->name);
    mc_str_add(p->out, "const i64 n0 = n[0], n1 = n[1], n2 = n[2]; (void)n0; (void)n1; (void)n2; (void)s; (void)err;\n");
    mode[p->k->mode](p);
    mc_str_add(p->out, "}\n");
    mc_free(p->need);
}

void mc_render(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    mc_str_add(out, d->prelude);
    op_functions(out, d, n, kernels);
    for (int i = 0; i < n; i++) {
        struct print p = { .out = out, .d = d, .k = kernels[i] };
        print_kernel(&p);
    }
}
