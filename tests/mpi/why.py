# SPDX-License-Identifier: BSD-2-Clause
"""`weft why` on MPI jobs that hang and were not prepared for it.

    why.py PROGRAM

Two ranks that both receive are a deadlock; of three ranks in a barrier, the one
that never enters it is blamed."""

import json
import os
import subprocess
import sys
import tempfile
import time

import job

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
PATIENCE = 90


def why():
    done = subprocess.run([WEFT, "why", "--json"], check=False, text=True,
                          capture_output=True, timeout=60)
    return json.loads(done.stdout) if done.returncode in (0, 3) else None


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
