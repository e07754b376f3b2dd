/* resident_print.c: the text of a resident loop's kernel: the body's maps as functions, its products and
 * copies by resident.cu, and the loop over steps that calls them. */
#include "exec/cuda/resident.h"

static const char source[] = {
#include "exec/cuda/resident_text.h"
    , 0 };

static void print_phase(struct mc_str *out, const struct mc_cuda_resident *r, const struct mc_function *f,
                        int i)
{
    const struct phase *w = &r->phase[i];
    const struct mc_kernel *k = w->map ? w->st->kernel : NULL;
    if (k) { /* the threads have met since the phase last read these */
        mc_str_addf(out,
                    "for (int i = threadIdx.x; i < %zu; i += blockDim.x) ((u64 *)(own + %d))[i] = "
                    "place(A.move[%d + i], t);\n",
                    k->operand.n, w->args, w->move);
    }
    if (r->products) {
        mc_str_addf(out,
                    "if (A.head.barriers >> %d & 1) { goal += gridDim.x; meet(A.head.arrived, goal); } else ",
                    i);
    }
    mc_str_add(out, "__syncthreads();\n");
    if (k) {
        const struct mc_grid_kernel *g = &mc_cuda_fn_code(f)->grid[w->st - f->code->program.step.at];
        mc_str_addf(out, "%s_of<%d>(*(const %s_args *)(own + %d));\n", k->name,
                    w->map->fn == g->vector ? mc_grid_vector(k) : 1, k->name, w->args);
        return;
    }
    if (w->product) {
        mc_str_addf(
            out,
            "multiply<%d, %d, %d, %d, %d>(A.head.product[%d], (const float *)place(A.move[%d], t), held, "
            "(const float *)place(A.move[%d], t), (float *)place(A.move[%d], t));\n",
            w->rows, w->columns, r->head.product[w->at].columns / w->columns, w->lanes, (int)w->product->act,
            w->at, w->move, w->move + 3, w->move + 2);
        return;
    }
    mc_str_addf(out,
                "if (place(A.move[%d], t) != place(A.move[%d], t)) move<1>(*(const mc_resident_copy *)(own + "
                "%d), (const unsigned *)place(A.move[%d], t), (unsigned *)place(A.move[%d], t));\n",
                w->move, w->move + 1, w->args, w->move, w->move + 1);
}

/* The elements, V at a time, that a block has; of arrays that have no whole number of periods in each band, a
 * part. */
static const char own_elements[] =
    "#define UNITS_OF(p) UNITS\n#define PERIOD_OF(p) PERIOD\n"
    "#define ELEMENTS(t, n) for (unsigned t = 0, even_ = (n) % (PERIOD / V * BANDS) == 0, "
    "first_ = blockIdx.x / BANDS * UNITS, wide_ = (PERIOD % UNITS == 0 || first_ + UNITS <= PERIOD ? UNITS "
    ": first_ < PERIOD ? PERIOD - first_ : 0) / V, all_ = even_ ? (n) / (PERIOD / V * BANDS) * wide_ : (n), "
    "from_ = blockIdx.x % BANDS * ((n) / BANDS) + first_ / V, "
    "i_ = (even_ ? 0 : blockIdx.x * blockDim.x) + threadIdx.x; "
    "i_ < all_ && (t = even_ ? from_ + i_ / wide_ * (PERIOD / V) + i_ % wide_ : i_, true); "
    "i_ += even_ ? blockDim.x : gridDim.x * blockDim.x)\n";

void mc_cuda_resident_print(struct mc_str *out, const struct mc_cuda_resident *r, const struct mc_function *f)
{
    struct mc_kernel *kernel[PHASES];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        bool known = !r->phase[i].map; /* equal kernels have one name */
        for (int k = 0; k < n && !known; k++) {
            known = strcmp(kernel[k]->name, r->phase[i].st->kernel->name) == 0;
        }
        if (!known) {
            kernel[n++] = r->phase[i].st->kernel;
        }
    }
    if (r->period) {
        mc_str_addf(out, "enum { PERIOD = %d, UNITS = %d, BANDS = %d };\n%s", r->period, r->units, r->bands,
                    own_elements);
    }
    mc_render_grid(out, &mc_dialect_cuda, n, kernel);
    mc_str_add(out, source);
    mc_str_addf(
        out,
        "struct resident_args { mc_resident_head head; mc_resident_move move[%d]; unsigned char "
        "map[%zu]; };\nextern \"C\" __global__ void __launch_bounds__(%d, 1) resident(const "
        "__grid_constant__ resident_args A)\n{\nextern __shared__ i64 shared_[];\nfloat *const held = "
        "(float *)shared_;\n__shared__ uint4 words[%zu];\nunsigned char *const own = (unsigned char "
        "*)words;\nunsigned goal = 0;\n"
        "for (int i = threadIdx.x; i < %zu; i += blockDim.x) own[i] = A.map[i];\n",
        r->nmove, MC_MAX(r->maps, (size_t)WORD), RESIDENT_THREADS, MC_MAX(r->maps / WORD, (size_t)1),
        r->maps);
    for (int i = 0; i < r->n; i++) {
        const struct phase *w = &r->phase[i];
        if (w->product) {
            mc_str_addf(out, "hold(A.head.product[%d], (const float *)A.move[%d].first, held);\n", w->at,
                        w->move + 1);
        }
    }
    mc_str_add(out, "__syncthreads();\nfor (unsigned t = 0; t < A.head.steps; t++) {\n");
    for (int i = 0; i < r->n; i++) {
        print_phase(out, r, f, i);
    }
    mc_str_add(out, r->n == 1 ? "__syncthreads();\n" : ""); /* one phase would write what it reads */
    mc_str_add(out, "}\nleave(A.head.arrived);\n}\n");
}
