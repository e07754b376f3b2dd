"""random_loops.py: draws functions with loops: sequences, states and constants of several dtypes, products, loops
inside of loops, choices (ifelse) inside and outside of loops, end conditions, gradients.  export.py and bundle.py compare what they compute with the library.
"""
import random

import numpy as np

FLOATS = ["float32", "float32", "float32", "float64"]


class Loops:
    """text: declarations, and the loop z; outputs, updates: formulas, or None; at(k), sizes(k): arguments of the k-th
    of two shapes, and what exports are told of them."""

    def __init__(self, seed):
        r = self.r = random.Random(f"loops {seed}")
        self.numbers = np.random.default_rng(seed)
        self.dtype = r.choice(FLOATS)
        self.wide = r.choice([1, 2, 3, 5, 8, 17])
        self.lengths = [r.choice([1, 2, 4, 7]), r.choice([0, 1, 3, 9])]
        self.batches = [r.choice([1, 2, 5]), r.choice([1, 3, 4])]
        self.count = 0
        n, dt = self.wide, self.dtype
        self.inputs = ["xs", "ys", "h0", "v", "W"]
        self.text = (f"input xs {dt}[?, ?, {n}]; input ys {dt}[?, ?, {n}]; input h0 {dt}[?, {n}]; input v {dt}[{n}]; "
                     f"input W {dt}[{n}, {n}]; shared U {dt}[{n}, {n}] = glorot_uniform()")
        self.halts = r.random() < 0.3
        loop, results = self.loop(2)
        self.text += f"\nz = {loop}"
        parts = [f"z[{i}]" for i in range(results)] if results > 1 else ["z"]
        if r.random() < 0.4:
            rows = ["h0", "dot(h0, W)"]
            self.text += f"\no, p = ifelse({self.condition(rows)}, [{self.term(rows, 2)}, {self.term(rows, 2)}], [{self.term(rows, 2)}, h0])"
            parts += ["o", "p"]
            self.whole += [False, False]
        self.outputs = ", ".join(parts)
        self.updates = None
        real = [p for p, whole in zip(parts, self.whole) if not whole]
        if real and r.random() < 0.6:
            cost = " + ".join([f"sum(sqr({p}))" for p in real] + ["sum(sqr(xs))", "sum(dot(h0, W) * dot(h0, U))"])
            self.text += f"\ncost = {cost}"
            wrt = r.sample(["xs", "h0", "W"], r.randint(1, 2))
            self.outputs += f", grad(cost, [{', '.join(wrt)}])"
            if r.random() < 0.5:
                self.updates = "U = U - 0.01 * tanh(grad(cost, U))"

    def number(self):
        return self.r.choice(["0.5", "0.25", "-0.75", "0.1"])

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def condition(self, rows):
        """A scalar that is true in some steps, and in others not."""
        return self.r.choice([f"sum({self.r.choice(rows)}) > {self.number()} - 0.2", f"max({self.r.choice(rows)}) < 0.6", "v[0] > 0", "sum(v) < 0.1"])

    def term(self, rows, deep):
        """A formula of the shape of h0, of the names in rows, which have it too."""
        r = self.r
        a, b = r.choice(rows), r.choice(rows)
        kind = r.choice(["sum", "product", "tanh", "dot", "dot", "dot U", "scale", "most", "row", "loop", "turned", "choice", "choice"])
        if kind == "choice" and deep:   # the first term of both sides tells that their sizes are equal
            return f"ifelse({self.condition(rows)}, {a} + {self.term(rows, deep - 1)}, {a} * 0.5 - {self.term(rows, deep - 1)})"
        if kind == "loop" and deep:
            k, inner = self.name("k"), ""
            if r.random() < 0.5:
                e = self.name("e")
                inner = f"scan({e} in {a}, {k} from v * 0.5: {k} = tanh({k} * 0.5 + {e}); yield last {k})"
                return f"({b} + {inner})"
            inner = f"scan(steps={r.randint(0, 3)}, {k} from {a}: {k} = tanh(dot({k}, W) + {b}); yield last {k})"
            return inner
        return {"sum": f"({a} + {b})", "product": f"({a} * {b} * 0.5)", "tanh": f"tanh({a} - {b})", "dot": f"dot({a}, W)", "dot U": f"dot({a}, U)",
                "scale": f"({a} * {self.number()})", "most": f"maximum({a}, {b})", "row": f"({a} * 0.5 + v)", "loop": f"softmax({a})",
                "choice": f"({a} - {b})",
                "turned": f"{a}[:, ::-1]"}[kind]

    def loop(self, deep):
        """Its text and the number of its results."""
        r = self.r
        head, rows, states, lines = [], [], [], []
        for _ in range(r.randint(0, 2)):
            x = self.name("x")
            head.append(f"{x} in {r.choice(['xs', 'ys', 'xs[::-1]', 'ys * 0.5', 'tanh(xs)'])}")
            rows.append(x)
        if not rows:
            head.append(f"steps={r.choice(['size(xs, 0)', '3', '1', '0', 'size(xs, 0) + 2'])}")
        for _ in range(r.randint(1, 2)):
            h = self.name("h")
            head.append(f"{h} from {r.choice(['h0', 'h0 * 0.5', 'h0[:, ::-1]', 'tanh(h0)'])}")
            rows.append(h)
            states.append(h)
        for _ in range(r.randint(0, 2)):
            t = self.name("t")
            lines.append(f"{t} = {self.term(rows, deep)}")
            rows.append(t)
        counter = self.name("c") if r.random() < 0.3 else None
        if counter:
            head.append(f"{counter} from 1i64")
            lines.append(f"{counter} = {counter} * 2 + 1")
        if len(states) == 2 and r.random() < 0.3:
            lines.append(f"{states[0]}, {states[1]} = {states[1]}, tanh({self.term(rows, deep)})")
        else:
            lines += [f"{h} = tanh({self.term(rows, deep)})" for h in states]
        yields = [r.choice([h, f"last {h}", f"sum({h}, axis=1)"]) for h in states] + [r.choice(rows)] * r.randint(0, 1)
        yields += [r.choice([counter, f"last {counter}"])] if counter else []
        self.whole = [counter is not None and y.endswith(counter) for y in yields]
        end = ""
        if self.halts:
            yields.append("count")
            self.whole.append(True)
            end = f"; halt sum(sqr({r.choice(rows)})) > {r.choice(['0.5', '4', '100'])}"
        lines.append(f"yield {', '.join(yields)}")
        return f"scan({', '.join(head)}: {'; '.join(lines)}{end})", len(yields)

    def compiled(self, g, **more):
        g.formula(self.text)
        return g.compile(inputs=", ".join(self.inputs), outputs=self.outputs, updates=self.updates, on_unused="ignore", **more)

    def at(self, k):
        n, t, b = self.wide, self.lengths[k % 2], self.batches[k % 2]
        return [self.numbers.uniform(-1, 1, shape).astype(self.dtype) for shape in ((t, b, n), (t, b, n), (b, n), (n,), (n, n))]

    def sizes(self, k):
        n, t, b = self.wide, self.lengths[k % 2], self.batches[k % 2]
        return f"xs[{t}, {b}, {n}], ys[{t}, {b}, {n}], h0[{b}, {n}], v[{n}], W[{n}, {n}]"
