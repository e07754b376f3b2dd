/* backend.c: which backends there are. */
#include "function/backend.h"

static const struct mc_backend *const rows[] = { &mc_backend_cpu, &mc_backend_cuda };

const struct mc_backend *mc_backend_of(const char *device)
{
    for (size_t i = 0; i < NELEM(rows); i++) {
        const size_t n = strlen(rows[i]->name);
        if (strncmp(device, rows[i]->name, n) != 0) {
            continue;
        }
        const char *rest = device + n;
        rest += rows[i]->numbered ? strspn(rest, "0123456789") : 0;
        if (*rest == '\0') {
            return rows[i];
        }
    }
    mc_device_unknown(device);
    return NULL;
}
