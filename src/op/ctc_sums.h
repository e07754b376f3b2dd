/* ctc_sums.h: the cost of one example, its gradient, and the change of the gradient in a direction, as text
 * for the reference, exported files and GPUs.  It is C99 that compiles as C++ too.  The includer defines
 *
 *     CTC_READ(e, p), CTC_WRITE(e, p, v)    a number in memory as a double
 *     CTC_LABEL(e, k)                       a label
 *     CTC_EACH(i, n)                        a loop whose turns are independent
 *     CTC_ONE                               true for one thread of those that share such loops
 *     CTC_SYNC                              where they wait for each other
 *     CTC_OWN_NORMS                         if it has ctc_norms itself
 *     TARGET                                an attribute of functions
 *
 * Invariant: no number of a turn of CTC_EACH depends on how the turns are shared. */
#define CTC_COST     0
#define CTC_GRADIENT 1
#define CTC_CHANGE   2
struct ctc_sequence {
    const char *x, *v;          /* (rows, classes): activations; of CTC_CHANGE the direction */
    char *y;                    /* (rows, classes): the gradient or its change */
    const char *label;          /* (labels): negative ones are left out */
    int64_t x_step, x_class, v_step, v_class, y_step, y_class, label_step; /* strides in bytes */
    int64_t rows, steps, classes, labels, states;
    int kind, dtype, label_dtype; /* dtypes: for CTC_READ, CTC_WRITE and CTC_LABEL */
    double *norm, *mean;        /* (steps): the logarithm of the sum of exp(x); the mean of v */
    /* (steps, or 2 of CTC_COST, states) and (2, states): the numbers a 2^ae and b 2^be, and the changes of
     * their logarithms */
    double *a, *ae, *da, *b, *be, *db;
    /* (states): the class; the next state of that class or -1; is it the first? */
    int64_t *c, *next, *first;
};

/* Places the arrays in work (mc_ctc_work). */
TARGET static void ctc_place(struct ctc_sequence *e, double *work)
{
    const int64_t states = 2 * e->labels + 1, kept = e->kind == CTC_COST ? 2 : e->rows;
    const int moves = e->kind == CTC_CHANGE;
    e->norm = work;
    e->mean = e->norm + e->rows;
    e->a = e->mean + (moves ? e->rows : 0);
    e->ae = e->a + kept * states;
    e->da = e->ae + kept * states;
    e->b = e->da + (moves ? kept * states : 0);
    e->be = e->b + (e->kind == CTC_COST ? 0 : 2 * states);
    e->db = e->be + (e->kind == CTC_COST ? 0 : 2 * states);
    e->c = (int64_t *)(void *)(e->db + (moves ? 2 * states : 0));
    e->next = e->c + states;
    e->first = e->next + states;
}

/* The states: blank, label, blank, ...  Returns 1 + the position of a label that is none, or 0. */
TARGET static int64_t ctc_spell(struct ctc_sequence *e)
{
    e->states = 1;
    for (int64_t k = 0; k < e->labels; k++) {
        const int64_t label = CTC_LABEL(e, k);
        if (label == 0 || label >= e->classes) {
            return k + 1;
        }
        if (label > 0) {
            if (CTC_ONE) {
                e->c[e->states - 1] = 0;
                e->c[e->states] = label;
            }
            e->states += 2;
        }
    }
    if (CTC_ONE) {
        e->c[e->states - 1] = 0;
    }
    CTC_SYNC;
    return 0;
}

/* Chains of the states of one class. */
TARGET static void ctc_chain(const struct ctc_sequence *e)
{
    CTC_EACH(s, e->states) {
        int64_t after = s + 2, before = s - 2;
        while (after < e->states && e->c[after] != e->c[s]) {
            after += 2;
        }
        while (before >= 0 && e->c[before] != e->c[s]) {
            before -= 2;
        }
        e->next[s] = after < e->states ? after : -1;
        e->first[s] = before < 0;
    }
}

TARGET static double ctc_x(const struct ctc_sequence *e, int64_t t, int64_t c)
{
    return CTC_READ(e, e->x + t * e->x_step + c * e->x_class);
}

TARGET static double ctc_v(const struct ctc_sequence *e, int64_t t, int64_t c)
{
    return CTC_READ(e, e->v + t * e->v_step + c * e->v_class);
}

#ifndef CTC_OWN_NORMS
TARGET static void ctc_norms(const struct ctc_sequence *e)
{
    CTC_EACH(t, e->steps) {
        double most = -INFINITY, sum = 0, mean = 0;
        for (int64_t c = 0; c < e->classes; c++) {
            const double x = ctc_x(e, t, c);
            most = x > most || x != x ? x : most;
        }
        for (int64_t c = 0; c < e->classes; c++) {
            const double p = exp(ctc_x(e, t, c) - most);
            sum += p;
            if (e->kind == CTC_CHANGE) {
                mean += p * ctc_v(e, t, c);
            }
        }
        e->norm[t] = most + log(sum);
        if (e->kind == CTC_CHANGE) {
            e->mean[t] = mean / sum;
        }
    }
    CTC_SYNC;
}
#endif

