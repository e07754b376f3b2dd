/* t_scan.c: loops against the same loop unrolled as a graph, as text, with wrong input. */
#include "check.h"
#include "graph/graph.h"

#include <math.h>

/* ---- a loop, and the same steps written one after another ---- */

enum { MOST = 8, STEPS = 5 };
/* x0.. are sequences, h0.. states; next[i] is a formula over x0 h0 .. and the variables W V b of the graph.
 * */
struct loop {
    int nx, nh, ny;
    const char *next[MOST], *collect[MOST];
    bool backwards;
};

static const char *const xname[] = { "x0", "x1", "x2" }, *const hname[] = { "h0", "h1", "h2" };

struct made { mc_node *all[MOST], *last[MOST], *y[MOST]; };

static mc_graph *variables(mc_node **xs, mc_node **init)
{
    mc_graph *g = mc_graph_new();
    for (int i = 0; i < 2; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        xs[i] = mc_input_sized(g, name, MC_FLOAT64, 3, (int64_t[]){ -1, -1, 3 });
        snprintf(name, sizeof name, "i%d", i);
        init[i] = mc_input_sized(g, name, MC_FLOAT64, 2, (int64_t[]){ -1, 3 });
    }
    mc_input_sized(g, "W", MC_FLOAT64, 2, (int64_t[]){ 3, 3 });
    mc_input_sized(g, "V", MC_FLOAT64, 2, (int64_t[]){ 3, 3 });
    mc_input_sized(g, "b", MC_FLOAT64, 1, (int64_t[]){ 3 });
    return g;
}

static void as_scan(mc_graph *g, const struct loop *l, mc_node **xs, mc_node **init, struct made *m)
{
    mc_node *x[MOST], *h[MOST], *next[MOST], *y[MOST];
    struct mc_bind bind[2 * MOST];
    int n = 0;
    for (int i = 0; i < l->nx; i++) {
        x[i] = mc_scan_element(xs[i]);
        bind[n++] = (struct mc_bind){ xname[i], x[i], NULL };
    }
    for (int i = 0; i < l->nh; i++) {
        h[i] = mc_scan_state(init[i]);
        bind[n++] = (struct mc_bind){ hname[i], h[i], NULL };
    }
    for (int i = 0; i < l->nh; i++) {
        next[i] = mc_expr(g, l->next[i], bind, n);
    }
    for (int i = 0; i < l->ny; i++) {
        y[i] = mc_expr(g, l->collect[i], bind, n);
    }
    mc_node *r = mc_scan(g, &(mc_scan_spec){ .steps = l->nx ? NULL : mc_node_int(g, STEPS),
                                             .element = x,
                                             .nelement = l->nx,
                                             .state = h,
                                             .next = next,
                                             .nstate = l->nh,
                                             .collect = y,
                                             .ncollect = l->ny,
                                             .backwards = l->backwards });
    CHECK(!mc_is_error(r), "%s", mc_error(g));
    for (int i = 0; i < l->nh; i++) {
        m->all[i] = mc_item(r, i);
        m->last[i] = mc_item(r, l->nh + l->ny + i);
    }
    for (int i = 0; i < l->ny; i++) {
        m->y[i] = mc_item(r, l->nh + i);
    }
}

static void as_steps(mc_graph *g, const struct loop *l, mc_node **xs, mc_node **init, struct made *m)
{
    mc_node *h[MOST], *all[MOST][STEPS], *y[MOST][STEPS];
    memcpy(h, init, sizeof *h * (size_t)l->nh);
    for (int t = 0; t < STEPS; t++) {
        struct mc_bind bind[2 * MOST];
        int n = 0;
        for (int i = 0; i < l->nx; i++) {
            mc_node *at = mc_node_int(g, l->backwards ? STEPS - 1 - t : t);
            bind[n++] = (struct mc_bind){
                xname[i],
                mc_expr(g, "x[t]", (struct mc_bind[]){ { "x", xs[i], NULL }, { "t", at, NULL } }, 2), NULL
            };
        }
        for (int i = 0; i < l->nh; i++) {
            bind[n++] = (struct mc_bind){ hname[i], h[i], NULL };
        }
        for (int i = 0; i < l->ny; i++) {
            y[i][t] = mc_expr(g, l->collect[i], bind, n);
        }
        for (int i = 0; i < l->nh; i++) {
            all[i][t] = mc_expr(g, l->next[i], bind, n);
        }
        for (int i = 0; i < l->nh; i++) {
            h[i] = all[i][t];
        }
    }
    for (int i = 0; i < l->nh; i++) {
        m->all[i] = mc_call_op(g, "stack", STEPS, all[i], NULL);
        m->last[i] = h[i];
    }
    for (int i = 0; i < l->ny; i++) {
        m->y[i] = mc_call_op(g, "stack", STEPS, y[i], NULL);
    }
}

