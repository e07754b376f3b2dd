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
    /* (steps, or 2 of CTC_COST, states) and (2, states): logarithms and their changes */
    double *a, *da, *b, *db;
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
    e->da = e->a + kept * states;
    e->b = e->da + (moves ? kept * states : 0);
    e->db = e->b + (e->kind == CTC_COST ? 0 : 2 * states);
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

/* log(exp(l[0]) + ... + exp(l[n - 1])), and its change by those of l. */
TARGET static double ctc_log_sum(int n, const double *l, const double *dl, double *change)
{
    double most = l[0], sum = 0, moved = 0;
    for (int i = 1; i < n; i++) {
        most = l[i] > most || l[i] != l[i] ? l[i] : most;
    }
    *change = 0;
    if (most == -INFINITY) {
        return most;
    }
    for (int i = 0; i < n; i++) {
        const double p = l[i] == most ? 1 : l[i] == -INFINITY ? 0 : exp(l[i] - most);
        sum += p;
        moved += p * dl[i];
    }
    *change = moved / sum;
    return most + log(sum);
}

TARGET static int ctc_may_skip(const struct ctc_sequence *e, int64_t s)
{
    return s >= 2 && s < e->states && e->c[s] != 0 && e->c[s] != e->c[s - 2];
}

/* A step: l[out + s] is y of state s times the sum over the states from which it is reached, in step `in`:
 * those before it, or with the way -1 those behind; in: -1: it is the first one.  Adds the sums to a, from
 * `sums` on. */
TARGET static void ctc_advance(const struct ctc_sequence *e, int64_t t, int64_t way, double *l, double *dl,
                               int64_t in, int64_t out, int64_t sums)
{
    CTC_EACH(s, e->states) {
        const int64_t place = way > 0 ? s : e->states - 1 - s;
        const int n = in < 0 || place == 0 ? 1 : 2 + ctc_may_skip(e, way > 0 ? s : s + 2);
        double v[3] = { 0, 0, 0 }, dv[3] = { 0, 0, 0 }, change = 0;
        v[0] = in < 0 && place > 1 ? -INFINITY : 0;
        for (int i = 0; i < n && in >= 0; i++) {
            v[i] = l[in + s - way * i];
            dv[i] = e->kind == CTC_CHANGE ? dl[in + s - way * i] : 0;
        }
        const double sum = ctc_log_sum(n, v, dv, &change);
        l[out + s] = sum + (ctc_x(e, t, e->c[s]) - e->norm[t]);
        if (sums >= 0) {
            e->a[sums + s] += sum;
        }
        if (e->kind == CTC_CHANGE) {
            dl[out + s] = change + (ctc_v(e, t, e->c[s]) - e->mean[t]);
            if (sums >= 0) {
                e->da[sums + s] += change;
            }
        }
    }
    CTC_SYNC;
}

/* The logarithms a[t, s]: of all steps, or of the last two. */
TARGET static void ctc_forward(const struct ctc_sequence *e)
{
    const int64_t every = e->kind != CTC_COST;
    for (int64_t t = 0; t < e->steps; t++) {
        ctc_advance(e, t, 1, e->a, e->da, t ? (every ? t - 1 : (t - 1) & 1) * e->states : -1,
                    (every ? t : t & 1) * e->states, -1);
    }
}

TARGET static double ctc_cost(const struct ctc_sequence *e)
{
    if (e->steps == 0) {
        return e->states == 1 ? 0 : INFINITY; /* nothing spells no labels */
    }
    const int64_t kept = e->kind != CTC_COST, last = (kept ? e->steps - 1 : (e->steps - 1) & 1) * e->states;
    const double *a = e->a + last + e->states, none[2] = { 0, 0 };
    const double l[2] = { a[-1], e->states > 1 ? a[-2] : -INFINITY };
    double change;
    return -ctc_log_sum(e->states > 1 ? 2 : 1, l, none, &change);
}

/* Adds the logarithms b[t, s] to a[t, s]; kept are those of b y. */
TARGET static void ctc_backward(const struct ctc_sequence *e)
{
    for (int64_t t = e->steps; t-- > 0;) {
        ctc_advance(e, t, -1, e->b, e->db, t + 1 < e->steps ? (~t & 1) * e->states : -1, (t & 1) * e->states,
                    t * e->states);
    }
}

/* What the softmax alone gives. */
TARGET static double ctc_plain(const struct ctc_sequence *e, int64_t t, int64_t c)
{
    const double p = exp(ctc_x(e, t, c) - e->norm[t]);
    return e->kind == CTC_CHANGE ? p * (ctc_v(e, t, c) - e->mean[t]) : p;
}

/* Writes y of the classes of step t that have states; a: logarithms of a b. */
TARGET static void ctc_spelt(const struct ctc_sequence *e, int64_t t)
{
    const double *a = e->a + t * e->states, *da = e->kind == CTC_CHANGE ? e->da + t * e->states : 0;
    double most = -INFINITY, sum = 0, moved = 0;
    for (int64_t s = 0; s < e->states; s++) {
        most = a[s] > most || a[s] != a[s] ? a[s] : most;
    }
    for (int64_t s = 0; s < e->states; s++) {
        const double p = exp(a[s] - most);
        sum += p;
        moved += da ? p * da[s] : 0;
    }
    for (int64_t first = 0; first < e->states; first++) {
        double of_class = 0;
        for (int64_t s = e->first[first] ? first : -1; s >= 0; s = e->next[s]) {
            const double p = exp(a[s] - most) / sum;
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
