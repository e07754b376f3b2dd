/* absent.c: what libmonochord-run does not have, and its other files name: a clear error, or nothing.
 *
 * It is compiled into that library alone (cmake/run.cmake).
 *
 * Invariant: what a loaded function needs for a call is not here. */
#include "compile/compiling.h"
#include "device/cpu/code.h"
#include "exec/backend.h"
#include "exec/cpu/launch.h"
#include "graph/parse.h"
#include "heavy/conv/solver.h"
#include "heavy/gemm/solver.h"
#include "inspect/profile.h"
#include "op/loop.h"
#include "plan/choice.h"
#include "render/math.h"

static mc_status absent(const char *what)
{
    return mc_fail(MC_EUNSUPPORTED, "the runtime library has no %s; libmonochord has", what);
}

/* ---- formulas ---- */

mc_node *mc_expr(mc_graph *g, const char *text, const struct mc_bind *bind, int nbind)
{
    (void)text;
    (void)bind;
    (void)nbind;
    absent("formulas");
    return g->error;
}

mc_node *mc_call_op(mc_graph *g, const char *name, int nin, mc_node *const *in, const char *attrs, ...)
{
    (void)name;
    (void)nin;
    (void)in;
    (void)attrs;
    absent("formulas");
    return g->error;
}

mc_node *mc_loop_of_nodes(mc_graph *g, const mc_scan_spec *spec, const bool *kept)
{
    (void)spec;
    (void)kept;
    absent("formulas");
    return g->error;
}

const struct mc_body *mc_body_read(const mc_graph *of, const char *text)
{
    (void)of;
    (void)text;
    absent("formulas");
    return NULL;
}

const struct mc_language *mc_formula_language;

mc_node *mc_formula_expand(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                           const struct mc_attr *attr)
{
    (void)op;
    (void)nin;
    (void)in;
    (void)attr;
    absent("formulas");
    return g->error;
}

mc_status mc_graph_replace(mc_graph *g, int n, mc_node *const *from, mc_node *const *to, int nout,
                           mc_node **out)
{
    (void)g;
    (void)n;
    (void)from;
    (void)to;
    (void)nout;
    (void)out;
    return absent("formulas");
}

mc_status mc_formula_infer(struct mc_infer *q)
{
    (void)q;
    return absent("formulas");
}

mc_status mc_formula_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    (void)in;
    (void)out;
    return absent("formulas");
}

/* Only the parser calls these two. */
void mc_parse_fail(struct parser *p, size_t at, const char *fmt, ...)
{
    (void)p;
    (void)at;
    (void)fmt;
}

mc_node *mc_val_node(struct parser *p, const struct val *v)
{
    (void)p;
    (void)v;
    return NULL;
}

/* ---- compiling ---- */

mc_status mc_compile_kernels(struct mc_code_unit *u)
{
    (void)u;
    return absent("compiler of kernels");
}

mc_status mc_kernel_set_make(struct mc_kernel_set *set, const struct mc_program *p, const char *flags)
{
    (void)set;
    (void)p;
    (void)flags;
    return absent("compiler of kernels");
}

void mc_kernel_set_free(struct mc_kernel_set *set)
{
    (void)set;
}

mc_kernel_fn *mc_custom_compile(const struct mc_op *op, const mc_dtype *dtype, struct mc_code **lib,
                                mc_status *s)
{
    (void)op;
    (void)dtype;
    (void)lib;
    *s = absent("compiler of kernels");
    return NULL;
}

mc_status mc_custom_image(const mc_graph *g, const char *level, struct mc_str *image)
{
    (void)g;
    (void)level;
    (void)image;
    return absent("compiler of kernels");
}

bool mc_cc_known(void)
{
    return false;
}

bool mc_cc_present(void)
{
    return false;
}

const char *mc_cc_missing(void)
{
    return "the runtime library runs no compiler";
}

mc_status mc_job_describe(struct mc_job *j, const char *source, const char *flags, const char *cpu)
{
    (void)cpu;
    (void)j;
    (void)source;
    (void)flags;
    return absent("compiler of kernels");
}

bool mc_job_from_cache(struct mc_job *j)
{
    (void)j;
    return false;
}

