# SPDX-License-Identifier: BSD-2-Clause
"""scripts/run-tests with a ninja and a meson of our own: it says how far it is
while they work, prints what failed, and ends with the counts.

The bugs: `make test` printed one line and then nothing for minutes. It did not
look at a source whose object of an earlier day was there. A compiler that was
killed, and tests that had not run when meson was, did not count. A signal that
ended it left meson and its tests running. When the reader of what it said was
gone, it waited for a meson that waited for it.

Each of the two goes on when it has seen that the script said so: on a busy
machine that may take long.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tree

PATIENCE_S = 100

NINJA = """#!/bin/sh
case "$*" in
*build.ninja*) exit 0 ;;
*inputs*) echo a.o; exit 0 ;;
*broken*) echo "[1/3] Compiling a.c"; echo "a.c:1: error: no"; exit 1 ;;
esac
echo "[1/3] Compiling 1.c"
tries=0
until grep -q "of 3 built" "$SAID" || [ $tries = 300 ]; do
	sleep 0.1; tries=$((tries + 1))
done
for i in 2 3; do echo "[$i/3] Compiling $i.c"; done
"""

MESON = """#!/bin/sh
if [ "$1" = setup ]; then
	for folder; do :; done
	mkdir -p "$folder/meson-logs" "$folder/meson-info"
	echo '[{"suite": ["weft:unit"], "depends": ["a"]}]' \\
		> "$folder/meson-info/intro-tests.json"
	echo '[{"id": "a", "filename": ["a"]}]' \\
		> "$folder/meson-info/intro-targets.json"
	echo '[{"directory": "/", "output": "b.o", "file": "b.c", "command":
		"reader -MD -MQ b.o -MF b.d -o b.o -c b.c"}]' \\
		> "$folder/compile_commands.json"
	touch "$folder/b.o" # of an earlier day
	exit 0
fi
folder=$3
if [ "$WAY" = hangs ]; then
	sleep 1000 &
	echo $! > "$SAID.pid"
	wait
fi
if [ "$WAY" = floods ]; then
	echo " 1/3 weft:unit / one  FAIL   0.01s   exit status 1"
	until [ -f "$SAID.closed" ]; do sleep 0.1; done
	i=0
	while [ $i -lt 5000 ]; do
		echo "one is wrong, and says so at length: $i" || exit 1
		i=$((i + 1))
	done
	exit 1
fi
if [ "$WAY" = dies ]; then
	echo " 1/3 weft:unit / one  OK     0.01s"
	echo " 1/1 weft:unit / of a test's own"
	printf '%s\n%s' '{"name": "weft:unit / one", "result": "OK"}' '{"na' \
		> "$folder/meson-logs/testlog.json"
	kill -9 $$
fi
echo " 1/3 weft:unit / one  OK     0.01s"
tries=0
until grep -q "1 of 3 tests run" "$SAID" || [ $tries = 300 ]; do
	sleep 0.1; tries=$((tries + 1))
done
echo " 2/3 weft:unit / two  FAIL   0.01s   exit status 1"
echo ">>> PATH=/some/where A=1 /build/two"
echo "two is wrong"
echo " 3/3 weft:unit / three SKIP   0.01s"
cat > "$folder/meson-logs/testlog.json" <<END
{"name": "weft:unit / one", "result": "OK"}
{"name": "weft:unit / two", "result": "FAIL"}
{"name": "weft:unit / three", "result": "SKIP"}
END
exit 1
"""

# The compiler, for a source that no unit test needs.
READER = """#!/bin/sh
[ "$*" = "b.c -fsyntax-only" ] || exit 2
[ "$WAY" = killed ] && kill -9 $$
[ "$WAY" = warns ] || exit 0
echo "b.c:1: warning: odd" >&2
exit 1
"""


def until(is_so):
    """Whether it becomes so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)
    return is_so()


def is_left(pid):
    """Whether the process whose number is in this file stays."""
    test = pathlib.Path("/proc") / pid.read_text().strip() / "stat"

    def is_over():
        try:
            return test.read_text().split()[2] == "Z"
        except OSError:
            return True

    return not until(is_over)


def interrupt(script, said, number):
    """While tests run it is stopped, and then asked to end. What is wrong."""
    pid = pathlib.Path(f"{said}.pid")
    if not until(lambda: pid.is_file() and pid.read_text().strip()):
        return "no tests"
    script.send_signal(signal.SIGSTOP)
    time.sleep(1)
    script.send_signal(signal.SIGCONT)
    stood = until(lambda: "the machine stood still for" in said.read_text())
    script.send_signal(number)
    script.wait(PATIENCE_S)
    return (None if stood else "no word of a machine that stood still") or \
        ("a test that is left" if is_left(pid) else None)


