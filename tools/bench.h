/* bench.h: what the suites of `monochord bench` share.
 *
 * Invariant: a result names its case as the peers in bench/peers name theirs, for that is how they are
 * matched; errors are relative Frobenius norms against float64. */
#ifndef BENCH_H
#define BENCH_H

#include "train.h"

struct result {
    const char *suite, *name, *pass, *dtype, *algo; /* "" where there is nothing to say */
    struct timing time;
    double flops, bytes, error; /* of one call; error negative: not measured */
};
void bench_report(const struct result *r);
bool bench_wanted(const char *name, const char *pass); /* --only, if given, is part of "NAME PASS" */
/* the option --shard SEED:COUNT; count 0: all */
struct bench_shard { int64_t seed, count; } bench_shard(void);
/* complains that this case cannot be measured: the library's error; false */
bool bench_fail(const char *name);

/* A compiled function, its inputs and its results, ready to be called again and again. */
enum { MOST_ARGS = 6 };
struct bench_function {
    mc_graph *g;
    mc_function *f;
    mc_array *in[MOST_ARGS], *out[MOST_ARGS];
    int nin, nout;
    bool fresh; /* a new array each call instead of the same */
};
bool bench_call(void *function); /* once() of time_calls */
double bench_seconds(void); /* that a case is called again and again, as the peers take it */
void bench_free(struct bench_function *b);
bool bench_far(void);                                       /* the flag device is not the processor */
/* takes a; there, if the functions run there; NULL: failed */
mc_array *bench_place(mc_array *a);
/* inputs and results, so that they can be read here */
void bench_home(struct bench_function *b);
/* "borrow(y)" as "borrow(gpu_from_host(y))", if so */
void bench_stay(struct text *to, const char *outputs);

/* monochord_bench_train.c: a model's training step on noise; s is zeroed, and to bench_net_end whatever begin
 * says. */
struct bench_net {
    mc_net *net;
    struct bench_function b;
    double compiling; /* seconds of mc_net_trainer */
};
bool bench_net_make(struct bench_net *s, const char *name, const char *model);  /* without a batch, */
bool bench_net_batch(struct bench_net *s, int64_t batch);                      /* which this adds; */
bool bench_net_begin(struct bench_net *s, const char *name, const char *model, int64_t batch); /* both */
void bench_net_end(struct bench_net *s);
double bench_net_flops(const struct bench_net *s, int64_t batch); /* of a step */
/* on stderr, if the flag profile asks for it */
void bench_net_profile(const struct bench_net *s);
/* The end of a case: its row and its profile, or its failure.  Returns good. */
bool bench_net_report(struct bench_net *s, const struct result *r, bool good);

/* monochord_bench_sums.c: a convolution of float32 operands, by its definition. */
struct bench_sums {
    int64_t dims[3][5];     /* of x, w and y: first axis, second, and three others */
    int axes;               /* so many of the three are there: the last */
    int dilation, groups;   /* w has channels / groups channels */
    int64_t stride[3], pad[3];
    int result;             /* which of x, w, y */
    bool last;              /* the result has its second axis last; operands have it second */
    const float *operand[3];
};
double bench_sums_error(const struct bench_sums *s, const float *have); /* relative Frobenius */

/* Suites; false: something failed and was complained of. */
bool bench_cases(const char *suite);   /* monochord_bench_ops.c: exp, elementwise, rows, call */
bool bench_gemm(const char *suite);    /* monochord_bench_gemm.c */
/* monochord_bench_conv.c: conv, conv128, narrow, corrmm, room, nets, layouts; of zoo the convolutions and
 * products */
bool bench_conv(const char *suite);
/* monochord_bench_layers.c: pool, norm, softmax, recurrent, einsum; norms of zoo */
bool bench_layers(const char *suite);
bool bench_zoo(const char *suite);     /* monochord_bench_zoo.c */
bool bench_in_shard(const char *name); /* a layer of zoo.def is drawn, or no shard is asked for */
int bench_list_zoo(void);              /* the names of those layers */
bool bench_linalg(const char *suite);  /* monochord_bench_linalg.c */
bool bench_tables(const char *suite);  /* monochord_bench_tables.c: tables, random */
bool bench_lenet(const char *suite);   /* monochord_bench_lenet.c */
bool bench_train(const char *suite);   /* monochord_bench_train.c: nets-train */
bool bench_optimizers(const char *suite); /* monochord_bench_optimizers.c */
bool bench_transformer(const char *suite); /* monochord_bench_transformer.c */
bool bench_export(const char *suite);  /* monochord_bench_export.c */
bool bench_inference(const char *suite);  /* monochord_bench_inference.c */
bool bench_ranks(const char *suite);   /* monochord_bench_ranks.c: two GPUs */
bool bench_logreg(const char *suite);  /* monochord_bench_compile.c */
bool bench_compile(const char *suite);
bool bench_planning(const char *suite); /* monochord_bench_planning.c */
int bench_compile_child(void);         /* compiles once in this process and prints CHILD_TIMES */
int bench_planning_child(void);        /* plans once in this process, and prints as many */
double bench_start_device(void);       /* milliseconds; 0 where that is the processor */
int bench_lenet_child(void);
int bench_recurrent_child(void);
/* milliseconds: until the first result, until what makes it is compiled, of that mc_compile alone; the
 * device, before all that */
enum { CHILD_TIMES = 4 };
enum { MOST_ROUNDS = 7 };
/* `monochord bench CHILD` with a fresh folder, and again, so many rounds: its times, by these names; NULL:
 * the last is the device's. */
bool bench_children(const char *suite, const char *child, const char *const what[CHILD_TIMES], int rounds);
extern const char *const bench_compiling[CHILD_TIMES];  /* those of who compiles */

/* monochord_bench_copy.c: copies by a team of threads; seconds of one copy. */
struct timing copy_time(char *dst, const char *src, size_t n, int threads, bool streaming, double seconds);
bool copy_can_stream(void);

#endif
