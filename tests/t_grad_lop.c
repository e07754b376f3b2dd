/* t_grad_lop.c: Lop and Rop: adjoint to each other, and what they leave behind. */
#include "grad_case.h"

static mc_array *matrix_of(struct grad_case *w, mc_node *y)
{
    mc_array *out = NULL;
    CHECK(mc_eval(NLEAF, w->leaf, w->value, 1, &y, &out) == MC_OK, "%s %s", mc_last_error(), mc_error(w->g));
    return out;
}

/* <Lop(f, x, a), b> = <a, Rop(f, x, b)>, and Rop is what differences along b say. */
TEST(Lop_and_Rop_are_adjoint)
{
    static const char *const functions[] = {
        "tanh(m) * u", "dot(m, n.T)", "softmax(m)", "reshape(m, [4, 3]) ** 2", "sum(m, axis=0)", "m[k] * 2", "m[:, ::2]", "exp(sum(m))",
        "join([m, n], axis=1)", "m / sum(m, axis=1, keepdims=True)", "3 * m", "floor(m) + m", "where(b, m, n * m)",
    };
    for (size_t f = 0; f < NELEM(functions); f++) {
        struct grad_case w = grad_case_new();
        mc_node *x = mc_var(w.g, "m"), *b = mc_var(w.g, "n"),
                *y = mc_name(mc_formula(w.g, functions[f]), "y");
        mc_node *a = mc_name(mc_formula(w.g, "cos(y * 3)"), "a");
        mc_node *l = mc_Lop(y, x, a), *r = mc_Rop(y, x, b);
        if (CHECK(mc_graph_status(w.g) == MC_OK, "%s: %s", functions[f], mc_error(w.g))) {
            mc_name(l, "l");
            mc_name(r, "right");
            double left = eval1(&w, mc_formula(w.g, "sum(l * n)")),
                   right = eval1(&w, mc_formula(w.g, "sum(a * right)"));
            CHECK(fabs(left - right) < 1e-12 * fmax(1, fabs(left)), "%s: %.17g and %.17g", functions[f], left,
                  right);

            mc_node *up = y, *down = y,
                    *moved[2] = { mc_formula(w.g, "m + 1e-6 * n"), mc_formula(w.g, "m - 1e-6 * n") };
            mc_graph_replace(w.g, 1, &x, &moved[0], 1, &up);
            mc_graph_replace(w.g, 1, &x, &moved[1], 1, &down);
            mc_name(up, "up");
            mc_name(down, "down");
            double off = eval1(&w, mc_formula(w.g, "max(abs((up - down) / 2e-6 - right))"));
            CHECK(off < 1e-8 * fmax(1, fabs(right)), "%s: Rop is off by %g", functions[f], off);
            mc_array *shape = matrix_of(&w, r), *like = matrix_of(&w, y);
            CHECK(shape && like && mc_dims_equal(shape->rank, shape->dims, like->rank, like->dims),
                  "%s: Rop has another shape", functions[f]);
            mc_array_unref(&shape);
            mc_array_unref(&like);
        }
        grad_case_free(&w);
    }
}

TEST(Rop_leaves_no_trace)
{
    struct grad_case w = grad_case_new();
    mc_node *r = mc_Rop(mc_formula(w.g, "reshape(tanh(n), [-1]) * 2"), mc_var(w.g, "n"), mc_var(w.g, "m"));
    size_t count;
    mc_node **list = mc_graph_reach(1, &r, &count);
    for (size_t i = 0; i < count; i++) {
        CHECK(list[i]->op != &mc_op_input || list[i]->name, "an input without a name is left in it");
    }
    CHECK(!mc_is_error(r) && count > 3, "%s", mc_error(w.g));
    mc_free(list);
    CHECK(mc_is_error(mc_Rop(mc_var(w.g, "u"), mc_var(w.g, "v"), mc_var(w.g, "v"))) &&
              mc_graph_status(w.g) == MC_EGRAD,
          "%s", mc_error(w.g));
    grad_case_free(&w);
}
