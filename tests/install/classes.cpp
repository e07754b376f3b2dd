// classes.cpp: monochord.hpp, used as its head says; every number is known from mathematics.
#include <monochord.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>

static int wrong = 0;

static void check(bool good, const char *what)
{
    if (!good) {
        std::printf("classes.cpp: %s\n", what);
        wrong++;
    }
}

template <class F> static std::string message(F f, mc_status want)
{
    try {
        f();
    } catch (const mc::error &e) {
        check(e.status() == want, e.what());
        return e.what();
    }
    return "nothing was thrown";
}

static bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

// Gradient descent on |A w - t|^2 / 2 finds the w with A w = t.
static void descend()
{
    mc::array A({ 2, 2 }, { 2.0, 1.0, 1.0, 3.0 }), t(std::vector<double>{ 4.0, 7.0 });
    mc::graph g;
    g.input("A", MC_FLOAT64, 2);
    g.input("t", MC_FLOAT64, { -1 });
    g.input("rate", MC_FLOAT64, 0);
    mc::shared w = g.zeros("w", MC_FLOAT64, { 2 });
    mc::node cost = g.formula("cost = sum(sqr(dot(A, w) - t)) / 2");
    mc::function step = g.compile(
        mc::spec("A, t, rate=0.1", "cost").update(g["w"], g["w"] - g["rate"] * g.grad(cost, g["w"])));
    double first = 0, last = 0;
    step(mc::in(A, t), mc::out(first));
    for (int i = 0; i < 400; i++) {
        step(mc::in(A, t, 0.1), mc::out(last));
    }
    const std::vector<double> found = w.value().values<double>();
    check(first == 32.5, "the first cost is (16 + 49) / 2");
    check(last < 1e-12 && std::fabs(found[0] - 1) < 1e-6 && std::fabs(found[1] - 2) < 1e-6, "w is (1, 2)");

    step(mc::in(A, t, nullptr), mc::out(nullptr)); // an input with a default, a result that is not wanted
    step(mc::in(A, t));
    mc::shared same = w, kept = g.variable("w"); // counted: the same variable
    same.set(mc::array({ 2 }, { 5.0, 6.0 }));
    check(kept.value().at({ 1 }) == 6, "a copy is the same variable");
    mc::graph moved = std::move(g);
    check(!g.get() && moved.get(), "a graph is moved");
}

static void results()
{
    mc::graph g;
    g.input("x", MC_FLOAT32, 1);
    mc::function f = g.compile(
        mc::spec("x", "y = x * 2, n = sum(x), cast(max(x), int32)").mode("FAST_COMPILE"));
    const mc::array x({ 3 }, { 1.0f, 2.0f, 4.0f });
    std::vector<mc::array> all = f(x);
    check(all.size() == 3 && all[0].values<float>() == std::vector<float>({ 2, 4, 8 }) && all[1].at({}) == 7,
          "all results");
    mc::array y;
    float n = 0;
    int most = 0;
    f(mc::in(x), mc::out(y, n, most));
    check(y.data<float>()[2] == 8 && n == 7 && most == 4, "an array, a float, an int");
    mc::array there(MC_FLOAT32, { 3 }), other = there; // is written to, and what shares its memory sees it
    f(mc::in(x), mc::out(there, nullptr, nullptr));
    check(other.at({ 1 }) == 4, "a result in an array that was there");
    check(y.dims() == std::vector<int64_t>({ 3 }) && y.rank() == 1 && y.dtype() == MC_FLOAT32 &&
              y.size() == 3,
          "sizes");
    check(y.reshape({ 3, 1 }).transpose().dims() == std::vector<int64_t>({ 1, 3 }), "views");
    check(y.slice(0, 2, 2, -1).values<int>() == std::vector<int>({ 8, 4 }), "a slice backwards, cast");
    check(has(y.text(), "8"), "text");
}

