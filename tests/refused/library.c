/* library.c: any of NVIDIA's libraries, with nothing behind its functions, on a machine where
 * t_cuda_refused.c says what is wrong: VERSION is the CUDA that the driver speaks, INIT what cuInit gives,
 * GPUS how many there are, MAJOR.0 what they can do.  A function is missing once -D has given it another
 * name. */
#ifndef VERSION
#define VERSION 13000
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef GPUS
#define GPUS 1
#endif
#ifndef MAJOR
#define MAJOR 9
#endif

int cuInit(unsigned flags)
{
    (void)flags;
    return INIT;
}

int cuDriverGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

int cuGetErrorString(int code, const char **text)
{
    *text = code == 802 ? "system not yet initialized" : "out of memory";
    return 0;
}

int cuDeviceGetCount(int *n)
{
    *n = GPUS;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int n, int device)
{
    const char said[] = "An old GPU";
    for (int i = 0; i < n && i < (int)sizeof said; i++) {
        name[i] = said[i];
    }
    return device < GPUS ? 0 : 101;
}

int cuDeviceTotalMem_v2(unsigned long *bytes, int device)
{
    *bytes = 12UL << 30;
    return device < GPUS ? 0 : 101;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    enum { MULTIPROCESSORS = 16, CAPABILITY_MAJOR = 75 };
    *value = attribute == CAPABILITY_MAJOR ? MAJOR : attribute == MULTIPROCESSORS ? 24 : 0;
    return device < GPUS ? 0 : 101;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = 0;
    return device < GPUS ? 2 : 101; /* another program has all memory */
}

unsigned long cudnnGetVersion(void)
{
    return 91900;
}

/* All others, once the names above are taken. */
#define cuInit                   taken_1
#define cuDriverGetVersion       taken_2
#define cuGetErrorString         taken_3
#define cuDeviceGetCount         taken_4
#define cuDeviceGet              taken_5
#define cuDeviceGetName          taken_6
#define cuDeviceTotalMem_v2      taken_7
#define cuDeviceGetAttribute     taken_8
#define cuDevicePrimaryCtxRetain taken_9
#define cudnnGetVersion          taken_10
#define NV(lib, ret, name, args) int name() { return 0; }
#include "device/cuda/api.def"
