/* t_errors.c: what is said about mistakes.  Each row is a wrong call and a part of the message it must get,
 * for formulas, for specs of functions, for calls.  Every message names the op or the argument, shows the
 * operands with their types, and points at the formula or at the line. */
#include "agree.h"
#include <monochord_nn.h>

#include <string.h>

/* Inputs and variables that the rows speak of. */
static mc_graph *new_graph(void)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "y", MC_FLOAT32, 2);
    mc_input(g, "v", MC_FLOAT32, 1);
    mc_input(g, "i", MC_INT64, 1);
    mc_input(g, "k", MC_INT64, 0);
    mc_input(g, "b", MC_BOOL, 2);
    mc_input_sized(g, "A", MC_FLOAT32, MC_SHAPE(3, 4));
    mc_input_sized(g, "B", MC_FLOAT32, MC_SHAPE(5, 4));
    mc_shared_zeros(g, "W", MC_FLOAT32, MC_SHAPE(4, 2));
    mc_shared_zeros(g, "n", MC_INT32, MC_NOSHAPE);
    return g;
}

TEST(mistakes_in_formulas)
{
    static const struct { const char *formula; mc_status status; const char *says; } rows[] = {
        { "dot(A, B)",               MC_ESHAPE,  "dot: inner sizes 4 and 5 differ  [A: float32[3, 4], B: float32[5, 4]]\n    dot(A, B)\n    ^" },
        { "A + B",                   MC_ESHAPE,  "add: shapes (3, 4) and (5, 4) do not broadcast: sizes 3 and 5 on axis 0  [A: float32[3, 4], B:" },
        { "1 + tanh(A * B)",         MC_ESHAPE,  "    1 + tanh(A * B)\n               ^" },
        { "y[0, 0, 0]",              MC_ESHAPE,  "too many indices: 3 for a tensor of rank 2" },
        { "A[7]",                    MC_EINDEX,  "index 7 is out of range for axis 0 with size 3  [A: float32[3, 4]]" },
        { "A[:, -5]",                MC_EINDEX,  "index -5 is out of range for axis 1 with size 4" },
        { "A.shape[3]",              MC_EINDEX,  "index 3 is out of range for axis 0 with size 2" },
        { "k[0]",                    MC_ESHAPE,  "for a tensor of rank 0" },
        { "x[v]",                    MC_ESYNTAX, "an index must be a whole number, a slice, a list, a tensor of integers or a mask" },
        { "x[1:2:0]",                MC_ESYNTAX, "a slice cannot have step 0" },
        { "A[..., ...]",             MC_ESHAPE,  "only one ..." },
        { "reshape(A, [5, 3])",      MC_ESHAPE,  "reshape: 12 elements of shape (3, 4) do not fit shape (5, 3)" },
        { "reshape(A, [-1, -1])",    MC_ESHAPE,  "only one size may be -1" },
        { "sum(A, axis=2)",          MC_ESHAPE,  "sum: axis 2 is out of range for rank 2  [A: float32[3, 4]]" },
        { "sum(x, axis=[0, 0])",     MC_EARG,    "sum: axis 0 is given twice" },
        { "argmax(A, axis=-3)",      MC_ESHAPE,  "argmax: axis -3 is out of range for rank 2" },
        { "sum(A, axes=1)",          MC_ESYNTAX, "sum has no parameter 'axes'; did you mean 'axis'?" },
        { "sum()",                   MC_EARG,    "sum needs the argument 'x': sum(x, axis=None" },
        { "exp(A, B)",               MC_ESYNTAX, "exp takes 1 argument: exp(a)" },
        { "zeros([-1])",             MC_ESHAPE,  "size -1 of axis 0 is negative" },
        { "zeros([2**62, 8])",       MC_ESHAPE,  "overflow" },
        { "eye(2.5)",                MC_ETYPE,   "the shape must be a vector of integers" },
        { "eye(-1)",                 MC_ESHAPE,  "size -1 of axis 0 is negative" },
        { "eye(2, -3)",              MC_ESHAPE,  "size -3 of axis 0 is negative" },
        { "tri(2.5)",                MC_ETYPE,   "the shape must be a vector of integers" },
        { "tri(2, -3)",              MC_ESHAPE,  "size -3 of axis 0 is negative" },
        { "softmx(A)",               MC_ESYNTAX, "there is no function 'softmx'; did you mean 'softmax'?" },
        { "A + unknown",             MC_ESYNTAX, "there is no variable 'unknown'\n    A + unknown\n        ^" },
        { "A[",                      MC_ESYNTAX, "the formula ends where a value is expected" },
        { "x +* y",                  MC_ESYNTAX, "    x +* y\n       ^" },
        { "x.T.U",                   MC_ESYNTAX, "a tensor has no attribute '.U'" },
        { "1 = 2",                   MC_ESYNTAX, "expected the end of the statement, not '='" },
        { "x = 3",                   MC_EARG,    "'x' is an input and cannot be assigned" },
        { "'text'",                  MC_ESYNTAX, "expected a tensor" },
        { "",                        MC_ESYNTAX, "the formula is empty" },
        { "~A",                      MC_ETYPE,   "invert: needs integers or bool, not float32  [A: float32[3, 4]]" },
        { "b - b",                   MC_ETYPE,   "sub: not defined for bool; use xor or invert" },
        { "cast(A, 'float99')",      MC_ESYNTAX, "dtype" },
        { "take(A, 3.5)",            MC_ETYPE,   "take: the indices must be integers, not float64" },
        { "join([A, B], axis=1)",    MC_ESHAPE,  "join: sizes 3 and 5 differ on axis 0 (argument 2)" },
        { "alloc(A, [2, 2])",        MC_ESHAPE,  "alloc: size 3 of axis 0 of the value does not broadcast to size 2" },
        { "dimshuffle(A, order=[0, 0])", MC_ESHAPE, "dimshuffle: 0 is not an axis of rank 2, or is given twice" },
        { "max(A[:0])",              MC_ESHAPE,  "max: the max of an empty array is not defined  [A[:0]: float32[0, 4]]" },
        { "tile(A, [-1])",           MC_ESHAPE,  "tile: the number of repeats, -1, is negative" },
        { "grad(x, x)",              MC_EGRAD,   "grad: the cost must be a float scalar, not float32[?, ?]; take its sum or mean" },
        { "grad(sum(v), W)",         MC_EGRAD,   "grad: the cost does not depend on W" },
        { "crossentropy_1hot(A, A)", MC_ESYNTAX, "crossentropy_1hot" },
        { "t = A + 1; u = t * 2\nw = dot(u, B)", MC_ESHAPE, "    w = dot(u, B)\n        ^" },
    };
    for (size_t r = 0; r < NELEM(rows); r++) {
        mc_graph *g = new_graph();
        mc_node *y = mc_formula(g, rows[r].formula);
        CHECK(mc_is_error(y) && strstr(mc_error(g), rows[r].says), "%s: '%s' is not in: %s", rows[r].formula,
              rows[r].says, mc_error(g));
        CHECK(mc_graph_status(g) == rows[r].status, "%s: %s, not %s", rows[r].formula,
              mc_status_name(mc_graph_status(g)), mc_status_name(rows[r].status));
        CHECK(strstr(mc_error(g), "t_errors.c:"), "%s: no line in: %s", rows[r].formula, mc_error(g));
        CHECK(mc_is_error(mc_add(y, mc_var(g, "x"))) && strstr(mc_error(g), rows[r].says),
              "the first message stays");
        CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x" }) &&
                  strstr(mc_last_error(), rows[r].says),
              "compiling says it again: %s", mc_last_error());
        mc_graph_free(g);
    }
}

