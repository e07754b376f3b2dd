#!/usr/bin/env python3
"""circles.py [BUILD]: files of src/ that need each other, by the symbols of their objects (nm): each circle of more than
one file, the largest first, and at the end how many have more than four; none may."""
import os
import subprocess
import sys
from pathlib import Path

LARGE = 4
root = Path(sys.argv[1] if len(sys.argv) > 1 else "build") / "CMakeFiles/objects.dir/src"
home, needs = {}, {}
for path in sorted(root.rglob("*.o")):
    name = os.path.relpath(path, root)[:-2]
    if not (Path("src") / name).exists():  # left over in the build folder from a file that is gone
        continue
    needs[name] = set()
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        *_, kind, symbol = line.split()
        if kind == "U":
            needs[name].add(symbol)
        elif kind.isupper():
            home[symbol] = name
to = {n: sorted({home[s] for s in symbols if home.get(s, n) != n}) for n, symbols in needs.items()}


def circles():
    """Tarjan's, without recursion."""
    number, low, stack, on = {}, {}, [], set()
    for first in to:
        work = [] if first in number else [(first, iter(to[first]))]
        if work:
            number[first] = low[first] = len(number)
            stack.append(first)
            on.add(first)
        while work:
            v, rest = work[-1]
            w = next(rest, None)
            if w is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[v])
                if low[v] == number[v]:
                    at = stack.index(v)
                    yield sorted(stack[at:])
                    on -= set(stack[at:])
                    del stack[at:]
            elif w not in number:
                number[w] = low[w] = len(number)
                stack.append(w)
                on.add(w)
                work.append((w, iter(to[w])))
            elif w in on:
                low[v] = min(low[v], number[w])


found = sorted((c for c in circles() if len(c) > 1), key=len, reverse=True)
for c in found:
    print(f"{len(c):3} files: {' '.join(c)}")
print(f"circles: {len(found)}, {sum(len(c) > LARGE for c in found)} of more than {LARGE} files, in {len(to)} files")
sys.exit(any(len(c) > LARGE for c in found))
