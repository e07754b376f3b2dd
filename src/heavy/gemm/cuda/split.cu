/* split.cu: float32 products on Hopper's tensor cores, with operands split into pairs of halves.
 *
 * Each x is scaled by a power of two of its row, x' = x * 2^e such that the row's largest is below 2^15,
 * and stored as
 *
 *   high = half(x'),  low = half((x' - high) * 2^11)         22 bits of x, down to 2^-28 of the row's largest
 *
 *   a b = (high high + 2^-11 (high low + low high)) * 2^-(ea + eb)     low low is below float32's last bit
 *
 * Tensor cores truncate their sums instead of rounding.  So the high products are summed over 64 terms
 * only and then added in true float32.  The corrections have a separate accumulator, where truncation does
 * not matter.
 *
 * A block computes a TM x TN tile of C with two groups of four warps.  A third group loads the operands
 * (split_tiles.cu), SLOTS steps of 64 terms ahead. */
/* ---- elements of the result ---- */

struct spot {                   /* a row or a column */
    i64 c, c0;                  /* its part of the offset in C and C0 */
    int fact, channel;          /* channel: index of the bias */
    bool is;                    /* it exists */
};

/* The exponent of a row's or column's scale, plus INFINITE if it contains an infinity. */
enum { INFINITE = 1 << 16 };
__device__ __forceinline__ int fact(const seen *s)
{
    const uint2 has = __ldg((const uint2 *)s);
    return exponent(has.x) + (has.y ? INFINITE : 0);
}
__device__ __forceinline__ int row_fact(const args &p, const part &q, int row)
{
    const int shared = PHASES ? q.group_rows : p.a_seen_rows;
    return row < q.m ? fact(p.a_seen + q.batch * p.a_seen_batch + row / shared) : 0;
}
__device__ __forceinline__ int col_fact(const args &p, int batch, int col)
{
    return col < p.n ? fact(p.b_seen + batch * p.b_seen_batch + col / p.b_seen_cols) : 0;
}

__device__ __forceinline__ spot row_at(const args &p, const part &q, int row, int fact)
{
    const int group = row / q.group_rows;
    int in_group = row - group * q.group_rows;
#if PHASES
    const int line = in_group / q.width, col = in_group - line * q.width;
    in_group = q.first + line * p.stride[0] * p.out[1] + col * p.stride[1];
#endif
    return { q.batch * p.cs.batch + group * p.cs.group + in_group * p.cs.row,
             q.batch * p.c0s.batch + group * p.c0s.group + in_group * p.c0s.row, fact, 0, row < q.m };
}

__device__ __forceinline__ spot col_at(const args &p, int batch, int col, int fact)
{
    spot s = { 0, 0, fact, col, col < p.n };
    i64 tap = 0;
#if MODE == 2
    const int wide = (p.channels + TN - 1) / TN * TN, t = col / wide;
    s.channel = col - t * wide;
    s.is = s.is && s.channel < p.channels;
    tap = t / p.taps1 * p.tap_stride[0] + t % p.taps1 * p.tap_stride[1];
#endif
    s.c = s.channel * p.cs.col + tap;
    s.c0 = s.channel * p.c0s.col + tap;
    return s;
}

/* Undoes the scales of sum v, applies the epilogue and stores the element. */
__device__ __forceinline__ void finished(const args &p, int batch, const spot &r, const spot &c, int row,
                                         int col, float v)
{
    const int facts = r.fact + c.fact;
    v = ldexpf(v, -facts);
#if MODE == 0
    if (facts >= INFINITE / 2) {        /* recompute plainly: an infinity has no usable halves */
        v = 0;
        for (int k = 0; k < p.k; k++) {
            v = fmaf(p.plain_a[batch * p.as[0] + row * p.as[1] + k * p.as[2]],
                     p.plain_b[batch * p.bs[0] + k * p.bs[1] + col * p.bs[2]], v);
        }
    }
#endif
    v *= p.alpha;
    if (p.c0) {
        v += p.beta * p.c0[r.c0 + c.c0];
    }
    if (p.bias) {
        v += p.bias[batch * p.bias_batch + c.channel];
    }
    p.c[r.c + c.c] = finish(v, p.act);
}

extern "C" __global__ void __launch_bounds__(256) add_up(const __grid_constant__ args p)
{
    follow();
    const i64 each = (i64)p.m * p.n, count = each * p.parts;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const int z = (int)(e / each), row = (int)((e - z * each) / p.n),
                  col = (int)(e - z * each - (i64)row * p.n);
        const part q = part_at(p, z);
        if (PHASES && row >= q.m) {
            continue;
        }
        const spot r = row_at(p, q, row, row_fact(p, q, row)),
                   c = col_at(p, q.batch, col, col_fact(p, q.batch, col));
        float v = 0;
        for (int s = 0; s < p.splits; s++) {
            v += p.partial[s * count + e];
        }
        if (c.is) {
            finished(p, q.batch, r, c, row, col, v);
        }
    }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* ---- the product ---- */

