#!/usr/bin/env bash
# layers.sh: includes point downward only.  A folder may include itself, the public header, and these:
set -euo pipefail
cd "$(dirname "$0")/.."
allowed="
base
value            base
comm             device/cpu device value base
graph            comm value base
op               comm graph value base
device           value base
device/cpu       device value base
device/cuda      device device/cpu value base
plan             device/cpu device value base
render           device/cpu op graph value base
heavy/portable   plan device/cpu device value base
heavy/cuda       device/cuda render plan device op graph value base
heavy/gemm       heavy/portable heavy/cuda device/cuda device/cpu render plan device op graph value base
heavy/conv       heavy/gemm heavy/portable heavy/cuda device/cuda device/cpu plan device op graph value base
heavy/pool       heavy/cuda device/cuda device/cpu plan device op graph value base
heavy/norm       heavy/cuda device/cuda device/cpu plan device op graph value base
heavy/factor     heavy/gemm heavy/portable heavy/cuda device/cuda device/cpu plan device op graph value base
heavy/lines      device/cpu device op graph value base
heavy/conv_pool  heavy/conv heavy/pool heavy/gemm heavy/cuda device/cuda device/cpu plan device op graph value base
rewrite          op graph value base
grad             rewrite op graph value base
lower            rewrite grad heavy/conv heavy/gemm render plan op graph value base
exec             lower rewrite render plan device/cpu device op graph value base
exec/cpu         exec lower heavy/gemm heavy/conv heavy/pool heavy/norm heavy/conv_pool heavy/factor heavy/lines render plan device/cpu device op graph value base
exec/heavy       exec/cpu exec lower heavy/gemm heavy/conv heavy/pool heavy/norm heavy/conv_pool plan op graph value base
exec/cuda        exec/cpu exec/heavy exec lower heavy/gemm heavy/conv heavy/pool heavy/norm heavy/conv_pool heavy/factor heavy/cuda render plan
                 device/cuda device/cpu device comm op graph value base
schedule         exec/heavy exec lower op graph value base
inspect          exec/heavy exec lower rewrite device op graph value base
export           schedule exec/cpu exec/heavy exec heavy/portable heavy/gemm heavy/conv heavy/pool heavy/norm lower render plan op graph value base
compile          schedule inspect exec lower rewrite grad plan op graph value base
call             compile schedule inspect exec/heavy exec lower op graph value base
bundle           compile schedule inspect exec/cpu exec/heavy exec lower render plan device/cpu device op graph value base
export           call compile schedule inspect exec/cpu exec/heavy exec lower heavy/gemm heavy/conv heavy/pool heavy/norm heavy/conv_pool
                 render plan device/cpu device op graph value base
run              compile inspect exec/cpu exec render heavy/gemm heavy/conv plan device/cpu op graph value base
"
outside="src/nn tools examples bench python/binding"   # these stand on the public headers alone

# file:line:included for every #include "folder/file" under src, less the public ones
inner=$(grep -rnoE '^ *# *include +["<][^">]+[">]' src --include='*.[ch]' --include='*.cu' --include='*.def' | grep -v '^src/nn/' |
    sed -E 's/# *include +//; s/[">]$//' | grep -E ':"' || true)
wrong=$(awk -F: -v table="$allowed" '
    BEGIN {
        n = split(table, row, "\n")
        for (i = 1; i <= n; i++) {
            k = split(row[i], word, " ")
            if (row[i] !~ /^ /) folder = word[1]    # a line that is indented goes on with the row before
            for (j = 1; j <= k; j++) ok[folder, word[j]] = 1
            if (k) known[folder] = 1
        }
    }
    # The row of a file: the longest folder above it that has one.
    function row_of(path) {
        while (sub(/\/[^\/]*$/, "", path)) if (known[path]) return path
        return path
    }
    {
        from = $1; sub(/^src\//, "", from); from = row_of(from)
        gsub(/^ *"/, "", $3)
        to = index($3, "/") ? row_of($3) : "(a file without its folder)"
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
 sys/socket sys/wait netdb netinet/in netinet/tcp unistd immintrin arm_neon "
portable=$(tr '\n' ' ' <<<"$portable")
theirs=$(grep -rnE '^ *# *include +<[^>]+>|__linux__|__gnu_linux__|__GLIBC__|"/(proc|sys|dev)/' src --include='*.[ch]' |
    grep -vE '^src/(base|device)/|^src/comm/mpi_shim[.]c:.*<mpi[.]h>' | while IFS= read -r line; do
        header=$(sed -nE 's/.*# *include +<([^>]+)\.h>.*/\1/p' <<<"$line")
        case "$portable monochord monochord_nn monochord_ops " in *" ${header:-none} "*) ;; *) echo "$line" ;; esac
    done || true)
if [ -n "$theirs" ]; then
    echo "$theirs"
    echo "layers: $(grep -c . <<<"$theirs") uses of one system outside src/base and src/device"
    exit 1
fi
# A pass asks an op for its properties, not for its name.
named=$(grep -rnE 'mc_is_op\(|strn?cmp\([^;]*op->name' src --include='*.[ch]' | grep -vE '^src/op/' || true)
if [ "$(grep -c . <<<"$named")" -gt 10 ]; then
    echo "$named"
    echo "layers: more than 10 ops are asked for by name outside src/op"
    exit 1
fi
if [ -n "$wrong" ]; then
    echo "$wrong"
    echo "layers: $(grep -c . <<<"$wrong") includes point upward"
    exit 1
fi
echo "layers: $(grep -c . <<<"$inner") includes, all downward; $(grep -c . <<<"$named") ops asked for by name outside src/op"
