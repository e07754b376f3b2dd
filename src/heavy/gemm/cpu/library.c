/* library.c: opens the libraries and describes matrices for them.
 *
 * Invariant: a library that was opened stays open, because its threads may outlive every call. */
#include "heavy/gemm/cpu/library.h"
#include <dlfcn.h>
#include <stdlib.h>

void *mc_library_gemm_open(struct mc_library_gemm *f)
{
    const char *flag = mc_flag_text(f->flag);
    pthread_mutex_lock(&f->lock);
    if (!f->tried || strcmp(f->tried, flag) != 0) {
        f->tried = flag;
        f->handle = NULL;
        if (strcmp(flag, "auto") == 0) {
            for (const char *const *name = f->files; *name && !f->handle; name++) {
                f->handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
            }
        } else if (strcmp(flag, "none") != 0) {
            f->handle = dlopen(flag, RTLD_NOW | RTLD_LOCAL);
        }
    }
    void *handle = f->handle;
    pthread_mutex_unlock(&f->lock);
    return handle;
}

/* memcpy: POSIX allows dlsym to return a function as void *, but ISO C has no cast for it. */
void mc_library_gemm_find(void *handle, const char *name, void *function)
{
    void *found = handle ? dlsym(handle, name) : NULL;
    memcpy(function, &found, sizeof found);
}

int mc_library_gemm_threads(void *handle, int n)
{
    int (*most)(void) = NULL;
    void (*set)(int) = NULL;
    mc_library_gemm_find(handle, "omp_get_max_threads", (void *)&most);
    mc_library_gemm_find(handle, "omp_set_num_threads", (void *)&set);
    const int before = most ? most() : n;
    if (set && before != n) {
        set(n);
    }
    return before;
}

/* With OMP_WAIT_POLICY=active the library's threads spin after the call, on the processors that our team
 * needs next.  So they are put to sleep. */
void mc_library_gemm_done(void *handle, int before)
{
    enum { SOFTLY = 1 }; /* omp_pause_soft */
    static _Atomic int awake = -1;
    int (*pause_)(int) = NULL;
    mc_library_gemm_threads(handle, before);
    if (awake < 0) {
        const char *policy = getenv("OMP_WAIT_POLICY");
        awake = policy && mc_same_word(policy, "active");
    }
    if (awake) {
        mc_library_gemm_find(handle, "omp_pause_resource_all", (void *)&pause_);
        if (pause_) {
            pause_(SOFTLY);
        }
    }
}

const char *mc_library_gemm_missing(struct mc_library_gemm *f, const char *function)
{
    void *handle = mc_library_gemm_open(f);
    return !handle                   ? "finds no library"
           : dlsym(handle, function) ? NULL
                                     : "finds no matrix product in the library";
}

bool mc_library_gemm_matrix(const int64_t *s, int64_t rows, int64_t cols, struct mc_library_gemm_matrix *out)
{
    const bool plain = s[2] == 1 || cols == 1;
    const int64_t across = plain ? cols : rows, count = plain ? rows : cols;
    out->trans = plain ? 'N' : 'T';
    out->lead = count == 1 ? MC_MAX(across, (int64_t)1) : plain ? s[1] : s[2];
    return out->lead >= across;
}

static void start_row(void *arg, int64_t task, int slot)
{
    const struct mc_gemm_run *r = arg;
    const int64_t batch = task / r->p->m, i = task % r->p->m, z = r->p->c0s[2];
    const char *from = gemm_c0(r, batch, i, 0);
    char *to = gemm_c(r, batch, i, 0);
    (void)slot;
    if (from != to) {
        mc_convert(r->p->dtype, to, r->size, r->p->dtype, from, z * r->size, r->p->n);
    }
}

void mc_library_gemm_start(const struct mc_gemm_run *r)
{
    if (r->c0) {
        mc_team_tasks(start_row, (void *)r, r->p->batch * r->p->m, r->threads, r->threads,
                      (double)(r->p->batch * r->p->m * r->p->n) * 1e-10);
    }
}

struct mc_plan *mc_library_gemm_plan(const char *missing,
                                mc_status (*run)(const struct mc_plan *, void *const *, void *, int))
{
    if (missing) {
        mc_fail(MC_EUNSUPPORTED, "it %s", missing);
        return NULL;
    }
    return mc_plan_bare(run);
}