static mc_node *named(mc_graph *g, const char *name)
{
    return mc_dict_get(&g->names, name);
}

static mc_array *drawn(int rank, const int64_t *dims)
{
    mc_array *a = mc_array_empty(MC_FLOAT64, rank, dims);
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        ((double *)(void *)a->data)[i] = test_uniform(-1, 1);
    }
    return a;
}

static double furthest(const mc_array *a, const mc_array *b)
{
    double d = mc_dims_equal(a->rank, a->dims, b->rank, b->dims) ? 0 : INFINITY;
    for (int64_t i = 0; d < INFINITY && i < mc_array_size(a); i++) {
        const double x = mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size),
                     y = mc_load_f64(b->dtype, b->data + (size_t)i * mc_dtypes[b->dtype].size);
        d = x == y ? d : isnan(x) || isnan(y) ? INFINITY : MC_MAX(d, fabs(x - y) / MC_MAX(1, fabs(y)));
    }
    return d;
}

/* A scalar that depends on all results. */
static mc_node *cost_of(mc_graph *g, const struct loop *l, const struct made *m)
{
    mc_node *sum = NULL;
    for (int i = 0; i < l->nh; i++) {
        mc_node *part = mc_expr(g, "sum(sqr(a) * 0.3) + sum(sin(z))",
                                (struct mc_bind[]){ { "a", m->all[i], NULL }, { "z", m->last[i], NULL } }, 2);
        sum = sum ? mc_expr(g, "a + b", (struct mc_bind[]){ { "a", sum, NULL }, { "b", part, NULL } }, 2)
                  : part;
    }
    for (int i = 0; i < l->ny; i++) {
        mc_node *part = mc_expr(g, "sum(cos(y))", (struct mc_bind[]){ { "y", m->y[i], NULL } }, 1);
        sum = sum ? mc_expr(g, "a + b", (struct mc_bind[]){ { "a", sum, NULL }, { "b", part, NULL } }, 2)
                  : part;
    }
    return sum;
}

