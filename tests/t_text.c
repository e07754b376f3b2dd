/* t_text.c: the text form.  What is written means what the tables say; what is printed reads back as the
 * same nodes; and whatever is not a formula ends in a message with a caret. */
#include "op/op.h"
#include "text_words.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what is written and what it is ---- */

static const struct { const char *formula, *text; } prints[] = {
    /* brackets where Python needs them, and no others */
    { "x + y * s", "x + y * s" },
    { "(x + y) * s", "(x + y) * s" },
    { "x - (y - s)", "x - (y - s)" },
    { "(x - y) - s", "x - y - s" },
    { "x / (y / s)", "x / (y / s)" },
    { "x / y / s", "x / y / s" },
    { "k // 2 % 3", "k // 2i64 % 3i64" },
    { "-x ** 2", "-x ** 2.0f32" },
    { "(-x) ** 2", "(-x) ** 2.0f32" },
    { "x ** -2", "x ** -2.0f32" },
    { "x ** y ** s", "x ** y ** s" },
    { "(x ** y) ** s", "(x ** y) ** s" },
    { "2 ** -s", "2.0f32 ** -s" },
    { "-(-x)", "--x" },
    { "-(x + y)", "-(x + y)" },
    { "x * -y", "x * -y" },
    { "~b | b", "~b | b" },
    { "not b and b or b", "~b & b | b" },
    { "b & b | b ^ b", "b & b | b ^ b" },
    { "~(k == k)", "~(k == k)" },
    { "(x < y) == (y < x)", "(x < y) == (y < x)" },
    { "0 < x < y", "(0.0f32 < x) & (x < y)" }, /* as in Python: both hold */
    { "0 < x <= y != 3", "(0.0f32 < x) & (x <= y) & (y != 3.0f32)" },
    { "(0 < x) < b[:, None]", "(0.0f32 < x) < dimshuffle(b, order=[0, -1])" },
    { "not 0 < x < 1 or b[:, None]", "~((0.0f32 < x) & (x < 1.0f32)) | dimshuffle(b, order=[0, -1])" },
    { "1 < 2 < 3", "True & True" },
    { "+x", "x" },
    /* functions, methods, operators: the same things */
    { "x @ W", "dot(x, W)" },
    { "x.sum(axis=0)", "sum(x, axis=0)" },
    { "sum(x, 0)", "sum(x, axis=0)" },
    { "sum(keepdims=True, x=x)", "sum(x, keepdims=True)" },
    { "sum(x, axis=None)", "sum(x)" },
    { "sum(x, axis=[0, 1])", "sum(x, axis=[0, 1])" },
    { "x.T", "dimshuffle(x, order=[1, 0])" },
    { "x.shape", "shape(x)" },
    { "x.shape[0]", "size(x, axis=0)" },
    { "x.ndim", "2" },
    { "cast(x, \"float64\")", "cast(x, dtype=float64)" },
    { "cast(x, y.dtype)", "x" },
    { "softmax(x, -1)", "softmax(x)" },
    { "switch(b, u, 0)", "where(b, u, 0.0f32)" },
    { "max_and_argmax(x, axis=1)", "tuple(max(x, axis=1), argmax(x, axis=1))" },
    { "max_and_argmax(x, axis=1)[1]", "argmax(x, axis=1)" },
    { "a, c = max_and_argmax(x, axis=1); c", "argmax(x, axis=1)" },
    /* indices */
    { "x[0]", "x[0]" },
    { "x[-1, 2]", "x[-1, 2]" },
    { "x[:, 1]", "x[:, 1]" },
    { "x[::-1]", "x[::-1]" },
    { "x[1:]", "x[1:]" },
    { "x[:-1, ::2]", "x[:-1, ::2]" },
    { "x[..., 0]", "x[:, 0]" },
    { "t[0, ..., ::2]", "t[0, :, ::2]" },
    { "x[k.shape[0]:]", "x[size(k, axis=0):]" },
    { "x[k]", "x[k]" },
    { "x[k[0]]", "x[k[0]]" },
    { "set_subtensor(x[0], u)", "set_subtensor(x[0], u)" },
    /* numbers: a literal takes the dtype of what it meets */
    { "x + 1", "x + 1.0f32" },
    { "x + 1f64", "cast(x, dtype=float64) + 1.0f64" },
    { "k + 1", "k + 1i64" },
    { "j + 1", "j + 1i8" },
    { "j + 300", "cast(j, dtype=int16) + 300i16" },
    { "j + 600 // 2", "cast(j, dtype=int16) + 300i16" },
    { "j + 7 % 4", "j + 3i8" },
    { "j + 0.5", "cast(j, dtype=float64) + 0.5f64" },
    { "s + 1 + 2", "s + 1.0f32 + 2.0f32" },
    { "1 + 2 + s", "3.0f32 + s" },
    { "x * (1 / 3)", "x * 0.33333334f32" },
    { "x + inf", "x + inff32" },
    { "x * -1", "x * -1.0f32" },
    { "1u8", "1u8" },
    { "-128i8", "-128i8" },
    { "18446744073709551615u64", "18446744073709551615u64" },
    { "9223372036854775807", "9223372036854775807" },
    { "0x1F", "31" },
    { "1e-3", "0.001" },
    { ".5", "0.5" },
    { "5.", "5.0" },
    { "1.5f16", "1.5f16" },
    { "1.5bf16", "1.5bf16" },
    { "True", "True" },
    { "pi", "3.141592653589793" },
    /* arithmetic of literals is Python's: whole numbers are exact, a negative power is a float */
    { "10 ** -3", "0.001" },
    { "2 ** -1", "0.5" },
    { "pow(2, -1)", "0.5" },
    { "10 ** 20", "1e+20" },
    { "2 ** 100", "1.2676506002282294e+30" },
    { "sqr(10 ** 10)", "1e+20" },
    { "2 ** 63", "9223372036854775808" },
    { "2 ** 64 - 1", "18446744073709551615" },
    { "-(2 ** 63)", "-9223372036854775808" },
    { "-2 ** 63", "-9223372036854775808" },
    { "9223372036854775807 + 1", "9223372036854775808" },
    { "2 ** 100 % 7", "2" },
    { "3 ** 50 // 2 ** 40", "652924416219" },
    { "-(3 ** 50) // 2 ** 40", "-652924416220" },
    { "-(3 ** 50) % 1000", "751" },
    { "3 ** 50 % -1000", "-751" },
    { "2 ** 70 + 1 == 2 ** 70", "False" },
    { "10 ** 30 - 10 ** 30 + 7", "7" },
    { "18446744073709551616", "1.8446744073709552e+19" },
    { "0 ** 0", "1" },
    { "(-1) ** 1000001", "-1" },
    { "-7 // 2", "-4" },
    { "-7 % 3", "2" },
    { "7 % -3", "-2" },
    { "1 / 3", "0.3333333333333333" },
    { "7 / 2", "3.5" },
    { "~5", "-6" },
    { "x[:7 // 3]", "x[:2]" },
    { "x + 2 ** 64", "x + 1.8446744e+19f32" },
    { "[2 ** 63, 1]", "[9223372036854775808u64, 1u64]" },
    { "[2 ** 64, 1.5]", "[1.8446744073709552e+19f64, 1.5f64]" },
    { "[18446744073709551615u64, 1.5]", "[1.8446744073709552e+19f64, 1.5f64]" },
    { "[1u8, 1.5]", "[1.0f64, 1.5f64]" },
    { "[1f32, 1.5]", "[1.0f32, 1.5f32]" },
    { "[1u8, 300]", "[1i16, 300i16]" },
    { "[1u8, 3]", "[1u8, 3u8]" },
    { "[True, 2]", "[1i64, 2i64]" },
    { "[1, 2, 3]", "[1i64, 2i64, 3i64]" },
    { "[1.5, 2]", "[1.5f64, 2.0f64]" },
    { "[[1, 2], [3, 4]]", "[[1i64, 2i64], [3i64, 4i64]]" },
    { "[True, False]", "[True, False]" },
    { "[1u8, 2u8]", "[1u8, 2u8]" },
    { "[]", "[]" },
    /* statements, blanks, comments */
    { "a = x * 2\n\nb2 = a + 1 # a comment\nb2 * a", "(x * 2.0f32 + 1.0f32) * (x * 2.0f32)" },
    { "a = x; a = a + a; a", "x + x" },
    { " ( x\n + y ) ", "x + y" },
    { "x + \\\n y", "x + y" },
    { "sum(x,\n  axis=0,\n)", "sum(x, axis=0)" },
    { "c = 2f32; d = s * c; c = 3f32; d", "s * 2.0f32" },
    { "grad(s * s, s)", "1.0f32 * s + 1.0f32 * s" },
};

