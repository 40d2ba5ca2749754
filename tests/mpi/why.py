# SPDX-License-Identifier: BSD-2-Clause
"""`weft why` on MPI jobs that hang and were not prepared for it.

    why.py PROGRAM

Two ranks that both receive are a deadlock; of three ranks in a barrier, the one
that never enters it is blamed. On a terminal that is too low for the report, the
culprit is the last thing on it as well as the first."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time

import job

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
PATIENCE = 300


def why():
    done = subprocess.run([WEFT, "why", "--json"], check=False, text=True,
                          capture_output=True, timeout=60)
    return json.loads(done.stdout) if done.returncode in (0, 3) else None


def on_terminal(rows):
    """The lines that `weft why` shows on a terminal of so many rows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", rows, 80, 0, 0))
    with subprocess.Popen([WEFT, "why"], stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the end of a terminal
            pass
        process.wait(timeout=60)
    os.close(ours)
    return shown.decode().splitlines()


def check_screens():
    for rows, places in ((200, 1), (8, 2)):
        lines = on_terminal(rows)
        found = [i for i, line in enumerate(lines) if "culprit" in line]
        if len(found) != places or found[0] or \
                not lines[0].startswith("\033["):
            job.fail(f"on {rows} rows: {lines}")


def hang(ranks, program, is_right):
    """Runs the job until `weft why` is right about it, then ends it."""
    env = {**os.environ, "WEFT_MPI_EXPECT": "weft"}
    end = time.monotonic() + PATIENCE
    with tempfile.TemporaryDirectory() as session, \
            tempfile.TemporaryFile("w+", errors="replace") as log, \
            subprocess.Popen(job.command(ranks, program, session), env=env,
                             stdin=subprocess.DEVNULL, stdout=log,
                             stderr=subprocess.STDOUT,
                             start_new_session=True) as process:
        said = None
        try:
            while True:
                said = why()
                if said and is_right(said):
                    print("; ".join(c["text"] for c in said["culprits"]))
                    check_screens()
                    return
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    job.fail(f"{said}\n{log.read()[-job.TAIL:]}")
                time.sleep(0.2)
        finally:
            job.end(process)


def ranks_of(said, pids):
    return sorted(e.get("rank", -1) for e in said["endpoints"]
                  if e["pid"] in pids)


def is_deadlock(said):
    found = said["culprits"]
    return len(found) == 1 and found[0]["reason"] == "cycle" and \
        ranks_of(said, found[0]["pids"]) == [0, 1] and \
        all(w["kind"] == "receive" and w["tag"].endswith("7")
            for e in said["endpoints"] for w in e["waits"])


def is_late(said):
    found = said["culprits"]
    return len(found) == 1 and found[0]["reason"] == "no_progress" and \
        ranks_of(said, found[0]["pids"]) == [2] and found[0]["behind"] == 2


def main():
    job.require()
    if len(sys.argv) < 2 or not os.path.exists(sys.argv[1]):
        job.skip("built without MPI")
    hang(2, [sys.argv[1], "receive"], is_deadlock)
    hang(3, [sys.argv[1], "compute"], is_late)


main()
