/* t_text_random.c: the text of any graph reads back as the same nodes. */
#include "op/op.h"
#include "text_words.h"
#include <stdio.h>
#include <stdlib.h>

enum { POOL = 40 };
struct pool { mc_graph *g; mc_node *node[POOL]; int n; };

static int below(int n)
{
    return (int)(test_random() % (uint64_t)n);
}

static void random_attr(enum mc_attr_kind kind, struct mc_attr *a, int64_t *ints)
{
    *a = (struct mc_attr){ .kind = kind, .ints = ints, .n = 1 };
    ints[0] = below(4) - 1;
    if (kind == ATTR_BOOL) {
        ints[0] = below(2);
    } else if (kind == ATTR_DTYPE) {
        ints[0] = below(MC_NDTYPE);
    } else if (kind == ATTR_REAL) {
        a->n = 0;
        a->real = test_uniform(-2, 2);
    } else if (kind == ATTR_INTS || kind == ATTR_AXES) {
        a->n = below(3);
        for (int i = 0; i < a->n; i++) {
            ints[i] = (i + below(2)) % 3;
        }
    }
}

/* Any op that is in the manual, on anything there is: what does not fit is not added. */
static void grow(struct pool *p)
{
    const struct mc_op *op = mc_op_at(below(mc_op_count()));
    mc_node *in[4] = { 0 };
    struct mc_attr attr[16] = { 0 };
    int64_t ints[16][8];
    int nin = op->sig->variadic ? 1 + below(3) : op->sig->ntensor, k = 0;
    if (op->flags & (OP_HIDDEN | OP_LEAF | OP_RANDOM | OP_IMPURE) || nin > 4 || nin == 0 || p->n == POOL) {
        return;
    }
    for (int i = 0; i < nin; i++) {
        in[i] = p->node[below(p->n)];
    }
    for (int i = 0; i < op->sig->nparam; i++) {
        const struct mc_param *q = &op->sig->param[i];
        if (q->kind > ATTR_TENSORS) {
            attr[k] = q->dflt;
            if (!q->optional || below(2)) {
                random_attr(q->kind == ATTR_TEXT ? ATTR_INT : q->kind, &attr[k], ints[k]);
                attr[k] = q->kind == ATTR_TEXT ? q->dflt : attr[k];
            }
            k++;
        }
    }
    mc_node *y = mc_apply(p->g, op, nin, in, attr);
    if (mc_is_error(y)) {
        mc_graph_clear_error(p->g);
        return;
    }
    for (int i = 0; i < y->nout && p->n < POOL; i++) {
        p->node[p->n++] = mc_item(y, i);
    }
}

static mc_array *value_for(const mc_node *x)
{
    int64_t dims[MC_MAX_RANK];
    for (int i = 0; i < x->type.rank; i++) {
        dims[i] = x->type.dims[i] >= 0 ? x->type.dims[i] : i == 0 ? 2 : 3;
    }
    mc_array *a = mc_array_new(x->type.dtype, x->type.rank, dims);
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        char *to = a->data + i * mc_dtypes[a->dtype].size;
        mc_is_float(a->dtype) ? mc_store_f64(a->dtype, to, test_uniform(.2, .9))
                              : mc_store_i64(a->dtype, to, below(2));
    }
    return a;
}

static const char *const leaves[] = { "x", "y", "u", "s", "k", "j", "b", "t" };
enum { NLEAVES = (int)NELEM(leaves) };

/* Printed, read by a new graph, printed again: the same text; and both compute the same bits. */
static void round_trip(mc_graph *g, int n, mc_node **out)
{
    mc_node *from[NLEAVES], *to[NLEAVES], *again[4];
    mc_array *value[NLEAVES], *a[4] = { 0 }, *b[4] = { 0 };
    mc_graph *h = mc_graph_new();
    char *text = mc_graph_text(g, n, out), name[16];
    mc_formula(h, text);
    if (!CHECK(mc_graph_status(h) == MC_OK, "%s\n%s", mc_error(h), text)) {
        mc_text_free(text);
        mc_graph_free(h);
        return;
    }
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "out%d", i);
        again[i] = out[i]->nin ? mc_var(h, name) : NULL;
    }
    for (int i = 0; i < NLEAVES; i++) {
        from[i] = mc_var(g, leaves[i]);
        to[i] = mc_dict_get(&h->names, leaves[i]);
        value[i] = value_for(from[i]);
        to[i] = to[i] ? to[i]
                      : mc_input_sized(h, leaves[i], from[i]->type.dtype, from[i]->type.rank,
                                       from[i]->type.dims);
    }
    char *second = mc_graph_text(h, n, again);
    CHECK(second && strcmp(text, second) == 0, "printed again it is another:\n%s--\n%s", text,
          second ? second : "");
    mc_status sa = mc_eval(NLEAVES, from, value, n, out, a), sb = mc_eval(NLEAVES, to, value, n, again, b);
    CHECK((sa == MC_OK) == (sb == MC_OK), "one ends with %d, the other with %d: %s\n%s", (int)sa, (int)sb,
          mc_last_error(), text);
    for (int i = 0; i < n; i++) {
        CHECK(sa != MC_OK || mc_array_same_bits(a[i], b[i]), "result %d differs of\n%s", i, text);
        mc_array_unref(&a[i]);
        mc_array_unref(&b[i]);
    }
    for (int i = 0; i < NLEAVES; i++) {
        mc_array_unref(&value[i]);
    }
    mc_text_free(text);
    mc_text_free(second);
    mc_graph_free(h);
}

static void random_graph(void)
{
    struct pool p = { .g = graph_of(declared) };
    mc_node *out[4];
    char name[16];
    int n = 0;
    for (int i = 0; i < NLEAVES; i++) {
        p.node[p.n++] = mc_var(p.g, leaves[i]);
    }
    p.node[p.n++] = mc_number(p.g, MC_FLOAT32, test_uniform(-3, 3));
    p.node[p.n++] = mc_formula(p.g, "[2, 3]");
    int start = p.n;
    for (int i = 0; i < 60; i++) {
        grow(&p);
    }
    for (int i = 0; i < 4 && p.n > start; i++) {
        mc_node *x = p.node[start + below(p.n - start)];
        bool fresh = x->nin > 0 && !x->name && x->op != &mc_op_item;
        if (fresh) {
            snprintf(name, sizeof name, "out%d", n);
            out[n++] = mc_name(x, name);
        }
    }
    CHECK(mc_graph_status(p.g) == MC_OK, "%s", mc_error(p.g));
    if (n) {
        round_trip(p.g, n, out);
    }
    mc_graph_free(p.g);
}

/* Random sizes make arrays that no machine holds: those fail. */
static void *modest(void *arg, void *p, size_t n)
{
    (void)arg;
    if (!n) {
        free(p);
    }
    return n && n < (size_t)64 << 20 ? realloc(p, n) : NULL;
}

static void random_graphs(int n)
{
    mc_op_find("add"); /* what stays is made before */
    mc_set_allocator(&(mc_allocator){ modest, NULL });
    for (int i = 0; i < n; i++) {
        random_graph();
    }
    mc_set_allocator(NULL);
}

TEST(random_graphs_read_back)
{
    random_graphs(300);
}

TEST_FULL(many_random_graphs_read_back)
{
    random_graphs(10000);
}
