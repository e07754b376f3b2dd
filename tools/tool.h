/* tool.h: what the parts of the program monochord share.
 *
 * Invariant: results go to standard output, all that went wrong to standard error; a command returns
 * the program's exit status. */
#ifndef TOOL_H
#define TOOL_H

#include <monochord.h>
#include <stdbool.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#if defined(__GNUC__)
#define TOOL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TOOL_PRINTF(fmt, args)
#endif

/* One word of the command line after the program's name; argv[0] is that word. */
struct command {
    const char *name, *usage, *doc;
    int (*run)(int argc, char **argv);
    const char *options; /* a line each, or NULL */
};

/* monochord.c */
int complain(const char *fmt, ...) TOOL_PRINTF(1, 2); /* one line to standard error; returns 1 */
int complain_library(const char *what);               /* "what: " and the library's last error; returns 1 */
/* what makes it slow that need not be, once a run of the program */
void complain_slow(const mc_function *f);
int complain_usage(const char *command);              /* how it is called; returns 1 */
int complain_word(const char *command, const char *word); /* a word that it does not understand; returns 1 */
void *must(void *p);                                  /* p; without memory the program ends */
double seconds_now(void);
bool ends_in(const char *name, const char *end);      /* with something before it */
/* Numbers of examples, "1,32", at most `most`, each once; false: complained. */
bool read_batches(const char *command, const char *text, long *batch, int most, int *n);

/* A text that grows. */
struct text {
    char *s; /* "" at first use, never NULL afterwards */
    size_t n, cap;
};
void text_add(struct text *t, const char *s, size_t n);
void text_addf(struct text *t, const char *fmt, ...) TOOL_PRINTF(2, 3);
bool text_read(struct text *t, const char *path); /* a file, "-" for standard input; false: complained */
void text_free(struct text *t);

/* Uniform on [0, 1): the same numbers on every run. */
double random_next(uint64_t *state);
/* Fills an array of any dtype: floats on [0, 1), whole numbers below `below`. */
void random_fill(mc_array *a, uint64_t *state, int64_t below);

/* What one call takes.  Short calls are timed in batches; a batch of one call is the least. */
struct timing {
    double median, least, most; /* seconds */
    long calls;
    /* in turns with others: of the first's time over its own, turn by turn, the median; 0: alone, or first */
    double beside;
};
struct timing time_summary(double *of, int n); /* of n times, which it sorts */
/* Runs once() for about `seconds`, at least three batches; calls is 0 when it returned false. */
struct timing time_calls(bool (*once)(void *arg), void *arg, double seconds);
/* The same of n at most, a batch of each in turn, `seconds` for each: what the machine does for seconds at a
 * time meets all of them alike.  False: one of them failed, and none was timed. */
enum { MOST_TURNS = 4 };
bool time_turns(bool (*once)(void *arg), int n, void *const arg[], double seconds, struct timing t[]);

extern const char run_options[], train_options[], predict_options[], export_options[], build_options[];
int command_run(int argc, char **argv);   /* monochord_run.c */
int command_bench(int argc, char **argv); /* monochord_bench.c */
int command_demo(int argc, char **argv);  /* monochord_demo.c */
int command_data(int argc, char **argv);  /* monochord_data.c */
int command_train(int argc, char **argv); /* monochord_train.c */
int command_predict(int argc, char **argv); /* monochord_predict.c */
int command_export(int argc, char **argv);  /* monochord_export.c */
int command_build(int argc, char **argv);   /* monochord_build.c */
int wisdom_picture(const char *path);     /* monochord_picture.c */

#endif
