/* group.h: fusion while it goes on. */
#ifndef MC_GROUP_H
#define MC_GROUP_H

#include "lower/lower.h"

enum { MOST_NODES = 160, MOST_SOURCES = 40 };

struct group {
    int rank, nnode, nsource;
    unsigned varies, reduced;  /* axes of the space; axes its reductions reduce */
    const mc_node *space;      /* has the group's sizes */
    bool fusible;
    int into;                  /* merged into this group; -1: itself */
    /* id among its nodes and those of all groups that it waits for: it waits for none that has a newer one */
    uint32_t newest;
    VEC(int) from, to;         /* groups that it reads; that read it */
    int seen;                  /* the last search that came by */
};
struct fuse {
    VEC(struct group) group;
    int *of;                   /* by node id */
    VEC(int) stack, later;
    int search;
    /* steps in which `newest` was passed on, and how many may be taken; then it is not believed */
    size_t raised, most;
    struct mc_sizes sizes;
};

int mc_group_root(const struct fuse *f, int g);
bool mc_group_waits(struct fuse *f, int a, int b);          /* does a wait for b? */
mc_status mc_group_raise(struct fuse *f, int g);            /* who waits for g is at least as new */
bool mc_group_same_space(const struct fuse *f, const struct group *g, const mc_node *x, unsigned v);
/* merge.c */
bool mc_group_can_merge(struct fuse *f, int a, int b);
/* merged, would neither side walk twice what a fold walks once? */
bool mc_group_keeps_fold(const struct fuse *f, int a, int b);
mc_status mc_group_merge(struct fuse *f, int a, int b);      /* into a */
mc_status mc_group_merge_into(struct fuse *f, int a, int b); /* b's work goes into a, which keeps its space */
mc_status mc_group_merge_siblings(struct fuse *f, mc_node *const *list, size_t count, size_t nodes);
mc_status mc_group_absorb(struct fuse *f, mc_node *const *list, size_t count, int n, mc_node *const *out);
/* tally.c */
mc_status mc_group_add_tallies(struct fuse *f, mc_node *const *list, size_t count, size_t nodes);

#endif
