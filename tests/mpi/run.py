# SPDX-License-Identifier: BSD-2-Clause
"""Runs one MPI test program over weft.

    run.py RANKS[,RANKS ...] PROGRAM [ARGUMENT ...]

RANKS may be "absent": then there is no weft, and the job must fail.
"""

import os
import sys
import tempfile
import time

import job


def check_absent(program):
    with tempfile.TemporaryDirectory() as empty:
        code, said = job.run(2, program, env={"FI_PROVIDER_PATH": empty})
    if code is None or code == 0 or "good:" in said:
        job.fail(f"without weft: exit code {code}\n{said[-job.TAIL:]}")
    print("without weft the job fails")


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(2)
    program = sys.argv[2:]
    job.require()
    if not os.path.exists(program[0]):
        job.skip("built without MPI")
    if sys.argv[1] == "absent":
        check_absent(program)
        return
    for ranks in map(int, sys.argv[1].split(",")):
        start = time.monotonic()
        said = job.expect_good(ranks, program)
        if f"good: {ranks} ranks" not in said:
            job.fail(f"{ranks} ranks: no word of success\n{said}")
        print(f"{ranks} ranks: good, {time.monotonic() - start:.1f} s")


main()
