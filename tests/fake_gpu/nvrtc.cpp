/* nvrtc.cpp: the part of NVRTC that this library calls: CUDA C made C++, compiled by g++ into a shared object.
 *
 * A static of a template is its text's own, though others have one of that name.
 * FAKE_SHIM is the path of shim.h.  FAKE_KEEP=1 keeps a text that is refused. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unistd.h>

extern "C" {
/* ---- NVRTC ---- */
struct program {
    std::string text, log, image;
};
int nvrtcVersion(int *a, int *b)
{
    *a = 13;
    *b = 99;
    return 0;
}
const char *nvrtcGetErrorString(int)
{
    return "NVRTC_ERROR_COMPILATION";
}
int nvrtcGetNumSupportedArchs(int *n)
{
    *n = 3;
    return 0;
}
int nvrtcGetSupportedArchs(int *a)
{
    a[0] = 80;
    a[1] = 90;
    a[2] = 100;
    return 0;
}
int nvrtcCreateProgram(void **p, const char *text, const char *, int, const char *const *, const char *const *)
{
    *p = new program{ text, "", "" };
    return 0;
}
int nvrtcDestroyProgram(void **p)
{
    delete (program *)*p;
    *p = NULL;
    return 0;
}
/* The length of `from` where s has it at `at`; 0: it has not.  White space does not count. */
static size_t matched(const std::string &s, size_t at, const std::string &from)
{
    size_t i = at;
    for (char c : from) {
        if (isspace((unsigned char)c))
            continue;
        while (i > at && i < s.size() && isspace((unsigned char)s[i]))
            i++;
        if (i == s.size() || s[i++] != c)
            return 0;
    }
    return i - at;
}
/* Lines of a text may be broken anywhere. */
static void replace(std::string &s, const std::string &from, const std::string &to)
{
    for (size_t at = 0; (at = s.find(from[0], at)) != std::string::npos;) {
        const size_t n = matched(s, at, from);
        if (n)
            s.replace(at, n, to);
        at += n ? to.size() : 1;
    }
}
/* The expressions that a statement of assembly takes as operands of a kind, as ::"r"(to) has. */
static std::string operand(const std::string &t, size_t &at, const char *kind)
{
    at = t.find(kind, at) + strlen(kind);
    size_t end = at;
    for (int open = 1; open; end++)
        open += (t[end] == '(') - (t[end] == ')');
    return t.substr(at, end - 1 - at);
}
/* Copies of boxes: N indices stand between the map and the barrier. */
static void copy_boxes(std::string &t)
{
    for (size_t at; (at = t.find("asm volatile(\"cp.async.bulk.tensor.")) != std::string::npos;) {
        const size_t end = t.find(": \"memory\");", at) + 12;
        const std::string text = t.substr(at, end - at);
        const int n = text[35] - '0';
        size_t in = 0;
        std::string call = "{ const unsigned to_ = " + operand(text, in, "\"r\"(");
        call += "; const int at_[] = { ";
        size_t map = 0;
        const std::string from = operand(text, map, "\"l\"(");
        in = map;
        for (int i = 0; i < n; i++)
            call += operand(text, in, "\"r\"(") + ", ";
        call += "}; shim_copy_box(to_, " + from + ", at_, " + operand(text, in, "\"r\"(") + "); }";
        t.replace(at, end - at, call);
    }
}
/* The instructions of texts for Hopper that use no clusters; of others, the kernels stay empty. */
static std::string hopper(std::string t)
{
    const size_t product = t.find("wgmma.mma_async");
    if (product == std::string::npos || t.find("multicast") != std::string::npos)
        return t;
    const size_t at = t.rfind("asm volatile(", product), end = t.find("\"r\"(keep));", product) + 12;
    const std::string text = t.substr(at, end - at), down = text.substr(text.find("}, %") + 4);
    const size_t ones = down.find("p, 1, 1, ");
    const char *type = text.find(".bf16.") != std::string::npos ? "SHIM_BF16" : text.find(".tf32.") != std::string::npos ? "SHIM_TF32" : "SHIM_F16";
    t.replace(at, end - at, std::string("shim_wgmma<") + type + ">(d, a, b, keep, " + (ones == std::string::npos ? "0, 0);" : std::string() + down[ones + 9] + ", " + down[ones + 12] + ");"));
    copy_boxes(t);
    replace(t, "asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\" ::\"r\"(to), "
               "\"l\"(from), \"r\"(bytes), \"r\"(barrier) : \"memory\");",
            "shim_copy(to, from, bytes, true); shim_barrier_change(barrier, 0, -(int)bytes);");
    replace(t, "asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" ::\"r\"(b), \"r\"(arrivals) : \"memory\");",
            "*shim_barrier_at(b) = { (unsigned short)arrivals, (unsigned short)arrivals, 0, 0 };");
    replace(t, "asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" ::\"r\"(b) : \"memory\");", "shim_barrier_change(b, 1, 0);");
    replace(t, "asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\" ::\"r\"(b), \"r\"(bytes) : \"memory\");",
            "shim_barrier_change(b, 0, bytes); shim_barrier_change(b, 1, 0);");
    const size_t wait = t.find("asm volatile(\"{\\n\\t.reg .pred p;\\nagain:");
    t.replace(wait, t.find(");", t.find("\"memory\"", wait)) + 2 - wait, "shim_barrier_wait(b, phase);");
    for (const char *bytes : { "16", "8" })
        replace(t, std::string("asm volatile(\"cp.async.c") + (bytes[0] == '8' ? "a" : "g") + ".shared.global [%0], [%1], " + bytes + ", %2;\" ::\"r\"(to), \"l\"(from), \"r\"(valid ? " + bytes +
                       " : 0) : \"memory\");", std::string("shim_copy(to, from, ") + bytes + ", valid);");
    replace(t, "asm volatile(\"bar.sync 1, 256;\" ::: \"memory\");", "shim_bar(1, 256);");
    replace(t, "asm volatile(\"bar.sync %0, 128;\" ::\"r\"(2 + index % 2) : \"memory\");", "shim_bar(2 + index % 2, 128);");
    for (size_t from; (from = t.find("asm volatile(\"wgmma.commit_group")) != std::string::npos;) /* all of a group read the tiles before any goes on */
        t.replace(from, t.find(";\n", from) - from, "shim_bar(8 + threadIdx.x / 128, 128)");
    for (const char *none : { "\"\" : \"+f\"", "\"wgmma.", "\"cp.async.", "\"setmaxnreg", "\"fence.mbarrier_init", "\"fence.proxy" })
        for (size_t from; (from = t.find(std::string("asm volatile(") + none)) != std::string::npos;)
            t.erase(from, t.find(";\n", from) - from);
    return "#define __CUDA_ARCH_FEAT_SM90_ALL\n" + t;
}
int nvrtcCompileProgram(void *q, int n, const char *const *option)
{
    program *p = (program *)q;
    std::string t = p->text;
    replace(t, "asm(\"rcp.approx.ftz.f64 %0, %1;\" : \"=d\"(r) : \"d\"(d));", "r = 1 / (float)d;");
    replace(t, "asm(\"rsqrt.approx.ftz.f64 %0, %1;\" : \"=d\"(y) : \"d\"(v));", "y = 1 / sqrtf((float)v);");
    replace(t, "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h));", "f = shim_h2f(h);");
    replace(t, "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));", "h = shim_f2h(x);");
    replace(t, "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(s.bits));", "f = shim_h2f(s.bits);");
    replace(t, "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h.bits) : \"f\"(f));", "h.bits = shim_f2h(f);");
    replace(t, "asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(h.bits) : \"d\"(f));", "h.bits = shim_f2h(f);");
    replace(t, "asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(r) : \"f\"(b), \"f\"(a));", "r = (unsigned)shim_f2h(b) << 16 | shim_f2h(a);");
    replace(t, "asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(r) : \"f\"(b), \"f\"(a));", "r = (unsigned)put<bf16>(b).bits << 16 | put<bf16>(a).bits;");
    replace(t, "asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(r) : \"f\"(v));", "r = shim_tf32(v);");
    replace(t, "asm volatile(\"redux.sync.max.u32 %0, %1, 0xffffffff;\" : \"=r\"(r) : \"r\"(most));",
            "r = most; for (int apart = 16; apart; apart /= 2) { const unsigned other = __shfl_xor_sync(0xffffffffu, r, apart); r = other > r ? other : r; }");
    replace(t, "asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));", "r = a != a || b != b ? NAN : a > b ? a : b;");
    replace(t, "asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4, %2;\" ::\"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), "
               "\"r\"(valid ? 4 : 0) : \"memory\");", "*to = valid ? *from : 0;");
    replace(t, "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" ::\"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\");",
            "memcpy(to, from, 16);");
    for (size_t at; (at = t.find("asm volatile(\"mma.sync")) != std::string::npos;) {
        const size_t end = t.find(");", at) + 2;
        t.replace(at, end - at, t.substr(at, end - at).find(".bf16.bf16.") != std::string::npos ? "shim_mma<shim_bfloat>(d, a, b0, b1);" : "shim_mma<shim_half>(d, a, b0, b1);");
    }
    for (size_t at; (at = t.find("asm(\"mma.sync.aligned.m16n8k8")) != std::string::npos;)
        t.replace(at, t.find(");", at) + 2 - at, "shim_mma_floats(c, a, b);");
    for (size_t at; (at = t.find("asm volatile(\"ldmatrix")) != std::string::npos;) {
        const size_t end = t.find(": \"memory\");", at) + 12;
        t.replace(at, end - at, t.substr(at, end - at).find(".trans") != std::string::npos ? "shim_ldmatrix(r, row, true);" : "shim_ldmatrix(r, row, false);");
    }
    replace(t, "asm volatile(\"\" : \"+h\"(raw[i][0].bits), \"+h\"(raw[i][1].bits));", "");
    replace(t, "asm volatile(\"barrier.cluster.arrive.relaxed; barrier.cluster.wait;\" ::: \"memory\");", "shim_now->cluster();");
    replace(t, "meet(A.head.arrived, goal);", "shim_now->cluster();");
    replace(t, "asm volatile(\"red.release.gpu.global.add.u32 [%0], 1;\" ::\"l\"(arrived) : \"memory\");", "");
    replace(t, "asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\" : \"=r\"(n) : \"l\"(arrived) : \"memory\");", "n = goal;");
    for (size_t at; (at = t.find("asm volatile(\"fence.release.sync_restrict")) != std::string::npos;)
        t.replace(at, t.find(");", at) + 2 - at, "shim_now->cluster();");
    replace(t, "asm volatile(\"barrier.cluster.arrive; barrier.cluster.wait;\" ::: \"memory\");", "shim_now->cluster();");
    replace(t, "asm volatile(\"mapa.u64 %0, %1, %2;\" : \"=l\"(a) : \"l\"(p), \"r\"(block));", "a = (u64)shim_now->of_block(p, block);");
    replace(t, "asm volatile(\"st.global.v2.b32 [%0], {%1, %2};\" ::\"l\"(to), \"r\"(w.v[0]), \"r\"(w.v[1]) : \"memory\");", "memcpy(to, &w, 8);");
    replace(t, "asm volatile(\"st.global.v4.b32 [%0], {%1, %2, %3, %4};\" ::\"l\"(to), \"r\"(w.v[0]), \"r\"(w.v[1]), \"r\"(w.v[2]), "
               "\"r\"(w.v[3]) : \"memory\");", "memcpy(to, &w, 16);");
    replace(t, "asm volatile(\"cp.async.wait_all;\" ::: \"memory\");", "");
    replace(t, "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");", "");
    replace(t, "asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(Marks) : \"memory\");", "");
    t = hopper(t);
    for (size_t at; (at = t.find("asm volatile(\"griddepcontrol")) != std::string::npos;)
        t.erase(at, t.find(");", at) + 2 - at);
    for (size_t at; (at = t.find("extern __shared__ ")) != std::string::npos;) {
        size_t type = at + 18, end = t.find("[];", type), name = end;
        while (name > type && t[name - 1] != ' ' && t[name - 1] != '*')
            name--;
        std::string ty = t.substr(type, name - type), nm = t.substr(name, end - name);
        if (at == 0 || t[at - 1] == '\n') /* of all kernels of the text */
            t.replace(at, end + 3 - at, "#define " + nm + " ((" + ty + "*)shim_now->dynamic)");
        else
            t.replace(at, end + 3 - at, ty + "*const " + nm + " = (" + ty + "*)shim_now->dynamic;");
    }
    replace(t, "__shared__ ", "static ");
    char base[] = "/tmp/fakenvXXXXXX";
    int fd = mkstemp(base);
    close(fd);
    std::string src = std::string(base) + ".cpp", so = std::string(base) + ".so", log = std::string(base) + ".log",
                defs;
    for (int i = 0; i < n; i++)
        if (!strncmp(option[i], "-D", 2))
            defs += std::string(" '") + option[i] + "'";
    FILE *f = fopen(src.c_str(), "w");
    fprintf(f, "#include \"%s\"\nshim *shim_now;\n#line 1 \"kernel.cu\"\n", FAKE_SHIM);
    fwrite(t.data(), 1, t.size(), f);
    fclose(f);
    std::string cmd =
        "g++ -x c++ -std=gnu++17 -O1 -w -march=native -ffp-contract=fast -fPIC -shared -fno-strict-aliasing -fno-gnu-unique -o " +
        so + defs + " " + src + " > " + log + " 2>&1";
    int r = system(cmd.c_str());
    auto slurp = [](const std::string &path) {
        std::string s;
        char b[65536];
        size_t k;
        FILE *g = fopen(path.c_str(), "r");
        if (g) {
            while ((k = fread(b, 1, sizeof b, g)))
                s.append(b, k);
            fclose(g);
        }
        return s;
    };
    p->log = slurp(log);
    if (!r) {
        std::string so_ = slurp(so);
        uint64_t len = so_.size();
        p->image = std::string("FAKECUBN", 8) + std::string((char *)&len, 8) + so_;
    }
    if (r && getenv("FAKE_KEEP"))
        fprintf(stderr, "%s\n%s", src.c_str(), p->log.c_str());
    else
        unlink(src.c_str());
    unlink(base);
    unlink(so.c_str());
    unlink(log.c_str());
    return r ? 6 : 0;
}
int nvrtcGetCUBINSize(void *q, size_t *n)
{
    *n = ((program *)q)->image.size();
    return 0;
}
int nvrtcGetCUBIN(void *q, char *b)
{
    program *p = (program *)q;
    memcpy(b, p->image.data(), p->image.size());
    return 0;
}
int nvrtcGetPTXSize(void *q, size_t *n)
{
    return nvrtcGetCUBINSize(q, n);
}
int nvrtcGetPTX(void *q, char *b)
{
    return nvrtcGetCUBIN(q, b);
}
int nvrtcGetProgramLogSize(void *q, size_t *n)
{
    *n = ((program *)q)->log.size() + 1;
    return 0;
}
int nvrtcGetProgramLog(void *q, char *b)
{
    program *p = (program *)q;
    memcpy(b, p->log.c_str(), p->log.size() + 1);
    return 0;
}
}
