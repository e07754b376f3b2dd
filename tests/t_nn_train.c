/* t_nn_train.c: training: nets that learn, seeds, schedules; what is saved is what is loaded. */
#include "nn_words.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SMALL "input 1x8x8\nconv 4 3x3 tanh\nbatch_norm\npool 2x2\ndropout 0.2\ndense 3 softmax\nrule adam 0.01\npenalty l2 0.001\n"

struct session {
    mc_graph *g;
    mc_net *net;
    mc_function *f;
    mc_array *x, *t;
};

static struct session begin(const char *model)
{
    struct session s = { mc_graph_new(), NULL, NULL, NULL, NULL };
    s.net = mc_net_new(s.g, NULL, 11);
    mc_net_read(s.net, "model", model);
    s.f = mc_net_trainer(s.net);
    s.x = mc_array_new(MC_FLOAT64, MC_SHAPE(12, 1, 8, 8));
    s.t = mc_array_new(MC_INT32, MC_SHAPE(12));
    for (int i = 0; i < 12 * 64; i++) { /* three classes of pictures, by where they are bright */
        ((double *)mc_array_data(s.x))[i] = sin(0.7 * i) + (i / 64 % 3 == i % 8 / 3);
    }
    for (int i = 0; i < 12; i++) {
        ((int32_t *)mc_array_data(s.t))[i] = i % 3;
    }
    return s;
}

static void end(struct session *s)
{
    mc_function_free(s->f);
    mc_array_unref(&s->x);
    mc_array_unref(&s->t);
    mc_net_free(s->net);
    mc_graph_free(s->g);
}

static double train(struct session *s, int steps)
{
    double cost = NAN, wrong;
    for (int i = 0; i < steps; i++) {
        if (!CHECK(s->f && mc_call(s->f, MC_IN(s->x, s->t), MC_OUT(&cost, &wrong)) == MC_OK, "%s",
                   mc_last_error())) {
            return NAN;
        }
    }
    return cost;
}

TEST(a_net_learns)
{
    struct session s = begin(SMALL);
    double before = train(&s, 1), after = train(&s, 60), cost = NAN, wrong = NAN;
    CHECK(before > 0.8 && after < 0.5 * before, "from %g to %g", before, after);
    mc_function *test = mc_net_tester(s.net), *predict = mc_net_predictor(s.net);
    mc_array *y = NULL, *z = NULL;
    CHECK(test && mc_call(test, MC_IN(s.x, s.t), MC_OUT(&cost, &wrong, &y)) == MC_OK, "%s", mc_last_error());
    CHECK(predict && mc_call(predict, MC_IN(s.x), MC_OUT(&z)) == MC_OK, "%s", mc_last_error());
    CHECK(wrong == 0 && cost < after, "wrong %g, cost %g", wrong, cost);
    for (int64_t i = 0; y && z && i < mc_array_size(y); i++) {
        CHECK(((double *)mc_array_data(y))[i] == ((double *)mc_array_data(z))[i],
              "predictor and tester differ");
    }
    mc_array *again = NULL;
    CHECK(mc_call(test, MC_IN(s.x, s.t), MC_OUT(&cost, &wrong, &again)) == MC_OK, "%s", mc_last_error());
    CHECK(y && again &&
              memcmp(mc_array_data(y), mc_array_data(again), sizeof(double) * (size_t)mc_array_size(y)) == 0,
          "testing changes the net");
    mc_array_unref(&again);
    mc_array_unref(&y);
    mc_array_unref(&z);
    mc_function_free(test);
    mc_function_free(predict);
    end(&s);
}

static bool close_to(double x, double y)
{
    return fabs(x - y) < 1e-11 * fabs(x);
}

/* Without results the same steps are taken, but for the order in which kernels round, and what they would
 * have said is summed. */
/* A variable that an expression uses is learned and saved once it is a parameter; a layer's that is not
 * trainable any more stays. */
