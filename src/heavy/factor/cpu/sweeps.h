/* sweeps.h: eigenvalues and singular values of what reduce.h leaves.  After reduce.h.
 *
 *     iterate    the iterations on the diagonals alone, which record their rotations; threads apply the
 *                rotations to strips of the vectors while the next ones are found
 *     finish     vectors sorted, with their signs */
#define WIDE_STEP ((int64_t)NAME(WIDTH))

/* ---- recorded rotations ---- */

TARGET static R NAME(hypotenuse)(R f, R g)
{
    const R square = f * f + g * g;
    return square > (R)1e-30 && square < (R)1e30 ? NAME(root)(square) : NAME(length)(f, g);
}

/* A rotation of the next sweep: of its row, which the one before left, and the row after it. */
FORCE_INLINE void NAME(record)(struct mc_factor_sweeps *b, R c, R s)
{
    R *at = (R *)b->rotation + 2 * b->used++;
    at[0] = c;
    at[1] = s;
}

FORCE_INLINE void NAME(begin)(struct mc_factor_sweeps *b, int64_t row, int64_t step)
{
    b->sweep[b->n] = (struct mc_factor_sweep){ row, step, b->used, 0 };
}

FORCE_INLINE void NAME(end)(struct mc_factor_sweeps *b)
{
    struct mc_factor_sweep *w = &b->sweep[b->n];
    w->count = b->used - w->from;
    b->n += w->count > 0;
}

