/* vector.h: vectors of sixteen floats.  This text stands in front of kernels that work on whole vectors
 * (wide.c says which); the library itself does not include it.  It needs AVX-512, of gcc or clang.
 *
 * Functions are straight-line; vm has a bit for each lane.  v_exp and its kin keep the bounds that their
 * namesakes of math_f32.def state, on every float: tests/t_math.c runs both. */
typedef float vf __attribute__((vector_size(64)));
typedef float vu __attribute__((vector_size(64), aligned(4), may_alias)); /* as it lies in memory */
typedef int vi __attribute__((vector_size(64)));
typedef unsigned short vm;
#undef VECTOR
#define VECTOR static __inline__ __attribute__((always_inline))
#define v_all(x) ((float)(x) - (vf){ 0 })

#ifdef __clang__
VECTOR vf v_sel(vm c, vf a, vf b) { return (vf)__builtin_ia32_selectps_512(c, a, b); }
VECTOR vf v_least(vf a, vf b) { return (vf)__builtin_ia32_minps512(a, b, 4); } /* a < b ? a : b, so b if either is NaN */
VECTOR vf v_most(vf a, vf b) { return (vf)__builtin_ia32_maxps512(a, b, 4); }
VECTOR vf v_sqrt(vf a) { return (vf)__builtin_ia32_sqrtps512(a, 4); }
VECTOR vf v_load(const float *p, vm c) { return (vf)__builtin_ia32_loadups512_mask((const vf *)p, (vf){ 0 }, c); }
VECTOR void v_store(float *p, vf a, vm c) { __builtin_ia32_storeups512_mask((vf *)p, a, c); }
VECTOR void v_stream(float *p, vf a) { __builtin_nontemporal_store(a, (vf *)p); }
VECTOR vf v_pick(vf a, vi k, vf b) { return (vf)__builtin_ia32_vpermi2varps512(a, k, b); } /* of a's and b's lanes the k-th, modulo 32 */
#else
VECTOR vf v_sel(vm c, vf a, vf b) { return (vf)__builtin_ia32_blendmps_512_mask(b, a, c); }
VECTOR vf v_least(vf a, vf b) { return (vf)__builtin_ia32_minps512_mask(a, b, a, (vm)-1, 4); }
VECTOR vf v_most(vf a, vf b) { return (vf)__builtin_ia32_maxps512_mask(a, b, a, (vm)-1, 4); }
VECTOR vf v_sqrt(vf a) { return (vf)__builtin_ia32_sqrtps512_mask(a, a, (vm)-1, 4); }
VECTOR vf v_load(const float *p, vm c) { return (vf)__builtin_ia32_loadups512_mask(p, (vf){ 0 }, c); }
VECTOR void v_store(float *p, vf a, vm c) { __builtin_ia32_storeups512_mask(p, a, c); }
VECTOR void v_stream(float *p, vf a) { __builtin_ia32_movntps512(p, a); }
VECTOR vf v_pick(vf a, vi k, vf b) { return (vf)__builtin_ia32_vpermi2varps512_mask(a, k, b, (vm)-1); }
#endif
#define v_compare(a, b, how) ((vm)__builtin_ia32_cmpps512_mask(a, b, how, (vm)-1, 4))
VECTOR vm v_eq(vf a, vf b) { return v_compare(a, b, 0); }
VECTOR vm v_ne(vf a, vf b) { return v_compare(a, b, 4); }
VECTOR vm v_lt(vf a, vf b) { return v_compare(a, b, 1); }
VECTOR vm v_le(vf a, vf b) { return v_compare(a, b, 2); }
VECTOR vm v_gt(vf a, vf b) { return v_compare(b, a, 1); }
VECTOR vm v_ge(vf a, vf b) { return v_compare(b, a, 2); }
#define v_rounded(a, how) ((vf)__builtin_ia32_rndscaleps_mask(a, how, (vf){ 0 }, (vm)-1, 4))
VECTOR vf v_rint(vf a) { return v_rounded(a, 8); }
VECTOR vf v_floor(vf a) { return v_rounded(a, 9); }
VECTOR vf v_ceil(vf a) { return v_rounded(a, 10); }
VECTOR vf v_trunc(vf a) { return v_rounded(a, 11); }
VECTOR vf v_add(vf a, vf b) { return a + b; }
VECTOR vf v_fabs(vf a) { return (vf)((vi)a & 0x7fffffff); }
VECTOR vf v_copysign(vf a, vf b) { return (vf)(((vi)a & 0x7fffffff) | ((vi)b & (-0x7fffffff - 1))); }
VECTOR vf v_scale(vf a, vf n) { return (vf)__builtin_ia32_scalefps512_mask(a, n, (vf){ 0 }, (vm)-1, 4); } /* a 2^n, rounded once */
VECTOR vf v_exponent(vf a) { return (vf)__builtin_ia32_getexpps512_mask(a, (vf){ 0 }, (vm)-1, 4); }
VECTOR vf v_within(vf a, vf b) { return (vf)__builtin_ia32_rangeps512_mask(a, b, 2, (vf){ 0 }, (vm)-1, 4); } /* the lesser size, a's sign */