/* Results, gradients and gradients of gradients of both are equal. */
static void same(const struct loop *l, const char *mode)
{
    mc_node *xs[2], *init[2], *out[2][64] = { { 0 } };
    mc_graph *g = variables(xs, init);
    mc_node *wrt[] = { xs[0], init[0], named(g, "W"), named(g, "V"), named(g, "b"), xs[1], init[1] };
    int nout = 0;
    for (int way = 0; way < 2; way++) {
        struct made m;
        mc_node *grad[7], *second[7];
        int n = 0;
        (way ? as_steps : as_scan)(g, l, xs, init, &m);
        for (int i = 0; i < l->nh; i++) {
            out[way][n++] = m.all[i];
            out[way][n++] = m.last[i];
        }
        for (int i = 0; i < l->ny; i++) {
            out[way][n++] = m.y[i];
        }
        mc_node *cost = cost_of(g, l, &m), *again = NULL;
        REQUIRE(mc_grads(cost, 7, wrt, grad, &(mc_grad_spec){ .disconnected = MC_DISCONNECTED_ZERO }) ==
                    MC_OK,
                "%s", mc_error(g));
        for (int i = 0; i < 7; i++) {
            out[way][n++] = grad[i];
            mc_node *part = mc_expr(g, "sum(sqr(a))", (struct mc_bind[]){ { "a", grad[i], NULL } }, 1);
            again = again ? mc_expr(g, "a + b",
                                    (struct mc_bind[]){ { "a", again, NULL }, { "b", part, NULL } }, 2)
                          : part;
        }
        REQUIRE(mc_grads(again, 7, wrt, second, &(mc_grad_spec){ .disconnected = MC_DISCONNECTED_ZERO }) ==
                    MC_OK,
                "%s", mc_error(g));
        for (int i = 0; i < 7; i++) {
            out[way][n++] = second[i];
        }
        nout = n;
    }
    mc_node *both[128];
    memcpy(both, out[0], sizeof *both * (size_t)nout);
    memcpy(both + nout, out[1], sizeof *both * (size_t)nout);
    mc_node *in[] = { xs[0], xs[1], init[0], init[1], wrt[2], wrt[3], wrt[4] };
    mc_function *f = mc_compile(g, &(mc_spec){ .input = in,
                                               .ninput = 7,
                                               .output = both,
                                               .noutput = 2 * nout,
                                               .mode = mode,
                                               .on_unused = "ignore" });
    REQUIRE(f, "%s", mc_last_error());
    for (int round = 0; round < 2; round++) {
        const int64_t batch = 2 + round;
        mc_arg arg[7], res[128];
        mc_array *a[7], *r[128] = { 0 };
        for (int i = 0; i < 7; i++) {
            a[i] = i < 2   ? drawn(3, (int64_t[]){ STEPS, batch, 3 })
                   : i < 4 ? drawn(2, (int64_t[]){ batch, 3 })
                           : drawn(i < 6 ? 2 : 1, (int64_t[]){ 3, 3 });
            arg[i] = mc_arg_array(a[i]);
        }
        for (int i = 0; i < 2 * nout; i++) {
            res[i] = mc_arg_slot(&r[i]);
        }
        CHECK(mc_call_args(f, 7, arg, 2 * nout, res) == MC_OK, "%s", mc_last_error());
        for (int i = 0; i < nout && r[0]; i++) {
            const double d = furthest(r[i], r[nout + i]);
            CHECK(d < 1e-11, "result %d of '%s' differs by %g in mode %s", i,
                  l->nh ? l->next[0] : l->collect[0], d, mode ? mode : "");
        }
        for (int i = 0; i < 7; i++) {
            mc_array_unref(&a[i]);
        }
        for (int i = 0; i < 2 * nout; i++) {
            mc_array_unref(&r[i]);
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
}

static const struct loop loops[] = {
    { 1, 1, 0, { "tanh(dot(x0, W) + dot(h0, V) + b)" }, { NULL }, false },
    { 1, 1, 1, { "tanh(dot(x0, W) + dot(h0, V) + b)" }, { "softmax(dot(h0, W))" }, true },
    { 2, 2, 1, { "h0 * 0.5 + x1 * h1", "sin(h0 + x0)" }, { "x0 * h0 + h1" }, false },
    { 0, 1, 0, { "dot(h0, W) * 0.5 + b" }, { NULL }, false },
    { 0, 2, 0, { "h1", "h0 + h1 * 0.25" }, { NULL }, false },      /* a state that is only passed on */
    { 1, 0, 2, { NULL }, { "x0 * x0", "sum(x0, axis=1)" }, false },
    { 1, 1, 1, { "h0" }, { "h0 + x0" }, false },
    { 1, 1, 1, { "x0" }, { "b * h0" }, true },
    { 1, 1, 0, { "where(x0 > 0, h0, x0 * W[0])" }, { NULL }, false },
};

TEST(loops_equal_their_steps)
{
    for (size_t i = 0; i < NELEM(loops); i++) {
        same(&loops[i], NULL);
    }
}

TEST(loops_equal_their_steps_in_other_modes)
{
    for (size_t i = 0; i < NELEM(loops); i += 2) {
        same(&loops[i], "FAST_COMPILE");
        same(&loops[i], "DEBUG");
        same(&loops[i], "NANGUARD");
    }
}

/* ---- text ---- */

TEST(loops_are_printed_and_read_back)
{
    static const char *const texts[] = {
        "y = scan(x in xs, h from h0: h = tanh(dot(x, W) + h))",
        "y, z = scan(x in xs, h from h0: z = x * 2; h = h + z; yield last h, z)",
        "y = scan(steps=7, a from 1.0f32, b from 2.0f32: a, b = b, a; yield a, b, last a)",
        "y = scan(steps=7, a from 1.0f32: old = a; a = a * 2; yield old, a)",
        "y = scan(x in xs, a from 1.0f32: a = a + sum(x); yield a; until a > 3)",
        "y = scan(x in xs[:3], h from h0: u = uniform(rng, shape(h), dtype='float32'); h = h * u)",
        "y = scan(x in xs, W = W * 2: yield scan(r in x: yield dot(r, W)))",
    };
    for (size_t i = 0; i < NELEM(texts); i++) {
        mc_graph *g = mc_graph_new();
        mc_random(g, "rng", 1);
        mc_formula(g, "input xs float32[?, 2, 3]; input h0 float32[2, 3]; input W float32[3, 3]");
        mc_node *n = mc_formula(g, texts[i]), *again;
        if (CHECK(!mc_is_error(n), "%s: %s", texts[i], mc_error(g))) {
            mc_node *out[8];
            for (int k = 0; k < n->nout; k++) {
                out[k] = mc_item(n, k);
            }
            char *text = mc_graph_text(g, n->nout, out);
            mc_graph *h = mc_graph_new();
            mc_random(h, "rng", 1);
            char *own = strstr(text, "shared rng"); /* is there already */
            if (own) {
                memset(own, ' ', strcspn(own, "\n"));
            }
            again = mc_formula(h, text);
            CHECK(!mc_is_error(again), "%s\nis printed as\n%s\n%s", texts[i], text, mc_error(h));
            mc_text_free(text);
            mc_graph_free(h);
        }
        mc_graph_free(g);
    }
}

/* A loop's node, printed and read in the same graph, is the same node. */
TEST(equal_loops_are_one_node)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input xs float32[?, 3]; input h0 float32[3]");
    mc_node *n = mc_formula(g, "scan(x in xs, h from h0: z = x * 2; h = h + z; yield z, last h)"),
            *loop = n->nout > 1 ? n->in[0]->in[0] : n;
    char *text = mc_node_text(loop);
    mc_node *again = mc_formula(g, text);
    CHECK(!mc_is_error(again) && again->nout > 1 && again->in[0]->in[0] == loop, "%s\n%s", text, mc_error(g));
    mc_text_free(text);
    mc_graph_free(g);
}

/* ---- mistakes ---- */

TEST(wrong_loops)
{
    static const struct { const char *text, *says; } rows[] = {
        { "scan(x in xs, h from h0: h = sum(h))", "state 'h' is float32[2, 3] before a step and after it float32" },
        { "scan(x in xs, h from h0: h = cast(h, 'float64'))", "state 'h' is float32[2, 3] before a step and after it float64[2, 3]" },
        { "scan(x in h0, y in W: yield x + y)", "sequence 'y' has 3 elements, but sequence 'x' has 2" },
        { "scan(x in h0[0, 0]: yield x)", "a scalar has no elements" },
        { "scan(h from h0: h = h + 1)", "there is neither a sequence nor a number of steps" },
        { "scan(steps=-2, h from h0: h = h + 1)", "the number of steps is -2" },
        { "scan(steps=1.5, h from h0: h = h + 1)", "must be an integer scalar" },
        { "scan(x on xs: yield x)", "expected 'in', 'from' or '='" },
        { "scan(x in xs: yield last x)", "expected the name of a state after 'last'" },
        { "scan(x in xs: yield x, count)", "'count' needs 'until' or 'halt'" },
        { "scan(x in xs, h from h0: h = h + x; yield h; until h)", "the condition that ends the loop" },
        { "scan(x in xs)", "':'" },
        { "scan(steps=3, h from h0: yield h; a, b = h)", "2 names are assigned 1 values" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input xs float32[?, 2, 3]; input h0 float32[2, 3]; input W float32[3, 3]");
        mc_node *n = mc_formula(g, rows[i].text);
        CHECK(mc_is_error(n) && strstr(mc_error(g), rows[i].says), "%s: %s", rows[i].text, mc_error(g));
        mc_graph_free(g);
    }
}

/* Sizes that only a call shows to differ. */
TEST(wrong_sizes_in_a_call)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g,
               "input a float32[?, 2]; input b float32[?, 2]; input n int64; input h float32[?]\n"
               "y = scan(x in a, z in b: yield x + z)\ns = scan(steps=n, h from h: h = concatenate(h, h))");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "a, b", .outputs = "y" }),
                *e = mc_compile(g, &(mc_spec){ .inputs = "n, h", .outputs = "s" });
    REQUIRE(f && e, "%s", mc_last_error());
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 2)), *b = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 2)),
             *h = mc_array_new(MC_FLOAT32, MC_SHAPE(3)), *y = NULL;
    CHECK(mc_call(f, MC_IN(a, b), MC_OUT(&y)) == MC_ESHAPE &&
              strstr(mc_last_error(), "sequence 'z' has 4 elements, but sequence 'x' has 3"),
          "%s", mc_last_error());
    CHECK(mc_call(e, MC_IN(2, h), MC_OUT(&y)) == MC_ESHAPE && strstr(mc_last_error(), "state 'h'"), "%s",
          mc_last_error());
    CHECK(mc_call(f, MC_IN(a, a), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&a), mc_array_unref(&b), mc_array_unref(&h), mc_array_unref(&y);
    mc_function_free(f), mc_function_free(e);
    mc_graph_free(g);
}

