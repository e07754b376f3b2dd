/* t_csv.c: tables as text: what is read, what is refused, and a regression beside NumPy's least squares.
 *
 * Invariant: every file that is read here is made here. */
#include "own_folder.h"
#include <math.h>
#include <monochord_nn.h>

static void put(const char *name, const char *text) { put_file(name, text, strlen(text)); }

static const char *where(const char *name, const char *settings)
{
    static char out[600];
    snprintf(out, sizeof out, "csv:%s%s", in_folder(name), settings);
    return out;
}

/* ---- what is read ---- */

static const struct {
    const char *text, *settings;
    int columns, targets, classes;
    /* of the first two examples; targets, or labels, of the first three */
    double x[6], t[3];
    const char *name;                    /* of the last class, or of the first target */
} goods[] = {
    { "1,2,3\n4,5,6\n7,8,9\n", ":target", 2, 1, 0, { 1, 2, 4, 5 }, { 3, 6, 9 }, "3" },
    { "1,2,3\n4,5,6\n7,8,9\n", "", 2, 0, 3, { 1, 2, 4, 5 }, { 0, 1, 2 }, "9" },
    { "a,b,c\r\n1,2,3\r\n4,5,6\r\n7,8,9", ":target=c", 2, 1, 0, { 1, 2, 4, 5 }, { 3, 6, 9 }, "c" },
    { "a;b;c\n1;2;3\n\n4;5;6\n\n\n7;8;9\n\n", ":target=a", 2, 1, 0, { 2, 3, 5, 6 }, { 1, 4, 7 }, "a" },
    { "a\tb\tc\n1\t2\t3\n4\t5\t6\n7\t8\t9\n", ":target=2", 2, 1, 0, { 1, 3, 4, 6 }, { 2, 5, 8 }, "b" },
    { "\xef\xbb\xbf\"a\", b , \"c \"\"d\"\"\"\n 1 , +2e0,3\n4,5,6\n7,8,9\n",
      ":target=c \"d\"",
      2,
      1,
      0,
      { 1, 2, 4, 5 },
      { 3, 6, 9 },
      "c \"d\"" },
    { "1,2,low\n4,5,high\n7,8,low\n", "", 2, 0, 2, { 1, 2, 4, 5 }, { 1, 0, 1 }, "low" },
    { "1,2,10\n4,5,9\n7,8,10\n",
      "",
      2,
      0,
      2,
      { 1, 2, 4, 5 },
      { 1, 0, 1 },
      "10" }, /* by value, not by letters */
    { "k,a,b\nx,1,2\ny,4,5\nx,7,8\n", ":label=k", 2, 0, 2, { 1, 2, 4, 5 }, { 0, 1, 0 }, "y" },
    { "id,a,b,c\nq,1,2,3\nr,4,5,6\ns,7,8,9\n",
      ":ignore=id:target=c",
      2,
      1,
      0,
      { 1, 2, 4, 5 },
      { 3, 6, 9 },
      "c" },
    { "a,b,c\n1,2,3\n4,5,6\n7,8,9\n", ":columns=b:target=a,c", 1, 2, 0, { 2, 5 }, { 1, 3, 4 }, "a" },
    { "1.5,2,3\n4,5,6\n7,8,9\n", ":header=true:target", 2, 1, 0, { 4, 5, 7, 8 }, { 6, 9 }, "3" },
    { "a,b,c\n1,2,3\n4,5,6\n7,8,9\n", ":label=none", 3, 0, 1, { 1, 2, 3, 4, 5, 6 }, { 0, 0, 0 }, "0" },
    { "\"1;0\",2,3\n4,5,6\n", ":delimiter=comma:ignore=1:target", 1, 1, 0, { 2, 5 }, { 3, 6 }, "3" },
};

