/* tile_lines.h: tiles of a plane whose sums a thread keeps in registers: what the planners of the kernels
 * with tile_lines.cu share. */
#ifndef MC_CONV_TILE_LINES_H
#define MC_CONV_TILE_LINES_H

#include "heavy/conv/cuda/cuda.h"

struct mc_conv_tile {
    bool last;                  /* channels are innermost */
    int th, tw, v;              /* lines, positions; adjacent channels that are loaded at once */
    int g, gt;                  /* positions at once: of the source, of the tile's array */
};

/* Gradients of inputs spread y over x: tiles are of x, else of y. */
static inline bool mc_conv_spreads(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_INPUTS;
}
/* The positions that are divided into tiles. */
static inline const int64_t *mc_conv_tiled(const struct mc_conv_problem *p)
{
    return mc_conv_spreads(p) ? p->s.in : p->s.out;
}
int64_t mc_conv_tiles(const struct mc_conv_problem *p, const struct mc_conv_tile *t);
/* Lines that a tile of so many reads along one axis, without those between taps that no tap reads. */
double mc_conv_lines_read(const struct mc_conv_shape *s, int axis, int tile);
/* Are strides multiples of `unit` along all axes but one? */
bool mc_conv_even(const int64_t at[5], int axis, int unit);
/* Sets g and gt, of planes. */
void mc_conv_positions_at_once(const struct mc_conv_problem *p, struct mc_conv_tile *t);
/* Macros of the tile and of the filter. */
void mc_conv_tile_defines(const struct mc_conv_problem *p, const struct mc_conv_tile *t,
                          struct mc_str *defines);
/* Why no kernel with such tiles takes p, whatever its groups; NULL: one may. */
const char *mc_conv_no_tiles(const struct mc_conv_problem *p);

#endif