TEST(stand_ins_outside_of_a_loop)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_formula(g, "input x float32[?]"), *e = mc_scan_element(x), *y = mc_formula(g, "x + 1");
    (void)y;
    mc_function *f = mc_compile(g, &(mc_spec){ .input = &x, .ninput = 1, .output = &e, .noutput = 1 });
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(3)), *r = NULL;
    CHECK(!f || (mc_call(f, MC_IN(a), MC_OUT(&r)) < 0 &&
                 strstr(mc_last_error(), "no loop has it among its elements")),
          "%s", mc_last_error());
    mc_array_unref(&a), mc_array_unref(&r);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Products with constants are made before and after the loop: none is left in it. */
TEST(products_leave_the_loop)
{
    mc_graph *g = mc_graph_new();
    mc_formula(
        g, "input xs float32[?, 8, 3]; input h0 float32[8, 4]; input W float32[3, 4]; input U float32[4, 4]\n"
           "hs = scan(x in xs, h from h0: h = tanh(dot(x, W) + dot(h, U)))");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "xs, h0, W, U",
                       .outputs = "grad(sum(hs), W), grad(sum(hs), U), grad(sum(hs), xs)" });
    REQUIRE(f, "%s", mc_last_error());
    const char *text = mc_function_graph_text(f);
    int found = 0, inside = 0;
    for (const char *line = text; (line = strstr(line, "scan(")); line++) {
        const char *body = strstr(line, ":\n"), *end = strstr(line, "yield ");
        found++;
        for (const char *p = body; p && (p = strstr(p, "dot(")) && p < end; p++) {
            inside++;
        }
    }
    CHECK(found == 2 && inside == 2, "%d loops, %d products in them:\n%s", found, inside, text);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Gates side by side, as in an LSTM: their gradients are joined where the product reads them.  The same steps
 * are written out, with one matrix for each gate. */