/* Nodes of the formula's own names would print as names. */
static char *text_without_names(mc_graph *g, mc_node *n)
{
    size_t count;
    mc_node **list = mc_graph_reach(1, &n, &count);
    for (size_t i = 0; i < count; i++) {
        list[i]->name = list[i]->nin ? NULL : list[i]->name;
    }
    mc_free(list);
    (void)g;
    return mc_node_text(n);
}

TEST(formulas_and_their_text)
{
    for (size_t i = 0; i < NELEM(prints); i++) {
        mc_graph *g = graph_of(declared);
        mc_node *n = mc_formula(g, prints[i].formula);
        char *text = text_without_names(g, n);
        CHECK(text && strcmp(text, prints[i].text) == 0, "%s is printed as\n    %s, not as\n    %s %s",
              prints[i].formula, text, prints[i].text, mc_error(g));
        CHECK(mc_formula(g, text) == n, "%s is not what it was printed from: %s", text, mc_error(g));
        mc_text_free(text);
        mc_graph_free(g);
    }
}

/* ---- what is wrong and what is said ---- */

static const struct { const char *formula; mc_status status; const char *says; int column; } wrongs[] = {
    { "", MC_ESYNTAX, "the formula is empty", 0 },
    { "# nothing", MC_ESYNTAX, "the formula is empty", 0 },
    { "x +", MC_ESYNTAX, "the formula ends where a value is expected", 3 },
    { "x y", MC_ESYNTAX, "expected the end of the statement, not 'y'", 2 },
    { "(x", MC_ESYNTAX, "expected ')', but the formula ends", 2 },
    { "x)", MC_ESYNTAX, "expected the end of the statement, not ')'", 1 },
    { "[1, 2", MC_ESYNTAX, "expected ',' or ']', but the formula ends", 5 },
    { "[1 2]", MC_ESYNTAX, "expected ',' or ']', not '2'", 3 },
    { "sum(x axis=0)", MC_ESYNTAX, "expected ',' or ')', not 'axis'", 6 },
    { "x[1", MC_ESYNTAX, "expected ',' or ']', but the formula ends", 3 },
    { "x[1:2:3:4]", MC_ESYNTAX, "expected ',' or ']', not ':'", 7 },
    { "x[1:2:0]", MC_ESYNTAX, "a slice cannot have step 0", 6 },
    { "x[1.5]", MC_ESYNTAX, "an index must be a whole number, a slice, a list, a tensor of integers or a mask", 2 },
    { "x[0, 0, 0]", MC_ESHAPE, "too many indices: 3 for a tensor of rank 2", 1 },
    { "x[..., ...]", MC_ESHAPE, "an index can have only one ...", 1 },
    { "x.", MC_ESYNTAX, "expected a name after '.'", 2 },
    { "x.foo", MC_ESYNTAX, "a tensor has no attribute '.foo'; expected .T, .shape, .ndim, .dtype or a function", 2 },
    { "sums(x)", MC_ESYNTAX, "there is no function 'sums'; did you mean 'sum'?", 0 },
    { "tanhh(x)", MC_ESYNTAX, "there is no function 'tanhh'; did you mean 'tanh'?", 0 },
    { "exp x", MC_ESYNTAX, "'exp' is a function: exp(a)", 0 },
    { "exp()", MC_EARG, "exp needs the argument 'a': exp(a)", 0 },
    { "exp(x, y)", MC_ESYNTAX, "exp takes 1 argument: exp(a)", 7 },
    { "sum(x, axs=0)", MC_ESYNTAX, "sum has no parameter 'axs'; did you mean 'axis'?: sum(x, axis=None:axes, keepdims=False:bool", 7 },
    { "sum(x, axis=0, axis=1)", MC_ESYNTAX, "sum: 'axis' is given twice", 15 },
    { "sum(x, 0, axis=1)", MC_ESYNTAX, "sum: 'axis' is given twice", 10 },
    { "sum(axis=0)", MC_EARG, "sum needs the argument 'x': sum(x, ", 0 },
    { "y + sum(x, axis=5)", MC_ESHAPE, "sum: axis 5 is out of range for rank 2  [x: float32[?, 3]]", 4 },
    { "sum(x, axis=\"a\")", MC_ESYNTAX, "sum: axis must be None, an axis or a list of axes", 12 },
    { "softmax(x, axis=1.5)", MC_ESYNTAX, "softmax: axis must be a whole number", 16 },
    { "sum(x, keepdims=2)", MC_ESYNTAX, "sum: keepdims must be True or False", 16 },
    { "cast(x, flot32)", MC_ESYNTAX, "there is no variable 'flot32'; did you mean 'float32'?", 8 },
    { "cast(x, 7)", MC_ESYNTAX, "cast: dtype must be a dtype", 8 },
    { "x + information", MC_ESYNTAX, "there is no variable 'information'", 4 },
    { "pi = 3", MC_EARG, "'pi' is a reserved word of the text form", 0 },
    { "input float32 float32", MC_EARG, "input: 'float32' is the name of a dtype", 6 },
    { "weight + 1", MC_ESYNTAX, "there is no variable 'weight'", 0 },
    { "x = 3", MC_EARG, "'x' is an input and cannot be assigned; use another name, or an update", 0 },
    { "W = x", MC_EARG, "'W' is a shared variable and cannot be assigned; use another name, or an update", 0 },
    { "1x", MC_ESYNTAX, "'1x' is not a number", 0 },
    { "18446744073709551615u", MC_ESYNTAX, "'18446744073709551615u' is not a number", 0 },
    { "[99999999999999999999y]", MC_ESYNTAX, "'99999999999999999999y' is not a number", 1 },
    { "x + 1e", MC_ESYNTAX, "'1e' is not a number", 4 },
    { "256u8", MC_ESYNTAX, "256 does not fit into uint8", 0 },
    { "18446744073709551616u64", MC_ESYNTAX, "18446744073709551616 does not fit into uint64", 0 },
    { "1 // 0", MC_ESYNTAX, "integer division by 0", 2 },
    { "2 % 0", MC_ESYNTAX, "integer division by 0", 2 },
    { "10 ** 400", MC_ESYNTAX, "the integer has more than 1024 bits", 3 },
    { "2 ** 2 ** 70", MC_ESYNTAX, "the integer has more than 1024 bits", 2 },
    { "[2 ** 63, -1]", MC_ESYNTAX, "no integer dtype holds all numbers of this list", 1 },
    { "[2 ** 64]", MC_ESYNTAX, "no integer dtype holds all numbers of this list", 1 },
    { "k + 2 ** 63", MC_ETYPE, "add: the literal 9223372036854775808 does not fit into int64", 2 },
    { "k ** -1", MC_ETYPE, "pow: an integer to a negative power is not an integer; cast int64 to a float", 2 },
    { "j ** [1, -1]", MC_ETYPE, "pow: an integer to a negative power is not an integer; cast int64 to a float", 2 },
    { "set_subtensor(j[0], 300)", MC_ETYPE, "the literal 300 does not fit into int8", 0 },
    { "cast(300, uint8)", MC_ETYPE, "cast: the literal 300 does not fit into uint8", 0 },
    { "not k", MC_ESYNTAX, "'not' needs bool, not int64; '~' works on the bits of integers", 4 },
    { "b and k", MC_ESYNTAX, "'and' needs bool, not int64; '&' works on the bits of integers", 6 },
    { "1 or b", MC_ESYNTAX, "'or' needs bool, not this value; '|' works on the bits of integers", 0 },
    { "x[2 ** 63]", MC_ESYNTAX, "an index must be a whole number, a slice, a list, a tensor of integers or a mask", 2 },
    { "\"abc", MC_ESYNTAX, "the string has no closing quote", 0 },
    { "'a' + x", MC_ESYNTAX, "expected a tensor", 0 },
    { "x $ y", MC_ESYNTAX, "unexpected character '$'", 2 },
    { "x + \xc3\xa9", MC_ESYNTAX, "unexpected character '\xc3\xa9'", 4 },
    { "x * W", MC_ESHAPE, "mul: shapes (?, 3) and (3, 5) do not broadcast: sizes 3 and 5 on axis 1", 2 },
    { "x + t[0]", MC_ESHAPE, "add: shapes (?, 3) and (3, 4) do not broadcast: sizes 3 and 4 on axis 1  [x: float32[?, 3], t[0]: float64[3, 4]]", 2 },
    { "x & y", MC_ETYPE, "and_: needs integers or bool, not float32", 2 },
    { "-b", MC_ETYPE, "neg: not defined for bool; use xor or invert", 0 },
    { "a, c = x", MC_ESYNTAX, "2 names are assigned 1 values", 0 },
    { "a, c, d = max_and_argmax(x)", MC_ESYNTAX, "3 names are assigned 2 values", 0 },
    { "item(max_and_argmax(x), 2)", MC_EARG, "2 results, asked for number 2", -1 },
    { "input x float32", MC_EARG, "input: the name 'x' is already in use", 6 },
    { "input z flot32[2]", MC_ESYNTAX, "unknown dtype 'flot32'; did you mean 'float32'?", 8 },
    { "input z number[2]", MC_ESYNTAX, "unknown dtype 'number'; expected one of bool, int8,", 8 },
    { "mean(x, axis=3)", MC_ESHAPE, "mean: sum: axis 3 is out of range for rank 2  [x: float32[?, 3]]\n    mean(x, axis=3)\n    ^", 0 },
    { "input z float32[-1]", MC_ESYNTAX, "expected a size, ? or _", 16 },
    { "input z float32[1, 1, 1, 1, 1, 1, 1, 1, 1]", MC_ESYNTAX, "a tensor has at most 8 axes", 40 },
    { "shared V float32[?]", MC_ESHAPE, "shared V: all sizes must be given", 7 },
    { "grad(x, y)", MC_EGRAD, "the cost must be a float scalar, not float32[?, 3]", 0 },
    { "grad(sum(x), y)", MC_EGRAD, "the cost does not depend on y", 0 },
    { "grad(sum(x))", MC_ESYNTAX, "grad takes a cost and the variables to differentiate with respect to", 0 },
    { "set_subtensor(2, y)", MC_ESHAPE, "set_subtensor: the value has rank 2, but the region has rank 0", 0 },
    { "array(float32, [2], \"00\")", MC_ESYNTAX, "array takes a dtype, a list of sizes and as many hexadecimal bytes", 0 },
    { "array(float32, [466018427387905, 4], \"00\")", MC_ESYNTAX, "array takes a dtype, a list of sizes and as many hexadecimal bytes", 0 },
    { "array(int8, [1, -1], \"\")", MC_ESYNTAX, "array takes a dtype", 0 },
    { "x + (y *", MC_ESYNTAX, "the formula ends where a value is expected\n    x + (y *\n            ^", 8 },
    { "x + (y * \n\n  \n", MC_ESYNTAX, "the formula ends where a value is expected\n    x + (y * \n            ^", 8 },
    { "a = x[\n1\n\n", MC_ESYNTAX, "expected ',' or ']', but the formula ends\n    1\n     ^", 1 },
    { "cast(x)", MC_ESYNTAX, "cast needs the argument 'dtype': cast(x, dtype:dtype)", 0 },
    { "cast(x, None)", MC_ESYNTAX, "cast: dtype must be a dtype", 8 },
    { "x.dimshuffle()", MC_ESYNTAX, "dimshuffle needs the argument 'order'", 2 },
    { "norm(x, ord='nuc')", MC_ESYNTAX, "norm: ord must be a number, 'inf' or '-inf'", 12 },
    { "reshape(t, [5, 5])", MC_ESHAPE, "reshape: 24 elements of shape (2, 3, 4) do not fit shape (5, 5)", 0 },
    { "a = x + 1\nb2 = a +* 2\nb2", MC_ESYNTAX, "expected a value, not '*'", 8 },
    { "tuple(x)", MC_ESYNTAX, "a tuple must have at least two values", 0 },
    { "where(x)", MC_EARG, "where needs the argument 'b': where(a, b, c)", 0 },
};

