# SPDX-License-Identifier: BSD-2-Clause
"""Runs one MPI test program over weft.

    run.py HOW RANKS[,RANKS ...] PROGRAM [ARGUMENT ...]

PROGRAM may be a script in Python. HOW is "messages"; "onesided", windows over
btl/ofi; "apart", the same with every rank on a node of its own, as Open MPI
believes; "net" and "net-onesided": RANKS/HOSTS, so many hosts (hosts.py) share
the ranks; "cont": the same where the hosts are containers that share a folder,
and the network carries next to nothing; "efa": libfabric's efa provider on the
software EFA device; "weft-efa": weft on that device; or "absent": there is no
weft, and the job must fail.
"""

import os
import subprocess
import sys
import tempfile
import time

import hosts
import job

HOW = {
    "messages": {},
    "onesided": {"transport": job.ONE_SIDED},
    "apart": {"transport": job.ONE_SIDED, "apart": True},
    "net": {},
    "net-onesided": {"transport": job.ONE_SIDED},
    "efa": {"transport": job.EFA, "env": {"WEFT_MPI_EXPECT": "efa"}},
    "weft-efa": {"env": {"FI_WEFT_NIC": "efa", "FI_WEFT_SHM": "0"}},
    "cont": {"agent": job.CONTAINER},
    "absent": {},
}
FOLDER = "/run/weft"
# mpirun and its daemons send each other less than this.
CONTROL = 3 << 20


def check_absent(ranks, program):
    with tempfile.TemporaryDirectory() as empty:
        code, said = job.run(ranks, program, env={"FI_PROVIDER_PATH": empty})
    if code is None or code == 0 or "good:" in said:
        job.fail(f"without weft: exit code {code}\n{said[-job.TAIL:]}")
    print("without weft the job fails")


def check_good(ranks, program, how, on=0):
    start = time.monotonic()
    said = job.expect_good(ranks, program, **HOW[how], hosts=on)
    if f"good: {ranks} ranks" not in said:
        job.fail(f"{ranks} ranks: no word of success\n{said}")
    where = f" on {on} hosts" if on else ""
    print(f"{ranks} ranks{where}: good, {time.monotonic() - start:.1f} s",
          flush=True)


def check_net(jobs, program, how):
    jobs = [tuple(map(int, one.split("/"))) for one in jobs]
    hosts.enter()
    hosts.make(max(on for _, on in jobs))
    if how == "cont":
        os.mkdir(FOLDER)
    for ranks, on in jobs:
        before = hosts.carried()
        check_good(ranks, program, how, on)
        sent = hosts.carried() - before
        if how == "cont" and sent > CONTROL:
            job.fail(f"{ranks} ranks: {sent} bytes went through the network")
    if how == "cont" and os.listdir(FOLDER):
        job.fail(f"left in {FOLDER}: {os.listdir(FOLDER)}")


def find_python():
    """One that has mpi4py: Debian's packages serve Debian's Python only."""
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", "import mpi4py, numpy"],
                              check=False, capture_output=True)
        if done.returncode == 0:
            return python
    return job.skip("no Python with mpi4py and numpy")


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in HOW:
        print(__doc__)
        sys.exit(2)
    how, program = sys.argv[1], sys.argv[3:]
    job.require()
    if not os.path.exists(program[0]):
        job.skip("built without MPI")
    if program[0].endswith(".py"):
        program.insert(0, find_python())
    if how == "apart":
        job.require_apart()
    if how in ("efa", "weft-efa"):
        job.require_efa()
    if how.startswith("net") or how == "cont":
        check_net(sys.argv[2].split(","), program, how)
        return
    for ranks in map(int, sys.argv[2].split(",")):
        if how == "absent":
            check_absent(ranks, program)
        else:
            check_good(ranks, program, how)


main()
