/* blocking.c: chooses the size of tiles, the letter in the lanes, the blocks of spectra and the order of the
 * loops, by their costs.
 *
 * Invariant: the plan of mc_fft_choose() fits in the workspace cap if one thread runs it. */
#include "heavy/conv/cpu/fft/plan.h"
#include "heavy/gemm/cpu/kernel.h"

enum { LINE = 64, ROWS = 48, LEAST = 12, NEAR = 8 << 20, FAR = 8 << 20, LARGE = 2 << 20, PARTS = 12 };
/* Spectra stay only if they are at most so many times as large as the filters: memory is slow. */
enum { SWELLS = 12 };
/* for each byte that one of many threads moves from or to memory; SLIM_: with slim filters */
static const double CYCLES_A_BYTE = 0.25, SLIM_CYCLES_A_BYTE = 0.05;
/* For each vector of a product, to begin and store its tile; for each byte of spectra, in whichever cache;
 * fitted with the kernels' cycles to one thread of Zen 4, in AVX-512 and in AVX2. */
static const double TILE_CYCLES = 24, NEAR_CYCLES_A_BYTE = 0.08;
/* rows of spectra at once; slots that must fit, so that several threads can work */
enum { SLIM_ROWS = 32, SLIM_SLOTS = 4 };
/* with enough workspace, filters are slim only if their rows times this are at most the rows of a tile */
enum { SLIM_ONCE = 6 };
/* cost of a transform of a tile that is mostly zeros, relative to a full one ... */
static const double FEW_TAPS = 0.55;
/* ... the part of it for columns, all of which are transformed, and for rows, only those with taps */
static const double COLUMNS = 0.48, ROWS_TAKE = 0.5;
/* cost of slim columns relative to full transforms: they stay in the cache, but product tiles are fewer */
static const double SLIM_COLUMNS = 0.7;
static const int winograd_sizes[WINOGRAD_SIZES] = { 4, 6 };
const signed char mc_fft_letter[3][2] = { [CONV_X] = { M, C }, [CONV_W] = { C, F }, [CONV_Y] = { M, F } };

static const struct mc_fft_kernel *kernel(void)
{
    const char *name = mc_gemm_kernel(MC_FLOAT32)->name;
    return mc_fft_avx512 && strcmp(name, "avx512") == 0 ? mc_fft_avx512
           : mc_fft_avx2 && strcmp(name, "avx2") == 0   ? mc_fft_avx2
                                                        : mc_fft_plain;
}

/* ---- tiles ---- */

static bool tiles(struct fft *d, const struct mc_conv_shape *s, int which)
{
    const int64_t *result = s->pass == CONV_INPUTS ? s->in : s->out,
                  *read = s->pass == CONV_INPUTS ? s->out : s->in;
    d->kernel = kernel();
    d->which = which;
    d->size = which < 0 ? winograd_sizes[fft_winograd(d)] : mc_fft_sizes[which];
    d->frequencies = which < 0 ? d->size * d->size : fft_frequencies(d->size);
    d->taps = s->k[1];
    d->slim = false;
    d->near = SLIM_ROWS;
    d->numbers = which < 0 ? 1 : 2;
    for (int i = 0; i < 2; i++) {
        const int64_t w = fft_wide(s, 1 + i),
                      before = s->pass == CONV_INPUTS ? w - s->pad[1 + i] : s->pad[1 + i];
        d->step[i] = d->size - w;
        /* If one tile covers the axis and only zeros wrap around, it yields all positions. */
        const bool seen = read[1 + i] + before <= d->size, clear = result[1 + i] + w - d->size <= before;
        if (which >= 0 && seen && clear && result[1 + i] <= d->size && w < d->size) {
            d->step[i] = MC_MAX(d->step[i], result[1 + i]);
        }
        if (d->step[i] < 1) {
            return false;
        }
        d->tiles[i] = conv_ceil(result[1 + i], d->step[i]);
    }
    d->all[M] = s->n * d->tiles[0] * d->tiles[1];
    d->all[C] = s->c / s->groups;
    d->all[F] = s->f / s->groups;
    return true;
}

