/* plan.h: problems, solvers, plans, the planner and wisdom, for every family of heavy work.
 *
 *   problem   what is to be computed; equal problems have equal keys: "gemm f32 nt m600n10k784"
 *   options   how a plan for it is to be made; they travel with the problem and are not part of its key
 *   solver    one algorithm: one file, one row of a table; it can refuse a problem, and estimates its time
 *   plan      a solver bound to a problem, ready to run; it may have child plans
 *   planner   selects a solver: by estimate, by timing the likely ones, or by timing all
 *   wisdom    results of timing: lines of text on disk, under a header of version and device
 *
 * A family is a struct mc_family: its solvers, and how to time and check them.
 *
 * Invariant: the choice of a plan depends on the problem, its options, wisdom, the number of threads, and the
 * flags that name solvers and precisions.  What one call of the planner does changes no other. */
#ifndef MC_PLAN_H
#define MC_PLAN_H

#include "base/base.h"
#include "plan/act.h"

struct mc_plan;
struct mc_site;
enum mc_plan_mode { PLAN_ESTIMATE, PLAN_MEASURE, PLAN_EXHAUSTIVE };     /* in the order of the flag's words */
/* Solvers that were chosen before, on this processor and for as many threads: sorted by key.  A bundle has
 * such a list. */
struct mc_chosen {
    struct mc_chosen_solver { const char *key, *solver; double seconds; } * at;
    size_t n;
};
/* How a plan is to be made.  mc_plan_options_of reads the flags once, when a shape is planned.  From there
 * the options are passed on: a solver gives the options of its problem to the problems of its children. */
struct mc_plan_options {
    enum mc_plan_mode mode;         /* the flag plan */
    /* How many solvers around this problem are still being selected.  The planner adds one for each.  Each
     * level lowers the mode by one step: the children of a candidate that is timed as a whole are selected by
     * estimate under plan=measure. */
    int depth;
    /* For a solver that selects among algorithms of its own (cuBLASLt, cuDNN): how it is to do so.  It is the
     * mode in which the solver itself was selected, which a flag of the family may have set. */
    enum mc_plan_mode solver_mode;
    size_t workspace;               /* the most bytes of workspace that a plan may need */
    bool out_of_memory;             /* `workspace` is lower than the flag because memory ran out */
    bool deterministic;             /* solvers that are not deterministic are not considered */
    bool portable;                  /* solvers that are not portable are not considered */
    bool check;                     /* check=3: the result of each plan is compared with the reference */
    const struct mc_chosen *chosen; /* solvers for problems that it lists; NULL: there is no list */
    /* for this problem and not for its children: taken if it does not refuse; NULL: the planner selects */
    const struct mc_solver *solver;
};
struct mc_problem {             /* first member of every family's problem struct */
    const struct mc_family *family;
    struct mc_plan_options options;
};
/* Is a reference of sums of products a substitute for a solver named portable that refuses?  A runtime has no
 * such solvers, and its sums would have other bits. */
#ifdef MC_RUNTIME
#define MC_PORTABLE false
#else
#define MC_PORTABLE true
#endif
/* What a family has for timing solvers, for comparing them with the reference, and for bands of rows: a
 * runtime does none of these. */
#ifdef MC_RUNTIME
#define TRIED(function) NULL
#else
#define TRIED(function) function
#endif
struct mc_solver {
    const char *name;           /* in wisdom, flags and logs */
    bool nondeterministic;      /* two runs may give different bits */
    const char *(*refuse)(const struct mc_problem *p);   /* why, as static text; NULL: it can do p */
    double (*estimate)(const struct mc_problem *p);      /* seconds, roughly */
    struct mc_plan *(*plan)(const struct mc_problem *p); /* NULL: failed, error set */
    bool wraps;                                          /* it uses another solver of its family */
    bool finer;                 /* keeps more bits than the problem asks for: it wins between equal times */
    bool doubted;               /* a library whose precision only the library knows: see mc_family.error */
    double (*least)(const struct mc_problem *p);         /* lower bound in seconds; NULL: none is known */
    /* Reasons to refuse that only an open library can give.  Opening one takes time, so this is called after
     * refuse(), for solvers that are to be timed or were named by a flag; for others plan() fails.  NULL:
     * there are no such reasons. */
    const char *(*missing)(const struct mc_problem *p);
    /* the same bits on every processor that has, or has not, a fused multiply-add, and in exported files */
    bool portable;
    /* Two products that differ in the number of rows: does a row have the same bits in both, and do they
     * prepare the same of their right operand?  NULL: not known. */
    bool (*same_rows)(const struct mc_problem *a, const struct mc_problem *b);
};
/* Where parts of a GPU's scratch memory begin: at multiples of what cuBLASLt requires of a workspace. */
enum { WORK_ALIGN = 256 };
static inline size_t mc_work_rounded(size_t bytes)
{
    return (bytes + WORK_ALIGN - 1) / WORK_ALIGN * WORK_ALIGN;
}