/* 1 / a for normal a and 1 / a: one Newton step */
VECTOR vf v_inverse(vf a)
{
    vf r = (vf)__builtin_ia32_rcp14ps512_mask(a, (vf){ 0 }, (vm)-1);
    return r * (1 - a * r) + r;
}

/* ---- halves of halves ---- */
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
VECTOR double v_sum(vf a)
{
    union { vf a; v8 h[2]; } x = { a };
    union { v8 a; v4 h[2]; } y = { x.h[0] + x.h[1] };
    v4 z = y.h[0] + y.h[1];
    return ((double)z[0] + (double)z[1]) + ((double)z[2] + (double)z[3]);
}
#define V_FOLD(name, op) \
    VECTOR float name(vf a) \
    { \
        union { vf v; float f[16]; } x = { a }; \
        for (int w = 8; w; w >>= 1) { \
            for (int i = 0; i < w; i++) { \
                x.f[i] = x.f[i + w] op x.f[i] ? x.f[i + w] : x.f[i]; \
            } \
        } \
        return x.f[0]; \
    }
V_FOLD(v_max_lane, >)
V_FOLD(v_min_lane, <)

/* The n < 16 floats at p as a vector, and back. */
VECTOR const float *v_head(float *t, const float *p, i64 n)
{
    *(vf *)t = v_load(p, (vm)((1u << n) - 1));
    return t;
}
/* Lane numbers against x - first, for positions of any size. */
VECTOR vf v_lanes(void) { return (vf){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }; }
VECTOR vf v_apart(i64 x, i64 first) { return v_all(x < first ? -1 : x - first > 16 ? 16 : (float)(int)(x - first)); }

/* ---- exponentials: x = n ln2 + r; where n is too large for that r is cut off, and the scaling overflows ---- */
VECTOR vf v_exp_tail(vf r)
{
    vf q = r * 0x1.6a4004p-10f + 0x1.1239ecp-7f;
    q = q * r + 0x1.5558bep-5f;
    q = q * r + 0x1.555492p-3f;
    return q * r + 0x1.fffffcp-2f;
}
VECTOR vf v_exp_rest(vf x, vf n)
{
    return v_within(x - n * 0x1.62e400p-1f - n * 0x1.7f7d1cp-20f, v_all(0.375f));
}
VECTOR vf v_exp(vf x)
{
    vf n = v_rint(x * 0x1.715476p+0f);
    vf r = v_exp_rest(x, n);
    return v_scale((v_exp_tail(r) * r + 1) * r + 1, n);
}
VECTOR vf v_expm1(vf x)
{
    vf n = v_rint(x * 0x1.715476p+0f);
    vf r = v_exp_rest(x, n);
    vf s = v_scale(v_all(0.5f), n); /* 2^n would overflow too early */
    vf y = 2 * (s * (r * r * v_exp_tail(r) + r) + (s - 0.5f));
    return v_sel(v_gt(x, v_all(88.8f)), v_scale(v_all(1), n), v_copysign(y, x));
}
/* tanh a in 25 pieces between 1/8 and 10, four an octave, and x + c x^3 + ... below: p(a - left end), the coefficients
 * picked by the low bits of a's exponent and the first two of its fraction, lowest power first. */
