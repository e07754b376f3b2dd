/* args.h: how the arguments of a kernel are declared, once for C and for CUDA C++.
 *
 * A kernel takes one struct by value.  A header NAME_args.h declares it.  C includes that header and fills
 * the struct; the kernel's text, NAME.cu, includes it and reads the struct.  Texts are compiled at run time,
 * without files: the build puts a header in place of the line that includes it (CMakeLists.txt).
 *
 * Members have types of one size and alignment on both sides:
 *
 *     i64, u64            eight bytes: int64_t and uint64_t in C, long long in CUDA C++ (which has no int64_t
 *                         without headers)
 *     int, unsigned, float, double, unsigned char, unsigned short
 *     T *                 an address in the GPU's memory
 *     struct mc_x         a struct declared in such a header, written with the word struct
 *
 * Not bool, an enum, long or size_t: their sizes differ between compilers, or between systems.
 *
 * MC_ARGS_TYPE(T) names a type that only the CUDA text defines: a macro of that text (the dtype T, the dtype
 * of sums A) or a type of CUDA (uint2).  In C it is void, so T * is void *.
 *
 * Invariant: MC_ARGS_SIZE follows each struct.  A different size is an error in both compilers. */
#ifndef MC_DEVICE_CUDA_ARGS_H
#define MC_DEVICE_CUDA_ARGS_H

#ifdef __cplusplus

typedef long long i64;
typedef unsigned long long u64;
#define MC_ARGS_TYPE(name) static_assert(true, "")
#define MC_ARGS_SIZE(name, bytes) \
    static_assert(sizeof(name) == (bytes), "the size of " #name " differs from C")

#else

#include <stdalign.h>
#include <stdint.h>
typedef int64_t i64;
typedef uint64_t u64;
#define MC_ARGS_TYPE(name) typedef void name
/* Not checked where addresses have four bytes: no GPU is supported there. */
#define MC_ARGS_SIZE(name, bytes) \
    _Static_assert(sizeof(void *) < 8 || sizeof(struct name) == (bytes), \
                   "the size of " #name " differs from CUDA C++")

#endif

/* What word 0 of the error words holds where something else than an index is wrong: larger than the number of
 * any value of a kernel. */
enum { MC_CUDA_ERR_MATRIX = 1 << 30, MC_CUDA_ERR_CTC, MC_CUDA_ERR_PART };
enum { MC_CUDA_ROW = 128 };     /* bytes of a row of a tile that a tensor map copies (128-byte swizzle) */
/* A tensor map: the array as the copy engine of Hopper's multiprocessors (TMA) takes it (tensor_map.c). */
struct mc_cuda_tensor_map { alignas(64) unsigned char bytes[128]; };
MC_ARGS_SIZE(mc_cuda_tensor_map, 128);

/* n / by = (n times / 2^32 + n) / 2^shift for n below 2^31, where 2^shift >= by and times = 2^32 (2^shift -
 * by) / by + 1. */
struct mc_cuda_divider { unsigned by, times, shift; };
MC_ARGS_SIZE(mc_cuda_divider, 12);

#endif