enum { MC_PREPARED = 7, MC_PLAN_OPERANDS };   /* of operand[], if an operand stays the same */
/* What kernels were compiled from, by the device that compiles at run time; a bundle is made of it. */
typedef VEC(void *) mc_code_list;
struct mc_plan {
    const struct mc_solver *solver;
    const struct mc_problem *problem;       /* a copy that the plan owns */
    double cost;                            /* seconds: estimated, or measured if `measured` */
    bool measured;
    size_t workspace;        /* bytes that a run needs, aligned to 64, on a GPU to WORK_ALIGN */
    mc_status (*run)(const struct mc_plan *p, void *const *operand, void *workspace, int threads);
    /* Operands that the problem says stay the same: prepare() stores what run() makes of them, `prepared`
     * bytes, which run() then reads at operand[MC_PREPARED]; NULL there: it was not called.  Both have the
     * same workspace.  prepare NULL: nothing is prepared. */
    size_t prepared;
    void (*prepare)(const struct mc_plan *p, void *const *operand, void *prepared, void *workspace,
                    int threads);
    void (*destroy)(struct mc_plan *p);     /* frees what plan() made beyond this struct; may be NULL */
    struct mc_plan *child[2];
    void *state;
    mc_code_list code;                      /* of its kernels, and of those of the plans that it runs */
};
/* The memory of an operand, in elements, from the lowest address on.  count 0: there is no such operand. */
struct mc_extent {
    mc_dtype dtype;
    int64_t before, count;      /* before: how many lie below the address of the first element */
};
extern const char *const mc_act_names[];    /* by enum mc_act, as in keys: "", " relu" */
/* first: of the first call, where it is known */
struct mc_timing { double median, least, most; int n; double first; };
/* The device on which the plans of a family run, if that is not the host.  Operands and workspace are in its
 * memory, and run() only enqueues work. */
struct mc_site {
    /* "cuda NVIDIA H200": the first words of its lines in wisdom */
    void (*name)(struct mc_str *out);
    void *(*take)(size_t bytes);                             /* workspace; NULL: failed, error set */
    void (*give)(void *p);
    /* like mc_time; the times are those of the device */
    struct mc_timing (*time)(mc_status (*run)(void *arg), void *arg, double budget, double hopeless);
    /* From now on the code of kernels that this thread asks for is added to the list; NULL: to none.  Returns
     * the list before. */
    mc_code_list *(*note)(mc_code_list *list);
};
struct mc_family {
    const char *name;                                        /* "gemm" */
    const struct mc_solver *const *solvers;                  /* the last resort is last, then NULL */
    size_t problem_size;                                     /* sizeof the family's problem struct */
    void (*key)(const struct mc_problem *p, struct mc_str *out); /* prints the key */
    /* Allocates and fills operands to time with; discard() frees them. */
    mc_status (*operands)(const struct mc_problem *p, void *operand[8]);
    void (*discard)(const struct mc_problem *p, void *operand[8]);
    /* Compares a plan's result with the reference solver's, for check=3. */
    mc_status (*verify)(const struct mc_problem *p, const struct mc_plan *plan);
    /* The solver that a flag names for p, or "auto".  It may set *mode, which has the value of the flag plan.
     * NULL: error. */
    const char *(*forced)(const struct mc_problem *p, int64_t *mode);
    /* Makes *small, a copy of p, a smaller problem that takes about `seconds` by estimate and whose plans
     * compare as those of p do.  Returns how many times larger p is.  1, or no such function: p itself is
     * timed. */
    double (*sample)(const struct mc_problem *p, double seconds, struct mc_problem *small);
    /* The bytes of the operand that stays the same in many runs, and its index; 0, or no such function: there
     * is none. */
    size_t (*stays)(const struct mc_problem *p, int *operand);
    const struct mc_site *site;    /* NULL: the host */
    /* error: of the result in operand[], relative to its size, by a sample of elements that are summed again
     * in float64; negative: unknown.  allows: the error that the precision of p allows.  They are called for
     * a solver with `doubted` before it is selected.  NULL: no solver of the family has `doubted`. */
    double (*error)(const struct mc_problem *p, void *const *operand);
    double (*allows)(const struct mc_problem *p);
};

