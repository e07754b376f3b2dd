/* libraries.cpp: the parts of cuBLAS, cuSOLVER and cuFFT that this library calls, by loops in double.
 *
 * Invariant: matrices are column-major, as there.  Work is enqueued, so that it is recorded where launches are. */
#define FAKE_GPU
#include "fake.h"
#include <algorithm>
#include <complex>
#include <map>
#include <math.h>
#include <stdint.h>
#include <vector>

typedef std::vector<double> numbers;
template <class T> static numbers load(const T *x, int64_t ld, int64_t m, int64_t n)
{
    numbers y(m * n);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            y[i + j * m] = (double)x[i + j * ld];
    return y;
}
template <class T> static void store(T *x, int64_t ld, int64_t m, int64_t n, const numbers &y)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            x[i + j * ld] = (T)y[i + j * m];
}
/* L L' of the lower triangle; 1 + the pivot that is not positive, which is left as it was found */
template <class T> static int potrf(T *a, int64_t ld, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i <= k; i++) {
            double sum = (double)a[k + i * ld];
            for (int64_t j = 0; j < i; j++)
                sum -= (double)a[i + j * ld] * (double)a[k + j * ld];
            if (i == k && !(sum > 0))
                return (int)k + 1;
            a[k + i * ld] = (T)(i == k ? sqrt(sum) : sum / (double)a[i + i * ld]);
        }
    }
    return 0;
}
template <class T> static int getrf(T *a, int64_t ld, int64_t m, int64_t n, int64_t *pivot)
{
    int bad = 0;
    for (int64_t k = 0; k < std::min(m, n); k++) {
        int64_t at = k;
        for (int64_t i = k + 1; i < m; i++)
            at = fabs((double)a[i + k * ld]) > fabs((double)a[at + k * ld]) ? i : at;
        pivot[k] = at + 1;
        for (int64_t j = 0; j < n; j++)
            std::swap(a[k + j * ld], a[at + j * ld]);
        if (a[k + k * ld] == 0) {
            bad = bad ? bad : (int)k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++) {
            a[i + k * ld] /= a[k + k * ld];
            for (int64_t j = k + 1; j < n; j++)
                a[i + j * ld] -= a[i + k * ld] * a[k + j * ld];
        }
    }
    return bad;
}
/* x (n, k) = op(a)^-1 x of a triangle */
template <class T> static void triangle(bool upper, bool turned, bool unit, int64_t n, int64_t k, const T *a, int64_t ld, T *x, int64_t ldx)
{
    const bool back = upper != turned;
    for (int64_t c = 0; c < k; c++)
        for (int64_t s = 0; s < n; s++) {
            const int64_t i = back ? n - 1 - s : s;
            double sum = (double)x[i + c * ldx];
            for (int64_t j = back ? i + 1 : 0; j < (back ? n : i); j++)
                sum -= (double)(turned ? a[j + i * ld] : a[i + j * ld]) * (double)x[j + c * ldx];
            x[i + c * ldx] = (T)(unit ? sum : sum / (double)a[i + i * ld]);
        }
}
template <class T> static void getrs(bool turned, int64_t n, int64_t k, const T *a, int64_t ld, const int64_t *pivot, T *b, int64_t ldb)
{
    for (int64_t i = 0; i < n && !turned; i++)
        for (int64_t c = 0; c < k; c++)
            std::swap(b[i + c * ldb], b[pivot[i] - 1 + c * ldb]);
    triangle(turned, turned, !turned, n, k, a, ld, b, ldb);
    triangle(!turned, turned, turned, n, k, a, ld, b, ldb);
    for (int64_t i = n - 1; i >= 0 && turned; i--)
        for (int64_t c = 0; c < k; c++)
            std::swap(b[i + c * ldb], b[pivot[i] - 1 + c * ldb]);
}
/* a (m, c) = H a: v[0] counts as 1 */
static void reflect(double t, const double *v, int64_t m, double *a, int64_t ld, int64_t c)
{
    for (int64_t j = 0; j < c; j++) {
        double sum = a[j * ld];
        for (int64_t i = 1; i < m; i++)
            sum += v[i] * a[i + j * ld];
        a[j * ld] -= t * sum;
        for (int64_t i = 1; i < m; i++)
            a[i + j * ld] -= t * sum * v[i];
    }
}
template <class T> static void geqrf(T *a_, int64_t ld, int64_t m, int64_t n, T *tau)
{
    numbers a = load(a_, ld, m, n);
    for (int64_t k = 0; k < std::min(m, n); k++) {
        double *v = &a[k + k * m], rest = 0, t = 0;
        for (int64_t i = 1; i < m - k; i++)
            rest += v[i] * v[i];
        if (rest > 0) {
            const double size = sqrt(v[0] * v[0] + rest), beta = v[0] >= 0 ? -size : size;
            t = (beta - v[0]) / beta;
            for (int64_t i = 1; i < m - k; i++)
                v[i] /= v[0] - beta;
            v[0] = beta;
        }
        tau[k] = (T)t;
        if (k + 1 < n)
            reflect(t, v, m - k, &a[k + (k + 1) * m], m, n - k - 1);
    }
    store(a_, ld, m, n, a);
}
template <class T> static void orgqr(T *a, int64_t ld, int64_t m, int64_t c, int64_t k, const T *tau)
{
    const numbers v = load(a, ld, m, k);
    numbers q(m * c);
    for (int64_t i = 0; i < c; i++)
        q[i + i * m] = 1;
    while (k-- > 0)
        reflect((double)tau[k], &v[k + k * m], m - k, &q[k + k * m], m, c - k);
    store(a, ld, m, c, q);
}
/* Jacobi's rotations; vectors in the columns of v, ascending */
static void jacobi(numbers &a, int64_t n, numbers &v, numbers &w)
{
    v.assign(n * n, 0);
    for (int64_t i = 0; i < n; i++)
        v[i + i * n] = 1;
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0, all = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = 0; q < n; q++)
                (p == q ? all : off) += a[p + q * n] * a[p + q * n];
        if (!(off > 1e-40 * (all + off)))
            break;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                if (a[p + q * n] == 0)
                    continue;
                const double h = (a[q + q * n] - a[p + p * n]) / (2 * a[p + q * n]),
                             t = (h >= 0 ? 1 : -1) / (fabs(h) + sqrt(h * h + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
                for (int64_t i = 0; i < n; i++) {
                    const double x = a[i + p * n], y = a[i + q * n], vx = v[i + p * n], vy = v[i + q * n];
                    a[i + p * n] = c * x - s * y;
                    a[i + q * n] = s * x + c * y;
                    v[i + p * n] = c * vx - s * vy;
                    v[i + q * n] = s * vx + c * vy;
                }
                for (int64_t i = 0; i < n; i++) {
                    const double x = a[p + i * n], y = a[q + i * n];
                    a[p + i * n] = c * x - s * y;
                    a[q + i * n] = s * x + c * y;
                }
            }
    }
    std::vector<int64_t> order(n);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a[i + i * n] < a[j + j * n]; });
    const numbers was = v;
    w.resize(n);
    for (int64_t k = 0; k < n; k++) {
        w[k] = a[order[k] * (n + 1)];
        std::copy(&was[order[k] * n], &was[order[k] * n] + n, &v[k * n]);
    }
}
template <class T> static void syevd(bool vectors, T *a_, int64_t ld, int64_t n, T *w_)
{
    numbers a = load(a_, ld, n, n), v, w;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i++)
            a[i + j * n] = a[j + i * n];
    jacobi(a, n, v, w);
    store(w_, n, n, 1, w);
    if (vectors)
        store(a_, ld, n, n, v);
}
/* of a (m, n), m >= n: columns rotated until they are orthogonal; u gets `side` columns */
template <class T> static void svd(bool vectors, int64_t side, T *a_, int64_t ld, int64_t m, int64_t n, T *s_, T *u_, int64_t ldu, T *v_, int64_t ldv)
{
    numbers a = load(a_, ld, m, n), v(n * n), s(n), u(m * side), vs(n * n);
    for (int64_t i = 0; i < n; i++)
        v[i + i * n] = 1;
    bool turned = true;
    for (int sweep = 0; sweep < 60 && turned; sweep++) {
        turned = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double x = 0, y = 0, z = 0;
                for (int64_t i = 0; i < m; i++)
                    x += a[i + p * m] * a[i + p * m], y += a[i + q * m] * a[i + q * m], z += a[i + p * m] * a[i + q * m];
                if (!(fabs(z) > 1e-17 * sqrt(x * y)))
                    continue;
                turned = true;
                const double h = (y - x) / (2 * z), t = (h >= 0 ? 1 : -1) / (fabs(h) + sqrt(h * h + 1)), c = 1 / sqrt(t * t + 1), e = t * c;
                for (int64_t i = 0; i < m + n; i++) {
                    double &f = i < m ? a[i + p * m] : v[i - m + p * n], &g = i < m ? a[i + q * m] : v[i - m + q * n];
                    const double was = f;
                    f = c * was - e * g;
                    g = e * was + c * g;
                }
            }
    }
    std::vector<int64_t> order(n);
    for (int64_t k = 0; k < n; k++) {
        order[k] = k;
        for (int64_t i = 0; i < m; i++)
            s[k] += a[i + k * m] * a[i + k * m];
        s[k] = sqrt(s[k]);
    }
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return s[i] > s[j]; });
    numbers sorted(n);
    for (int64_t k = 0; k < side; k++) {
        const int64_t from = k < n ? order[k] : 0;
        const bool given = k < n && s[from] > 1e-300;
        for (int64_t i = 0; i < m && given; i++)
            u[i + k * m] = a[i + from * m] / s[from];
        for (int64_t unit = 0; unit < m && !given; unit++) { /* any that is orthogonal to those before */
            for (int64_t i = 0; i < m; i++)
                u[i + k * m] = i == unit;
            for (int turn = 0; turn < 2; turn++)
                for (int64_t j = 0; j < k; j++) {
                    double dot = 0;
                    for (int64_t i = 0; i < m; i++)
                        dot += u[i + j * m] * u[i + k * m];
                    for (int64_t i = 0; i < m; i++)
                        u[i + k * m] -= dot * u[i + j * m];
                }
            double size = 0;
            for (int64_t i = 0; i < m; i++)
                size += u[i + k * m] * u[i + k * m];
            if (size * (double)m * 2 < 1)
                continue;
            for (int64_t i = 0; i < m; i++)
                u[i + k * m] /= sqrt(size);
            break;
        }
        if (k < n) {
            sorted[k] = s[from];
            std::copy(&v[from * n], &v[from * n] + n, &vs[k * n]);
        }
    }
    store(s_, n, n, 1, sorted);
    if (vectors) {
        store(u_, ldu, m, side, u);
        store(v_, ldv, n, n, vs);
    }
}
/* ---- Fourier ---- */
struct plan {
    int rank, n[3], type, batch;
};
static std::map<int, plan> plans;
typedef std::complex<double> complex;
static void along(std::vector<complex> &x, int64_t blocks, int64_t n, int64_t stride, double sign)
{
    std::vector<complex> y(n);
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t k = 0; k < stride; k++) {
            complex *at = &x[b * n * stride + k];
            for (int64_t i = 0; i < n; i++) {
                y[i] = 0;
                for (int64_t j = 0; j < n; j++)
                    y[i] += at[j * stride] * std::polar(1.0, sign * 2 * M_PI * (double)(i * j % n) / (double)n);
            }
            for (int64_t i = 0; i < n; i++)
                at[i * stride] = y[i];
        }
}
/* back: rubbish where the other half's conjugates would not fit, as the library may do */
template <class T> static int transform(int number, void *from, void *to, bool back)
{
    LOCK;
    const plan p = plans[number];
    return fake_enqueue([=] {
        int64_t lines = p.batch, n = p.n[p.rank - 1], half = n / 2 + 1, stride = n;
        for (int i = 0; i < p.rank - 1; i++)
            lines *= p.n[i];
        std::vector<complex> x(lines * n);
        T *pairs = (T *)(back ? from : to), *real = (T *)(back ? to : from);
        for (int64_t e = 0; e < lines * n; e++)
            x[e] = back ? 0 : (double)real[e];
        for (int64_t l = 0; l < lines && back; l++)
            for (int64_t k = 0; k < n; k++) {
                int64_t other = 0, rest = l, scale = 1;
                for (int i = p.rank - 2; i >= 0; i--) {
                    const int64_t at = rest % p.n[i];
                    other += scale * (at ? p.n[i] - at : 0);
                    scale *= p.n[i];
                    rest /= p.n[i];
                }
                const T *c = &pairs[2 * (k < half ? l * half + k : (rest * scale + other) * half + n - k)];
                x[l * n + k] = complex(c[0], k < half ? c[1] : -c[1]);
            }
        along(x, lines, n, 1, back ? 1 : -1);
        int64_t blocks = lines;
        for (int i = p.rank - 2; i >= 0; i--) {
            blocks /= p.n[i];
            along(x, blocks, p.n[i], stride, back ? 1 : -1);
            stride *= p.n[i];
        }
        for (int64_t l = 0; l < lines; l++)
            for (int64_t k = 0; k < (back ? n : half); k++) {
                if (back) {
                    real[l * n + k] = (T)(x[l * n + k].real() + x[l * n + k].imag());
                } else {
                    pairs[2 * (l * half + k)] = (T)x[l * n + k].real();
                    pairs[2 * (l * half + k) + 1] = (T)x[l * n + k].imag();
                }
            }
        for (int64_t e = 0; e < 2 * lines * half && back; e++)
            pairs[e] = (T)NAN; /* it is lost */
        return 0;
    });
}

