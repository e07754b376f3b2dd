#!/usr/bin/env python3
"""words.py: names and lines of the sources.

  lines     at most 110 columns outside tables: initialisers of several lines, lists made by macros, texts in quotes
  terms     docs/glossary.md has each term once
  retired   no identifier of src has a word of the glossary's table "Retired words"
  devices   only src/device, src/exec and src/heavy ask which device it is (src/nn reads the flag, as a user may)
"""
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
WIDTH = 110
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|/\*.*?\*/|//[^\n]*|[A-Za-z_]\w*', re.S)
ROW = re.compile(r'^\s*(\{|"|#define |\w+\(.*\),? *\\?$)|\\$|= *\{')   # of a table, of a text, of a macro
DEVICE = re.compile(r'mc_cuda_|mc_nv\b|is_gpu|strn?cmp\([^;]*device[^;]*"(cuda|cpu)')


def files(*patterns):
    """The files of the tree, those that git does not know yet among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def main():
    found = []
    sources = files("src/*.c", "src/*.h", "src/*.cu", "tests/*.c", "tests/*.h", "tools/*.c", "tools/*.h", "examples/*.c", "include/*.h")
    for name in sources:
        table = False
        for n, line in enumerate(open(name, encoding="utf-8").read().split("\n"), 1):
            if len(line) > WIDTH and not table and not ROW.search(line):
                found.append(("lines", f"{name}:{n}: {len(line)} columns"))
            table = not line.endswith("};") if table else "= {" in line and not line.endswith("};")

    glossary = open("docs/glossary.md", encoding="utf-8").read()
    terms, _, retired = glossary.partition("## Retired words")
    rows = [row.group(1).strip() for row in re.finditer(r"^\| ([^|]+) \|", terms, re.M)]
    rows = [term for row in rows for term in re.split(r", (?![^(]*\))", row) if term not in ("term", "---")]
    found += [("terms", f"docs/glossary.md: '{term}' has two rows") for term in sorted(set(rows)) if rows.count(term) > 1]

    words = {word for row in re.findall(r"^\| ([^|]+) \|", retired, re.M) for word in row.replace("`", "").split(", ")}
    words -= {"word", "---", "not"}
    for name in set(files("src/*.c", "src/*.h")) - {"src/render/vector.h", "src/render/prelude.h"}:   # texts of kernels
        text = open(name, encoding="utf-8").read()
        for match in TOKEN.finditer(text):
            token = match.group(0)
            if token[0] not in "\"'/" and words & set(token.lower().split("_")):
                found.append(("retired", f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {token}"))
        if not re.match(r"src/(device|exec|heavy|nn)/", name):
            found += [("devices", f"{name}: {m.group(0)}") for m in DEVICE.finditer(text)]

    for kind, what in found:
        print(f"{kind}: {what}")
    count = {kind: sum(k == kind for k, _ in found) for kind in ("lines", "terms", "retired", "devices")}
    print(f"words: {count['lines']} lines over {WIDTH} columns, {count['terms']} terms with two rows, "
          f"{count['retired']} retired words in {len(words)}, {count['devices']} tests for a device")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
