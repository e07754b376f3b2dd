/* attr.c: parses signatures ("x, axis=None:axes, keepdims=False:bool"); attributes compared and printed. */
#include "graph/parse.h"
#include <math.h>
#include <stdlib.h>

static const struct { const char *name; enum mc_attr_kind kind; } kinds[] = {
    { "int", ATTR_INT }, { "bool", ATTR_BOOL }, { "real", ATTR_REAL }, { "dtype", ATTR_DTYPE },
    { "text", ATTR_TEXT }, { "ints", ATTR_INTS }, { "axes", ATTR_AXES },
    { "border", ATTR_BORDER }, { "reals", ATTR_REALS }, { "body", ATTR_BODY },
};

static const char *skip(const char *s)
{
    while (*s == ' ') {
        s++;
    }
    return s;
}

/* Parses "=True:bool" after a name.  The table of ops is part of the library; tests check that its signatures
 * parse. */
static bool parse_default(const char **ps, struct mc_arena *a, struct mc_param *out)
{
    const char *s = *ps, *colon = strchr(s, ':'), *comma = strchr(s, ',');
    while (comma && colon && comma < colon && *s == '[') { /* commas within a list do not end the default */
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
    } else if (out->kind == ATTR_REALS) {
        d->real = mc_strtod(word, NULL);
        memcpy(&v[d->n++], &d->real, sizeof d->real);
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

/* Returns a parameter without a default that was not given; NULL: none. */
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

double mc_attr_real(const struct mc_attr *a, int i)
{
    double v;
    memcpy(&v, &a->ints[i], sizeof v);
    return v;
}

/* The shortest decimal number that reads back as v. */
static void add_real(struct mc_str *out, double v)
{
    char word[32];
    for (int digits = 1; digits <= 17; digits++) {
        mc_snprintf(word, sizeof word, "%.*g", digits, v);
        if (mc_strtod(word, NULL) == v) {
            break;
        }
    }
    mc_str_add(out, word);
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
        add_real(out, a->real);
    } else if (a->kind == ATTR_REALS) {
        for (int i = 0; i < a->n; i++) {
            mc_str_add(out, i ? ", " : a->n > 1 ? "[" : "");
            add_real(out, mc_attr_real(a, i));
        }
        mc_str_add(out, a->n > 1 ? "]" : "");
    } else if (a->kind == ATTR_INT || ((a->kind == ATTR_AXES || a->kind == ATTR_BORDER) && a->n == 1)) {
        mc_str_addf(out, "%lld", (long long)a->ints[0]);
    } else {
        for (int i = 0; i < a->n; i++) {
            mc_str_addf(out, "%s%lld", i ? ", " : "[", (long long)a->ints[i]);
        }
        mc_str_add(out, a->n ? "]" : "[]");
    }
}
