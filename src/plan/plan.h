/* plan.h: five nouns, used by every family of heavy work.
 *
 *   problem   what is asked; equal problems print the same word: "gemm f32 nt m600n10k784"
 *   solver    one algorithm, one file, one row: says why it declines, what it costs
 *   plan      a solver bound to a problem, ready to run; may have child plans
 *   planner   picks: by estimate, by timing the likely ones, or by timing all
 *   wisdom    what timing found, lines of text on disk under a header of version and device
 *
 * A family is a struct mc_family: its solvers and how to make operands to time them with. */
#ifndef MC_PLAN_H
#define MC_PLAN_H

#include "base/base.h"

struct mc_plan;
struct mc_problem {             /* first member of every family's problem struct */
    const struct mc_family *family;
};
struct mc_solver {
    const char *name;           /* in wisdom, flags and logs */
    bool nondeterministic;
    const char *(*refuse)(const struct mc_problem *p);   /* NULL: can do; else the reason, static text */
    double (*estimate)(const struct mc_problem *p);      /* seconds, roughly */
    struct mc_plan *(*plan)(const struct mc_problem *p); /* NULL: failed, error set */
    bool wraps;                                          /* answers by another solver of its family */
    /* keeps more bits than the problem asks for: wins where times tell nothing apart */
    bool finer;
    /* how exactly it computes, a library alone knows: see mc_family.error */
    bool doubted;
    /* seconds that no machine's luck makes fewer; NULL: nothing is known */
    double (*least)(const struct mc_problem *p);
    /* What only a library tells, which must be opened and takes its time: asked after refuse(), of who is to
     * be timed or was named; of another plan() finds out, and fails.  NULL: nothing. */
    const char *(*missing)(const struct mc_problem *p);
};
struct mc_plan {
    const struct mc_solver *solver;
    const struct mc_problem *problem;       /* owned copy, freed with the plan */
    double cost;                            /* seconds: estimated, or measured if `measured` */
    bool measured;
    size_t workspace;                       /* bytes it needs while it runs, aligned to 64 */
    mc_status (*run)(const struct mc_plan *p, void *const *operand, void *workspace, int threads);
    void (*destroy)(struct mc_plan *p);     /* frees what plan() made beyond this struct; may be NULL */
    struct mc_plan *child[2];
    void *state;
};
/* of an operand: elements from the lowest address on; count 0: it is not there */
struct mc_extent {
    mc_dtype dtype;
    int64_t before, count;      /* before: how many lie in front of the first */
};
/* What a solver may do to a finished element: max(v, 0) where a NaN stays; gelu by tanh; v where positive,
 * else exp(v) - 1; gelu by erf; v sigmoid(v). */
enum mc_act { ACT_NONE, ACT_RELU, ACT_GELU, ACT_TANH, ACT_SIGMOID, ACT_ELU, ACT_GELU_ERF, ACT_SWISH };
extern const char *const mc_act_names[];    /* as problems' words have them: "", " relu" */
struct mc_timing { double median, least, most; int n; };
/* Where a family's plans run, if not on the host: their operands and workspace lie there, and run() only
 * enqueues. */
struct mc_site {
    /* "cuda NVIDIA H200": what was timed here counts here alone */
    void (*word)(struct mc_str *out);
    void *(*take)(size_t bytes);                             /* workspace; NULL: failed, error set */
    void (*give)(void *p);
    /* as mc_time, until it is done */
    struct mc_timing (*time)(mc_status (*run)(void *arg), void *arg, double budget, double hopeless);
};
struct mc_family {
    const char *name;                                        /* "gemm" */
    const struct mc_solver *const *solvers;                  /* NULL-terminated; the last resort is last */
    size_t problem_size;                                     /* sizeof the family's problem struct */
    void (*word)(const struct mc_problem *p, struct mc_str *out);
    /* Operands to time with: fills operand[] with memory that mc_family.discard gives back. */
    mc_status (*operands)(const struct mc_problem *p, void *operand[8]);
    void (*discard)(const struct mc_problem *p, void *operand[8]);
    /* check=plan: compare a plan's result with the reference solver's. */
    mc_status (*verify)(const struct mc_problem *p, const struct mc_plan *plan);
    /* The solver that a flag names for p, or "auto"; may put another value of the flag plan into *mode.
     * NULL: error. */
    const char *(*forced)(const struct mc_problem *p, int64_t *mode);
    /* A smaller problem whose plans compare as those of p do and take about `seconds` by estimate: how many
     * times larger p is.  1, or no such function: p itself is timed. */
    double (*sample)(const struct mc_problem *p, double seconds, struct mc_problem *small);
    const struct mc_site *site;    /* NULL: the host */
    /* How far the result in operand[] is off, of its own size, by some of its elements, which are summed
     * again in float64 (negative: not to be told), and how far the problem's precision allows.  Asked of who
     * is doubted and was quickest; NULL: nobody is. */
    double (*error)(const struct mc_problem *p, void *const *operand);
    double (*allows)(const struct mc_problem *p);
};

