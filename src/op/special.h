/* special.h: functions that libm lacks, for the reference in float and double. The float ones compute in
 * double: the reference need not be fast. */
#ifndef MC_SPECIAL_H
#define MC_SPECIAL_H

double mc_ref_sigmoid(double x);
double mc_ref_softplus(double x);
double mc_ref_psi(double x);
double mc_ref_tri_gamma(double x);
/* the functions of special.def, by the number of their arguments */
#define MC_SPECIAL_1(X) X(erfinv) X(erfcinv) X(erfcx) X(i0) X(i1)
#define MC_SPECIAL_2(X) X(gammainc) X(gammaincc) X(gammaincinv) X(iv) X(jv) X(poisson_quantile)
#define MC_SPECIAL_3(X) X(betainc) X(binomial_quantile)
#define MC_SPECIAL_DECLARE_1(id) double mc_ref_##id(double x);
#define MC_SPECIAL_DECLARE_2(id) double mc_ref_##id(double x, double y);
#define MC_SPECIAL_DECLARE_3(id) double mc_ref_##id(double x, double y, double z);
MC_SPECIAL_1(MC_SPECIAL_DECLARE_1)
MC_SPECIAL_2(MC_SPECIAL_DECLARE_2)
MC_SPECIAL_3(MC_SPECIAL_DECLARE_3)
double mc_ref_floordiv(double a, double b);
double mc_ref_floormod(double a, double b);
float mc_ref_floordivf(float a, float b);
float mc_ref_floormodf(float a, float b);
int64_t mc_ref_ipow(int64_t a, int64_t b);
uint64_t mc_ref_upow(uint64_t a, uint64_t b);
/* random.c */
uint64_t mc_random_mix(uint64_t seed, uint64_t stream);
uint64_t mc_random_word(uint64_t i, uint64_t key, uint64_t step, int pair);

#endif
