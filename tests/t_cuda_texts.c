/* t_cuda_texts.c: the texts of a GPU's solvers compile for every GPU that counts, without one; constants of
 * cuDNN are those of its header.  What the kernels compute is tested in t_cuda_gemm.c and its neighbours. */
#include "cuda_test.h"
#include "heavy/conv/cuda/cuda.h"
#include "exec/cuda/cuda.h"
#include "heavy/factor/cuda/cusolver.h"
#include "heavy/factor/cuda/stack.h"
#include "op/matrix/matrix.h"
#include "heavy/gemm/cuda/split_inline.h"
#include "heavy/conv/cuda/implicit/tma.h"
#include "heavy/gemm/cuda/split.h"
#include <stdio.h>
#include <stdlib.h>

extern const struct mc_cuda_text mc_norm_text, mc_pool_text, mc_pool_lines_text, mc_pool_channels_last_text,
    mc_pooled_small_channels_text;

#define FLOATS "#define T float\n#define A float\n#define FLOAT 1\n", "#define T half\n#define A float\n#define FLOAT 1\n", \
    "#define T bf16\n#define A double\n#define FLOAT 1\n", "#define T double\n#define A double\n#define FLOAT 1\n"
#define REALS "#define T float\n#define A float\n#define FLOAT 1\n", "#define T double\n#define A double\n#define FLOAT 1\n"
#define RUNNING "#define ROWS 4\n#define V 4\n"
#define HALVES "#define EDGES 1\n#define ACT 0\n#define FB 32\n#define NT 3\n#define BLOCKS 1\n"
#define TAPS5 "#define IN0 12\n#define IN1 11\n#define OUT0 8\n#define OUT1 7\n#define K0 5\n#define K1 5\n"
#define DEPTHWISE                                                                                             \
    "#define A float\n#define FLOAT 1\n#define M 1\n#define CB 8\n#define BLOCKS 4\n#define KH 3\n#define KW 5\n#define SH 2\n#define SW 2\n" \
    "#define DH 1\n#define DW 2\n#define PH 1\n#define PW 2\n"
#define GROUPED                                                                                               \
    "#define A float\n#define FLOAT 1\n#define SOURCE 12\n#define RESULT 8\n#define BLOCKS 3\n#define KH 3\n#define KW 5\n" \
    "#define SH 2\n#define SW 2\n#define DH 1\n#define DW 2\n#define PH 1\n#define PW 2\n"
#define FLAT "#define KD 1\n#define SD 1\n#define PD (0)\n#define ID 1\n#define OD 1\n"
#define FEW1 FLAT "#define C 1\n#define KH 5\n#define KW 5\n#define SH 1\n#define SW 1\n#define OH 24\n#define OW 24\n#define PITCH 48\n#define LEFT 0\n#define LEAD 0\n#define MANY 1\n" \
    "#define DENSE 0\n#define STRAIGHT 0\n#define INSIDE 0\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n#define BLOCKS 2\n"
#define FEW3 "#define KD 3\n#define SD 1\n#define PD (1)\n#define ID 5\n#define OD 5\n#define C 3\n#define KH 7\n#define KW 7\n#define SH 2\n#define SW 2\n#define OH 31\n#define OW 29\n#define PITCH 240\n#define LEFT 16\n#define LEAD 7\n#define MANY 0\n" \
    "#define DENSE 1\n#define STRAIGHT 1\n#define INSIDE 1\n#define HAS_C0 0\n#define HAS_BIAS 1\n#define ACT 2\n#define BLOCKS 2\n"
#define SPREAD3 "#define KD 2\n#define SD 2\n#define PD (1)\n#define ID 4\n#define OD 2\n#define C 3\n#define KH 11\n#define KW 11\n#define SH 1\n#define SW 1\n#define OH 118\n#define OW 118\n#define PW 2\n#define GW 4\n#define MT 4\n#define R 2\n" \
    "#define NE 5\n#define IMAGES 1\n#define SLOTS 3\n#define ZPITCH 132\n"
#define SPREAD1 FLAT "#define C 1\n#define KH 5\n#define KW 7\n#define SH 2\n#define SW 3\n#define OH 24\n#define OW 48\n#define PW 2\n#define GW 4\n#define MT 4\n#define R 4\n" \
    "#define NE 1\n#define IMAGES 2\n#define SLOTS 2\n#define ZPITCH 52\n"
