/* monochord.hpp: monochord.h for C++17: values that own what they stand for, and exceptions.
 *
 *     #include <monochord.hpp>
 *
 *     mc::graph g;
 *     g.input("x", MC_FLOAT32, 2);
 *     mc::shared W = g.zeros("W", MC_FLOAT32, { 784, 10 });
 *     g.formula("p = softmax(dot(x, W))");
 *     mc::function f = g.compile(mc::spec("x, lr=0.1", "p").updates("W = (1 - lr) * W"));
 *
 *     mc::array p;
 *     f(mc::in(x, 0.01), mc::out(p));          // the arguments of MC_IN and MC_OUT, and arrays
 *     std::vector<mc::array> all = f(x);       // or all results as new arrays
 *
 * graph and function are moved, not copied.  array and shared are counted: a copy is one more owner of the same
 * memory.  A mistake throws mc::error with the library's whole message, and the graph forgets it.  Each class gives
 * its pointer by get() and converts to it, so that every function of monochord.h, monochord_ops.h and monochord_nn.h
 * takes it: mc_tanh(x). */
#ifndef MONOCHORD_HPP
#define MONOCHORD_HPP

#include <monochord.h>

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__GNUC__) || defined(__clang__)
#define MC_HPP_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#else
#define MC_HPP_HERE const char *file = nullptr, int line = 0
#endif

