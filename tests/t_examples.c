/* t_examples.c: the programs that come with the library: they run, and say what they should; the program
 * monochord does what its table of commands says, and fails as a program should.
 *
 * Invariant: programs are those of this build: they lie beside this one. */
#include "cuda_test.h"
#include "program.h"
#include <math.h>

static const struct row examples[] = {
    { "@/examples/tutorial_plain 3",  0, { "exp(x)", "Looping 3 times", "Used the c" } },
    { "@/examples/tutorial_device 3", 0, { "Looping 3 times", "Result lies on the c", "Used the c" } },
    { "@/examples/tutorial_borrow 3", 0, { "gpu_from_host(exp(x)): looping", "borrow(gpu_from_host(exp(x))): looping", "Result is [" } },
    { "@/examples/logistic",          0, { "step 300  cost 0.1", "wrong  0.0%", "predictions: [" } },
    { "@/examples/lenet 40",          0, { "conv2          conv             ?x64x8x8", "dense2 = softmax(dot(dense1, dense2_W) + dense2_b)", "step 40  cost 0.0" } },
    { "@/examples/loops",             0, { "rises [-4. -2.  4.]", "highest 16.0", "smooth [4.  4.  3.  4.5]" } },
    { "@/examples/spectral",          0, { "time 0: u(0) =  1.75000, u_x(0) =  6.25000, exact to 1e-11", "time 4: u(0) =  1.48497, u_x(0) =  0.70056, exact to 1e-11" } },
    { "@/examples/custom_op",         0, { "kernel", "its gradient [", "differs" } },
    { "@/examples/digits 3",          0, { "epoch 3  wrong", "of the test set" } },
    { "@/examples/curve_fit",         0, { "step 5  cost", "2.500000 exp(-1.300000 t) + 0.500000" } },
    { "@/examples/gaussian_process",  0, { "step 300  nll", "at  2.00", "at  9.50" } },
    { "@/examples/pca",               0, { "direction 3", "explains 0.", "2 numbers a point leave a distance of 0.0" } },
    { "@/examples/projectile",        0, { "drag 0.00: 40.775 m after 2.88 s, at 45.00 degrees", "drag 0.02: 25.977 m", "drag 0.10: 12.218 m" } },
    { "@/examples/regression",        0, { "price from 3 columns: R^2 0.9", "on 40 examples held out" } },
    { "d=$(mktemp -d) && @/examples/export $d && rm -r $d", 0, { "wrote /", "ring.c", "step 2000  cost 0." } },
    /* the cost is of one batch, which last bits decide: below 0.2 */
    { "f=$(mktemp) && { @/examples/bundle save $f && PATH=/nowhere @/examples/bundle load $f; } | "
      "sed -E 's/(step 2000  cost) 0[.][01]/\\1 is low/; s/(2[6-9]|3[0-2]) of 32/nearly all of 32/'; rm $f", 0,
      { "step 100  cost 0.", "step 2000  cost is low", "nearly all of 32 new points are right" } },
    { "cd \"$(mktemp -d)\" && @/examples/save_load p.npz && rm p.npz && rmdir \"$PWD\"", 0, { "agrees in every bit" } },
}, exported[] = {
    { "d=$(mktemp -d) && @/examples/export $d >$d/said && cc -O2 -I $d " TEST_ROOT "/../examples/exported_main.c $d/ring.c -lm -o $d/ring && "
      "$d/ring $d/state && rm -r $d", 0, { "step 2000  cost 0.", ".....####", "####.....\n" } },
    { "d=$(mktemp -d) && @/examples/export $d >$d/said && cc -O2 -c $d/ring.c -o $d/ring.o && c++ -std=c++17 -O2 -pthread -I $d "
      TEST_ROOT "/../examples/exported_main.cpp $d/ring.o -lm -o $d/ring && $d/ring && rm -r $d", 0, { "step 2000  cost 0.", "points lie in the ring" } },
    { "d=$(mktemp -d) && cd $d && printf 'input 1x28x28\ndense 10 softmax\n' >m.txt && "
      "@/monochord train m.txt --data digits:600 --epochs 1 --save trained.safetensors >said && "
      "@/monochord export m.txt --c net.c --parameters first.safetensors && "
      "printf '#include \"net.h\"\n#include <stdio.h>\nstatic struct net model;\nstatic char bytes[1 << 20];\nint main(int n, char **path)\n{\n"
      "for (int i = 1; i < n; i++) {\nFILE *f = fopen(path[i], \"rb\");\n"
      "printf(\"%%s %%d\", path[i], net_load(&model, bytes, fread(bytes, 1, sizeof bytes, f)));\nprintf(\" %%g; \", (double)model.dense1_b[0]);\n}\n}\n' >main.c && "
      "cc -O2 main.c net.c -lm -o main && ./main first.safetensors trained.safetensors m.txt && rm -r $d", 0,
      { "first.safetensors 0 0; trained.safetensors 0 ", "m.txt 1 " } },
}, on_a_gpu[] = {
    { "@/examples/custom_cuda",       0, { "doubling(x.T[::-1]), off by 0 from 2 * x.T[::-1]", "both(x, y)[1], off by 0 from x - y", "[ 8. 18. 28. 38.]" } },
}, on_none[] = {
    { "@/examples/custom_cuda",       1, { "the NVIDIA driver is needed" } },
}, good[] = {
    { "@/monochord",                  0, { "optimizing compiler", "monochord run FILE", "monochord bench" } },
    { "@/monochord --version",        0, { "." } },
    { "@/monochord help run",         0, { "usage: monochord run FILE", "--feed random" } },
    { "@/monochord export --help",    0, { "usage: monochord export MODEL", "--batch N,N", "libc and libm" } },
    { "d=$(mktemp -d) && cd $d && @/monochord export lenet --c lenet.c --batch 1,32 --train && cat lenet.h && rm -r $d", 0,
      { "wrote lenet.c and its header; compile with: cc -O3 -march=native -c lenet.c", "int lenet_predict_32(const struct lenet *model, void *memory, const float *x, float *dense2);", "int lenet_train(" } },
    { "d=$(mktemp -d) && cd $d && printf 'input 1x28x28\ndense 10 softmax\n' >m.txt && @/monochord train m.txt --data digits:600 --epochs 1 --save m.npz >said && "
      "@/monochord export m.npz --c my-net.c --batch 4 && cat my-net.h && rm -r $d", 0,
      { "compile with: cc -O3 -march=native -c my-net.c", "float dense1_W[7840]; /* float32(784, 10) */", "int my_net_predict(const struct my_net *model, " } },
    { "d=$(mktemp -d) && cd $d && printf 'input 1x28x28\ndense 10 softmax\n' >m.txt && @/monochord train m.txt --data digits:600 --epochs 1 --save m.npz >said && "
      "@/monochord build m.npz -o m.mcf --batch 1,32 --train && @/monochord info m.mcf && @/monochord predict m.npz --data digits:600 >a && "
      "PATH=/nowhere @/monochord predict m.mcf --data digits:600 >b; cmp a b && echo equal answers; rm -r $d", 0,
      { "3 functions, loaded in ", "dense1_W                         float32  (784, 10)", "equal answers" } },
    { "@/monochord build --help",     0, { "usage: monochord build MODEL -o FILE", "avx512,avx2,sse2", "sm_90,sm_80" } },
    { "d=$(mktemp -d) && cd $d && @/monochord export mlp --c mlp.c --isa all && cat mlp.h && rm -r $d", 0,
      { "compile with: cc -O3 -c mlp.c", "const char *mlp_isa(void);" } },
    { "@/monochord demo --help",      0, { "usage: monochord demo [PAGE]" } },
    { "@/monochord train lenet -h",   0, { "usage: monochord train MODEL", "--resume" } },
    { "@/monochord predict --help",   0, { "--invert" } },
    { "@/monochord bench --help",     0, { "--only TEXT" } },
    { "@/monochord info",             0, { "processor", "compiler", "oneDNN" } },
    { "@/monochord info --flags",     0, { "floatX = ", "gemm.algo" } },
    { "MONOCHORD_FLAGS=threads=1,plan=measure @/monochord info", 0, { "plan=measure", "threads=1" } },
    { "@/monochord ops exp minus",    1, { "no such op" } },
    { "@/monochord ops softmax",      0, { "softmax " } },
    { "@/monochord wisdom show",      0, { "monochord wisdom 1" } },
    { "w=$(mktemp) && @/monochord wisdom export $w && @/monochord wisdom import $w && rm $w", 0, { NULL } },
    { "d=$(mktemp -d) && export XDG_CACHE_HOME=$d && printf 'input x float32[2, 3, 8, 8]; input w float32[4, 3, 3, 3]; output conv(x, w)' | "
      "MONOCHORD_FLAGS=plan=measure @/monochord run - --feed random >$d/out && @/monochord wisdom picture $d/p.svg && cat $d/p.svg && rm -r $d", 0,
      { "<svg xmlns", ">gradient of weights<", ">n2c3i8x8 f4k3x3o6x6 flip<" } },
    { "d=$(mktemp -d) && @/monochord docs $d && grep -h '`sum(x' $d/ops.md && grep -h '`floatX`' $d/flags.md && rm -r $d", 0,
      { "| `sum(x, axis=None, keepdims=False", "| `floatX` | `float64`" } },
    { "@/monochord bench",            0, { "exp", "gemm", "pool" } },
    { "@/monochord bench call --json", 0, { "\"suite\": \"call\", \"case\": \"x + 1, 4 floats\"", "\"ms\": ", "\"rel_err\": " } },
    { "printf '# a comment\\noutput 2 ** 10\\n' | @/monochord run -", 0, { "1024" } },
    { "printf 'output 2 ** 5 # first, not last\\noutput 3 ** 5\\n' | @/monochord run -", 0, { "output 0 = 32", "output 1 = 243" } },
    { "printf 'input x float64[2]\\nshared w float64[3]\\nc = sum(x) * sum(x) + sum(w + 1)\\noutput 0 * grad(c, x), grad(c, [x, w])' | @/monochord run - --feed random", 0,
      { "output 0 = [0. 0.]", "output 2 = [1. 1. 1.]" } },
    { "echo 'output 2 * arange(4)' | @/monochord run -", 0, { "[0 2 4 6]" } },
    { "printf 'input x float64[?, 3]\\ny = sum(x,\\n  axis=1)\\noutput y' | @/monochord run - --feed random --size x=2", 0, { "y = [" } },
    { "printf 'input x float64[2]; shared s float64; output s; update s = s + sum(x)' | @/monochord run - --feed random --calls 3 --time", 0,
      { "ms a call" } },
    { "printf 'input x float32[?]; output exp(x), borrow(tanh(x))' | @/monochord run - --pass kernels", 0, { "k0" } },
    { "printf 'input x float32[?]; output exp(x) * 1' | @/monochord run - --pass graph", 0, { "exp(x)" } },
    { "printf 'input x float32[?]; output exp(x)' | @/monochord run -", 0, { "kernel" } },
    { "printf 'input x float32[4, 4]; output dot(x, x)' | @/monochord run - --pass plan --feed random", 0, { "memory ", "gemm" } },
    { "printf 'output = 3; output output' | @/monochord run -", 0, { "3" } },
    { "d=$(mktemp -d); printf 'y = 2 * arange(3.0); s = sum(y); output y, s, y - 1, y' | @/monochord run - --save $d/y.npz >$d/said && "
      "printf 'shared y float64[3]; shared s float64; shared output_2 float64[3]; output y + s + output_2' >$d/again && "
      "(cd $d && python3 -m zipfile -e y.npz . 2>$d/unzipped || unzip -q y.npz) && @/monochord run $d/again --feed y=$d/y.npy --feed s=$d/s.npy "
      "--feed output_2=$d/output_2.npy && ls $d && rm -r $d", 0,
      { "[ 5.  9. 13.]", "output_2.npy\noutput_3.npy\n" } },
}, bad[] = {
    { "@/monochord sing",             1, { "there is no command 'sing'" } },
    { "@/monochord trian lenet",      1, { "did you mean 'train'?" } },
    { "@/monochord help sing",        1, { "there is no command 'sing'" } },
    { "@/monochord export lenet",     1, { "usage: monochord export" } },
    { "@/monochord export lenet --c", 1, { "--c needs the name of a file" } },
    { "@/monochord export lenet --c lenet.h", 1, { "--c needs the name of a file that ends in .c, not 'lenet.h'" } },
    { "@/monochord export lenet --c lenet.c --batch 1,x", 1, { "--batch needs numbers such as 1,32" } },
    { "@/monochord export lenet --c lenet.c --batch 32,1,32", 1, { "--batch: 32 is given twice" } },
    { "@/monochord build lenet",      1, { "usage: monochord build" } },
    { "@/monochord build lenet -o",   1, { "-o needs the name of a file" } },
    { "@/monochord build lenet -o m.mcf --isa avx3", 1, { "there is no instruction set 'avx3'" } },
    { "@/monochord build lenet -o /dev/null/m.mcf", 1, { "/dev/null/m.mcf" } },
    { "@/monochord build lenet -o m.mcf --gpu", 1, { "--gpu needs a list such as sm_90,sm_80, or native" } },
    { "@/monochord export lenet --c lenet.c --isa", 1, { "--isa needs a word: avx2, avx512 or all" } },
    { "@/monochord export lenet --c lenet.c --isa sse2", 1, { "export: isa is avx2, avx512 or all, not 'sse2'" } },
    { "@/monochord export lent --c lenet.c", 1, { "did you mean 'lenet'?" } },
    { "@/monochord export lenet --c /dev/null/lenet.c", 1, { "/dev/null/lenet" } },
    { "@/monochord demo --fast",      1, { "usage: monochord demo" } },
    { "@/monochord docs -v",          1, { "usage: monochord docs" } },
    { "@/monochord info loudly",      1, { "'loudly'", "monochord help info" } },
    { "@/monochord bench walking",    1, { "there is no suite 'walking'" } },
    { "@/monochord bench exp --list", 1, { "--list is for the suite zoo" } },
    { "@/monochord bench exp --yaml", 1, { "'--yaml' is not understood" } },
    { "@/monochord wisdom",           1, { "usage: monochord wisdom" } },
    { "@/monochord wisdom import /dev/null", 1, { "wisdom" } },
    { "d=$(mktemp -d); XDG_CACHE_HOME=$d @/monochord wisdom picture $d/p.svg 2>&1; s=$?; rm -r $d; exit $s", 1, { "no convolutions yet" } },
    { "@/monochord docs /dev/null/x", 1, { "cannot make" } },
    { "MONOCHORD_FLAGS=thread=1 @/monochord info", 1, { "unknown flag 'thread'; did you mean 'threads'?" } },
    { "@/monochord run",              1, { "usage: monochord run" } },
    { "@/monochord run nosuchfile",   1, { "cannot read 'nosuchfile'" } },
    { "@/monochord run - --pass hat < /dev/null", 1, { "unknown pass 'hat'" } },
    { "@/monochord run - --time --calls x < /dev/null", 1, { "--calls: 'x' is not a whole number above 0" } },
    { "@/monochord run - --below 0 < /dev/null", 1, { "--below: '0' is not a whole number above 0" } },
    { "@/monochord run - --calls 99999999999999999999 < /dev/null", 1, { "--calls: '99999999999999999999' is no" } },
    { "echo 'output 1 + 1' | @/monochord run - --mode QUICK", 1, { "unknown mode 'QUICK'; expected FAST_RUN, FAST_COMPILE, DEBUG or NANGUARD" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed x=a.npy --feed x=b.npy", 1, { "--feed: 'x' is given twice" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed random --size x=1 --size x=2", 1, { "--size: 'x' is given twice" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed random --size x=99999999999999999999", 1,
      { "--size x: '99999999999999999999' is not a list of sizes" } },
    { "@/monochord ops zebra", 1, { "there is no such op: none has 'zebra' in its name or description" } },
    { "@/monochord docs /dev/null 2>&1 | wc -l", 0, { "1" } },
    { "@/monochord wisdom tell", 1, { "'tell'", "usage: monochord wisdom" } },
    { "@/monochord run - --size < /dev/null", 1, { "--size needs a value" } },
    { "@/monochord run - < /dev/null", 1, { "nothing to compute" } },
    { "printf 'input x float32[?]\ny = sums(x)\n' | @/monochord run -", 1, { "there is no function 'sums'; did you mean 'sum'?" } },
    { "@/examples/digits digits:600", 1, { "digits [EPOCHS [WHERE]]" } },
    { "echo 'output x + 1' | @/monochord run -", 1, { "there is no variable 'x'", "^" } },
    { "printf 'y = 1\\nz = y +\\noutput z' | @/monochord run -", 1, { "^" } },
    { "printf 'y = 1 +\\noutput z' | @/monochord run - 2>&1 | grep -c 'at .*[.]c:'", 1, { "0" } },
    { "echo 'output 1 + 1' | @/monochord run - --mode SLOW 2>&1 | grep -c 'at .*[.]c:'", 1, { "0" } },
    { "printf 'input x float64[?]; output x' | @/monochord run - --time", 1, { "input 'x' has no value" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed random --size x=2,3", 1, { "more sizes" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed random --size x=few", 1, { "'few' is not a list of sizes" } },
    { "printf 'input x float64[?, ?]; output x + 1' | @/monochord run - --feed random --size x=6", 1, { "--size x gives 1 of the input's 2 sizes" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed random --size y=6", 1, { "--size: there is no input 'y'" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --feed y=/dev/null --feed random", 1, { "'y'" } },
    { "printf 'input x float64[?]; input y float64; output x + 1' | @/monochord run -", 1, { "'y' is not used" } },
    { "printf 'input x float64[2]; input y float64[3]; output x + y' | @/monochord run - --feed random", 1, { "x", "y" } },
    { "printf 'output arange(4)[7]' | @/monochord run -", 1, { "7" } },
    { "echo 'output 1 + 1' | @/monochord run - --save /dev/null/x.npz", 1, { "--save: ", "/dev/null/x.npz" } },
    { "printf 'input x float64[?]; output x + 1' | @/monochord run - --save /dev/null/x.npz", 1, { "input 'x' has no value" } },
};

TEST(examples_run) { run_rows(examples, COUNT(examples), output_of); }
/* Programs that need no library, compiled with what examples/export or the program writes. */
TEST(exported_examples_run)
{
    static const char *const usable[] = { /* does what the compilers make run here? */
        "d=$(mktemp -d) && cd $d && echo 'int main(void) { return 0; }' >p.c && cc p.c -o p && ./p; s=$?; rm -r $d; exit $s",
        "d=$(mktemp -d) && cd $d && echo 'extern \"C\" int one(void); int main() { return one(); }' >m.cpp && echo 'int one(void) { return 0; }' >o.c && "
        "cc -c o.c && c++ -std=c++17 m.cpp o.o -o p && ./p; s=$?; rm -r $d; exit $s",
    };
    for (size_t i = 0; i < COUNT(exported); i++) {
        const bool cpp = strstr(exported[i].command, "c++") != NULL;
        int status;
        output_of(usable[cpp], &status);
        if (status) {
            SKIP("no %s compiler here, or what it makes does not run here", cpp ? "C++" : "C");
        }
        run_rows(&exported[i], 1, output_of);
    }
}
TEST(examples_of_gpus_run_or_say_what_they_need)
{
    const bool there = nvrtc_here() && mc_cuda_count() > 0;
    if (!there && mc_nv_found(NV_DRIVER)->present) {
        SKIP("a driver, and no GPU that serves");
    }
    run_rows(there ? on_a_gpu : on_none, 1, output_of);
}
TEST(program_does_what_it_says) { run_rows(good, COUNT(good), output_of); }

/* Layers of a class, which the first word of a line names. */
static int of_class(const char *lines, const char *class)
{
    int n = 0;
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        n += strncmp(line, class, strlen(class)) == 0 && line[strlen(class)] == ' ';
    }
    return n;
}

TEST(shards_have_the_same_share_of_each_class)
{
    static const char *const classes[] = { "depthwise", "grouped", "strided", "dilated", "few", "axis",
                                           "three", "plain", "pointwise", "product", "norm" };
    static const int counts[] = { COUNT(classes), 60, 120 };
    int status, total = 0;
    char *all = strdup(output_of("@/monochord bench zoo --list", &status));
    for (const char *c = all; *c; c++) {
        total += *c == '\n';
    }
    for (size_t i = 0; i < COUNT(counts); i++) {
        char command[64];
        snprintf(command, sizeof command, "@/monochord bench zoo --list --shard 5:%d", counts[i]);
        const char *shard = output_of(command, &status);
        int found = 0;
        for (size_t k = 0; k < COUNT(classes); k++) {
            const int n = of_class(shard, classes[k]);
            const double share = (double)counts[i] * of_class(all, classes[k]) / total;
            CHECK(n >= 1 && (i == 0 || fabs(n - share) < 2), "%d of %s, %.1f expected", n, classes[k], share);
            found += n;
        }
        CHECK(found == counts[i], "%d layers of %d", found, counts[i]);
    }
    free(all);
}

/* Ours and the peers draw by programs of their own. */
TEST(shards_are_those_of_the_peers)
{
    int status;
    output_of("python3 -c pass", &status);
    if (status) {
        SKIP("no python3");
    }
    const char *text = output_of(
        "for shard in 1:11 2:120 -3:40 4:9999; do theirs=$(BENCH_SHARD=$shard python3 " TEST_ROOT
        "/../bench/peers/networks.py) && ours=$(@/monochord bench zoo --list --shard $shard) && "
        "[ -n \"$ours\" ] && [ \"$ours\" = \"$theirs\" ] || { echo $shard; exit 1; }; done",
        &status);
    CHECK(status == 0, "not the same layers: %s", text);
}

TEST(program_fails_with_a_message) { run_rows(bad, COUNT(bad), output_of); }

/* docs/ops.md, docs/flags.md, docs/layers.md and docs/api/ops-*.md say what the tables say, and what the
 * examples of ops give; `make bless` or `make docs` writes them. */
TEST(manuals_are_the_tables)
{
    int status;
    bool bless = getenv("MC_BLESS") && *getenv("MC_BLESS") == '1';
    const char *text = output_of(
        bless
            ? "@/monochord docs " TEST_ROOT "/../docs"
            : "d=$(mktemp -d) && @/monochord docs $d >$d/said && cd " TEST_ROOT "/../docs && "
              "for f in ops.md flags.md layers.md api/ops-*.md; do diff $f $d/$f || bad=1; done; "
              "ls $d/api >$d/pages; ls api | grep ^ops- | diff - $d/pages || bad=1; rm -r $d; exit ${bad:-0}",
        &status);
    CHECK(status == 0, "older than the tables: make docs\n%.2000s", text);
}