enum { R = TN / 2 };            /* accumulators of a thread */
enum { LIES = MODE == 2 ? TK * ROW : ALONG };   /* MODE 2: k runs down the columns of a tile */
enum {
    WIDE = TN + 4,
    MINE = TN == 64 ? 64 : 128
}; /* floats of a row of a finished tile; threads that store one */

/* d (+)= the product of 64 rows of one tile with all of another; wgmma() is printed by hopper.c. */
__device__ __forceinline__ void multiply(float (&d)[R], u64 a, u64 b, int keep)
{
    enum { ON = MODE == 2 ? 16 * ROW >> 4 : 32 >> 4 };
#pragma unroll
    for (int i = 0; i < TK / 16; i++) {
        wgmma(d, a + i * ON, b + i * ON, keep || i > 0);
    }
}

struct job {                    /* the work of a block */
    part q;
    int row, col, from, end;
    u32 slots, full, empty;     /* addresses in shared memory: tiles, barriers */
    float *space;               /* the slots' memory, reused for the finished tile */
    int *facts;                 /* of the tile's rows, then of its columns */
};

/* The loading group: loads the operands of each step as soon as its slot is free. */
__device__ __forceinline__ void bring(const args &p, const job &j)
{
    const u16 *a = p.a + j.q.batch * p.a_batch, *b = p.b + (PHASES ? blockIdx.z : j.q.batch) * p.b_batch;
#if MODE == 0
    a += (i64)(j.row / TM) * p.steps * A_BYTES;         /* tiles are 2 * A_BYTES bytes, A_BYTES halves */
    b += (i64)(j.col / TN) * p.steps * B_BYTES;
    if (threadIdx.x != 0) {
        return;
    }
#elif MODE == 1
    const int2 *const taps = p.taps + j.q.phase * p.steps * (TK / UNIT);
    window w;
    windows(p, j.q, w, j.row);
    b += (i64)(j.col / TN) * p.steps * B_BYTES;
#else
    const int wide = (p.channels + TN - 1) / TN * TN;
#endif
    for (int step = j.from, n = 0; step < j.end; step++, n++) {
        const u32 slot = n % SLOTS, to = j.slots + slot * SLOT;
        [[maybe_unused]] const u32 full = j.full + slot * 8;
        if (n >= SLOTS) {
            barrier_wait(j.empty + slot * 8, (n / SLOTS - 1) & 1);
        }
#if MODE == 0
        barrier_expect(full, SLOT);
        copy_block(to, a + (i64)step * A_BYTES, 2 * A_BYTES, full);
        copy_block(to + 2 * A_BYTES, b + (i64)step * B_BYTES, 2 * B_BYTES, full);
#else
#if MODE == 1
        if (threadIdx.x == 0) {
            barrier_expect(full, 2 * B_BYTES);
            copy_block(to + 2 * A_BYTES, b + (i64)step * B_BYTES, 2 * B_BYTES, full);
        }
        load_windows(p, to, a, taps, w, step);
#else
        load_positions(p, to, a, b, j.row, j.col % wide, j.col / wide, step);
#endif
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (n > 0) { /* the previous step's copies are complete: make them visible to the tensor cores */
            asm volatile("cp.async.wait_group 1;\n\tfence.proxy.async.shared::cta;" ::: "memory");
            barrier_arrive(j.full + (n - 1) % SLOTS * 8);
        }
#endif
    }
#if MODE != 0
    asm volatile("cp.async.wait_group 0;\n\tfence.proxy.async.shared::cta;" ::: "memory");
    if (j.end > j.from) {
        barrier_arrive(j.full + (j.end - j.from - 1) % SLOTS * 8);
    }
#endif
}

/* Stores 64 rows of a finished tile with 128 threads, along the axis of C that is contiguous. */
__device__ __forceinline__ void deliver(const args &p, const job &j, const float *tile, int row, int t)
{
    float *const to = p.partial ? p.partial + (i64)(blockIdx.y * gridDim.z + blockIdx.z) * p.m * p.n : 0;
    if (to || p.cs.col == 1) {
        const int c = t % MINE, col = j.col + c;
        const spot across = col_at(p, j.q.batch, col, j.facts[TM + (c < TN ? c : 0)]);
        for (int i = t / MINE; c < TN && i < 64 && row + i < j.q.m; i += 128 / MINE) {
            const float v = tile[i * WIDE + c];
            if (to && col < p.n) {
                to[(i64)(row + i) * p.n + col] = v;
            } else if (!to && across.is) {
                finished(p, j.q.batch, row_at(p, j.q, row + i, j.facts[row - j.row + i]), across, row + i,
                         col, v);
            }
        }
        return;
    }
    const int i = t & 63;
    const spot along = row_at(p, j.q, row + i, j.facts[row - j.row + i]);
    for (int c = t >> 6; c < TN && along.is; c += 2) {
        const spot across = col_at(p, j.q.batch, j.col + c, j.facts[TM + c]);
        if (across.is) {
            finished(p, j.q.batch, along, across, row + i, j.col + c, tile[i * WIDE + c]);
        }
    }
}

