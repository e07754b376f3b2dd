/* t_charnn.c: texts as data, and a model of their characters. */
#include "own_folder.h"
#include "program.h"
#include <monochord_nn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char fox[] = "the quick brown fox jumps over the lazy dog.\n";

/* A file of n times the text; "text:" before its path and the settings behind it. */
static const char *put(const char *text, int n, const char *settings)
{
    static char where[600];
    const char *path = in_folder("text.txt");
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < n && f; i++) {
        fwrite(text, 1, strlen(text), f);
    }
    CHECK(f && fclose(f) == 0, "cannot write %s", path);
    snprintf(where, sizeof where, "text:%s%s", path, settings);
    return where;
}

TEST(a_text_is_windows_and_what_follows)
{
    const char *where = put("b\xc3\xa4\na\\", 4, ":length=3:step=2"); /* 20 characters; one has two bytes */
    static const char *const names[] = { "\\n", "\\", "a", "b", "\xc3\xa4" };
    static const float second[] = { 0, 2, 1 }; /* from character 2 on: \n a \ */
    mc_data *d = mc_data_open(where, MC_TRAIN), *t = mc_data_open(where, MC_TEST);
    REQUIRE(d && t, "%s", mc_last_error());
    float x[3];
    CHECK(mc_data_classes(d) == COUNT(names) && mc_data_rank(d) == 1 && mc_data_dims(d)[0] == 3, "%d classes",
          mc_data_classes(d));
    for (size_t k = 0; k < COUNT(names); k++) {
        CHECK(strcmp(mc_data_class(d, (int)k), names[k]) == 0, "class %zu is '%s'", k,
              mc_data_class(d, (int)k));
    }
    /* answers are characters 3 to 18 of the training set, 19 of the test set: a tenth of 17 */
    CHECK(mc_data_count(d) == 8 && mc_data_count(t) == 1, "%lld and %lld", (long long)mc_data_count(d),
          (long long)mc_data_count(t));
    mc_data_example(d, 1, x);
    CHECK(memcmp(x, second, sizeof x) == 0 && mc_data_label(d, 1) == 3, "%g %g %g, then %d", x[0], x[1], x[2],
          mc_data_label(d, 1));
    CHECK(mc_data_label(t, 0) == 1, "the last character is %d", mc_data_label(t, 0));
    mc_data_free(d);
    mc_data_free(t);
    drop_folder();
}

