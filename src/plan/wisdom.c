/* wisdom.c: which solver was fastest, remembered on disk.
 *
 *     monochord wisdom 1 0.1.0 5f1c...          form, version, processor
 *     gemm f32 nn m64n64k64 t2 s0badcafe packed 3.1e-06     word, solver, seconds
 *     end 1 77aa...                             lines above, hash of all text above
 *
 * Where the flag cpu.isa says less than native, its word stands before the others: "avx2 gemm f32 ...".
 *
 * Invariant: a file counts whole or not at all.  The first line must be the one this build writes on
 * this processor and the last must fit the rest; else the file is as good as absent. */
#include "plan/plan.h"
#include "device/cpu/cpu.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct line {
    char *word;
    char solver[64];
    double seconds;
};
typedef VEC(struct line) lines; /* sorted by word */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lines known;
static char *known_path; /* the file that `known` was read from; NULL: none yet */

/* ---- lines ---- */

static size_t place(const lines *l, const char *word, bool *found)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        const int order = strcmp(l->at[mid].word, word);
        if (order == 0) {
            *found = true;
            return mid;
        }
        lo = order < 0 ? mid + 1 : lo;
        hi = order < 0 ? hi : mid;
    }
    *found = false;
    return lo;
}

static bool put(lines *l, const char *word, const char *solver, double seconds)
{
    bool found;
    const size_t at = place(l, word, &found);
    if (!found) {
        char *copy = mc_strdup(word);
        if (!copy || !VEC_RESERVE(*l, 1)) {
            mc_free(copy);
            return false;
        }
        memmove(l->at + at + 1, l->at + at, (l->n - at) * sizeof l->at[0]);
        l->at[at].word = copy;
        l->n++;
    }
    snprintf(l->at[at].solver, sizeof l->at[at].solver, "%s", solver);
    l->at[at].seconds = seconds;
    return true;
}

static void drop(lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        mc_free(l->at[i].word);
    }
    VEC_FREE(*l);
}

/* Those of `from` that `to` does not have. */
static bool merge(lines *to, const lines *from)
{
    for (size_t i = 0; i < from->n; i++) {
        bool found;
        place(to, from->at[i].word, &found);
        if (!found && !put(to, from->at[i].word, from->at[i].solver, from->at[i].seconds)) {
            return false;
        }
    }
    return true;
}

/* ---- text ---- */

static void print_header(struct mc_str *out)
{
    mc_str_addf(out, "monochord wisdom 1 %s %016" PRIx64 "\n", MC_VERSION, mc_cpu_hash());
}

static void print_all(const lines *l, struct mc_str *out)
{
    print_header(out);
    for (size_t i = 0; i < l->n; i++) {
        mc_str_addf(out, "%s %s %.4e\n", l->at[i].word, l->at[i].solver, l->at[i].seconds);
    }
    mc_str_addf(out, "end %zu %016" PRIx64 "\n", l->n, out->s ? mc_hash(out->s, out->n, 0) : 0);
}

/* "word of several parts" solver seconds; cuts the line up in place. */
static bool parse_line(char *s, lines *l)
{
    char *end, *seconds = strrchr(s, ' ');
    if (!seconds || seconds == s) {
        return false;
    }
    *seconds++ = '\0';
    char *solver = strrchr(s, ' ');
    if (!solver || solver == s) {
        return false;
    }
    *solver++ = '\0';
    const double t = strtod(seconds, &end);
    if (end == seconds || *end || !(t >= 0) || !*solver || strlen(solver) >= sizeof l->at->solver) {
        return false;
    }
    return put(l, s, solver, t);
}

/* Where the last line begins, if it fits what is before it; else NULL. */
static char *tail(char *text, size_t n, size_t *count)
{
    char *at = text + n - 1; /* on the last line's end */
    uint64_t hash;
    int used = 0;
    if (*at != '\n') {
        return NULL;
    }
    while (at > text && at[-1] != '\n') {
        at--;
    }
    if (sscanf(at, "end %zu %16" SCNx64 "%n", count, &hash, &used) != 2 || at + used != text + n - 1) {
        return NULL;
    }
    return hash == mc_hash(text, (size_t)(at - text), 0) ? at : NULL;
}

/* NULL, or what is wrong with the text, which is cut up. */
static const char *parse(char *text, size_t n, lines *l)
{
    struct mc_str header = { 0 };
    const char *wrong = NULL;
    size_t count = 0;
    print_header(&header);
    if (header.bad) {
        wrong = "does not fit in memory";
    } else if (n <= header.n || memcmp(text, "monochord wisdom 1 ", 19) != 0) {
        wrong = "is not wisdom";
    } else if (memcmp(text, header.s, header.n) != 0) {
        wrong = "was made by another version or on another processor";
    }
    char *at = text + header.n, *stop = wrong ? NULL : tail(text, n, &count);
    mc_str_free(&header);
    while (stop && at < stop) {
        char *eol = memchr(at, '\n', (size_t)(stop - at));
        *eol = '\0';
        if (!parse_line(at, l)) {
            stop = NULL;
        }
        at = eol + 1;
    }
    if (!wrong && (!stop || count != l->n)) {
        wrong = "is damaged";
    }
    return wrong;
}