/* Sweeps of `implicit_ql` (op/matrix/eigh.h), until the batch is full or all eigenvalues are found. */
TARGET static void NAME(ql_sweeps)(struct mc_factor_spectrum *s, struct mc_factor_sweeps *b)
{
    const R eps = (R)(sizeof(R) == 4 ? 6e-8 : 1.1e-16);
    const int64_t n = s->n;
    R *d = (R *)s->d, *e = (R *)s->e;
    while (s->at < n && b->n < SPECTRA_SWEEPS && b->used + n <= s->capacity) {
        const int64_t l = s->at;
        const R least = s->turns > 20 ? eps * (R)s->most : 0; /* where all that is left is rounding */
        int64_t m = l;
        while (m < n - 1 && NAME(magnitude)(e[m]) > least &&
               NAME(magnitude)(e[m]) > eps * (NAME(magnitude)(d[m]) + NAME(magnitude)(d[m + 1]))) {
            m++;
        }
        if (m == l) {
            s->at++;
            s->turns = 0;
            continue;
        }
        if (s->turns++ == 60) {
            s->bad = l + 1;
            s->at = n;
            return;
        }
        R g = (d[l + 1] - d[l]) / (2 * e[l]), r = NAME(length)(g, 1), sine = 1, cosine = 1, p = 0;
        g = d[m] - d[l] + e[l] / (g + (g >= 0 ? r : -r));
        NAME(begin)(b, m, -1);
        int64_t i = m - 1;
        for (; i >= l; i--) {
            const R f = sine * e[i], below = cosine * e[i];
            r = NAME(hypotenuse)(f, g);
            e[i + 1] = r;
            if (r == 0) {
                d[i + 1] -= p;
                e[m] = 0;
                break;
            }
            const R by = 1 / r;
            sine = f * by;
            cosine = g * by;
            g = d[i + 1] - p;
            r = (d[i] - g) * sine + 2 * cosine * below;
            p = sine * r;
            d[i + 1] = g + p;
            g = cosine * r - below;
            NAME(record)(b, cosine, sine);
        }
        NAME(end)(b);
        if (i < l) {
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    }
}

/* e[l - 1], beside a d[l - 1] of 0, is rotated away to the right: `cancel` (op/matrix/svd.h). */
TARGET static void NAME(cancel_sweeps)(R *d, R *e, int64_t l, int64_t k, R least, struct mc_factor_sweeps *b)
{
    R c = 0, s = 1;
    for (int64_t i = l; i <= k; i++) {
        const R f = s * e[i - 1], g = d[i];
        e[i - 1] = c * e[i - 1];
        if (NAME(magnitude)(f) <= least) {
            return;
        }
        const R h = NAME(length)(f, g);
        d[i] = h;
        c = g / h;
        s = -f / h;
        NAME(begin)(b, l - 1, i - (l - 1));
        NAME(record)(b, c, s);
        NAME(end)(b);
    }
}

/* `golub_kahan` (op/matrix/svd.h) on the rows l to k. */
TARGET static void NAME(golub_kahan_sweep)(R *d, R *e, int64_t l, int64_t k, struct mc_factor_sweeps *left,
                                           struct mc_factor_sweeps *right)
{
    const R last = d[k], before = d[k - 1], below = k > 1 ? e[k - 2] : 0, beside = e[k - 1];
    R c = 1, s = 1, x = d[l];
    R f = ((before - last) * (before + last) + (below - beside) * (below + beside)) / (2 * beside * before);
    const R r = NAME(length)(f, 1);
    f = ((x - last) * (x + last) + beside * (before / (f + (f >= 0 ? r : -r)) - beside)) / x;
    NAME(begin)(left, l, 1);
    NAME(begin)(right, l, 1);
    for (int64_t j = l; j < k; j++) {
        R g = e[j], y = d[j + 1], h = s * g, z = NAME(hypotenuse)(f, h), by = 1 / z;
        g *= c;
        if (j > l) {
            e[j - 1] = z;
        }
        c = z != 0 ? f * by : 1;
        s = z != 0 ? h * by : 0;
        f = x * c + g * s;
        g = g * c - x * s;
        h = y * s;
        y *= c;
        NAME(record)(right, c, s);
        z = NAME(hypotenuse)(f, h);
        by = 1 / z;
        d[j] = z;
        c = z != 0 ? f * by : c;
        s = z != 0 ? h * by : s;
        f = c * g + s * y;
        x = c * y - s * g;
        NAME(record)(left, c, s);
    }
    NAME(end)(left);
    NAME(end)(right);
    e[k - 1] = f;
    d[k] = x;
}

/* Sweeps of `implicit_qr` (op/matrix/svd.h).  flip[k]: the vector k on the right is negated. */
TARGET static void NAME(qr_sweeps)(struct mc_factor_spectrum *s, struct mc_factor_sweeps *left,
                                   struct mc_factor_sweeps *right)
{
    const R eps = (R)(sizeof(R) == 4 ? 6e-8 : 1.1e-16), least = eps * (R)s->most;
    const int64_t n = s->n;
    R *d = (R *)s->d, *e = (R *)s->e;
    while (s->at < n && left->n + n < s->nsweep && right->n < SPECTRA_SWEEPS &&
           left->used + 2 * n <= s->capacity) {
        const int64_t k = n - 1 - s->at;
        int64_t l = k;
        while (l > 0 && NAME(magnitude)(e[l - 1]) > least && NAME(magnitude)(d[l - 1]) > least) {
            l--;
        }
        if (l > 0 && NAME(magnitude)(e[l - 1]) > least) {
            NAME(cancel_sweeps)(d, e, l, k, least, left);
        }
        if (l == k) {
            s->flip[k] = d[k] < 0;
            d[k] = NAME(magnitude)(d[k]);
            s->at++;
            s->turns = 0;
        } else if (s->turns++ == 75) {
            s->bad = k + 1;
            s->at = n;
        } else {
            NAME(golub_kahan_sweep)(d, e, l, k, left, right);
        }
    }
}

/* ---- strips ---- */

enum { NAME(STRIP) = 2 * NAME(WIDTH) }; /* elements of a row of a strip */

/* (carry, y) = (c y - s carry, s y + c carry): y is done, carry meets the next row. */
FORCE_INLINE void NAME(rotate)(NAME(v) carry[2], NAME(v) y[2], const R *rotation)
{
    const NAME(v) c = NAME(splat)(rotation[0]), s = NAME(splat)(rotation[1]),
                  minus = NAME(splat)(-rotation[1]);
    for (int i = 0; i < 2; i++) {
        const NAME(v) done = NAME(madd)(c, carry[i], NAME(times)(s, y[i]));
        carry[i] = NAME(madd)(minus, carry[i], NAME(times)(c, y[i]));
        y[i] = done;
    }
}

FORCE_INLINE void NAME(load_two)(NAME(v) x[2], const R *from)
{
    x[0] = NAME(load)(from);
    x[1] = NAME(load)(from + WIDE_STEP);
}

FORCE_INLINE void NAME(store_two)(R *to, const NAME(v) x[2])
{
    NAME(store)(to, x[0]);
    NAME(store)(to + WIDE_STEP, x[1]);
}

/* The rotations of a sweep from number k on. */
TARGET static void NAME(turn_one)(R *strip, const R *rotation, const struct mc_factor_sweep *w, int64_t k)
{
    const int64_t step = w->step * NAME(STRIP);
    R *at = strip + w->row * NAME(STRIP) + k * step;
    NAME(v) carry[2], y[2];
    NAME(load_two)(carry, at);
    for (rotation += 2 * w->from; k < w->count; k++, at += step) {
        NAME(load_two)(y, at + step);
        NAME(rotate)(carry, y, rotation + 2 * k);
        NAME(store_two)(at, y);
    }
    NAME(store_two)(at, carry);
}

/* Two sweeps from one row on: the second one follows a row behind. */
TARGET static void NAME(turn_two)(R *strip, const R *rotation, const struct mc_factor_sweep *w)
{
    const int64_t step = w->step * NAME(STRIP), first = MC_MIN(w[0].count, w[1].count + 1);
    const R *one = rotation + 2 * w[0].from, *two = rotation + 2 * w[1].from;
    R *at = strip + w->row * NAME(STRIP);
    NAME(v) a[2], b[2], y[2];
    NAME(load_two)(a, at);
    NAME(load_two)(b, at + step);
    NAME(rotate)(a, b, one);
    for (int64_t k = 1; k < first; k++, at += step) {
        NAME(load_two)(y, at + 2 * step);
        NAME(rotate)(a, y, one + 2 * k);
        NAME(rotate)(b, y, two + 2 * (k - 1));
        NAME(store_two)(at, y);
    }
    NAME(store_two)(at, b);
    NAME(store_two)(at + step, a);
    if (first < w[0].count) {
        NAME(turn_one)(strip, rotation, &w[0], first);
    }
    if (first - 1 < w[1].count) {
        NAME(turn_one)(strip, rotation, &w[1], first - 1);
    }
}

TARGET static void NAME(turn_strip)(R *strip, const struct mc_factor_sweeps *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        const struct mc_factor_sweep *w = &b->sweep[i];
        if (i + 1 < b->n && w[0].row == w[1].row && w[0].step == w[1].step) {
            NAME(turn_two)(strip, (const R *)b->rotation, w);
            i++;
        } else {
            NAME(turn_one)(strip, (const R *)b->rotation, w, 0);
        }
    }
}

