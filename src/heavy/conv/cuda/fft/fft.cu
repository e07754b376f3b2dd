/* fft.cu: convolution by Fourier transforms of tiles of N x N, computed in float32 for every dtype.
 *
 *   spectra    tiles of a real array to frequencies
 *   back       frequencies to tiles, of which a part is written */
/* ---- spectra in memory ---- */

#if HALVES
__device__ __forceinline__ cell cell_of(float re, float im, const float (&gain)[2])
{
    return halves_of(re * gain[0] * gain[1], im * gain[0] * gain[1]);
}

__device__ __forceinline__ void put_pair(cell *to, cell a, cell b)
{
    *(uint2 *)to = { a, b };
}
#else
__device__ __forceinline__ cell cell_of(float re, float im, const float (&)[2])
{
    return make_float2(re, im);
}

__device__ __forceinline__ void put_pair(cell *to, cell a, cell b)
{
    *(float4 *)to = make_float4(a.x, a.y, b.x, b.y);
}
#endif

/* R2 consecutive frequencies, from a multiple of BESIDE on. */
__device__ __forceinline__ void put_all(const args &p, cell *to, const float2 *v, float sign,
                                        const float (&gain)[2])
{
    enum { PAIR = BESIDE > 1 };
#pragma unroll
    for (int k = 0; k < R2; k += 1 + PAIR) {
        cell *at = to + k / BESIDE * BESIDE * p.rows * p.ld + k % BESIDE;
        const cell one = cell_of(v[k].x, sign * v[k].y, gain);
        if (PAIR) {
            put_pair(at, one, cell_of(v[k + PAIR].x, sign * v[k + PAIR].y, gain));
        } else {
            *at = one;
        }
    }
}

__device__ __forceinline__ void get_all(const args &p, const float2 *from, float2 *v)
{
    enum { PAIR = BESIDE > 1 };
#pragma unroll
    for (int k = 0; k < R2; k += 1 + PAIR) {
        const float2 *at = from + k / BESIDE * BESIDE * p.rows * p.ld + k % BESIDE;
        if (PAIR) {
            const float4 two = *(const float4 *)at;
            v[k] = make_float2(two.x, two.y);
            v[k + PAIR] = make_float2(two.z, two.w);
        } else {
            v[k] = *at;
        }
    }
}

/* ---- forward ---- */

/* A barrier for the compiler: all loads are issued before the first value is used.  For halves, which are
 * converted, it would issue six at a time. */
__device__ __forceinline__ void hold(float (&)[R1][2]) {}

template <class H> __device__ __forceinline__ void hold(H (&raw)[R1][2])
{
#pragma unroll
    for (int i = 0; i < R1; i++) {
        asm volatile("" : "+h"(raw[i][0].bits), "+h"(raw[i][1].bits));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) spectra(const __grid_constant__ args p)
{
    const block b = block_of(p, G);
    const float sign = p.conjugate ? -1.0f : 1.0f;
    __shared__ float gain[2];
    __shared__ corner corners[G];
    make_roots();
    make_corners(p, b, corners);
    make_gains(p, gain, false);
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R2; e += blockDim.x) { /* pairs of rows */
        const int n2 = e % R2, q = e / R2 % HALF, g = e / R2 / HALF;
        if (g >= b.tiles) {
            continue;
        }
        const corner c = corners[g];
        const bool one = has(c, 0, 2 * q), two = has(c, 0, 2 * q + 1);
        const T *from = p.x + c.at + 2 * q * p.stride[0] + n2 * p.stride[1];
        float2 v[R1], *to = memory + g * TILE + q * PITCH + n2;
        T raw[R1][2];
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++, from += R2 * p.stride[1]) {
            const bool in = has(c, 1, R2 * n1 + n2);
            raw[n1][0] = in && one ? from[0] : T{};
            raw[n1][1] = in && two ? from[p.stride[0]] : T{};
        }
        hold(raw);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++) {
            v[n1] = make_float2(get<float>(raw[n1][0]), get<float>(raw[n1][1]));
        }
        fft<R1, -1>::of(v);
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            to[R2 * k1] = cmul(v[k1], roots()[n2 * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int q = e % HALF, k1 = e / HALF % R1, g = e / HALF / R1;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE + q * PITCH + R2 * k1;
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            v[n2] = at[n2];
        }
        fft<R2, -1>::of(v);
#pragma unroll
        for (int k2 = 0; k2 < R2; k2++) {
            at[k2] = v[k2];
        }
    }
    __syncthreads();
    /* columns: rows 2m and 2m + 1 of each R2 */
    for (int e = threadIdx.x; e < G * HALF * (R2 / 2); e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, m = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 even[R1], odd[R1], *at = memory + g * TILE + m * PITCH;
        const int one = slot(i, 0), two = slot(i, 1);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++) {
            const float2 z = at[R2 / 2 * n1 * PITCH + one], w = at[R2 / 2 * n1 * PITCH + two];
            even[n1] = i == 0 ? make_float2(z.x, w.x) : make_float2(0.5f * (z.x + w.x), 0.5f * (z.y - w.y));
            odd[n1] = i == 0 ? make_float2(z.y, w.y) : make_float2(0.5f * (z.y + w.y), 0.5f * (w.x - z.x));
        }
        fft<R1, -1>::of(even);
        fft<R1, -1>::of(odd);
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            at[R2 / 2 * k1 * PITCH + one] = cmul(even[k1], roots()[2 * m * k1]);
            at[R2 / 2 * k1 * PITCH + two] = cmul(odd[k1], roots()[(2 * m + 1) * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, k1 = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE;
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            v[n2] = at[address_in_tile(R2 * k1 + n2, i)];
        }
        fft<R2, -1>::of(v);
        if (i > 0) {
            put_all(p, spectrum<cell>(p, b, i, R2 * k1, g), v, sign, gain);
            continue;
        }
#pragma unroll
        for (int k2 = 0; k2 < R2; k2++) {
            at[address_in_tile(R2 * k1 + k2, 0)] = v[k2];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * N; e += blockDim.x) { /* separates the two real columns */
        const int g = e % G, j = e / G, at_row = stands(j);
        if (g >= b.tiles) {
            continue;
        }
        const float2 z = memory[g * TILE + address_in_tile(at_row, 0)],
                     w = memory[g * TILE + address_in_tile(stands((N - j) % N), 0)];
        *spectrum<cell>(p, b, 0, at_row, g) = cell_of(0.5f * (z.x + w.x), sign * 0.5f * (z.y - w.y), gain);
        *spectrum<cell>(p, b, HALF, at_row, g) = cell_of(0.5f * (z.y + w.y), sign * 0.5f * (w.x - z.x), gain);
    }
}