TEST(bad_texts_are_refused)
{
    static const struct {
        const char *text, *settings, *says;
    } rows[] = {
        { "", "", "the file is empty" },
        { "0123456789", ":length=9", "the text has 10 characters; windows of length=9 need at least 11" },
        { "0123456789", "", "windows of length=40 need at least 42" },
        { "0123456789ab\xff", ":length=4", "byte 13 is not UTF-8" },
        { "0123456789ab\xc3", ":length=4", "byte 13 is not UTF-8" },
        { "0123456789\xc0\x80", ":length=4", "byte 11 is not UTF-8" },
        { "0123456789\xed\xa0\x80", ":length=4", "byte 11 is not UTF-8" }, /* half of a pair */
        { "0123456789", ":lenght=4", "unknown setting 'lenght'; did you mean 'length'?" },
        { "0123456789", ":length=0", "length takes a whole number of at least 1, not '0'" },
        { "0123456789", ":step=x", "step takes a whole number of at least 1, not 'x'" },
        { "0123456789", ":length=8", NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        mc_data *d = mc_data_open(put(rows[i].text, 1, rows[i].settings), MC_TRAIN);
        CHECK(rows[i].says ? !d && strstr(mc_last_error(), rows[i].says) : d != NULL, "row %zu: %s", i,
              d ? "was read" : mc_last_error());
        mc_data_free(d);
    }
    CHECK(!mc_data_open("text:", MC_TRAIN) && strstr(mc_last_error(), "no file is given"), "%s",
          mc_last_error());
    CHECK(!mc_data_open("text:no/where", MC_TRAIN) && strstr(mc_last_error(), "no/where"), "%s",
          mc_last_error());
    drop_folder();
}

TEST(texts_without_memory)
{
    const char *where = put("b\xc3\xa4\na\\", 4, ":length=3:step=2");
    ALLOC_FAIL_LOOP {
        mc_data *d = mc_data_open(where, MC_TRAIN);
        CHECK(ALLOC_FAILED ? !d || mc_data_count(d) == 8 : d != NULL, "%s", mc_last_error());
        mc_data_free(d);
    }
    drop_folder();
}

/* The least cost of a model that knows the frequencies of characters alone: their entropy. */
static double entropy(const char *text)
{
    double count[256] = { 0 }, sum = 0, n = (double)strlen(text);
    for (; *text; text++) {
        count[(unsigned char)*text]++;
    }
    for (int i = 0; i < 256; i++) {
        sum -= count[i] > 0 ? count[i] / n * log(count[i] / n) : 0;
    }
    return sum;
}

/* The cost of an example of the test set, after so many epochs. */
static float cost_after(mc_net *net, mc_data *d, mc_data *held, int epochs)
{
    mc_function *learn = mc_net_trainer(net), *test = mc_net_tester(net);
    mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 20, .shuffle = 1, .seed = 1 }),
               *tb = mc_batches_new(held, &(mc_batch_spec){ .size = mc_data_count(held) });
    const mc_array *x, *t;
    mc_array *y = NULL;
    float cost = NAN, wrong = NAN;
    const bool good = CHECK(learn && test && b && tb, "%s", mc_last_error());
    for (int e = 0; good && e < epochs; e++) {
        mc_batches_start(b, e, 0);
        while (mc_batches_next(b, &x, &t) == 1) {
            CHECK(mc_call(learn, MC_IN(x, t), MC_OUT(&cost, &wrong)) == MC_OK, "%s", mc_last_error());
        }
    }
    if (good) {
        mc_batches_start(tb, 0, 0);
        CHECK(mc_batches_next(tb, &x, &t) == 1 &&
                  mc_call(test, MC_IN(x, t), MC_OUT(&cost, &wrong, &y)) == MC_OK,
              "%s", mc_last_error());
    }
    mc_array_unref(&y);
    mc_batches_free(b);
    mc_batches_free(tb);
    mc_function_free(learn);
    mc_function_free(test);
    return cost;
}

TEST(a_model_learns_a_text)
{
    static const char *const kinds[] = { "lstm 24 peepholes=false forgetgate=gate(b=1)", "gru 24",
                                         "recurrent 24 tanh W_hid=orthogonal W_in=glorot_uniform" };
    const char *where = put(fox, 30, ":length=8");
    const double unigram = entropy(fox);
    mc_flag_set("floatX", "float32");
    for (size_t k = 0; k < COUNT(kinds); k++) {
        mc_data *d = mc_data_open(where, MC_TRAIN), *held = mc_data_open(where, MC_TEST);
        REQUIRE(d && held, "%s", mc_last_error());
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_net_add(net, "input 8");
        mc_net_add(net, "embedding 32 12 W=normal(0.1)");
        mc_net_add(net, "%s only_return_final=true grad_clipping=5", kinds[k]);
        mc_net_add(net, "dense %d softmax", mc_data_classes(d));
        mc_net_add(net, "rule adam rate=0.02");
        const float cost = cost_after(net, d, held, 4);
        CHECK(cost < 0.25 * unigram, "%s: %g a character; frequencies alone reach %g", kinds[k], cost,
              unigram);
        mc_net_free(net);
        mc_graph_free(g);
        mc_data_free(d);
        mc_data_free(held);
    }
    drop_folder();
}

/* Words in no order: within a word its letters say what follows. */
static void put_words(char *text, size_t most)
{
    static const char *const words[] = { "monochord ", "string ",   "bridge ",     "octave ",
                                         "fifth ",     "comma ",    "tetrachord ", "pluck ",
                                         "wood ",      "resonate ", "theano ",     "node " };
    uint64_t state = 7;
    for (size_t n = 0; n + 12 < most; n += strlen(text + n)) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        snprintf(text + n, most - n, "%s", words[(state >> 33) % COUNT(words)]);
    }
}

