/* vector.h: vectors of sixteen floats.  This text precedes kernels over whole vectors (vector_kernel.c
 * decides which they are); the library itself does not include it.  It needs AVX-512 and gcc or clang.
 *
 * Functions are straight-line; vm has a bit for each lane.  v_exp and the others keep the error bounds of the
 * functions of the same names in math_f32.def, for every float: tests/t_math.c runs both.  EXACT_KERNELS is
 * defined in front of exact kernels (dialect_c.c), whose functions keep the bits of their namesakes too. */
typedef float vf __attribute__((vector_size(64)));
typedef float vu __attribute__((vector_size(64), aligned(4), may_alias)); /* in memory, unaligned */
typedef int vi __attribute__((vector_size(64)));
typedef unsigned short vm;
#undef VECTOR
#define VECTOR static __inline__ __attribute__((always_inline))
#define v_all(x) ((float)(x) - (vf){ 0 })

/* Bits of a float, in every lane.  In memory and marked used, not constants: gcc would rebuild a constant of
 * integers in every iteration, on the ports where vectors multiply. */
#define V_BITS(name, b) __attribute__((used)) static vi name = { b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b }
V_BITS(v_unsigned, 0x7fffffff);
V_BITS(v_piece, -0x100000); /* sign, exponent, three bits of the fraction */

#ifdef __clang__
VECTOR vf v_sel(vm c, vf a, vf b) { return (vf)__builtin_ia32_selectps_512(c, a, b); }
/* a < b ? a : b, so b if either is NaN */
VECTOR vf v_least(vf a, vf b) { return (vf)__builtin_ia32_minps512(a, b, 4); }
VECTOR vf v_most(vf a, vf b) { return (vf)__builtin_ia32_maxps512(a, b, 4); }
VECTOR vf v_sqrt(vf a) { return (vf)__builtin_ia32_sqrtps512(a, 4); }
VECTOR vf v_load(const float *p, vm c)
{
    return (vf)__builtin_ia32_loadups512_mask((const vf *)p, (vf){ 0 }, c);
}
VECTOR void v_store(float *p, vf a, vm c)
{
    __builtin_ia32_storeups512_mask((vf *)p, a, c);
}
VECTOR void v_stream(float *p, vf a)
{
    __builtin_nontemporal_store(a, (vf *)p);
}
/* lane i is lane k[i], modulo 32, of a and b together */
VECTOR vf v_pick(vf a, vi k, vf b)
{
    return (vf)__builtin_ia32_vpermi2varps512(a, k, b);
}
/* lane i is lane k[i], modulo 16, of a */
VECTOR vf v_lane(vf a, vi k)
{
    return (vf)__builtin_ia32_permvarsf512(a, k);
}
#else
VECTOR vf v_sel(vm c, vf a, vf b)
{
    return (vf)__builtin_ia32_blendmps_512_mask(b, a, c);
}
VECTOR vf v_least(vf a, vf b)
{
    return (vf)__builtin_ia32_minps512_mask(a, b, a, (vm)-1, 4);
}
VECTOR vf v_most(vf a, vf b)
{
    return (vf)__builtin_ia32_maxps512_mask(a, b, a, (vm)-1, 4);
}
VECTOR vf v_sqrt(vf a)
{
    return (vf)__builtin_ia32_sqrtps512_mask(a, a, (vm)-1, 4);
}
VECTOR vf v_load(const float *p, vm c)
{
    return (vf)__builtin_ia32_loadups512_mask(p, (vf){ 0 }, c);
}
VECTOR void v_store(float *p, vf a, vm c)
{
    __builtin_ia32_storeups512_mask(p, a, c);
}
VECTOR void v_stream(float *p, vf a)
{
    __builtin_ia32_movntps512(p, a);
}
VECTOR vf v_pick(vf a, vi k, vf b)
{
    return (vf)__builtin_ia32_vpermi2varps512_mask(a, k, b, (vm)-1);
}
VECTOR vf v_lane(vf a, vi k)
{
    return (vf)__builtin_ia32_permvarsf512_mask(a, k, (vf){ 0 }, (vm)-1);
}
#endif
/* bits of a where c is 1, of b where it is 0 */
VECTOR vf v_mix(vi c, vf a, vf b)
{
    return (vf)__builtin_ia32_pternlogd512_mask(c, (vi)a, (vi)b, 0xca, (vm)-1);
}
#define v_compare(a, b, how) ((vm)__builtin_ia32_cmpps512_mask(a, b, how, (vm)-1, 4))
VECTOR vm v_eq(vf a, vf b)
{
    return v_compare(a, b, 0);
}
VECTOR vm v_ne(vf a, vf b)
{
    return v_compare(a, b, 4);
}
VECTOR vm v_lt(vf a, vf b)
{
    return v_compare(a, b, 1);
}
VECTOR vm v_le(vf a, vf b)
{
    return v_compare(a, b, 2);
}
VECTOR vm v_gt(vf a, vf b)
{
    return v_compare(b, a, 1);
}
VECTOR vm v_ge(vf a, vf b)
{
    return v_compare(b, a, 2);
}
#define v_rounded(a, how) ((vf)__builtin_ia32_rndscaleps_mask(a, how, (vf){ 0 }, (vm)-1, 4))
VECTOR vf v_rint(vf a)
{
    return v_rounded(a, 8);
}
VECTOR vf v_floor(vf a)
{
    return v_rounded(a, 9);
}
VECTOR vf v_ceil(vf a)
{
    return v_rounded(a, 10);
}
VECTOR vf v_trunc(vf a)
{
    return v_rounded(a, 11);
}
VECTOR vf v_add(vf a, vf b)
{
    return a + b;
}
VECTOR vf v_fabs(vf a)
{
    return (vf)((vi)a & v_unsigned);
}
VECTOR vf v_copysign(vf a, vf b)
{
    return v_mix(v_unsigned, a, b);
}
VECTOR vf v_scale(vf a, vf n)
{
    return (vf)__builtin_ia32_scalefps512_mask(a, n, (vf){ 0 }, (vm)-1, 4);
} /* a 2^n, rounded once */
VECTOR vf v_exponent(vf a)
{
    return (vf)__builtin_ia32_getexpps512_mask(a, (vf){ 0 }, (vm)-1, 4);
}
/* the smaller magnitude, with a's sign */
VECTOR vf v_within(vf a, vf b)
{
    return (vf)__builtin_ia32_rangeps512_mask(a, b, 2, (vf){ 0 }, (vm)-1, 4);
}