mc_status mc_job_compile(struct mc_job *j)
{
    (void)j;
    return absent("compiler of kernels");
}

/* Only printed kernels differ by it. */
double mc_math_range(const char *code, mc_dtype d)
{
    (void)code;
    (void)d;
    return 0;
}

/* ---- joint maps: each runs alone, which takes longer ---- */

mc_status mc_launch_joint(struct mc_function *f, struct mc_shape_plan *p, const int *step, int n)
{
    (void)f;
    (void)p;
    (void)step;
    (void)n;
    return MC_OK;
}

/* ---- modes and traces ---- */

mc_array *mc_tolerance(const mc_node *n, mc_array *const *in, mc_array *const *tolerance,
                       const mc_array *value, double tol)
{
    (void)n;
    (void)in;
    (void)tolerance;
    (void)value;
    (void)tol;
    absent("mode DEBUG");
    return NULL;
}

mc_status mc_trace_open(bool *on)
{
    *on = false;
    return *mc_flag_text(FLAG_trace) ? absent("traces") : MC_OK;
}

void mc_trace_call(const struct mc_function *f, double from, double seconds)
{
    (void)f;
    (void)from;
    (void)seconds;
}

void mc_trace_step(const struct mc_function *f, const struct mc_shape_plan *p, int step, double from,
                   double seconds)
{
    (void)f;
    (void)p;
    (void)step;
    (void)from;
    (void)seconds;
}

void mc_cpu_describe(struct mc_str *out)
{
    (void)out;
}

int mc_cpu_has_library(const char *library)
{
    (void)library;
    return -1;
}

/* ---- GPUs ---- */

static struct mc_device *start(const char *device)
{
    (void)device;
    absent("GPUs");
    return NULL;
}

const struct mc_backend mc_backend_cuda = { .name = "cuda", .numbered = true, .start = start };
const struct mc_solver *const mc_conv_cuda_solvers[] = { NULL };
const struct mc_solver *const mc_gemm_cuda_solvers[] = { NULL };

/* ---- timing ---- */

/* plan=measure: what no bundle and no wisdom has is selected by estimate. */
struct mc_plan *mc_choice_fastest(struct mc_choice *c)
{
    return mc_choice_cheapest(c);
}

/* ---- factorizations, sorts, searches, copies of views: the reference computes them ---- */

struct mc_exec *mc_copied_view(const struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    (void)f;
    (void)p;
    (void)step;
    return &mc_exec_reference;
}

mc_status mc_line_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec)
{
    return mc_factor_step_plan(f, p, step, exec);
}

mc_status mc_factor_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec)
{
    (void)f;
    (void)p;
    (void)step;
    (void)exec;
    return MC_OK;
}

/* ---- solvers: portable sums, other libraries, and those whose kernels are too large ---- */

/* Their names stay in the tables: keys of wisdom have a hash of all names.  Where a bundle or wisdom names
 * one of them, another solver is taken. */
static const char *refuse(const struct mc_problem *p)
{
    (void)p;
    return "is in libmonochord alone";
}

#define ABSENT(of, text, sums)                                                                               \
    const struct mc_solver of = { .name = text, .portable = sums, .refuse = refuse, .missing = refuse }
ABSENT(mc_gemm_onednn,          "onednn",           false);
ABSENT(mc_gemm_blas,            "blas",             false);
ABSENT(mc_gemm_tall,            "tall",             false);
ABSENT(mc_conv_one_next,        "one_next",         false);
ABSENT(mc_conv_implicit,        "implicit",         false);
ABSENT(mc_conv_grouped,         "grouped",          false);
ABSENT(mc_conv_planes,          "planes",           false);
ABSENT(mc_conv_rows,            "rows",             false);
ABSENT(mc_conv_channels,        "channels",         false);
ABSENT(mc_conv_onednn,          "onednn",           false);
ABSENT(mc_conv_onednn_winograd, "onednn_winograd",  false);
ABSENT(mc_gemm_portable,         "portable",         true);
ABSENT(mc_gemm_portable_columns, "portable_columns", true);
ABSENT(mc_conv_portable,         "portable",         true);
ABSENT(mc_conv_portable_col2im,  "portable_col2im",  true);
ABSENT(mc_conv_portable_outer,   "portable_outer",   true);
