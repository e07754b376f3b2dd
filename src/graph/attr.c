/* attr.c: signatures ("x, axis=None:axes, keepdims=False:bool") and what fills them. */
#include "graph/parse.h"
#include <math.h>
#include <stdlib.h>

static const struct { const char *name; enum mc_attr_kind kind; } kinds[] = {
    { "int", ATTR_INT }, { "bool", ATTR_BOOL }, { "real", ATTR_REAL }, { "dtype", ATTR_DTYPE },
    { "text", ATTR_TEXT }, { "ints", ATTR_INTS }, { "axes", ATTR_AXES },
    { "border", ATTR_BORDER },
};
static const char *const kind_says[] = {
    [ATTR_INT] = "a whole number", [ATTR_BOOL] = "True or False", [ATTR_REAL] = "a number", [ATTR_DTYPE] = "a dtype",
    [ATTR_TEXT] = "a string", [ATTR_INTS] = "a list of whole numbers", [ATTR_AXES] = "None, an axis or a list of axes",
    [ATTR_BORDER] = "a word, a number, a list of numbers or a list of pairs",
};

static const char *skip(const char *s)
{
    while (*s == ' ') {
        s++;
    }
    return s;
}

/* "=True:bool" behind a name; the table of ops is ours, so a mistake in it is an assert in the tests. */
static bool parse_default(const char **ps, struct mc_arena *a, struct mc_param *out)
{
    const char *s = *ps, *colon = strchr(s, ':'), *comma = strchr(s, ',');
    while (comma && colon && comma < colon && *s == '[') { /* a list has commas of its own */
        comma = strchr(comma + 1, ',');
    }
    if (!colon || (comma && comma < colon)) { /* "b=None": an optional tensor */
        out->optional = true;
        *ps = comma ? comma : s + strlen(s);
        return true;
    }
    size_t n = strcspn(colon + 1, ", ");
    for (size_t k = 0; k < NELEM(kinds); k++) {
        if (strlen(kinds[k].name) == n && strncmp(kinds[k].name, colon + 1, n) == 0) {
            out->kind = kinds[k].kind;
        }
    }
    struct mc_attr *d = &out->dflt;
    char word[64] = { 0 };
    memcpy(word, s, MC_MIN((size_t)(colon - s), sizeof word - 1));
    d->kind = out->kind;
    out->optional = colon > s;
    int64_t v[MC_MAX_RANK];
    if (strcmp(word, "None") == 0 || !*word) {
        d->none = true;
    } else if (out->kind == ATTR_REAL) {
        d->real = mc_strtod(word, NULL);
    } else if (out->kind == ATTR_TEXT || out->kind == ATTR_BORDER) {
        d->text = mc_arena_str(a, word, strlen(word));
    } else if (out->kind == ATTR_DTYPE) {
        mc_dtype t;
        if (mc_dtype_parse(word, &t) < 0) {
            return false;
        }
        v[d->n++] = t;
    } else if (strcmp(word, "True") == 0 || strcmp(word, "False") == 0) {
        v[d->n++] = *word == 'T';
    } else {
        for (char *w = word + (*word == '['); *w && *w != ']' && d->n < MC_MAX_RANK;) {
            v[d->n++] = strtoll(w, &w, 10);
            w += strspn(w, ", ");
        }
    }
    if (d->n) {
        d->ints = mc_arena_copy(a, v, (size_t)d->n * sizeof *v);
    }
    *ps = colon + 1 + n;
    return true;
}

mc_status mc_signature_parse(const char *params, struct mc_arena *a, struct mc_signature *out)
{
    struct mc_param p[24] = { 0 };
    *out = (struct mc_signature){ 0 };
    for (const char *s = skip(params); *s;) {
        struct mc_param *q = &p[out->nparam++];
        if (*s == '*') {
            out->variadic = true;
            q->kind = ATTR_TENSORS;
            s++;
        }
        size_t n = strcspn(s, "=:, ");
        q->name = mc_arena_str(a, s, n);
        s += n;
        if (*s == '=' || *s == ':') {
            s += *s == '=';
            if (!parse_default(&s, a, q)) {
                return mc_fail(MC_EARG, "signature '%s' is malformed", params);
            }
        }
        out->ntensor += q->kind == ATTR_TENSOR;
        out->nattr += q->kind > ATTR_TENSORS;
        s = skip(s);
        s = skip(*s == ',' ? s + 1 : s);
        if (out->nparam == (int)NELEM(p)) {
            return mc_fail(MC_EARG, "signature '%s' is too long", params);
        }
    }
    out->param = mc_arena_copy(a, p, (size_t)out->nparam * sizeof *p);
    return out->param || !out->nparam ? MC_OK : MC_EMEMORY;
}

void mc_attr_defaults(const struct mc_op *op, struct mc_attr *out)
{
    int k = 0;
    for (int i = 0; i < op->sig->nparam; i++) {
        if (op->sig->param[i].kind > ATTR_TENSORS) {
            out[k++] = op->sig->param[i].dflt;
        }
    }
}

/* ---- values to attributes ---- */

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

static bool as_ints(struct parser *p, const struct val *v, struct mc_attr *out)
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
        if (!as_int(v->kind == V_LIST ? &v->item[i] : v, &out->ints[i])) {
            return false;
        }
    }
    out->n = n;
    return out->ints != NULL;
}

