/* panel.h: the most that any level of vectors needs.  It is part of exported files. */
enum {
    PANEL = 24576,      /* elements of a panel of columns, if a tap of one channel fits */
    STACK_PANEL = 8192, /* elements of the panel that a thread of an exported file has on its stack */
    MOST_STRIP = 64,    /* columns of a strip */
    MOST_DOTS = 6,      /* columns of a tile of dots */
    MOST_WIDTH = 16     /* elements of a vector */
};
