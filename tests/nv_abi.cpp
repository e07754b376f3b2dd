// nv_abi.cpp: api.def and driver.def against the vendor's headers, one library at a time.  t_cuda.c
// compiles this, without linking, with HEADER, and LOOK_NV_... 1 for that header's rows and 0 for others.
//
// What the ABI sees is compared: how many parameters there are, and for each whether it is a pointer (and,
// through it, how large the number there is), a float, or a whole number of how many bytes.
#include HEADER
#include <cstddef>
#include <cstdint>
#include <type_traits>

template <class T> constexpr bool number = std::is_integral<T>::value || std::is_enum<T>::value;

template <class A, class B> constexpr bool alike()
{
    if constexpr (std::is_void<A>::value || std::is_void<B>::value) {
        return std::is_void<A>::value && std::is_void<B>::value;
    } else if constexpr (std::is_pointer<A>::value && std::is_pointer<B>::value) {
        using P = std::remove_cv_t<std::remove_pointer_t<A>>;
        using Q = std::remove_cv_t<std::remove_pointer_t<B>>;
        if constexpr ((number<P> && number<Q>) || (std::is_pointer<P>::value && std::is_pointer<Q>::value) ||
                      (std::is_floating_point<P>::value && std::is_floating_point<Q>::value)) {
            return alike<P, Q>();
        } else {
            return std::is_void<P>::value || std::is_class<P>::value || std::is_class<Q>::value || std::is_void<Q>::value;
        }
    } else if constexpr (std::is_floating_point<A>::value && std::is_floating_point<B>::value) {
        return sizeof(A) == sizeof(B);
    } else {
        return (number<A> ? number<B> : std::is_class<A>::value && std::is_class<B>::value) && sizeof(A) == sizeof(B);
    }
}

template <class F, class G> struct same;
template <class R, class... A, class S, class... B> struct same<R(A...), S(B...)> {
    static constexpr bool get()
    {
        if constexpr (sizeof...(A) == sizeof...(B)) {
            return alike<R, S>() && (true && ... && alike<A, B>());
        } else {
            return false;
        }
    }
};


struct mc_nccl_id { char bytes[128]; };

#define CHECK_1(ret, name, args) static_assert(same<ret args, decltype(name)>::get(), #name);
#define CHECK_0(ret, name, args)
#define CHECK__(yes, ret, name, args) CHECK_##yes(ret, name, args)
#define CHECK_(yes, ret, name, args) CHECK__(yes, ret, name, args)
#define NV(lib, ret, name, args) CHECK_(LOOK_##lib, ret, name, args)
#include "device/cuda/api.def"
#undef NV

#if LOOK_NV_DRIVER
#define CU(name, value) static_assert(name == value, #name);
#include "device/cuda/driver.def"
#undef CU
/* launch.c's own */
static_assert(sizeof(CUlaunchAttribute) == 72 && offsetof(CUlaunchAttribute, value) == 8, "attribute");
static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, hStream) == 32 && offsetof(CUlaunchConfig, attrs) == 40, "config");
#endif

#ifdef WRONG // a row that must not pass: the test of this test
CHECK_1(int, WRONG, (float wrong))
#endif