#define FFT16 "#define N 16\n#define R1 4\n#define R2 4\n#define G 16\n#define THREADS 128\n#define BLOCKS 8\n#define BESIDE 1\n"
#define FFT32 "#define N 32\n#define R1 8\n#define R2 4\n#define G 8\n#define THREADS 256\n#define BLOCKS 4\n#define BESIDE 1\n"
#define FFT64 "#define N 64\n#define R1 8\n#define R2 8\n#define G 4\n#define THREADS 512\n#define BLOCKS 2\n#define BESIDE 1\n"
#define FFT128 "#define N 128\n#define R1 16\n#define R2 8\n#define G 2\n#define THREADS 512\n#define BLOCKS 1\n#define BESIDE 2\n"
#define GEMM "#define INDEX unsigned\n#define RM 4\n#define RN 4\n#define A_BY_K 1\n#define B_BY_K 0\n#define HAS_C0 1\n"
#define POOL "#define SIGNED 1\n#define PLANES_INSIDE 0\n#define MARK unsigned char\n#define INDEX unsigned\n#define FIXED 0\n#define EPILOGUE 0\n#define BIAS 0\n#define ACT 0\n"
#define POOL3 "#define EPILOGUE 1\n#define BIAS 1\n#define ACT 3\n#define SIGNED 1\n#define PLANES_INSIDE 0\n#define MARK unsigned char\n#define INDEX unsigned\n#define FIXED 1\n#define WHOLE 0\n#define TOGETHER 1\n" \
    "#define POSITIONS 4\n#define X_MANY 4\n#define Y_MANY 4\n"                                                 \
    "#define W0 1\n#define W1 3\n#define W2 3\n#define S0 1\n#define S1 2\n#define S2 2\n#define P0 0\n#define P1 1\n#define P2 1\n"
#define POOL2 "#define EPILOGUE 1\n#define BIAS 0\n#define ACT 1\n#define SIGNED 1\n#define PLANES_INSIDE 1\n#define MARK unsigned char\n#define INDEX unsigned\n#define FIXED 1\n#define WHOLE 1\n#define TOGETHER 1\n" \
    "#define W0 1\n#define W1 2\n#define W2 2\n#define S0 1\n#define S1 2\n#define S2 3\n#define P0 0\n#define P1 0\n#define P2 0\n"

