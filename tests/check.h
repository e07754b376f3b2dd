/* check.h: the test harness, one page.  `monochord_tests --help` lists what the runner takes.
 *
 *     TEST(sum_of_nothing)      { CHECK(f() == 3, "f gave %d", f()); }
 *     TEST_FULL(every_dtype)    { ... }                        -- only with --tier full
 *
 * Each test runs in a process of its own, so a crash, a hang or a sanitizer's complaint is that
 * test's failure and no test sees another's globals.  Its random numbers depend on --seed and on
 * its own name, so a test that fails in the crowd fails alone too. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test {
    const char *name, *file;
    void (*run)(void);
    bool full;
    struct test *next;
};
void test_add(struct test *t);

#define TEST(id) TEST_(id, false)
#define TEST_FULL(id) TEST_(id, true)
#define TEST_(id, slow)                                                                            \
    static void test_##id(void);                                                                   \
    __attribute__((constructor)) static void add_##id(void)                                        \
    {                                                                                              \
        static struct test t = { #id, __FILE__, test_##id, slow, NULL };                           \
        test_add(&t);                                                                              \
    }                                                                                              \
    static void test_##id(void)

/* Counts; when cond is false prints its text and the message, and goes on.  Its value is cond. */
#define CHECK(cond, ...)                                                                           \
    __extension__({                                                                                \
        bool so_ = (cond);                                                                         \
        so_ ? check_passed() : check_failed(#cond, __FILE__, __LINE__, __VA_ARGS__);               \
        so_;                                                                                       \
    })
/* The same, but leaves the test (a void function) at once. */
#define REQUIRE(cond, ...)                                                                         \
    do {                                                                                           \
        if (!CHECK(cond, __VA_ARGS__)) {                                                           \
            return;                                                                                \
        }                                                                                          \
    } while (0)
/* Leaves the test, which counts as skipped unless a check failed before. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        check_skipped(__VA_ARGS__);                                                                \
        return;                                                                                    \
    } while (0)
void check_passed(void);
void check_failed(const char *cond, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void check_skipped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Random numbers of this test. */
uint64_t test_random(void);
double   test_uniform(double lo, double hi);

/* True in the full tier: for a test that widens its grid there. */
bool test_is_full(void);

/* Compares text with tests/golden/NAME, is true if they agree, and shows the first line that differs; under
 * `make bless` (MC_BLESS=1) writes it there instead. */
#define GOLDEN(name, text) check_golden((name), (text), __FILE__, __LINE__)
bool check_golden(const char *name, const char *text, const char *file, int line);

/* Runs the block again and again; in run n the library's n-th allocation fails.  Ends after a run
 * in which none had to fail, then does it all once more with caches warm, where each run must
 * give back what it took.
 *
 *     ALLOC_FAIL_LOOP {
 *         mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3));
 *         CHECK(a || ALLOC_FAILED, "no array, yet memory: %s", mc_last_error());
 *         mc_array_unref(&a);
 *     }
 */
struct fail_loop {
    const char *file;
    int line, phase, again;     /* again: how often the same run has been repeated */
    long n, live;
    bool started;
};
#define ALLOC_FAIL_LOOP for (struct fail_loop loop_ = { __FILE__, __LINE__ }; fail_next(&loop_);)
#define ALLOC_FAILED fail_happened() /* has an allocation of this run failed yet? */
bool fail_next(struct fail_loop *l);
bool fail_happened(void);

#endif
