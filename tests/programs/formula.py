"""formula.py: the text form, read as Python.

A statement of the text form is nearly one of Python's; what differs (chains of comparisons, `and`, `or`, `not`) is
turned into calls.  Ops that the manual, docs/ops.md, defines as formulas of others become functions by that text: a
new one needs no line here.
"""
import ast
import functools
import os
import re

from . import images, normal  # noqa: F401  their ops
from .structured import OPS, T
from .value import State, V

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs", "ops.md")
DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64").split()


class Turn(ast.NodeTransformer):
    @staticmethod
    def call(name, *args):
        return ast.Call(ast.Name(name, ast.Load()), list(args), [])

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return functools.reduce(lambda a, b: self.call(name, a, b), node.values)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self.call("invert", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        sides = [node.left] + node.comparators
        parts = [ast.Compare(a, [o], [b]) for a, o, b in zip(sides, node.ops, sides[1:])]
        return functools.reduce(lambda a, b: self.call("and_", a, b), parts)


@functools.lru_cache(4096)
def code(text):
    tree = ast.fix_missing_locations(Turn().visit(ast.parse(text)))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = compile(ast.fix_missing_locations(ast.Expression(last.value)), text, "eval") if last else None
    return compile(tree, text, "exec"), value


class Names(dict):
    def __missing__(self, name):
        if name in OPS:
            return OPS[name]
        if name in DTYPES:
            return name
        if name == "floatX":
            return State.floatX
        if name in ("inf", "nan", "pi"):
            return {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793}[name]
        raise NameError(name)


def run(text, names):
    """The value of a formula's last statement; what it assigns goes into names."""
    body, value = code(text)
    space = {"__builtins__": {}}
    local = names if isinstance(names, Names) else Names(names)
    exec(body, space, local)
    return eval(value, space, local) if value else None


def manual():
    """name: (parameters with defaults, text or None, doc) of each op."""
    rows = {}
    for line in open(MANUAL, encoding="utf-8"):
        m = re.match(r"\| `(\w+)\((.*?)\)` \| (.*) \|$", line)
        if m:
            doc = m.group(3).replace("\\", "").replace(" (several results)", "")
            text = re.search(r": `([^`]*)`$", doc)
            rows[m.group(1)] = (m.group(2), text and text.group(1), doc)
    return rows


def define(name, params, text):
    """The function that the manual says name is."""
    words, rest, variadic = [], {}, None
    for p in re.findall(r"[^,\[\]\"]*(?:\[[^\]]*\])?(?:\"[^\"]*\")?", params):
        p = p.strip()
        if p.startswith("*"):
            variadic = p[1:]
        elif "=" in p:
            key, value = p.split("=", 1)
            words.append(key)
            rest[key] = ast.literal_eval(value)
        elif p:
            words.append(p)

    def f(*args, **more):
        names = Names(rest)
        names.update(zip(words, args))
        names.update(more)
        return run(text, names)
    f.__name__ = name
    return f


ROWS = manual()
for _name, (_params, _text, _doc) in ROWS.items():
    if _text and _name not in OPS:
        OPS[_name] = define(_name, _params, _text)


def fields(value):
    """A value's tensors: of an op with several results all."""
    return [T(v) for v in value] if isinstance(value, list) and value and all(isinstance(v, V) for v in value) else [T(value)]