static const vf v_tanh0a = {
    0.964027584f, 0.986614287f, 0.995054781f, 0.998177886f, 0.999329329f, 0.999909222f, 0.999987721f,
    0.999998331f, 0.999999762f, 0, 0, 0, 0, 0, 0, 0 };
static const vf v_tanh0b = {
    0.124352999f, 0.154990733f, 0.185333207f, 0.215326339f, 0.244918659f, 0.302709728f, 0.3583574f,
    0.411570042f, 0.462117165f, 0.554599702f, 0.635148942f, 0.703905582f, 0.761594176f, 0.848283648f,
    0.905148268f, 0.941375554f };
static const vf v_tanh1a = {
    0.070650287f, 0.0265917983f, 0.00986584369f, 0.00364080863f, 0.00134035654f, 0.000181502153f,
    2.45655629e-05f, 3.32462241e-06f, 4.49717874e-07f, 0, 0, 0, 0, 0, 0, 1 };
static const vf v_tanh1b = {
    0.98453629f, 0.975977838f, 0.965651572f, 0.95363456f, 0.940014839f, 0.908366799f, 0.871579945f,
    0.830610096f, 0.786447704f, 0.692419112f, 0.59658581f, 0.5045169f, 0.419974804f, 0.280415148f, 0.180706739f,
    0.113812111f };
static const vf v_tanh2a = {
    -0.068094328f, -0.0262239035f, -0.00981164724f, -0.00363204163f, -0.00133117684f, -0.0001803552f,
    -2.44120874e-05f, -3.30388389e-06f, -4.44817942e-07f, 0, 0, 0, 0, 0, 0, 0 };
static const vf v_tanh2b = {
    -0.122428112f, -0.151265353f, -0.178964958f, -0.205340177f, -0.230224654f, -0.274968982f, -0.312334895f,
    -0.341852367f, -0.363427669f, -0.384014368f, -0.37892139f, -0.355133682f, -0.319875509f, -0.237886965f,
    -0.163572326f, -0.107140981f };
static const vf v_tanh3a = {
    0.0419750623f, 0.016904762f, 0.00642693229f, 0.00239300635f, 0.000848477124f, 0.000115053685f,
    1.5574944e-05f, 2.10791495e-06f, 2.77925352e-07f, 0, 0, 0, 0, 0, 0, -0.333342671f };
static const vf v_tanh3b = {
    -0.313042223f, -0.30197975f, -0.288822472f, -0.273775399f, -0.257067293f, -0.219666868f, -0.178702608f,
    -0.136260733f, -0.0943260714f, -0.0178745799f, 0.0418278016f, 0.081858933f, 0.10407646f, 0.108605288f,
    0.0879317075f, 0.0629429296f };
static const vf v_tanh4a = {
    -0.017384205f, -0.00756638544f, -0.00295267487f, -0.00110967597f, -0.00034768827f, -4.71960811e-05f,
    -6.38989104e-06f, -8.64825267e-07f, -1.0799296e-07f, 0, 0, 0, 0, 0, 0, 0.000310405594f };
static const vf v_tanh4b = {
    0.0814550593f, 0.0991650745f, 0.115293577f, 0.129626408f, 0.141996294f, 0.160425633f, 0.170229942f,
    0.171786427f, 0.166742653f, 0.138646066f, 0.0994924009f, 0.0599795319f, 0.0238954723f, -0.015038128f,
    -0.0259482712f, -0.0237153787f };