TEST(mistakes_and_what_is_said)
{
    for (size_t i = 0; i < NELEM(wrongs); i++) {
        mc_graph *g = graph_of(declared);
        mc_node *n = mc_formula(g, wrongs[i].formula);
        struct said said = what_it_says(g, "t_text.c:");
        CHECK(said.placed, "%s: no line in: %s", wrongs[i].formula, mc_error(g));
        CHECK(mc_is_error(n) && mc_graph_status(g) == wrongs[i].status, "%s: status %d: %s",
              wrongs[i].formula, (int)mc_graph_status(g), said.text);
        CHECK(strstr(said.text, wrongs[i].says), "%s says: %s", wrongs[i].formula, said.text);
        CHECK(said.column >= 0 && (wrongs[i].column < 0 || said.column == wrongs[i].column),
              "%s: the caret is under column %d: %s", wrongs[i].formula, said.column, said.text);
        mc_graph_free(g);
    }
}

/* Cut anywhere, a formula is a formula or a mistake with a message. */
TEST(every_prefix_ends_well)
{
    for (size_t i = 0; i < NELEM(prints); i++) {
        size_t n = strlen(prints[i].formula);
        for (size_t cut = 0; cut < n; cut++) {
            char *part = mc_strdup(prints[i].formula);
            mc_graph *g = graph_of(declared);
            part[cut] = 0;
            mc_node *r = mc_formula(g, part);
            CHECK(mc_is_error(r) ? mc_graph_status(g) < 0 && strchr(mc_error(g), '^')
                                 : mc_graph_status(g) == MC_OK,
                  "%s: %s", part, mc_error(g));
            mc_text_free(part);
            mc_graph_free(g);
        }
    }
}