TEST(mistakes_of_builders_name_the_line)
{
    mc_graph *g = new_graph(), *h = new_graph();
    int line = __LINE__ + 1;
    mc_node *y = mc_dot(mc_var(g, "A"), mc_var(g, "B"));
    char where[40];
    snprintf(where, sizeof where, "t_errors.c:%d", line);
    CHECK(mc_is_error(y) && strstr(mc_error(g), "dot: inner sizes 4 and 5 differ  [A: float32[3, 4]") &&
              strstr(mc_error(g), where),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_add(mc_var(g, "A"), mc_var(h, "A"))) &&
              strstr(mc_error(g), "add: argument 2 belongs to another graph"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_exp(mc_var(g, "nothing"))) && strstr(mc_error(g), "nothing"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_input(g, "x", MC_FLOAT32, 1)) && strstr(mc_error(g), "'x'"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_input(g, "r", MC_FLOAT32, 9)) && strstr(mc_error(g), "rank"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(!mc_shared_zeros(g, "W", MC_FLOAT32, MC_SHAPE(2)) && strstr(mc_error(g), "'W'"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(!mc_shared_zeros(g, "big", MC_FLOAT32, MC_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)) &&
              mc_graph_status(g) < 0,
          "%s", mc_error(g));
    CHECK(mc_add(NULL, NULL) == NULL && strstr(mc_last_error(), "add"), "%s", mc_last_error());
    mc_graph_free(g);
    mc_graph_free(h);
}

TEST(mistakes_in_specs)
{
    static const struct { mc_spec spec; mc_status status; const char *says; } rows[] = {
        { { .inputs = "x, z", .outputs = "x" },                     MC_ESYNTAX, "there is no variable 'z'\n    x, z\n       ^" },
        { { .inputs = "x, x", .outputs = "x" },                     MC_EARG,    "inputs: 'x' is given twice" },
        { { .inputs = "W", .outputs = "W" },                        MC_EARG,    "inputs: 'W' is not an input" },
        { { .inputs = "x y", .outputs = "x" },                      MC_ESYNTAX, "expected ',' or ';', not 'y'" },
        { { .inputs = "x", .outputs = "x,, x" },                    MC_ESYNTAX, "expected a value, not ','" },
        { { .inputs = "x", .outputs = "x + y" },                    MC_EARG,    "'y' is needed but is not among the inputs" },
        { { .inputs = "x, y", .outputs = "x" },                     MC_EARG,    "input 'y' is not used; leave it out, or set on_unused" },
        { { .inputs = "x", .outputs = "x + q" },                    MC_ESYNTAX, "there is no variable 'q'" },
        { { .inputs = "x=1", .outputs = "x" },                      MC_ESHAPE,  "'x' has rank 2; only a scalar can have a number as default" },
        { { .inputs = "x=abc", .outputs = "x" },                    MC_ESYNTAX, "there is no variable 'abc'" },
        { { .inputs = "x", .outputs = "x", .updates = "x = x" },    MC_EARG,    "updates: 'x' is not a shared variable" },
        { { .inputs = "x", .outputs = "x", .updates = "Q = x" },    MC_EARG,    "updates: 'Q' is not a shared variable" },
        { { .inputs = "x", .outputs = "x", .updates = "W + 1" },    MC_ESYNTAX, "expected 'name = value'" },
        { { .inputs = "x", .updates = "W = sum(x)" },               MC_ESHAPE,  "updates: 'W' has rank 2, its new value rank 0" },
        { { .inputs = "A", .updates = "W = A" },                    MC_ESHAPE,  "updates: 'W' has size 4 on axis 0, its new value 3" },
        { { .inputs = "x", .updates = "n = sum(x)" },               MC_ETYPE,   "updates: 'n' has dtype int32, its new value float32; cast it" },
        { { .updates = "W = W; W = W" },                            MC_EARG,    "updates: 'W' is updated twice" },
        { { .inputs = "x", .outputs = "x", .mode = "FAST_RUM" },    MC_EARG,    "unknown mode 'FAST_RUM'; did you mean 'FAST_RUN'?" },
        { { .inputs = "x", .outputs = "x", .on_unused = "loud" },   MC_EARG,    "on_unused is 'loud'" },
        { { .inputs = "x", .outputs = "x", .excluding = "fushion" },  MC_EARG,  "excluding: no rule, tag or stage is named 'fushion'; did you mean 'fusion'?" },
        { { .inputs = "x", .outputs = "x", .excluding = "fusion:qqqqqqqqqqq" }, MC_EARG, "named 'qqqqqqqqqqq'; the stages are canonicalize," },
        { { .inputs = "x", .outputs = "x", .including = "reciprocl" }, MC_EARG, "including: no rule, tag or stage is named 'reciprocl'; did you mean 'reciprocal'?" },
        { { .inputs = "v", .outputs = "x", .givens = "x = v" },     MC_ESHAPE,  "givens: 'x' has rank 2, its replacement rank 1" },
        { { .inputs = "v", .outputs = "v", .givens = "q = v" },     MC_EARG,    "givens: there is no variable 'q'" },
        { { .inputs = "x", .outputs = "grad(sum(x), y)" },          MC_EGRAD,   "the cost does not depend on y" },
    };
    for (size_t r = 0; r < NELEM(rows); r++) {
        mc_graph *g = new_graph();
        mc_function *f = mc_compile(g, &rows[r].spec);
        CHECK(!f && mc_graph_status(g) == rows[r].status && strstr(mc_error(g), rows[r].says),
              "row %d: %s, '%s' is not in: %s", (int)r, mc_status_name(mc_graph_status(g)), rows[r].says,
              mc_error(g));
        CHECK(strstr(mc_error(g), "t_errors.c:"), "no line in: %s", mc_error(g));
        mc_function_free(f);
        mc_graph_clear_error(g); /* and the graph is as good as new */
        f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sum(x)", .mode = "FAST_COMPILE" });
        CHECK(f != NULL, "after row %d: %s", (int)r, mc_error(g));
        mc_function_free(f);
        mc_graph_free(g);
    }
    CHECK(!mc_compile(NULL, &(mc_spec){ .outputs = "1" }) && strstr(mc_last_error(), "graph"), "%s",
          mc_last_error());
    mc_graph *g = new_graph();
    CHECK(!mc_compile(g, NULL) && strstr(mc_last_error(), "spec"), "%s", mc_last_error());
    mc_graph_free(g);
}

/* Calls that do not fit: in a kernel and by the reference, with the formula step and what came. */
TEST(mistakes_in_calls)
{
    static const struct { const char *formula; int64_t x[2], y[2]; mc_status status; const char *says; } rows[] = {
        { "x + y",                       { 2, 3 }, { 2, 4 }, MC_ESHAPE, "step: add: shapes (2, 3) and (2, 4) do not broadcast: sizes 3 and 4 on axis 1\n    in x + y  [x: float32[2, 3], y: float32[2, 4]]" },
        { "x + y",                       { 1, 3 }, { 2, 3 }, MC_ESHAPE, "declare the size 1 to broadcast it" },
        { "dot(x, y)",                   { 2, 3 }, { 2, 3 }, MC_ESHAPE, "step: dot: inner sizes 3 and 2 differ\n    in dot(x, y)  [x: float32[2, 3], y:" },
        { "dot(x + 1, tanh(y)) * 2",     { 2, 3 }, { 2, 3 }, MC_ESHAPE, "tanh(y): float32[2, 3]]" },
        { "tanh(x * 2) + sum(y, axis=0)", { 2, 3 }, { 2, 4 }, MC_ESHAPE, "sizes 3 and 4 on axis 1" },
        { "softmax(dot(x, W)) + y",      { 2, 3 }, { 2, 2 }, MC_ESHAPE, "W: float32[4, 2]]" },
        { "join([x, y], axis=1)",        { 2, 3 }, { 3, 3 }, MC_ESHAPE, "join: sizes 2 and 3 differ on axis 0 (argument 2)\n    in join(" },
        { "reshape(x + y, [4, 2])",      { 2, 3 }, { 2, 3 }, MC_ESHAPE, "reshape: 6 elements of shape (2, 3) do not fit shape (4, 2)\n    in reshape(" },
        { "x[5] + y[0]",                 { 2, 3 }, { 2, 3 }, MC_EINDEX, "index 5 is out of range for axis 0 with size 2\n    in x[5]  [x: float32[2, 3]" },
        { "x[:, k] + y[:, 0]",           { 2, 3 }, { 2, 3 }, MC_EINDEX, "index 5 is out of range for axis 1 with size 3\n    in x[:, k]" },
        { "x[i] + y[0]",                 { 2, 3 }, { 2, 3 }, MC_EINDEX, "index 9 is out of range for axis 0 with size 2\n    in x[i]" },
        { "x[:, ::k - 5] + y",           { 2, 3 }, { 2, 3 }, MC_EINDEX, "the step of the slice is 0 on axis 1" },
        { "sum(crossentropy_1hot(softmax(x), i)) + y", { 2, 3 }, { 2, 3 }, MC_EINDEX, "index 9 is out of range for" },
        { "sum(crossentropy_softmax_1hot(x, i)) + y", { 2, 3 }, { 2, 3 }, MC_EINDEX, "index 9 is out of range for size 3\n    in " },
        { "max(x, axis=0) + y[0]",       { 0, 3 }, { 1, 3 }, MC_ESHAPE, "step: max: the max of an empty array is not defined" },
        { "zeros([k - 9]) + y[0, 0]",    { 2, 3 }, { 2, 3 }, MC_ESHAPE, "size -4 of axis 0 is negative" },
        { "zeros([k * 2 ** 40, 2 ** 30]) + y[0, 0]", { 2, 3 }, { 2, 3 }, MC_ESHAPE, "overflow" },
        { "alloc(y, [k, k])",            { 2, 3 }, { 2, 3 }, MC_ESHAPE, "alloc: size 2 of axis 0 of the value does not broadcast to size 5" },
        { "set_subtensor(x[:, 0], y[0])", { 2, 3 }, { 2, 3 }, MC_ESHAPE, "a value of shape (3,) does not broadcast to a region of shape (2,)" },
        { "specify_shape(x, [7, 7]) + y", { 2, 3 }, { 2, 3 }, MC_ESHAPE, "specify_shape: axis 0 has size 2, not 7" },
        { "assert_(x, k > 100) + y",     { 2, 3 }, { 2, 3 }, MC_ECHECK, "assert_: condition 1 does not hold\n    in assert_(" },
        { "sum(x[x > 100]) + sum(max(x[x > 100])) + y", { 2, 3 }, { 2, 3 }, MC_ESHAPE, "an empty array" },
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t r = 0; r < NELEM(rows) * NELEM(modes); r++) {
        size_t row = r / NELEM(modes);
        mc_graph *g = new_graph();
        mc_function *f = mc_compile(g, &(mc_spec){ .name = "step",
                                                   .inputs = "x, y, k, i",
                                                   .outputs = rows[row].formula,
                                                   .on_unused = "ignore",
                                                   .mode = modes[r % NELEM(modes)] });
        mc_array *x = mc_array_new(MC_FLOAT32, 2, rows[row].x), *y = mc_array_new(MC_FLOAT32, 2, rows[row].y),
                 *out = NULL;
        mc_array *i = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 0, 9 });
        if (CHECK(f != NULL, "%s: %s", rows[row].formula, mc_error(g))) {
            for (int turn = 0; turn < 2; turn++) { /* a second call says the same */
                mc_status s = mc_call(f, MC_IN(x, y, 5, i), MC_OUT(&out));
                CHECK(s == rows[row].status && strstr(mc_last_error(), rows[row].says),
                      "%s in %s: %s, '%s' is not in: %s", rows[row].formula, modes[r % NELEM(modes)],
                      mc_status_name(s), rows[row].says, mc_last_error());
                CHECK(out == NULL && strncmp(mc_last_error(), "step: ", 6) == 0, "%s", mc_last_error());
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&i);
        mc_array_unref(&out);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(mistakes_in_arguments_of_calls)
{
    mc_graph *g = new_graph();
    mc_function *f = mc_compile(
        g, &(mc_spec){ .name = "step", .inputs = "A, k, i", .outputs = "A * k + sum(i), k" });
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 4)), *i = mc_array_new(MC_INT64, MC_SHAPE(2)),
             *flat = mc_array_new(MC_FLOAT32, MC_SHAPE(12)), *wide = mc_array_new(MC_FLOAT64, MC_SHAPE(3, 4)),
             *tall = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 3)), *out = NULL,
             *half = mc_array_new(MC_FLOAT32, MC_SHAPE(2)), *bytes = mc_array_new(MC_UINT8, MC_SHAPE(3, 4));
    double number = 0;
    float small = 0;
    CHECK(f != NULL, "%s", mc_error(g));