static const struct {
    const struct mc_cuda_text *text;
    const char *types[8];       /* each with each of more */
    const char *more[9];
} texts[] = {
    { &mc_cuda_fill_text, { FLOATS, "#define T signed char\n#define A u64\n#define FLOAT 0\n" }, { "" } },
    { &mc_cuda_copy_text,
      { "#define TO float\n#define FROM half\n", "#define TO bf16\n#define FROM double\n",
        "#define TO half\n#define FROM half\n" },
      { "#define RANK 1\n#define INDEX unsigned\n", "#define RANK 2\n#define INDEX u64\n",
        "#define RANK 8\n#define INDEX unsigned\n" } },
    { &mc_cuda_epilogue_text,
      { FLOATS },
      { "#define INDEX unsigned\n#define RANK 1\n#define HAS_C0 0\n#define HAS_BIAS 0\n#define ACT 4\n",
        "#define INDEX u64\n#define RANK 4\n#define HAS_C0 1\n#define HAS_BIAS 1\n#define ACT 5\n" } },
    { &mc_finish_call_text, { "" }, { "" } },
    { &mc_index_step_text,
      { FLOATS, "#define T signed char\n#define A u64\n#define FLOAT 0\n", "#define T i64\n#define A u64\n#define FLOAT 0\n" },
      { "" } },
    { &mc_running_text,
      { "#define T float\n#define A double\n#define FIRST 0.0\n", "#define T bf16\n#define A double\n#define FIRST 1.0\n",
        "#define T int\n#define A i64\n#define FIRST 5\n" },
      { RUNNING "#define O T\n#define WAY 0\n#define THREADS 256\n", RUNNING "#define O T\n#define WAY 3\n#define THREADS 32\n",
        "#define ROWS 4\n#define V 2\n#define O float\n#define WAY 1\n#define THREADS 256\n" } },
    { &mc_order_text,
      { "#define T float\n#define FLOAT 1\n#define U unsigned\n#define INFINITE 0x7f800000\n#define FLIP 0\n",
        "#define T bf16\n#define FLOAT 1\n#define U unsigned short\n#define INFINITE 0x7f80\n#define FLIP 1\n",
        "#define T double\n#define FLOAT 1\n#define U u64\n#define INFINITE 0x7ff0000000000000ull\n#define FLIP 0\n",
        "#define T signed char\n#define FLOAT 0\n#define U unsigned char\n#define SIGNED 1\n#define FLIP 1\n" },
      { "#define O T\n#define POSITIONS 0\n#define FAR 1\n#define THREADS 256\n#define ITEMS 8\n",
        "#define O i64\n#define POSITIONS 1\n#define FAR 0\n#define THREADS 64\n#define ITEMS 2\n",
        "#define O i64\n#define POSITIONS 1\n#define FAR 1\n#define THREADS 256\n#define ITEMS 8\n" } },
    { &mc_first_text,
      { "#define T half\n#define FLOAT 1\n#define U unsigned short\n#define INFINITE 0x7c00\n#define FLIP 1\n",
        "#define T int\n#define FLOAT 0\n#define U unsigned\n#define SIGNED 1\n#define FLIP 0\n" },
      { "" } },
    { &mc_each_text, { FLOATS, "#define T signed char\n#define FLOAT 0\n" }, { "#define C double\n#define I i64\n", "#define C i64\n#define I unsigned char\n" } },
    { &mc_counts_text, { "" }, { "" } },
    { &mc_fft_step_text, { REALS }, { "" } },
    { &mc_ranks_step_text,
      { "#define T half\n#define A float\n", "#define T double\n#define A double\n", "#define T signed char\n#define A u64\n" },
      { "#define WAY 0\n", "#define WAY 1\n", "#define WAY 2\n", "#define WAY 3\n" } },
    { &mc_factor_large_text, { REALS }, { "" } },
    { &mc_gemm_plain_text,
      { FLOATS, "#define T signed char\n#define A u64\n#define FLOAT 0\n" },
      { GEMM "#define ACT 0\n", GEMM "#define ACT 1\n" } },
    { &mc_gemm_plain_text,
      { "#define T float\n#define A float\n#define FLOAT 1\n" },
      { "#define INDEX u64\n#define RM 8\n#define RN 8\n#define A_BY_K 0\n#define B_BY_K 1\n#define HAS_C0 0\n#define ACT "
        "2\n" } },
    { &mc_gemm_skinny_text,
      { FLOATS },
      { "#define HAS_C0 1\n#define Q 10\n#define WIDE 1\n#define R 4\n#define VECTOR 2\n#define ACT 0\n",
        "#define HAS_C0 0\n#define Q 1\n#define WIDE 32\n#define R 16\n#define VECTOR 1\n#define ACT 2\n",
        "#define HAS_C0 1\n#define Q 16\n#define WIDE 8\n#define R 1\n#define VECTOR 4\n#define ACT 7\n" } },
    { &mc_split_inline_text,
      { "#define ACT 0\n#define LINES 1\n", "#define ACT 3\n#define LINES 0\n" },
      { "#define A_DENSE 1\n#define B_DENSE 0\n#define SPLIT 1\n#define TOGETHER 0\n",
        "#define A_DENSE 0\n#define B_DENSE 1\n#define SPLIT 0\n#define TOGETHER 0\n",
        "#define A_DENSE 1\n#define B_DENSE 1\n#define SPLIT 1\n#define TOGETHER 1\n" } },
    { &mc_conv_direct_text,
      { FLOATS },
      { "#define INDEX unsigned\n#define PASS 0\n#define UNSHARED 0\n#define HAS_C0 0\n#define HAS_BIAS "
        "1\n#define ACT 2\n",
        "#define INDEX u64\n#define PASS 1\n#define UNSHARED 0\n#define HAS_C0 1\n#define HAS_BIAS "
        "0\n#define ACT 0\n",
        "#define INDEX unsigned\n#define PASS 2\n#define UNSHARED 1\n#define HAS_C0 1\n#define HAS_BIAS "
        "0\n#define ACT 0\n" } },
    { &mc_conv_depthwise_text,
      { "#define T float\n#define HALVES 0\n" DEPTHWISE "#define LAST 1\n#define TH 2\n#define TW 6\n#define V 4\n#define G 1\n#define GT 1\n",
        "#define T half\n#define HALVES 1\n" DEPTHWISE "#define LAST 0\n#define TH 6\n#define TW 4\n#define V 1\n#define G 2\n#define GT 4\n",
        "#define T bf16\n#define HALVES 1\n" DEPTHWISE "#define LAST 0\n#define TH 2\n#define TW 2\n#define V 1\n#define G 1\n#define GT 1\n" },
      { "#define PASS 0\n#define FILTERS 0\n#define TAP_STEP 1\n#define HAS_C0 0\n#define HAS_BIAS 1\n#define ACT 2\n",
        "#define PASS 1\n#define FILTERS 0\n#define TAP_STEP -1\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n",
        "#define PASS 2\n#define FILTERS 1\n#define TAP_STEP 0\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n" } },
    { &mc_conv_grouped_tensor_text,
      { "#define T half\n#define SOURCE 24\n#define RESULT 20\n#define SIXTEENS 1\n", "#define T bf16\n#define SOURCE 16\n#define RESULT 32\n#define SIXTEENS 2\n" },
      { "#define A float\n#define FLOAT 1\n#define BLOCKS 4\n#define KH 3\n#define KW 5\n#define SH 2\n#define SW 2\n#define DH 1\n#define DW 2\n#define PH 1\n#define PW 2\n#define PASS 0\n#define HAS_C0 0\n#define HAS_BIAS 1\n#define ACT 2\n",
        "#define A float\n#define FLOAT 1\n#define BLOCKS 4\n#define KH 3\n#define KW 5\n#define SH 1\n#define SW 1\n#define DH 1\n#define DW 2\n#define PH 1\n#define PW 2\n#define PASS 1\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n" } },
    { &mc_conv_small_filters_text,
      { "#define SOURCES 7\n#define TAPS 2\n#define RESULTS 20\n#define THREADS 384\n", "#define SOURCES 256\n#define TAPS 1\n#define RESULTS 130\n#define THREADS 256\n" },
      { "#define HAS_C0 0\n#define HAS_BIAS 1\n#define ACT 2\n", "#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n" } },
    { &mc_conv_grouped_text,
      { "#define T float\n#define HALVES 0\n" GROUPED "#define LAST 1\n#define TH 2\n#define TW 4\n#define V 4\n#define C 4\n#define R 2\n#define RV 2\n#define G 1\n#define GT 1\n#define LANES 4\n",
        "#define T half\n#define HALVES 1\n" GROUPED "#define LAST 0\n#define TH 2\n#define TW 4\n#define V 1\n#define C 1\n#define R 3\n#define RV 1\n#define G 2\n#define GT 4\n#define LANES 2\n",
        "#define T bf16\n#define HALVES 1\n" GROUPED "#define LAST 1\n#define TH 2\n#define TW 2\n#define V 2\n#define C 2\n#define R 8\n#define RV 8\n#define G 1\n#define GT 1\n#define LANES 1\n" },
      { "#define PASS 0\n#define FILTERS 0\n#define PARTS 2\n#define HAS_C0 0\n#define HAS_BIAS 1\n#define ACT 2\n",
        "#define PASS 1\n#define FILTERS 0\n#define PARTS 1\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n",
        "#define PASS 2\n#define FILTERS 1\n#define PARTS 1\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n" } },
    { &mc_conv_small_channels_text,
      { "#define BESIDE 0\n#define HAS_C0 0\n#define HAS_BIAS 1\n#define ACT 2\n",
        "#define BESIDE 0\n#define HAS_C0 1\n#define HAS_BIAS 0\n#define ACT 0\n",
        "#define BESIDE 1\n#define HAS_C0 1\n#define HAS_BIAS 1\n#define ACT 2\n" },
      { FLAT "#define FORWARD 1\n#define C 1\n#define KH 5\n#define KW 5\n#define SH 1\n#define SW 1\n#define Q "
        "8\n#define TA 1\n",
        FLAT "#define FORWARD 0\n#define C 3\n#define KH 7\n#define KW 7\n#define SH 2\n#define SW 2\n#define Q "
        "4\n#define TA 3\n" } },
    { &mc_conv_small_channels_forward_text,
      { "#define T half\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" FEW1 "#define BESIDE 0\n#define G 4\n",
        "#define T bf16\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" FEW1 "#define BESIDE 1\n#define G 4\n",
        "#define T float\n#define TAPS_DENSE 1\n#define FINE 1\n#define PAIRS 1\n" FEW3 "#define BESIDE 0\n#define G 1\n",
        "#define T bf16\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" FEW3 "#define BESIDE 1\n#define G 4\n",
        "#define T float\n#define TAPS_DENSE 1\n#define FINE 1\n#define PAIRS 1\n" FEW3 "#define BESIDE 1\n#define G 2\n" },
      { "#define FE 8\n#define PE 4\n#define WARPS 8\n" } },
    { &mc_conv_small_channels_weights_text,
      { "#define T half\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" FEW1 "#define BESIDE 0\n#define U 2\n#define WHOLE true\n",
        "#define T bf16\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" FEW1 "#define BESIDE 1\n#define U 4\n#define WHOLE true\n",
        "#define T float\n#define TAPS_DENSE 1\n#define FINE 1\n#define PAIRS 0\n" FEW3 "#define BESIDE 0\n#define U 2\n#define WHOLE false\n",
        "#define T bf16\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" FEW3 "#define BESIDE 1\n#define U 8\n#define WHOLE true\n",
        "#define T float\n#define TAPS_DENSE 1\n#define FINE 1\n#define PAIRS 0\n" FEW3 "#define BESIDE 1\n#define U 4\n#define WHOLE false\n" },
      { "#define S16 4\n#define EK 5\n#define ACROSS 4\n#define DOWN 2\n" } },
    { &mc_conv_small_channels_spread_text,
      { "#define T half\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" SPREAD3 "#define BESIDE 0\n#define CF 96\n#define PITCH 120\n#define UNIT 4\n",
        "#define T bf16\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" SPREAD3 "#define BESIDE 0\n#define CF 96\n#define PITCH 120\n#define UNIT 4\n",
        "#define T float\n#define TAPS_DENSE 1\n#define FINE 1\n#define PAIRS 0\n" SPREAD3 "#define BESIDE 0\n#define CF 48\n#define PITCH 136\n#define UNIT 4\n",
        "#define T float\n#define TAPS_DENSE 1\n#define FINE 1\n#define PAIRS 0\n" SPREAD3 "#define BESIDE 1\n#define CF 48\n#define PITCH 52\n#define UNIT 16\n",
        "#define T bf16\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" SPREAD1 "#define BESIDE 0\n#define CF 32\n#define PITCH 56\n#define UNIT 16\n",
        "#define T float\n#define TAPS_DENSE 0\n#define FINE 0\n#define PAIRS 0\n" SPREAD1 "#define BESIDE 0\n#define CF 24\n#define PITCH 56\n#define UNIT 4\n" },
      { "#define HAS_C0 0\n", "#define HAS_C0 1\n" } },
    { &mc_conv_space_to_depth_text,
      { "#define INDEX unsigned\n", "#define INDEX u64\n" },
      { "#define T unsigned short\n#define PACK 8\n", "#define T unsigned long long\n#define PACK 1\n" } },
    { &mc_conv_im2col_text, { FLOATS }, { "#define INDEX unsigned\n", "#define INDEX u64\n" } },
    { &mc_conv_fft_text,
      { "#define T float\n#define PEAKS 256\n", "#define T bf16\n#define PEAKS 256\n" },
      { FFT16 "#define HALVES 0\n", FFT16 "#define HALVES 1\n", FFT32 "#define HALVES 0\n",
        FFT32 "#define HALVES 1\n", FFT64 "#define HALVES 0\n", FFT64 "#define HALVES 1\n",
        FFT128 "#define HALVES 0\n", FFT128 "#define HALVES 1\n" } },
    { &mc_conv_fft_tensor_text,
      { "#define T bf16\n#define PEAKS 256\n#define HALVES 1\n" },
      { "#define N 64\n#define R1 8\n#define R2 8\n#define THREADS 256\n#define BLOCKS 2\n#define BESIDE 1\n",
        "#define N 128\n#define R1 16\n#define R2 8\n#define THREADS 512\n#define BLOCKS 1\n#define BESIDE "
        "2\n" } },
    { &mc_conv_fft_products_text, { "#define BESIDE 2\n#define HALVES 0\n" }, { "" } },
    { &mc_conv_fft_products_half_text, { "#define BESIDE 2\n#define HALVES 1\n" }, { "" } },
    { &mc_conv_shared_image_text,
      { HALVES },
      { "#define CC 24\n#define THREADS 128\n", "#define CC 64\n#define THREADS 160\n" } },
    { &mc_conv_shared_image_weights_text, { HALVES }, { "#define CC 16\n#define THREADS 320\n" } },
    { &mc_conv_register_weights_text,
      { HALVES },
      { "#define CC 24\n#define THREADS 192\n#define KS 4\n#define SET 13\n#define FULL 1\n" TAPS5,
        "#define CC 16\n#define THREADS 64\n#define KS 2\n#define SET 3\n#define FULL 0\n" TAPS5 } },
    { &mc_conv_col2im_text,
      { HALVES },
      { "#define CC 64\n#define THREADS 128\n", "#define CC 16\n#define THREADS 256\n" } },
    { &mc_pool_text,
      { FLOATS },
      { POOL "#define FORWARD 1\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL "#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY 2\n",
        POOL "#define FORWARD 0\n#define GATHER 0\n#define MODE 3\n#define KEY 0\n",
        POOL "#define FORWARD 0\n#define GATHER 1\n#define MODE 0\n#define KEY 1\n" ,
        POOL "#define FORWARD 1\n#define GATHER 0\n#define MODE 0\n#define KEY 3\n",
        POOL "#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY 3\n" } },
    { &mc_pool_text,
      { "#define T float\n#define A float\n#define FLOAT 1\n",
        "#define T bf16\n#define A float\n#define FLOAT 1\n" },
      { POOL3 "#define FORWARD 1\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL3 "#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n" } },
    { &mc_pool_lines_text,
      { "#define T float\n#define A float\n#define FLOAT 1\n",
        "#define T bf16\n#define A float\n#define FLOAT 1\n" },
      { POOL3 "#define FORWARD 1\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL3 "#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL3 "#define FORWARD 1\n#define GATHER 0\n#define MODE 3\n#define KEY 0\n",
        POOL3 "#define FORWARD 0\n#define GATHER 0\n#define MODE 2\n#define KEY 0\n",
        POOL2 "#define POSITIONS 4\n#define X_MANY 4\n#define Y_MANY 4\n#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY "
              "2\n#define EQUALS 1\n" } },
    { &mc_pool_channels_last_text,
      { "#define T float\n#define A float\n#define FLOAT 1\n#define BESIDE 4\n",
        "#define T bf16\n#define A float\n#define FLOAT 1\n#define BESIDE 8\n" },
      { POOL3 "#define FORWARD 1\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL3 "#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL3 "#define FORWARD 1\n#define GATHER 0\n#define MODE 3\n#define KEY 0\n",
        POOL3 "#define FORWARD 0\n#define GATHER 0\n#define MODE 2\n#define KEY 0\n",
        POOL2 "#define FORWARD 0\n#define GATHER 0\n#define MODE 0\n#define KEY 1\n",
        POOL2 "#define FORWARD 0\n#define GATHER 0\n#define MODE 3\n#define KEY 0\n" } },
    { &mc_pool_text,
      { "#define T unsigned char\n#define A u64\n#define FLOAT 0\n" },
      { POOL "#define FORWARD 1\n#define GATHER 0\n#define MODE 2\n#define KEY 0\n" } },
    { &mc_pooled_small_channels_text,
      { FLAT "#define C 1\n#define KH 5\n#define KW 5\n#define SH 1\n#define SW 1\n#define Q 8\n#define NT 3\n#define W1 "
        "2\n#define W2 2\n#define S1 2\n#define S2 2\n",
        FLAT "#define C 3\n#define KH 4\n#define KW 3\n#define SH 2\n#define SW 1\n#define Q 4\n#define NT 4\n#define W1 "
        "3\n#define W2 4\n#define S1 3\n#define S2 4\n" },
      { "#define FORWARD 1\n#define BITS 0\n#define HAS_BIAS 0\n#define ACT 0\n", "#define FORWARD 0\n#define BITS 0\n",
        "#define FORWARD 1\n#define BITS 1\n#define HAS_BIAS 1\n#define ACT 3\n", "#define FORWARD 0\n#define BITS 1\n" } },
    { &mc_norm_text,
      { FLOATS },
      { "#define BACKWARD 0\n#define QUARTERS 3\n#define CHUNK 0\n#define INDEX u64\n",
        "#define BACKWARD 1\n#define QUARTERS 0\n#define CHUNK 0\n#define INDEX unsigned\n",
        "#define BACKWARD 0\n#define QUARTERS 2\n#define CHUNK 4\n#define N 4\n#define BLOCKED 1\n#define "
        "INDEX u64\n",
        "#define BACKWARD 1\n#define QUARTERS 3\n#define CHUNK 16\n#define N 5\n#define BLOCKED 0\n#define "
        "INDEX unsigned\n" } },
};

static void compile(const struct mc_cuda_text *t, const char *types, const char *more, int sm)
{
    struct mc_str defines = { 0 }, source = { 0 };
    size_t bytes = 0;
    mc_str_addf(&defines, "%s%s", types, more);
    mc_cuda_source(t, defines.s, &source);
    CHECK(mc_cuda_compile_only(source.s, "", sm, &bytes) == MC_OK && bytes > 0, "%s for sm_%d with\n%s%s",
          t->name, sm, defines.s, mc_last_error());
    mc_str_free(&defines);
    mc_str_free(&source);
}

/* Everyday each text for one of three GPUs in turn, else for all: those of GPU `which`. */
static void compile_all(size_t which)
{
    static const int sms[] = { 80, 90, 100 };
    size_t turn = 0;
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(texts); i++) {
        for (size_t k = 0; texts[i].types[k]; k++) {
            for (size_t m = 0; texts[i].more[m]; m++, turn++) {
                if (test_is_full() || turn % NELEM(sms) == which) {
                    compile(texts[i].text, texts[i].types[k], texts[i].more[m], sms[which]);
                }
            }
        }
    }
}

TEST(cuda_solver_texts_compile_for_sm_80)
{
    compile_all(0);
}

TEST(cuda_solver_texts_compile_for_sm_90)
{
    compile_all(1);
}

TEST(cuda_solver_texts_compile_for_sm_100)
{
    compile_all(2);
}

/* Every kind of factorization, of both dtypes. */
TEST(cuda_factor_texts_compile)
{
    NEEDS_NVRTC;
    for (int kind = 0; kind < FACTOR_NKIND; kind++) {
        for (int wide = 0; wide < 2; wide++) {
            const struct mc_factor f = { .kind = (enum mc_factor_kind)kind,
                                         .dtype = wide ? MC_FLOAT64 : MC_FLOAT32 };
            struct mc_str defines = { 0 };
            mc_factor_source(&f, &defines);
            REQUIRE(!defines.bad, "out of memory");
            compile(&mc_factor_step_text, defines.s, "", 90);
            mc_str_free(&defines);
        }
    }
}

/* A block of threads for each matrix: in shared memory, or, of float64, in the scratch. */
TEST(cuda_stack_texts_compile)
{
    int compiled = 0;
    NEEDS_NVRTC;
    for (int kind = 0; kind < FACTOR_NKIND; kind++) {
        for (int wide = 0; wide < 2; wide++) {
            const bool spectrum = kind >= FACTOR_EIGH;
            const int64_t n = wide && !spectrum ? 200 : 20;
            const struct mc_factor f = { .kind = (enum mc_factor_kind)kind,
                                         .dtype = wide ? MC_FLOAT64 : MC_FLOAT32,
                                         .batch = 1,
                                         .g = { n, spectrum && kind < FACTOR_SVD ? 1 : n, n } };
            struct mc_factor_stack_kernel k;
            struct mc_str defines = { 0 };
            if (mc_factor_stack_of(&f, 227 << 10, 132, &k, &defines)) {
                compile(k.text, defines.s, "", wide ? 80 : 90);
                compiled++;
            }
            mc_str_free(&defines);
        }
    }
    CHECK(compiled == 2 * 9, "%d of 9 kinds", compiled);
}

/* Each kind of ctc_loss, of every float. */
TEST(cuda_ctc_texts_compile)
{
    static const mc_dtype floats[] = { MC_FLOAT16, MC_BFLOAT16, MC_FLOAT32, MC_FLOAT64 },
                          whole[] = { MC_UINT8, MC_INT16, MC_INT32, MC_INT64 };
    NEEDS_NVRTC;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < NELEM(floats); i++) {
            struct mc_str defines = { 0 };
            mc_ctc_source(kind, floats[i], whole[i], whole[NELEM(floats) - 1 - i], &defines);
            REQUIRE(!defines.bad, "out of memory");
            compile(&mc_ctc_step_text, defines.s, "", 90);
            mc_str_free(&defines);
        }
    }
}

