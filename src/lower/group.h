/* group.h: the state of grouping. */
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
    /* the largest node id in the group and in all groups that it depends on.  A group does not depend on one
     * with a larger `newest`. */
    uint32_t newest;
    VEC(int) from, to;         /* groups that it reads; groups that read it */
    int seen;                  /* the number of the last search that visited the group */
};
struct fuse {
    VEC(struct group) group;
    int *of;                   /* by node id */
    VEC(int) stack, later;
    int search;
    /* steps taken to update `newest`, and their limit.  Beyond the limit `newest` is not kept up to date and
     * not used. */
    size_t raised, most;
    struct mc_sizes sizes;
};

int mc_group_root(const struct fuse *f, int g);
bool mc_group_depends_on(struct fuse *f, int a, int b);          /* does a depend on b? */
mc_status mc_group_update_newest(struct fuse *f, int g);            /* of all that depend on g */
bool mc_group_same_space(const struct fuse *f, const struct group *g, const mc_node *x, unsigned v);
/* merge.c */
bool mc_group_can_merge(struct fuse *f, int a, int b);
/* a full reduction makes one pass: can the merged group do with it? */
bool mc_group_keeps_full_reduction(const struct fuse *f, int a, int b);
mc_status mc_group_merge(struct fuse *f, int a, int b);      /* into a */
mc_status mc_group_merge_into(struct fuse *f, int a, int b); /* b's nodes join a, which keeps its space */
mc_status mc_group_merge_siblings(struct fuse *f, mc_node *const *list, size_t count, size_t nodes);
mc_status mc_group_merge_into_only_reader(struct fuse *f, mc_node *const *list, size_t count, int n,
                                          mc_node *const *out);
mc_status mc_group_merge_maps(struct fuse *f, mc_node *const *list, size_t count, size_t nodes);
/* column_sums.c */
mc_status mc_group_add_column_sums(struct fuse *f, mc_node *const *list, size_t count, size_t nodes);

#endif
