"""ranks.py PROGRAM: what `monochord train` leaves, for one rank, two and four, that find each other by the environment
(--ranks tcp) or by MPI (--ranks mpi); ranks that are killed.

    ranks.py build/monochord [--kill N] [--starts N]     N times a random rank is killed at a random moment (3)
    ranks.py build/monochord --devices cuda0,cuda1       only that: ranks that have GPUs, one of which is killed

Invariant: a run that was killed leaves a checkpoint that --resume continues, and ends within a time limit."""
import argparse, os, random, re, shutil, signal, socket, subprocess, sys, tempfile, time
import numpy as np

LIMIT = 100     # seconds for one run


def command(args, ranks, *more):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), os.path.abspath(args.program), "train", "net.txt", "--data", "digits:600",
            "--report", "none", "--ranks", "mpi", *more]


def environment():
    """A rank that is killed before the others have met it is waited for as long as comm.timeout says."""
    return dict(os.environ, MONOCHORD_FLAGS="deterministic=strict,threads=1,comm.timeout=30", OMPI_MCA_btl_vader_single_copy_mechanism="none")


def run(args, ranks, *more, other=None, flags=None):
    """other: what one rank more has on its command line, or in its flags"""
    words = command(args, ranks, *more)
    if other:
        one = words[words.index("-n") + 2:]
        words += [":", "-n", "1", *(["env", f"MONOCHORD_FLAGS={environment()['MONOCHORD_FLAGS']},{flags}"] if flags else []), *one, *other]
    return subprocess.run(words, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)


