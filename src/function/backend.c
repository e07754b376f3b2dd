/* backend.c: which backends there are. */
#include "function/backend.h"

static const struct mc_backend *const rows[] = { &mc_backend_cpu, &mc_backend_cuda };

const struct mc_backend *mc_backend_of(const char *device)
{
    for (size_t i = 0; i < NELEM(rows); i++) {
        const size_t n = strlen(rows[i]->name);
        if (strncmp(device, rows[i]->name, n) == 0 && device[n + (rows[i]->numbered ? strspn(device + n, "0123456789") : 0)] == '\0') {
            return rows[i];
        }
    }
    mc_fail(MC_EARG, "there is no device '%s': it is cpu, cuda, or cuda with a GPU's number, as in cuda1", device);
    return NULL;
}
