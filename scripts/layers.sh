#!/usr/bin/env bash
# layers.sh: includes point downward only.  A folder may include itself, the public header, and these:
set -euo pipefail
cd "$(dirname "$0")/.."
allowed="
base
value     base
graph     value base
op        graph value base
device    value base
plan      device value base
gemm      plan device value base
conv      gemm plan device op graph value base
pool      plan device op graph value base
norm      plan device op graph value base
pooled    conv gemm plan device op graph value base
softmax   plan device value base
rewrite   op graph value base
grad      rewrite op graph value base
render    device op graph value base
schedule  graph value base
lower     rewrite grad pooled conv gemm pool norm softmax render plan device op graph value base
function  schedule lower rewrite grad pooled conv gemm pool norm softmax render plan device op graph value base
"
outside="src/nn tools examples bench"   # these stand on the public headers alone

# file:line:included for every #include "folder/file" under src, less the public ones
inner=$(grep -rnoE '^ *# *include +["<][^">]+[">]' src --include='*.[ch]' --include='*.def' | grep -v '^src/nn/' |
    sed -E 's/# *include +//; s/[">]$//' | grep -E ':"' || true)
wrong=$(awk -F: -v table="$allowed" '
    BEGIN {
        n = split(table, row, "\n")
        for (i = 1; i <= n; i++) {
            k = split(row[i], word, " ")
            for (j = 1; j <= k; j++) ok[word[1], word[j]] = 1
            if (k) known[word[1]] = 1
        }
    }
    {
        split($1, path, "/"); from = path[2]
        gsub(/^ *"/, "", $3)
        slash = index($3, "/"); to = slash ? substr($3, 1, slash - 1) : "(a file without its folder)"
        if (!known[from]) print $1 ":" $2 ": src/" from " is not in the table of scripts/layers.sh"
        else if (!ok[from, to]) print $1 ":" $2 ": " from " includes " to ": " $3
    }' <<<"$inner" | sed '/^::/d')
for folder in $outside; do
    [ -d "$folder" ] || continue
    # its own headers, the C library and <monochord*.h>, but nothing that lies in src/
    more=$(grep -rnE '^ *# *include +["<][^">]+[">]' "$folder" --include='*.[ch]' --exclude-dir='.venv' | while IFS= read -r line; do
        file=$(sed -E 's/.*include +["<]([^">]+)[">].*/\1/' <<<"$line")
        if [ -e "src/$file" ] && [ ! -e "$folder/${file##*/}" ]; then echo "$line"; fi
    done || true)
    wrong+=${more:+$'\n'$more}
done
# Nothing of one system outside src/base and src/device: headers of C11 and POSIX.1-2008, and those of the processors' vectors.
portable=" assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdalign stdarg stdatomic stdbool stddef
 stdint stdio stdlib string tgmath time dirent dlfcn fcntl fnmatch glob poll pthread strings sys/mman sys/stat sys/time sys/types
 sys/wait unistd immintrin arm_neon "
portable=$(tr '\n' ' ' <<<"$portable")
theirs=$(grep -rnE '^ *# *include +<[^>]+>|__linux__|__gnu_linux__|__GLIBC__|"/(proc|sys|dev)/' src --include='*.[ch]' |
    grep -vE '^src/(base|device)/' | while IFS= read -r line; do
        header=$(sed -nE 's/.*# *include +<([^>]+)\.h>.*/\1/p' <<<"$line")
        case "$portable monochord monochord_nn monochord_ops " in *" ${header:-none} "*) ;; *) echo "$line" ;; esac
    done || true)
if [ -n "$theirs" ]; then
    echo "$theirs"
    echo "layers: $(grep -c . <<<"$theirs") uses of one system outside src/base and src/device"
    exit 1
fi
if [ -n "$wrong" ]; then
    echo "$wrong"
    echo "layers: $(grep -c . <<<"$wrong") includes point upward"
    exit 1
fi
echo "layers: $(grep -c . <<<"$inner") includes, all downward"