#define BY_TYPE(call32, call64) \
    return fake_enqueue([=] { \
        if (type == 0) { \
            typedef float T; \
            call32; \
        } else { \
            typedef double T; \
            call64; \
        } \
        return 0; \
    })
#define BOTH(call) BY_TYPE(call, call)
#define SOME *device = 64, *host = 8
extern "C" {
int cublasGetProperty(int which, int *v) { return *v = which ? 0 : 13, 0; }
int cublasCreate_v2(void **h) { return *h = (void *)1, 0; }
int cublasDestroy_v2(void *) { return 0; }
int cublasSetStream_v2(void *, void *) { return 0; }
/* x op(a) = b from the right: transposed, op(a)' x' = b' */
#define TRSM(name, R) \
    int name(void *, int, int fill, int turned, int unit, int m, int n, const R *, const R *a, int lda, R *b, int ldb) \
    { \
        return fake_enqueue([=] { \
            std::vector<R> x((size_t)m * n); \
            for (int i = 0; i < m; i++) \
                for (int j = 0; j < n; j++) \
                    x[j + (size_t)i * n] = b[i + (size_t)j * ldb]; \
            triangle(fill == 1, !turned, unit, n, m, a, lda, x.data(), n); \
            for (int i = 0; i < m; i++) \
                for (int j = 0; j < n; j++) \
                    b[i + (size_t)j * ldb] = x[j + (size_t)i * n]; \
            return 0; \
        }); \
    }
TRSM(cublasStrsm_v2, float)
TRSM(cublasDtrsm_v2, double)
int cusolverGetProperty(int which, int *v) { return *v = which ? 0 : 12, 0; }
int cusolverDnCreate(void **h) { return *h = (void *)1, 0; }
int cusolverDnCreateParams(void **p) { return *p = (void *)1, 0; }
int cusolverDnDestroy(void *) { return 0; }
int cusolverDnSetStream(void *, void *) { return 0; }
int cusolverDnXpotrf_bufferSize(void *, void *, int, int64_t, int, const void *, int64_t, int, size_t *device, size_t *host) { return SOME, 0; }
int cusolverDnXpotrf(void *, void *, int upper, int64_t n, int type, void *a, int64_t ld, int, void *, size_t, void *, size_t, int *info)
{
    if (upper)
        return 7;
    BOTH(*info = potrf((T *)a, ld, n));
}
int cusolverDnXgetrf_bufferSize(void *, void *, int64_t, int64_t, int, const void *, int64_t, int, size_t *device, size_t *host) { return SOME, 0; }
int cusolverDnXgetrf(void *, void *, int64_t m, int64_t n, int type, void *a, int64_t ld, int64_t *pivot, int, void *, size_t, void *, size_t, int *info)
{
    BOTH(*info = getrf((T *)a, ld, m, n, pivot));
}
int cusolverDnXgetrs(void *, void *, int turned, int64_t n, int64_t k, int type, const void *a, int64_t ld, const int64_t *pivot, int, void *b, int64_t ldb, int *)
{
    BOTH(getrs(turned, n, k, (const T *)a, ld, pivot, (T *)b, ldb));
}
int cusolverDnXgeqrf_bufferSize(void *, void *, int64_t, int64_t, int, const void *, int64_t, int, const void *, int, size_t *device, size_t *host) { return SOME, 0; }
int cusolverDnXgeqrf(void *, void *, int64_t m, int64_t n, int type, void *a, int64_t ld, int, void *t, int, void *, size_t, void *, size_t, int *)
{
    BOTH(geqrf((T *)a, ld, m, n, (T *)t));
}
int cusolverDnSorgqr_bufferSize(void *, int, int, int, const float *, int, const float *, int *n) { return *n = 8, 0; }
int cusolverDnDorgqr_bufferSize(void *, int, int, int, const double *, int, const double *, int *n) { return *n = 8, 0; }
int cusolverDnSorgqr(void *, int m, int n, int k, float *a, int ld, const float *t, float *, int, int *)
{
    return fake_enqueue([=] { return orgqr(a, ld, m, n, k, t), 0; });
}
int cusolverDnDorgqr(void *, int m, int n, int k, double *a, int ld, const double *t, double *, int, int *)
{
    return fake_enqueue([=] { return orgqr(a, ld, m, n, k, t), 0; });
}
int cusolverDnXsyevd_bufferSize(void *, void *, int, int, int64_t, int, const void *, int64_t, int, const void *, int, size_t *device, size_t *host) { return SOME, 0; }
int cusolverDnXsyevd(void *, void *, int vectors, int, int64_t n, int type, void *a, int64_t ld, int, void *w, int, void *, size_t, void *, size_t, int *info)
{
    BOTH(syevd(vectors, (T *)a, ld, n, (T *)w); *info = 0);
}
int cusolverDnXgesvdp_bufferSize(void *, void *, int, int, int64_t, int64_t, int, const void *, int64_t, int, const void *, int, const void *, int64_t, int, const void *, int64_t, int, size_t *device, size_t *host) { return SOME, 0; }
int cusolverDnXgesvdp(void *, void *, int vectors, int economy, int64_t m, int64_t n, int type, void *a, int64_t ld, int, void *s, int, void *u, int64_t ldu, int, void *v, int64_t ldv, int, void *, size_t, void *, size_t, int *info, double *shifted)
{
    *shifted = n % 2 ? 1e30 : 0; /* of odd sizes: so that the other way is taken, too */
    if (!vectors)
        BOTH(for (int64_t i = 0; i < n; i++)((T *)s)[i] = (T)(i + 1)); /* cuSOLVER's are wrong, too */
    BOTH(*info = 0; if (!(n % 2)) svd(vectors, economy ? n : m, (T *)a, ld, m, n, (T *)s, (T *)u, ldu, (T *)v, ldv));
}
int cusolverDnXgesvd_bufferSize(void *, void *, signed char, signed char, int64_t, int64_t, int, const void *, int64_t, int, const void *, int, const void *, int64_t, int, const void *, int64_t, int, size_t *device, size_t *host) { return SOME, 0; }
int cusolverDnXgesvd(void *, void *, signed char jobu, signed char, int64_t m, int64_t n, int type, void *a, int64_t ld, int, void *s, int, void *u, int64_t ldu, int, void *vt, int64_t ldvt, int, void *, size_t, void *, size_t, int *info)
{
    BOTH(std::vector<T> v((size_t)n * n); svd(jobu != 'N', jobu == 'A' ? m : n, (T *)a, ld, m, n, (T *)s, (T *)u, ldu, v.data(), n); *info = 0;
         for (int64_t i = 0; i < n && jobu != 'N'; i++) for (int64_t j = 0; j < n; j++)((T *)vt)[i + j * ldvt] = v[j + i * n]);
}
int cufftGetVersion(int *v) { return *v = 12000, 0; }
int cufftCreate(int *p)
{
    LOCK;
    static int made;
    return *p = ++made, 0;
}
int cufftDestroy(int p)
{
    LOCK;
    return plans.erase(p), 0;
}
int cufftSetAutoAllocation(int, int) { return 0; }
int cufftMakePlanMany(int p, int rank, int *n, int *, int, int, int *, int, int, int type, int batch, size_t *work)
{
    LOCK;
    plans[p] = { rank, { n[0], rank > 1 ? n[1] : 1, rank > 2 ? n[2] : 1 }, type, batch };
    return *work = 256, 0;
}
int cufftSetWorkArea(int, void *) { return 0; }
int cufftSetStream(int, void *) { return 0; }
int cufftExecC2C(int, void *, void *, int) { return 1; }
int cufftExecR2C(int p, void *from, void *to) { return transform<float>(p, from, to, false); }
int cufftExecC2R(int p, void *from, void *to) { return transform<float>(p, from, to, true); }
int cufftExecD2Z(int p, void *from, void *to) { return transform<double>(p, from, to, false); }
int cufftExecZ2D(int p, void *from, void *to) { return transform<double>(p, from, to, true); }
}
