/* bigint.c: whole literals before their dtype is known.  Arithmetic on them is exact, as in Python, up to
 * 1024 bits.  Whether a dtype holds the result is checked when it becomes a node.
 *
 * Invariant: limb[n - 1] is not 0, and 0 (n = 0) is not negative. */
#include "graph/parse.h"
#include <math.h>

static struct whole trimmed(struct whole a)
{
    while (a.n && !a.limb[a.n - 1]) {
        a.n--;
    }
    a.neg &= a.n > 0;
    return a;
}

struct whole mc_bigint_of(int64_t v)
{
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    return trimmed((struct whole){ .neg = v < 0, .n = 2, .limb = { (uint32_t)u, (uint32_t)(u >> 32) } });
}

/* a = a * by + add, for magnitudes; false: more than WHOLE_LIMBS limbs, and the carry is lost. */
static bool scale(struct whole *a, uint32_t by, uint32_t add)
{
    uint64_t carry = add;
    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] * by;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && a->n == WHOLE_LIMBS) {
        return false;
    }
    if (carry) {
        a->limb[a->n++] = (uint32_t)carry;
    }
    return true;
}

bool mc_bigint_read(const char *digits, int base, struct whole *out)
{
    *out = (struct whole){ 0 };
    for (const char *s = digits; *s; s++) {
        int d = *s >= '0' && *s <= '9'   ? *s - '0'
                : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10
                : *s >= 'A' && *s <= 'F' ? *s - 'A' + 10
                                         : 16;
        if (d >= base || !scale(out, (uint32_t)base, (uint32_t)d)) {
            return false;
        }
    }
    return *digits;
}

/* The magnitude, if it fits into 64 bits. */
static bool small(const struct whole *a, uint64_t *u)
{
    *u = a->n ? a->limb[0] | (a->n > 1 ? (uint64_t)a->limb[1] << 32 : 0) : 0;
    return a->n <= 2;
}

bool mc_bigint_i64(const struct whole *a, int64_t *out)
{
    uint64_t u;
    bool fits = small(a, &u) && u <= (uint64_t)INT64_MAX + a->neg;
    *out = (int64_t)(a->neg ? 0 - u : u);
    return fits;
}

bool mc_bigint_u64(const struct whole *a, uint64_t *out)
{
    return small(a, out) && !a->neg;
}

/* The nearest double.  The upper 64 bits are converted; their last bit is set if any lower bit is set. */
double mc_bigint_real(const struct whole *a)
{
    uint64_t top = 0;
    int bits = 0, below = 0;
    for (int i = a->n; i-- > 0;) {
        for (int k = 32; k-- > 0;) {
            uint32_t one = a->limb[i] >> k & 1;
            if (bits == 64) {
                top |= one;
                below++;
            } else if (one || bits) {
                top = top << 1 | one;
                bits++;
            }
        }
    }
    double v = ldexp((double)top, below);
    return a->neg ? -v : v;
}

static int compare_size(const struct whole *a, const struct whole *b)
{
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    for (int i = a->n; i-- > 0;) {
        if (a->limb[i] != b->limb[i]) {
            return a->limb[i] < b->limb[i] ? -1 : 1;
        }
    }
    return 0;
}

int mc_bigint_compare(const struct whole *a, const struct whole *b)
{
    if (a->neg != b->neg) {
        return a->neg ? -1 : 1;
    }
    return a->neg ? compare_size(b, a) : compare_size(a, b);
}

struct whole mc_bigint_neg(const struct whole *a)
{
    struct whole r = *a;
    r.neg = a->n && !a->neg;
    return r;
}

/* |a| - |b|; requires |a| >= |b|. */
static struct whole less(const struct whole *a, const struct whole *b)
{
    struct whole r = *a;
    int64_t carry = 0;
    for (int i = 0; i < a->n; i++) {
        carry += (int64_t)a->limb[i] - (i < b->n ? b->limb[i] : 0);
        r.limb[i] = (uint32_t)carry;
        carry = carry < 0 ? -1 : 0;
    }
    return trimmed(r);
}

static bool add(const struct whole *a, const struct whole *b, struct whole *out)
{
    if (a->neg != b->neg) {
        bool first = compare_size(a, b) >= 0;
        *out = first ? less(a, b) : less(b, a);
        return true;
    }
    struct whole r = { .neg = a->neg, .n = MC_MAX(a->n, b->n) };
    uint64_t carry = 0;
    for (int i = 0; i < r.n; i++) {
        carry += (uint64_t)(i < a->n ? a->limb[i] : 0) + (i < b->n ? b->limb[i] : 0);
        r.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && r.n == WHOLE_LIMBS) {
        return false;
    }
    if (carry) {
        r.limb[r.n++] = (uint32_t)carry;
    }
    *out = r;
    return true;
}

