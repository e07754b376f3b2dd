/* parse_desc.c: descriptors: arguments that are collected once and given to several calls.
 *
 *     d = dnn_conv_desc(border_mode='half', subsample=(2, 2))
 *     y = dnn_conv(x, w, desc=d)
 *
 * A descriptor is no tensor. Its name belongs to the text in which it is assigned. */
#include "graph/parse_desc.h"

/* `order` has the names of arguments without one. */
static const struct kind {
    const char *name, *order[4], *takers[3];
} kinds[] = {
    { "dnn_conv_desc", { "border_mode", "subsample", "conv_mode", "precision" }, { "dnn_conv", "dnn_gradinput", "dnn_gradweight" } },
    { "dnn_pool_desc", { "ws", "stride", "mode", "pad" }, { "dnn_pool" } },
};

static const struct kind *kind_named(const char *name)
{
    for (size_t i = 0; i < NELEM(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool mc_parse_is_desc(const char *name)
{
    return kind_named(name) != NULL;
}

struct val mc_parse_desc(struct parser *p, const char *name, const struct args *a, size_t at)
{
    const struct kind *k = kind_named(name);
    struct val v = { .kind = V_DESC, .text = k->name, .dtype = -1, .at = at };
    v.item = mc_arena_alloc(&p->g->arena, (size_t)(2 * a->n + 1) * sizeof *v.item);
    for (int i = 0; v.item && i < a->n; i++) {
        const char *word = a->name[i] ? a->name[i] : i < (int)NELEM(k->order) ? k->order[i] : NULL;
        if (!word) {
            mc_parse_fail(p, a->at[i], "%s takes %d arguments without a name", name, (int)NELEM(k->order));
            break;
        }
        v.item[v.n++] = (struct val){ .kind = V_TEXT, .text = word, .dtype = -1, .at = a->at[i] };
        v.item[v.n++] = a->value[i];
    }
    if (!v.item) {
        mc_parse_memory(p);
    }
    return v;
}

/* Does the op take descriptors of that kind?  dnn_conv3d takes those of dnn_conv. */
static bool takes(const struct kind *k, const char *op)
{
    bool any = false;
    for (size_t i = 0; i < NELEM(k->takers) && k->takers[i]; i++) {
        const size_t n = strlen(k->takers[i]);
        any |= strncmp(op, k->takers[i], n) == 0 && (!op[n] || strcmp(op + n, "3d") == 0);
    }
    return any;
}

void mc_parse_desc_spread(struct parser *p, const char *op, struct args *a)
{
    for (int i = 0; i < a->n && !p->failed; i++) {
        const struct val v = a->value[i];
        if (v.kind != V_DESC) {
            continue;
        }
        if (!takes(kind_named(v.text), op) || (a->name[i] && strcmp(a->name[i], "desc") != 0)) {
            mc_parse_fail(p, a->at[i], "%s takes no descriptor of %s%s%s", op, v.text,
                          a->name[i] ? " as " : "", a->name[i] ? a->name[i] : "");
        } else if (a->n - 1 + v.n / 2 > (int)NELEM(a->value)) {
            mc_parse_fail(p, a->at[i], "too many arguments");
        } else { /* the arguments behind it move up, its own follow the last */
            a->n--;
            memmove(&a->value[i], &a->value[i + 1], (size_t)(a->n - i) * sizeof *a->value);
            memmove(&a->name[i], &a->name[i + 1], (size_t)(a->n - i) * sizeof *a->name);
            memmove(&a->at[i], &a->at[i + 1], (size_t)(a->n - i) * sizeof *a->at);
            for (int k = 0; k < v.n; k += 2, a->n++) {
                a->name[a->n] = v.item[k].text;
                a->at[a->n] = v.item[k].at;
                a->value[a->n] = v.item[k + 1];
            }
            i--;
        }
    }
}

void mc_parse_desc_keep(struct parser *p, const char *name, const struct val *v)
{
    const struct mc_desc d = { name, *v, p->desc };
    const struct mc_desc *kept = mc_arena_copy(&p->g->arena, &d, sizeof d);
    if (!kept || !name) {
        mc_parse_memory(p);
        return;
    }
    p->desc = kept;
}

const struct val *mc_parse_desc_named(const struct parser *p, const char *name)
{
    for (const struct mc_desc *d = p->desc; d; d = d->next) {
        if (strcmp(d->name, name) == 0) {
            return &d->v;
        }
    }
    return NULL;
}
