# SPDX-License-Identifier: BSD-2-Clause
"""`weft bench --over`: messages really go by packets and arrive complete, the
namespaces are removed afterwards, also after an interrupt, workers do not outlive
a parent that was killed, requests that cannot be measured are refused with a
reason, and memory is what documents say. No timing decides the result."""

import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))
# pylint: disable=wrong-import-position
import copied  # noqa: E402

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
SRC = pathlib.Path(os.environ.get("WEFT_SRC", "."))
NOBODY = 65534


def fail(text):
    print(text)
    sys.exit(1)


def bench(*options, code=0, program=WEFT, **more):
    done = subprocess.run([program, "bench", *options], text=True, check=False,
                          timeout=280, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more)
    if done.returncode != code:
        fail(f"weft bench {' '.join(options)}: {done.returncode}, not {code}:"
             f"\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def links():
    with open("/proc/net/dev", encoding="ascii") as lines:
        return sorted(line.split(":")[0].strip() for line in lines
                      if ":" in line)


def workers(parent):
    """Children of a bench that live."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as line:
                if line.read().rsplit(")", 1)[1].split()[1] == str(parent):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def check_plot(path, results):
    """A line of ratios for latency and one for bandwidth: larger is higher."""
    with open(path, encoding="utf-8") as text:
        drawn = re.findall(r'<path class="ratio"[^>]* d="([^"]*)"', text.read())
    if len(drawn) != 2:
        fail(f"{len(drawn)} lines of ratios in {path}")
    for test, line in zip(("latency", "bandwidth"), drawn):
        heights = [-float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]
        medians = {
            (one["series"], one["size"]): statistics.median(one["samples_ns"])
            for one in results if one["test"] == test and one["samples_ns"]}
        sizes = sorted(size for name, size in medians if name == "tcp")
        ratios = [medians["weft", size] / medians["tcp", size]
                  for size in sizes]
        if test == "bandwidth":
            ratios = [1 / ratio for ratio in ratios]
        # Equal within the tenth of a pixel that the plot resolves.
        for a, b in itertools.combinations(range(len(ratios)), 2):
            if (ratios[a] - ratios[b]) * (heights[a] - heights[b]) < 0:
                fail(f"{test}: ratios {ratios} are drawn at {heights}")
        if len(heights) != len(ratios):
            fail(f"{test}: {len(heights)} points of {len(ratios)}")


def check_whole(over, *options):
    """Every byte of every message, in batches and alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        said = bench("latency", "bandwidth", "rate", "--sizes", "1,2000,70000",
                     "-r", "1", "-t", "1", "-w", "16", "--more", "5",
                     "--verify", "--over", over, "-a", "tcp", "--timeout",
                     "100", "--json", path, "--svg", path + ".svg", *options)[0]
        with open(path, encoding="utf-8") as text:
            found = json.load(text)
        check_plot(path + ".svg", found["results"])
    if found["plan"]["over"] != over or found["plan"]["more"] != 5 or \
            "FI_MORE" not in said or "over  " not in said:
        fail(f"{found['plan']}\n{said}")
    ours = {(one["test"], one["size"]) for one in found["results"]
            if one["series"] == "weft" and one["samples_ns"]}
    if len(ours) != 7:
        fail(f"{ours}\n{said}")


def check_packets(over):
    """While it runs the endpoints say that packets carry the messages."""
    with subprocess.Popen([WEFT, "bench", "rate", "-r", "1", "-t", "3000",
                           "--over", over, "-a", "tcp", "--timeout", "60"],
                          stdout=subprocess.DEVNULL) as child:
        sent, end = 0, time.monotonic() + 60
        pids = []
        while not sent and time.monotonic() < end:
            pids = workers(child.pid)
            command = [WEFT, "stat", "--json"]
            if pids:
                command += ["--pid", ",".join(map(str, pids))]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL, check=False)
            if not pids or done.returncode:
                time.sleep(0.05)
                continue
            for one in json.loads(done.stdout)["endpoints"]:
                sent += one.get("packets", {}).get("sent_eager", 0)
                if one["pid"] in pids and one["counters"].get("sent_inline"):
                    fail(f"through shared memory: {one}")
        # Like Ctrl-C.
        child.send_signal(signal.SIGINT)
        code = child.wait(60)
    if not sent:
        fail(f"over {over}: no packet was counted")
    if code != -signal.SIGINT:
        fail(f"interrupted, it ended with {code}")
    left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    if left:
        fail(f"left behind: {left}")


def figures(page, pattern):
    found = re.findall(pattern, (SRC / page).read_text(encoding="utf-8"))
    if len(found) != 1:
        fail(f"{page}: {pattern}: {found}")
    return tuple(map(int, found[0]))