/* [[1, 2], 3]: as if the inner brackets were not there; a number alone is a pair of it. */
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
    } else if (param->kind == ATTR_REAL && v->kind == V_TEXT) { /* the words 'inf' and '-inf' */
        ok = v->text && (strcmp(v->text, "inf") == 0 || strcmp(v->text, "-inf") == 0);
        out->real = ok && v->text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    } else if (param->kind == ATTR_REAL) {
        ok = v->kind == V_REAL || v->kind == V_INT || v->kind == V_WIDE || (v->kind == V_ATTR && v->attr->kind == ATTR_REAL) ||
             (v->kind == V_NODE && mc_const_number(v->node, &out->real));
        if (ok && v->kind != V_NODE) {
            out->real = v->kind == V_ATTR ? v->attr->real : v->kind == V_REAL || v->kind == V_WIDE ? v->real : (double)v->i;
        }
    } else if (param->kind == ATTR_TEXT || (param->kind == ATTR_BORDER && (v->kind == V_TEXT || (v->kind == V_ATTR && v->attr->text)))) {
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
        ok = as_ints(p, v, out);
    }
    if (ok && !out->none && (param->kind == ATTR_INT || param->kind == ATTR_BOOL || param->kind == ATTR_DTYPE)) {
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

/* Attributes without a default must be given. */
const struct mc_param *mc_attr_missing(const struct mc_op *op, const bool *given)
{
    for (int i = 0; i < op->sig->nparam; i++) {
        const struct mc_param *q = &op->sig->param[i];
        if (q->kind > ATTR_TENSORS && !q->optional && !given[i]) {
            return q;
        }
    }
    return NULL;
}

mc_status mc_attrs_parse(mc_graph *g, const struct mc_op *op, const char *text, struct mc_attr *out)
{
    bool given[24] = { 0 };
    const struct mc_param *missing = mc_attr_missing(op, given);
    mc_attr_defaults(op, out);
    if (!missing && (!text || !*text)) {
        return MC_OK;
    }
    struct parser p;
    mc_parse_begin(&p, g, text ? text : "", NULL, 0);
    int position = 0;
    while (p.tok.kind != T_END) {
        const struct mc_param *q = NULL;
        struct tok name = p.tok;
        size_t behind = p.at;
        int k = -1, found = -1;
        bool named = false;
        if (p.tok.kind == T_NAME) { /* "axis=0", or a bare value in the order of the signature */
            mc_parse_next(&p);
            named = mc_parse_take(&p, "=");
            if (!named) {
                p.at = behind;
                p.tok = name;
            }
        }
        for (int i = 0; i < op->sig->nparam; i++) {
            const struct mc_param *r = &op->sig->param[i];
            if (r->kind <= ATTR_TENSORS) {
                continue;
            }
            k++;
            if (named ? strlen(r->name) == name.n && strncmp(r->name, p.text + name.at, name.n) == 0 : k == position) {
                q = r;
                found = k;
                given[i] = true;
            }
        }
        if (!q) {
            mc_parse_fail(&p, name.at, "%s has no parameter '%.*s': %s(%s)", op->name, (int)name.n, p.text + name.at,
                          op->name, op->params);
            break;
        }
        position = found + 1;
        struct val v = mc_parse_expr(&p);
        if (p.failed || !mc_val_attr(&p, op, q, &v, &out[found])) {
            break;
        }
        if (p.tok.kind != T_END) {
            mc_parse_expect(&p, ",");
        }
    }
    bool failed = p.failed;
    mc_parse_end(&p);
    missing = mc_attr_missing(op, given);
    if (missing && !failed) {
        mc_node_fail(g, MC_EARG, "%s needs the argument '%s': %s(%s)", op->name, missing->name, op->name, op->params);
        failed = true;
    }
    return failed ? g->status : MC_OK;
}

void mc_attr_text(struct mc_str *out, const struct mc_attr *a)
{
    if (a->none) {
        mc_str_add(out, "None");
    } else if (a->kind == ATTR_BOOL) {
        mc_str_add(out, a->ints[0] ? "True" : "False");
    } else if (a->kind == ATTR_DTYPE) {
        mc_str_add(out, mc_dtype_name((mc_dtype)a->ints[0]));
    } else if (a->kind == ATTR_TEXT || a->text) {
        mc_str_json(out, a->text ? a->text : "");
    } else if (a->kind == ATTR_REAL) {
        char word[32];
        for (int digits = 1; digits <= 17; digits++) {
            mc_snprintf(word, sizeof word, "%.*g", digits, a->real);
            if (mc_strtod(word, NULL) == a->real) {
                break;
            }
        }
        mc_str_add(out, word);
    } else if (a->kind == ATTR_INT || ((a->kind == ATTR_AXES || a->kind == ATTR_BORDER) && a->n == 1)) {
        mc_str_addf(out, "%lld", (long long)a->ints[0]);
    } else {
        for (int i = 0; i < a->n; i++) {
            mc_str_addf(out, "%s%lld", i ? ", " : "[", (long long)a->ints[i]);
        }
        mc_str_add(out, a->n ? "]" : "[]");
    }
}
