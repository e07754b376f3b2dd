#!/usr/bin/env python3
"""defects.py: do the generators of tests find what they are for?

    defects.py                       every row: its defect is put into a copy of the tree, which is built; then random
                                     programs are run until one is wrong that this tree's build gets right; for rows of
                                     exports, the seeds of tests/export.py that found defects
    defects.py --rows sums,sort      those whose names have one of these words
    defects.py --list                the rows; the status is 1 if the text of one is not in its file any more

A row has a file, text of it, and what stood there when the library was wrong.  A line tells by which seed each was found;
the status is 1 if one was not.  The copy and its build are in build/defects; this tree's build is build/libmonochord.so.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(HERE, "build", "defects")

ROWS = [
    ("axes of size 1 have strides", "src/exec/cpu/launch.c", "    if (p->type.dims[a] == 1) {\n        return 1;\n    }\n", ""),
    ("a larger map finishes heavy work", "src/lower/order.c", "m->groups.axes[group].varies == mc_varies(&y->type) && ", ""),
    ("sums add in the elements' type", "src/lower/fused.c", "if (acc && acc_is_asked(n, acc, x->dtype) &&", "if (acc && mc_is_float(x->dtype) != mc_is_float(v.acc) &&"),
    ("float % by floor", "src/op/ops.def", "M(floormod)(a, b)", "a - b * M(floor)(a / b)"),
    ("float // by floor", "src/op/ops.def", "M(floordiv)(a, b)", "M(floor)(a / b)"),
    ("unsigned numbers are sorted as signed", "src/op/sort.c", "mc_dtypes[x->dtype].kind == KIND_UINT ? 0 : UINT32_C(1) << 31", "mc_dtypes[x->dtype].cls == CLASS_I64 ? UINT32_C(1) << 31 : 0"),
    ("norm of order inf as of a number", "src/op/reduce.c", "ord >= rows[i].ord && ord <= rows[i].ord ?", "ord >= rows[i].ord && ord < rows[i].ord ?"),
    ("2 ** -1 is 0", "src/graph/bigint.c", "return WHOLE_NOT; /* a real number */", "*out = mc_bigint_of(0);\n            return WHOLE_MADE;"),
    ("a literal widens by promotion", "src/graph/apply.c", "in[i]->weak && !literal_fits(in[i], d) && !mc_is_float(both) ?", "in[i]->weak && !mc_is_float(both) ?"),
    ("0 < x < 1 is (0 < x) < 1", "src/graph/parse.c", 'return before && !p->failed ? mc_parse_apply(p, "and_", (struct val[]){ left, v }, 2, at) : v;', "return v;"),
    ("inc_subtensor of a part of a part sets the whole", "src/graph/index.c", "        part->indexed = x;\n", "        part->indexed = NULL;\n"),
    ("corrmm's pad='auto' is no padding", "src/op/conv_names.c", "border = automatic ? &full : pad->none ? border : pad;", "(void)full;\n    border = automatic || pad->none ? border : pad;"),
    ("gradients of unstable forms", "src/grad/grad.c", "nknown == 1 ? mc_grad_stable", "nknown == -1 ? mc_grad_stable"),
    ("gradients reach branches that were not taken", "src/grad/derive.c", "n->op->arity && levels ? mc_grad_branch(g) : 0;", "0;"),
    ("sigmoid_binary_crossentropy at 0", "src/op/formulas.def", '"softplus(where(x > 0, -x, x)) + x * (cast(x > 0, x.dtype) - t)"', '"softplus(-abs(x)) + maximum(x, 0) - x * t"'),
    ("casts wrap", "src/render/prelude.h", "((x) >= above ? high : (x) <= below ? low : (x) == (x) ? (I)(x) : 0)", "((x) == (x) ? (I)(i64)(x) : 0)"),
    ("@ is dot", "src/graph/parse.c", '{ "@", 9, "matmul" }', '{ "@", 9, "dot" }'),
    ("plans are told apart by whole numbers", "src/schedule/shape_plan.c", "memcpy(&key[i], a->data + (a->rank ? i * a->strides[0] : 0), mc_dtypes[a->dtype].size);",
     "key[i] = mc_load_i64(a->dtype, a->data + (a->rank ? i * a->strides[0] : 0));"),
    ("DEBUG knows no slack", "src/exec/reference.c", "        bad = first_out_of_tolerance(t, n, have, want, eps, rough, bad);\n",
     "        (void)first_out_of_tolerance;\n"),
    ("heavy work is finished before its other results", "src/lower/order.c", "((n->nout == 1 && !asked) || !has_cycle(&members, m, list, group, n))", "(n->nout >= 1)"),
    ("groups wait for each other", "src/lower/group.c", "if (h != of && f->group.at[h].newest < f->group.at[of].newest) {", "if (h < 0) {"),
    ("factors of halves wait", "src/rewrite/match.c", "k->type.dtype != MC_FLOAT16 && (", "("),
    ("x / row is rounded otherwise in one kernel", "src/lower/fused.c", "if (!m->exact && divides_row(k, n, &v))", "if (divides_row(k, n, &v))"),
    ("halves are rounded where they are stored alone", "src/lower/program.c", "    m->rounds |= m->exact;\n", ""),
    ("kernel text of literals has no dtype", "src/graph/apply.c", ".nin = op->arity, .type.dtype = makes };\n    bool ok = (y = mc_array_empty(n.type.dtype,",
     ".nin = op->arity };\n    bool ok = (y = mc_array_empty(makes,"),
    ("softmax of no elements", "src/op/formulas.def", "e = exp(f - sup(f, axis=axis, keepdims=True)); e / sum", "e = exp(f - max(f, axis=axis, keepdims=True)); e / sum"),
]

# Defects of exported files.
EXPORTS = [
    ("exported convolutions have phases without taps", "src/heavy/portable/program.c", "if (c->noffset) {", "if (true) {"),
    ("exported epilogues of parts run on all of the result", "src/export/kernel.c", "size = part->axis[i] == a ? part->size[i] : size;", "(void)part;"),
    ("exported chains of images begin anew", "src/heavy/portable/program.c", '", image %% %" PRId64 " != 0);\\n", p->chain', '", image > 0 && %d);\\n", 1'),
    ("exported comparisons with themselves are warned of", "src/export/text.c", '    "#pragma GCC diagnostic ignored \\"-Wtautological-compare\\"\\n"\n', ""),
    ("exported counters that nothing reads are warned of", "src/export/text.c", '    "#pragma GCC diagnostic ignored \\"-Wunused-but-set-variable\\"\\n"\n', ""),
]


def run(words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def build():
    said = run(["cmake", "--build", os.path.join(COPY, "build"), f"-j{os.cpu_count()}", "--target", "monochord"])
    return said.returncode == 0, said.stdout + said.stderr


def copy_tree():
    shutil.rmtree(COPY, ignore_errors=True)
    os.makedirs(COPY)
    for name in os.listdir(HERE):
        there = os.path.join(HERE, name)
        if name.startswith((".", "build")):
            continue
        if os.path.isdir(there):
            shutil.copytree(there, os.path.join(COPY, name), ignore=shutil.ignore_patterns("__pycache__", ".venv", "results"))
        else:
            shutil.copy2(there, COPY)
    made = run(["cmake", "-S", COPY, "-B", os.path.join(COPY, "build"), "-DCMAKE_BUILD_TYPE=Release"])
    if made.returncode:
        sys.exit((made.stdout + made.stderr)[-3000:])
    good, said = build()
    if not good:
        sys.exit(said[-3000:])


def is_stale(row):
    with open(os.path.join(HERE, row[1]), encoding="utf-8") as f:
        return row[2] not in f.read()


def try_programs(seeds, jobs):
    """By which random program is the copy's build found to be wrong?  "": by none; how many there were."""
    said = run([sys.executable, os.path.join(HERE, "tests", "random_programs.py"), "--beside", os.path.join(HERE, "build", "libmonochord.so"),
                "--seeds", seeds, "--small", "0", "--quiet", "--quick", "--jobs", str(jobs), "--cache", os.path.join(COPY, "cache")],
               env={**os.environ, "MC_LIBRARY": os.path.join(COPY, "build", "libmonochord.so")}).stdout
    last = next((row for row in said.splitlines() if row.startswith("seeds: ")), None)
    many = next((row.split()[2] for row in said.splitlines() if row.startswith("random programs: ")), "?")
    what = next((row for row in said.splitlines() if row.startswith("==== seed")), "").split(": ")[-1]
    return f"seed {last.split()[1]} ({what})" if last else "", f"{many} programs"