/* One strip each: STRIP rows of the product of the reflections become columns. */
TARGET static void NAME(make_strip)(void *arg, int64_t task, int slot)
{
    struct mc_factor_spectrum *s = (struct mc_factor_spectrum *)arg;
    struct mc_factor_side *side = &s->side[task >= s->side[0].strips];
    const int64_t strip = side == s->side ? task : task - s->side[0].strips, from = strip * NAME(STRIP),
                  rows = MC_MIN(side->rows - from, (int64_t)NAME(STRIP));
    R *to = (R *)side->strip + strip * s->n * NAME(STRIP);
    (void)slot;
    if (rows < NAME(STRIP)) {
        memset(to, 0, (size_t)(s->n * NAME(STRIP)) * sizeof(R));
    }
    NAME(transposed)(to, NAME(STRIP), (const R *)side->q + from * side->ldq, side->ldq, rows, s->n);
}

/* Task 0 finds the next rotations, the others apply the last ones. */
TARGET static void NAME(iterate_task)(void *arg, int64_t task, int slot)
{
    struct mc_factor_spectrum *s = (struct mc_factor_spectrum *)arg;
    struct mc_factor_sweeps *next = s->batch[!s->now];
    (void)slot;
    if (task == 0) {
        next[0].n = next[0].used = next[1].n = next[1].used = 0;
        if (s->svd) {
            NAME(qr_sweeps)(s, &next[0], &next[1]);
        } else {
            NAME(ql_sweeps)(s, &next[0]);
        }
        return;
    }
    const int side = task - 1 >= s->side[0].strips;
    const int64_t strip = task - 1 - (side ? s->side[0].strips : 0);
    NAME(turn_strip)((R *)s->side[side].strip + strip * s->n * NAME(STRIP), &s->batch[s->now][side]);
}

