/* finish_call_args.h: the arguments of the kernel of finish_call.cu. */
#ifndef MC_EXEC_CUDA_FINISH_CALL_ARGS_H
#define MC_EXEC_CUDA_FINISH_CALL_ARGS_H

#include "device/cuda/args.h"

enum { SETTLE_PAIRS = 120 };    /* pairs of one launch, at most */

struct mc_settle_pair {
    char *to;
    const char *from;
    u64 bytes;
};
MC_ARGS_SIZE(mc_settle_pair, 24);

struct mc_settle_args {
    const i64 *failed;          /* the error words; null: nothing is checked */
    i64 *error_flag;                  /* the error flag, in host memory */
    struct mc_settle_pair at[SETTLE_PAIRS];
    int n;
};
MC_ARGS_SIZE(mc_settle_args, 2904);

#endif