TEST(tags_say_what_is_learned)
{
    mc_flag_set("floatX", "float32");
    mc_graph *g = mc_graph_new(), *other = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_array *one = mc_array_from(MC_FLOAT32, MC_NOSHAPE, (float[]){ 1 }),
             *x = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 3), (float[]){ 1, 2, 3, -1, 0.5f, 2 }),
             *t = mc_array_from(MC_INT32, MC_SHAPE(2), (int32_t[]){ 0, 1 });
    mc_shared *gain = mc_shared_new(g, "gain", one), *far = mc_shared_new(other, "gain", one);
    mc_net_read(net, "tags", "input 3\nexpression '$x * gain'\ndense 2 softmax\nrule sgd 0.5");
    mc_shared *w = mc_net_param(net, "trainable", 0).shared;
    mc_array *before = mc_shared_get(w), *copy = mc_array_copy(before);
    CHECK(!*mc_error(g) && mc_net_count(net, NULL) == 8, "%s, %lld numbers", mc_error(g),
          (long long)mc_net_count(net, NULL));
    CHECK(mc_net_tag(net, gain, "trainable") == MC_OK && mc_net_tag(net, w, "regularizable") == MC_OK, "%s",
          mc_last_error());
    CHECK(mc_net_count(net, NULL) == 9 && mc_net_count(net, "trainable") == 3 &&
              mc_net_count(net, "regularizable") == 6,
          "other counts");
    CHECK(strcmp(mc_net_param(net, "trainable", 1).name, "gain") == 0, "gain is not listed");
    CHECK(mc_net_tag(net, far, "trainable") == MC_EARG &&
              strstr(mc_last_error(), "'gain' is not a shared variable of the net's graph"),
          "%s", mc_last_error());
    CHECK(mc_net_tag(NULL, gain, "trainable") == MC_EARG && mc_net_tag(net, NULL, "trainable") == MC_EARG,
          "nothing was tagged");
    mc_function *train = mc_net_trainer(net);
    CHECK(train && mc_call(train, MC_IN(x, t), MC_NONE) == MC_OK, "%s", mc_last_error());
    mc_array *after = mc_shared_get(w), *learned = mc_shared_get(gain);
    CHECK(memcmp(mc_array_data(after), mc_array_data(copy), 6 * sizeof(float)) == 0,
          "what is not trainable has changed");
    CHECK(*(float *)mc_array_data(learned) != 1, "the gain has not");
    mc_array *all[] = { one, x, t, before, copy, after, learned };
    for (int i = 0; i < COUNT(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(train);
    mc_net_free(net);
    mc_graph_free(g);
    mc_graph_free(other);
}

TEST(a_learner_adds_up_what_a_trainer_says)
{
    struct session a = begin(SMALL), b = begin(SMALL);
    double cost = 0, wrong = 0, sums[2], want[2] = { 5, 7 };
    CHECK(mc_net_sums(b.net, sums) < 0 && strstr(mc_last_error(), "no learner"), "sums of nothing");
    mc_function *learn = mc_net_learner(b.net);
    REQUIRE(a.f && learn, "%s", mc_last_error());
    CHECK(mc_net_set_sums(b.net, want) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < 4; i++) {
        CHECK(mc_call(a.f, MC_IN(a.x, a.t), MC_OUT(&cost, &wrong)) == MC_OK &&
                  mc_call(learn, MC_IN(b.x, b.t), MC_NONE) == MC_OK,
              "%s", mc_last_error());
        want[0] += 12 * cost, want[1] += 12 * wrong;
    }
    CHECK(mc_net_sums(b.net, sums) == MC_OK && close_to(sums[0], want[0]) && close_to(sums[1], want[1]),
          "%.17g and %.17g, not %.17g and %.17g", sums[0], sums[1], want[0], want[1]);
    for (int i = 0; mc_net_param(a.net, "trainable", i).name; i++) {
        mc_array *x = mc_shared_get(mc_net_param(a.net, "trainable", i).shared),
                 *y = mc_shared_get(mc_net_param(b.net, "trainable", i).shared);
        for (int64_t k = 0; k < mc_array_size(x); k++) {
            CHECK(close_to(((double *)mc_array_data(x))[k], ((double *)mc_array_data(y))[k]), "parameter %d",
                  i);
        }
        mc_array_unref(&x), mc_array_unref(&y);
    }
    mc_function_free(learn);
    end(&a);
    end(&b);
}

TEST(the_same_seed_trains_the_same)
{
    struct session a = begin(SMALL), b = begin(SMALL);
    double one = train(&a, 5), other = train(&b, 5);
    CHECK(one == other, "%.17g, then %.17g", one, other);
    end(&a);
    end(&b);
}

/* Stopped, saved, loaded into a net made anew, and gone on with: the same numbers as without a break. */
TEST(a_saved_net_goes_on_as_if_it_had_not_stopped)
{
    char path[] = "/tmp/t_nn_XXXXXX";
    int file = mkstemp(path);
    struct session a = begin(SMALL), b = begin(SMALL);
    train(&a, 3);
    CHECK(mc_net_save_params(a.net, path, "") == MC_OK, "%s", mc_last_error());
    CHECK(mc_net_save_params(a.net, path, "state") == MC_OK, "%s", mc_last_error());
    CHECK(mc_net_load_params(b.net, path, "state") == MC_OK, "%s", mc_last_error());
    CHECK(mc_net_save_params(a.net, path, NULL) == MC_OK, "%s", mc_last_error());
    CHECK(mc_net_load_params(b.net, path, NULL) == MC_OK, "%s", mc_last_error());
    double straight = train(&a, 3), broken = train(&b, 3);
    CHECK(straight == broken, "%.17g, not %.17g", broken, straight);
    close(file);
    unlink(path);
    end(&a);
    end(&b);
}

TEST(files_that_do_not_fit_change_nothing)
{
    char path[] = "/tmp/t_nn_XXXXXX";
    int file = mkstemp(path);
    struct session a = begin(SMALL);
    static const struct { const char *model, *says; } others[] = {
        { "input 1x8x8\nconv 5 3x3\nbatch_norm\npool 2\ndense 3 softmax\n", "'conv1_W' has shape (5, 1, 3, 3); the net's has (4, 1, 3, 3)" },
        { "input 1x8x8\nconv 4 3x3\npool 2\ndense 3 softmax\n",           "the file has no 'batch_norm1_beta'" },
        { "input 1x8x8\nconv 4 3x3\nbatch_norm\npool 2\ndense 3 softmax\ndense 3 softmax\n", "the file has 'dense2_W', but the net has not" },
    };
    double before = first(mc_net_param(a.net, NULL, 1).shared, 0);
    for (int i = 0; i < COUNT(others); i++) {
        struct session b = begin(others[i].model);
        CHECK(mc_net_save_params(b.net, path, NULL) == MC_OK, "%s", mc_last_error());
        CHECK(mc_net_load_params(a.net, path, NULL) < 0 && strstr(mc_last_error(), others[i].says), "%s",
              mc_last_error());
        CHECK(first(mc_net_param(a.net, NULL, 1).shared, 0) == before, "it was changed");
        end(&b);
    }
    CHECK(mc_net_load_params(a.net, "/nonexistent/x.npz", NULL) < 0 &&
              strstr(mc_last_error(), "/nonexistent"),
          "%s", mc_last_error());
    CHECK(ftruncate(file, 30) == 0 && mc_net_load_params(a.net, path, NULL) < 0, "a damaged file was loaded");
    close(file);
    unlink(path);
    end(&a);
}

TEST(schedules)
{
    static const struct { const char *line; double epoch, rate; } rows[] = {
        { "schedule constant", 5, 1 }, { "schedule step 10 by=0.1", 9.9, 1 }, { "schedule step 10 by=0.1", 20, 0.01 },
        { "schedule exponential 0.5", 2, 0.25 }, { "schedule linear", 5, 0.5 }, { "schedule linear to=0.5", 10, 0.5 },
        { "schedule cosine", 5, 0.5 }, { "schedule cosine", 10, 0 }, { "schedule constant warmup=4", 1, 0.25 },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_net_add(net, "rule sgd 1");
        mc_net_add(net, "epochs 10");
        mc_net_add(net, "%s", rows[i].line);
        CHECK(!*mc_error(g), "%s", mc_error(g));
        CHECK(fabs(mc_net_rate(net, rows[i].epoch) - rows[i].rate) < 1e-12, "%s at %g: %g", rows[i].line,
              rows[i].epoch, mc_net_rate(net, rows[i].epoch));
        mc_net_free(net);
        mc_graph_free(g);
    }
}

TEST(no_memory_is_an_error_and_no_leak)
{
    mc_flag_set("threads", "1");
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 11);
        mc_status s = net ? mc_net_read(net, "model",
                                        "input 1x4x4\nconv 2 3x3 tanh\nbatch_norm\ndropout 0.2\ndense 3 "
                                        "softmax\nrule adam 0.01\npenalty l2 0.001\n")
                          : MC_EMEMORY;
        mc_node *cost = s == MC_OK ? mc_net_cost(net, MC_TRAINING) : NULL;
        mc_updates u = s == MC_OK ? mc_net_updates(net, cost, NULL) : (mc_updates){ NULL, NULL, 0 };
        CHECK(ALLOC_FAILED || (s == MC_OK && u.n == 21), "%d updates: %s", u.n, g ? mc_error(g) : "no graph");
        CHECK(!ALLOC_FAILED || !g || !net || s < 0 || mc_graph_status(g) < 0 || u.n == 21,
              "a failure that nobody told: %d updates, %d layers, said: %s", u.n, mc_net_nlayers(net),
              mc_last_error());
        mc_net_free(net);
        mc_graph_free(g);
    }
}