TEST(gates_side_by_side)
{
    mc_graph *g = mc_graph_new();
    mc_formula(
        g,
        "input xs float64[3, 5, 7]; input h0 float64[5, 8]; input W float64[7, 16]; input U float64[8, 16]\n"
        "hs = scan(x in xs, h from h0: p = dot(x, W) + dot(h, U); f = sigmoid(p[:, :8]); "
        "h = f * h + (1 - f) * tanh(p[:, 8:]))");
    mc_formula(g, "h1 = sigmoid(dot(xs[0], W[:, :8]) + dot(h0, U[:, :8])) * h0 + "
                  "(1 - sigmoid(dot(xs[0], W[:, :8]) + dot(h0, U[:, :8]))) * tanh(dot(xs[0], W[:, 8:]) + "
                  "dot(h0, U[:, 8:]))\n"
                  "h2 = sigmoid(dot(xs[1], W[:, :8]) + dot(h1, U[:, :8])) * h1 + "
                  "(1 - sigmoid(dot(xs[1], W[:, :8]) + dot(h1, U[:, :8]))) * tanh(dot(xs[1], W[:, 8:]) + "
                  "dot(h1, U[:, 8:]))\n"
                  "h3 = sigmoid(dot(xs[2], W[:, :8]) + dot(h2, U[:, :8])) * h2 + "
                  "(1 - sigmoid(dot(xs[2], W[:, :8]) + dot(h2, U[:, :8]))) * tanh(dot(xs[2], W[:, 8:]) + "
                  "dot(h2, U[:, 8:]))\n"
                  "a = sum(sqr(hs)); b = sum(sqr(h1)) + sum(sqr(h2)) + sum(sqr(h3))");
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .inputs = "xs, h0, W, U",
                                            .outputs = "grad(a, [xs, h0, W, U]), grad(b, [xs, h0, W, U])" });
    REQUIRE(f, "%s", mc_last_error());
    mc_array *in[4] = { mc_array_new(MC_FLOAT64, MC_SHAPE(3, 5, 7)), mc_array_new(MC_FLOAT64, MC_SHAPE(5, 8)),
                        mc_array_new(MC_FLOAT64, MC_SHAPE(7, 16)), mc_array_new(MC_FLOAT64, MC_SHAPE(8, 16)) };
    mc_array *out[8] = { NULL };
    for (int i = 0; i < 4; i++) {
        for (int64_t k = 0; k < mc_array_size(in[i]); k++) {
            ((double *)mc_array_data(in[i]))[k] = (double)((k * 7919 + i * 31) % 101) / 101 - 0.5;
        }
    }
    for (int k = 0; k < 3; k++) { /* on a GPU the later calls are captured */
        REQUIRE(mc_call(f, MC_IN(in[0], in[1], in[2], in[3]),
                        MC_OUT(&out[0], &out[1], &out[2], &out[3], &out[4], &out[5], &out[6], &out[7])) ==
                    MC_OK,
                "%s", mc_last_error());
    }
    for (int i = 0; i < 4; i++) {
        CHECK(mc_array_differs(out[i], out[4 + i], 1e-11, 1e-12) < 0, "gradient %d", i);
    }
    for (int i = 0; i < 8; i++) {
        mc_array_unref(&out[i]);
    }
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&in[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* States of 3 floats begin at no multiple of 16 bytes. */
TEST(states_of_odd_sizes)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input xs float32[?, 3]; input W float32[3, 3]\n"
                  "hs = scan(x in xs, h from zeros([3], dtype='float32'): h = dot(h, W) + 2 * x)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "xs, W", .outputs = "hs, grad(sum(hs), xs)" });
    REQUIRE(f, "%s", mc_last_error());
    enum { LENGTH = 7 };
    mc_array *xs = mc_array_new(MC_FLOAT32, MC_SHAPE(LENGTH, 3)),
             *W = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 3)), *hs = NULL, *dx = NULL;
    float *x = mc_array_data(xs), *w = mc_array_data(W), h[3] = { 0 };
    for (int i = 0; i < 3 * LENGTH; i++) {
        x[i] = (float)(i % 5) - 2;
    }
    memcpy(w, (float[]){ 0, 1, 0, 0, 0, 1, -1, 0, 0 }, 9 * sizeof *w);
    for (int k = 0; k < 3; k++) {
        REQUIRE(mc_call(f, MC_IN(xs, W), MC_OUT(&hs, &dx)) == MC_OK, "%s", mc_last_error());
    }
    for (int t = 0; t < LENGTH; t++) {
        const float *got = (float *)mc_array_data(hs) + 3 * t;
        const float next[3] = { -h[2] + 2 * x[3 * t], h[0] + 2 * x[3 * t + 1], h[1] + 2 * x[3 * t + 2] };
        memcpy(h, next, sizeof h);
        CHECK(memcmp(got, h, sizeof h) == 0, "step %d: %g %g %g", t, got[0], got[1], got[2]);
    }
    CHECK(((float *)mc_array_data(dx))[3 * LENGTH - 1] == 2, "the last step's gradient");
    mc_array_unref(&xs), mc_array_unref(&W), mc_array_unref(&hs), mc_array_unref(&dx);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A failed check of an index in a body is an error of the call, on a GPU as well. */
TEST(an_index_out_of_range_in_a_body)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input ids int64[?]; input E float32[4, 2]\n"
                  "h = scan(i in ids, h from zeros([2], dtype='float32'): h = h + E[i]; yield last h)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "ids, E", .outputs = "h" });
    REQUIRE(f, "%s", mc_last_error());
    mc_array *ids = mc_array_new(MC_INT64, MC_SHAPE(3)), *E = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 2)),
             *h = NULL;
    int64_t *id = mc_array_data(ids);
    for (int k = 0; k < 4; k++) {
        id[1] = k == 2 ? 4 : 3;
        const mc_status s = mc_call(f, MC_IN(ids, E), MC_OUT(&h));
        CHECK(k == 2 ? s == MC_EINDEX && strstr(mc_last_error(), "index 4 is out of range") &&
                           strstr(mc_last_error(), "scan(")
                     : s == MC_OK,
              "call %d: %s", k, mc_last_error());
    }
    mc_array_unref(&ids), mc_array_unref(&E), mc_array_unref(&h);
    mc_function_free(f);
    mc_graph_free(g);
}
