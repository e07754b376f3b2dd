"""What notebooks show: a node as a picture of its graph, a function as a table of its steps, a net as its layers and the
course of its training. Pictures and tables scroll where the page is narrow."""
import html
import sys

STYLE = """<style>
.mc { font: 13px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: 100%; }
.mc .wide { overflow-x: auto; }
.mc table { border-collapse: collapse; margin: .4em 0; width: 100%; }
.mc th, .mc td { text-align: left; padding: .2em .9em .2em 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
.mc th { font-weight: 600; color: #555; white-space: nowrap; }
.mc td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.mc td.l { text-align: left; }
.mc td.t { font-family: ui-monospace, monospace; font-size: 12px; min-width: 13em; overflow-wrap: anywhere; }
.mc .bar { display: inline-block; height: .7em; background: #4878a8; vertical-align: baseline; }
.mc .note { color: #8a5a00; margin: .3em 0; }
.mc .dim { color: #666; }
.mc svg { height: auto; max-width: none; }
.mc pre { font-size: 12px; overflow: auto; max-height: 24em; background: #f6f6f6; padding: .6em; }
</style>"""


def box(*parts):
    return "%s<div class='mc'>%s</div>" % (STYLE, "".join(parts))


def table(head, rows):
    """Cells that are a pair are a class and HTML, others text."""
    def cell(c):
        return "<td class='%s'>%s</td>" % c if isinstance(c, tuple) else "<td>%s</td>" % html.escape(str(c))
    return "<div class='wide'><table><tr>%s</tr>%s</table></div>" % (
        "".join("<th>%s</th>" % h for h in head), "".join("<tr>%s</tr>" % "".join(map(cell, row)) for row in rows))


def shorter(text, most=160):
    return text if len(text) <= most else text[:most - 1] + "\u2026"


def of_node(node):
    """The graph that ends in a node."""
    return box("<div class='wide'>%s</div>" % node.node.graph.svg([node.node]))


def of_function(f):
    """Its steps, with their times if it was compiled to count them, and the kernels' text."""
    steps, about = [s for s in f.steps if s["kind"] not in ("size", "view")], f.about
    whole = sum(s["seconds"] for s in steps)
    rows = []
    for s in steps:
        row = [s["solver"] or s["kind"], s["device"] + (": " + s["reason"] if s["reason"] else ""),
               ("t", html.escape(shorter(s["text"])))]
        if whole:
            share = s["seconds"] / whole
            row[:0] = [("n", "%.3f" % (s["seconds"] / max(s["calls"], 1) * 1e3)),
                       ("n l", "<span class='bar' style='width:%.1fpx'></span>&nbsp;%.0f&nbsp;%%" % (48 * share, 100 * share))]
        rows.append(row)
    return box("<b>%s</b> <span class='dim'>%d steps, compiled in %.2f s, %.1f KiB of memory</span>" % (
                   html.escape(f.name), len(steps), about["compile_seconds"], about["memory"] / 1024),
               "<div class='note'>%s</div>" % html.escape(about["warning"]) if about["warning"] else "",
               table((["ms a call", "share"] if whole else []) + ["by", "on", "computes"], rows),
               "<details><summary>kernels</summary><pre>%s</pre></details>" % html.escape(f.source) if f.source else "")


def chart(costs, epochs):
    """The cost of each epoch as a line."""
    wide, high, low, top = 360, 110, min(costs), max(costs)
    at = [(40 + i * (wide - 50) / max(epochs - 1, 1), 8 + (top - c) * (high - 28) / ((top - low) or 1)) for i, c in enumerate(costs)]
    line = " ".join("%.1f,%.1f" % p for p in at)
    return ("<svg viewBox='0 0 %d %d' width='%d' style='max-width:100%%' role='img' aria-label='cost by epoch'>"
            "<g font-size='10' font-family='system-ui, sans-serif' fill='#555'><path d='M40 4V%d H%d' fill='none' stroke='#bbb'/>"
            "<text x='36' y='12' text-anchor='end'>%.3g</text><text x='36' y='%d' text-anchor='end'>%.3g</text>"
            "<text x='%d' y='%d' text-anchor='end'>epoch %d</text></g>"
            "<polyline points='%s' fill='none' stroke='#4878a8' stroke-width='2'/><circle cx='%.1f' cy='%.1f' r='3' fill='#4878a8'/></svg>"
            % (wide, high, wide, high - 16, wide - 6, top, high - 18, low, wide - 6, high - 3, epochs, line, *at[-1]))


def of_net(net):
    rows = [(layer["name"], ("t", html.escape(layer["text"]))) for layer in net.layers]
    count = sum(v.size for v in net.params().values())
    return box("<b>%s parameters</b>" % format(count, ","), table(["layer", "text"], rows),
               chart(net.costs, len(net.costs)) if net.costs else "")


def in_notebook():
    kernel = sys.modules.get("IPython")
    shell = kernel and kernel.get_ipython()
    return bool(shell) and hasattr(shell, "kernel")


class Progress:
    """The course of a training: a bar on a terminal, a chart in a notebook, nothing elsewhere."""

    def __init__(self, epochs, steps, wanted=None):
        self.epochs, self.steps, self.costs, self.handle = epochs, steps, [], None
        self.kind = "" if wanted is False else "notebook" if in_notebook() else \
            "terminal" if wanted or sys.stderr.isatty() else ""

    def step(self, i):
        if self.kind == "terminal" and (i % max(self.steps // 40, 1) == 0 or i == self.steps):
            done = 24 * i // max(self.steps, 1)
            sys.stderr.write("\repoch %d of %d  [%s%s]%s" % (len(self.costs) + 1, self.epochs, "#" * done, "." * (24 - done),
                                                           "  cost %.4g" % self.costs[-1] if self.costs else ""))
            sys.stderr.flush()

    def epoch(self, cost):
        self.costs.append(cost)
        if self.kind == "terminal" and len(self.costs) == self.epochs:
            sys.stderr.write("\r%d epochs, cost %.4g%s\n" % (self.epochs, cost, " " * 30))
        if self.kind == "notebook":
            from IPython.display import HTML, display
            page = HTML(box("epoch %d of %d, cost %.4g<br>" % (len(self.costs), self.epochs, cost), chart(self.costs, self.epochs)))
            if self.handle:
                self.handle.update(page)
            else:
                self.handle = display(page, display_id=True)