namespace mc {

/* ------------------------------------------------------------------------------- errors ---- */

class error : public std::runtime_error {
public:
    error(mc_status status, const std::string &what) : std::runtime_error(what), status_(status) {}
    mc_status status() const { return status_; }

private:
    mc_status status_;
};

[[noreturn]] inline void fail() { throw error(mc_last_status(), mc_last_error()); }
inline void check(mc_status s)
{
    if (s < 0) {
        throw error(s, mc_last_error());
    }
}
template <class T> T *check(T *p)
{
    if (!p) {
        fail();
    }
    return p;
}

namespace detail {
/* Text of the library's, as a string of its own. */
inline std::string text(char *s)
{
    std::string copy = check(s);
    mc_text_free(s);
    return copy;
}
inline mc_shared *ref(mc_shared *s) { return mc_shared_ref(s); }
inline mc_array *ref(mc_array *a) { return mc_array_ref(a); }
inline void drop(mc_shared **s) { mc_shared_unref(s); }
inline void drop(mc_array **a) { mc_array_unref(a); }
inline void drop(mc_graph **g) { mc_graph_free(*g); }
inline void drop(mc_function **f) { mc_function_free(*f); }

/* What owns a pointer and is moved. */
template <class T> class owner {
public:
    owner() = default;
    explicit owner(T *p) : p_(p) {}
    owner(owner &&other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    owner &operator=(owner &&other) noexcept
    {
        std::swap(p_, other.p_);
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner()
    {
        if (p_) {
            drop(&p_);
        }
    }
    T *get() const { return p_; }
    T *release() { return std::exchange(p_, nullptr); }
    operator T *() const { return p_; }

protected:
    T *p_ = nullptr;
};

/* What is counted, too: a copy is one more owner. */
template <class T> class counted : public owner<T> {
public:
    counted() = default;
    explicit counted(T *p) : owner<T>(p) {}
    counted(counted &&) noexcept = default;
    counted &operator=(counted &&) noexcept = default;
    counted(const counted &other) : owner<T>(other.get() ? ref(other.get()) : nullptr) {}
    counted &operator=(const counted &other)
    {
        counted copy(other);
        std::swap(this->p_, copy.p_);
        return *this;
    }
};
} // namespace detail

/* ------------------------------------------------------------------------------- arrays ---- */

/* Sizes: { 2, 3 }, or a vector.  {} is a scalar. */
class shape {
public:
    shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
    shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
    int rank() const { return static_cast<int>(dims_.size()); }
    const int64_t *data() const { return dims_.data(); }

private:
    std::vector<int64_t> dims_;
};

/* The dtype of a C++ type. */
template <class T> constexpr mc_dtype dtype_of()
{
    static_assert(std::is_arithmetic<T>::value && !std::is_same<T, long double>::value,
                  "no dtype holds this type");
    return mc_cpp_dtype<T>();
}

class array : public detail::counted<mc_array> {
public:
    array() = default; /* none: a call puts its result there */
    explicit array(mc_array *owned) : counted(owned) {}
    array(mc_dtype d, const shape &s) : counted(check(mc_array_new(d, s.rank(), s.data()))) {} /* zeros */
    /* Copies the elements, in C order; there must be as many as the shape says. */
    template <class T>
    array(const shape &s, const std::vector<T> &v) : counted(from(s, v.data(), v.size()))
    {
    }
    template <class T>
    array(const shape &s, std::initializer_list<T> v) : counted(from(s, v.begin(), v.size()))
    {
    }
    template <class T>
    explicit array(const std::vector<T> &v) : array({ static_cast<int64_t>(v.size()) }, v)
    {
    }
    static array scalar(double v, mc_dtype d = MC_FLOAT64) { return array(check(mc_array_scalar(d, v))); }
    static array load(const std::string &npy) { return array(check(mc_npy_load(npy.c_str()))); }

    mc_dtype dtype() const { return mc_array_dtype(p_); }
    int rank() const { return mc_array_rank(p_); }
    std::vector<int64_t> dims() const
    {
        return std::vector<int64_t>(mc_array_dims(p_), mc_array_dims(p_) + rank());
    }
    int64_t size() const { return mc_array_size(p_); }

    /* The elements; the array must have this type and lie in C order, on the processor. */
    template <class T> T *data() const
    {
        if (!p_ || dtype() != dtype_of<T>() || !mc_array_is_contiguous(p_) || !mc_array_data(p_)) {
            throw error(MC_ETYPE,
                        std::string("array: its elements are no C array of ") + mc_dtype_name(dtype_of<T>()));
        }
        return static_cast<T *>(mc_array_data(p_));
    }
    /* A copy of the elements, cast if need be. */
    template <class T> std::vector<T> values() const
    {
        static_assert(!std::is_same<T, bool>::value,
                      "a vector of bool has no elements in memory: take unsigned char");
        array home(check(mc_array_to(here(), "cpu"))), same(check(mc_array_cast(home, dtype_of<T>())));
        array flat(check(mc_array_copy(same)));
        const T *at = flat.data<T>();
        return std::vector<T>(at, at + size());
    }
    double at(std::initializer_list<int64_t> index) const
    {
        in_range(index);
        return mc_array_get(p_, index.size() ? index.begin() : nullptr);
    }
    void set(std::initializer_list<int64_t> index, double v)
    {
        in_range(index);
        check(mc_array_set(p_, index.size() ? index.begin() : nullptr, v));
    }
    array slice(int axis, int64_t start, int64_t count, int64_t step = 1) const
    {
        return array(check(mc_array_slice(here(), axis, start, count, step)));
    }
    array transpose() const { return array(check(mc_array_transpose(here(), nullptr))); }
    array reshape(const shape &s) const { return array(check(mc_array_reshape(here(), s.rank(), s.data()))); }
    array copy() const { return array(check(mc_array_copy(here()))); }
    array cast(mc_dtype d) const { return array(check(mc_array_cast(here(), d))); }
    array to(const char *device) const { return array(check(mc_array_to(here(), device))); }
    void assign(const array &src) { check(mc_array_assign(here(), src.here())); }
    void save(const std::string &npy) const { check(mc_npy_save(npy.c_str(), here())); }
    std::string text() const { return detail::text(mc_array_text(here())); }
    mc_array **slot() { return &p_; } /* for MC_OUT */

private:
    mc_array *here() const
    {
        if (!p_) {
            throw error(MC_EARG, "array: there is none");
        }
        return p_;
    }
    template <class T> static mc_array *from(const shape &s, const T *at, std::size_t n)
    {
        array made(check(mc_array_new(dtype_of<T>(), s.rank(), s.data())));
        if (static_cast<std::size_t>(made.size()) != n) {
            throw error(MC_ESHAPE, "array: " + std::to_string(n) + " elements do not fill a shape of " +
                                       std::to_string(made.size()));
        }
        T *to = made.data<T>();
        for (std::size_t i = 0; i < n; i++) {
            to[i] = at[i];
        }
        return made.release();
    }
    void in_range(std::initializer_list<int64_t> index) const
    {
        bool good = p_ && static_cast<int>(index.size()) == rank();
        int axis = 0;
        for (int64_t i : index) {
            good = good && i >= 0 && i < mc_array_dims(p_)[axis++];
        }
        if (!good) {
            throw error(MC_EINDEX, "array: an index is out of range, or there are not as many as axes");
        }
    }
};

/* -------------------------------------------------------------------------------- graph ---- */

/* A node of a graph, which owns it.  + - * / and the functions of monochord_ops.h make new ones; a mistake in them
 * stays with the graph, and is thrown by the graph's next function. */
class node {
public:
    node() = default;
    node(mc_node *p) : p_(p) {}
    mc_node *get() const { return p_; }
    operator mc_node *() const { return p_; }
    node name(const char *s) const { return mc_name(p_, s); }
    std::string text() const { return detail::text(mc_node_text(p_)); }

private:
    mc_node *p_ = nullptr;
};

class shared : public detail::counted<mc_shared> {
public:
    shared() = default;
    explicit shared(mc_shared *owned) : counted(owned) {}
    const char *name() const { return mc_shared_name(p_); }
    array value() const { return array(check(mc_shared_get(p_))); }                /* a copy */
    array borrow() const { return array(check(mc_shared_borrow(p_))); }            /* the memory itself */
    void set(const array &value) { check(mc_shared_set(p_, value)); }
};

/* What mc_compile is told.  The texts are mc_spec's. */
class spec {
public:
    spec(std::string inputs, std::string outputs) : inputs_(std::move(inputs)), outputs_(std::move(outputs))
    {
    }
    spec &name(std::string s) { return put(name_, std::move(s)); }
    spec &updates(std::string s) { return put(updates_, std::move(s)); }
    spec &givens(std::string s) { return put(givens_, std::move(s)); }
    spec &mode(std::string s) { return put(mode_, std::move(s)); }
    spec &including(std::string s) { return put(including_, std::move(s)); }
    spec &excluding(std::string s) { return put(excluding_, std::move(s)); }
    spec &on_unused(std::string s) { return put(on_unused_, std::move(s)); }
    spec &profile(bool on = true) { return rest_.profile = on, *this; }
    spec &threads(int n) { return rest_.threads = n, *this; }
    spec &fixed_sizes() { return rest_.fixed_sizes = 1, *this; }
    spec &no_default_updates() { return rest_.no_default_updates = 1, *this; }
    /* The same by nodes, after those in text. */
    spec &input(const node &n) { return inputs_by_node_.push_back(n), *this; }
    spec &output(const node &n) { return outputs_by_node_.push_back(n), *this; }
    spec &update(const node &of, const node &to) { return of_.push_back(of), to_.push_back(to), *this; }
    mc_spec get() const /* valid as long as this */
    {
        mc_spec s = rest_;
        s.name = text(name_), s.inputs = text(inputs_), s.outputs = text(outputs_),
        s.updates = text(updates_);
        s.givens = text(givens_), s.mode = text(mode_), s.including = text(including_),
        s.excluding = text(excluding_);
        s.on_unused = text(on_unused_);
        s.input = inputs_by_node_.data(), s.ninput = static_cast<int>(inputs_by_node_.size());
        s.output = outputs_by_node_.data(), s.noutput = static_cast<int>(outputs_by_node_.size());
        s.update_of = of_.data(), s.update = to_.data(), s.nupdate = static_cast<int>(of_.size());
        return s;
    }

private:
    static const char *text(const std::string &s) { return s.empty() ? nullptr : s.c_str(); }
    spec &put(std::string &to, std::string s) { return to = std::move(s), *this; }
    std::string name_, inputs_, outputs_, updates_, givens_, mode_, including_, excluding_, on_unused_;
    std::vector<mc_node *> inputs_by_node_, outputs_by_node_, of_, to_;
    mc_spec rest_ = mc_spec();
};

class function;

class graph : public detail::owner<mc_graph> {
public:
    graph() : owner(check(mc_graph_new())) {}
    explicit graph(mc_graph *owned) : owner(owned) {}

    /* By its rank, 2, or its sizes, { 28, -1 }; -1: a size that is not known before the call.  A template: { 3 } is
     * no rank. */
    template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
    node input(const char *name, mc_dtype d, T rank, MC_HPP_HERE)
    {
        return at(file, line).good((mc_input)(p_, name, d, static_cast<int>(rank)));
    }
    node input(const char *name, mc_dtype d, const shape &s, MC_HPP_HERE)
    {
        return at(file, line).good((mc_input_sized)(p_, name, d, s.rank(), s.data()));
    }
    node constant(const array &a, MC_HPP_HERE) { return at(file, line).good((mc_constant)(p_, a)); }
    node number(double v, mc_dtype d = MC_FLOAT64, MC_HPP_HERE)
    {
        return at(file, line).good((mc_number)(p_, d, v));
    }
    node formula(const std::string &text, MC_HPP_HERE)
    {
        return at(file, line).good((mc_formula)(p_, text.c_str()));
    }
    node operator[](const char *name) { return good(mc_var(p_, name)); } /* what has that name */

    shared share(const char *name, const array &value, MC_HPP_HERE)
    {
        return at(file, line).kept((mc_shared_new)(p_, name, value));
    }
    shared zeros(const char *name, mc_dtype d, const shape &s, MC_HPP_HERE)
    {
        return at(file, line).kept((mc_shared_zeros)(p_, name, d, s.rank(), s.data()));
    }
    shared random(const char *name, uint64_t seed = MC_SEED_OF_FLAG)
    {
        return kept(mc_random(p_, name, seed));
    }
    shared variable(const char *name) /* a shared variable of the graph by its name */
    {
        mc_shared *s = mc_shared_named(p_, name);
        if (!s) {
            throw error(MC_EARG, std::string("there is no shared variable '") + name + "'");
        }
        return kept(s);
    }
    node use(const shared &s) { return good(mc_shared_node(p_, s)); }
    void save_shared(const std::string &path) const { check(mc_graph_save_shared(p_, path.c_str())); }
    void load_shared(const std::string &path) { check(mc_graph_load_shared(p_, path.c_str())); }

    node grad(const node &cost, const node &wrt, MC_HPP_HERE)
    {
        return at(file, line).good((mc_grad)(cost, wrt));
    }
    inline function compile(const spec &s, MC_HPP_HERE);
    std::string text(const std::vector<node> &outputs) const
    {
        std::vector<mc_node *> list(outputs.begin(), outputs.end());
        return detail::text(mc_graph_text(p_, static_cast<int>(list.size()), list.data()));
    }

private:
    graph &at(const char *file, int line)
    {
        mc_here(file, line);
        return *this;
    }
    [[noreturn]] void mistake()
    {
        mc_status s = mc_graph_status(p_);
        std::string what = s < 0 ? mc_error(p_) : mc_last_error();
        mc_graph_clear_error(p_);
        throw error(s < 0 ? s : mc_last_status(), what);
    }
    node good(mc_node *n)
    {
        if (!n || mc_graph_status(p_) < 0) {
            mistake();
        }
        return n;
    }
    shared kept(mc_shared *s)
    {
        if (!s) {
            mistake();
        }
        return shared(mc_shared_ref(s));
    }
};

/* ---------------------------------------------------------------------------- functions ---- */

namespace detail {
inline mc_arg argument(const array &a) { return mc_arg_array(a.get()); }
inline mc_arg result(array &a) { return mc_arg_slot(a.slot()); }
template <class T> mc_arg argument(const T &v) { return mc_cpp_arg<false>::in(v); }
template <class T> mc_arg result(T &v) { return mc_cpp_arg<false>::out(&v); }
inline mc_arg result(std::nullptr_t) { return mc_arg_none(nullptr); }
template <std::size_t n> struct inputs { std::array<mc_arg, n> list; };
template <std::size_t n> struct outputs { std::array<mc_arg, n> list; };
} // namespace detail

/* The arguments of a call: arrays, numbers; nullptr for an input that has a default. */
template <class... T>
detail::inputs<sizeof...(T)> in(const T &...v)
{
    return { { detail::argument(v)... } };
}
/* Where its results go: arrays (one that is none gets a new one, another is written to), variables of C++'s types
 * for numbers; nullptr for a result that is not wanted. */
template <class... T> detail::outputs<sizeof...(T)> out(T &&...v) { return { { detail::result(v)... } }; }

class function : public detail::owner<mc_function> {
public:
    function() = default;
    explicit function(mc_function *owned) : owner(owned) {}

    template <std::size_t n, std::size_t m>
    void operator()(const detail::inputs<n> &in, const detail::outputs<m> &out)
    {
        check(mc_call_args(p_, static_cast<int>(n), in.list.data(), static_cast<int>(m), out.list.data()));
    }
    template <std::size_t n> void operator()(const detail::inputs<n> &in) /* for its updates */
    {
        check(mc_call_args(p_, static_cast<int>(n), in.list.data(), 0, nullptr));
    }
    template <class... T> std::vector<array> operator()(const T &...v)
    {
        std::vector<array> results(static_cast<std::size_t>(mc_function_noutputs(p_)));
        std::vector<mc_arg> slots;
        for (array &a : results) {
            slots.push_back(mc_arg_slot(a.slot()));
        }
        const auto given = in(v...);
        const int n = static_cast<int>(slots.size());
        check(mc_call_args(p_, sizeof...(T), given.list.data(), n, slots.data()));
        return results;
    }
    template <class T>
    void set(const char *input, const T &v)
    {
        check(mc_function_set(p_, input, detail::argument(v)));
    }
    function copy(bool share_updates) const { return function(check(mc_function_copy(p_, share_updates))); }
};

inline function graph::compile(const spec &s, const char *file, int line)
{
    const mc_spec c = s.get();
    mc_function *f = mc_compile_at(p_, &c, file, line);
    if (!f) {
        mistake();
    }
    return function(f);
}

inline node operator+(const node &a, const node &b) { return (mc_add)(a, b); }
inline node operator-(const node &a, const node &b) { return (mc_sub)(a, b); }
inline node operator*(const node &a, const node &b) { return (mc_mul)(a, b); }
inline node operator/(const node &a, const node &b) { return (mc_true_div)(a, b); }
inline node operator-(const node &a) { return (mc_neg)(a); }

} // namespace mc

#undef MC_HPP_HERE
#endif
