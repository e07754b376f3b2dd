/* t_export_loops.c: pooling and normalisation printed as C for files that stand alone: the bits of the
 * reference. */
#include "export_text.h"
#include "heavy/norm/solver.h"
#include "heavy/pool/solver.h"
#include "norm_problems.h"
#include "pool_problems.h"

enum { NROLE = 3, RANDOM = 150 };

/* ---- operands: two copies of the memory of each role ---- */

struct memory { char *data[2][NROLE]; struct mc_extent e[NROLE + 1]; };

static void memory_make(struct memory *m)
{
    for (int r = 0; r < NROLE; r++) {
        const size_t bytes = (size_t)m->e[r].count * mc_dtypes[m->e[r].dtype].size;
        m->data[0][r] = calloc(bytes + 1, 1);
        m->data[1][r] = calloc(bytes + 1, 1);
        export_fill(m->e[r].dtype, m->data[0][r], m->e[r].count);
        memcpy(m->data[1][r], m->data[0][r], bytes);
    }
}

static void memory_free(struct memory *m)
{
    for (int r = 0; r < NROLE; r++) {
        free(m->data[0][r]);
        free(m->data[1][r]);
    }
}

static void operands_of(const struct memory *m, int copy, void *operand[8])
{
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int r = 0; r < NROLE; r++) {
        operand[r] = m->e[r].count
                         ? m->data[copy][r] + m->e[r].before * (int64_t)mc_dtypes[m->e[r].dtype].size
                         : NULL;
    }
}

/* Runs both and compares all memory, so that nothing else is written. */
static void compare(struct memory *m, const struct mc_plan *plan, export_run *run, const char *what)
{
    void *operand[8];
    char *p[NROLE];
    operands_of(m, 0, operand);
    CHECK(plan && plan->run(plan, operand, NULL, 0) == MC_OK, "%s: %s", what, mc_last_error());
    operands_of(m, 1, operand);
    for (int r = 0; r < NROLE; r++) {
        p[r] = operand[r];
    }
    CHECK(run && run(p) == 0, "%s does not run", what);
    for (int r = 0; r < NROLE; r++) {
        const size_t size = mc_dtypes[m->e[r].dtype].size, bytes = (size_t)m->e[r].count * size;
        size_t at = 0;
        while (at < bytes && m->data[0][r][at] == m->data[1][r][at]) {
            at++;
        }
        CHECK(at == bytes, "%s: element %d of array %d is %.17g, the reference has %.17g", what,
              (int)(at / size), r, mc_load_f64(m->e[r].dtype, m->data[1][r] + at / size * size),
              mc_load_f64(m->e[r].dtype, m->data[0][r] + at / size * size));
    }
}

/* ---- pooling ---- */

