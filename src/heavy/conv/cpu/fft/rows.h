/* rows.h: reads and writes pieces of rows, for instruction sets without masks.
 *
 * Invariant: nothing outside of columns [c0, c1) of the array is accessed. */
#define READ_ROW  read_piece
#define WRITE_ROW write_piece

static inline TARGET __attribute__((always_inline)) void read_piece(float *to, const float *from, int c0,
                                                                    int c1, const int size)
{
    if (c0 == 0 && c1 == size) {
        memcpy(to, from, (size_t)size * sizeof *to);
        return;
    }
    memset(to, 0, (size_t)size * sizeof *to);
    for (int c = c0; c < c1; c++) {
        to[c] = from[c];
    }
}

static inline TARGET __attribute__((always_inline)) void write_piece(float *to, const float *from,
                                                                     float alpha, int c1, const int size)
{
    (void)size;
    for (int c = 0; c < c1; c++) {
        to[c] = alpha * from[c];
    }
}