def check_memory():
    """What README.md and docs/performance.md say of memory is what the bench finds.
    Bug: each of the three named other figures, up to nine times as large."""
    said = figures("README.md", r"(\d+)-(\d+) KiB for an idle endpoint, (\d+) KiB "
                                r"for a pair .* at most (\d+) KiB")
    again = figures("docs/performance.md",
                    r"\| (\d+)-(\d+) KiB touched; .*\n.*\| (\d+) KiB touched "
                    r"after two messages .* at most (\d+) KiB")
    if said != again:
        fail(f"README.md: {said} KiB, docs/performance.md: {again}")
    if tuple(map(int, platform.release().split(".")[:2])) < (5, 14):
        return  # rings take their memory at once there
    least, most, pair, _ = said
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        # With this variable, which meson sets, malloc() touches all that it returns.
        bench("memory", "--peers", "64", "-r", "5", "-t", "1", "--timeout",
              "100", "--json", path,
              env={name: value for name, value in os.environ.items()
                   if name != "MALLOC_PERTURB_"})
        with open(path, encoding="utf-8") as text:
            results = json.load(text)["results"]
    found = {one["test"]: one["value"] for one in results}
    # Processes that come and go change how pages are divided among all.
    if not least / 2 <= found["endpoint-memory"] <= most * 2 or \
            not pair / 3 <= found["pair-memory"] <= pair * 3:
        fail(f"{found}, README.md says {said}")


def check_complaints():
    # Bug: a provider that does not exist was named when everything else had been
    # measured, minutes later.
    for options in (["-a", "smh"], ["-p", "smh"], ["-a", "tcp,udp;ofi_rdx,shm"]):
        said = bench("latency", *options, code=1)
        if said[0] or "libfabric has no provider '" not in said[1] or \
                "shm" not in said[1] or "tcp" not in said[1]:
            fail(f"{options}: {said}")
        if "smh" in options and "; did you mean shm?" not in said[1]:
            fail(f"{options}: {said}")
    for options, word in (
            (["--over", "sea"], "node, loopback or veth"),
            (["--over", "loopback", "--floor"], "leave"),
            (["--over", "loopback", "-a", "ucx"], "leave"),
            (["--over", "veth", "crowd"], "loopback"),
            (["--over", "veth", "--mtu", "100"], "--mtu"),
            (["--more", "0"], "--more")):
        if word not in bench(*options, code=2)[1]:
            fail(f"{options}")
    if os.geteuid():
        return
    with tempfile.TemporaryDirectory() as folder:
        said = bench("rate", "--over", "veth", code=1,
                     program=copied.weft(folder),
                     user=NOBODY, group=NOBODY, extra_groups=[])[1]
        if "root" not in said or "loopback" not in said:
            fail(said)


