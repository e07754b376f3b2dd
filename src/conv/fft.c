/* fft.c: convolutions of stride 1 as products of the spectra of tiles, and Winograd's likewise: which size of tile,
 * which letter in the lanes, how much at a time.
 *
 * Infinities and NaN reach all of their tile, not only the places that see them.
 *
 * Invariant: what refuse() lets pass fits into the workspace cap. */
#include "conv/fft_plan.h"
#include "gemm/kernel.h"

enum { LINE = 64, ROWS = 48, LEAST = 12, NEAR = 8 << 20, MANY = 1024 };
static const int sizes[FFT_SIZES] = { 8, 16, 32, 64 };
const signed char mc_fft_letter[3][2] = { [CONV_X] = { M, C }, [CONV_W] = { C, F }, [CONV_Y] = { M, F } };

static const struct mc_fft_kernel *kernel(void)
{
    const char *name = mc_gemm_kernel(MC_FLOAT32)->name;
    return mc_fft_avx512 && strcmp(name, "avx512") == 0 ? mc_fft_avx512
           : mc_fft_avx2 && strcmp(name, "avx2") == 0   ? mc_fft_avx2
                                                        : mc_fft_plain;
}

/* ---- tiles ---- */

static int64_t wide(const struct mc_conv_shape *s, int axis)
{
    return (s->k[axis] - 1) * s->dilation[axis];
}