/* ---- reductions over the lanes of a vector, by halves ---- */
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
VECTOR double v_sum(vf a)
{
    union { vf a; v8 h[2]; } x = { a };
    union { v8 a; v4 h[2]; } y = { x.h[0] + x.h[1] };
    v4 z = y.h[0] + y.h[1];
    return ((double)z[0] + (double)z[1]) + ((double)z[2] + (double)z[3]);
}
/* Sums of many floats: each lane adds in float, and regularly adds that to its sum in double. */
typedef double vd __attribute__((vector_size(64)));
struct v_pair { vd lo, hi; };
VECTOR void v_widen(struct v_pair *d, vf a)
{
    union { vf a; v8 h[2]; } x = { a };
    d->lo += __builtin_convertvector(x.h[0], vd);
    d->hi += __builtin_convertvector(x.h[1], vd);
}
VECTOR double v_total(struct v_pair d)
{
    const vd s = d.lo + d.hi;
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}
#define V_REDUCE(name, both) \
    VECTOR float name(vf a) \
    { \
        a = both(v_pick(a, (vi){ 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15 }, a), a); \
        a = both(v_pick(a, (vi){ 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7 }, a), a); \
        a = both(v_pick(a, (vi){ 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3 }, a), a); \
        a = both(v_pick(a, (vi){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, a), a); \
        return a[0]; \
    }
V_REDUCE(v_max_lane, v_most)
V_REDUCE(v_min_lane, v_least)

/* For each lane: l is the largest so far, g the step where it came first; NaN is larger than all. */
VECTOR void v_first_most(vf *l, vf *g, vf v, i64 step)
{
    const vm more = v_gt(v, *l) | (v_ne(v, v) & v_eq(*l, *l));
    *l = v_sel(more, v, *l);
    *g = v_sel(more, v_all((int)step), *g);
}
VECTOR void v_first_both(vf *l, vf *g, vf h, vf k)
{
    const vm nan = v_ne(h, h), same = v_eq(h, *l) | (nan & v_ne(*l, *l));
    const vm more = v_gt(h, *l) | (nan & v_eq(*l, *l)) | (same & v_lt(k, *g));
    *l = v_sel(more, h, *l);
    *g = v_sel(more, k, *g);
}
/* The largest of the lanes; adds its first position, step + lane, to *where. */
VECTOR float v_first_lane(vf l, vf g, i64 *where)
{
    const vm nan = v_ne(l, l);
    const float most = nan ? __builtin_nanf("") : v_max_lane(l);
    int first = 0x7fffffff;
    for (unsigned at = nan ? nan : v_eq(l, v_all(most)); at; at &= at - 1) {
        const int lane = __builtin_ctz(at), position = (int)g[lane] + lane;
        first = position < first ? position : first;
    }
    *where += first;
    return most;
}

/* Copies the n < 16 floats at p to t, filled up with zeros; returns t. */
VECTOR const float *v_head(float *t, const float *p, i64 n)
{
    *(vf *)t = v_load(p, (vm)((1u << n) - 1));
    return t;
}
/* Constants in order need no comparisons: a NaN stays, as either function returns b if one is NaN. */
VECTOR vf v_clip(vf a, vf b, vf c)
{
    if (__builtin_constant_p(b[0] <= c[0]) && b[0] <= c[0]) {
        return v_most(b, v_least(c, a));
    }
    return v_sel(v_lt(a, b), b, v_sel(v_gt(a, c), c, a));
}
/* For comparing lane numbers with x - first, for positions of any size. */
VECTOR vf v_lanes(void) { return (vf){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }; }
VECTOR vf v_distance(i64 x, i64 first)
{
    return v_all(x < first ? -1 : x - first > 16 ? 16 : (float)(int)(x - first));
}

/* ---- exponentials: x = n ln2 + r.  For large |x| r is inaccurate and clamped; the scaling overflows ---- */
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
#ifdef EXACT_KERNELS
VECTOR vf v_exp(vf x)
{
    vf n = v_rint(x * 0x1.715476p+0f);
    vf r = v_exp_rest(x, n);
    return v_scale((v_exp_tail(r) * r + 1) * r + 1, n);
}
#else
/* n is a multiple of 1/16: adding 1.5 * 2^19 rounds to one, and leaves n's sixteenths in the low four bits,
 * which select 2^(i/16) as t (1 + e).  The scaling takes n's floor. */
static const vf v_exp_t = {
    1.000000000f, 1.044273734f, 1.090507746f, 1.138788581f, 1.189207077f, 1.241857767f, 1.296839595f,
    1.354255557f, 1.414213538f, 1.476826191f, 1.542210817f, 1.610490322f, 1.681792855f, 1.756252170f,
    1.834008098f, 1.915206552f };
static const vf v_exp_e = {
    0, 4.628547e-08f, -1.199216e-08f, 4.729782e-08f, 3.193418e-08f, 3.621057e-08f, -3.099072e-08f,
    -7.475213e-09f, 1.711427e-08f, -3.047683e-08f, 5.233334e-09f, 6.107592e-09f, -1.471961e-08f,
    -5.258795e-09f, -6.128260e-09f, 5.140609e-09f };
VECTOR vf v_exp(vf x)
{
    vf k = x * 0x1.715476p+0f + 0x1.8p+19f, n = k - 0x1.8p+19f;
    vf r = v_exp_rest(x, n), t = v_lane(v_exp_t, (vi)k);
    vf q = (r * 0x1.55575ap-3f + 0x1.0002p-1f) * r + 1;
    q = q * r + v_lane(v_exp_e, (vi)k); /* e^r (1 + e) - 1 */
    return v_scale(t * q + t, n);
}
#endif
VECTOR vf v_expm1(vf x)
{
    vf n = v_rint(x * 0x1.715476p+0f);
    vf r = v_exp_rest(x, n);
    vf s = v_scale(v_all(0.5f), n); /* 2^n would overflow too early */
    vf y = 2 * (s * (r * r * v_exp_tail(r) + r) + (s - 0.5f));
    y = v_sel(v_lt(v_fabs(x), v_all(0x1p-100f)), x, v_copysign(y, x));
    return v_sel(v_gt(x, v_all(88.8f)), v_scale(v_all(1), n), y);
}
/* tanh a in 30 pieces up to 9.02, the first ending at 1/16: p(a - left end), p of degree 4.  The
 * coefficients, lowest power first, are selected by five bits of a + 3/4: the low two of its exponent and
 * three of its fraction.  A piece is an eighth of that sum's power of two wide.  The left end of the first
 * piece is 0, where tanh a is a. */
static const vf v_tanh0a = {
    0.848283648f, 0.905148268f, 0.941375554f, 0.964027584f, 0.978026092f, 0.986614287f, 0.991859734f,
    0.995054781f, 0.996997654f, 0.998894453f, 0.999593139f, 0.999850333f, 0.999944925f, 0.999979734f,
    0.999992549f, 0.999997258f };
static const vf v_tanh0b = {
    0.999998987f, 0.999999881f, 0, 0, 0, 0.0624187477f, 0.124352999f, 0.185333207f, 0.244918659f, 0.3583574f,
    0.462117165f, 0.554599702f, 0.635148942f, 0.703905582f, 0.761594176f, 0.809301078f };
static const vf v_tanh1a = {
    0.280417085f, 0.180704683f, 0.113809422f, 0.0706493855f, 0.0434667021f, 0.0265928227f, 0.0162127707f,
    0.0098622907f, 0.00599298393f, 0.0022087784f, 0.000813571678f, 0.00029766871f, 0.000110305657f,
    4.08593478e-05f, 1.47306791e-05f, 5.47585705e-06f };
static const vf v_tanh1b = {
    2.15456134e-06f, -4.38493288e-07f, 0, 0, 1, 0.996102989f, 0.984538496f, 0.965647817f, 0.940015137f,
    0.871579707f, 0.786445975f, 0.692425013f, 0.596589088f, 0.504523098f, 0.419969857f, 0.345030189f };
static const vf v_tanh2a = {
    -0.237977579f, -0.163524136f, -0.107063852f, -0.0680580884f, -0.0425237939f, -0.0262332428f, -0.0160433464f,
    -0.00973713491f, -0.0059297625f, -0.00218878477f, -0.000809966703f, -0.000281275396f, -0.00011129582f,
    -4.37147391e-05f, -1.31021097e-05f, -5.38239692e-06f };
static const vf v_tanh2b = {
    -2.6488226e-06f, 4.31398985e-06f, 0, 0, 5.79233392e-06f, -0.0620860606f, -0.1226044f, -0.178659454f,
    -0.230204016f, -0.312327653f, -0.363377184f, -0.384289801f, -0.37909469f, -0.355416805f, -0.319702268f,
    -0.279191524f };
static const vf v_tanh3a = {
    0.109773181f, 0.0875408873f, 0.0621679276f, 0.0415058918f, 0.0269432962f, 0.0168401152f, 0.0101938518f,
    0.00590341445f, 0.00367162167f, 0.00135770929f, 0.000511223392f, 0.000134647154f, 7.43299679e-05f,
    3.61466227e-05f, 3.83780525e-06f, 3.19644641e-06f };
static const vf v_tanh3b = {
    2.19480921e-06f, -9.30746319e-06f, 0, 0, -0.333902359f, -0.331007838f, -0.308830887f, -0.296904087f,
    -0.258106649f, -0.178757235f, -0.0943884104f, -0.0134066185f, 0.0450294726f, 0.0863102302f, 0.102392338f,
    0.110869624f };
static const vf v_tanh4a = {
    -0.0208001472f, -0.0246928837f, -0.020531496f, -0.0150331995f, -0.0106861275f, -0.00673994515f,
    -0.00377233722f, -0.00162914651f, -0.00121993886f, -0.000451594882f, -0.000176565329f, -1.16483207e-05f,
    -2.89361506e-05f, -1.93938158e-05f, 2.26404495e-06f, -9.38960284e-07f };
static const vf v_tanh4b = {
    -8.27962026e-07f, 6.07313405e-06f, 0, 0, 0.0158703793f, 0.0757180974f, 0.0564683899f, 0.18666032f,
    0.155210227f, 0.170189723f, 0.159525096f, 0.109858319f, 0.0754568949f, 0.0326830596f, 0.024756927f,
    -0.00155164045f };
VECTOR vf v_tanh(vf x)
{
    vf a = v_least(v_all(9.02f), v_fabs(x)), t = a + 0.75f;
    vi k = (vi)t >> 20;
    vf d = a - ((vf)((vi)t & v_piece) - 0.75f);
    vf p = v_pick(v_tanh4a, k, v_tanh4b);
    p = p * d + v_pick(v_tanh3a, k, v_tanh3b);
    p = p * d + v_pick(v_tanh2a, k, v_tanh2b);
    p = p * d + v_pick(v_tanh1a, k, v_tanh1b);
    p = p * d + v_pick(v_tanh0a, k, v_tanh0b);
    return v_copysign(p, x);
}
VECTOR vf v_sigmoid(vf x)
{
    vf e = v_exp(-v_fabs(x));
    return v_sel(v_lt(x, v_all(0)), e, v_all(1)) / (1 + e);
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