static bool subtract(const struct whole *a, const struct whole *b, struct whole *out)
{
    struct whole minus = mc_bigint_neg(b);
    return add(a, &minus, out);
}

static bool multiply(const struct whole *a, const struct whole *b, struct whole *out)
{
    uint32_t limb[2 * WHOLE_LIMBS] = { 0 };
    for (int i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (int k = 0; k < b->n; k++) {
            carry += (uint64_t)a->limb[i] * b->limb[k] + limb[i + k];
            limb[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        limb[i + b->n] = (uint32_t)carry;
    }
    for (int i = WHOLE_LIMBS; i < a->n + b->n; i++) {
        if (limb[i]) {
            return false;
        }
    }
    struct whole r = { .neg = a->neg != b->neg, .n = MC_MIN(a->n + b->n, WHOLE_LIMBS) };
    memcpy(r.limb, limb, sizeof r.limb);
    *out = trimmed(r);
    return true;
}

/* Division rounded towards minus infinity; the remainder has the sign of b.  b is not 0. */
static void divide(const struct whole *a, const struct whole *b, struct whole *quotient, struct whole *rest)
{
    struct whole q = { .n = a->n }, r = { 0 }, positive = *b;
    positive.neg = false;
    /* Bit by bit.  r < |b|, so 2r + 1 overflows only if |b| has 1024 bits; then 2r + 1 > |b|. */
    for (int i = a->n; i-- > 0;) {
        for (int k = 32; k-- > 0;) {
            bool over = !scale(&r, 2, a->limb[i] >> k & 1);
            if (over || compare_size(&r, &positive) >= 0) {
                r = less(&r, &positive);
                q.limb[i] |= UINT32_C(1) << k;
            }
        }
    }
    q.neg = a->neg != b->neg;
    *quotient = trimmed(q);
    if (q.neg && r.n) {
        struct whole one = mc_bigint_of(1);
        subtract(quotient, &one, quotient);
        r = less(&positive, &r);
    }
    r.neg = b->neg && r.n;
    *rest = r;
}

static bool floored(const struct whole *a, const struct whole *b, struct whole *out)
{
    struct whole rest;
    divide(a, b, out, &rest);
    return true;
}

static bool modulo(const struct whole *a, const struct whole *b, struct whole *out)
{
    struct whole quotient;
    divide(a, b, &quotient, out);
    return true;
}

static bool power(const struct whole *a, const struct whole *b, struct whole *out)
{
    struct whole r = mc_bigint_of(1), base = *a;
    bool unit = a->n == 0 || (a->n == 1 && a->limb[0] == 1);
    int64_t e;
    if (!mc_bigint_i64(b, &e) || (unit && e > 2)) {
        e = b->n ? (int64_t)(b->limb[0] & 1) + 2 : 0; /* for 0, 1 and -1 only its parity matters */
    }
    if (!unit && (b->n > 1 || e > 32 * WHOLE_LIMBS)) {
        return false;
    }
    for (; e; e >>= 1) {
        if (e & 1 && !multiply(&r, &base, &r)) {
            return false;
        }
        if (e > 1 && !multiply(&base, &base, &base)) {
            return false;
        }
    }
    *out = r;
    return true;
}

static const struct { const char *op; bool (*make)(const struct whole *a, const struct whole *b, struct whole *out); } makes[] = {
    { "add", add }, { "sub", subtract }, { "mul", multiply }, { "int_div", floored }, { "mod", modulo }, { "pow", power },
};

enum whole_result mc_bigint_op(const char *op, const struct whole *a, const struct whole *b,
                               struct whole *out, const char **fault)
{
    static const struct { const char *op; bool less, equal, more; } tests[] = {
        { "lt", true, false, false }, { "le", true, true, false }, { "gt", false, false, true }, { "ge", false, true, true },
        { "eq", false, true, false }, { "neq", true, false, true },
    };
    for (size_t i = 0; i < NELEM(tests); i++) {
        if (strcmp(op, tests[i].op) == 0) {
            int c = mc_bigint_compare(a, b);
            *out = mc_bigint_of(c < 0 ? tests[i].less : c > 0 ? tests[i].more : tests[i].equal);
            return WHOLE_BOOL;
        }
    }
    for (size_t i = 0; i < NELEM(makes); i++) {
        if (strcmp(op, makes[i].op) != 0) {
            continue;
        }
        if (makes[i].make == power && b->neg) {
            return WHOLE_NOT; /* a real number */
        }
        *fault = (makes[i].make == floored || makes[i].make == modulo) && !b->n ? "integer division by 0"
                                                                                : NULL;
        if (!*fault && !makes[i].make(a, b, out)) {
            *fault = "the integer has more than 1024 bits";
        }
        return *fault ? WHOLE_FAULT : WHOLE_MADE;
    }
    return WHOLE_NOT;
}