TEST(tables_are_read)
{
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        char settings[200];
        snprintf(settings, sizeof settings, "%s:test=none", goods[i].settings);
        put("good.csv", goods[i].text);
        mc_data *d = mc_data_open(where("good.csv", settings), MC_TRAIN);
        if (!CHECK(d != NULL, "row %zu: %s", i, mc_last_error())) {
            continue;
        }
        int n = goods[i].columns;
        CHECK(mc_data_rank(d) == 1 && mc_data_dims(d)[0] == n && mc_data_targets(d) == goods[i].targets &&
                  mc_data_classes(d) == goods[i].classes,
              "row %zu: %lld columns, %d targets, %d classes", i, (long long)mc_data_dims(d)[0],
              mc_data_targets(d), mc_data_classes(d));
        for (int k = 0; k < 2 && k < mc_data_count(d); k++) {
            float x[8];
            mc_data_example(d, k, x);
            for (int j = 0; j < n; j++) {
                CHECK(fabs((double)x[j] - goods[i].x[k * n + j]) < 1e-6, "row %zu: example %d has %g", i, k,
                      (double)x[j]);
            }
        }
        int per = goods[i].targets ? goods[i].targets : 1;
        for (int k = 0; k < 3 && k < mc_data_count(d) * per; k++) {
            double t = goods[i].targets ? mc_data_target(d, k / per, k % per) : mc_data_label(d, k);
            CHECK(fabs(t - goods[i].t[k]) < 1e-6, "row %zu: number %d to learn is %g", i, k, t);
        }
        const char *name = mc_data_class(d, goods[i].targets ? 0 : goods[i].classes - 1);
        CHECK(strcmp(name, goods[i].name) == 0, "row %zu: named '%s'", i, name);
        mc_data_free(d);
    }
    drop_folder();
}

/* A tenth is held out, or another file is; classes are those of what is learned. */
TEST(tables_have_test_sets)
{
    char text[400] = "";
    for (int i = 0; i < 20; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%s\n", i, i % 2 ? "odd" : "even");
    }
    put("all.csv", text);
    put("test.csv", "5,odd\n7,odd\n");
    put("other.csv", "5,none\n");
    mc_data *train = mc_data_open(where("all.csv", ""), MC_TRAIN),
            *test = mc_data_open(where("all.csv", ""), MC_TEST);
    REQUIRE(train && test, "%s", mc_last_error());
    CHECK(mc_data_count(train) == 18 && mc_data_count(test) == 2 && mc_data_label(test, 1) == 1,
          "%lld and %lld", (long long)mc_data_count(train), (long long)mc_data_count(test));
    mc_data_free(test);
    char settings[300];
    snprintf(settings, sizeof settings, ":test=%s", in_folder("test.csv"));
    test = mc_data_open(where("all.csv", settings), MC_TEST);
    CHECK(test && mc_data_count(test) == 2 && mc_data_label(test, 0) == 1 && mc_data_classes(test) == 2, "%s",
          mc_last_error());
    snprintf(settings, sizeof settings, ":test=%s", in_folder("other.csv"));
    CHECK(!mc_data_open(where("all.csv", settings), MC_TEST) &&
              strstr(mc_last_error(), "the label 'none' is not among those of "),
          "%s", mc_last_error());
    mc_data_free(train);
    mc_data_free(test);
    drop_folder();
}

/* ---- what is refused ---- */

static const struct {
    const char *text, *settings, *says;
} bads[] = {
    { "a,b\n1,2\n3,\n", ":target", "line 3, column 2 (b): the field is empty" },
    { "a,b\n1,2\n,4\n", ":target", "line 3, column 1 (a): the field is empty" },
    { "a,b\n1,2\n\n\nx,4\n", ":target", "line 5, column 1 (a): 'x' is not a number" },
    { "1,2\n3,4x\n", ":target", "line 2, column 2: '4x' is not a number" },
    { "1,2\nnan,4\n", ":target", "line 2, column 1: 'nan' is not finite" },
    { "1,2\n1e99,4\n", ":target", "line 2, column 1: '1e99' is too large" },
    { "1;2\n3,5;4\n", ":target", "line 2, column 1: '3,5' is not a number" },
    { "1,2\n3\n", ":target", "line 2 has 1 field, but the first line has 2" },
    { "1,2\n3,4,5\n", ":target", "line 2 has 3 fields, but the first line has 2" },
    { "1,2\n\"3,4\n5,6\n", ":target", "line 2, column 1: a quote is not closed on its line" },
    { "1,2\n\"3\"4,5\n", ":target", "line 2, column 1: unexpected text after a closing quote" },
    { "1,2\n3,\n", "", "line 2, column 2: the label is missing" },
    { "1,2.5\n3,4\n", "", "column '2' has numbers such as 2.5, which cannot be labels; to learn numbers use :target=2" },
    { "", ":target", "there are no examples" },
    { "a,b\n", ":target", "there are no examples" },
    { "1\n2\n", ":target", "there is no input column" },
    { "area,b\n1,2\n", ":target=aera", "target: there is no column 'aera' among 2; did you mean 'area'?" },
    { "a,b\n1,2\n", ":target=3", "target: there is no column '3' among 2" },
    { "a,b\n1,2\n", ":label=0", "label: there is no column '0' among 2" },
    { "a,b\n1,2\n", ":ignore=", NULL },
    { "a,b\n1,2\n", ":columns=b:target=b", "columns: 'b' is already the label or a target" },
    { "a,b\n1,2\n", ":label=a:target=b", "label and target are both given" },
    { "a,b\n1,2\n", ":label=a,b", "label: expected one column, got 2" },
    { "a,b\n1,2\n", ":header=yes", "header must be true or false, not 'yes'" },
    { "a,b\n1,2\n", ":delimiter=|", "delimiter must be comma, semicolon or tab, not '|'" },
    { "a,b\n1,2\n", ":targt=b", "unknown setting 'targt'; did you mean 'target'?" },
    { "a,b\n1,2\n", ":target=a:target=b", "target is given twice" },
    { "a,b\n1,2\n", ":target:test=none", NULL },
};

