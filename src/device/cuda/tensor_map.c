/* tensor_map.c: tensor maps, from which the copy engine of Hopper's multiprocessors (TMA) copies boxes of
 * an array to shared memory.
 *
 * Invariant: elements outside the array are copied as zeros.  The 16-byte pieces of each row of a box are
 * permuted (by row % 8 in rows of 128 bytes, the 128-byte swizzle), as the tensor cores read them. */
#include "device/cuda/driver.h"

bool mc_cuda_has_tensor_map(void)
{
    return mc_nv.cuTensorMapEncodeTiled != NULL;
}

/* The stride of an axis of size 1 is arbitrary, so a valid one is passed instead. */
static uint64_t stride_bytes(const struct mc_cuda_tensor_map_spec *b, int axis, size_t size)
{
    return b->size[axis] > 1 ? (uint64_t)b->stride[axis] * size : MC_CUDA_ROW;
}

mc_status mc_cuda_tensor_map(struct mc_cuda_tensor_map *m, const struct mc_cuda_tensor_map_spec *b,
                             const void *array)
{
    const int type = b->dtype == MC_FLOAT16    ? NV_CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                     : b->dtype == MC_BFLOAT16 ? NV_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                               : NV_CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    uint64_t size[MC_CUDA_MAP_RANK] = { 0 }, stride[MC_CUDA_MAP_RANK] = { 0 };
    unsigned box[MC_CUDA_MAP_RANK] = { 0 }, step[MC_CUDA_MAP_RANK] = { 0 };
    for (int i = 0; i < b->rank; i++) {
        size[i] = (uint64_t)b->size[i];
        step[i] = (unsigned)b->step[i];
        box[i] = (unsigned)((b->box[i] - 1) * b->step[i] + 1);
        if (i > 0) {
            stride[i - 1] = stride_bytes(b, i, mc_dtypes[b->dtype].size);
        }
    }
    const size_t row = (size_t)b->box[0] * mc_dtypes[b->dtype].size;
    const int swizzle = row == MC_CUDA_ROW       ? NV_CU_TENSOR_MAP_SWIZZLE_128B
                        : row == MC_CUDA_ROW / 2 ? NV_CU_TENSOR_MAP_SWIZZLE_64B
                                                 : NV_CU_TENSOR_MAP_SWIZZLE_32B;
    const int failed = mc_nv.cuTensorMapEncodeTiled(m, type, (unsigned)b->rank, (void *)(uintptr_t)array,
                                                    size, stride, box, step, 0, swizzle,
                                                    NV_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 0);
    return mc_cuda_check(mc_cuda_current(), failed, "describing an array to the copy engine", NULL);
}