def try_exports(_, jobs):
    """The same by exported files."""
    wrong, many = [], "?"
    for tree in (HERE, COPY):
        said = run([sys.executable, os.path.join(HERE, "tests", "export.py"), "--found", "--quiet", "--jobs", str(jobs), "--cache", os.path.join(COPY, "cache")],
                   env={**os.environ, "MC_LIBRARY": os.path.join(tree, "build", "libmonochord.so")}).stdout
        wrong.append([row[5:] for row in said.splitlines() if row.startswith("==== ")])
        many = next((row.split()[1] for row in said.splitlines() if row.startswith("export: ")), "?")
    return ", ".join(sorted(set(wrong[1]) - set(wrong[0]))), f"{many} exports"


def try_row(name, path, old, new, trial, seeds, jobs):
    path = os.path.join(COPY, path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if old not in text:
        return f"{name}: NOT IN THE SOURCE: {old}"
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))
        good, said = build()
        if not good:
            return f"{name}: DOES NOT BUILD: {said[-600:]}"
        start = time.time()
        by, many = trial(seeds, jobs)
        return f"{name}: {f'found by {by},' if by else 'NOT FOUND in'} {many}, {time.time() - start:.0f} s"
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def main():
    a = argparse.ArgumentParser(description="puts known defects back and runs the generator of random programs")
    a.add_argument("--rows", default="", help="words of names, joined by ','")
    a.add_argument("--seeds", default="0:5000")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--list", action="store_true")
    args = a.parse_args()
    words = [w for w in args.rows.split(",") if w]
    rows = [(*r, trial) for table, trial in ((ROWS, try_programs), (EXPORTS, try_exports)) for r in table
            if not words or any(w in r[0] for w in words)]
    if args.list:
        stale = [r for r in rows if is_stale(r)]
        print("\n".join(f"{r[0]}: {r[1]}" for r in rows))
        print("".join(f"{r[0]}: NOT IN THE SOURCE: {r[2]}\n" for r in stale), end="", file=sys.stderr)
        return int(bool(stale))
    copy_tree()
    bad = 0
    for row in rows:
        told = try_row(*row, args.seeds, args.jobs)
        bad |= ": found" not in told
        print(told, flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