TARGET static void NAME(iterate_sweeps)(struct mc_factor_spectrum *s)
{
    const int64_t strips = s->side[0].strips + s->side[1].strips, n = s->n;
    const double each = (double)n * (double)strips * NAME(STRIP) * 3e-10;
    R most = 0;
    for (int64_t i = 0; i < n; i++) {
        const R size = NAME(magnitude)(((R *)s->d)[i]) + NAME(magnitude)(((R *)s->e)[i]);
        most = size > most ? size : most;
    }
    s->most = (double)most;
    mc_team_tasks(NAME(make_strip), s, strips, s->slots, s->threads, each);
    do {
        mc_team_tasks(NAME(iterate_task), s, 1 + strips, s->slots, s->threads, each * SPECTRA_SWEEPS / 2);
        s->now = !s->now;
    } while (s->batch[s->now][0].n || s->batch[s->now][1].n || s->at < n);
}

/* ---- results ---- */

/* Values in order; order[i]: which one is number i. */
TARGET static void NAME(sort_values)(struct mc_factor_spectrum *s)
{
    const R *d = (const R *)s->d;
    R *value = (R *)s->values;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t k = i;
        for (; k > 0 && (s->svd ? value[k - 1] < d[i] : value[k - 1] > d[i]); k--) {
            value[k] = value[k - 1];
            s->order[k] = s->order[k - 1];
        }
        value[k] = d[i];
        s->order[k] = i;
    }
    for (int64_t i = 0; i < s->n && s->by != 1; i++) {
        value[i] /= (R)s->by;
    }
}

TARGET static void NAME(finish_chunk)(void *arg, int64_t task, int slot)
{
    struct mc_factor_spectrum *s = (struct mc_factor_spectrum *)arg;
    const int64_t start = task * SPECTRA_CHUNK, end = MC_MIN(start + SPECTRA_CHUNK, s->n);
    (void)slot;
    for (int64_t i = start; i < end; i++) {
        R *row[2] = { NULL, NULL };
        for (int k = 0; k < 2 && s->side[k].strips; k++) {
            const struct mc_factor_side *side = &s->side[k];
            row[k] = (R *)side->row + i * side->ldrow;
            for (int64_t j = 0; j < side->rows; j += NAME(STRIP)) {
                const int64_t count = MC_MIN(side->rows - j, (int64_t)NAME(STRIP));
                memcpy(row[k] + j,
                       (const R *)side->strip + (j / NAME(STRIP) * s->n + s->order[i]) * NAME(STRIP),
                       (size_t)count * sizeof(R));
            }
        }
        if (s->flip[s->order[i]]) {
            NAME(scale_row)(row[1], -1, s->side[1].rows);
        }
        const int first = s->wide, second = !first; /* the side that decides the sign */
        if (!row[first]) {
            continue;
        }
        NAME(point_up)(row[first], 1, s->side[first].rows, row[second],
                       row[second] ? s->side[second].rows : 0);
    }
    for (int k = 0; k < 2 && s->side[k].strips; k++) {
        const struct mc_factor_side *side = &s->side[k];
        const R *rows = (const R *)side->row + start * side->ldrow;
        if (side->in_rows) {
            NAME(copied)((R *)side->out + start * side->ldo, side->ldo, rows, side->ldrow, end - start,
                         side->rows);
        } else {
            NAME(transposed)((R *)side->out + start, side->ldo, rows, side->ldrow, end - start, side->rows);
        }
    }
}

TARGET static void NAME(finish_all)(struct mc_factor_spectrum *s)
{
    const double each = (double)(s->side[0].rows + s->side[1].rows) * (double)s->n * 2e-9;
    NAME(sort_values)(s);
    if (s->side[0].strips) {
        mc_team_tasks(NAME(finish_chunk), s, (s->n + SPECTRA_CHUNK - 1) / SPECTRA_CHUNK, s->slots, s->threads,
                      each);
    }
}
#undef WIDE_STEP
