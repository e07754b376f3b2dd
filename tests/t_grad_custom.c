/* t_grad_custom.c: gradients through users' ops, with callbacks and with kernel text. */
#include "grad_case.h"

/* (a * b, a + b), with its gradient; arg says what is wrong with it. */
enum { RIGHT, TWICE, FOREIGN, CUT };

static mc_status pair_run(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    (void)arg, (void)nin, (void)nout;
    for (int64_t i = 0; i < mc_array_size(in[0]); i++) {
        double a = mc_load_f64(MC_FLOAT64, in[0]->data + 8 * i),
               b = mc_load_f64(MC_FLOAT64, in[1]->data + 8 * i);
        mc_store_f64(MC_FLOAT64, out[0]->data + 8 * i, a * b);
        mc_store_f64(MC_FLOAT64, out[1]->data + 8 * i, a + b);
    }
    return MC_OK;
}

static mc_graph *elsewhere;

static mc_node *pair_grad(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                          mc_node *const *g, int wrt)
{
    int how = *(int *)arg;
    mc_node *part = nin == 2 && nout == 2
                        ? mc_op(in[0]->graph, "mul", 2, (mc_node *[]){ g[0], in[1 - wrt] }, NULL)
                        : NULL;
    part = mc_op(out[0]->graph, "add", 2, (mc_node *[]){ part, g[1] }, NULL);
    return how == RIGHT     ? part
           : how == TWICE   ? mc_op(part->graph, "add", 2, (mc_node *[]){ part, part }, NULL)
           : how == FOREIGN ? mc_number(elsewhere, MC_FLOAT64, 1)
                            : NULL;
}

TEST(gradients_of_ops_with_callbacks)
{
    static const struct { int how; const char *f; mc_status status; const char *says; } row[] = {
        { RIGHT, "pair(u, v)[0]", MC_OK, "" },                      /* the other result's gradient is given as zeros */
        { RIGHT, "pair(u, v)[1] ** 2", MC_OK, "" },
        { RIGHT, "p, q = pair(u * 2, v); p * q", MC_OK, "" },
        { TWICE, "pair(u, v)[0]", MC_ECHECK, "verify_grad: by u[" },
        { FOREIGN, "pair(u, v)[0]", MC_EGRAD, "pair: its gradient belongs to another graph" },
        { CUT, "pair(u, v)[0]", MC_EGRAD, "the cost does not depend on u" },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        struct grad_case w = grad_case_new();
        int how = row[i].how;
        double worst;
        elsewhere = mc_graph_new();
        CHECK(mc_register(w.g, &(mc_custom){ .name = "pair",
                                             .nin = 2,
                                             .nout = 2,
                                             .run = pair_run,
                                             .grad = pair_grad,
                                             .arg = &how }) == MC_OK,
              "%s", mc_last_error());
        mc_status s = mc_verify_grad(mc_formula(w.g, row[i].f), 2, w.leaf, w.value, &worst);
        CHECK(s == row[i].status && (s == MC_OK || strstr(mc_last_error(), row[i].says)), "%s, way %d: %s",
              row[i].f, how, mc_last_error());
        mc_graph_free(elsewhere);
        grad_case_free(&w);
    }
    struct grad_case w = grad_case_new();
    CHECK(mc_register(w.g, &(mc_custom){ .name = "blunt", .nin = 1, .nout = 1, .run = pair_run }) == MC_OK,
          "%s", mc_last_error());
    CHECK(mc_is_error(mc_formula(w.g, "grad(sum(blunt(u)), u)")) &&
              strstr(mc_error(w.g), "blunt has no gradient with respect to argument 1: blunt(u)"),
          "%s", mc_error(w.g));
    grad_case_free(&w);
}

/* A row of kernel text has its derivatives as formulas, and broadcasts like any scalar op. */
TEST(gradients_of_ops_with_kernel_text)
{
    struct grad_case w = grad_case_new();
    mc_custom op = { .name = "cubic",
                     .nin = 2,
                     .nout = 1,
                     .kernel = "a * a * b",
                     .kernel_grad = { "2 * g * a * b", "g * sqr(a)" } };
    CHECK(mc_register(w.g, &op) == MC_OK, "%s", mc_last_error());
    mc_node *y = mc_formula(w.g, "cubic(m, r)"), *g = mc_formula(w.g, "m + n");
    mc_name(mc_Lop(y, mc_var(w.g, "m"), g), "da"); /* with a known gradient the kernel itself need not run */
    mc_name(mc_Lop(y, mc_var(w.g, "r"), g), "db");
    CHECK(fabs(eval1(&w, mc_formula(w.g, "sum(abs(da - 2 * (m + n) * m * r)) + sum(abs(db - sum((m + n) * m "
                                         "* m, axis=0, keepdims=True)))"))) < 1e-13,
          "%s", mc_error(w.g));
    op = (mc_custom){
        .name = "half", .nin = 2, .nout = 1, .kernel = "a * b", .kernel_grad = { "g * b", NULL }
    };
    CHECK(mc_register(w.g, &op) == MC_OK, "%s", mc_last_error());
    CHECK(!mc_is_error(mc_formula(w.g, "grad(sum(half(u, v)), u)")), "%s", mc_error(w.g));
    CHECK(mc_is_error(mc_formula(w.g, "grad(sum(half(u, v)), v)")) &&
              strstr(mc_error(w.g), "half has no gradient with respect to argument 2"),
          "%s", mc_error(w.g));
    grad_case_free(&w);
}
