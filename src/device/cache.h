/* cache.h: the folder of compiled kernels, of every device. */
#ifndef MC_CACHE_H
#define MC_CACHE_H

#include "base/base.h"

const char *mc_cache_dir(void);             /* "" when caching is off or impossible */

struct mc_key {
    uint64_t at[2];
};
struct mc_key mc_key(const char *const *part, size_t n); /* hashes the texts and the length of each */

/* An entry is a file <key><suffix> in the folder <cache>/kernels.  A trailer with key, size and hash seals
 * it: a damaged or misnamed file is removed and not used.  Files and folders that belong to a user other
 * than this one or root, or that others may write to, are not used either. */
/* Why the cache folder was refused for its owner or permissions; "" if it was not. */
const char *mc_cache_refused(void);
bool mc_cache_folder(struct mc_str *path);  /* creates the folder; false: no cache */
bool mc_cache_path(struct mc_key key, const char *suffix, struct mc_str *path);
/* *content is set without the seal.  If fd is not NULL, *fd is the open file, which the caller closes. */
bool mc_cache_find(struct mc_key key, const char *suffix, struct mc_str *content, int *fd);
void mc_cache_put(struct mc_key key, const char *suffix, const char *content, size_t n);
void mc_cache_drop(struct mc_key key, const char *suffix);

/* ---- cache_evict.c ---- */
/* Called after `added` bytes were written: removes stale and least recently used files when space is
 * short. */
void mc_cache_sweep(int folder, size_t added);
void mc_folder_remove(const char *path);    /* removes the folder and its contents */

#endif
