/* rules_product.c: matrix products. Scalar factors and signs move out of the operands, so that the factor
 * becomes alpha. Transposes stay in the operands: a solver reads strides. */
#include "rewrite/rewrite.h"

static bool y_is_number(const struct mc_match *m)
{
    return mc_is_float(m->root->type.dtype) && mc_letter(m, 'y')->type.rank == 0 &&
           mc_letter_may_wait(m, 'y');
}

static bool x_is_thin(const struct mc_match *m)
{
    return mc_letter(m, 'x')->type.dims[1] == 1 && mc_letter(m, 'z')->type.dims[0] == 1;
}

/* A product with a matrix of zeros is zero. (FINITE: with an infinity it would be NaN.) */
static mc_node *dot_of_zeros(const struct mc_match *m)
{
    for (int i = 0; i < 2; i++) {
        double v;
        const mc_node *a = m->root->in[i];
        if (a->op->form == FORM_ALLOC && mc_const_number(a->in[0], &v) && v >= 0 && v <= 0) {
            return mc_node_like(m->root, 0);
        }
    }
    return NULL;
}

static const struct mc_rule rows[] = {
    { "dot(x * y, z)",          "dot(x, z) * y",          ROUND, .when = y_is_number, .once = true },
    { "dot(x, z * y)",          "dot(x, z) * y",          ROUND, .when = y_is_number, .once = true },
    { "dot(x / y, z)",          "dot(x, z) / y",          ROUND, .when = y_is_number, .once = true },
    { "dot(x, z / y)",          "dot(x, z) / y",          ROUND, .when = y_is_number, .once = true },
    { "dot(-x, z)",             "-dot(x, z)",             FINITE, .once = true },
    { "dot(x, -z)",             "-dot(x, z)",             FINITE, .once = true },
    { "dot(x, z)",              "x * z",                  FINITE, .when = x_is_thin, .name = "outer product" },
    { "batched_dot(x * y, z)",  "batched_dot(x, z) * y",  ROUND, .when = y_is_number, .once = true },
    { "batched_dot(x, z * y)",  "batched_dot(x, z) * y",  ROUND, .when = y_is_number, .once = true },
    { "batched_dot(-x, z)",     "-batched_dot(x, z)",     FINITE, .once = true },
    { "batched_dot(x, -z)",     "-batched_dot(x, z)",     FINITE, .once = true },
    { .op = "dot", .make = dot_of_zeros, .promise = FINITE, .name = "dot of zeros", .sample = "dot(zeros_like(x), transpose(y))" },
};
const struct mc_rule_table mc_rules_product = { rows, (int)NELEM(rows) };