TEST(bad_tables_are_refused)
{
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        put("bad.csv", bads[i].text);
        mc_data *d = mc_data_open(where("bad.csv", bads[i].settings), MC_TRAIN);
        CHECK(bads[i].says ? !d && strstr(mc_last_error(), bads[i].says) : d != NULL, "row %zu: %s", i,
              d ? "was read" : mc_last_error());
        CHECK(d || !bads[i].says || strstr(mc_last_error(), "csv"), "row %zu does not name the file: %s", i,
              mc_last_error());
        mc_data_free(d);
    }
    CHECK(!mc_data_open("csv:", MC_TRAIN) && strstr(mc_last_error(), "csv: no file is given"), "%s",
          mc_last_error());
    CHECK(!mc_data_open(where("missing.csv", ""), MC_TRAIN) && strstr(mc_last_error(), "missing.csv"), "%s",
          mc_last_error());
    CHECK(!mc_data_open(where("bad.csv", ":target:test=none"), MC_TEST) &&
              strstr(mc_last_error(), "no examples to test with"),
          "%s", mc_last_error());
    drop_folder();
}

TEST(targets_of_arrays)
{
    const float x[] = { 1, 2, 3, 4, 5, 6 };
    const double t[] = { 0.5, -1, 2.25 }, odd[] = { 1, NAN, 2 };
    mc_array *xa = mc_array_from(MC_FLOAT32, MC_SHAPE(3, 2), x),
             *ta = mc_array_from(MC_FLOAT64, MC_SHAPE(3, 1), t),
             *bad = mc_array_from(MC_FLOAT64, MC_SHAPE(3, 1), odd),
             *flat = mc_array_from(MC_FLOAT64, MC_SHAPE(3), t),
             *few = mc_array_from(MC_FLOAT64, MC_SHAPE(1, 1), t);
    mc_data *d = mc_data_new_targets(xa, ta);
    REQUIRE(d, "%s", mc_last_error());
    CHECK(mc_data_targets(d) == 1 && mc_data_classes(d) == 0 && mc_data_label(d, 0) == -1 &&
              fabs(mc_data_target(d, 2, 0) - 2.25) < 1e-9,
          "targets");
    CHECK(!mc_data_column(d, 0) && !mc_data_column(d, -1), "they have no names");
    mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 2 });
    const mc_array *bx, *bt;
    CHECK(mc_batches_next(b, &bx, &bt) == 1 && mc_array_dtype(bt) == MC_FLOAT32 && mc_array_rank(bt) == 2 &&
              mc_array_dims(bt)[0] == 2,
          "a batch of two");
    CHECK(mc_batches_next(b, &bx, &bt) == 1 && mc_array_dims(bt)[0] == 1 &&
              fabs(mc_array_get(bt, (int64_t[]){ 0, 0 }) - 2.25) < 1e-9,
          "and the one that is left");
    mc_batches_free(b);
    mc_data_free(d);
    CHECK(!mc_data_new_targets(xa, flat) && strstr(mc_last_error(), "rank 2"), "%s", mc_last_error());
    CHECK(!mc_data_new_targets(xa, few) && strstr(mc_last_error(), "with a row for each of the 3 examples"),
          "%s", mc_last_error());
    CHECK(!mc_data_new_targets(xa, bad) && strstr(mc_last_error(), "target 0 of example 1 is not finite"),
          "%s", mc_last_error());
    CHECK(!mc_data_new_targets(NULL, ta) && !mc_data_new_targets(xa, NULL), "there is no array");
    mc_array_unref(&xa), mc_array_unref(&ta), mc_array_unref(&bad), mc_array_unref(&flat),
        mc_array_unref(&few);
}

/* ---- a regression ---- */

