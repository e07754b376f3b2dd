/* own_cache.h: a cache of the test's own, where wisdom is written. */
#ifndef OWN_CACHE_H
#define OWN_CACHE_H

#include "check.h"
#include "device/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A cache folder of this test's own. */
static inline const char *own_cache(void)
{
    static char dir[] = "/tmp/monochord-plan-XXXXXX";
    static bool made;
    made = made || CHECK(mkdtemp(dir) != NULL, "no folder");
    mc_flag_set("cache", dir);
    return dir;
}

static inline void wisdom_path(char out[256])
{
    own_cache();
    snprintf(out, 256, "%s/wisdom.txt", mc_cache_dir());
}

static inline void gone(void)
{
    char path[256];
    wisdom_path(path);
    remove(path);
    strcpy(path + strlen(path) - 3, "lock");
    remove(path);
    rmdir(mc_cache_dir());
    rmdir(own_cache());
}

#endif
