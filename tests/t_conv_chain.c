/* t_conv_chain.c: convolutions that follow each other, computed image by image or block by block. All numbers
 * are small integers, so that results are exact; their checksums are of tests/conv_chain.py. */
#include "check.h"
#include "device/cpu/cpu.h"
#include <monochord.h>
#include <math.h>
#include <stdio.h>

static const struct {
    int images, channels, height, width, first, second, third, taps, rest; /* rest: columns of q */
    long long size, sum;
} nets[] = {
    { 4, 3, 121, 123, 24, 16, 96, 3, 31, 38440, -185082144 },
    { 6, 3, 90, 94, 40, 8, 48, 5, 24, 33120, 737999664 },
    { 1, 3, 225, 231, 16, 16, 96, 3, 58, 33060, -297656192 },
    { 1, 2, 241, 240, 8, 24, 144, 5, 60, 36600, 1104267696 },
};

#define FILTER(name, a)                                                                                      \
    #name " = cast(reshape(arange(%d * %d * %d * %d) * " #a " %% 3 - 1, [%d, %d, %d, %d]), float32); "
#define SIZES(f, c, k) f, c, k, k, f, c, k, k

static void write_net(char *to, size_t room, size_t i, const char *last)
{
    const int c = nets[i].channels, a = nets[i].first, b = nets[i].second, e = nets[i].third,
              k = nets[i].taps;
    snprintf(to, room,
             "input x float32[?, ?, ?, ?]; " FILTER(A, 31) FILTER(D, 17) FILTER(P, 13) FILTER(E, 11)
                 FILTER(F, 7)
                     FILTER(Q, 5) "u = clip(conv(x, A, border=1, stride=[2]) + dimshuffle(cast(arange(%d) %% "
                                  "3 - 1, float32), [0, -1, -1]), 0, 6);"
                                  "v = clip(conv(u, D, border=%d, groups=%d), 0, 6); p = conv(v, P); e = "
                                  "clip(conv(p, E) - 1, 0, 6);"
                                  "q = clip(conv(e, F, border=%d, stride=[2], groups=%d) + cast(arange(%d), "
                                  "float32), 0, 60); y = %s",
             SIZES(a, c, 3), SIZES(a, 1, k), SIZES(b, a, 1), SIZES(e, b, 1), SIZES(e, 1, k), SIZES(10, e, 1),
             a, k / 2, a, k / 2, e, nets[i].rest, last);
}

/* The results of net i, and in how many steps convolutions were computed with others. */
static void run(size_t i, const char *last, mc_array **y, int *chains, int *idle)
{
    char text[4096];
    write_net(text, sizeof text, i, last);
    mc_graph *g = mc_graph_new();
    mc_formula(g, text);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
    mc_array *x = mc_array_new(MC_FLOAT32,
                               MC_SHAPE(nets[i].images, nets[i].channels, nets[i].height, nets[i].width));
    REQUIRE(f && x, "%s", mc_last_error());
    for (int64_t k = 0; k < mc_array_size(x); k++) {
        ((float *)mc_array_data(x))[k] = (float)(k * 7919 % 7 - 3);
    }
    for (int call = 0; call < 2; call++) {
        REQUIRE(mc_call(f, MC_IN(x), MC_OUT(y)) == MC_OK, "%s", mc_last_error());
    }
    *chains = *idle = 0;
    for (int k = 0; k < mc_function_nsteps(f); k++) {
        const char *s = mc_function_step(f, k).solver;
        *chains += s && strcmp(s, "chain") == 0;
        *idle += s && strcmp(s, "idle") == 0;
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

static long long checksum(const mc_array *y)
{
    double sum = 0;
    for (int64_t k = 0; k < mc_array_size(y); k++) {
        sum += (double)((const float *)mc_array_data(y))[k] * (double)(k % 1009 + 1);
    }
    return (long long)sum;
}

TEST(conv_chains_give_exact_sums_on_every_number_of_threads)
{
    static const char *const threads[] = { "1", "2", "3" };
    const bool large = mc_cpu()->l2 <= (4u << 20), /* else the results fit the cache */
        blocks = mc_cpu()->l2 >= (1u << 20);       /* half of it has a block of channels */
    mc_flag_set("plan", "measure");
    for (size_t t = 0; t < NELEM(threads); t++) {
        mc_flag_set("threads", threads[t]);
        for (size_t i = 0; i < NELEM(nets); i++) {
            mc_array *y = NULL;
            int chains, idle;
            run(i, "conv(q, Q)", &y, &chains, &idle);
            CHECK(mc_array_size(y) == nets[i].size && checksum(y) == nets[i].sum,
                  "net %zu: %lld numbers, sum %lld", i, (long long)mc_array_size(y), checksum(y));
            const bool even = nets[i].images > 1 ? nets[i].images % (int)(t + 1) == 0 : blocks;
            CHECK(!large || !mc_cc_present() || !even || (chains && idle),
                  "net %zu, %s threads: %d chains, %d idle", i, threads[t], chains, idle);
            mc_array_unref(&y);
        }
    }
    mc_flag_set("threads", "0");
    mc_flag_set("plan", "estimate");
}

TEST(conv_chains_store_what_several_convolutions_read)
{
    mc_flag_set("plan", "measure");
    for (size_t i = 0; i < NELEM(nets); i++) {
        mc_array *y = NULL;
        int chains, idle;
        run(i, "conv(q, Q) + conv(q, 1 - Q) + conv(q, Q - 1)", &y, &chains, &idle);
        CHECK(checksum(y) == nets[i].sum, "net %zu: sum %lld", i, checksum(y));
        mc_array_unref(&y);
    }
    mc_flag_set("plan", "estimate");
}

/* A result that something else reads, too, is stored. */
TEST(conv_chains_store_what_others_read)
{
    mc_flag_set("plan", "measure");
    for (size_t i = 0; i < NELEM(nets); i++) {
        mc_array *y[2] = { NULL };
        int chains, idle;
        run(i, "sum(e) + sum(p) + sum(v) + sum(conv(q, Q))", &y[0], &chains, &idle);
        mc_flag_set("plan", "estimate");
        run(i, "sum(e) + sum(p) + sum(v) + sum(conv(q, Q))", &y[1], &chains, &idle);
        mc_flag_set("plan", "measure");
        CHECK(idle == 0 && chains == 0, "plan=estimate: %d idle", idle);
        const float a = *(const float *)mc_array_data(y[0]), b = *(const float *)mc_array_data(y[1]);
        CHECK(fabsf(a - b) <= 1e-5f * fabsf(b), "net %zu: %g, not %g", i, (double)a, (double)b);
        mc_array_unref(&y[0]);
        mc_array_unref(&y[1]);
    }
    mc_flag_set("plan", "estimate");
}