/* ---- letters ---- */

static double filled(const struct fft *d, int letter)
{
    return (double)d->all[letter] / (double)(conv_ceil(d->all[letter], d->kernel->lanes) * d->kernel->lanes);
}

static int is_fuller(const struct fft *d, int usual, int other)
{
    return filled(d, other) > 1.2 * filled(d, usual) ? other : usual;
}

static int third_index(int role, int letter)
{
    return mc_fft_letter[role][0] + mc_fft_letter[role][1] - letter;
}

static void index_sizes(struct fft *d, enum mc_conv_pass pass)
{
    d->c = mc_conv_result(pass);
    d->summed = M + C + F - mc_fft_letter[d->c][0] - mc_fft_letter[d->c][1];
    d->lanes = pass == CONV_WEIGHTS   ? is_fuller(d, F, C)
               : pass == CONV_FORWARD ? is_fuller(d, F, M)
                                      : is_fuller(d, C, M);
    d->rows = M + C + F - d->summed - d->lanes;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const int first = mc_fft_letter[role][0], second = mc_fft_letter[role][1];
        const bool has_lanes = first == d->lanes || second == d->lanes;
        d->s[role].lane = has_lanes ? d->lanes : is_fuller(d, second, first);
        d->s[role].row = third_index(role, d->s[role].lane);
        if (role != d->c) {
            *(has_lanes ? &d->b : &d->a) = role;
        }
    }
}

/* Rows of spectra of slim filters: tap rows for each column of frequencies. */
static int64_t slim_rows(const struct fft *d)
{
    return d->size / 2 * d->taps;
}

/* ---- blocks ---- */

static int64_t padded(const struct fft *d, int64_t n)
{
    return conv_ceil(n, d->kernel->lanes) * d->kernel->lanes;
}

size_t mc_fft_lay_out(struct fft *d, int slots)
{
    size_t at = 0;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        struct spectra *s = &d->s[role];
        /* Operands that products access by rows have the frequencies of a row adjacent, which is fastest for
         * transforms. */
        const bool slim = d->slim && role == CONV_W, together = role != d->b && s->row == d->rows && !slim;
        s->width = padded(d, slim ? d->all[s->lane] : d->block[s->lane]);
        const int64_t rows = slim ? d->all[s->row] : d->block[s->row];
        const int64_t many = together ? d->frequencies : rows;
        /* Filters that products read by columns are in panels: they come from memory, in order. */
        const int64_t columns = d->kernel->columns;
        const bool panels = FFT_PANELS && role == CONV_W && role == d->b && !slim && s->width > columns;
        const int64_t pieces = panels ? conv_ceil(s->width, columns) : 1;
        s->width = panels ? columns : s->width;
        const int64_t near = d->numbers * s->width,
                      /* no multiple of the distance at which sets of the cache repeat */
            far = pieces * many * near + LINE / 4;
        s->panel = panels ? many * near : 0;
        s->step = together ? near : far;
        s->next = together ? far : near;
        s->at = at;
        at += (size_t)(far * (together ? rows : slim ? slim_rows(d) : d->frequencies)) * sizeof(float);
        at = (at + LINE - 1) / LINE * LINE;
        s->bytes = at - s->at;
        s->far = s->bytes > FAR;
    }
    d->tile_at = at;
    const int64_t tile = fft_tile(d->size, d->kernel->lanes),
                  near = d->slim ? (d->size + 2) * fft_slim_step(d) : 0;
    d->tile_bytes = (size_t)MC_MAX(tile, near) * sizeof(float);
    d->slots = slots;
    return at + (size_t)slots * d->tile_bytes;
}

/* Divides n into equal blocks of at most `most`; multiples of the vector length if there are several. */
static int64_t equal_blocks(const struct fft *d, int64_t n, int64_t most, bool vectors)
{
    const int64_t each = conv_ceil(n, conv_ceil(n, MC_MAX(most, (int64_t)1)));
    return vectors ? MC_MIN(padded(d, each), n) : each;
}

