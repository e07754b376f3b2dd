/* jacobi.cu: what the kernels of eigenvalues and singular values share: pairs of columns, powers of two,
 * orders and signs of vectors.
 *
 * A sweep has n - 1 steps, n even, each of n / 2 pairs without a common member, which are rotated at the same
 * time; each two columns meet once (the round robin of a tournament). */
enum { SWEEPS = 40 };

/* Pair k of a step: *p < *q < n */
__device__ __forceinline__ void pair_of(int k, int step, int n, int *p, int *q)
{
    int i = k ? step + k : n - 1, j = k ? step - k : step;
    i = k && i >= n - 1 ? i - (n - 1) : i;
    j = j < 0 ? j + n - 1 : j;
    *p = i < j ? i : j;
    *q = i < j ? j : i;
}

/* The unit roundoff. */
__device__ __forceinline__ T roundoff()
{
    return sizeof(T) == 4 ? (T)6e-8 : (T)1.1e-16;
}

/* A power of two by which elements of at most that magnitude are about as large as 1; 1 if they are that
 * already, within a factor of a million (power_for in op/matrix/dense.h). */
__device__ static T power_for(T most)
{
    const T limit = (T)(sizeof(T) == 4 ? 1e35 : 1e300);
    T by = 1;
    if (most >= (T)1e-6 && most <= (T)1e6) {
        return 1;
    }
    for (; most > 1; most /= 2) {
        by /= 2;
    }
    for (; most > 0 && most < (T)0.5 && by < limit; most *= 2) {
        by *= 2;
    }
    return by;
}

/* The rotation of two columns whose product is `xy`, where `apart` is by how much the second one is larger:
 * the smaller angle.  Returns its tangent. */
__device__ __forceinline__ T tangent(T apart, T xy, T *c, T *s)
{
    const T h = apart / (2 * xy), t = (h >= 0 ? 1 : -1) / (magnitude(h) + root(h * h + 1));
    *c = 1 / root(t * t + 1);
    *s = t * *c;
    return t;
}

/* What the rotation does, given its sine and tau = s / (1 + c): rounded so, small angles leave lengths as
 * they are. */
__device__ __forceinline__ void rotate(T *f, T *g, T s, T tau)
{
    const T x = *f, y = *g;
    *f = x - s * (y + tau * x);
    *g = y + s * (x - tau * y);
}

/* from[k]: which of the n numbers w, `apart` elements from each other, is number k in order */
__device__ static void sorted(int *from, const T *w, int apart, int n, bool descending)
{
    for (int i = threadIdx.x; i < n; i += THREADS) {
        const T mine = w[i * apart];
        int place = 0;
        for (int j = 0; j < n; j++) {
            const T other = w[j * apart];
            place += (descending ? other > mine : other < mine) || (other == mine && j < i);
        }
        from[place] = i;
    }
}

/* -1 if the first of n elements that is at least half as large as the largest one is negative, else 1
 * (points_down in op/matrix/dense.h) */
__device__ static T sign_of(const T *x, int n)
{
    T most = 0;
    for (int i = 0; i < n; i++) {
        most = magnitude(x[i]) > most ? magnitude(x[i]) : most;
    }
    for (int i = 0; i < n; i++) {
        if (2 * magnitude(x[i]) >= most) {
            return x[i] < 0 ? (T)-1 : (T)1;
        }
    }
    return 1;
}
