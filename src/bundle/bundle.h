/* bundle.h: compiled functions in one file, and functions made from such a file.
 *
 *   bundle   programs, their kernels compiled for one or several instruction sets or GPUs, the solvers that
 *            were chosen, the values of variables
 *
 * The file is a header, a description, and blobs: compiled libraries, and elements of arrays, each aligned to
 * MC_BUNDLE_ALIGN.  The description is a sequence of numbers and texts (wire.c).  One function both writes
 * and reads each part of it, so that the two directions agree.
 *
 * Invariant: nothing of a file is used before both of its checksums have been compared.  After that, numbers
 * that are out of range still are an error, never a wrong access. */
#ifndef MC_BUNDLE_H
#define MC_BUNDLE_H

#include "device/image.h"
#include "exec/function.h"

enum { MC_BUNDLE_ALIGN = 64, MC_BUNDLE_FORMAT = 5 };
/* loops, and sides of branches, inside of each other, at most */
enum { MC_BUNDLE_LOOPS = 16, MC_BUNDLE_SIDES = 64 };
struct mc_bundle_header {
    char magic[8];              /* "MCBUNDLE" */
    uint32_t format, order;     /* order: 1, as this machine stores it */
    char version[16];           /* MC_VERSION, then zeros */
    /* bytes of the description, which follows; of the whole file.  Blobs begin at the first aligned offset
     * after the description; between them are zeros. */
    uint64_t description, size;
    uint64_t sums[2];           /* checksums of the description, of the blobs */
};
/* A checksum of bytes that are added one piece after another.  A changed bit changes it. */
enum { MC_BUNDLE_LANES = 8 };
struct mc_bundle_sum {
    uint64_t lane[MC_BUNDLE_LANES], n;
    char rest[MC_BUNDLE_LANES * 8];
};
void mc_bundle_sum_add(struct mc_bundle_sum *s, const char *p, size_t n);
uint64_t mc_bundle_sum_end(const struct mc_bundle_sum *s);
uint64_t mc_bundle_checksum(const char *p, size_t n);

/* ---- wire.c: numbers and texts as bytes ---- */
struct mc_wire {
    bool reading;
    mc_status status;           /* the first failure; after it nothing is written or read */
    struct mc_str out;          /* writing */
    const char *at, *end;       /* reading: what is left */
    struct mc_arena *arena;     /* reading: of texts and lists */
    const char *what;           /* "bundle 'a.mcf'", for messages */
    int loops, sides;           /* that contain what is written or read now */
    /* blobs, by offset from the first of them.  Writing: the list.  Reading: their memory. */
    VEC(struct mc_piece) blob;
    VEC(mc_array *) kept;       /* writing: arrays whose elements are blobs */
    uint64_t blobs;             /* their bytes, padding included */
    const char *memory;
    void (*release)(void *arg); /* of the memory, once an array of it; with arg */
    void (*retain)(void *arg);
    void *arg;
};
bool mc_wire_good(const struct mc_wire *w);
void mc_wire_fail(struct mc_wire *w, const char *why); /* reading: the file is damaged */
/* A number in [least, most]. */
void mc_wire_number(struct mc_wire *w, int64_t *v, int64_t least, int64_t most);
int mc_wire_int(struct mc_wire *w, int v, int64_t least, int64_t most); /* returns v, or the number read */
bool mc_wire_bool(struct mc_wire *w, bool v);
void mc_wire_bytes(struct mc_wire *w, void *p, size_t n);
/* Reading: a copy in the arena.  NULL is a text too. */
void mc_wire_text(struct mc_wire *w, const char **s);
/* A blob: reading sets *p into the memory. */
void mc_wire_blob(struct mc_wire *w, const char **p, size_t *n);
/* Reading: a view of the memory, with one reference.  NULL is an array too. */
void mc_wire_array(struct mc_wire *w, mc_array **a);
void mc_wire_type(struct mc_wire *w, struct mc_type *t);
/* Enters and leaves a body: of a loop, or the side of a branch. */
bool mc_wire_enter(struct mc_wire *w, bool loop);
void mc_wire_leave(struct mc_wire *w, bool loop);
/* Zeroed memory for a list of n items, while reading; otherwise p. */
void *mc_wire_list(struct mc_wire *w, void *p, int64_t n, size_t size);
/* A field of a function.  Writing stores nothing in it: other threads may call the function. */
#define MC_WIRE_FIELD(w, field, value)                                                                       \
    do {                                                                                                     \
        const __typeof__(field) got_ = (__typeof__(field))(value);                                           \
        if ((w)->reading) {                                                                                  \
            (field) = got_;                                                                                  \
        }                                                                                                    \
    } while (0)
#define MC_WIRE_INT(w, field, least, most)                                                                   \
    MC_WIRE_FIELD(w, field, mc_wire_int((w), (int)(field), (least), (most)))
#define MC_WIRE_BOOL(w, field) MC_WIRE_FIELD(w, field, mc_wire_bool((w), (field)))
#define MC_WIRE_LIST(w, list, n) MC_WIRE_FIELD(w, list, mc_wire_list((w), (list), (n), sizeof *(list)))
void mc_wire_free(struct mc_wire *w);

/* ---- nodes.c, program.c ---- */
/* What the functions of a bundle have in common. */
struct mc_bundle_shared {
    struct mc_shared **at;
    int n;
    struct mc_images *images;   /* machine code for GPUs, of all functions; NULL: there is none */
};
/* Nodes by number: the order in which they are in the file. */
struct mc_bundle_nodes {
    mc_node **at;
    int64_t n;
    int64_t *number;            /* writing: by node id; -1: not in the file */
};
void mc_wire_shared(struct mc_wire *w, struct mc_bundle_shared *s);
/* Users' ops, then the nodes.  on_host: they are for the CPU. */
void mc_wire_nodes(struct mc_wire *w, mc_graph *g, const struct mc_bundle_shared *s,
                   struct mc_bundle_nodes *nodes, bool on_host);
const struct mc_op *mc_wire_op(const mc_graph *g, const char *name); /* NULL: there is none */
void mc_wire_node(struct mc_wire *w, const struct mc_bundle_nodes *nodes, mc_node **n); /* by its number */
/* Reading: p->graph is set, the rest is empty.  on_host: it is for the CPU. */
void mc_wire_program(struct mc_wire *w, struct mc_program *p, const struct mc_bundle_shared *s, bool on_host);
/* ---- images.c ---- */
/* Reading makes s->images and publishes them. */
void mc_wire_images(struct mc_wire *w, struct mc_bundle_shared *s);
/* Adds what f needs, if it is for a GPU; archs: NULL, or "sm_90,sm_80". */
mc_status mc_bundle_images(mc_function *f, const char *archs, struct mc_bundle_shared *s);
/* MC_EFORMAT: no image is for the device.  what: "bundle 'a.mcf'" */
mc_status mc_bundle_fits(const struct mc_images *images, const struct mc_code_unit *u, const char *what);
/* ---- kernels.c ---- */
/* MC_EARG: a word of the list is no set of instructions. */
mc_status mc_bundle_isa(const char *isa);
/* Writing: those of f.  Reading: f is NULL. */
void mc_wire_kernels(struct mc_wire *w, const struct mc_function *f, struct mc_code_unit *u, const char *isa);
/* ---- function.c ---- */
/* isa: the sets of instructions to write.  Reading makes *f. */
void mc_wire_function(struct mc_wire *w, mc_function **f, const struct mc_bundle_shared *s, const char *isa);

#endif
