/* exported_main.c: goes on learning where export.c stopped, saves the network and draws what it has learned.
 * ring.c and ring.h are the files that export.c wrote; no library is needed:
 *
 *     cc -O2 -march=native -I FOLDER exported_main.c FOLDER/ring.c -lm -o ring && ./ring */
#include "points.h"
#include "ring.h"
#include <stdio.h>

enum { LEARNED = 100, STEPS = 2000, ROWS = 16, COLUMNS = 32 };

static struct ring model, loaded;

/* The variables are plain numbers: the structure is saved as it is. */
static int save_and_load(const char *path)
{
    FILE *f = fopen(path, "w+b");
    int good = f && fwrite(&model, sizeof model, 1, f) == 1;
    if (f) {
        rewind(f);
        good = good && fread(&loaded, sizeof loaded, 1, f) == 1;
        fclose(f);
    }
    return good;
}

static void draw(struct ring *m)
{
    for (int i = 0; i < ROWS; i++) {
        char line[COLUMNS + 1] = { 0 };
        for (int k = 0; k < COLUMNS; k++) {
            const float x[2] = { ((float)k + 0.5f) * 2 / COLUMNS - 1, ((float)i + 0.5f) * 2 / ROWS - 1 };
            float p[2];                  /* of outside and of inside */
            ring_predict(m, NULL, x, p); /* NULL: the file's own memory */
            line[k] = p[1] > 0.5f ? '#' : '.';
        }
        puts(line);
    }
}

int main(int argc, char **argv)
{
    float x[POINTS * 2], cost = 0, wrong = 0;
    int32_t t[POINTS];
    unsigned state = 1;
    ring_init(&model); /* as it was when it was exported */
    for (int step = 1; step <= STEPS; step++) {
        draw_points(x, t, &state);
        if (step > LEARNED && ring_train(&model, NULL, x, t, &cost, &wrong)) {
            return puts("an index was out of range"), 1;
        }
    }
    printf("step %d  cost %.9g\n", STEPS, (double)cost);
    if (!save_and_load(argc > 1 ? argv[1] : "ring.state")) {
        return puts("cannot save the variables"), 1;
    }
    draw(&loaded);
    return 0;
}
