/* agree.c: is what ranks are about to run the same?  Asked once, before the first step.
 *
 * Ranks compare a hash of a text; where hashes differ, they exchange the texts and name the first line that
 * differs.
 *
 * Invariant: every rank gets the same answer, with the same message. */
#include "base/flag.h"
#include "comm/comm.h"
#include <stdlib.h>

/* Flags that change no result: ranks may differ in them. */
static const char *const free_flags[] = {
    "threads",  "on_unused_input", "allow_gc",    "cc.timeout",    "comm.timeout", "comm.mpi", "cache",
    "cache_size", "cuda.path",     "cuda.beside", "cuda.blocking", "cuda.host",    "debug",    "check",
    "profile",  "trace",
};

static bool is_free(const char *name)
{
    for (size_t i = 0; i < NELEM(free_flags); i++) {
        if (strcmp(name, free_flags[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* cuda0 and cuda1 are the same kind of device. */
static int kind_length(enum mc_flag f, const char *value)
{
    const size_t n = strlen(value);
    return (int)(f == FLAG_device ? strcspn(value, "0123456789") : n);
}

static void describe(struct mc_str *out, const char *text)
{
    mc_str_addf(out, "version %s\n", mc_version());
    for (int f = 0; f < MC_NFLAG; f++) {
        const char *value = mc_flag_text((enum mc_flag)f);
        if (!is_free(mc_flag_rows[f].name)) {
            mc_str_addf(out, "flag %s=%.*s\n", mc_flag_rows[f].name, kind_length((enum mc_flag)f, value),
                        value);
        }
    }
    mc_str_addf(out, "%s", text);
}

/* ---- where texts differ ---- */

enum { MOST_OF_LINE = 160 };    /* bytes that a message shows */

/* The line that begins at s, for a message; a text that has ended has none. */
static void show(struct mc_str *out, const char *s)
{
    const size_t n = strcspn(s, "\n");
    mc_str_addf(out, *s ? "'%.*s%s'" : "nothing there", (int)MC_MIN(n, (size_t)MOST_OF_LINE), s,
                n > MOST_OF_LINE ? "..." : "");
}

/* The first line of each that differs. */
static void first_difference(const char **a, const char **b)
{
    for (;;) {
        const size_t n = strcspn(*a, "\n"), m = strcspn(*b, "\n");
        if (n != m || memcmp(*a, *b, n) != 0 || !(*a)[n] || !(*b)[n]) {
            return;
        }
        *a += n + 1;
        *b += n + 1;
    }
}

static mc_status tell(int rank, const char *first, const char *other)
{
    struct mc_str a = { 0 }, b = { 0 };
    first_difference(&first, &other);
    show(&a, first);
    show(&b, other);
    mc_fail(MC_ECHECK, "ranks differ: rank 0 has %s, rank %d has %s", a.s ? a.s : "?", rank, b.s ? b.s : "?");
    mc_str_free(&a);
    mc_str_free(&b);
    return MC_ECHECK;
}

/* most: the length of the longest text */
static mc_status compare(mc_comm *c, const char *text, size_t most)
{
    const size_t each = most + 1;
    char *all = mc_calloc((size_t)c->size + 1, each, "comm"),
         *mine = all ? all + each * (size_t)c->size : NULL;
    mc_status s = all ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        memcpy(mine, text, strlen(text));
        s = mc_comm_gather_to(c, "comm_agree", MC_UINT8, mine, all, (int64_t)each);
    }
    for (int i = 1; i < c->size && s == MC_OK; i++) {
        s = strcmp(all, all + each * (size_t)i) ? tell(i, all, all + each * (size_t)i) : MC_OK;
    }
    mc_free(all);
    return s;
}

mc_status mc_comm_agree(mc_comm *c, const char *text)
{
    if (!c || !text) {
        return mc_fail(MC_EARG, "comm_agree: the %s is missing", c ? "text" : "communicator");
    }
    struct mc_str whole = { 0 };
    describe(&whole, text);
    uint64_t *all = mc_calloc(2 * (size_t)c->size, sizeof *all, "comm");
    mc_status s = whole.s && all ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        const uint64_t own[2] = { mc_hash(whole.s, strlen(whole.s), 0), strlen(whole.s) };
        s = mc_comm_gather_to(c, "comm_agree", MC_UINT64, own, all, 2);
    }
    uint64_t most = 0;
    bool same = true;
    for (int i = 0; i < c->size && s == MC_OK; i++) {
        same &= all[2 * i] == all[0] && all[2 * i + 1] == all[1];
        most = MC_MAX(most, all[2 * i + 1]);
    }
    s = s == MC_OK && !same ? compare(c, whole.s, most) : s;
    mc_free(all);
    mc_str_free(&whole);
    return s;
}
