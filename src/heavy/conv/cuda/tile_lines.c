/* tile_lines.c: tiles of a plane whose sums a thread keeps in registers: sizes, alignment, limits. */
#include "heavy/conv/cuda/tile_lines.h"
#include <math.h>

int64_t mc_conv_tiles(const struct mc_conv_problem *p, const struct mc_conv_tile *t)
{
    return p->s.n * conv_ceil(mc_conv_tiled(p)[1], t->th) * conv_ceil(mc_conv_tiled(p)[2], t->tw);
}

/* With those between taps. */
static double reach(const struct mc_conv_shape *s, int axis, int tile)
{
    const double taps = (double)((s->k[axis] - 1) * s->dilation[axis]);
    return s->pass == CONV_INPUTS ? ((double)tile - 1 + taps) / (double)s->stride[axis] + 1
                                  : (double)((tile - 1) * s->stride[axis]) + 1 + taps;
}

double mc_conv_lines_read(const struct mc_conv_shape *s, int axis, int tile)
{
    return MC_MIN(reach(s, axis, tile), (double)(tile * s->k[axis]));
}

/* ---- alignment ---- */

bool mc_conv_even(const int64_t at[5], int axis, int unit)
{
    bool ok = true;
    for (int i = 0; i < 5; i++) {
        ok = ok && (i == axis || at[i] % unit == 0);
    }
    return ok;
}

/* The most adjacent positions of one array that can be moved at once, where tiles begin at multiples of
 * `step`. */
static int at_once(const int64_t at[5], int64_t positions, int64_t step)
{
    int g = 4;
    while (g > 1 && (step % g || positions % g || !mc_conv_even(at, 4, g))) {
        g /= 2;
    }
    return g;
}

void mc_conv_positions_at_once(const struct mc_conv_problem *p, struct mc_conv_tile *t)
{
    const struct mc_conv_shape *s = &p->s;
    if (mc_conv_spreads(p)) {
        t->g = at_once(p->at.y, s->out[2], t->tw / s->stride[2]);
        t->gt = at_once(p->at.x, s->in[2], t->tw);
    } else {
        t->g = at_once(p->at.x, s->in[2], t->tw * s->stride[2]);
        t->gt = at_once(p->at.y, s->out[2], t->tw);
    }
}

/* ---- the text's macros ---- */

void mc_conv_tile_defines(const struct mc_conv_problem *p, const struct mc_conv_tile *t,
                          struct mc_str *defines)
{
    const struct mc_conv_shape *s = &p->s;
    mc_cuda_types(defines, p->dtype, false);
    mc_str_addf(defines, "#define HALVES %d\n#define PASS %d\n#define FILTERS %d\n",
                mc_dtypes[p->dtype].size == 2, (int)s->pass, s->pass == CONV_WEIGHTS);
    mc_str_addf(defines,
                "#define LAST %d\n#define TH %d\n#define TW %d\n#define V %d\n#define G %d\n#define GT %d\n",
                t->last, t->th, t->tw, t->v, t->g, t->gt);
    for (int i = 1; i < 3; i++) {
        const char axis = "HW"[i - 1];
        const int k = (int)s->k[i], stride = (int)s->stride[i], dilation = (int)s->dilation[i],
                  pad = (int)s->pad[i];
        mc_str_addf(defines, "#define K%c %d\n#define S%c %d\n#define D%c %d\n#define P%c %d\n", axis, k,
                    axis, stride, axis, dilation, axis, pad);
    }
    mc_str_addf(defines, "#define HAS_C0 %d\n#define HAS_BIAS %d\n#define ACT %d\n", p->beta != 0,
                p->has_bias, (int)p->act);
}

/* ---- limits ---- */

/* Is an element of a plane less than 2^31 from its first? */
static bool near(const int64_t at[5], const int64_t size[3])
{
    const double most = INT32_MAX / 2;
    return fabs((double)at[3]) * (double)(size[1] + 8192) < most &&
           fabs((double)at[4]) * (double)(size[2] + 8192) < most;
}

/* Tiles and positions are counted in ints. */
static bool counted(const struct mc_conv_problem *p)
{
    const int64_t most = INT32_MAX / 2;
    bool ok = p->s.f <= 65535 && p->s.c <= 65535 && p->s.n < most / (p->s.f + 1);
    for (int i = 1; i < 3 && ok; i++) {
        ok = p->s.in[i] < 1 << 20 && p->s.out[i] < 1 << 20 && p->s.pad[i] < 4096 && p->s.pad[i] > -4096 &&
             p->s.k[i] * p->s.dilation[i] < 4096 && p->s.stride[i] <= 8;
    }
    return ok && near(p->at.x, p->s.in) && near(p->at.y, p->s.out) &&
           (double)p->s.n * (double)p->s.f * (double)mc_conv_tiled(p)[1] * (double)mc_conv_tiled(p)[2] <
               (double)most;
}

const char *mc_conv_no_tiles(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const bool last = p->at.x[1] == 1 && p->at.y[1] == 1;
    return mc_conv_hollow(p)        ? mc_conv_hollow(p)
           : p->wide                ? "sums in float32, and conv.precision asks for float64"
           : p->dtype == MC_FLOAT64 ? "takes float32 and halves"
           : s->unshared            ? "has one filter for all positions"
           : s->in[0] != 1 || s->k[0] != 1 || s->out[0] != 1 || s->pad[0] != 0
               ? "takes one or two spatial axes"
           : s->k[1] * s->k[2] > 81 ? "takes filters of up to 81 taps"
           : !counted(p)            ? "does not take sizes this large"
           : !(last && s->f > 1) && (p->at.x[4] != 1 || p->at.y[4] != 1)
               ? "requires contiguous lines or channels"
               : NULL;
}