static void variables(const std::string &path)
{
    mc::graph g;
    mc::shared a = g.share("a", mc::array({ 2 }, { 1.0f, 2.0f })), r = g.random("r", 7);
    mc::node y = -(g.use(a) + g.constant(mc::array::scalar(3, MC_FLOAT32))) / g.number(2, MC_FLOAT32);
    mc::function f = g.compile(mc::spec("", "").output(y.name("y")).mode("FAST_COMPILE"));
    check(f()[0].values<double>() == std::vector<double>({ -2, -2.5 }), "operators");
    check(has(y.text(), "a") && has(g.text({ y }), "shared a float32[2]\n"), "texts");
    g.save_shared(path);
    a.set(mc::array({ 2 }, { 5.0f, 6.0f }));
    mc::function other = f.copy(false);
    check(other()[0].at({ 0 }) == -4, "a copy of a function");
    g.load_shared(path);
    check(a.value().at({ 0 }) == 1 && std::strcmp(r.name(), "r") == 0, "what was saved");
    a.borrow().set({ 0 }, 7);
    check(f()[0].at({ 0 }) == -5, "the memory itself");
    g.formula("shared W float32[2, 2] = 0.5");
    check(has(message([&] { g.load_shared(path); }, MC_EARG), "the file has no 'W'"), "a file of another graph");
    std::remove(path.c_str());
    mc::shared outlives;
    {
        mc::graph h;
        outlives = h.zeros("w", MC_INT32, {});
    }
    check(outlives.value().dtype() == MC_INT32 && outlives.value().rank() == 0,
          "a variable without its graph");
}

static void mistakes()
{
    mc::graph g;
    g.input("x", MC_FLOAT32, 2);
    const std::string syntax = message([&] { g.formula("softmx(x)"); }, MC_ESYNTAX);
    check(has(syntax, "did you mean 'softmax'") && has(syntax, "\n    softmx(x)\n    ^") &&
              has(syntax, "classes.cpp:"),
          syntax.c_str());
    check(has(message([&] { g.input("x", MC_FLOAT32, 1); }, MC_EARG), "'x' is already in use"),
          "a name that is taken");
    check(has(message([&] { g.compile(mc::spec("x", "q")); }, MC_ESYNTAX), "no variable 'q'"), "a spec");
    check(has(message([&] { g.variable("W"); }, MC_EARG), "'W'"), "no such variable");
    // and the graph is as good as new
    mc::function f = g.compile(mc::spec("x", "sum(x)").mode("FAST_COMPILE"));
    double d = 0;
    check(has(message([&] { f(mc::in(1.5), mc::out(d)); }, MC_ESHAPE), "x"), "a number for a matrix");
    const mc::array a({ 2 }, { 1.0, 2.0 });
    message([&] { a.data<float>(); }, MC_ETYPE);
    message([&] { a.at({ 2 }); }, MC_EINDEX);
    message([&] { mc::array().copy(); }, MC_EARG);
    message([&] { mc::array({ 3 }, { 1, 2 }); }, MC_ESHAPE);
    message([&] { a.reshape({ 3 }); }, MC_ESHAPE);
}

// The macros of monochord.h.
static void macros()
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 0);
    mc_input(g, "k", MC_INT64, 0);
    mc_spec spec = mc_spec();
    spec.inputs = "x, k=3";
    spec.outputs = "x + k, 1.5 * x, x > 0";
    mc_function *f = mc_compile(g, &spec);
    double y = 0;
    mc_array *z = nullptr;
    bool positive = false;
    unsigned long long k = 4;
    check(f && mc_call(f, MC_IN(2.0f, k), MC_OUT(&y, &z, &positive)) == MC_OK && y == 6 && positive,
          "MC_IN, MC_OUT");
    check(z && mc_array_get(z, nullptr) == 3, "MC_OUT of an array");
    check(mc_call(f, MC_IN(2, NULL), MC_OUT(&y, NULL, nullptr)) == MC_OK && y == 5, "NULL is no number");
    const std::size_t n = 5;
    mc_array *a = mc_array_new(MC_INT8, MC_SHAPE(2, n)), *one = mc_array_new(MC_INT8, MC_NOSHAPE);
    check(mc_array_rank(a) == 2 && mc_array_size(a) == 10 && mc_array_rank(one) == 0, "MC_SHAPE");
    mc_array_unref(&a), mc_array_unref(&one), mc_array_unref(&z);
    mc_function_free(f);
    mc_graph_free(g);
}

int main()
{
    try {
        descend();
        results();
        variables("classes.npz");
        mistakes();
        macros();
    } catch (const std::exception &e) {
        check(false, e.what());
    }
    return wrong != 0;
}
