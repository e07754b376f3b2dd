/* own_folder.h: a folder of a test's own, made at the first path in it and removed with all that is there. */
#ifndef OWN_FOLDER_H
#define OWN_FOLDER_H

#include "check.h"
#include <monochord.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[64];

/* A path in the folder; the last four stay as they are. */
static inline const char *in_folder(const char *name)
{
    static char path[4][512];
    static int turn;
    if (!*folder) {
        snprintf(folder, sizeof folder, "/tmp/mc-own-XXXXXX");
        if (!mkdtemp(folder)) {
            *folder = '\0';
        }
    }
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* With the folders that its name has. */
static inline void put_file(const char *name, const void *data, size_t n)
{
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        char part[256];
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        mkdir(in_folder(part), 0777);
    }
    CHECK(mc_file_write(in_folder(name), data, n) == MC_OK, "%s", mc_last_error());
}

static inline void drop_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(!*folder || system(command) == 0, "could not remove %s", folder);
    *folder = '\0';
}

#endif