static bool tiles(struct fft *d, const struct mc_conv_shape *s, int which)
{
    const int64_t *result = s->pass == CONV_INPUTS ? s->in : s->out, *read = s->pass == CONV_INPUTS ? s->out : s->in;
    d->kernel = kernel();
    d->which = which;
    d->size = which == WINOGRAD ? WINOGRAD_SIZE : sizes[which];
    d->frequencies = which == WINOGRAD ? WINOGRAD_SIZE * WINOGRAD_SIZE : fft_frequencies(d->size);
    d->numbers = which == WINOGRAD ? 1 : 2;
    for (int i = 0; i < 2; i++) {
        const int64_t w = wide(s, 1 + i), before = s->pass == CONV_INPUTS ? w - s->pad[1 + i] : s->pad[1 + i];
        d->step[i] = d->size - w;
        /* One tile has more places where what is wrapped around is zeros. */
        const bool seen = read[1 + i] + before <= d->size, clear = result[1 + i] + w - d->size <= before;
        if (which != WINOGRAD && seen && clear && result[1 + i] <= d->size && w < d->size) {
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

static int fuller(const struct fft *d, int usual, int other)
{
    return filled(d, other) > 1.2 * filled(d, usual) ? other : usual;
}

static int other_letter(int role, int letter)
{
    return mc_fft_letter[role][0] + mc_fft_letter[role][1] - letter;
}

static void letters(struct fft *d, enum mc_conv_pass pass)
{
    d->c = mc_conv_result(pass);
    d->summed = M + C + F - mc_fft_letter[d->c][0] - mc_fft_letter[d->c][1];
    d->lanes = pass == CONV_WEIGHTS ? fuller(d, F, C) : pass == CONV_FORWARD ? fuller(d, F, M) : fuller(d, C, M);
    d->rows = M + C + F - d->summed - d->lanes;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const int first = mc_fft_letter[role][0], second = mc_fft_letter[role][1];
        const bool has_lanes = first == d->lanes || second == d->lanes;
        d->s[role].lane = has_lanes ? d->lanes : fuller(d, second, first);
        d->s[role].row = other_letter(role, d->s[role].lane);
        if (role != d->c) {
            *(has_lanes ? &d->b : &d->a) = role;
        }
    }
}

/* ---- blocks ---- */

static int64_t padded(const struct fft *d, int64_t n)
{
    return conv_ceil(n, d->kernel->lanes) * d->kernel->lanes;
}

static size_t lay_out(struct fft *d, int slots)
{
    size_t at = 0;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        struct spectra *s = &d->s[role];
        s->width = padded(d, d->block[s->lane]);
        /* What products read and write by rows has its frequencies together, as transforms like it. */
        const bool together = role != d->b && s->row == d->rows;
        const int64_t many = together ? d->frequencies : d->block[s->row];
        const int64_t near = d->numbers * s->width, far = many * near + LINE / 4; /* not a multiple of what caches repeat at */
        s->step = together ? near : far;
        s->next = together ? far : near;
        s->at = at;
        at += (size_t)(far * (together ? d->block[s->row] : d->frequencies)) * sizeof(float);
        at = (at + LINE - 1) / LINE * LINE;
    }
    d->tile_at = at;
    d->tile_bytes = (size_t)fft_tile(d->size, d->kernel->lanes) * sizeof(float);
    d->slots = slots;
    return at + (size_t)slots * d->tile_bytes;
}

/* n in equal blocks of at most `most`, whole vectors if there are several. */
static int64_t even(const struct fft *d, int64_t n, int64_t most, bool vectors)
{
    const int64_t each = conv_ceil(n, conv_ceil(n, MC_MAX(most, (int64_t)1)));
    return vectors ? MC_MIN(padded(d, each), n) : each;
}

static bool halve(struct fft *d, int letter)
{
    const bool vectors = letter != M || d->s[CONV_X].lane == M || d->s[CONV_Y].lane == M;
    const int64_t before = d->block[letter];
    d->block[letter] = even(d, d->all[letter], before / 2, vectors);
    return d->block[letter] < before;
}

/* Blocks that keep the cap for one thread: fewer tiles while their spectra are the largest, then fewer channels. */
static bool fit(struct fft *d, enum mc_conv_pass pass)
{
    const size_t cap = (size_t)mc_flag_int(FLAG_workspace);
    memcpy(d->block, d->all, sizeof d->block);
    const bool vectors = d->s[CONV_X].lane == M || d->s[CONV_Y].lane == M;
    const int64_t tile = 4 * d->numbers * (d->all[C] + d->all[F]) * d->frequencies; /* bytes of one tile's spectra */
    const int64_t filters = 4 * d->numbers * d->all[C] * d->all[F] * d->frequencies;
    const int64_t near = MC_MAX(pass == CONV_WEIGHTS ? 2 * filters : filters, (int64_t)NEAR / 2);
    const int64_t many = MC_MAX(MC_MIN(near / tile, (int64_t)ROWS * (pass == CONV_WEIGHTS ? 4 : 1)), (int64_t)LEAST);
    d->block[M] = even(d, d->all[M], filters > NEAR ? MC_MAX(many, (int64_t)2 * ROWS) : many, vectors);
    if (d->block[M] == d->all[M] && filters > NEAR) { /* the result's channels in turn, so that filters stay near */
        const int letter = pass == CONV_INPUTS ? C : F;
        d->block[letter] = even(d, d->all[letter], MC_MAX(d->all[letter] * NEAR / filters, 2 * d->kernel->lanes), true);
    }
    while (lay_out(d, 1) > cap) {
        const int64_t *b = d->block;
        const int larger = b[C] > b[F] ? C : F, smaller = C + F - larger;
        const bool tiles_first = b[M] * (b[C] + b[F]) > b[C] * b[F] && b[M] > 8;
        if (!(tiles_first && halve(d, M)) && !halve(d, larger) && !halve(d, smaller) && !halve(d, M)) {
            return false;
        }
    }
    return true;
}

/* ---- costs, in cycles of one thread ---- */

static double blocks_of(const struct fft *d, int letter)
{
    return (double)conv_ceil(d->all[letter], d->block[letter]);
}

static double cycles(const struct fft *d, const struct mc_conv_shape *s)
{
    const double lanes = d->kernel->lanes, frequencies = (double)d->frequencies;
    const double area = (double)d->size * d->size, rows = (double)d->all[d->rows], depth = (double)d->all[d->summed];
    const double turn = d->which == WINOGRAD ? d->kernel->winograd_turn : d->kernel->turn[d->which];
    const double each = (double)(d->numbers * d->numbers) * depth / d->kernel->math + 8;
    double sum = frequencies * rows * (double)padded(d, d->all[d->lanes]) / lanes * each;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct spectra *sp = &d->s[role];
        const double vectors = (double)d->all[sp->row] * (double)padded(d, d->all[sp->lane]) / lanes;
        const bool again = role != d->c && (role == CONV_W ? blocks_of(d, C) * blocks_of(d, F) > 1 : blocks_of(d, d->summed) > 1);
        const int lacking = M + C + F - mc_fft_letter[role][0] - mc_fft_letter[role][1];
        sum += vectors * area * turn * (again ? blocks_of(d, lacking) : 1);
    }
    return (double)s->groups * sum;
}