/* The product of split operands: its instruction is printed for each width. */
TEST(cuda_split_text_compiles)
{
    static const struct { enum mc_split_mode mode; int tn, unit; bool inside; } rows[] = {
        { SPLIT_MATRICES, 64, 8, false }, { SPLIT_MATRICES, 128, 8, false }, { SPLIT_WINDOWS, 96, 4, true }, { SPLIT_WINDOWS, 128, 8, false },
        { SPLIT_FILTERS, 128, 8, false }, { SPLIT_WINDOWS_PHASES, 96, 8, false }, { SPLIT_WINDOWS_PHASES, 64, 4, false },
    };
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str defines = { 0 };
        mc_split_defines(&defines, rows[i].mode, rows[i].tn, rows[i].unit, rows[i].inside);
        compile(&mc_gemm_split_text, "", defines.s, 90);
        if (i == 0 || test_is_full()) {
            compile(&mc_gemm_split_text, "", defines.s, 80);
            compile(&mc_gemm_split_pack_text, "", "", 100);
        }
        mc_str_free(&defines);
    }
}

TEST(cuda_split_large_text_compiles)
{
    static const struct { int tn, together; bool adds; enum mc_act act; } rows[] = {
        { 208, 2, false, ACT_NONE }, { 128, 1, true, ACT_GELU_ERF }, { 176, 2, true, ACT_RELU }
    };
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str defines = { 0 };
        mc_split_large_defines(&defines, rows[i].tn, rows[i].together, rows[i].adds, rows[i].act);
        compile(&mc_gemm_split_large_text, "", defines.s, 90);
        if (i == 0 || test_is_full()) {
            compile(&mc_gemm_split_large_text, "", defines.s, 80);
            compile(&mc_gemm_split_large_text, "", defines.s, 100);
        }
        mc_str_free(&defines);
    }
}