/* ---- planner.c ---- */
/* For a problem that no solver asks for, as the flags say.  site: of the family. */
struct mc_plan_options mc_plan_options_of(const struct mc_site *site);
/* Lowers the workspace cap because memory ran out. */
void mc_plan_options_limit(struct mc_plan_options *o, size_t bytes);
/* For p->options.  NULL: no solver; the error lists the reasons. */
struct mc_plan *mc_plan_make(const struct mc_problem *p);
void mc_plan_reasons(const struct mc_problem *p, struct mc_str *out); /* why each solver refuses p */
/* the lowest estimate of the solvers that do not refuse p; 1e30: all refuse */
double mc_plan_cheapest(const struct mc_problem *p);
/* Seconds of a run: of a chosen solver, or from wisdom if the mode uses wisdom, else the lowest estimate.
 * Negative: unknown, or a flag names a solver. */
double mc_plan_seconds(const struct mc_problem *p);
const char *mc_plan_declines(const struct mc_problem *p, const struct mc_solver *s); /* why; NULL: it can */
/* ---- plan.c ---- */
/* cost: the solver's estimate */
struct mc_plan *mc_plan_with(const struct mc_problem *p, const struct mc_solver *s);
/* the same without calling estimate() */
struct mc_plan *mc_plan_bind(const struct mc_problem *p, const struct mc_solver *s);
/* a plan without state beyond the struct */
struct mc_plan *mc_plan_bare(mc_status (*run)(const struct mc_plan *p, void *const *operand, void *workspace,
                                              int threads));
void mc_plan_free(struct mc_plan *p);
/* sum of the lower bounds of its solver and of its children; 0: none is known */
double mc_plan_least(const struct mc_plan *p);
typedef VEC(struct mc_chosen_solver) mc_chosen_list;
/* Adds the solvers of p and its children that were timed; the texts are in the arena.  False: no memory. */
bool mc_plan_chosen(const struct mc_plan *p, struct mc_arena *a, mc_chosen_list *list);
void mc_plan_text(const struct mc_plan *p, struct mc_str *out); /* "(packed m600n10k784 (...))" */
/* ---- trial.c: plans for one problem timed against each other ---- */
struct mc_trials {
    const struct mc_problem *problem;
    struct mc_problem *small;   /* the sample that is timed instead; NULL: the problem is timed */
    double each, end;           /* seconds for one plan; the time at which all of them end */
    double spare;               /* seconds by which first runs may still put off that time */
    double reserve;             /* seconds after it, for plans that are likely to win */
    /* of the best plan so far: seconds for the problem, its estimate, seconds of the run that was timed; 0:
     * no plan was timed */
    double best, best_estimate, best_call;
    void *operand[8];
};
mc_status mc_trials_begin(struct mc_trials *t, const struct mc_problem *p, double seconds, size_t plans);
/* Is there time left for a plan with that estimate? */
bool mc_trials_worth(const struct mc_trials *t, double estimate);
/* Sets plan->cost to the seconds of a run; a plan that cannot win may get a higher cost than it has.  False:
 * the plan could not be run, or its result is not exact enough; the error says why. */
bool mc_trials_run(struct mc_trials *t, struct mc_plan *plan, double estimate);
void mc_trials_end(struct mc_trials *t);
/* Is the result in operand[] as exact as p demands?  If not, the error says how far it is off.  True if that
 * is unknown. */
bool mc_plan_exact(const struct mc_problem *p, void *const *operand, const char *who);
/* ---- timer.c ---- */
/* Doubles the number of calls until a batch is longer than the grain of the clock.  Stops after `budget`
 * seconds, and after the first call that takes longer than `hopeless` (0: no limit; the very first call may
 * take twice as long). */
struct mc_timing mc_time(mc_status (*run)(void *arg), void *arg, double budget, double hopeless);
/* The same, calling `before` before each call of run, whose time is not counted. */
struct mc_timing mc_time_each(void (*before)(void *arg), mc_status (*run)(void *arg), void *arg,
                              double budget, double hopeless);
/* ---- wisdom.c: all calls lock.  The file is written as a whole, by rename.  A damaged or foreign file is
 * ignored.  Functions to print, import and clear wisdom are public ---- */
bool mc_wisdom_find(const char *key, char solver[64], double *seconds);
void mc_wisdom_put(const char *key, const char *solver, double seconds);

/* For mc_flag_names: appends "auto", if n is 0, and the names of the table's solvers to names[0..n).  Returns
 * the new n. */
size_t mc_solver_names(const struct mc_solver *const *solvers, const char **names, size_t n, size_t most);

#endif