/* ---- costs, in cycles of one thread ---- */

double mc_fft_blocks(const struct fft *d, int letter)
{
    return (double)conv_ceil(d->all[letter], d->block[letter]);
}

static double block_bytes(const struct fft *d, int role)
{
    const struct spectra *s = &d->s[role];
    const int64_t many = d->slim && role == CONV_W ? slim_rows(d) : d->frequencies;
    return 4 * (double)(d->numbers * many) * (double)d->block[s->row] * (double)padded(d, d->block[s->lane]);
}

/* Iterations of the loops inside of the loop over a letter. */
static double inside(const struct fft *d, int letter)
{
    double turns = 1;
    for (int i = NLETTER - 1; i >= 0 && d->order[i] != letter; i--) {
        turns *= mc_fft_blocks(d, d->order[i]);
    }
    return turns;
}

/* The inner loops have the order in which products are fastest: all blocks of the summed letter before the
 * next block of the result. */
void mc_fft_order(struct fft *d, int outer)
{
    d->order[0] = outer;
    d->order[1] = outer == d->rows ? d->lanes : d->rows;
    d->order[2] = outer == d->summed ? d->lanes : d->summed;
}

/* How often an operand is transformed: once, or for each block of the letter it lacks, if a loop inside of
 * that one needs other blocks of the operand. */
static double transform_count(const struct fft *d, int role)
{
    const int lacking = M + C + F - mc_fft_letter[role][0] - mc_fft_letter[role][1];
    return inside(d, lacking) > 1 ? mc_fft_blocks(d, lacking) : 1;
}

/* Bytes that products read and write. 0 if a cache holds the blocks. */
static double traffic(const struct fft *d)
{
    double all = 0, moved = 0;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const double bytes = block_bytes(d, role);
        const double again = d->slim && role == d->a ? (double)d->block[d->lanes] / (double)fft_slim_width(d)
                                                     : 1;
        all += bytes;
        moved += bytes * (role == d->c && mc_fft_blocks(d, d->summed) > 1 ? 2 : again);
    }
    return all < 2 * NEAR ? 0 : moved * mc_fft_blocks(d, M) * mc_fft_blocks(d, C) * mc_fft_blocks(d, F);
}

/* Bytes of the spectra of x and y, which products read or write, from any cache. */
static double spectra_bytes(const struct fft *d)
{
    const double bytes = block_bytes(d, CONV_X) + block_bytes(d, CONV_Y);
    return bytes * mc_fft_blocks(d, M) * mc_fft_blocks(d, C) * mc_fft_blocks(d, F);
}

/* The cost of a transform relative to a full one: rows without elements are left out. A filter has its taps;
 * x or y, where one tile covers them, all of their rows. */
static double part_of(const struct fft *d, const struct mc_conv_shape *s, int role)
{
    const int64_t rows = role == CONV_W ? s->k[1] : role == CONV_X ? s->in[1] : s->out[1];
    if (d->which < 0 || (role != CONV_W && (d->tiles[0] > 1 || rows >= d->size))) {
        return role == CONV_W ? FEW_TAPS : 1;
    }
    return MC_MAX(FEW_TAPS, COLUMNS + ROWS_TAKE * (double)rows / (double)d->size);
}

double mc_fft_cycles(const struct fft *d, const struct mc_conv_shape *s)
{
    const double lanes = d->kernel->lanes, frequencies = (double)d->frequencies;
    const double area = (double)d->size * d->size, rows = (double)d->all[d->rows],
                 depth = (double)d->all[d->summed];
    const double turn = d->which < 0 ? d->kernel->winograd_turn[fft_winograd(d)] : d->kernel->turn[d->which];
    const double rate = mc_gemm_kernel(MC_FLOAT32)->flops / 2 / lanes; /* products of vectors a cycle */
    const double each = (double)(d->numbers * d->numbers) * depth / (d->kernel->math * rate) + TILE_CYCLES;
    const double products = frequencies * rows * (double)padded(d, d->all[d->lanes]) / lanes * each;
    double sum = products + traffic(d) * (d->slim ? SLIM_CYCLES_A_BYTE : CYCLES_A_BYTE) +
                 spectra_bytes(d) * NEAR_CYCLES_A_BYTE;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct spectra *sp = &d->s[role];
        const double vectors = (double)d->all[sp->row] * (double)padded(d, d->all[sp->lane]) / lanes;
        const bool slim = d->slim && role == CONV_W;
        const double part = slim ? ROWS_TAKE * (double)s->k[1] / (double)d->size : part_of(d, s, role);
        sum += vectors * area * turn *
               ((slim                         ? 1
                 : role == CONV_W && d->stays ? 0
                                              : transform_count(d, role)) *
                    part +
                (slim ? mc_fft_blocks(d, M) * SLIM_COLUMNS : 0));
    }
    return (double)s->groups * sum;
}

