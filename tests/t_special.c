/* t_special.c: special functions against tests/special.txt, which tests/special.py has computed by mpmath: by
 * the reference and compiled, in float32 and float64; and at the ends of their domains. */
#include "check.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 400, ARGS = 3 };

struct function { char name[24]; int nargs, few, n; double arg[ARGS][MOST], want[MOST], slack[MOST]; };

/* False: there is no further one. */
static bool read_function(FILE *f, struct function *to)
{
    char line[512];
    long at = ftell(f);
    bool begun = false;
    to->n = 0;
    while (fgets(line, sizeof line, f)) {
        char *s = line + 2;
        if (strncmp(line, "function ", 9) == 0) {
            if (begun) {
                fseek(f, at, SEEK_SET);
                break;
            }
            begun = sscanf(line + 9, "%23s %d %d", to->name, &to->nargs, &to->few) == 3;
        } else if (begun && to->n < MOST) {
            for (int k = 0; k < to->nargs; k++) {
                to->arg[k][to->n] = strtod(s, &s);
            }
            to->want[to->n] = strtod(s, &s);
            to->slack[to->n++] = strtod(s, &s);
        }
        at = ftell(f);
    }
    return begun;
}

static mc_array *of_doubles(mc_dtype d, int n, const double *v)
{
    const int64_t size = n;
    mc_array *a = mc_array_new(d, 1, &size);
    for (int i = 0; a && i < n; i++) {
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size, v[i]);
    }
    return a;
}

static void check_values(const struct function *f, const mc_array *y, mc_dtype d, const char *how)
{
    const double eps = mc_dtypes[d].eps, few = d == MC_FLOAT32 ? 2 : f->few;
    double worst = 0;
    int at = 0;
    for (int i = 0; y && i < f->n; i++) {
        const double have = mc_load_f64(d, y->data + (size_t)i * mc_dtypes[d].size);
        const double off = fabs(have - f->want[i]) / (eps * (fabs(f->want[i]) + f->slack[i]));
        if (!(off <= worst) && !(have == f->want[i])) {
            worst = off;
            at = i;
        }
    }
    CHECK(y && worst <= few, "%s in %s, %s: off by %.1f of %g at (%.17g, %.17g, %.17g), which is %.17g",
          f->name, mc_dtype_name(d), how, worst, few, f->arg[0][at], f->nargs > 1 ? f->arg[1][at] : 0,
          f->nargs > 2 ? f->arg[2][at] : 0, f->want[at]);
}

static void check_function(const struct function *f, mc_dtype d)
{
    static const char *const names[] = { "a", "b", "c" };
    mc_node *in[ARGS], *y;
    mc_array *value[ARGS], *have = NULL;
    mc_arg arg[ARGS], out = mc_arg_slot(&have);
    mc_graph *g = mc_graph_new();
    for (int k = 0; k < f->nargs; k++) {
        in[k] = mc_input(g, names[k], d, 1);
        value[k] = of_doubles(d, f->n, f->arg[k]);
        arg[k] = mc_arg_array(value[k]);
    }
    y = mc_op(g, f->name, f->nargs, in, NULL);
    REQUIRE(!mc_is_error(y), "%s", mc_error(g));
    CHECK(mc_eval(f->nargs, in, value, 1, &y, &have) == MC_OK, "%s: %s", f->name, mc_last_error());
    check_values(f, have, d, "reference");
    mc_array_unref(&have);
    mc_function *fn = mc_compile(
        g, &(mc_spec){ .input = in, .ninput = f->nargs, .output = &y, .noutput = 1, .mode = "FAST_RUN" });
    CHECK(fn && mc_call_args(fn, f->nargs, arg, 1, &out) == MC_OK, "%s: %s", f->name, mc_last_error());
    check_values(f, have, d, "compiled");
    mc_array_unref(&have);
    mc_function_free(fn);
    for (int k = 0; k < f->nargs; k++) {
        mc_array_unref(&value[k]);
    }
    mc_graph_free(g);
}

