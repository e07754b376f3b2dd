/* t_export_ctc.c: ctc_loss in exported files: the bits of the library, at two sizes, one of which has labels
 * that no alignment spells; errors; what is refused. */
#include "export_formulas.h"
#include <math.h>

/* a, b: (5 or 2, 4, 3) and as strided parts; labels that repeat, none, padding in front */
#define SEQUENCES                                                                                            \
    "a = dimshuffle(stack(x, x * 2 - 0.3, 1 - x, x * v), [1, 0, 2])\n"                                       \
    "b = dimshuffle(stack(d, d * 9, -d, d[:, ::-1]), [1, 0, 2])\n"                                           \
    "y = [[1, 2], [1, 1], [-1, -1], [-1, 2]]\n"                                                              \
    "n = [2, 2, 1, 0]\n"

TEST(exported_ctc)
{
    SAME_AS_LIBRARY(
        { .lines = SEQUENCES, .outputs = "ctc_loss(a, y), ctc_loss(b, y), ctc_loss(b, y, n)" },
        { .lines = SEQUENCES,
          .outputs = "ctc_loss(a, cast(y, int8), cast(n, uint16), zero_infinity=True), ctc_loss(a, "
                     "swapaxes(swapaxes(y, 0, 1), 0, 1)[::-1, ::-1], n[::-1], zero_infinity=True)" },
        { .lines = SEQUENCES "c = sum(ctc_loss(a, y, n, zero_infinity=True))",
          .outputs = "grad(c, x), grad(c, v)" },
        { .lines = SEQUENCES "c = sum(ctc_loss(b, y, zero_infinity=True) * [1, 2, 3, -1])",
          .outputs = "grad(c, d), grad(sum(sqr(grad(c, d))), d)" },
        { .lines = SEQUENCES "c = sum(ctc_loss(dot(a, W), y, zero_infinity=True))",
          .outputs = "c, grad(sum(grad(c, W) * W), W)",
          .updates = "W = W - 0.1 * grad(c, W)" },
        { .outputs = "scan(r in x, h from v * 0 + 1: h = h + r + ctc_loss(reshape(join(r, h), [2, 1, 3]), "
                     "[[1]])[0]; yield h)" });
}

/* Vectors of every kind, and as C++. */
TEST(kinds_of_files_with_ctc)
{
    NEEDS_COMPILER();
    same_in_every_kind(&(struct row){ .lines = SEQUENCES "c = sum(ctc_loss(a, y, zero_infinity=True))",
                                      .outputs = "c, grad(c, x), grad(sum(sqr(grad(c, x))), x)",
                                      .hosted = true });
}

/* Labels and lengths that are none end the exported function with an error. */
TEST(exported_errors_of_ctc)
{
    static const char *const wrong[] = { "ctc_loss(reshape(x, [5, 1, 3]), cast(v[None, :1], int32))",
                                         "ctc_loss(reshape(x, [5, 1, 3]), [[1]], cast(v[:1], int32))" };
    static const struct { float v; bool good[2]; } rows[] = {
        { 0, { false, true } }, { 2, { true, true } }, { 3, { false, true } }, { 6, { false, false } },
        { -1, { true, false } },
    };
    NEEDS_COMPILER();
    for (size_t i = 0; i < NELEM(wrong); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_input(g, "v", MC_FLOAT32, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x, v", .outputs = wrong[i] });
        REQUIRE(f, "%s", mc_error(g));
        CHECK(mc_export_c(in_folder("f.c"), 1, &(mc_export_function){ f, "at", "x[5, 3], v[3]" }) == MC_OK,
              "%s", mc_last_error());
        char *file = text_of("f.c"), flags[256];
        struct mc_str text = { 0 };
        mc_status s = MC_OK;
        mc_str_addf(
            &text,
            "%s\nint call(void *m, void *memory, void **p) { return f_at(m, memory, p[0], p[1], p[2]); }\n",
            file);
        snprintf(flags, sizeof flags, "-std=c99 -I%s", in_folder(""));
        struct mc_code *code = mc_code_load(text.s, flags, &s);
        any_function *at = code ? function_of(code, "call") : NULL;
        for (size_t k = 0; at && k < NELEM(rows); k++) {
            float x[15] = { 0 }, v[3] = { rows[k].v }, y[1] = { 0 }, model[16] = { 0 };
            void *p[] = { x, v, y };
            CHECK((((calling *)at)(model, NULL, p) == 0) == rows[k].good[i], "%s at %g", wrong[i],
                  (double)rows[k].v);
        }
        CHECK(at, "%s", mc_last_error());
        mc_code_unref(&code);
        mc_str_free(&text);
        free(file);
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

TEST(files_that_cannot_have_ctc)
{
    static const struct { const char *formula, *says; bool freestanding; } rows[] = {
        { "ctc_loss(x[:, None, :], [[1]])", "a freestanding file has no ctc_loss", true },
        { "ctc_loss(cast(x, float16)[:, None, :], [[1]])", "half types; cast to float32 before", false },
    };
    NEEDS_COMPILER();
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_function *f = compiled(g, NULL, rows[i].formula, NULL, NULL);
        mc_export_function at = { f, "at", sizes[0] };
        const mc_export_spec spec = {
            .path = in_folder("f.c"), .nfunction = 1, .function = &at, .freestanding = rows[i].freestanding
        };
        CHECK(f && mc_export(&spec) == MC_EUNSUPPORTED && strstr(mc_last_error(), rows[i].says), "%s",
              mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}
