/* pool.cu: any pooling, with a thread for each element of the result. See windows.cu. */
#if FORWARD || GATHER
extern "C" __global__ void __launch_bounds__(256) pool(const __grid_constant__ args p)
{
    follow();
    const i64 spots = p.out[0] * p.out[1] * p.out[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < spots * p.planes; e += gridDim.x * 256ll) {
        const INDEX outer = (INDEX)e / (INDEX)(PLANES_INSIDE ? p.planes : spots),
                    inner = (INDEX)e - outer * (INDEX)(PLANES_INSIDE ? p.planes : spots);
        const INDEX spot = PLANES_INSIDE ? outer : inner, plane = PLANES_INSIDE ? inner : outer,
                    row = spot / (INDEX)p.out[2];
        const int u2 = (int)(spot - row * (INDEX)p.out[2]), u1 = (int)(row % (INDEX)p.out[1]),
                  u0 = (int)(row / (INDEX)p.out[1]);
        const window w = window_at(p, u0, u1, u2);
        const T *x = p.x + line(p, plane, 0);
        T *y = p.y + line(p, plane, 1) + cell(p.slot[1], u0, u1, u2);
        const i64 key = KEY == POOL_KEY_MARKS || KEY == POOL_KEY_BITS
                            ? line(p, plane, 2) + cell(p.slot[2], u0, u1, u2)
                        : KEY == POOL_KEY_X ? line(p, plane, 2)
                                            : 0;
        int number = 0;
        if (FORWARD && MODE == POOL_MAX) {
            const V most = largest(w, x, p.slot[0], &number, p);
            *y = EPILOGUE ? put<T>(finished(p, plane, (A)most)) : put<T>(most);
            if (KEY == POOL_KEY_MARKS) {
                ((MARK *)p.key)[key] = (MARK)number;
            } else if (KEY == POOL_KEY_BITS) {
                ((MARK *)p.key)[key] = (MARK)equal_cells(w, x, p.slot[0], most, p);
            }
        } else if (FORWARD) {
            A sum = 0;
            EACH_CELL(w, a, b, c) {
                sum += get<A>(x[cell(p.slot[0], a, b, c)]);
            }
#if FLOAT
            *y = put<T>(finished(p, plane, sum / (A)share(p, w)));
#else
            *y = SIGNED ? (T)((i64)sum / share(p, w)) : (T)(sum / (u64)share(p, w));
#endif
        } else if (KEY == POOL_KEY_MARKS) {
            int at[3];
            marked(p, w, ((const MARK *)p.key)[key], at);
            *y = x[cell(p.slot[0], at[0], at[1], at[2])];
        } else {
            const T *k = (const T *)p.key + key;
            const V most = largest(w, k, p.slot[2], &number, p);
            A sum = 0;
            EACH_CELL(w, a, b, c) {
                sum += get<V>(k[cell(p.slot[2], a, b, c)]) == most ? get<A>(x[cell(p.slot[0], a, b, c)])
                                                                   : (A)0;
            }
            *y = put<T>(sum);
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(256) pool(const __grid_constant__ args p)
{
    follow();
    const i64 cells = p.in[0] * p.in[1] * p.in[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < cells * p.planes; e += gridDim.x * 256ll) {
        const INDEX outer = (INDEX)e / (INDEX)(PLANES_INSIDE ? p.planes : cells),
                    inner = (INDEX)e - outer * (INDEX)(PLANES_INSIDE ? p.planes : cells);
        const INDEX spot = PLANES_INSIDE ? outer : inner, plane = PLANES_INSIDE ? inner : outer,
                    row = spot / (INDEX)p.in[2];
        const int i2 = (int)(spot - row * (INDEX)p.in[2]), i1 = (int)(row % (INDEX)p.in[1]),
                  i0 = (int)(row / (INDEX)p.in[1]);
        const T *y = p.y + line(p, plane, 1);
        const i64 key = KEY == POOL_KEY_NONE ? 0 : line(p, plane, 2);
        int f0, t0, f1, t1, f2, t2, number;
        A sum = 0;
        holding(p, 0, i0, &f0, &t0);
        holding(p, 1, i1, &f1, &t1);
        holding(p, 2, i2, &f2, &t2);
        for (int u0 = f0; u0 < t0; u0++) {
            for (int u1 = f1; u1 < t1; u1++) {
                for (int u2 = f2; u2 < t2; u2++) {
                    const window w = window_at(p, u0, u1, u2);
                    const A g = get<A>(y[cell(p.slot[1], u0, u1, u2)]);
                    if (KEY == POOL_KEY_MARKS) {
                        int at[3];
                        marked(p, w, ((const MARK *)p.key)[key + cell(p.slot[2], u0, u1, u2)], at);
                        sum += at[0] == i0 && at[1] == i1 && at[2] == i2 ? g : (A)0;
                    } else if (KEY == POOL_KEY_BITS) {
                        const int bits = (int)((const MARK *)p.key)[key + cell(p.slot[2], u0, u1, u2)];
                        sum += bits >> (number_in(p, w, i0, i1, i2) & (POOL_BITS - 1)) & 1 ? g : (A)0;
                    } else if (KEY == POOL_KEY_X) {
                        const T *k = (const T *)p.key + key;
                        sum += get<V>(k[cell(p.slot[2], i0, i1, i2)]) == largest(w, k, p.slot[2], &number, p)
                                   ? g
                                   : (A)0;
                    } else {
                        sum += g / (A)share(p, w);
                    }
                }
            }
        }
        p.x[line(p, plane, 0) + cell(p.slot[0], i0, i1, i2)] = put<T>(sum);
    }
}
#endif