TEST(special_functions_against_mpmath)
{
    static struct function f;
    char path[1024];
    int n = 0;
    snprintf(path, sizeof path, "%s/special.txt", TEST_ROOT);
    FILE *file = fopen(path, "r");
    REQUIRE(file, "no special.txt");
    for (; read_function(file, &f); n++) {
        check_function(&f, MC_FLOAT64);
        check_function(&f, MC_FLOAT32);
    }
    fclose(file);
    CHECK(n == 14, "%d functions", n);
}

/* What SciPy gives at the ends of the domains, by mathematics: limits, NaN outside. */
TEST(special_functions_at_the_ends)
{
    static const struct { const char *formula; double want; } rows[] = {
        { "erfinv(1.0)", INFINITY }, { "erfinv(-1.0)", -INFINITY }, { "erfinv(1.5)", NAN }, { "erfinv(0.0)", 0 },
        { "erfcinv(0.0)", INFINITY }, { "erfcinv(2.0)", -INFINITY }, { "erfcinv(-0.5)", NAN }, { "erfcinv(1.0)", 0 },
        { "erfcinv(5e-324)", 27.2132932108129488 }, { "erfcinv(1e-300)", 26.209469960516124 },
        { "erfcx(inf)", 0 }, { "erfcx(-30.0)", INFINITY }, { "erfcx(nan)", NAN }, { "erfcx(1e300)", 5.6418958354775629e-301 },
        { "gamma(-2.0)", NAN }, { "gamma(172.0)", INFINITY }, { "gamma(inf)", INFINITY },
        { "gammainc(2.0, 0.0)", 0 }, { "gammaincc(2.0, 0.0)", 1 }, { "gammainc(2.0, inf)", 1 }, { "gammainc(0.0, 3.0)", 1 },
        { "gammainc(-1.0, 3.0)", NAN }, { "gammainc(1.0, -3.0)", NAN }, { "gammainc(inf, 3.0)", 0 }, { "gammaincc(1.0, 800.0)", 0 },
        { "gammaincinv(2.0, 0.0)", 0 }, { "gammaincinv(2.0, 1.0)", INFINITY }, { "gammaincinv(2.0, 1.5)", NAN }, { "gammaincinv(1.0, 1e-200)", 1e-200 },
        { "betainc(2.0, 3.0, 0.0)", 0 }, { "betainc(2.0, 3.0, 1.0)", 1 }, { "betainc(2.0, 3.0, 1.5)", NAN }, { "betainc(-2.0, 3.0, 0.5)", NAN },
        { "j0(0.0)", 1 }, { "j1(0.0)", 0 }, { "j0(inf)", 0 }, { "jv(0.0, 0.0)", 1 }, { "jv(2.0, 0.0)", 0 }, { "jv(0.5, -1.0)", NAN },
        { "jv(2.0, inf)", 0 }, { "jv(1000.0, 10.0)", 0 }, { "i0(0.0)", 1 }, { "i0(-inf)", INFINITY }, { "i1(-inf)", -INFINITY },
        { "iv(0.0, 0.0)", 1 }, { "iv(3.0, -inf)", -INFINITY }, { "iv(0.5, -1.0)", NAN }, { "i0(713.0)", 6.70512826367099667e307 },
        { "chi2sf(0.0, 4.0)", 1 },
    };
    mc_flag_set("floatX", "float64");
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *y = NULL;
        mc_node *n = mc_formula(g, rows[i].formula);
        double have = NAN;
        if (CHECK(!mc_is_error(n) && mc_eval(0, NULL, NULL, 1, &n, &y) == MC_OK, "%s: %s", rows[i].formula,
                  mc_error(g))) {
            have = mc_load_f64(y->dtype, y->data);
        }
        CHECK((isnan(have) && isnan(rows[i].want)) || have == rows[i].want ||
                  fabs(have - rows[i].want) <= 1e-9 * fabs(rows[i].want),
              "%s is %.17g, not %.17g", rows[i].formula, have, rows[i].want);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
}