def check_limit():
    """Bug: at real-time priority, workers that waited for each other for ever
    left no processor to the process whose time limit ends them."""
    with subprocess.Popen(
            [WEFT, "bench", "latency", "--timeout", "100"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 60
        while len(found := workers(child.pid)) < 2:
            if child.poll() is not None or time.monotonic() > end:
                fail("no workers")
            time.sleep(0.01)
        with open(f"/proc/{found[0]}/limits", encoding="ascii") as limits:
            least = [line.split()[-3:] for line in limits
                     if line.startswith("Max realtime timeout")]
        if not 100e6 < int(least[0][0]) < int(least[0][1]) < 130e6:
            fail(f"worker: {least}")
        os.kill(found[0], signal.SIGXCPU)
        said = child.communicate()[1]
        if child.returncode != 1 or "at real-time priority" not in said:
            fail(f"{child.returncode}: {said}")


def cpu_time(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as line:
            words = line.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    # A zombie has ended; here nobody reaps it.
    return None if words[0] == "Z" else int(words[11]) + int(words[12])


def until(condition, what):
    end = time.monotonic() + 200
    while not condition():
        if time.monotonic() > end:
            fail(what)
        time.sleep(0.02)


def orphans(provider, env, stop):
    """Kills a `weft bench` whose workers are in their run, and returns them when
    they have ended."""
    with subprocess.Popen(
            [WEFT, "bench", "latency", "-p", provider, "--sizes", "8", "-t",
             "10000", "--timeout", "1000"], env={**os.environ, **env},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        until(lambda: len(workers(child.pid)) == 2, "no workers")
        found = workers(child.pid)
        # To open the engine takes less.
        until(lambda: all((cpu_time(pid) or 0) > 50 for pid in found),
              "the workers do not work")
        if stop:
            os.kill(found[1], signal.SIGSTOP)
        child.kill()
        child.wait()
    until(lambda: cpu_time(found[0]) is None, f"{found[0]} outlives its parent")
    if stop:
        os.kill(found[1], signal.SIGCONT)
    until(lambda: cpu_time(found[1]) is None, f"{found[1]} outlives its parent")
    return found


def check_orphans():
    """Bug: if `weft bench` was killed while a worker loaded libfabric's providers,
    the handler for SIGTERM of one of their libraries could hang, and the worker
    stayed. Here a library blocks SIGTERM; and a worker that was stopped keeps the
    other one waiting, so that this one cannot end by itself."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "deaf.so")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", library, "-xc", "-"],
            input="#include <signal.h>\n__attribute__((constructor)) static "
            "void deaf(void) { sigset_t set; sigemptyset(&set); sigaddset(&set, "
            "SIGTERM); sigprocmask(SIG_BLOCK, &set, 0); }\n", text=True,
            check=True)
        orphans("weft", {"LD_PRELOAD": library}, True)
    # libfabric's shm has files, which do not stay either.
    found = orphans("shm", {}, False)
    left = [name for name in os.listdir("/dev/shm")
            if name.startswith(tuple(f"{pid}:" for pid in found))]
    if left:
        fail(f"left in /dev/shm: {left}")


def check_unwritable():
    """Bug: a file that could not be written whole stayed, and the reason was not
    said."""
    options = ("latency", "--sizes", "8", "-r", "1", "-t", "1", "--timeout", "60")
    said = bench(*options, "--json", "/dev/full", code=1)[1]
    if "/dev/full: No space left" not in said or \
            not os.path.exists("/dev/full"):
        fail(said)
    with tempfile.TemporaryDirectory() as folder:
        # Bug: what was to be measured was not, and an empty file stayed.
        path, none = os.path.join(folder, "out"), os.path.join(folder, "no", "x")
        said = bench(*options, "--json", path, "--csv", none, code=1)[1]
        if f"cannot write {none}: No such" not in said or os.listdir(folder):
            fail(f"{os.listdir(folder)} {said}")
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs",
                           folder], check=False).returncode:
            print("nothing can be mounted here: no full disk")
            return
        try:
            fill_disk(folder, options)
        finally:
            subprocess.run(["umount", folder], check=True)


def check_replaced():
    """Bug: a bench that was interrupted removed the file that somebody had put
    in the place of its own meanwhile."""
    for replaced in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            path, other = (os.path.join(folder, name) for name in "ab")
            with subprocess.Popen(
                    [WEFT, "bench", "latency", "--sizes", "8", "-t", "10000",
                     "--timeout", "1000", "--json", path],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL) as child:
                until(lambda: len(workers(child.pid)) == 2, "no workers")
                if replaced:
                    pathlib.Path(other).write_text("not ours", "ascii")
                    os.rename(other, path)
                child.send_signal(signal.SIGINT)
                child.wait(60)
            if os.listdir(folder) != ["a"] * replaced:
                fail(f"{replaced}: {os.listdir(folder)}")


def fill_disk(folder, options):
    with open(os.path.join(folder, "all"), "wb") as file:
        file.write(bytes(4096))
    path = os.path.join(folder, "out")
    for option in ("--json", "--csv", "--svg"):
        said = bench(*options, option, path, code=1)[1]
        if f"cannot write {path}: No space left" not in said or \
                os.path.exists(path):
            fail(f"{option}: {os.listdir(folder)} {said}")
    with subprocess.Popen(
            [WEFT, "bench", "latency", "--sizes", "8", "-t", "10000",
             "--timeout", "1000"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL) as child:
        try:
            until(lambda: len(workers(child.pid)) == 2, "no workers")
            command = [WEFT, "trace", "-t", "1ms", "-o", path,
                       *map(str, workers(child.pid))]
            done = None

            def has_tried():
                nonlocal done
                done = subprocess.run(command, text=True, capture_output=True,
                                      check=False, timeout=100)
                return path in done.stderr
            until(has_tried, "no endpoints")
        finally:
            child.kill()
    if done.returncode != 1 or os.path.exists(path) or \
            f"cannot write {path}: No space left" not in done.stderr:
        fail(f"{os.listdir(folder)} {done}")


def has_namespaces():
    return not os.geteuid() and shutil.which("ip") and not subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "probe0", "type", "veth",
         "peer", "name", "probe1"], check=False,
        stderr=subprocess.DEVNULL).returncode


def main():
    if not os.path.exists(WEFT):
        print("WEFT_BUILD is not set")
        sys.exit(77)
    before = links()
    check_complaints()
    check_limit()
    check_orphans()
    check_unwritable()
    check_replaced()
    check_memory()
    check_whole("loopback")
    check_packets("loopback")
    if has_namespaces():
        check_whole("veth", "--mtu", "1400")
        check_packets("veth")
        if links() != before:
            fail(f"links: {before}, now {links()}")
    else:
        print("no namespaces may be made here: veth is left out")


main()
