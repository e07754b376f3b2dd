/* algo_flag.c: the flags conv.algo_* and the attribute algo of a node. Both take the name of a solver or a
 * word of Theano's cuDNN flags.
 *
 * The name of a solver is an order: if the solver refuses the problem, that is an error with its reason.
 * Theano's words for algorithms have the fallbacks they have in Theano. The words guess and time choose the
 * planning mode. With "on_shape_change" every shape is planned; functions and wisdom remember the results.
 * With "once" the first shape that a function meets is planned, and its solver also serves the other shapes
 * unless it refuses them. Every solver of this project computes the same bits on every run, so the word
 * deterministic leaves the choice free.
 *
 * Invariant: the child problems of a wrapper are never forced to a solver. */
#include "heavy/conv/solver.h"

enum { AS_FLAG = -1, ESTIMATE, MEASURE };
static const struct word {
    const char *word;
    int mode;               /* in the order of the words of the flag plan */
    const char *solvers[5]; /* the first that does not refuse; auto if the list is empty */
} words[] = {
    { "auto",                  AS_FLAG,  { NULL } },
    { "none",                  AS_FLAG,  { "one", "cudnn", "im2col", "relayout" } },
    { "small",                 AS_FLAG,  { "one", "cudnn", "im2col", "relayout" } },
    { "large",                 AS_FLAG,  { "im2col", "relayout" } },
    { "fft",                   AS_FLAG,  { "fft", "cudnn", "im2col", "relayout" } },
    { "fft_tiling",            AS_FLAG,  { "fft_tiling", "fft", "cudnn", "im2col", "relayout" } },
    { "winograd",              AS_FLAG,  { "winograd", "cudnn", "im2col", "relayout" } },
    { "winograd_non_fused",    AS_FLAG,  { "winograd", "cudnn" } },
    { "deterministic",         AS_FLAG,  { NULL } },
    { "guess_once",            ESTIMATE, { NULL } },
    { "guess_on_shape_change", ESTIMATE, { NULL } },
    { "time_once",             MEASURE,  { NULL } },
    { "time_on_shape_change",  MEASURE,  { NULL } },
};
static const enum mc_flag flag_of[] = {
    [CONV_FORWARD] = FLAG_conv_algo_fwd, [CONV_INPUTS] = FLAG_conv_algo_bwd_data,
    [CONV_WEIGHTS] = FLAG_conv_algo_bwd_filter,
};

static const struct mc_solver *solver(const struct mc_solver *const *s, const char *name)
{
    for (; *s; s++) {
        if (strcmp((*s)->name, name) == 0) {
            return *s;
        }
    }
    return NULL;
}

static const char *first_able(const struct mc_problem *p, const struct word *w)
{
    for (size_t i = 0; i < NELEM(w->solvers) && w->solvers[i]; i++) {
        const struct mc_solver *s = solver(p->family->solvers, w->solvers[i]);
        const char *no = !s ? "is no solver on this device" : s->refuse ? s->refuse(p) : NULL;
        if (!no) {
            return s->name;
        }
        LOG(LOG_PLAN, "algorithm %s: %s %s", w->word, w->solvers[i], no);
    }
    return "auto";
}

/* NULL: the text is no word of the table. */
static const struct word *find(const char *text)
{
    for (size_t i = 0; i < NELEM(words); i++) {
        if (strcmp(words[i].word, text) == 0) {
            return &words[i];
        }
    }
    return NULL;
}

bool mc_conv_chooses_once(const char *algo)
{
    return strcmp(algo, "guess_once") == 0 || strcmp(algo, "time_once") == 0;
}

const char *mc_conv_lasting(const char *algo)
{
    const char *names[128];
    const size_t n = mc_flag_names_of[FLAG_conv_algo_fwd](names, NELEM(names));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], algo) == 0) {
            return names[i];
        }
    }
    return algo;
}

const char *mc_conv_asked(const struct mc_conv_problem *p)
{
    return p->inner ? "auto" : p->algo ? p->algo : mc_flag_text(flag_of[p->s.pass]);
}

size_t mc_conv_words(const char **names, size_t capacity)
{
    size_t n = 0;
    for (size_t i = 0; i < NELEM(words) && n < capacity; i++) {
        names[n++] = words[i].word;
    }
    return n;
}

const char *mc_conv_forced(const struct mc_problem *p, int64_t *mode)
{
    const char *text = mc_conv_asked(conv(p));
    const struct word *w = find(text); /* "auto" for child problems, which keeps the mode */
    if (!w) {
        return text; /* the planner checks whether such a solver exists */
    }
    *mode = w->mode == AS_FLAG ? *mode : w->mode;
    return first_able(p, w);
}
