/* The most that any level of vectors needs. */
enum {
    PANEL = 24576,    /* elements of a panel of columns, if a tap of one channel fits */
    MOST_STRIP = 48,  /* columns of a strip */
    MOST_DOTS = 6,    /* columns of a tile of dots */
    MOST_WIDTH = 16   /* elements of a vector */
};
