/* parse_value_attr.c: converts the value of an expression to an attribute. */
#include "graph/parse.h"
#include <math.h>

static const char *const kind_says[] = {
    [ATTR_INT] = "a whole number", [ATTR_BOOL] = "True or False", [ATTR_REAL] = "a number", [ATTR_DTYPE] = "a dtype",
    [ATTR_TEXT] = "a string", [ATTR_INTS] = "a list of whole numbers", [ATTR_AXES] = "None, an axis or a list of axes",
    [ATTR_BORDER] = "a word, a number, a list of numbers or a list of pairs",
    [ATTR_REALS] = "a number, a list of numbers or a list of pairs", [ATTR_BODY] = "the text of a body",
};

static bool as_int(const struct val *v, int64_t *out)
{
    double real;
    int n;
    if (v->kind == V_INT || v->kind == V_BOOL) {
        *out = v->i;
        return true;
    }
    if (v->kind == V_ATTR && v->attr->n == 1 && v->attr->kind != ATTR_DTYPE) {
        *out = v->attr->ints[0];
        return true;
    }
    if (v->kind == V_NODE && mc_const_ints(v->node, out, 1, &n) && n == 1) {
        return true;
    }
    (void)real;
    return false;
}

/* The word 'x' in an order of axes: a new axis. */
static bool is_new_axis(const struct mc_param *param, const struct val *v)
{
    return v->kind == V_TEXT && v->text && strcmp(v->text, "x") == 0 && strcmp(param->name, "order") == 0;
}

/* None in a promised shape: a size that is unknown. */
static bool is_unknown_size(const struct mc_param *param, const struct val *v)
{
    const size_t n = strlen(param->name);
    return v->kind == V_NONE && n > 6 && strcmp(param->name + n - 6, "_shape") == 0;
}

static bool as_ints(struct parser *p, const struct mc_param *param, const struct val *v, struct mc_attr *out)
{
    int n = v->kind == V_LIST ? v->n : 1;
    if (v->kind == V_ATTR && v->attr->kind != ATTR_DTYPE && v->attr->kind != ATTR_REAL && !v->attr->text) {
        enum mc_attr_kind kind = out->kind;
        *out = *v->attr;
        out->kind = kind;
        return true;
    }
    out->ints = mc_arena_alloc(&p->g->arena, (size_t)(n + 1) * sizeof *out->ints);
    for (int i = 0; out->ints && i < n; i++) {
        const struct val *it = v->kind == V_LIST ? &v->item[i] : v;
        out->ints[i] = -1;
        if (!is_new_axis(param, it) && !is_unknown_size(param, it) && !as_int(it, &out->ints[i])) {
            return false;
        }
    }
    out->n = n;
    return out->ints != NULL;
}

/* [[1, 2], 3] becomes the flat list 1, 2, 3, 3: a number n means the pair n, n. */
static bool as_pairs(struct parser *p, const struct val *v, struct mc_attr *out)
{
    int n = 0;
    out->ints = mc_arena_alloc(&p->g->arena, (size_t)(v->n + 1) * 2 * sizeof *out->ints);
    for (int i = 0; out->ints && i < v->n; i++) {
        const struct val *it = &v->item[i], *last = it->kind == V_LIST && it->n == 2 ? &it->item[1] : it;
        if (!as_int(last == it ? it : &it->item[0], &out->ints[n]) || !as_int(last, &out->ints[n + 1])) {
            return false;
        }
        n += 2;
    }
    out->n = n;
    return out->ints != NULL;
}

static bool has_pairs(const struct val *v)
{
    bool any = false;
    for (int i = 0; v->kind == V_LIST && i < v->n; i++) {
        any |= v->item[i].kind == V_LIST;
    }
    return any;
}