/* ---- the workspace cap ---- */

/* Makes blocks of as many tiles as fit beside the blocks of channels. False: not even one vector fits. */
static bool fill(struct fft *d, size_t cap)
{
    const bool vectors = d->s[CONV_X].lane == M || d->s[CONV_Y].lane == M;
    const int64_t unit = vectors ? d->kernel->lanes : 1;
    const int slots = d->slim ? SLIM_SLOTS : 1;
    d->block[M] = MC_MIN(unit, d->all[M]);
    const size_t one = mc_fft_lay_out(d, slots);
    d->block[M] = MC_MIN(2 * unit, d->all[M]);
    const size_t each = mc_fft_lay_out(d, slots) - one;
    if (one > cap) {
        return false;
    }
    const int64_t most = unit * (1 + (each ? (int64_t)((cap - one) / each) : 0));
    d->block[M] = equal_blocks(d, d->all[M], MC_MIN(most, d->block_most), vectors);
    while (mc_fft_lay_out(d, slots) > cap && d->block[M] > unit) { /* rounded up to the vector length */
        d->block[M] -= unit;
    }
    return mc_fft_lay_out(d, slots) <= cap;
}

static bool halve_block(struct fft *d, int letter)
{
    const bool vectors = letter != M || d->s[CONV_X].lane == M || d->s[CONV_Y].lane == M;
    const int64_t before = d->block[letter];
    d->block[letter] = equal_blocks(d, d->all[letter], before / 2, vectors);
    return d->block[letter] < before;
}

/* For a cap that one vector of tiles with all channels of one kind exceeds: halves the larger blocks until
 * all fit. */
static bool halve_until_fits(struct fft *d, size_t cap)
{
    memcpy(d->block, d->all, sizeof d->block);
    while (mc_fft_lay_out(d, 1) > cap) {
        const int64_t *b = d->block;
        const int larger = b[C] > b[F] ? C : F, smaller = C + F - larger;
        const bool tiles_first = b[M] * (b[C] + b[F]) > b[C] * b[F] && b[M] > 8;
        if (!(tiles_first && halve_block(d, M)) && !halve_block(d, larger) && !halve_block(d, smaller) &&
            !halve_block(d, M)) {
            return false;
        }
    }
    return true;
}

/* True if filters may be slim with these blocks, and their products are wide enough. */
static bool may_use_row_spectra(const struct fft *d)
{
    const int64_t wide = fft_slim_width(d);
    return d->which >= 0 && d->lanes != M && d->order[0] == M && d->block[C] >= MC_MIN(wide, d->all[C]) &&
           d->block[F] >= MC_MIN(wide, d->all[F]);
}

/* Chooses the blocks of least cost that keep the cap for one thread. One of C and F is divided in `parts`,
 * the other has one block, and tiles are as many as fit. It tries both orders of loops, and whole and slim
 * filters. */