def started(args, ranks, *more, flags=None):
    """Ranks that find each other by the environment, as torchrun starts them."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    words = [args.program, "train", "net.txt", "--data", "digits:600", "--report", "none", "--ranks", "tcp", *more]
    return [subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=dict(environment(), RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                                      **({"MONOCHORD_FLAGS": flags} if flags is not None else {})))
            for r in range(ranks)]


def named(rank, said):
    """Do the others say that this rank is gone, or that it never came?"""
    return f"rank {rank} has left" in said or f"rank {rank} did not come" in said


def ended(ranks):
    """What they said, one text, and their codes; None: they hang."""
    until, said = time.time() + LIMIT, ""
    try:
        for p in ranks:
            said += p.communicate(timeout=max(0.1, until - time.time()))[0]
    except subprocess.TimeoutExpired:
        return None, said
    finally:
        for p in ranks:
            p.kill()
    return [p.returncode for p in ranks], said


def by_environment(args, dice, found):
    """The same bits for one, two and four ranks; one message for what is wrong; the others end after one that is killed."""
    for n in (1, 2, 4):
        codes, said = ended(started(args, n, "--save", f"t{n}.npz"))
        if codes != [0] * n:
            found.append(f"{n} ranks by tcp: {codes}, {said[-1500:]}")
        elif n > 1 and (d := differ("t1.npz", f"t{n}.npz")):
            found.append(f"{n} ranks by tcp learn other bits: {d}")
    for words, says in ((("--parts", "3"), "3 parts of a batch do not divide among 2 ranks"), (("--epochs", "0"), "--epochs"),
                        (("--devices", "cuda0,cuda0"), "cuda0 is there twice")):
        codes, said = ended(started(args, 2, "--save", "w.npz", *words))
        if not codes or 0 in codes or says not in said or said.count("monochord:") != 1:
            found.append(f"{words}: {codes}, {said[-800:]}")
    for i in range(args.kill):
        ranks = started(args, 3, "--parts", "3", "--save", "tk.npz", "--new", "--every", "0", "--epochs", "2000")
        time.sleep(dice.uniform(0, 3))
        victim = dice.randrange(3)
        ranks[victim].kill()
        codes, said = ended(ranks)
        if not codes or 0 in codes or not named(victim, said):
            found.append(f"kill {i} of rank {victim} by tcp: {'the others hang' if not codes else codes}, {said[-800:]}")


def by_gpus(args, dice, found):
    """The others end after one that is killed, also if their GPUs wait for it, and one rank goes on from the checkpoint."""
    devices = args.devices.split(",")
    for i in range(args.kill):
        ranks = started(args, len(devices), "--devices", args.devices, "--save", "g.npz", "--new", "--every", "0", "--epochs", "100000", flags=os.environ["MONOCHORD_FLAGS"])
        until = time.time() + LIMIT
        while step_of("g.npz") < 0 and time.time() < until and all(p.poll() is None for p in ranks):
            time.sleep(0.1)
        time.sleep(dice.uniform(0, 3))
        victim = dice.randrange(len(devices))
        ranks[victim].kill()
        start = time.time()
        codes, said = ended(ranks)
        print(f"rank {victim} killed: the others end after {time.time() - start:.1f} s")
        if not codes or 0 in codes or not named(victim, said) or step_of("g.npz") < 0:
            found.append(f"kill {i} of rank {victim}, {args.devices}: {'the others hang' if not codes else codes}, {said[-800:]}")
        for f in ("g.npz", "g.npz.old"):
            if os.path.exists(f):
                os.remove(f)


def arrays(path):
    """All that is learned: not the times that epochs took."""
    with np.load(path, allow_pickle=False) as f:
        return {k: f[k] for k in f.files if "progress" not in k and "history" not in k and f[k].dtype.kind in "fiu"}


def differ(a, b):
    a, b = arrays(a), arrays(b)
    return sorted(k for k in a.keys() | b.keys() if k not in a or k not in b or a[k].tobytes() != b[k].tobytes())


def results(said):
    """What was printed of the tests: not the times, the ranks, the file."""
    after = said[said.find("\n\n"):]
    epochs = [" ".join(line.split()[:6]) for line in after.splitlines() if re.match(r"\x1b?(\[K)? +[0-9]+ +[0-9.]+ +[0-9.]+% ", line)]
    return epochs + re.sub("saved as .*", "", after[after.find("answers (across)"):]).splitlines()


def ranks_of(mpirun):
    """The processes that mpirun started."""
    return [int(p) for p in open(f"/proc/{mpirun}/task/{mpirun}/children").read().split()]


def live(pids):
    """Those that have not ended."""
    return [p for p in pids if os.path.exists(f"/proc/{p}/stat") and open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"]


def step_of(path):
    """How far the checkpoint is: FILE, or FILE.old in the moment in which FILE has no name; -1: there is none."""
    for f in (path, path + ".old"):
        try:
            with np.load(f, allow_pickle=False) as z:
                return int(z["train/progress"][2])
        except FileNotFoundError:
            pass
    return -1


def kill_one(args, dice, i, found):
    """One rank of two is killed, at a moment of the start or of the training; then one rank goes on from the checkpoint."""
    for f in ("k.npz", "k.npz.old"):
        if os.path.exists(f):
            os.remove(f)
    shard = ["--shard", "optimizer"] if i % 2 else []
    p = subprocess.Popen(command(args, 2, "--parts", "4", "--save", "k.npz", "--every", "0", "--epochs", "200", *shard), env=environment(), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    start = time.time()
    while not (ranks_of(p.pid) if i % 4 == 3 else os.path.exists("k.npz")) and p.poll() is None and time.time() - start < LIMIT:
        time.sleep(0.01)
    time.sleep(dice.uniform(0, 0.5))
    victims, before = ranks_of(p.pid), step_of("k.npz")
    if not victims:
        found.append(f"kill {i}: no rank to kill: {p.communicate()[0][-500:]}")
        return
    victim = dice.choice(victims)
    os.kill(victim, signal.SIGKILL)
    try:
        said = p.communicate(timeout=30)[0]
    except subprocess.TimeoutExpired:
        # Open MPI's mpirun may lock itself up (in PMIx_server_finalize) when a rank dies in MPI_Init: no rank is left then
        hang = live(victims) or live(ranks_of(p.pid))
        os.killpg(p.pid, signal.SIGKILL)
        said = p.communicate()[0]
        args.locked += not hang
        if hang:
            found.append(f"kill {i}: the others hang")
            return
    if p.returncode == 0:
        found.append(f"kill {i}: mpirun says that all is well: {said[-500:]}")
    after = step_of("k.npz")
    if after < before:
        found.append(f"kill {i}: step {before} was saved, and the checkpoint is of step {after}")
    if after >= 0:
        again = run(args, 1, "--parts", "4", "--save", "k.npz", "--resume", "--epochs", str(after * 40 // 600 + 2), *shard)
        if again.returncode != 0 or step_of("k.npz") <= after:
            found.append(f"kill {i}: cannot continue from step {after}: {again.stdout[-800:]}")


def elastic(args, found):
    """--ranks mpi:4 goes on after a rank was killed, with two, and learns the bits of one rank that nobody killed."""
    words = [args.program, "train", "net.txt", "--data", "digits:600", "--report", "none", "--every", "0", "--epochs", "12"]
    allow = dict(environment(), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")
    start = lambda *more: subprocess.Popen([*words, *more], env=allow, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    # killed while they start, where mpirun may not end by itself
    dice = random.Random(5)
    for i in range(args.starts):
        p = start("--ranks", "mpi:2", "--save", "b.npz", "--new", "--epochs", "1")
        victims, since = [], time.time()
        while not victims and p.poll() is None and time.time() - since < LIMIT:
            victims = [v for m in ranks_of(p.pid) for v in ranks_of(m)]
        time.sleep(dice.uniform(0, 0.25))
        for v in live(victims)[:1]:
            os.kill(v, signal.SIGKILL)
        try:
            said = p.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            said = "it hangs"
        if p.returncode or step_of("b.npz") != 15:
            found.append(f"elastic, start {i}: {p.returncode}, step {step_of('b.npz')}, {said[-800:]}")
    p, since = start("--ranks", "mpi:4", "--save", "e.npz", "--new"), time.time()
    while not os.path.exists("e.npz") and p.poll() is None and time.time() - since < LIMIT:
        time.sleep(0.01)
    victims = [v for m in ranks_of(p.pid) for v in ranks_of(m)] if p.poll() is None else []
    if len(victims) < 4:
        found.append(f"elastic: {len(victims)} ranks to kill: {p.communicate()[0][-800:]}")
        return
    os.kill(victims[2], signal.SIGKILL)
    try:
        said = p.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        found.append("elastic: hangs")
        return
    if p.returncode or "a rank was ended by signal 9; going on with 2 of 4 ranks" not in said:
        found.append(f"elastic: {p.returncode}, {said[-1200:]}")
    alone = start("--save", "a.npz")
    alone.communicate(timeout=LIMIT)
    if not found and (d := differ("e.npz", "a.npz")):
        found.append(f"elastic: other bits: {d}")
    # an error of the ranks' own is not tried again, and what cannot be started is said
    for more, says in ((["--parts", "3", "--ranks", "mpi:2"], "3 parts of a batch do not divide among 2 ranks"), (["--ranks", "mpi:0"], "a whole number from 1"), (["--ranks", "mpi:2x"], "a whole number from 1")):
        p = start(*more, "--save", "n.npz")
        said = p.communicate(timeout=LIMIT)[0]
        if p.returncode != 1 or says not in said or said.count("monochord:") != 1:
            found.append(f"elastic, {more}: {p.returncode}, {said[-800:]}")
    # nothing there: auto starts; the second time it goes on
    for epochs in ("1", "2"):
        r = run(args, 1, "--save", "auto.npz", "--resume", "auto", "--epochs", epochs)
        if r.returncode or step_of("auto.npz") != 15 * int(epochs):
            found.append(f"--resume auto: {r.returncode}, step {step_of('auto.npz')}, {r.stdout[-800:]}")


def by_mpi(args, dice, found):
    printed = {}
    for n in (1, 2, 4):
        r = run(args, n, "--save", f"l{n}.npz")
        if r.returncode:
            found.append(f"{n} ranks: {r.stdout[-1500:]}")
        printed[n] = results(r.stdout)
    if not found and (len(printed[1]) < 10 or printed[2] != printed[1] or printed[4] != printed[1]):
        found.append(f"other results of the test: {printed}")
    # five steps by two ranks, then the rest by four
    if not found:
        found += [f"{n} ranks learn other bits: {d}" for n in (2, 4) if (d := differ("l1.npz", f"l{n}.npz"))]
        r = [run(args, 2, "--save", "r.npz", "--epochs", "1"), run(args, 4, "--save", "r.npz", "--resume")]
        if any(x.returncode for x in r) or differ("l1.npz", "r.npz"):
            found.append(f"another number of ranks does not continue: {[x.stdout[-500:] for x in r if x.returncode]}")
    for words, says in ((("--parts", "3"), "3 parts of a batch do not divide among 2 ranks"), (("--data", "nowhere"), "nowhere"),
                        (("--epochs", "0"), "--epochs")):
        r = run(args, 2, "--save", "w.npz", *words)
        if r.returncode == 0 or r.stdout.count(says) < 1 or r.stdout.count("monochord:") != 1:
            found.append(f"{words}: {r.returncode}, {r.stdout[-800:]}")
    elastic(args, found)
    for i in range(args.kill):
        kill_one(args, dice, i, found)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program")
    a.add_argument("--kill", type=int, default=3)
    a.add_argument("--starts", type=int, default=2, help="so many times one of --ranks mpi:2 is killed while they start")
    a.add_argument("--devices", default="")
    args = a.parse_args()
    args.locked = 0
    shim = os.path.join(os.path.dirname(os.path.abspath(args.program)), "libmonochord-mpi.so")
    mpi = shutil.which("mpirun") and os.path.exists(shim)
    if not mpi and not args.devices:
        print(f"ranks: MPI is left out, there is no {'libmonochord-mpi.so: it was built without MPI' if shutil.which('mpirun') else 'mpirun'}")
    found, here, dice = [], os.getcwd(), random.Random(int(time.time()))
    args.program = os.path.abspath(args.program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        open("net.txt", "w").write("input 1x28x28\nconv 4 5x5 rectify\npool 2x2\nbatch_norm\ndropout 0.2\ndense 10 softmax\nbatch 40\nepochs 2\nrule adam rate=0.01\n")
        if args.devices:
            open("net.txt", "w").write("input 1x28x28\ndense 32 rectify\ndense 10 softmax\nbatch 40\nrule adam rate=0.001\n")
            by_gpus(args, dice, found)
        else:
            by_environment(args, dice, found)
        if mpi and not args.devices:
            by_mpi(args, dice, found)
        os.chdir(here)
    print("\n".join(found) if found else f"ranks: {args.kill} runs of which a GPU's rank was killed end" if args.devices else f"ranks: 1, 2 and 4 ranks learn the same bits; {args.kill} killed runs go on" + (f"; {args.locked} times mpirun did not end when its ranks had" if args.locked else ""))
    return bool(found)


sys.exit(main())
