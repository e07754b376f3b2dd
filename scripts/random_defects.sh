#!/usr/bin/env bash
# random_defects.sh COMMIT...: does the generator of random programs find what these commits mended?  Each one's change of
# src/ is taken back in a copy of the tree; then programs of seeds 0 to 5000 are run by that build, until one is wrong
# that this tree's build (build/libmonochord.so) gets right.  Prints a line for each; the status is 1 if one is not found.
set -uo pipefail
cd "$(dirname "$0")/.."
here=$PWD python=${PYTHON:-python3} copy=${TMPDIR:-/tmp}/monochord-defect-$$ bad=0
trap 'git worktree remove --force "$copy" >/dev/null 2>&1; rm -rf "$copy"' EXIT
for commit in "$@"; do
    git worktree remove --force "$copy" >/dev/null 2>&1
    git worktree add --quiet --detach "$copy" HEAD || exit 2
    subject=$(git log -1 --format=%s "$commit")
    if ! git diff "$commit" "$commit~1" -- src include | git -C "$copy" apply --3way - 2>"$copy/log"; then
        echo "$commit: cannot be taken back any more: $subject"
        continue
    fi
    cmake -S "$copy" -B "$copy/build" >"$copy/log" 2>&1 && cmake --build "$copy/build" -j"$(nproc)" --target monochord >"$copy/log" 2>&1 ||
        { echo "$commit: does not build without it: $subject"; continue; }
    said=$(MC_LIBRARY=$copy/build/libmonochord.so "$python" tests/random_programs.py --beside "$here/build/libmonochord.so" \
        --seeds "${SEEDS:-0:5000}" --small 0 --quiet 2>&1)
    seed=$(sed -n 's/^seeds: //p' <<<"$said")
    [ -n "$seed" ] || bad=1
    echo "$commit: ${seed:+found by seed $seed}${seed:-NOT FOUND}: $subject" | sed 's/\(found by seed [0-9]*\)[0-9 ]*:/\1:/'
done
exit $bad
