"""compare.py: ours and theirs in one run.

Runs `monochord bench SUITE --json` and every bench/peers/SUITE_*.py in turn, several rounds, so that a
machine that slows down slows all of them.  Each prints one JSON object a line; cases are matched by
(case, pass, dtype).  Prints the median over rounds and the ratio theirs / ours: above 1, ours is faster.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def rows(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--suite", required=True)
    args.add_argument("--ours", required=True, help="the program monochord")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--save", help="append every object to this file, with who printed it")
    args = args.parse_args()

    runs = {"ours": [args.ours, "bench", args.suite, "--json"]}
    for peer in sorted((HERE / "peers").glob(f"{args.suite}_*.py")):
        runs[peer.stem[len(args.suite) + 1:]] = [sys.executable, str(peer)]

    times, order = {}, []  # (case, pass, dtype) -> who -> [ms]
    for number in range(args.rounds):
        for who, command in runs.items():
            print(f"round {number + 1} of {args.rounds}: {who}", file=sys.stderr)
            for row in rows(command):
                key = row["case"], row.get("pass", ""), row.get("dtype", "")
                if key not in times:
                    order.append(key)
                times.setdefault(key, {}).setdefault(who, []).append(row["ms"])
                if args.save:
                    with open(args.save, "a") as out:
                        out.write(json.dumps({"who": who, **row}) + "\n")

    peers = [who for who in runs if who != "ours"]
    wide = max([len(" ".join(key)) for key in order] + [4])
    print(f"{'case':{wide}} {'ours ms':>10}" + "".join(f" {who + ' ms':>14} {'ratio':>7}" for who in peers))
    for key in order:
        ms = {who: statistics.median(all) for who, all in times[key].items()}
        line = f"{' '.join(key):{wide}} " + (f"{ms['ours']:10.4f}" if "ours" in ms else f"{'-':>10}")
        for who in peers:
            there = who in ms
            line += f" {ms[who]:14.4f}" if there else f" {'-':>14}"
            line += f" {ms[who] / ms['ours']:7.2f}" if there and ms.get("ours") else f" {'-':>7}"
        print(line)


if __name__ == "__main__":
    main()