static const vf v_tanh5a = {
    0.0039934027f, 0.00193090842f, 0.000777961628f, 0.000295614969f, 6.9948459e-05f, 9.50452159e-06f,
    1.28699446e-06f, 1.74188528e-07f, 1.97798027e-08f, 0, 0, 0, 0, 0, 0, 0.130619094f };
static const vf v_tanh5b = {
    0.101225525f, 0.0900069028f, 0.0777444467f, 0.0647422299f, 0.0513087325f, 0.0243414678f, -0.000975404866f,
    -0.02293461f, -0.0432004854f, -0.0614629388f, -0.0626971126f, -0.0531628244f, -0.0322898626f,
    -0.0096782241f, 0.00132813479f, 0.00458708266f };
VECTOR vf v_tanh(vf x)
{
    vf a = v_least(v_all(9.1f), v_fabs(x));
    vi k = (vi)v_most(v_all(0.12f), a) >> 21;
    vf d = a - v_sel(v_ge(a, v_all(0.125f)), (vf)((vi)a & -0x200000), v_all(0));
    vf p = v_pick(v_tanh5a, k, v_tanh5b);
    p = p * d + v_pick(v_tanh4a, k, v_tanh4b);
    p = p * d + v_pick(v_tanh3a, k, v_tanh3b);
    p = p * d + v_pick(v_tanh2a, k, v_tanh2b);
    p = p * d + v_pick(v_tanh1a, k, v_tanh1b);
    p = p * d + v_pick(v_tanh0a, k, v_tanh0b);
    return v_copysign(p, x);
}
VECTOR vf v_sigmoid(vf x)
{
    vf e = v_exp(-v_fabs(x));
    return v_sel(v_lt(x, v_all(0)), e, v_all(1)) * v_inverse(1 + e);
}

/* ---- logarithms: x = 2^k (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1] ---- */
VECTOR vf v_log_tail(vf f)
{
    vf s = f * f;
    vf q = s * -0x1.38cdb8p-4f - 0x1.0d81e6p-3f;
    vf p = s * 0x1.055f9cp-3f + 0x1.22d904p-3f;
    q = q * s - 0x1.54728ep-3f;
    p = p * s + 0x1.99a01ep-3f;
    q = q * s - 0x1.000226p-2f;
    p = p * s + 0x1.555554p-2f;
    return s * (f * (q * f + p) - 0.5f);
}
VECTOR vf v_log(vf x)
{
    vf k = v_exponent(x), m = v_scale(x, -k); /* of 0 and infinity k is the logarithm */
    vm half = v_ge(m, v_all(0x1.6a09e8p+0f));
    vf n = v_sel(half, k + 1, k), f = v_sel(half, m * 0.5f, m) - 1;
    vf y = n * 0x1.62e430p-1f + (v_log_tail(f) + f);
    y = v_sel(v_eq(k - k, v_all(0)), y, k);
    return v_sel(v_lt(x, v_all(0)), v_all(__builtin_nanf("")), y);
}
/* log(1 + x) for finite x > -1: f = x / 2^k + (1 / 2^k - 1) is rounded once, and is x itself near zero */
VECTOR vf v_log1p_of(vf x)
{
    vf k = v_exponent(x * 0x1.6a09e6p-2f + 0x1.6a09e6p-2f) + 2;
    vf q = v_scale(v_all(1), -k);
    vf f = x * q + (q - 1);
    return k * 0x1.62e430p-1f + (v_log_tail(f) + f);
}
VECTOR vf v_log1p(vf x)
{
    vf y = v_log1p_of(x);
    y = v_copysign(v_sel(v_lt(x, v_all(__builtin_inff())), y, x), x);
    y = v_sel(v_eq(x, v_all(-1)), v_all(-__builtin_inff()), y);
    return v_sel(v_lt(x, v_all(-1)), v_all(__builtin_nanf("")), y);
}
/* max(x, 0) + log(1 + e), e = e^-|x| */
VECTOR vf v_softplus(vf x)
{
    return v_most(v_all(0), x) + v_log1p_of(v_exp(-v_fabs(x)));
}