static bool as_real(const struct val *v, double *out)
{
    if (v->kind == V_TEXT) { /* the words 'inf' and '-inf' */
        const bool minus = v->text && v->text[0] == '-';
        *out = minus ? -(double)INFINITY : (double)INFINITY;
        return v->text && strcmp(v->text + minus, "inf") == 0;
    }
    if (v->kind == V_NODE) {
        return mc_const_number(v->node, out);
    }
    const bool attr = v->kind == V_ATTR && v->attr->kind == ATTR_REAL,
               real = v->kind == V_REAL || v->kind == V_WIDE;
    *out = attr ? v->attr->real : real ? v->real : (double)v->i;
    return attr || real || v->kind == V_INT;
}

/* Numbers, of pairs both; a number beside pairs means the pair of it twice. */
static bool as_reals(struct parser *p, const struct val *v, struct mc_attr *out)
{
    if (v->kind == V_ATTR && v->attr->kind == ATTR_REALS) {
        *out = *v->attr;
        return true;
    }
    const bool list = v->kind == V_LIST, pairs = has_pairs(v);
    const int n = list ? v->n : 1;
    out->ints = mc_arena_alloc(&p->g->arena, (size_t)(n + 1) * 2 * sizeof *out->ints);
    for (int i = 0; out->ints && i < n; i++) {
        const struct val *it = list ? &v->item[i] : v;
        const bool pair = it->kind == V_LIST && it->n == 2;
        for (int k = 0; k <= pairs; k++) {
            double x;
            if (!as_real(pair ? &it->item[k] : it, &x)) {
                return false;
            }
            memcpy(&out->ints[out->n++], &x, sizeof x);
        }
    }
    return out->ints != NULL;
}

bool mc_val_attr(struct parser *p, const struct mc_op *op, const struct mc_param *param, const struct val *v,
                 struct mc_attr *out)
{
    int64_t i = 0;
    bool ok = false;
    *out = (struct mc_attr){ .kind = param->kind };
    if (v->kind == V_ATTR && v->attr->none) {
        *out = *v->attr;
        out->kind = param->kind;
        return true;
    }
    if (v->kind == V_NONE) {
        out->none = true;
        ok = (param->optional && param->dflt.none) || param->kind == ATTR_AXES;
    } else if (param->kind == ATTR_INT) {
        ok = as_int(v, &i);
    } else if (param->kind == ATTR_BOOL) {
        ok = as_int(v, &i) && (i == 0 || i == 1);
    } else if (param->kind == ATTR_REAL) {
        ok = as_real(v, &out->real);
    } else if (param->kind == ATTR_REALS) {
        ok = as_reals(p, v, out);
    } else if (param->kind == ATTR_TEXT || param->kind == ATTR_BODY ||
               (param->kind == ATTR_BORDER && (v->kind == V_TEXT || (v->kind == V_ATTR && v->attr->text)))) {
        ok = v->kind == V_TEXT || (v->kind == V_ATTR && v->attr->text);
        out->text = ok ? (v->kind == V_TEXT ? v->text : v->attr->text) : NULL;
    } else if (param->kind == ATTR_DTYPE) {
        mc_dtype d = MC_FLOAT32;
        if (v->kind == V_ATTR && v->attr->kind == ATTR_DTYPE) {
            ok = true;
            i = v->attr->ints[0];
        } else if (v->kind == V_TEXT) {
            ok = mc_dtype_parse(v->text, &d) >= 0;
            i = d;
        }
    } else if (param->kind == ATTR_BORDER && has_pairs(v)) {
        ok = as_pairs(p, v, out);
    } else {
        ok = as_ints(p, param, v, out);
    }
    if (ok && !out->none &&
        (param->kind == ATTR_INT || param->kind == ATTR_BOOL || param->kind == ATTR_DTYPE)) {
        out->n = 1;
        out->ints = mc_arena_copy(&p->g->arena, &i, sizeof i);
        ok = out->ints != NULL;
    }
    if (!ok) {
        mc_parse_fail(p, v->at, "%s: %s must be %s%s", op->name, param->name, kind_says[param->kind],
                      param->kind == ATTR_REAL && v->kind == V_TEXT ? ", 'inf' or '-inf'" : "");
    }
    return ok;
}