/* ---- numbers m 2^e of any range: e is an integer as a double; of zero it is CTC_NONE ---- */

#define CTC_NONE -INFINITY
struct ctc_number {
    double m, e;
};

/* 2^k for an integer k that is not above 0; 0 if that is below 2^-1000, or if k is NaN. */
TARGET static double ctc_power(double k)
{
    union { int64_t i; double d; } power;
    power.i = k >= -1000 && k <= 0 ? ((int64_t)k + 1023) << 52 : 0;
    return power.d;
}

/* The number of that value, with m in [1, 2); value is not negative, and no number below 2^-1022. */
TARGET static struct ctc_number ctc_scaled(double value, double e)
{
    union { double d; int64_t i; } bits;
    struct ctc_number n = { value, e };
    bits.d = value;
    if (value > 0) {
        const int64_t k = (bits.i >> 52) - 1023;
        bits.i -= k << 52;
        n.m = bits.d;
        n.e = e + (double)k;
    } else if (value == 0) {
        n.e = CTC_NONE;
    }
    return n;
}

/* exp(x) for x that is not above 0 by more than rounding. */
TARGET static struct ctc_number ctc_exp(double x)
{
    struct ctc_number n = { 1, CTC_NONE };
    if (x < -1e15) { /* k would have no digits behind the point */
        n.e = x < -1e18 ? x * 1.4426950408889634 : (double)(int64_t)(x * 1.4426950408889634);
        n.m = x == -INFINITY ? 0 : 1;
    } else {
        const double k = x == x ? (double)(int64_t)(x * 1.4426950408889634 - 0.5) : 0;
        n.m = exp((x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10);
        n.e = k;
    }
    return n;
}

/* The probability of class c in step t. */
TARGET static struct ctc_number ctc_y(const struct ctc_sequence *e, int64_t t, int64_t c)
{
    return ctc_exp(ctc_x(e, t, c) - e->norm[t]);
}

TARGET static double ctc_log(struct ctc_number n)
{
    return n.m == 0 ? -INFINITY : log(n.m) + n.e * 0.6931471805599453;
}

/* x + y + z, and the change of its logarithm by those of theirs. */
TARGET static struct ctc_number ctc_sum(struct ctc_number x, struct ctc_number y, struct ctc_number z,
                                        const double *moves, double *change)
{
    const double more = y.e > x.e ? y.e : x.e, most = z.e > more ? z.e : more;
    const double p = x.m * ctc_power(x.e - most), q = y.m * ctc_power(y.e - most),
                 r = z.m * ctc_power(z.e - most);
    const struct ctc_number sum = { p + q + r, most };
    if (moves) {
        *change = sum.m == 0 ? 0 : (p * moves[0] + q * moves[1] + r * moves[2]) / sum.m;
    }
    return sum;
}

TARGET static int ctc_may_skip(const struct ctc_sequence *e, int64_t s)
{
    return s >= 2 && s < e->states && e->c[s] != 0 && e->c[s] != e->c[s - 2];
}

/* Two rows of numbers, or all: those of a or of b. */
struct ctc_rows {
    double *m, *e, *d;
};

/* A step: row out, state s is y of state s times the sum over the states from which it is reached, in row
 * `in`: those before it, or with the way -1 those behind; in: -1: it is the first one.  Multiplies a by the
 * sums, from `sums` on. */
TARGET static void ctc_advance(const struct ctc_sequence *e, int64_t t, int64_t way, struct ctc_rows l,
                               int64_t in, int64_t out, int64_t sums)
{
    const struct ctc_number blank = ctc_y(e, t, 0);
    CTC_EACH(s, e->states) {
        const int64_t place = way > 0 ? s : e->states - 1 - s, from = in + s;
        const int near = in >= 0 && place > 0, far = near && ctc_may_skip(e, way > 0 ? s : s + 2);
        const struct ctc_number none = { 0, CTC_NONE };
        struct ctc_number u = none, v = none, w = none;
        double moves[3] = { 0, 0, 0 }, change = 0;
        if (in >= 0) {
            u.m = l.m[from];
            u.e = l.e[from];
        } else if (place < 2) {
            u.m = 1;
            u.e = 0;
        }
        if (near) {
            v.m = l.m[from - way];
            v.e = l.e[from - way];
        }
        if (far) {
            w.m = l.m[from - 2 * way];
            w.e = l.e[from - 2 * way];
        }
        if (e->kind == CTC_CHANGE) {
            moves[0] = in >= 0 ? l.d[from] : 0;
            moves[1] = near ? l.d[from - way] : 0;
            moves[2] = far ? l.d[from - 2 * way] : 0;
        }
        const struct ctc_number sum = ctc_sum(u, v, w, e->kind == CTC_CHANGE ? moves : 0, &change),
                                y = e->c[s] ? ctc_y(e, t, e->c[s]) : blank,
                                next = ctc_scaled(sum.m * y.m, sum.e + y.e);
        l.m[out + s] = next.m;
        l.e[out + s] = next.e;
        if (sums >= 0) {
            e->a[sums + s] *= sum.m;
            e->ae[sums + s] += sum.e;
        }
        if (e->kind == CTC_CHANGE) {
            l.d[out + s] = change + (ctc_v(e, t, e->c[s]) - e->mean[t]);
            if (sums >= 0) {
                e->da[sums + s] += change;
            }
        }
    }
    CTC_SYNC;
}

/* The numbers a[t, s]: of all steps, or of the last two. */
TARGET static void ctc_forward(const struct ctc_sequence *e)
{
    const int64_t every = e->kind != CTC_COST;
    const struct ctc_rows a = { e->a, e->ae, e->da };
    for (int64_t t = 0; t < e->steps; t++) {
        ctc_advance(e, t, 1, a, t ? (every ? t - 1 : (t - 1) & 1) * e->states : -1,
                    (every ? t : t & 1) * e->states, -1);
    }
}

TARGET static double ctc_cost(const struct ctc_sequence *e)
{
    if (e->steps == 0) {
        return e->states == 1 ? 0 : INFINITY; /* nothing spells no labels */
    }
    const int64_t kept = e->kind != CTC_COST, last = (kept ? e->steps - 1 : (e->steps - 1) & 1) * e->states;
    const double *a = e->a + last + e->states, *ae = e->ae + last + e->states;
    const struct ctc_number none = { 0, CTC_NONE };
    struct ctc_number blank = none, label = none;
    blank.m = a[-1];
    blank.e = ae[-1];
    if (e->states > 1) {
        label.m = a[-2];
        label.e = ae[-2];
    }
    return -ctc_log(ctc_sum(blank, label, none, 0, 0));
}

/* Multiplies a[t, s] by b[t, s]; kept are b y. */
TARGET static void ctc_backward(const struct ctc_sequence *e)
{
    const struct ctc_rows b = { e->b, e->be, e->db };
    for (int64_t t = e->steps; t-- > 0;) {
        ctc_advance(e, t, -1, b, t + 1 < e->steps ? (~t & 1) * e->states : -1, (t & 1) * e->states,
                    t * e->states);
    }
}

/* What the softmax alone gives. */
TARGET static double ctc_plain(const struct ctc_sequence *e, int64_t t, int64_t c)
{
    const double p = exp(ctc_x(e, t, c) - e->norm[t]);
    return e->kind == CTC_CHANGE ? p * (ctc_v(e, t, c) - e->mean[t]) : p;
}

/* Writes y of the classes of step t that have states; a: the products a b. */
TARGET static void ctc_spelt(const struct ctc_sequence *e, int64_t t)
{
    double *a = e->a + t * e->states;
    const double *ae = e->ae + t * e->states, *da = e->kind == CTC_CHANGE ? e->da + t * e->states : 0;
    double most = CTC_NONE, sum = 0, moved = 0;
    for (int64_t s = 0; s < e->states; s++) {
        most = ae[s] > most ? ae[s] : most;
    }
    for (int64_t s = 0; s < e->states; s++) {
        a[s] *= ctc_power(ae[s] - most);
        sum += a[s];
        moved += da ? a[s] * da[s] : 0;
    }
    for (int64_t first = 0; first < e->states; first++) {
        double of_class = 0;
        for (int64_t s = e->first[first] ? first : -1; s >= 0; s = e->next[s]) {
            const double p = a[s] / sum;
            of_class += da ? p * (da[s] - moved / sum) : p;
        }
        if (e->first[first]) {
            const int64_t c = e->c[first];
            CTC_WRITE(e, e->y + t * e->y_step + c * e->y_class, ctc_plain(e, t, c) - of_class);
        }
    }
}

/* Zeros behind the steps of an example, and for one without an alignment. */
TARGET static void ctc_results(const struct ctc_sequence *e, int64_t steps)
{
    CTC_EACH(i, e->rows * e->classes) {
        const int64_t t = i / e->classes, c = i % e->classes;
        CTC_WRITE(e, e->y + t * e->y_step + c * e->y_class, t < steps ? ctc_plain(e, t, c) : 0);
    }
    CTC_SYNC;
    CTC_EACH(t, steps) {
        ctc_spelt(e, t);
    }
}

/* Computes the cost, or y.  requires: ctc_place.  Returns 1 + the position of a label that is none, -1 if
 * there are not so many steps, or 0. */
TARGET static int64_t ctc_example(struct ctc_sequence *e, double *cost)
{
    if (e->steps < 0 || e->steps > e->rows) {
        return -1;
    }
    const int64_t wrong = ctc_spell(e);
    if (wrong) {
        return wrong;
    }
    ctc_norms(e);
    ctc_forward(e);
    *cost = ctc_cost(e);
    if (e->kind != CTC_COST) {
        const int64_t steps = *cost == INFINITY ? 0 : e->steps;
        CTC_SYNC; /* before a changes */
        if (steps) {
            ctc_chain(e);
            ctc_backward(e);
        }
        ctc_results(e, steps);
    }
    return 0;
}