/* ---- extremes ---- */

static char *repeated(const char *head, const char *one, int n, const char *tail)
{
    struct mc_str s = { 0 };
    mc_str_add(&s, head);
    for (int i = 0; i < n; i++) {
        mc_str_add(&s, one);
    }
    mc_str_add(&s, tail);
    return mc_str_take(&s);
}

TEST(deep_formulas_are_refused)
{
    static const struct { const char *one, *tail; } deep[] = {
        { "(", "x" }, { "-", "x" }, { "~", "k" }, { "[", "1" }, { "exp(", "x" }, { "x[", "0" }, { "not ", "b" }, { "2 ** ", "x" }, { "x + (", "x" },
        { "grad(", "x" },
    };
    for (size_t i = 0; i < NELEM(deep); i++) {
        char *text = repeated("", deep[i].one, 100000, deep[i].tail);
        mc_graph *g = graph_of(declared);
        CHECK(mc_is_error(mc_formula(g, text)) && strstr(mc_error(g), "nested more than 200 levels deep"),
              "%s: %.60s", deep[i].one, mc_error(g));
        mc_text_free(text);
        mc_graph_free(g);
    }
    char *text = repeated("", "exp(", 60, "x"), *closed = repeated(text, ")", 60, "");
    mc_graph *g = graph_of(declared);
    CHECK(!mc_is_error(mc_formula(g, closed)), "%s", mc_error(g));
    mc_text_free(text);
    mc_text_free(closed);
    mc_graph_free(g);
}