enum layout { NCHW, NHWC, CHWN };
#define MAX POOL_MAX, POOL_KEY_MARKS
#define TIES POOL_MAX, POOL_KEY_X
#define SUM POOL_SUM, POOL_KEY_NONE
#define INC POOL_AVERAGE_INC, POOL_KEY_NONE
#define EXC POOL_AVERAGE_EXC, POOL_KEY_NONE
/* images: 2 of 3 channels, or as many as are given; out 0: as many windows as end inside */
static const struct row {
    enum mc_pool_mode mode;
    enum mc_pool_key key;
    enum mc_pool_pass pass;
    enum layout layout;
    int nd;
    int64_t in[3], w[3], stride[3], pad[3], out[3], channels;
    bool bare;                      /* FORWARD: no marks */
} rows[] = {
    /*                            in              w             stride        pad          out */
    { MAX,  POOL_FORWARD, NCHW, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 } },
    { MAX,  POOL_FORWARD, NCHW, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, .bare = true },
    { MAX,  POOL_FORWARD, NHWC, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, .channels = 32 },
    { MAX,  POOL_FORWARD, NHWC, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, .channels = 33, .bare = true },
    { MAX,  POOL_SPREAD,  NCHW, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 } },
    { MAX,  POOL_SPREAD,  NHWC, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, .channels = 32 },
    { MAX,  POOL_SPREAD,  NCHW, 2, { 1, 9, 13 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 } },
    { MAX,  POOL_SPREAD,  NHWC, 2, { 1, 9, 13 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, .channels = 5 },
    { MAX,  POOL_GATHER,  NCHW, 2, { 1, 8, 12 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 } },
    { MAX,  POOL_GATHER,  NHWC, 2, { 1, 9, 13 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, .channels = 8 },
    { MAX,  POOL_FORWARD, NCHW, 2, { 1, 9, 13 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, { 1, 5, 7 } },
    { MAX,  POOL_SPREAD,  NCHW, 2, { 1, 9, 13 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, { 1, 5, 7 } },
    { MAX,  POOL_GATHER,  NCHW, 2, { 1, 9, 13 },  { 1, 2, 2 },  { 1, 2, 2 },  { 0 }, { 1, 5, 7 } },
    { MAX,  POOL_FORWARD, NCHW, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { MAX,  POOL_FORWARD, NCHW, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 }, .bare = true },
    { MAX,  POOL_FORWARD, NHWC, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 }, .channels = 16 },
    { MAX,  POOL_FORWARD, CHWN, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 0, 0 } },
    { MAX,  POOL_SPREAD,  NCHW, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { MAX,  POOL_SPREAD,  NHWC, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 }, .channels = 16 },
    { MAX,  POOL_SPREAD,  CHWN, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0 } },
    { MAX,  POOL_GATHER,  NCHW, 2, { 1, 13, 13 }, { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { MAX,  POOL_FORWARD, NCHW, 2, { 1, 20, 22 }, { 1, 17, 18 }, { 1, 2, 2 }, { 0 } },
    { MAX,  POOL_SPREAD,  NCHW, 2, { 1, 34, 36 }, { 1, 17, 18 }, { 1, 17, 18 }, { 0 } },
    { MAX,  POOL_FORWARD, NCHW, 1, { 1, 1, 17 },  { 1, 1, 3 },  { 1, 1, 3 },  { 0 } },
    { MAX,  POOL_SPREAD,  NCHW, 1, { 1, 1, 17 },  { 1, 1, 3 },  { 1, 1, 3 },  { 0 } },
    { MAX,  POOL_SPREAD,  NCHW, 1, { 1, 1, 17 },  { 1, 1, 1 },  { 1, 1, 2 },  { 0 } },
    { MAX,  POOL_GATHER,  NCHW, 1, { 1, 1, 17 },  { 1, 1, 1 },  { 1, 1, 2 },  { 0 } },
    { MAX,  POOL_FORWARD, NCHW, 3, { 4, 6, 7 },   { 2, 2, 2 },  { 2, 2, 2 },  { 0 } },
    { MAX,  POOL_SPREAD,  NCHW, 3, { 4, 6, 7 },   { 2, 2, 2 },  { 2, 2, 2 },  { 0 } },
    { MAX,  POOL_SPREAD,  NHWC, 3, { 6, 6, 7 },   { 3, 3, 3 },  { 3, 3, 3 },  { 0 }, .channels = 9 },
    { MAX,  POOL_GATHER,  NHWC, 3, { 6, 6, 7 },   { 3, 3, 3 },  { 2, 2, 2 },  { 1, 1, 1 }, .channels = 9 },
    { TIES, POOL_SPREAD,  NCHW, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0 } },
    { TIES, POOL_SPREAD,  NHWC, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 }, .channels = 6 },
    { TIES, POOL_GATHER,  NCHW, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { TIES, POOL_GATHER,  NHWC, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 3, 3 },  { 0 }, .channels = 6 },
    { SUM,  POOL_FORWARD, NCHW, 2, { 1, 8, 8 },   { 1, 2, 2 },  { 1, 2, 2 },  { 0 } },
    { SUM,  POOL_SPREAD,  NCHW, 2, { 1, 8, 8 },   { 1, 2, 2 },  { 1, 2, 2 },  { 0 } },
    { SUM,  POOL_FORWARD, NHWC, 2, { 1, 9, 9 },   { 1, 3, 5 },  { 1, 1, 2 },  { 0, 1, 2 }, .channels = 12 },
    { SUM,  POOL_SPREAD,  NHWC, 2, { 1, 9, 9 },   { 1, 3, 5 },  { 1, 1, 2 },  { 0, 1, 2 }, .channels = 12 },
    { INC,  POOL_FORWARD, NCHW, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { INC,  POOL_SPREAD,  NCHW, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { INC,  POOL_FORWARD, NHWC, 2, { 1, 7, 7 },   { 1, 7, 7 },  { 1, 1, 1 },  { 0 }, .channels = 40 },
    { INC,  POOL_SPREAD,  NHWC, 2, { 1, 7, 7 },   { 1, 7, 7 },  { 1, 1, 1 },  { 0 }, .channels = 40 },
    { EXC,  POOL_FORWARD, NCHW, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { EXC,  POOL_SPREAD,  NCHW, 2, { 1, 9, 9 },   { 1, 3, 3 },  { 1, 2, 2 },  { 0, 1, 1 } },
    { EXC,  POOL_FORWARD, CHWN, 2, { 1, 9, 9 },   { 1, 5, 5 },  { 1, 2, 2 },  { 0, 2, 2 } },
    { EXC,  POOL_SPREAD,  CHWN, 2, { 1, 9, 9 },   { 1, 5, 5 },  { 1, 2, 2 },  { 0, 2, 2 } },
    { EXC,  POOL_FORWARD, NCHW, 3, { 5, 6, 7 },   { 3, 3, 3 },  { 1, 2, 1 },  { 1, 1, 1 } },
    { EXC,  POOL_SPREAD,  NCHW, 3, { 5, 6, 7 },   { 3, 3, 3 },  { 1, 2, 1 },  { 1, 1, 1 } },
    { EXC,  POOL_FORWARD, NCHW, 1, { 1, 1, 3 },   { 1, 1, 9 },  { 1, 1, 2 },  { 0, 0, 7 }, { 1, 1, 5 } },
    { EXC,  POOL_SPREAD,  NCHW, 1, { 1, 1, 1 },   { 1, 1, 3 },  { 1, 1, 2 },  { 0, 0, 2 }, { 1, 1, 1 } },
};

/* Rank 2 + nd: images, channels and the pooled axes. */
static void problem_of(const struct row *row, mc_dtype d, struct mc_pool_problem *p)
{
    static const int first[] = { [NCHW] = 0, [NHWC] = 0, [CHWN] = 1 };
    struct mc_pool_shape *s = &p->s;
    int64_t y[MC_MAX_RANK], cells = 1;
    int order[MC_MAX_RANK], n = 0;
    *p = (struct mc_pool_problem){ .base = { &mc_pool_family, mc_plan_options_of(NULL) },
                                   .dtype = d,
                                   .marks = !row->bare && row->mode == POOL_MAX };
    *s = (struct mc_pool_shape){ .pass = row->pass,
                                 .mode = row->mode,
                                 .key = row->key,
                                 .whole = true,
                                 .rank = 2 + row->nd,
                                 .nd = row->nd };
    s->dims[0] = 2;
    s->dims[1] = row->channels ? row->channels : 3;
    for (int i = 0; i < 3; i++) {
        const int64_t in = row->in[i], w = row->w[i], st = row->stride[i], pad = row->pad[i];
        s->axis[i] = i < 3 - row->nd ? -1 : 2 + i - (3 - row->nd);
        s->in[i] = in;
        s->w[i] = w;
        s->stride[i] = st;
        s->pad[i] = pad;
        s->out[i] = row->out[i] ? row->out[i] : (in + 2 * pad - w) / st + 1;
        cells *= w;
        if (s->axis[i] >= 0) {
            s->dims[s->axis[i]] = in;
        }
    }
    s->mark = cells > 256 ? MC_INT32 : MC_UINT8;
    memcpy(y, s->dims, sizeof y);
    for (int i = 0; i < 3; i++) {
        if (s->axis[i] >= 0) {
            y[s->axis[i]] = s->out[i];
        }
    }
    order[n++] = first[row->layout];
    if (row->layout == NCHW) {
        order[n++] = 1;
    }
    for (int i = 0; i < row->nd; i++) {
        order[n++] = 2 + i;
    }
    if (row->layout != NCHW) {
        order[n++] = !first[row->layout];
    }
    pool_lay_out(n, order, s->dims, true, p->at[POOL_X]);
    pool_lay_out(n, order, y, true, p->at[POOL_Y]);
    pool_lay_out(n, order, s->key == POOL_KEY_X ? s->dims : y, true, p->at[POOL_KEY]);
}

/* Prints problem number n. */
static void print_pool(struct mc_str *text, const struct mc_pool_problem *p, int n)
{
    const char *type = p->dtype == MC_FLOAT32 ? "float" : "double";
    const char *mark = p->s.key == POOL_KEY_X ? type : p->s.mark == MC_UINT8 ? "uint8_t" : "int32_t";
    char at[NROLE][40];
    for (int r = 0; r < NROLE; r++) {
        snprintf(at[r], sizeof at[r], "(%s *)(void *)p[%d]", r == POOL_KEY ? mark : type, r);
    }
    export_begin(text, n);
    CHECK(mc_pool_print(text, p, (const char *[]){ at[0], at[1], mc_pool_keyed(p) ? at[2] : NULL }) == MC_OK,
          "%s", mc_last_error());
    export_end(text);
}

static void compare_pool(const struct mc_pool_problem *p, export_run *run)
{
    struct memory m;
    struct mc_str key = { 0 };
    void *operand[8];
    mc_pool_extents(p, m.e);
    memory_make(&m);
    if (p->s.pass != POOL_FORWARD && p->s.key == POOL_KEY_MARKS) {
        struct mc_pool_problem forward = *p;
        forward.s.pass = POOL_FORWARD;
        forward.marks = true;
        struct mc_plan *plan = mc_plan_with(&forward.base, &mc_pool_reference);
        for (int copy = 0; copy < 2; copy++) {
            operands_of(&m, copy, operand);
            if (m.e[POOL_KEY].count) {
                plan->run(plan, operand, NULL, 0);
            }
        }
        mc_plan_free(plan);
    }
    mc_pool_key(&p->base, &key);
    struct mc_plan *plan = mc_plan_with(&p->base, &mc_pool_reference);
    compare(&m, plan, run, key.s);
    mc_plan_free(plan);
    mc_str_free(&key);
    memory_free(&m);
}

TEST(printed_pooling_gives_the_reference)
{
    NEEDS_COMPILER();
    static struct mc_pool_problem problem[2 * NELEM(rows) + RANDOM];
    struct mc_str text = { 0 };
    int n = 0;
    mc_str_add(&text, export_head);
    for (size_t i = 0; i < 2 * NELEM(rows); i++) {
        problem_of(&rows[i / 2], i % 2 ? MC_FLOAT64 : MC_FLOAT32, &problem[n]);
        n++;
    }
    while (n < (int)NELEM(problem)) {
        n += pool_any(&problem[n], below(3) ? MC_FLOAT32 : MC_FLOAT64, 12);
    }
    for (int i = 0; i < n; i++) {
        print_pool(&text, &problem[i], i);
    }
    mc_str_add(&text, export_foot);
    export_warnings(&text);
    struct mc_code *code = export_load(&text);
    for (int i = 0; i < n && code; i++) {
        compare_pool(&problem[i], export_function(code, i));
    }
    mc_code_unref(&code);
    mc_str_free(&text);
}

/* ---- normalisation ---- */

static void print_norm(struct mc_str *text, const struct mc_norm_problem *p, int n)
{
    const char *type = p->dtype == MC_FLOAT32 ? "float" : "double";
    char at[NROLE][40];
    for (int r = 0; r < NROLE; r++) {
        snprintf(at[r], sizeof at[r], "(%s *)(void *)p[%d]", type, r);
    }
    export_begin(text, n);
    CHECK(mc_norm_print(text, p, (const char *[]){ at[0], at[1], at[2] }) == MC_OK, "%s", mc_last_error());
    export_end(text);
}

TEST(printed_normalisation_gives_the_reference)
{
    NEEDS_COMPILER();
    static struct mc_norm_problem problem[60];
    struct mc_str text = { 0 };
    const int n = (int)NELEM(problem);
    mc_str_add(&text, export_head);
    for (int i = 0; i < n; i++) {
        norm_any(&problem[i], i % 2 ? MC_FLOAT64 : MC_FLOAT32);
        print_norm(&text, &problem[i], i);
    }
    mc_str_add(&text, export_foot);
    export_warnings(&text);
    struct mc_code *code = export_load(&text);
    for (int i = 0; i < n && code; i++) {
        struct memory m;
        struct mc_str key = { 0 };
        mc_norm_extents(&problem[i], m.e);
        memory_make(&m);
        mc_norm_key(&problem[i].base, &key);
        struct mc_plan *plan = mc_plan_with(&problem[i].base, &mc_norm_reference);
        compare(&m, plan, export_function(code, i), key.s);
        mc_plan_free(plan);
        mc_str_free(&key);
        memory_free(&m);
    }
    mc_code_unref(&code);
    mc_str_free(&text);
}

TEST(printed_loops_of_other_dtypes)
{
    struct mc_str text = { 0 };
    struct mc_pool_problem pool;
    struct mc_norm_problem norm;
    problem_of(&rows[0], MC_FLOAT16, &pool);
    norm_any(&norm, MC_BFLOAT16);
    const char *at[NROLE] = { "x", "y", "z" };
    CHECK(mc_pool_print(&text, &pool, at) == MC_EUNSUPPORTED && strstr(mc_last_error(), "not in float16"),
          "%s", mc_last_error());
    CHECK(mc_norm_print(&text, &norm, at) == MC_EUNSUPPORTED && strstr(mc_last_error(), "not in bfloat16"),
          "%s", mc_last_error());
    CHECK(!text.s, "something is printed: %s", text.s);
    mc_str_free(&text);
}
