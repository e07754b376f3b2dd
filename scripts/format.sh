#!/usr/bin/env bash
# format.sh [--check]: clang-format for the .c files.  Tables (initialisers that span lines) and headers
# are aligned by hand and left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
changed=0
for file in $(git ls-files 'src/*.c' 'tests/*.c' 'tools/*.c' 'examples/*.c'); do
    # from:to of what lies outside of tables
    lines=$(awk '
        function close_range() { if (from && NR > from) print "--lines=" from ":" NR - 1; from = 0 }
        !table && /= *\{$/ || /= *\{ *\/\*.*\*\/$/ { close_range(); match($0, /^ */); table = 1; depth = RLENGTH; next }
        table { match($0, /^ */); if (RLENGTH == depth && /^ *\};/) table = 0; next }
        !from { from = NR }
        END { NR++; close_range() }' "$file")
    [ -n "$lines" ] || continue
    new=$(clang-format $lines "$file"; echo x)
    if [ "$new" != "$(cat "$file"; echo x)" ]; then
        changed=$((changed + 1))
        echo "format: $file"
        [ "${1:-}" = --check ] || printf %s "${new%x}" >"$file"
    fi
done
echo "format: $changed files changed"
[ "${1:-}" != --check ] || [ $changed = 0 ]