TEST(long_formulas_are_fine)
{
    mc_graph *g = graph_of(declared);
    char *sum = repeated("s", " + s", 20000, ""), *list = repeated("[", "s, ", 20000, "s]"),
         *numbers = repeated("[", "7, ", 20000, "7]");
    char *statements = repeated("", "q = s * 2; ", 5000, "q"), *members = repeated("x", ".T", 1000, "");
    CHECK(!mc_is_error(mc_formula(g, sum)), "%.80s", mc_error(g));
    mc_node *l = mc_formula(g, list), *n = mc_formula(g, numbers);
    CHECK(!mc_is_error(l) && mc_node_dims(l)[0] == 20001 && mc_node_ninputs(l) == 20001, "%.80s",
          mc_error(g));
    CHECK(!mc_is_error(n) && mc_node_dims(n)[0] == 20001 && mc_node_value(n), "%.80s", mc_error(g));
    CHECK(!mc_is_error(mc_formula(g, statements)) && !mc_is_error(mc_formula(g, members)), "%.80s",
          mc_error(g));
    char *back = mc_node_text(n); /* as bytes */
    CHECK(strncmp(back, "array(int64, [20001], \"0700000000000000", 38) == 0 && mc_formula(g, back) == n,
          "%.60s", back);
    mc_text_free(back);
    mc_text_free(sum);
    mc_text_free(list);
    mc_text_free(numbers);
    mc_text_free(statements);
    mc_text_free(members);
    mc_graph_free(g);
}