def lay_out(top, tmp, tree_name, way):
    """A tree with the script and tools of our own. How to run it, in which
    environment, and the file for what it says; or None."""
    scripts, tools = tmp / tree_name / "scripts", tmp / "bin"
    scripts.mkdir(parents=True)
    tools.mkdir()
    text = (top / "scripts" / "run-tests").read_text()
    fast = text.replace("PROGRESS_S = 10\n", "PROGRESS_S = 0.2\n")
    if fast == text:
        return None
    (scripts / "run-tests").write_text(fast)
    shutil.copy("/bin/true", scripts / "isolate")
    for name, stub in (("ninja", NINJA), ("meson", MESON),
                       ("reader", READER)):
        (tools / name).write_text(stub)
        (tools / name).chmod(0o755)
    said = tmp / "said"
    return [sys.executable, "-B", scripts / "run-tests"], \
        {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}",
         "WAY": way, "SAID": str(said)}, said


def run(top, *builds, broken=False, way="", then=lambda script, said: None):
    """What the script prints, its exit status, and what @then returns."""
    with tempfile.TemporaryDirectory() as tmp:
        there = lay_out(top, pathlib.Path(tmp), "broken" if broken else "tree",
                        way)
        if not there:
            return "no PROGRESS_S = 10", 0, None
        command, env, said = there
        with said.open("w") as out:
            with subprocess.Popen([*command, *builds], env=env,
                                  stdout=out) as script:
                try:
                    wrong = then(script, said)
                    code = script.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    script.kill()
                    code, wrong = None, "it does not end"
        return said.read_text(), code, wrong


def hang_up(top, *builds, way, last):
    """Reads what the script prints until it has said @last, and no further.
    What is wrong, or None."""
    with tempfile.TemporaryDirectory() as tmp:
        there = lay_out(top, pathlib.Path(tmp), "tree", way)
        if not there:
            return "no PROGRESS_S = 10"
        command, env, said = there
        said.write_text("1 of 3 built")  # ninja does not wait for us
        with subprocess.Popen([*command, *builds], env=env, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as script:
            while last not in (line := script.stdout.readline()) and line:
                pass
            script.stdout.close()
            pathlib.Path(f"{said}.closed").touch()
            try:
                code = script.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                script.kill()
                return "it does not end"
        pid = pathlib.Path(f"{said}.pid")
        if not code:
            return "exit status 0"
        return "a test that is left" if pid.is_file() and is_left(pid) else None


def check(top):
    found = []
    # A shell ignores some for what it starts in the background.
    for number in (signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)

    def want(right, what, text):
        if not right:
            found.append(f"scripts/run-tests:1: {what} in {json.dumps(text)}")

    said, code, _ = run(top, "gcc")
    lines = said.splitlines()
    want(code == 1, "not exit status 1", said)
    want(re.search(r"^ *\d+ s  gcc: \d of 3 built$", said, re.M),
         "no progress of the build", said)
    want(re.search(r"^ *\d+ s  gcc: 1 of 3 tests run$", said, re.M),
         "no progress of the tests", said)
    want("two is wrong" in lines, "no output of the failed test", said)
    want("/some/where" not in said, "the environment", said)
    want("one  OK" not in said, "a test that passed", said)
    want("failed: gcc: two (FAIL)" in lines, "no name of what failed", said)
    want(lines and lines[-1] == "2 passed, 1 failed, 1 skipped",
         "no counts at the end", said)
    # Its tests run beside those of other builds, so that they print later.
    said, code, _ = run(top, "gcc", "asan")
    want("== asan: tests" in said and said.count("two is wrong") == 2,
         "no output of the second build", said)
    want(said.splitlines()[-1:] == ["4 passed, 2 failed, 2 skipped"],
         "no counts of both builds", said)
    said, code, _ = run(top, "asan", way="warns")
    want(code == 1 and "b.c:1: warning: odd" in said.splitlines() and
         said.splitlines()[-1:] == ["0 passed, 1 failed"],
         "no warning of a source that no unit test needs", said)
    said, code, _ = run(top, "asan", way="killed")
    want(code == 1 and said.splitlines()[-1:] == ["0 passed, 1 failed"],
         "no word of a compiler that was killed", said)
    said, code, _ = run(top, "gcc", way="dies")
    want("failed: gcc: 2 of 3 tests did not end (FAIL)" in said.splitlines(),
         "no word of tests that did not end", said)
    want(said.splitlines()[-1:] == ["2 passed, 1 failed"],
         "no counts after meson was killed", said)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        said, code, wrong = run(
            top, "gcc", way="hangs",
            then=lambda script, said: interrupt(script, said, number))
        want(code == 128 + number and not wrong,
             f"exit status {code} after signal {number}, {wrong}", said)
    # Nobody reads what it says: in a thread, and in the main one.
    wrong = hang_up(top, "gcc", way="floods", last="1/3")
    want(not wrong, wrong, "a pipe that was closed during a test")
    wrong = hang_up(top, "gcc", "asan", way="hangs", last="gcc: built")
    want(not wrong, wrong, "a pipe that was closed during a build")
    said, code, _ = run(top, "gcc", broken=True)
    want(code == 1 and "a.c:1: error: no" in said and "Compiling" not in said,
         "not just the error of the compiler", said)
    want(said.splitlines()[-1:] == ["0 passed, 1 failed"],
         "no counts after a failed build", said)
    return found, 1


tree.verdict(*check(tree.root()))
