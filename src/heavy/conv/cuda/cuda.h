/* cuda.h: declarations shared by the convolution solvers for a GPU. */
#ifndef MC_CONV_CUDA_H
#define MC_CONV_CUDA_H

#include "heavy/conv/cuda/direct_args.h"
#include "heavy/conv/solver.h"
#include "heavy/cuda/cuda.h"

/* ---- table.c ---- */
extern const struct mc_solver *const mc_conv_cuda_solvers[];
extern const struct mc_solver mc_conv_cudnn, mc_conv_cuda_small_channels, mc_conv_cuda_small_channels_tensor,
    mc_conv_cuda_small_channels_scatter, mc_conv_cuda_split, mc_conv_cuda_tma, mc_conv_cuda_tma_weights,
    mc_conv_cuda_split_pointwise,
    mc_conv_cuda_shared_image, mc_conv_cuda_taps, mc_conv_cuda_col2im, mc_conv_cuda_fft,
    mc_conv_cuda_fft_fine, mc_conv_cuda_fft_tiling, mc_conv_cuda_im2col, mc_conv_cuda_exchange,
    mc_conv_cuda_exchange_full, mc_conv_cuda_bc01, mc_conv_cuda_b01c, mc_conv_cuda_space_to_depth,
    mc_conv_cuda_unfused, mc_conv_cuda_depthwise, mc_conv_cuda_grouped, mc_conv_cuda_grouped_tensor,
    mc_conv_cuda_small_filters, mc_conv_cuda_planes, mc_conv_cuda_direct;
double mc_conv_cuda_seconds(const struct mc_conv_problem *p, double part);  /* part: of the peak */
/* unfused.c: the time of a separate epilogue kernel */
double mc_conv_cuda_epilogue_seconds(const struct mc_conv_problem *p);
void *mc_conv_cuda_result(const struct mc_conv_problem *p, void *const *operand);
/* The copy from c0 to the result, for solvers that then add their sums to the result. */
struct mc_cuda_copy *mc_conv_cuda_c0_copy(const struct mc_conv_problem *p);

/* ---- direct.c: arguments of the kernels of direct.cu ---- */
/* everything but addresses */
void mc_direct_shape(struct mc_direct_args *a, const struct mc_conv_problem *p);
void mc_direct_bind(struct mc_direct_args *a, const struct mc_conv_problem *p, void *const *operand);
/* wide: sums in float64 */
void *mc_direct_kernel(const struct mc_direct_args *a, const struct mc_conv_problem *p, bool wide,
                       const char *name);

/* ---- spot_check.c: the family's functions error and allows (plan.h) ---- */
double mc_conv_cuda_error(const struct mc_problem *p, void *const *operand);
double mc_conv_cuda_allows(const struct mc_problem *p);

/* ---- texts ---- */
extern const struct mc_cuda_text mc_conv_direct_text, mc_conv_small_channels_tile_text,
    mc_conv_small_channels_lines_text, mc_conv_small_channels_text, mc_conv_small_channels_cells_text,
    mc_conv_small_channels_forward_text, mc_conv_small_channels_weights_text,
    mc_conv_small_channels_spread_text, mc_conv_im2col_text, mc_conv_fft_text, mc_conv_fft_tensor_text,
    mc_conv_fft_products_text, mc_conv_fft_products_half_text, mc_conv_shared_image_text,
    mc_conv_shared_image_weights_text, mc_conv_register_weights_text, mc_conv_col2im_text,
    mc_conv_space_to_depth_text, mc_conv_tma_text, mc_conv_tma_weights_text, mc_conv_depthwise_text,
    mc_conv_grouped_text, mc_conv_grouped_tensor_text, mc_conv_small_filters_text;

enum { DNN_AUTO, DNN_REQUIRED, DNN_NEVER };  /* the values of the flag dnn.enabled, in order */
/* ---- cudnn/graph.c: descriptors of cuDNN's backend ---- */
enum {
#define DNN(name, value) name = value,
#include "heavy/conv/cuda/cudnn/cudnn.def"
#undef DNN
};
struct mc_dnn {                 /* descriptors that are freed together */
    VEC(void *) made;
    bool failed;                /* one could not be made; later ones are NULL */
};
void *mc_dnn_new(struct mc_dnn *g, int type);
void mc_dnn_set(struct mc_dnn *g, void *desc, int name, int type, int64_t n, const void *values);
void mc_dnn_finish(struct mc_dnn *g, void *desc);
void mc_dnn_free(struct mc_dnn *g);
/* Ids of the tensors in a graph and in a variant pack. */
enum { DNN_X, DNN_W, DNN_Y, DNN_C0, DNN_BIAS, DNN_VIRTUAL };
/* The operation graph of a problem. alignment: of all pointers, in bytes.  NULL: cuDNN has no such
 * operation. */
void *mc_dnn_graph(struct mc_dnn *g, void *handle, const struct mc_conv_problem *p, int64_t alignment);
const char *mc_dnn_refuse(const struct mc_conv_problem *p);  /* why no graph can express p; NULL: one can */
/* Does the graph hold more than the convolution? Then c0 is an operand. */
bool mc_dnn_fused(const struct mc_conv_problem *p);
/* ---- cudnn/search.c: selects a configuration ---- */
enum { MC_DNN_NAME = 64 };
struct mc_dnn_ready {           /* an execution plan */
    struct mc_dnn made;
    void *plan;
    size_t workspace;
    char name[MC_DNN_NAME];
};
void *mc_dnn_handle(void);      /* NULL: failed, error set */
mc_status mc_dnn_execute(const struct mc_dnn_ready *r, const struct mc_conv_problem *p, void *const *operand,
                         void *workspace);
void mc_dnn_forget(struct mc_dnn_ready *r);
/* Selects as the mode asks; false: there is no usable configuration. */
bool mc_dnn_choose(const struct mc_conv_problem *p, void *graph, struct mc_dnn_ready *use);
/* Among the configurations that the heuristics name: the one equal to `like`, or else the first. */
bool mc_dnn_choose_like(const struct mc_conv_problem *p, void *graph, const struct mc_dnn_ready *like,
                        struct mc_dnn_ready *use);
/* ---- cudnn/engines.c: configurations: an engine and its knobs ---- */
struct mc_dnn_config {          /* what is known of a configuration before it is finalized */
    char name[MC_DNN_NAME];     /* "e38:5f1c..." */
    int64_t engine;
    bool compiles, cores;       /* compiles: kernels, when it is finalized; cores: uses tensor cores */
};
/* false: not usable for p */
bool mc_dnn_describe(const struct mc_conv_problem *p, void *config, struct mc_dnn_config *c);
/* an attribute; missing: the result where it is absent */
int64_t mc_dnn_number(void *desc, int name, int64_t missing);
/* What a walk does after a visit: continue; leave the current list or engine; end. */
enum mc_dnn_next { DNN_ON, DNN_LEAVE, DNN_END };
/* named: a heuristic named the configuration */
typedef enum mc_dnn_next mc_dnn_visit(void *arg, void *config, bool named);
/* Visits all configurations that the mode asks for, those of the heuristics first. mc_dnn_engine: one
 * engine with its knobs.  True: the visit ended the walk. */
bool mc_dnn_walk(const struct mc_conv_problem *p, void *graph, enum mc_plan_mode mode, mc_dnn_visit *f,
                 void *arg);
bool mc_dnn_engine(const struct mc_conv_problem *p, void *graph, int64_t index, mc_dnn_visit *f, void *arg);

#endif
