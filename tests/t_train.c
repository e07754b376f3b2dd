/* t_train.c: monochord train and predict: what is learned, what is said when something is wrong, what the
 * report holds. */
#include "markup.h"
#include "train_folder.h"
#include <monochord_nn.h>

/* ---- what it says ---- */

static const struct row good[] = {
    { TRAIN " m.txt" SMALL, 0, { "19090 parameters", "test error ", "report.html" } },
    { TRAIN " m.txt" SMALL " --report none && ls", 0, { "m.npz\n", "examples/s", "answers (across)" } },
    { TRAIN " m.txt" SMALL " --quiet --report none --save m.safetensors && @/monochord predict m.safetensors --data digits:600 && @/monochord info m.safetensors", 0,
      { "100 examples: error ", "uint8    (" } },
    { TRAIN " c.txt" SMALL " --quiet && ls", 0, { "c.npz\n", "report.html" } },
    { TRAIN " n.txt" SMALL " --report none", 0, { "0.1  ", "0.05  ", "0.025  " } },
    { TRAIN " flat.txt" SMALL " --report none --epochs 2 --batch 50 --line 'rule adam rate=0.002'", 0, { "in batches of 50", "adam rate=0.002", "     2  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none --epochs 2 && " TRAIN " m.txt" SMALL " --resume --report none --epochs 3", 0, { "     3  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt" SMALL " --new --report none --save m.npz", 0, { "     1  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none && head -c 3000 m.npz > x && mv x m.npz && " TRAIN " m.txt" SMALL " --resume --report none", 0,
      { "'m.npz' is not a .npz file or is truncated; continuing from 'm.npz.old'", "     4  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none --epochs 30 && @/monochord predict m.npz --data digits:600", 0, { "100 examples: error ", "answers (across)" } },
    { TRAIN " m.txt" SMALL " --report none --epochs 200 --line 'rule sgd rate=0' --line 'patience 2'", 0, { "no improvement in 2 epochs", "(of the best epoch)" } },
    { "MONOCHORD_FLAGS=debug=plan,onednn=none " TRAIN " c.txt" SMALL " --batch 10 --epochs 9 --report none", 0, { "us measured", "     9  " } }, /* 540 steps */
    { "MONOCHORD_FLAGS=debug=plan,plan=estimate " TRAIN " c.txt" SMALL " --batch 10 --epochs 9 --report none > log 2>&1; grep -q 'us measured' log || echo as was said", 0,
      { "as was said" } },
    { "MONOCHORD_FLAGS=debug=plan " TRAIN " c.txt" SMALL " --report none > log 2>&1; grep -q 'us measured' log || echo too few", 0, { "too few" } },
    { TRAIN " fit.txt" SMALL " --report none", 0, { "7850 parameters", "test error " } },
    { TRAIN " m.txt" SMALL " --report none --line 'rule sgd rate=1e8' --epochs 1 | grep -c '[0-9]e[+]'", 0, { "1" } }, /* columns stay */
    { TRAIN " fit.txt" SMALL " --quiet --report none && printf 'P5 28 28 255\n%784s' x > x.pgm && @/monochord predict fit.npz no.png x.pgm; echo $?", 0,
      { "cannot open 'no.png'", "x.pgm: ", "%\n1\n" } },
    { "@/monochord data digits:600", 0, { "to learn from: 600 examples of 1x28x28, 10 classes", "to test with: 100 examples", "  9 " } },
    { "@/monochord data digits:600 sheet.png && mkdir -p p/a && cp sheet.png p/a/1.png && for i in 2 3 4 5 6 7 8 9 10; do cp p/a/1.png p/a/$i.png; done && "
      "@/monochord data p", 0, { "to learn from: 9 examples of 1x280x448, 1 classes" } },
    { TRAIN " line.txt --data line.csv --new --report none --save l.npz --epochs 2", 0, { "1 number each: 18 to learn, 2 to test", "R^2", "loss by epoch" } },
    { TRAIN " line.txt --data line.csv:target=3:header=true --quiet --report none --epochs 1 && @/monochord predict line.npz line.csv --csv | head -1", 0, { "y\n" } },
    { TRAIN " line.txt --data line.csv --quiet --report none --epochs 1 && @/monochord predict line.npz line.csv | tail -1", 0, { "line.csv, row 20: y " } },
    { TRAIN " line.txt --data line.csv --quiet --report none --epochs 1 --curve c.svg && grep -q 'Loss, by epoch' c.svg && echo drawn", 0, { "drawn" } },
    { TRAIN " kinds.txt --data kinds.csv --quiet --report none --epochs 200 && @/monochord predict kinds.npz kinds.csv --csv | head -3 && "
      "printf 'v;u\n0;1\n' > turned.csv && @/monochord predict kinds.npz turned.csv", 0, { "answer,\"high, or so\",low\nlow,0.0", "turned.csv, row 1: high, or so " } },
    { "@/monochord data csv:line.csv:target", 0, { "18 examples of 2, 1 number to learn", "  y  " } },
    { "@/monochord data csv:kinds.csv:delimiter=semicolon", 0, { "9 examples of 2, 2 classes", "high, or so" } },
    { "PATH=/nowhere XDG_CACHE_HOME=$PWD/none @/monochord info", 0, { "there is no program 'cc'; install a C compiler", "apt-get install gcc" } },
    { "PATH=/nowhere XDG_CACHE_HOME=$PWD/none MONOCHORD_FLAGS=device=cpu " TRAIN " fit.txt" SMALL " --quiet && grep -c 'class=\"card warn\"' report.html", 0,
      { "kernels run as reference loops, several times slower than compiled ones: there is no program 'cc'", "apt-get install gcc", "\n1\n" } },
    { "PATH=/nowhere XDG_CACHE_HOME=$PWD/none MONOCHORD_FLAGS=device=cpu,debug=warn " TRAIN " fit.txt" SMALL " --quiet 2>&1 | grep -c '^warn: learn: '", 0, { "1\n" } }, /* once */
}, bad[] = {
    { TRAIN " fit.txt --data csv:line.csv:target", 1, { "the examples are 2, but the model expects 28x28" } },
    { TRAIN " kinds.txt --data csv:line.csv:target", 1, { "the examples have numbers to learn, but the loss categorical_crossentropy is one of classes" } },
    { TRAIN " line.txt --data csv:line.csv:target=u,y", 1, { "the examples are 1, but the model expects 2" } },
    { TRAIN " line.txt --data csv:line.csv:target=y,y", 1, { "there are 2 numbers to learn, but the model gives 1" } },
    { TRAIN " line.txt --data line.csv --quiet --report none --epochs 1 && printf '1,2\n' > plain.csv && @/monochord predict line.npz plain.csv", 1,
      { "plain.csv: columns: there is no column 'u' among 2" } },
    { TRAIN " line.txt --data line.csv --quiet --report none --epochs 1 && printf 'u,v\n1,2\n3,x\n' > bad.csv && @/monochord predict line.npz bad.csv", 1,
      { "bad.csv: line 3, column 2 (v): 'x' is not a number" } },
    { "@/monochord data line.csv:", 1, { "cannot open 'line.csv:'" } },
    { TRAIN " line.txt --data line.csv --report line.csv", 1, { "'line.csv' is the data: it is not replaced" } },
    { TRAIN " line.txt --data csv:line.csv:target=y --save line.csv --new", 1, { "'line.csv' is the data: it is not replaced" } },
    { "@/monochord predict m.npz --csv a.csv b.png", 1, { "pictures and tables have different columns" } },
    { "@/monochord data csv:line.csv:target nowhere.png", 1, { "the examples are not pictures" } },
    { "@/monochord data", 1, { "usage: monochord data" } },
    { "@/monochord data nowhere", 1, { "there is no file 'nowhere'" } },
    { "@/monochord data digits:600 no/where.png", 1, { "no/where.png" } },
    { TRAIN, 1, { "usage: monochord train MODEL", "--resume" } },
    { TRAIN " nosuch", 1, { "there is no file 'nosuch', and no such model; models:", "lenet" } },
    { TRAIN " typo.txt" SMALL, 1, { "typo.txt:2: ", "conf 32 5x5\n    ^", "did you mean 'conv'" } },
    { TRAIN " none.txt" SMALL, 1, { "the model has no layers" } },
    { TRAIN " maps.txt" SMALL, 1, { "an example has 1 class, but the model gives 240" } },
    { TRAIN " five.txt" SMALL, 1, { "the examples have 10 classes, but the model has 5" } },
    { TRAIN " rows.txt" SMALL, 1, { "rows.txt: the last layer, dense1, gives 7 rows however many examples there are" } },
    { TRAIN " relu.txt" SMALL, 1, { "categorical_crossentropy takes probabilities, but the last layer, dense1, gives relu's", "'dense 10 softmax'" } },
    { TRAIN " sums.txt" SMALL, 1, { "dense1, gives sums" } },
    { TRAIN " m.txt" SMALL " --line 'loss squared_error'", 1, { "the loss squared_error is not one of classes" } },
    { TRAIN " size.txt" SMALL, 1, { "the examples are 1x28x28, but the model expects 1x29x28" } },
    { TRAIN " m.txt --data nowhere", 1, { "there is no file 'nowhere'" } },
    { TRAIN " m.txt --data digits:x", 1, { "digits:N needs a whole number" } },
    { TRAIN " m.txt" SMALL " --line 'augment crop=40'", 1, { "crop=40 is larger than the pictures, 28" } },
    { TRAIN " m.txt" SMALL " --line 'augment shift=28'", 1, { "shift=28 is too large for pictures of size 28" } },
    { TRAIN " lenett" SMALL, 1, { "there is no file 'lenett', and no such model; did you mean 'lenet'?" } },
    { TRAIN " m.txt --new --resume", 1, { "one of them" } },
    { TRAIN " m.txt" SMALL " --report none > /dev/full", 1, { "cannot write the output: No space left" } },
    { TRAIN " m.txt" SMALL " --line 'rule sgb rate=1'", 1, { "sgb", "^" } },
    { TRAIN " m.txt --epochs", 1, { "--epochs needs a value" } },
    { TRAIN " m.txt --epochs many", 1, { "--epochs needs a whole number of at least 1, not 'many'" } },
    { TRAIN " m.txt --slowly", 1, { "'--slowly' is not understood; monochord help train" } },
    { TRAIN " m.txt --epocs 3", 1, { "'--epocs' is not understood; did you mean '--epochs'?" } },
    { TRAIN " m.txt" SMALL " --resume", 1, { "cannot resume: cannot open 'm.npz': No such file" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt" SMALL, 1, { "'m.npz' already exists", "--resume", "--new" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " c.txt" SMALL " --resume --save m.npz", 1, { "is of another model or of other settings" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt --data digits:601 --resume", 1, { "was trained on other data" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt" SMALL " --seed 2 --resume", 1, { "was trained with another seed" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && echo x > m.npz && echo x > m.npz.old && " TRAIN " m.txt" SMALL " --resume", 1, { "cannot resume: 'm.npz'" } },
    { TRAIN " m.txt" SMALL " --quiet --save no/where/m.npz", 1, { "cannot write 'no/where/m.npz': No such file" } },
    { TRAIN " m.txt" SMALL " --quiet --report no/where.html && ls m.npz", 1, { "cannot write 'no/where.html': No such file" } },
    { TRAIN " m.txt" SMALL " --quiet --curve no/where.svg", 1, { "cannot write 'no/where.svg': No such file" } },
    { TRAIN " typo.txt 2>&1 | grep -c 'at .*[.]c:'", 1, { "0" } }, /* no place in the program's own text */
    { TRAIN " wild.txt" SMALL " --report none", 1, { "is not finite in epoch 1, batch ", "it first occurred in epoch 1, batch ", "wild" } },
    { TRAIN " n.txt" SMALL " --report none --epochs 12 --line 'schedule step every=9 by=1e38'", 1, { "is not finite in epoch 10, batch ", "it first occurred in epoch 10, batch " } },
    { "@/monochord predict", 1, { "usage: monochord predict" } },
    { "@/monochord predict m.npz", 1, { "predict: no input is given; name pictures, tables or --data WHERE" } },
    { "mkdir net && " TRAIN " net" SMALL, 1, { "'net': Is a directory" } },
    { "@/monochord predict m.txt x.png", 1, { "m.txt" } },
    { "@/monochord predict m.npz --data", 1, { "--data needs a value" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && @/monochord predict m.npz x.png", 1, { "'x.png'" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && printf 'P5 3 2 255\\n123456' > x.pgm && @/monochord predict m.npz x.pgm", 1,
      { "x.pgm: the examples are 1x2x3, but the model expects 1x28x28" } },
};

TEST(training_does_what_it_says) { run_rows(good, COUNT(good), in_folder); }
TEST(training_fails_with_a_message) { run_rows(bad, COUNT(bad), in_folder); }

/* Pictures with a class for each place: bright ones are of class 1. */
TEST(classes_of_places_are_learned)
{
    static const struct { const char *command; int status; const char *says; } rows[] = {
        { "@/monochord data %s", 0, "36 examples of 1x8x8, 2 classes, one of them for each of 64 places" },
        { TRAIN " places.txt --data %s --save p.npz && ls", 0, "test error 0.00%" },
        { TRAIN " places.txt --data %s --quiet --report none --save p.npz && @/monochord predict p.npz --data %s", 0,
          "4 examples: error 0.00%" },
        { TRAIN " places.txt --data %s --quiet --report none --epochs 1 --save p.npz && @/monochord predict p.npz a.png", 1,
          "answers with a class for each of 64 places" },
        { TRAIN " places.txt --data %s --line 'augment flip=true'", 1, "cannot be augmented" },
        { TRAIN " five.txt --data %s", 1, "model expects 1x28x28" },
        { TRAIN " places.txt" SMALL, 1, "model expects 1x8x8" },
    };
    char path[] = "/tmp/places-XXXXXX.npz", command[1024];
    const int made = mkstemps(path, 4);
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(40, 1, 8, 8)),
             *t = mc_array_new(MC_UINT8, MC_SHAPE(40, 8, 8));
    REQUIRE(made >= 0 && x && t, "no file");
    for (int64_t i = 0; i < mc_array_size(t); i++) {
        const bool bright = test_random() % 3 == 0;
        ((uint8_t *)mc_array_data(t))[i] = bright;
        ((float *)mc_array_data(x))[i] = bright ? 0.8f : 0.2f;
    }
    CHECK(mc_archive_save(path, NULL, 2, (const char *const[]){ "x", "t" },
                          (const mc_array *const[]){ x, t }) == MC_OK,
          "%s", mc_last_error());
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status = 0;
        snprintf(command, sizeof command, rows[i].command, path, path);
        const char *said = in_folder(command, &status);
        CHECK(said && strstr(said, rows[i].says) && !status == !rows[i].status, "%s: %d: %s", command, status,
              said);
    }
    mc_array_unref(&x), mc_array_unref(&t);
    close(made);
    unlink(path);
}

/* A disk that takes no more: the checkpoint that was there stays as it was, and the run goes on to its
 * end. */
TEST(a_full_disk_leaves_the_checkpoint)
{
    int status;
    const char *text = in_folder(
        TRAIN " m.txt" SMALL
              " --quiet --report none --epochs 1 && cp m.npz was && (trap '' XFSZ; ulimit -f 20; " TRAIN
              " m.txt" SMALL
              " --resume --report none; echo ended with $?); cmp m.npz was && echo there: && ls",
        &status);
    CHECK(status == 0 && strstr(text, "the checkpoint was not saved; the previous one is kept") &&
              strstr(text, "ended with 1") && strstr(text, "     4  "),
          "%s", text);
    text = strstr(text, "there:");
    CHECK(text && !strstr(text, ".tmp") && !strstr(text, ".new"), "something is left behind: %s",
          text ? text : "");
}

/* A report that finds no room leaves the page that was there. */
TEST(a_full_disk_leaves_the_report)
{
    int status;
    const char *text = in_folder(
        TRAIN " fit.txt" SMALL " --quiet --report none --epochs 1 && echo a page > report.html && (trap '' "
              "XFSZ; ulimit -f 20; " TRAIN " fit.txt" SMALL
              " --quiet --save none --new; echo ended with $?); cat report.html && ls",
        &status);
    CHECK(status == 0 && strstr(text, "cannot write the report: ") && strstr(text, "ended with 1") &&
              strstr(text, "a page\n"),
          "%s", text);
    CHECK(!strstr(text, ".tmp"), "something is left behind: %s", text);
}

TEST(a_picture_is_recognised)
{
    int status, right = 0;
    char folder[] = "/tmp/mctrainXXXXXX", command[1024];
    mc_data *d = mc_data_open("digits:3000", MC_TEST);
    REQUIRE(d && mkdtemp(folder), "%s", mc_last_error());
    for (int i = 0; i < 10; i++) {
        float x[784];
        uint8_t v[784];
        size_t n;
        mc_data_example(d, i, x);
        for (int k = 0; k < 784; k++) {
            v[k] = (uint8_t)(255 - (int)(x[k] * 255 + 0.5f));
        }
        void *png = mc_image_png(v, 28, 28, 1, &n);
        snprintf(command, sizeof command, "%s/%d.png", folder, i);
        CHECK(mc_file_write(command, png, n) == MC_OK, "%s", mc_last_error());
        mc_free(png);
    }
    snprintf(command, sizeof command,
             TRAIN
             " flat.txt --data digits:3000 --quiet --report none --epochs 5 --line 'rule adam rate=0.003' && "
             "@/monochord predict flat.npz --invert %s/?.png; s=$?; rm -r %s; exit $s",
             folder, folder);
    const char *text = in_folder(command, &status);
    CHECK(status == 0, "%s", text);
    const char *at = text;
    for (int i = 0; i < 10 && (at = strstr(at, ".png: ")); i++) {
        at += 6;
        right += atoi(at) == mc_data_label(d, i);
    }
    CHECK(right >= 7, "%d of 10 are recognised: %s", right, text);
    mc_data_free(d);
}

TEST(the_report_is_a_page_of_its_own)
{
    char folder[] = "/tmp/mctrainXXXXXX", path[64], *text = NULL;
    size_t n;
    struct markup m;
    static const char *const says[] = { "Wrong, by epoch", "Filters of the first layer", "One example through the layers", "The worst mistakes",
                                        "Labels and answers", "How its convolutions are computed", "<td>conv1 forward</td>", "<td>gradient of conv1_W",
                                        "<span class=\"name\">dense1 forward", "update of dense1_W", "class=\"net\"", ">104 parameters<", "4×24×24", "Learned from generated digits, in batches of 100", "data:image/png;base64," };
    REQUIRE(mkdtemp(folder), "no folder");
    write_model(folder, 1);
    CHECK(wait_for(start(folder, "m.txt --data digits:600 --quiet")) == 0, "no report");
    snprintf(path, sizeof path, "%s/report.html", folder);
    REQUIRE(mc_file_read(path, &text, &n) == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < COUNT(says); i++) {
        CHECK(strstr(text, says[i]), "the report lacks '%s'", says[i]);
    }
    CHECK(markup_good(&m, text, true), "%s", m.why);
    CHECK(!strstr(text, "src=\"http") && !strstr(text, "href=") && !strstr(text, "url("),
          "it asks for something else");
    mc_free(text);
    remove_folder(folder);
}