#define REFUSED(in, out_, want, part)                                                                        \
    do {                                                                                                     \
        mc_status s_ = mc_call(f, in, out_);                                                                 \
        CHECK(s_ == (want) && strstr(mc_last_error(), part), "%s: '%s' is not in: %s", mc_status_name(s_),   \
              part, mc_last_error());                                                                        \
    } while (0)
    REFUSED(MC_IN(flat, 1, i), MC_OUT(&out), MC_ESHAPE,
            "step: input 0 ('A') is float32(12,), not float32[3, 4]");
    REFUSED(MC_IN(tall, 1, i), MC_OUT(&out), MC_ESHAPE,
            "step: input 0 ('A') is float32(4, 3), not float32[3, 4]");
    REFUSED(
        MC_IN(wide, 1, i), MC_OUT(&out), MC_ETYPE,
        "step: input 0 ('A') is float64, which float32 cannot hold; cast it, or set allow_input_downcast");
    REFUSED(MC_IN(a, 1, half), MC_OUT(&out), MC_ETYPE,
            "step: input 2 ('i') is float32, which int64 cannot hold");
    REFUSED(MC_IN(a, a, i), MC_OUT(&out), MC_ESHAPE, "step: input 1 ('k')");
    REFUSED(MC_IN(1, 1, i), MC_OUT(&out), MC_ESHAPE,
            "step: input 0 ('A') has rank 2; only rank 0 accepts a number");
    REFUSED(MC_IN(a, 1.5, i), MC_OUT(&out), MC_ETYPE,
            "step: input 1 ('k') is int64, which does not hold 1.5");
    REFUSED(MC_IN(a, INFINITY, i), MC_OUT(&out), MC_ETYPE, "which does not hold inf");
    REFUSED(MC_IN(a, NAN, i), MC_OUT(&out), MC_ETYPE, "step: input 1 ('k') is int64");
    REFUSED(MC_IN(a, 1e300, i), MC_OUT(&out), MC_ETYPE, "step: input 1 ('k') is int64");
    REFUSED(MC_IN(a, 1), MC_OUT(&out), MC_EARG, "step: input 2 ('i') is missing");
    REFUSED(MC_IN(a, 1, i, i), MC_OUT(&out), MC_EARG, "step: 4 inputs are given, it has 3");
    REFUSED(MC_IN(a, 1, (mc_array *)NULL), MC_OUT(&out), MC_EARG, "step: input 2 ('i') is NULL");
    REFUSED(MC_IN(a, 1, i), MC_OUT(&out, &number, &number), MC_EARG,
            "step: 3 places for outputs are given, it has 2");
    REFUSED(MC_IN(a, 1, i), MC_OUT(&small), MC_ESHAPE, "step: output 0 has 12 elements; a number holds one");
    CHECK(out == NULL, "nothing was given");
    CHECK(mc_call(f, MC_IN(bytes, 1, i), MC_OUT(&out)) == MC_OK && out, "uint8 fits float32: %s",
          mc_last_error());
    REFUSED(MC_IN(a, 1, i), MC_OUT(&wide, &out), MC_ESHAPE,
            "step: output 1 has shape (); the array given has (3, 4)");
    CHECK(mc_call(NULL, MC_IN(a), MC_OUT(&out)) == MC_EARG && strstr(mc_last_error(), "function"), "%s",
          mc_last_error());