static bool keep(struct fft *d, const struct mc_conv_shape *s, size_t cap)
{
    struct fft best = *d;
    double least = 0;
    for (int i = 0; i < 8 * PARTS; i++) {
        struct fft one = *d;
        const int letter = i & 1 ? C : F, outer = i & 2 ? M : letter, parts = 1 + i / 4 % PARTS;
        one.slim = i >= 4 * PARTS;
        memcpy(one.block, one.all, sizeof one.block);
        one.block[letter] = equal_blocks(d, d->all[letter], conv_ceil(d->all[letter], parts), true);
        mc_fft_order(&one, outer);
        if ((one.slim && !may_use_row_spectra(&one)) ||
            (parts > 1 && conv_ceil(d->all[letter], one.block[letter]) != parts) || !fill(&one, cap)) {
            continue;
        }
        const double cost = mc_fft_cycles(&one, s);
        if (least == 0 || cost < least) {
            best = one;
            least = cost;
        }
    }
    *d = best;
    return least > 0 || halve_until_fits(d, cap);
}

/* Makes filters slim whose spectra are read once, if most of their rows are zeros. */
static void row_spectra_read_once(struct fft *d, size_t cap)
{
    struct fft one = *d;
    one.slim = true;
    mc_fft_order(&one, M);
    if (SLIM_ONCE * d->taps <= d->size && mc_fft_blocks(&one, M) == 1 && may_use_row_spectra(&one) &&
        mc_fft_lay_out(&one, 1) <= cap) {
        *d = one;
    }
}

static bool fit(struct fft *d, const struct mc_conv_shape *s, size_t cap)
{
    const enum mc_conv_pass pass = s->pass;
    memcpy(d->block, d->all, sizeof d->block);
    const bool vectors = d->s[CONV_X].lane == M || d->s[CONV_Y].lane == M;
    const int64_t tile = 4 * d->numbers * (d->all[C] + d->all[F]) *
                         d->frequencies; /* bytes of one tile's spectra */
    const int64_t filters = 4 * d->numbers * d->all[C] * d->all[F] * d->frequencies;
    /* A large L2 cache stands before a slow L3 cache. */
    const int64_t l2 = (int64_t)mc_cpu()->l2, cached = l2 >= LARGE ? l2 / 4 : (int64_t)NEAR / 2;
    const int64_t near = MC_MAX(pass == CONV_WEIGHTS ? 2 * filters : filters, cached);
    const int64_t many = MC_MAX(MC_MIN(near / tile, (int64_t)ROWS * (pass == CONV_WEIGHTS ? 4 : 1)),
                                (int64_t)LEAST);
    mc_fft_order(d, pass == CONV_WEIGHTS ? C : M);
    d->block_most = filters > NEAR ? MC_MAX(many, (int64_t)2 * ROWS) : many;
    d->block[M] = equal_blocks(d, d->all[M], d->block_most, vectors);
    if (d->block[M] == d->all[M] &&
        filters > NEAR) { /* blocks of the result's channels, so that filters stay in the cache */
        const int letter = pass == CONV_INPUTS ? C : F;
        d->block[letter] = equal_blocks(d, d->all[letter],
                                        MC_MAX(d->all[letter] * NEAR / filters, 2 * d->kernel->lanes), true);
    }
    if (mc_fft_lay_out(d, 1) > cap) {
        return keep(d, s, cap);
    }
    row_spectra_read_once(d, cap);
    return true;
}

/* Chooses the size of tiles with the least cost. False: none fits. */
bool mc_fft_choose(struct fft *d, const struct mc_conv_problem *p, int which)
{
    double least = 0;
    bool found = false;
    for (int i = which; i < (which < 0 ? which + 1 : FFT_SIZES); i++) {
        struct fft one = *d;
        if (!tiles(&one, &p->s, i)) {
            continue;
        }
        index_sizes(&one, p->s.pass);
        if (!fit(&one, &p->s, p->base.options.workspace)) {
            continue;
        }
        one.stays = p->w_stays && one.numbers * one.frequencies <= SWELLS * p->s.k[1] * p->s.k[2];
        const double cost = mc_fft_cycles(&one, &p->s);
        if (!found || cost < least) {
            *d = one;
            least = cost;
            found = true;
        }
    }
    d->partial = found && inside(d, d->summed) > 1 && !(d->slim && d->c == CONV_W);
    d->ahead = found && traffic(d) > 0;
    return found;
}