TEST(cuda_box_text_compiles)
{
    static const struct mc_conv_tma_kind kinds[] = {
        { MC_BFLOAT16, ACT_NONE, .down = true, .mi = 1, .tn = 192, .slots = 5, .axes = 2, .row = 128, .parts = 1 }, { MC_BFLOAT16, ACT_RELU, .adds = true, .mi = 2, .tn = 128, .slots = 4, .axes = 3, .row = 64, .parts = 1 },
        { MC_FLOAT16, ACT_GELU, .down = true, .mi = 1, .tn = 64, .slots = 8, .axes = 2, .row = 32, .parts = 4 },   { MC_FLOAT32, ACT_NONE, .mi = 2, .tn = 192, .slots = 4, .axes = 3, .row = 64, .parts = 1 },
        { MC_FLOAT32, ACT_TANH, .adds = true, .mi = 1, .tn = 256, .slots = 4, .axes = 2, .row = 128, .parts = 8 },
        { MC_BFLOAT16, ACT_NONE, .down = true, .mi = 2, .tn = 32, .slots = 8, .axes = 2, .row = 64, .parts = 2 },
        { MC_FLOAT16, ACT_NONE, .down = true, .mi = 1, .tn = 96, .slots = 8, .axes = 3, .row = 32, .parts = 1 },
        { MC_BFLOAT16, ACT_NONE, .alone = true, .mi = 1, .tn = 192, .slots = 5, .axes = 2, .row = 128, .parts = 1 },
        { MC_FLOAT32, ACT_NONE, .adds = true, .alone = true, .mi = 2, .tn = 96, .slots = 4, .axes = 2, .row = 32, .parts = 1 },
    };
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(kinds); i++) {
        struct mc_str defines = { 0 };
        mc_conv_tma_defines(&defines, &kinds[i]);
        compile(&mc_conv_tma_text, "", defines.s, 90);
        if (i == 0) {
            compile(&mc_conv_tma_text, "", defines.s, 100);
        }
        mc_str_free(&defines);
    }
}