/* ---- inverse ---- */

__device__ __forceinline__ void store(const args &p, i64 at, float v, const float (&gain)[2])
{
    v *= HALVES ? gain[0] * p.scale * gain[1] : p.scale;
    p.x[at] = put<T>(p.beta != 0 ? v + p.beta * get<float>(p.c0[at]) : v);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) back(const __grid_constant__ args p)
{
    const block b = block_of(p, G);
    __shared__ float gain[2];
    __shared__ corner corners[G];
    make_roots();
    make_corners(p, b, corners);
    make_gains(p, gain, true);
    for (int e = threadIdx.x; e < G * N; e += blockDim.x) {
        const int g = e % G, row = e / G;
        if (g >= b.tiles) {
            continue;
        }
        const float2 z = *spectrum<float2>(p, b, 0, row, g), w = *spectrum<float2>(p, b, HALF, row, g);
        memory[g * TILE + address_in_tile(row, 0)] = make_float2(z.x - w.y, z.y + w.x);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, k1 = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE;
        if (i > 0) {
            get_all(p, spectrum<float2>(p, b, i, R2 * k1, g), v);
        } else {
#pragma unroll
            for (int k2 = 0; k2 < R2; k2++) {
                v[k2] = at[address_in_tile(R2 * k1 + k2, 0)];
            }
        }
        fft<R2, 1>::of(v);
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            at[address_in_tile(R2 * k1 + n2, i)] = unturn(v[n2], roots()[n2 * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * (R2 / 2); e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, m = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 even[R1], odd[R1], *at = memory + g * TILE + m * PITCH;
        const int one = slot(i, 0), two = slot(i, 1);
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            even[k1] = at[R2 / 2 * k1 * PITCH + one];
            odd[k1] = at[R2 / 2 * k1 * PITCH + two];
        }
        fft<R1, 1>::of(even);
        fft<R1, 1>::of(odd);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++) {
            const float2 a = even[n1], c = odd[n1];
            at[R2 / 2 * n1 * PITCH + one] = i == 0 ? make_float2(a.x, c.x)
                                                   : make_float2(a.x - c.y, a.y + c.x);
            at[R2 / 2 * n1 * PITCH + two] = i == 0 ? make_float2(a.y, c.y)
                                                   : make_float2(a.x + c.y, c.x - a.y);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int q = e % HALF, k1 = e / HALF % R1, g = e / HALF / R1;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE + q * PITCH + R2 * k1;
#pragma unroll
        for (int k2 = 0; k2 < R2; k2++) {
            v[k2] = at[k2];
        }
        fft<R2, 1>::of(v);
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            at[n2] = unturn(v[n2], roots()[n2 * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R2; e += blockDim.x) {
        const int n2 = e % R2, q = e / R2 % HALF, g = e / R2 / HALF;
        if (g >= b.tiles) {
            continue;
        }
        const corner c = corners[g];
        const bool one = has(c, 0, 2 * q), two = has(c, 0, 2 * q + 1);
        i64 to = c.at + 2 * q * p.stride[0] + n2 * p.stride[1];
        float2 v[R1], *at = memory + g * TILE + q * PITCH + n2;
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            v[k1] = at[R2 * k1];
        }
        fft<R1, 1>::of(v);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++, to += R2 * p.stride[1]) {
            if (has(c, 1, R2 * n1 + n2)) {
                if (one) {
                    store(p, to, v[n1].x, gain);
                }
                if (two) {
                    store(p, to + p.stride[0], v[n1].y, gain);
                }
            }
        }
    }
}
