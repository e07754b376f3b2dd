/* special.h: functions that libm lacks, for the reference in float and double. The float ones compute in
 * double: the reference need not be fast. */
#ifndef MC_SPECIAL_H
#define MC_SPECIAL_H

double mc_ref_sigmoid(double x);
double mc_ref_softplus(double x);
double mc_ref_psi(double x);
double mc_ref_tri_gamma(double x);
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