#undef REFUSED
    CHECK(mc_flag_set("allow_input_downcast", "True") == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(f, MC_IN(wide, 1, i), MC_OUT(&out)) == MC_OK, "%s", mc_last_error());
    mc_array *all[] = { a, i, flat, wide, tall, out, half, bytes };
    for (size_t k = 0; k < NELEM(all); k++) {
        mc_array_unref(&all[k]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(mistakes_of_flags_and_names)
{
    static const struct { const char *name, *value, *says; } rows[] = {
        { "floatx", "float32", "did you mean 'floatX'" }, { "floatX", "float31", "float32" }, { "threads", "many", "threads" }, { "mode", "FAST", "FAST_RUN" },
    };
    for (size_t r = 0; r < NELEM(rows); r++) {
        CHECK(mc_flag_set(rows[r].name, rows[r].value) < 0 && strstr(mc_last_error(), rows[r].says),
              "%s=%s: %s", rows[r].name, rows[r].value, mc_last_error());
    }
    mc_graph *g = new_graph();
    CHECK(mc_is_error(mc_op(g, "no_such_op", 0, NULL, NULL)) && strstr(mc_error(g), "no_such_op"), "%s",
          mc_error(g));
    mc_graph_clear_error(g);
    CHECK(!mc_var(g, "zz") || mc_is_error(mc_var(g, "zz")), "a variable that is not there");
    mc_graph_free(g);
}

/* ---- each error is its own ---- */

/* What an unrelated call said before has no place in what these say. */
TEST(errors_tell_nothing_of_earlier_ones)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x * 2" });
    mc_array *y = NULL;
#define EARLIER() mc_fail(MC_EFILE, "something earlier")
    EARLIER();
    CHECK(mc_call(f, MC_IN((mc_array *)NULL), MC_OUT(&y)) == MC_EARG && !strstr(mc_last_error(), "earlier"),
          "%s", mc_last_error());
    EARLIER();
    mc_constant(g, NULL);
    CHECK(mc_graph_status(g) == MC_EARG && !strstr(mc_error(g), "earlier"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    EARLIER();
    CHECK(!mc_shared_new(g, "s", NULL) && mc_graph_status(g) == MC_EARG && !strstr(mc_error(g), "earlier"),
          "%s", mc_error(g));
    EARLIER();
    CHECK(mc_net_read(NULL, "m", "input 3") == MC_EARG && !strstr(mc_last_error(), "earlier"), "%s",
          mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
}

/* Wrong calls of the rest of the API, with NULL, bad words, sizes and files: each leaves a status and a text
 * of its own. */
TEST(every_wrong_call_has_a_text_of_its_own)
{
    mc_graph *g = mc_graph_new(), *other = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = mc_sqr(mc_input(other, "y", MC_FLOAT32, 0)),
            *out = NULL;
    mc_shared *s = mc_shared_zeros(g, "s", MC_FLOAT32, MC_SHAPE(3));
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)), *b = mc_array_new(MC_FLOAT32, MC_SHAPE(4));
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x * 2" });
    const int order[] = { 0, 0 };
    const int64_t far[] = { 7, 7 };
    mc_dtype d;
    char *text = NULL, few[4];
    size_t n = 0;
    double worst;
#define FAILS(call)                                                                                          \
    do {                                                                                                     \
        mc_fail(MC_EDEVICE, "something earlier");                                                            \
        CHECK(call, "%s succeeds", #call);                                                                   \
        CHECK(*mc_last_error() && !strstr(mc_last_error(), "earlier") && mc_last_status() < 0, "%s: %s",     \
              #call, mc_last_error());                                                                       \
    } while (0)
    FAILS(mc_dtype_parse("float33", &d) < 0);
    FAILS(mc_dtype_parse(NULL, &d) < 0);
    FAILS(!mc_array_new(MC_FLOAT32, MC_SHAPE(-1)));
    FAILS(!mc_array_new(MC_FLOAT32, 99, far));
    FAILS(!mc_array_new((mc_dtype)99, MC_SHAPE(1)));
    FAILS(!mc_array_new(MC_FLOAT32, MC_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)));
    FAILS(!mc_array_wrap(MC_FLOAT32, MC_SHAPE(3), NULL, NULL, NULL, NULL));
    FAILS(!mc_array_slice(a, 5, 0, 1, 1));
    FAILS(!mc_array_slice(a, 0, 9, 1, 1));
    FAILS(!mc_array_slice(NULL, 0, 0, 1, 1));
    FAILS(!mc_array_transpose(a, order));
    FAILS(!mc_array_transpose(NULL, NULL));
    FAILS(!mc_array_reshape(a, MC_SHAPE(5)));
    FAILS(!mc_array_reshape(NULL, MC_SHAPE(5)));
    FAILS(!mc_array_copy(NULL));
    FAILS(!mc_array_cast(NULL, MC_INT8));
    FAILS(!mc_array_cast(a, (mc_dtype)99));
    FAILS(mc_array_assign(a, b) < 0);
    FAILS(mc_array_assign(NULL, b) < 0);
    FAILS(!mc_array_to(a, "moon"));
    FAILS(!mc_array_to(NULL, "cpu"));
    FAILS(mc_array_set(a, far, 1) < 0);
    FAILS(mc_array_set(NULL, NULL, 1) < 0);
    FAILS(mc_array_print(NULL, stdout) < 0);
    FAILS(!mc_array_text(NULL));
    FAILS(!mc_npy_load(NULL));
    FAILS(!mc_npy_load("/nowhere/a.npy"));
    FAILS(mc_npy_save("/nowhere/a.npy", a) < 0);
    FAILS(mc_npy_save("/tmp/a.npy", NULL) < 0);
    FAILS(!mc_archive_open("/nowhere/a.npz"));
    FAILS(!mc_archive_load(NULL, "a"));
    FAILS(mc_archive_save("/nowhere/a.npz", NULL, 1, (const char *[]){ "a" }, (const mc_array *[]){ a }) < 0);
    FAILS(mc_archive_save("/tmp/a.npz", NULL, 1, NULL, NULL) < 0);
    FAILS(!mc_array_to_dlpack(NULL));
    FAILS(!mc_array_from_dlpack(NULL));
    FAILS(!mc_array_from_dlpack_versioned(NULL));
    FAILS(mc_shared_set(s, b) < 0);
    FAILS(mc_shared_set(s, NULL) < 0);
    FAILS(mc_shared_set(NULL, b) < 0);
    FAILS(!mc_shared_get(NULL));
    FAILS(mc_shared_default_update(g, NULL, x) < 0);
    FAILS(mc_grads(NULL, 1, &x, &out, NULL) < 0);
    FAILS(mc_grads(y, 1, &x, &out, NULL) < 0);
    FAILS(mc_grads(y, 1, NULL, &out, NULL) < 0);
    FAILS(mc_verify_grad(NULL, 1, &x, &a, &worst) < 0);
    FAILS(mc_verify_grad(y, 1, &x, NULL, &worst) < 0);
    FAILS(mc_rewrite_add(other, "log(", "x", NULL) < 0);
    FAILS(mc_rewrite_add(NULL, "x", "x", NULL) < 0);
    FAILS(mc_register(g, NULL) < 0);
    FAILS(mc_register(other, &(mc_custom){ .name = "1" }) < 0);
    FAILS(!mc_compile(NULL, &(mc_spec){ .outputs = "x" }));
    FAILS(!mc_compile(g, NULL));
    FAILS(!mc_function_copy(NULL, 0));
    FAILS(mc_call(f, MC_IN(a), MC_NONE) < 0);
    FAILS(mc_call(NULL, MC_IN(a), MC_NONE) < 0);
    FAILS(mc_call(f, MC_NONE, MC_NONE) < 0);
    FAILS(mc_function_set(f, "z", mc_arg_real(1)) < 0);
    FAILS(mc_function_set(NULL, "x", mc_arg_real(1)) < 0);
    FAILS(mc_function_profile(NULL, stdout) < 0);
    FAILS(mc_function_report(NULL, stdout) < 0);
    FAILS(mc_flag_set("nothing", "1") < 0);
    FAILS(mc_flag_set(NULL, "1") < 0);
    FAILS(mc_flag_set("threads", NULL) < 0);
    FAILS(mc_flag_set("threads", "many") < 0);
    FAILS(mc_flags_parse("threads") < 0);
    FAILS(!mc_flag_get("nothing"));
    FAILS(mc_wisdom_import("/nowhere/wisdom") < 0);
    FAILS(mc_wisdom_import(NULL) < 0);
    FAILS(mc_file_read("/nowhere/a", &text, &n) < 0);
    FAILS(mc_file_read("/tmp", &text, &n) < 0);
    FAILS(mc_file_write("/nowhere/a", "", 0) < 0);
    FAILS(mc_inflate(few, sizeof few, "\7", 1) < 0);
    FAILS(!mc_image_load("/nowhere/a.png"));
    FAILS(!mc_data_open("/nowhere/data", MC_TRAIN));
    FAILS(!mc_data_open(NULL, MC_TRAIN));
    FAILS(!mc_image_load(NULL));
    FAILS(!mc_array_from(MC_FLOAT32, MC_SHAPE(3), NULL));
    FAILS(mc_graph_dot(g, 1, NULL, stdout) < 0);
    FAILS(mc_graph_svg(g, 1, NULL, stdout) < 0);
    FAILS(!mc_graph_text(g, 1, NULL));
    FAILS(!mc_graph_text(NULL, 1, &x));
    FAILS(mc_file_read(NULL, &text, &n) < 0);
    FAILS(mc_file_write(NULL, "", 0) < 0);
#undef FAILS
    mc_function_free(f);
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_graph_free(g);
    mc_graph_free(other);
}

/* Who returns a status because of what the graph has met says what that was. */
TEST(statuses_of_a_graphs_mistake_have_its_text)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *bad = mc_formula(g, "nobody + 1"), *out = NULL;
    mc_shared *s = mc_shared_zeros(g, "s", MC_FLOAT32, MC_NOSHAPE);
    mc_net *net = mc_net_new(g, NULL, 1);
    CHECK(strstr(mc_error(g), "nobody"), "%s", mc_error(g));
    EARLIER();
    CHECK(mc_grads(bad, 1, &x, &out, NULL) < 0 && strstr(mc_last_error(), "nobody"), "%s", mc_last_error());
    EARLIER();
    CHECK(mc_shared_default_update(g, s, bad) < 0 && strstr(mc_last_error(), "nobody"), "%s",
          mc_last_error());
    EARLIER();
    CHECK(mc_net_read(net, "m", "input 3") < 0 && strstr(mc_last_error(), "nobody"), "%s", mc_last_error());
    EARLIER();
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x" }) && strstr(mc_last_error(), "nobody"),
          "%s", mc_last_error());
#undef EARLIER
    mc_net_free(net);
    mc_graph_free(g);
}