__device__ __forceinline__ void consume(const args &p, const job &j)
{
    const int wg = (threadIdx.x >> 7) - 1, me = threadIdx.x - 128;
    if (me < TM) {
        j.facts[me] = row_fact(p, j.q, j.row + me);
    } else if (me < TM + TN) {
        j.facts[me] = col_fact(p, j.q.batch, j.col + me - TM);
    }
    float sum[R], high_sum[R], low_sum[R];
#pragma unroll
    for (int i = 0; i < R; i++) {
        sum[i] = low_sum[i] = high_sum[i] = 0;
    }
    settle(low_sum); /* zero here, because zeroing between two steps would stall the tensor cores */
    settle(high_sum);
    for (int step = j.from, n = 0; step < j.end; step++, n++) {
        const u32 slot = n % SLOTS, at = j.slots + slot * SLOT, half_a = wg * 64 * ROW;
        const u64 a_high = tile_at(at + half_a, LIES), a_low = tile_at(at + A_BYTES + half_a, LIES);
        const u64 b_high = tile_at(at + 2 * A_BYTES, LIES), b_low = tile_at(at + 2 * A_BYTES + B_BYTES, LIES);
        barrier_wait(j.full + slot * 8, n / SLOTS & 1);
        settle(high_sum);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(high_sum, a_high, b_high, 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        multiply(low_sum, a_high, b_low, 1);
        multiply(low_sum, a_low, b_high, 1);
        asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
        settle(high_sum);
        if (n > 0 && (threadIdx.x & 127) == 0) {        /* the previous step's slot is free */
            barrier_arrive(j.empty + (n - 1) % SLOTS * 8);
        }
#pragma unroll
        for (int i = 0; i < R; i++) {
            sum[i] += high_sum[i];
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    settle(low_sum);
#pragma unroll
    for (int i = 0; i < R; i++) {
        sum[i] += low_sum[i] * 0x1p-11f;
    }

    asm volatile("bar.sync 1, 256;" ::: "memory");      /* both groups have finished with all slots */
    float *const tile = j.space + wg * 64 * WIDE;
    const int t = threadIdx.x & 127, r0 = (t >> 5) * 16 + (t & 31) / 4;
#pragma unroll
    for (int i = 0; i < R; i += 2) {
        *(float2 *)&tile[(r0 + (i & 2) * 4) * WIDE + i / 4 * 8 + (t & 3) * 2] = make_float2(sum[i],
                                                                                            sum[i + 1]);
    }
    asm volatile("bar.sync 1, 256;" ::: "memory");
    deliver(p, j, tile, j.row + wg * 64, t);
}

extern "C" __global__ void __launch_bounds__(384, 1) product(const __grid_constant__ args p)
{
    follow();
    extern __shared__ __align__(1024) unsigned char space[];
    __shared__ __align__(8) u64 barriers[2 * SLOTS];
    __shared__ int facts[TM + TN];
    job j;
    /* Neighbouring blocks share operands: blocks go down eight tiles, then to the right. */
    const int down = (p.m + TM - 1) / TM, right = gridDim.x / down, band = blockIdx.x / (8 * right) * 8;
    const int high = down - band < 8 ? down - band : 8, in_band = blockIdx.x - band * right;
    j.q = part_at(p, blockIdx.z);
    j.row = (band + in_band % high) * TM;
    j.col = in_band / high * TN;
#if PHASES
    if (j.row >= j.q.m) {
        return;                 /* this phase has fewer rows */
    }
#endif
    const int each = (j.q.steps + p.splits - 1) / p.splits;
    j.from = blockIdx.y * each;
    j.end = j.from + each < j.q.steps ? j.from + each : j.q.steps;
    j.slots = ((u32)__cvta_generic_to_shared(space) + 1023) & ~1023u;
    j.space = (float *)(space + (j.slots - (u32)__cvta_generic_to_shared(space)));
    j.facts = facts;
    j.full = (u32)__cvta_generic_to_shared(barriers);
    j.empty = j.full + SLOTS * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_make(j.full + i * 8, MODE == 0 ? 1 : MODE == 1 ? 129 : 128);
            barrier_make(j.empty + i * 8, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        bring(p, j);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        consume(p, j);
    }
}
#else
extern "C" __global__ void product(const __grid_constant__ args) {}
#endif
