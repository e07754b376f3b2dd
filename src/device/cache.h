/* cache.h: the folder of compiled kernels, of every device. */
#ifndef MC_CACHE_H
#define MC_CACHE_H

#include "base/base.h"

const char *mc_cache_dir(void);             /* "" when caching is off or impossible */

struct mc_key {
    uint64_t at[2];
};
struct mc_key mc_key(const char *const *part, size_t n); /* of the texts and of where each ends */

/* Entries are files NAME = <key><suffix> of the folder <cache>/kernels, sealed by a trailer which
 * holds key, size and hash; so a damaged or misnamed file is never used, but removed.  Neither is one that
 * others may write, or that belongs to another user than this one or root, or any in such a folder. */
/* why there is no cache, of a folder that others have a hand in; "" if it is not for that */
const char *mc_cache_refused(void);
bool mc_cache_folder(struct mc_str *path);  /* makes it; false: no cache */
bool mc_cache_path(struct mc_key key, const char *suffix, struct mc_str *path);
/* The content without its seal.  fd, unless NULL: the file itself, still open, for the caller to close. */
bool mc_cache_find(struct mc_key key, const char *suffix, struct mc_str *content, int *fd);
void mc_cache_put(struct mc_key key, const char *suffix, const char *content, size_t n);
void mc_cache_drop(struct mc_key key, const char *suffix);

/* ---- cache_evict.c ---- */
/* after `added` more bytes: stale and least recently used files go */
void mc_cache_sweep(int folder, size_t added);
void mc_folder_remove(const char *path);    /* with the files in it */

#endif
