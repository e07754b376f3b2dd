/* t_timer.c: what times candidates: as many runs as the time allows, and failures told. */
#include "check.h"
#include "plan/plan.h"
#include "spin.h"

static int calls, fail_at;

static mc_status work(void *arg)
{
    calls++;
    spin(*(double *)arg);
    return fail_at && calls >= fail_at ? mc_fail(MC_EDEVICE, "no more") : MC_OK;
}

TEST(timer_times)
{
    static const double takes[] = { 0, 1e-6, 100e-6, 3e-3 };
    for (size_t i = 0; i < NELEM(takes); i++) {
        double t = takes[i];
        calls = fail_at = 0;
        const double start = mc_now();
        const struct mc_timing got = mc_time(work, &t, 20e-3, 0);
        CHECK(got.n > 0 && got.least <= got.median && got.median <= got.most, "%d: %g %g %g", got.n,
              got.least, got.median, got.most);
        CHECK(got.least >= t, "%g in %g", t, got.least);
        CHECK(calls > got.n, "no call went before");
        CHECK(mc_now() - start < 1, "the budget was overrun by far");
    }
}

static int prepared;

static void long_preparation(void *arg)
{
    (void)arg;
    prepared++;
    spin(2e-3);
}

TEST(timer_leaves_out_what_comes_before_each_call)
{
    double t = 100e-6;
    calls = fail_at = prepared = 0;
    const struct mc_timing got = mc_time_each(long_preparation, work, &t, 20e-3, 0);
    CHECK(got.n > 0 && got.least >= t && got.least < 1e-3, "%g", got.least);
    CHECK(prepared == calls, "prepared %d times for %d calls", prepared, calls);
}

TEST(timer_tells_of_failures)
{
    for (int at = 1; at < 4; at++) {
        double t = 50e-6;
        calls = 0;
        fail_at = at;
        CHECK(mc_time(work, &t, 5e-3, 0).n == 0, "failing at call %d", at);
        CHECK(calls == at, "%d calls", calls);
    }
}
