/* driver.cpp: the part of CUDA's driver that this library calls.
 *
 * FAKE_TRACE=1 prints what is asked of it.  FAKE_PROCESSORS is the number of multiprocessors, 4 without it. */
#define FAKE_GPU
#include "fake.h"
#include <algorithm>
#include <sys/uio.h>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>

/* ---- driver ---- */
/* What is recorded may be done in any order that its edges allow; here in the one that is least like the recording. */
struct graph {
    std::vector<std::function<int()>> work;
    std::vector<std::vector<size_t>> after; /* by work: which it follows */
    std::vector<void *> last;               /* what the next one follows: their numbers, from 1 on */
    size_t mark = 0;                        /* the number of an event that each replay records; 0: none */
};
static thread_local graph *recording; /* a thread records its own work alone */
static size_t used;
static std::map<uint64_t, size_t> blocks;
static const size_t total = (size_t)8 << 30;
/* What a replay leaves undone: all that its mark does not follow.  The host sees nothing of it until other
 * work of the stream begins, or it waits for the stream. */
static std::function<int()> behind;
static void *aside; /* the stream that waits for marks alone */
static int finish()
{
    std::function<int()> f;
    f.swap(behind);
    return f ? f() : 0;
}
static int enqueue(std::function<int()> f, void *stream = NULL)
{
    if (recording) {
        std::vector<size_t> after;
        for (void *node : recording->last)
            after.push_back((size_t)node - 1);
        recording->work.push_back(f);
        recording->after.push_back(after);
        recording->last.assign(1, (void *)recording->work.size());
        return 0;
    }
    const int r = stream && stream == aside ? 0 : finish();
    return r ? r : f();
}
int fake_enqueue(std::function<int()> f)
{
    LOCK;
    return enqueue(f);
}
static double clock_()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
struct module {
    void *handle;
    char path[64];
};
extern "C" {
int cuInit(unsigned)
{
    return 0;
}
int cuDriverGetVersion(int *v)
{
    *v = 13000;
    return 0;
}
int cuGetErrorName(int c, const char **t)
{
    *t = c == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : c == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
    return 0;
}
int cuGetErrorString(int c, const char **t)
{
    *t = c == 2 ? "out of memory" : c == 700 ? "an illegal memory access was encountered" : "an error";
    return 0;
}
int cuDeviceGetCount(int *n)
{
    const char *said = getenv("FAKE_GPUS");
    *n = said ? atoi(said) : 1;
    return 0;
}
int cuDeviceGet(int *d, int o)
{
    *d = o;
    return 0;
}
int cuDeviceGetName(char *s, int n, int)
{
    snprintf(s, n, "the processor, as a GPU");
    return 0;
}
int cuDeviceGetAttribute(int *v, int a, int)
{
    *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? (getenv("FAKE_PROCESSORS") ? atoi(getenv("FAKE_PROCESSORS")) : 4) : a == 97 ? 227 << 10 : a == 115 ? 1 : 1;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *n, int)
{
    *n = total;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int)
{
    *c = (void *)1;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int)
{
    return 0;
}
int cuCtxPushCurrent_v2(void *)
{
    return 0;
}
int cuCtxPopCurrent_v2(void **c)
{
    *c = (void *)1;
    return 0;
}
int cuMemGetInfo_v2(size_t *l, size_t *a)
{
    LOCK;
    *l = total - used;
    *a = total;
    return 0;
}
int cuMemAlloc_v2(unsigned long long *p, size_t n)
{
    LOCK;
    if (getenv("FAKE_TRACE"))
        fprintf(stderr, "alloc %zu\n", n);
    if (n > total - used)
        return 2;
    void *q = aligned_alloc(256, (n + 255) / 256 * 256);
    memset(q, 0xff, n);
    used += n;
    blocks[(uint64_t)q] = n;
    *p = (uint64_t)q;
    return 0;
}
int cuMemFree_v2(unsigned long long p)
{
    LOCK;
    finish();
    if (!blocks.count(p))
        return 1;
    memset((void *)p, 0xfe, blocks[p]);
    used -= blocks[p];
    blocks.erase(p);
    free((void *)p);
    return 0;
}
int cuMemAllocFromPoolAsync(unsigned long long *p, size_t n, void *, void *)
{
    return cuMemAlloc_v2(p, n);
}
int cuMemFreeAsync(unsigned long long p, void *)
{
    return cuMemFree_v2(p);
}
int cuDeviceGetDefaultMemPool(void **p, int)
{
    *p = (void *)1;
    return 0;
}
int cuMemPoolSetAttribute(void *, int, void *)
{
    return 0;
}
int cuMemPoolTrimTo(void *, size_t)
{
    return 0;
}
int cuMemHostAlloc(void **p, size_t n, unsigned)
{
    *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    return *p ? 0 : 2;
}
int cuMemFreeHost(void *p)
{
    free(p);
    return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t n, void *)
{
    LOCK;
    if (getenv("FAKE_TRACE"))
        fprintf(stderr, "cuMemcpyHtoDAsync %zu\n", n);
    std::string s((const char *)from, n);
    return enqueue([=] {
        memcpy((void *)to, s.data(), n);
        return 0;
    });
}
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, void *stream)
{
    LOCK;
    if (getenv("FAKE_TRACE"))
        fprintf(stderr, "cuMemcpyDtoHAsync %zu\n", n);
    return enqueue([=] {
        memcpy(to, (void *)from, n);
        return 0;
    }, stream);
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, void *)
{
    LOCK;
    if (getenv("FAKE_TRACE"))
        fprintf(stderr, "cuMemcpyDtoDAsync %zu\n", n);
    return enqueue([=] {
        memmove((void *)to, (void *)from, n);
        return 0;
    });
}
int cuMemsetD8Async(unsigned long long p, unsigned char v, size_t n, void *)
{
    LOCK;
    if (getenv("FAKE_TRACE"))
        fprintf(stderr, "cuMemsetD8Async %zu\n", n);
    return enqueue([=] {
        memset((void *)p, v, n);
        return 0;
    });
}
int cuStreamCreate(void **s, unsigned)
{
    LOCK;
    static uintptr_t made;
    *s = (void *)++made;
    return 0;
}
int cuStreamDestroy_v2(void *)
{
    return 0;
}
int cuStreamSynchronize(void *stream)
{
    LOCK;
    return stream == aside ? 0 : finish();
}
int cuStreamQuery(void *)
{
    LOCK;
    finish();
    return fake_waiting ? 600 : 0;
}
int cuStreamWaitEvent(void *stream, void *, unsigned)
{
    LOCK;
    aside = stream;
    return 0;
}
int cuEventCreate(void **e, unsigned)
{
    *e = new double(0);
    return 0;
}
int cuEventDestroy_v2(void *e)
{
    delete (double *)e;
    return 0;
}
int cuEventRecord(void *e, void *)
{
    *(double *)e = clock_();
    return 0;
}
int cuEventRecordWithFlags(void *, void *, unsigned)
{
    LOCK;
    if (!recording)
        return 1;
    const int r = enqueue([] { return 0; });
    recording->mark = recording->work.size();
    return r;
}
int cuEventSynchronize(void *)
{
    LOCK;
    return finish();
}
int cuEventElapsedTime(float *ms, void *a, void *b)
{
    *ms = (float)(1e3 * (*(double *)b - *(double *)a));
    return 0;
}
int cuModuleLoadData(void **m, const void *image)
{
    LOCK;
    size_t n;
    memcpy(&n, (const char *)image + 8, 8);
    module *o = new module;
    snprintf(o->path, sizeof o->path, "/tmp/fakegpuXXXXXX");
    int fd = mkstemp(o->path);
    if (write(fd, (const char *)image + 16, n) != (ssize_t)n)
        return 200;
    close(fd);
    o->handle = dlopen(o->path, RTLD_NOW | RTLD_LOCAL);
    unlink(o->path);
    if (!o->handle) {
        fprintf(stderr, "fake GPU: %s\n", dlerror());
        delete o;
        return 200;
    }
    *(shim **)dlsym(o->handle, "shim_now") = &fake_now;
    *m = o;
    return 0;
}
int cuModuleUnload(void *m)
{
    LOCK;
    finish();
    dlclose(((module *)m)->handle);
    delete (module *)m;
    return 0;
}
int cuModuleGetFunction(void **f, void *m, const char *name)
{
    *f = dlsym(((module *)m)->handle, name);
    return *f ? 0 : 500;
}
int cuModuleGetGlobal_v2(unsigned long long *p, size_t *n, void *m, const char *name)
{
    *p = (uint64_t)dlsym(((module *)m)->handle, name);
    *n = 0;
    return *p ? 0 : 500;
}
int cuFuncGetAttribute(int *v, int, void *)
{
    *v = 32;
    return 0;
}
int cuFuncSetAttribute(void *, int, int)
{
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *b, void *, int t, size_t)
{
    *b = 2048 / t;
    return 0;
}
static int launch(void *f, const unsigned *g, const unsigned *b, unsigned shared, unsigned together, void **extra)
{
    const unsigned gx = g[0], gy = g[1], gz = g[2], bx = b[0], by = b[1], bz = b[2];
    LOCK;
    const char *buf = "";
    size_t n = 0;
    for (int i = 0; extra && extra[i]; i += 2) {
        if (extra[i] == (void *)1)
            buf = (const char *)extra[i + 1];
        else if (extra[i] == (void *)2)
            n = *(size_t *)extra[i + 1];
    }
    std::string a(buf, n);
    if (getenv("FAKE_TRACE")) {
        Dl_info d;
        dladdr(f, &d);
        fprintf(stderr, "%s grid %u %u %u block %u %u %u shared %u together %u args %zu%s\n", d.dli_sname ? d.dli_sname : "?", gx,
                gy, gz, bx, by, bz, shared, together, n, recording ? " recorded" : "");
    }
    return enqueue([=] {
        const unsigned g[3] = { gx, gy, gz }, b[3] = { bx, by, bz };
        return fake_grid(f, g, b, shared, together, a.data(), a.size());
    });
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *, void **, void **extra)
{
    const unsigned g[3] = { gx, gy, gz }, b[3] = { bx, by, bz };
    return launch(f, g, b, shared, 1, extra);
}
struct launch_attribute {
    int id, pad;
    union {
        unsigned dims[3];
        char bytes[64];
    } u;
};
struct launch_config {
    unsigned g[3], b[3], shared;
    void *stream;
    const launch_attribute *attrs;
    unsigned n;
};
/* The argument at that address, whose size nobody tells: as much as a kernel takes, or as there is memory. */
static std::string argument(char *at)
{
    char bytes[4096];
    const size_t first = std::min(sizeof bytes, 4096 - (uintptr_t)at % 4096);
    const iovec to = { bytes, sizeof bytes }, from[2] = { { at, first }, { at + first, sizeof bytes - first } };
    const ssize_t n = process_vm_readv(getpid(), &to, 1, from, 2, 0);
    return std::string(bytes, n > 0 ? n : 0);
}
int cuLaunchKernelEx(const launch_config *c, void *f, void **params, void **extra)
{
    unsigned together = 1;
    std::string a;
    size_t n = 0;
    void *own[] = { (void *)1, NULL, (void *)2, &n, NULL };
    for (unsigned i = 0; i < c->n; i++)
        if (c->attrs[i].id == 4) /* blocks of one cluster */
            together = c->attrs[i].u.dims[1];
        else if (c->attrs[i].id == 2) /* all blocks at the same time */
            together = FAKE_ALL + c->g[0];
    if (!extra && params) {
        a = argument((char *)params[0]);
        n = a.size();
        own[1] = (void *)a.data();
        extra = own;
    }
    return launch(f, c->g, c->b, c->shared, together, extra);
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *array, const uint64_t *size, const uint64_t *stride,
                           const unsigned *box, const unsigned *step, int, int swizzle, int, int)
{
    static_assert(sizeof(fake_map) <= 128, "the size of a tensor map");
    fake_map m = {};
    bool ok = rank >= 3 && rank <= 5 && (uintptr_t)array % 16 == 0 && swizzle >= 1 && swizzle <= 3;
    m.array = (const char *)array;
    m.row = 16 << swizzle;
    m.rank = rank;
    m.element = type == 6 || type == 9 ? 2 : 4;
    m.tf32 = type == 11 || type == 12;
    for (unsigned i = 0; i < rank; i++) {
        m.size[i] = size[i];
        m.step[i] = step[i];
        m.box[i] = (box[i] + step[i] - 1) / step[i];
        if (i > 0)
            m.stride[i - 1] = stride[i - 1];
        ok = ok && size[i] > 0 && size[i] <= 1ull << 32 && box[i] > 0 && box[i] <= 256 && step[i] > 0 && step[i] <= 8 &&
             (i == 0 || (stride[i - 1] % 16 == 0 && stride[i - 1] < 1ull << 40));
    }
    ok = ok && m.box[0] * m.element <= m.row;
    memset(map, 0, 128);
    memcpy(map, &m, sizeof m);
    return ok ? 0 : 1;
}
int cuStreamBeginCapture_v2(void *, int)
{
    LOCK;
    recording = new graph;
    return 0;
}
int cuStreamEndCapture(void *, void **g)
{
    LOCK;
    *g = recording;
    recording = NULL;
    return *g ? 0 : 1;
}
int cuStreamGetCaptureInfo_v3(void *, int *status, unsigned long long *, void **, void *const **nodes, const void **, size_t *n)
{
    LOCK;
    *status = recording != NULL;
    *nodes = recording ? recording->last.data() : NULL;
    *n = recording ? recording->last.size() : 0;
    return recording ? 0 : 1;
}
int cuStreamUpdateCaptureDependencies_v2(void *, void **nodes, const void *, size_t n, unsigned)
{
    LOCK;
    if (!recording)
        return 1;
    recording->last.assign(nodes, nodes + n);
    return 0;
}
int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long)
{
    *e = new graph(*(graph *)g);
    return 0;
}
int cuGraphUpload(void *, void *)
{
    return 0;
}
/* Does the work of `wanted` that is not done. */
static int replay(const graph &g, std::vector<bool> &done, const std::vector<bool> &wanted)
{
    for (bool left = true; left;) {
        size_t at = g.work.size();
        bool ready = false;
        left = false;
        while (!ready && at-- > 0) {
            ready = wanted[at] && !done[at];
            left = left || ready;
            for (size_t before : g.after[at])
                ready = ready && done[before];
        }
        int r = ready ? g.work[at]() : left ? 1 : 0;
        if (r)
            return r;
        if (ready)
            done[at] = true;
    }
    return 0;
}
int cuGraphLaunch(void *e, void *)
{
    LOCK;
    const int r = finish();
    const graph g = *(graph *)e;
    std::vector<bool> done(g.work.size()), all(g.work.size(), true), first = all;
    if (r || !g.mark)
        return r ? r : replay(g, done, all);
    first.assign(g.work.size(), false);
    first[g.mark - 1] = true;
    for (size_t at = g.mark; at-- > 0;)
        for (size_t before : g.after[at])
            first[before] = first[before] || first[at];
    const int s = replay(g, done, first);
    behind = [=] () mutable { return replay(g, done, all); };
    return s;
}
int cuGraphDestroy(void *g)
{
    delete (graph *)g;
    return 0;
}
int cuGraphExecDestroy(void *g)
{
    delete (graph *)g;
    return 0;
}
}