#define EACH                                                                                                 \
    "also formula '-take_along_axis(log(dense1)[:, :-1], cast(x[:, 1:], int32)[:, :, None], axis=2)' "       \
    "weight=0.9375"
/* Bits a character of the test set after some epochs: a loss at the last position, or at each one. */
static double bits_of(const char *where, bool each)
{
    mc_data *d = mc_data_open(where, MC_TRAIN), *held = mc_data_open(where, MC_TEST);
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    const int classes = mc_data_classes(d);
    mc_net_add(net, "input 16");
    mc_net_add(net, "embedding 32 12 W=normal(0.1)");
    mc_net_add(net, "lstm 32 peepholes=false forgetgate=gate(b=1) grad_clipping=5");
    mc_net_add(net, "dense %d softmax axes=2", classes);
    mc_net_add(net, "expression '$x[:, -1]' from=lstm1");
    mc_net_add(net, "dense %d softmax W=dense1_W b=dense1_b", classes);
    CHECK(mc_net_read(net, "rule", each ? "rule adam rate=0.01\n" EACH : "rule adam rate=0.01\n") == MC_OK,
          "%s", mc_error(g));
    const float cost = cost_after(net, d, held, 4);
    mc_net_free(net);
    mc_graph_free(g);
    mc_data_free(d);
    mc_data_free(held);
    return (double)cost / log(2);
}

TEST(answers_at_every_position_teach_more)
{
    static char text[6000];
    mc_flag_set("floatX", "float32");
    put_words(text, sizeof text);
    const char *where = put(text, 1, ":length=16:step=8");
    const double last = bits_of(where, false), each = bits_of(where, true);
    CHECK(each < 0.7 * last, "%g bits a character at every position, %g at the last", each, last);
    drop_folder();
}

/* The program prints what the model writes, and its page has it too. */
static const char begin[] =
    "d=$(mktemp -d) && cd $d || exit 99; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 "
    "23 24 25 "
    "26 27 28 29 30; do echo the quick brown fox jumps over the lazy dog.; done > fox.txt; printf 'input "
    "8\\nembedding 32 12 W=normal(0.1)\\nlstm 24 peepholes=false only_return_final=true\\ndense 32 "
    "softmax\\nbatch 20\\nepochs 6\\nrule adam rate=0.02\\n' > c.txt; ",
                  end[] = " ; s=$?; cd /; rm -r $d; exit $s";

static const struct row runs[] = {
    { "@/monochord train c.txt --data text:fox.txt:length=8 --temperature 0.2 && grep -c 'What it "
      "writes\\|perplexity of' report.html",
      0,
      { "29 classes", "fox jumps over the lazy dog.", "\n2\n" } },
    { "@/monochord train c.txt --data text:fox.txt:length=8 --temperature 0 --report none | grep -c 'over "
      "the'; true",
      0,
      { "0\n" } },
    { "@/monochord train c.txt --data text:fox.txt:length=8 --quiet --report none && @/monochord predict "
      "c.npz --data text:fox.txt:length=8",
      0,
      { "examples: error " } },
    { "@/monochord train c.txt --data text:fox.txt:length=8 --quiet --report none --epochs 1 && sed s/q/Q/ "
      "fox.txt > g.txt && @/monochord predict c.npz --data "
      "text:g.txt:length=8",
      1,
      { "but the model's is" } },
    { "@/monochord train c.txt --data text:fox.txt", 1, { "the examples are 40, but the model expects 8" } },
    { "@/monochord train c.txt --data text:fox.txt --report fox.txt",
      1,
      { "'fox.txt' is the data: it is not replaced" } },
    { "@/monochord train c.txt --data text:fox.txt --temperature hot",
      1,
      { "--temperature needs a number of at least 0, not 'hot'" } },
};

static char *in_own_folder(const char *command, int *status)
{
    char whole[6144];
    snprintf(whole, sizeof whole, "%s(%s) 2>&1%s", begin, command, end);
    return output_of(whole, status);
}

TEST(monochord_trains_a_model_of_characters)
{
    run_rows(runs, COUNT(runs), in_own_folder);
}