TEST(cuda_box_weights_text_compiles)
{
    static const struct {
        struct mc_conv_tma_weights_kind kind;
        struct mc_conv_tma_weights_tiling c;
    } rows[] = {
        { { MC_BFLOAT16, .slots = 4, .slices = 1 }, { .down = 2, .mi = 1, .across = 1, .q = 4, .ks = 4 } },
        { { MC_FLOAT16, .adds = true, .clear = true, .slots = 3, .slices = 8 },
          { .taps_down = true, .down = 2, .mi = 2, .across = 1, .q = 3, .ks = 4 } },
        { { MC_BFLOAT16, .adds = true, .slots = 8, .slices = 8 },
          { .down = 1, .mi = 1, .across = 2, .q = 1, .ks = 7 } },
        { { MC_BFLOAT16, .clear = true, .slots = 3, .slices = 1 },
          { .taps_down = true, .down = 1, .mi = 2, .across = 2, .q = 3, .ks = 4 } },
    };
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str defines = { 0 };
        mc_conv_tma_weights_defines(&defines, &rows[i].kind, &rows[i].c);
        compile(&mc_conv_tma_weights_text, "", defines.s, 90);
        if (i == 0) {
            compile(&mc_conv_tma_weights_text, "", defines.s, 100);
        }
        mc_str_free(&defines);
    }
}

