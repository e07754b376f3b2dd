/* custom_view.cu: text before a user's CUDA C: an array as the user's kernel sees it. */
#include "exec/cuda/custom_view_args.h"

template <class T> struct view {
    MC_VIEW_MEMBERS(T)

    /* Element i in C order, for any strides.  Out of range: sets the error words and returns spare memory. */
    __device__ T &operator[](i64 i) const
    {
        if ((u64)i >= (u64)n) {
            err[1] = i;
            err[2] = n;
            err[3] = number;
            err[0] = 1;
            return *(T *)(err + 4);
        }
        i64 at = dense ? i : 0;
        for (int a = dense ? -1 : rank - 1; a >= 0; a--) {
            at += i % size[a] * stride[a];
            i /= size[a];
        }
        return data[at];
    }
};
MC_ARGS_SIZE(view<char>, 168);
template <class A, class B> struct same_ { static const bool value = false; };
template <class A> struct same_<A, A> { static const bool value = true; };
