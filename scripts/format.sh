#!/usr/bin/env bash
# format.sh [--check]: clang-format for the bodies of functions in .c files.  What is aligned by hand
# is left alone: headers, tables, macros, declarations.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || { echo "format: clang-format is not installed"; exit 1; }
changed=0
for file in $(git ls-files --cached --others --exclude-standard 'src/*.c' 'tests/*.c' 'tools/*.c' 'examples/*.c'); do
    # from:to of each body, without the tables (initialisers that span lines) in it
    lines=$(awk '
        function stop() { if (from && NR > from) print "--lines=" from ":" NR - 1; from = 0 }
        /^\}/ { stop(); body = table = 0 }
        body && !table && (/= *\{$/ || /= *\{[^}]*$/) { stop(); table = 1 }
        body && !table && !from && !/^ *(#|\/\*)/ { from = NR }
        body && /^ *#/ { stop() }
        table && /\};$/ { table = 0 }
        /^\{$/ { body = 1 }' "$file")
    [ -n "$lines" ] || continue
    new=$(clang-format $lines "$file" && echo x) || { echo "format: $file cannot be formatted"; exit 1; }
    if [ "$new" != "$(cat "$file"; echo x)" ]; then
        changed=$((changed + 1))
        echo "format: $file"
        [ "${1:-}" = --check ] || printf %s "${new%x}" >"$file"
    fi
done
echo "format: $changed files changed"
[ "${1:-}" != --check ] || [ $changed = 0 ]