/* What cuDNN's header wants of CUDA's runtime is the names of some types. */
static bool stand_in(const char *folder)
{
    char path[64];
    snprintf(path, sizeof path, "%s/cuda_runtime_api.h", folder);
    FILE *f = fopen(path, "w");
    return f &&
           fputs("#include <stddef.h>\n#include <stdint.h>\ntypedef void *cudaStream_t, *cudaGraph_t, "
                 "*cudaEvent_t;\n"
                 "#define CUDART_VERSION 13000\n",
                 f) >= 0 &&
           fclose(f) == 0;
}

/* TEST_CUDA_PATH leads to folders of the vendor's headers. */
TEST(cudnn_constants_are_its_own)
{
    static const struct { const char *name; int value; } rows[] = {
#define DNN(name, value) { #name, value },
#include "heavy/conv/cuda/cudnn/cudnn.def"
#undef DNN
    };
    const char *path = getenv("TEST_CUDA_PATH");
    char command[2048], mine[] = "/tmp/mc_headers_XXXXXX";
    snprintf(command, sizeof command,
             "ls '%s'/cudnn/include/cudnn_graph.h '%s'/*/include/library_types.h > /dev/null 2>&1",
             path ? path : "", path ? path : "");
    if (!path || system(command) != 0) {
        SKIP("TEST_CUDA_PATH leads to no headers of cuDNN");
    }
    REQUIRE(mkdtemp(mine) && stand_in(mine), "no temporary folder");
    snprintf(command, sizeof command, "cc -fsyntax-only -x c - -I%s $(ls -d '%s'/*/include | sed 's/^/-I/')",
             mine, path);
    FILE *cc = popen(command, "w");
    REQUIRE(cc, "no shell");
    fputs("#include <cudnn_graph.h>\n", cc);
    for (size_t i = 0; i < NELEM(rows); i++) {
        fprintf(cc, "_Static_assert(%s == %d, \"%s\");\n", rows[i].name, rows[i].value, rows[i].name);
    }
    CHECK(pclose(cc) == 0, "the header has other values");
    snprintf(command, sizeof command, "rm -r %s", mine);
    CHECK(system(command) == 0, "%s stays", mine);
}