/* ---- the file ---- */

static bool file_name(struct mc_str *path)
{
    const char *dir = mc_cache_dir();
    if (*dir) {
        mc_str_addf(path, "%s/wisdom.txt", dir);
    }
    return *dir && !path->bad;
}

/* A file that is missing, damaged or foreign is no wisdom and no error. */
static bool read_file(const char *path, lines *l)
{
    char *text = NULL;
    size_t n = 0;
    if (access(path, R_OK) != 0 || mc_file_read(path, &text, &n) < 0) {
        return false;
    }
    const char *wrong = parse(text, n, l);
    mc_free(text);
    if (wrong) {
        LOG(LOG_PLAN, "wisdom in %s is ignored: it %s", path, wrong);
        drop(l);
    }
    return !wrong;
}

/* The cache folder may be changed by its flag: wisdom follows.  Without memory for the name it is still the same. */
static void load(void)
{
    struct mc_str path = { 0 };
    const char *now = file_name(&path) ? path.s : "";
    if (!path.bad && (!known_path || strcmp(known_path, now) != 0)) {
        drop(&known);
        mc_free(known_path);
        known_path = mc_strdup(now);
        if (*now) {
            read_file(now, &known);
        }
    }
    mc_str_free(&path);
}

/* Another process may have written since: its lines are kept where we have none. */
static mc_status save(void)
{
    lines theirs = { 0 };
    struct mc_str text = { 0 };
    mc_status s = MC_OK;
    if (!known_path || !*known_path) {
        return MC_OK;
    }
    if (read_file(known_path, &theirs) && !merge(&known, &theirs)) {
        s = MC_EMEMORY;
    }
    print_all(&known, &text);
    if (text.bad) {
        s = MC_EMEMORY;
    }
    if (s >= 0) {
        s = mc_file_write(known_path, text.s, text.n);
    }
    mc_str_free(&text);
    drop(&theirs);
    return s;
}

/* The word at the present level: what is fastest with fewer instructions is another question.  NULL: no memory. */
static const char *at_level(const char *word, struct mc_str *out)
{
    if (mc_flag_int(FLAG_isa) == 0) {
        return word;
    }
    mc_str_addf(out, "%s %s", mc_flag_text(FLAG_isa), word);
    return out->bad ? NULL : out->s;
}

/* ---- external ---- */

bool mc_wisdom_find(const char *word, char solver[64], double *seconds)
{
    struct mc_str full = { 0 };
    bool found = false;
    if ((word = at_level(word, &full))) {
        pthread_mutex_lock(&lock);
        load();
        const size_t at = place(&known, word, &found);
        if (found) {
            memcpy(solver, known.at[at].solver, sizeof known.at[at].solver);
            *seconds = known.at[at].seconds;
        }
        pthread_mutex_unlock(&lock);
    }
    mc_str_free(&full);
    return found;
}

void mc_wisdom_put(const char *word, const char *solver, double seconds)
{
    struct mc_str full = { 0 };
    if (strchr(word, '\n') || strpbrk(solver, " \n")) {
        return; /* would not read back */
    }
    if ((word = at_level(word, &full))) {
        pthread_mutex_lock(&lock);
        load();
        if (put(&known, word, solver, seconds)) {
            save(); /* a folder that cannot be written costs a new measurement next time, no more */
        }
        pthread_mutex_unlock(&lock);
    }
    mc_str_free(&full);
}

mc_status mc_wisdom_print(FILE *to)
{
    struct mc_str text = { 0 };
    pthread_mutex_lock(&lock);
    load();
    print_all(&known, &text);
    pthread_mutex_unlock(&lock);
    mc_status s = MC_EMEMORY;
    if (!text.bad) {
        s = fwrite(text.s, 1, text.n, to) == text.n ? MC_OK : mc_fail(MC_EFILE, "cannot write wisdom");
    }
    mc_str_free(&text);
    return s;
}

mc_status mc_wisdom_import(const char *path)
{
    lines theirs = { 0 };
    char *text = NULL;
    size_t n = 0;
    TRY(mc_file_read(path, &text, &n));
    const char *wrong = parse(text, n, &theirs);
    mc_free(text);
    mc_status s = MC_OK;
    if (wrong) {
        s = mc_fail(MC_EFORMAT, "wisdom in '%s' %s", path, wrong);
    } else {
        pthread_mutex_lock(&lock);
        load();
        s = merge(&known, &theirs) ? save() : MC_EMEMORY;
        pthread_mutex_unlock(&lock);
    }
    drop(&theirs);
    return s;
}

mc_status mc_wisdom_clear(void)
{
    pthread_mutex_lock(&lock);
    load();
    drop(&known);
    mc_status s = MC_OK;
    if (known_path && *known_path && access(known_path, F_OK) == 0 && remove(known_path) != 0) {
        s = mc_fail(MC_EFILE, "cannot remove '%s'", known_path);
    }
    pthread_mutex_unlock(&lock);
    return s;
}
