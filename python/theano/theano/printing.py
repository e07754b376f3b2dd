"""Printing of graphs and of values."""
import sys

from .core import Library, as_tensor_variable, attributes, missing


class Print:
    """Print(message)(x): x, printed each time it is computed."""

    def __init__(self, message="", attrs=("__str__",), global_fn=None):
        self.message = message

    def __call__(self, x):
        return Library("print_", attributes({"message": self.message}))(as_tensor_variable(x))


def debugprint(obj, depth=-1, print_type=False, file=None, ids="CHAR", stop_on_name=False, done=None, **unused):
    """Prints a graph as a tree; file="str" gives the text."""
    from .compile import Function
    lines, seen = [], {}
    if isinstance(obj, Function):
        lines = ["%s %d" % (s, i) for i, s in enumerate(obj.maker.fgraph.toposort())]
    todo = [] if isinstance(obj, Function) else [(v, 0) for v in reversed(
        list(obj) if isinstance(obj, (list, tuple)) else [obj])]
    while todo:
        v, at = todo.pop()
        key = v._node.id
        text = " |" * at + (v.name or str(v)) if v.owner is None else " |" * at + str(v.owner.op) + (
            " '%s'" % v.name if v.name else "")
        text += " <%s>" % v.type if print_type else ""
        known = key in seen
        label = seen.setdefault(key, letters(len(seen)))
        lines.append("%s [id %s]" % (text, label))
        if v.owner is not None and not known and (depth < 0 or at + 1 < depth):
            todo += [(x, at + 1) for x in reversed(v.owner.inputs)]
    text = "\n".join(lines) + "\n"
    if file == "str":
        return text
    (file or sys.stdout).write(text)


def letters(n):
    text = ""
    while n >= 0:
        text = chr(ord("A") + n % 26) + text
        n = n // 26 - 1
    return text


INFIX = {"add": "+", "sub": "-", "mul": "*", "true_div": "/", "int_div": "//", "mod": "%", "pow": "**", "lt": "<", "le": "<=",
         "gt": ">", "ge": ">=", "eq": "==", "neq": "!=", "and_": "&", "or_": "|", "xor": "^", "dot": "\\dot"}


def pprint(v, *unused):
    """A variable as a formula."""
    v = as_tensor_variable(v)
    if v.owner is None or v.name:
        return str(v)
    op, inputs = getattr(v.owner.op, "name", str(v.owner.op)), [pprint(x) for x in v.owner.inputs]
    if op in INFIX:
        return "(%s)" % (" %s " % INFIX[op]).join(inputs)
    return "(-%s)" % inputs[0] if op == "neg" else "%s(%s)" % (op, ", ".join(inputs))


pp = pprint


def min_informative_str(v, *unused):
    return debugprint(v, file="str")


def pydotprint(*unused, **also):
    raise NotImplementedError("pydotprint is not there; theano.printing.debugprint prints a graph as text")


pydotprint_variables = pydotprint
__getattr__ = missing("theano.printing")