/* ---- lists in specs ---- */

TEST(lists_of_named_values)
{
    struct mc_named *v;
    int n;
    mc_graph *g = graph_of(declared);
    CHECK(mc_parse_list(g, "x, lr=0.1, borrow(s + 1), total = sum(x)", false, &v, &n) == MC_OK && n == 4,
          "%s", mc_error(g));
    CHECK(strcmp(v[0].name, "x") == 0 && v[0].node == mc_var(g, "x") && !v[0].has_default, "x");
    CHECK(strcmp(v[1].name, "lr") == 0 && v[1].has_default && v[1].dflt == 0.1, "lr");
    CHECK(!v[2].name && v[2].borrow && v[3].node == mc_formula(g, "sum(x)") &&
              strcmp(v[3].name, "total") == 0,
          "total");
    mc_named_free(v, n);
    CHECK(mc_parse_list(g, "W = W - 0.1 * W; s = 3\n", true, &v, &n) == MC_OK && n == 2 &&
              strcmp(v[1].name, "s") == 0,
          "%s", mc_error(g));
    mc_named_free(v, n);
    CHECK(mc_parse_list(g, "grad(sum(sqr(x)) + sum(sqr(W)), [x, W]), borrow(grad(s * s, [s]))", false, &v,
                        &n) == MC_OK &&
              n == 3,
          "%s", mc_error(g));
    CHECK(n == 3 && v[0].node->type.rank == 2 && v[1].node->type.dims[1] == 5 && v[2].node->type.rank == 0 &&
              v[2].borrow && !v[1].borrow,
          "a value for each");
    mc_named_free(v, n);
    CHECK(mc_parse_list(g, "d = grad(s * s + u[0], [s, u])", false, &v, &n) < 0 &&
              strstr(mc_error(g), "one name is assigned 2 values"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_parse_list(g, "", false, &v, &n) == MC_OK && n == 0, "%s", mc_error(g));
    mc_named_free(v, n);
    CHECK(mc_parse_list(g, "W + 1", true, &v, &n) < 0 && n == 0 &&
              strstr(mc_error(g), "expected 'name = value'"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_parse_list(g, "x y", false, &v, &n) < 0 && !v &&
              strstr(mc_error(g), "expected ',' or ';', not 'y'"),
          "%s", mc_error(g));
    mc_graph_free(g);
}

/* Each level uses the one below twice: written out, the last one would take 2^60 words. */
TEST(shared_nodes_are_written_once)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float64[3]; y = x");
    for (int i = 0; i < 60; i++) {
        mc_formula(g, "y = exp(y) * y");
    }
    char *text = mc_node_text(mc_var(g, "y"));
    REQUIRE(text && strlen(text) < 5000, "%s", text ? "too long" : mc_last_error());
    mc_graph *other = mc_graph_new();
    mc_node *again = mc_formula(other, text);
    CHECK(!mc_is_error(again) && mc_is_op(again, "mul"), "%s: %s", mc_error(other), text);
    mc_text_free(text);
    mc_graph_free(other);
    mc_graph_free(g);
}