/* ---- planner.c ---- */
struct mc_plan *mc_plan_make(const struct mc_problem *p);    /* NULL: no solver; error lists the reasons */
/* inside of another that is being made: as if nobody had asked for that */
struct mc_plan *mc_plan_alone(const struct mc_problem *p);
void mc_plan_reasons(const struct mc_problem *p, struct mc_str *out); /* why each solver declined */
/* the least estimate of the solvers that do not decline; 1e30: all do */
double mc_plan_cheapest(const struct mc_problem *p);
/* a call's: as wisdom has it, if that counts, else the least estimate; < 0: not known, or a solver is
 * forced */
double mc_plan_seconds(const struct mc_problem *p);
/* why s does; NULL: it can do it */
const char *mc_plan_declines(const struct mc_problem *p, const struct mc_solver *s);
/* ---- plan.c ---- */
/* cost: the solver's estimate */
struct mc_plan *mc_plan_with(const struct mc_problem *p, const struct mc_solver *s);
/* the same without asking for an estimate */
struct mc_plan *mc_plan_bind(const struct mc_problem *p, const struct mc_solver *s);
/* Nothing beyond the struct. */
struct mc_plan *mc_plan_bare(mc_status (*run)(const struct mc_plan *p, void *const *operand, void *workspace,
                                              int threads));
void mc_plan_free(struct mc_plan *p);
/* of its solver and those of its children; 0: nothing is known */
double mc_plan_least(const struct mc_plan *p);
void mc_plan_text(const struct mc_plan *p, struct mc_str *out); /* "(packed m600n10k784 (...))" */
/* For solvers that have a choice of their own inside: how it is to be made in the plan that is being made
 * now. */
enum mc_plan_mode { PLAN_ESTIMATE, PLAN_MEASURE, PLAN_EXHAUSTIVE };     /* in the order of the flag's words */
enum mc_plan_mode mc_plan_mode(void);
/* The most workspace that a plan may ask for there: the flag's, or less while this thread plans with less
 * room (INT64_MAX: no less); returned is the room before. */
size_t mc_plan_cap(const struct mc_site *site);
int64_t mc_plan_room(int64_t bytes);
/* ---- trial.c: plans for one problem run against each other ---- */
struct mc_trials {
    const struct mc_problem *problem;
    struct mc_problem *small;   /* what is timed instead; NULL: the problem */
    double each, end;           /* seconds for one plan; when all of them end */
    /* of those timed so far: of the whole, and of what was timed; 0: none was */
    double best, best_estimate, best_call;
    void *operand[8];
};
mc_status mc_trials_begin(struct mc_trials *t, const struct mc_problem *p, double seconds, size_t plans);
/* is there time for a plan that takes so long? */
bool mc_trials_worth(const struct mc_trials *t, double estimate);
/* Seconds into plan->cost, more than could win if it cannot; false: it could not be run, or is not exact, the
 * error says why. */
bool mc_trials_run(struct mc_trials *t, struct mc_plan *plan, double estimate);
void mc_trials_end(struct mc_trials *t);
/* Is what run() has left in operand[] as exact as p allows?  The error says how far it is off; where nothing
 * can be told it is. */
bool mc_plan_exact(const struct mc_problem *p, void *const *operand, const char *who);
/* ---- timer.c ---- */
/* Doubles the repetitions until one batch exceeds the clock's grain; stops at `budget` seconds, and after the
 * first call that takes more than `hopeless` (0: none does; the very first may take twice as long). */
struct mc_timing mc_time(mc_status (*run)(void *arg), void *arg, double budget, double hopeless);
/* ---- wisdom.c: all calls lock; the file is written whole by rename; a damaged or foreign file is ignored.
 * What prints, imports and clears it is public ---- */
bool mc_wisdom_find(const char *word, char solver[64], double *seconds);
void mc_wisdom_put(const char *word, const char *solver, double seconds);

/* For mc_flag_names: "auto" and the solvers of a table, behind the n names that are there; how many there are
 * then. */
size_t mc_solver_names(const struct mc_solver *const *solvers, const char **names, size_t n, size_t most);

#endif