static const double line[20][3] = { /* u, v, and 3 u - 2 v + 0.5 with noise */
    { -0.74, 0, -1.62 }, { 0.2, -0.94, 3.05 }, { -0.7, 0.86, -2.99 }, { -0.86, -0.74, -0.99 }, { 0.9, 0.24, 2.52 }, { -0.26, 0.02, -0.57 },
    { 0.33, -0.45, 1.87 }, { -0.72, 0.58, -2.78 }, { 0.34, 0.02, 1.64 }, { 0.63, 0.1, 1.97 }, { 0.96, -0.59, 4.98 }, { 0.11, -0.03, 1.14 },
    { -0.29, 0.18, -0.54 }, { -0.53, 0.6, -2.17 }, { 0.73, -0.74, 4.46 }, { -0.07, -0.45, 0.79 }, { -0.83, 0.79, -3.39 }, { -0.14, -0.7, 1.66 },
    { 0.35, -0.6, 2.22 }, { 0.8, -0.57, 4.14 },
};
/* numpy.linalg.lstsq of all but the examples 9 and 19, and what it makes of these. */
static const double W[] = { 3.09364387, -1.79433559 }, bias = 0.53084951, train_loss = 0.07658390194343186,
                    test_loss = 0.060798031266913716, answers[] = { 2.30041158, 4.02853589 };

TEST(a_regression_is_least_squares)
{
    char text[1200] = "u,v,y\n";
    for (int i = 0; i < 20; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%g,%g,%g\n", line[i][0], line[i][1],
                 line[i][2]);
    }
    put("line.csv", text);
    mc_flag_set("floatX", "float32");
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    CHECK(mc_net_read(net, "line", "input 2\ndense 1 linear\nloss squared_error\nrule sgd rate=0.3\n") ==
              MC_OK,
          "%s", mc_error(g));
    mc_data *d = mc_data_open(where("line.csv", ":target=y"), MC_TRAIN),
            *held = mc_data_open(where("line.csv", ":target=y"), MC_TEST);
    mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 18 }),
               *look = mc_batches_new(held, &(mc_batch_spec){ .size = 2 });
    mc_function *learn = mc_net_trainer(net), *test = mc_net_tester(net);
    REQUIRE(learn && test && b && look, "%s %s", mc_last_error(), mc_error(g));
    const mc_array *x, *t;
    float cost = 0;
    for (int i = 0; i < 400; i++) {
        mc_batches_start(b, i, 0);
        REQUIRE(mc_batches_next(b, &x, &t) == 1 && mc_call(learn, MC_IN(x, t), MC_OUT(&cost)) == MC_OK, "%s",
                mc_last_error());
    }
    CHECK(fabs((double)cost - train_loss) < 1e-5, "the loss is %.8g", (double)cost);
    mc_array *w = mc_shared_get(mc_shared_named(g, "dense1_W")),
             *c = mc_shared_get(mc_shared_named(g, "dense1_b")), *y = NULL;
    for (int k = 0; k < 2; k++) {
        CHECK(fabs(mc_array_get(w, (int64_t[]){ k, 0 }) - W[k]) < 1e-4, "weight %d is %.8g", k,
              mc_array_get(w, (int64_t[]){ k, 0 }));
    }
    CHECK(fabs(mc_array_get(c, (int64_t[]){ 0 }) - bias) < 1e-4, "the bias is %.8g",
          mc_array_get(c, (int64_t[]){ 0 }));
    REQUIRE(mc_batches_next(look, &x, &t) == 1 && mc_call(test, MC_IN(x, t), MC_OUT(&cost, &y)) == MC_OK,
            "%s", mc_last_error());
    CHECK(fabs((double)cost - test_loss) < 1e-4, "the test loss is %.8g", (double)cost);
    for (int k = 0; k < 2; k++) {
        CHECK(fabs(mc_array_get(y, (int64_t[]){ k, 0 }) - answers[k]) < 1e-3, "answer %d is %.8g", k,
              mc_array_get(y, (int64_t[]){ k, 0 }));
    }
    mc_array_unref(&w), mc_array_unref(&c), mc_array_unref(&y);
    mc_function_free(learn), mc_function_free(test);
    mc_batches_free(b), mc_batches_free(look);
    mc_data_free(d), mc_data_free(held);
    mc_net_free(net);
    mc_graph_free(g);
    drop_folder();
}

TEST(tables_without_memory)
{
    put("m.csv", "a,b,kind\n1,2,x\n3,4,y\n5,6,x\n");
    char place[600];
    snprintf(place, sizeof place, "%s", where("m.csv", ":test=none"));
    ALLOC_FAIL_LOOP {
        mc_data *d = mc_data_open(place, MC_TRAIN);
        CHECK(d || (ALLOC_FAILED && mc_last_status() == MC_EMEMORY), "%s", mc_last_error());
        mc_data_free(d);
    }
    drop_folder();
}