/* The size that costs least; false: none fits. */
static bool choose(struct fft *d, const struct mc_conv_problem *p, bool winograd)
{
    double least = 0;
    bool found = false;
    for (int which = winograd ? WINOGRAD : 0; which < (winograd ? 0 : FFT_SIZES); which++) {
        struct fft one = *d;
        if (!tiles(&one, &p->s, which)) {
            continue;
        }
        letters(&one, p->s.pass);
        if (!fit(&one, p->s.pass)) {
            continue;
        }
        const double cost = cycles(&one, &p->s);
        if (!found || cost < least) {
            *d = one;
            least = cost;
            found = true;
        }
    }
    return found;
}

/* ---- solver ---- */

static const char *refuse_any(const struct mc_problem *p_, bool winograd)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct fft d = { 0 };
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->dtype != MC_FLOAT32 || p->wide) {
        return "has transforms in float32 alone";
    }
    if (s->unshared) {
        return "has one filter for all places";
    }
    if (s->stride[1] != 1 || s->stride[2] != 1) {
        return "takes stride 1 alone";
    }
    if (s->in[0] != 1 || s->out[0] != 1 || s->k[0] != 1 || s->pad[0] != 0) {
        return "takes one or two axes";
    }
    if (wide(s, 1) >= FFT_MOST || wide(s, 2) >= FFT_MOST) {
        return "has tiles of at most 64 places a side, and the filter is wider";
    }
    return choose(&d, p, winograd) ? NULL : "needs more workspace than the flag workspace allows";
}

static const char *refuse(const struct mc_problem *p)
{
    return refuse_any(p, false);
}

static const char *refuse_winograd(const struct mc_problem *p)
{
    const struct mc_conv_shape *s = &conv(p)->s;
    for (int i = 1; i < 3; i++) {
        if (s->k[i] != 3 || s->dilation[i] != 1) {
            return "takes filters of 3 by 3 taps, side by side";
        }
    }
    if (s->pass == CONV_WEIGHTS && s->n * conv_ceil(s->out[1], 2) * conv_ceil(s->out[2], 2) > MANY) {
        return "would lose digits in the weights' sums over so many tiles";
    }
    return refuse_any(p, true);
}

static struct mc_plan *plan_any(const struct mc_problem *p, bool winograd)
{
    struct fft *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = mc_fft_run;
    if (!choose(d, conv(p), winograd)) {
        mc_fail(MC_EUNSUPPORTED, "conv: no tiles fit into the workspace");
        mc_free(d);
        return NULL;
    }
    const size_t cap = (size_t)mc_flag_int(FLAG_workspace), one = lay_out(d, 1);
    int slots = 1;
    while (slots < mc_team_size() && one + (size_t)slots * d->tile_bytes <= cap) {
        slots++;
    }
    d->base.workspace = lay_out(d, slots);
    return &d->base;
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    return plan_any(p, false);
}

static struct mc_plan *plan_winograd(const struct mc_problem *p)
{
    return plan_any(p, true);
}

/* Spectra of filters: each is written and read, in pieces far apart, however few the images are. */
static double filter_bytes(const struct fft *d, const struct mc_conv_shape *s)
{
    return 4.0 * (double)(s->groups * d->numbers * d->frequencies) * (double)d->all[C] * (double)d->all[F];
}

static double estimate_any(const struct mc_problem *p_, bool winograd)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct fft d = { 0 };
    if (!choose(&d, p, winograd)) {
        return 1e30;
    }
    const double hz = mc_conv_peak(p) / mc_gemm_kernel(MC_FLOAT32)->flops;
    const double seconds = cycles(&d, s) / hz + mc_conv_copy(mc_conv_bytes(p)) + mc_conv_copy(2 * filter_bytes(&d, s));
    const double steps = (double)s->groups * blocks_of(&d, M) * blocks_of(&d, C) * blocks_of(&d, F);
    return 5e-6 * steps + seconds / mc_conv_threads(seconds, (double)d.frequencies / 4);
}

static double estimate(const struct mc_problem *p)
{
    return estimate_any(p, false);
}

static double estimate_winograd(const struct mc_problem *p)
{
    return estimate_any(p, true);
}

const struct mc_solver mc_conv_fft = { .name = "fft", .refuse = refuse, .estimate = estimate, .plan = plan };
/* F(2x2, 3x3) alone: F(4x4, 3x3) loses ten times as much as plain sums do, and tiles of fft need no more products. */
const struct mc_solver mc_conv_winograd = {
    .name = "winograd", .refuse = refuse_winograd, .estimate = estimate_winograd, .plan = plan_winograd,
};
