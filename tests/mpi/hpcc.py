# SPDX-License-Identifier: BSD-2-Clause
"""The HPC Challenge benchmark of Debian over weft: HPL, PTRANS, RandomAccess,
FFT, latency and bandwidth on a small problem. It checks its own results; this
test checks that it did so, and found no error."""

import pathlib
import re
import shutil
import tempfile

import job

# The lines of hpcc's input file; the text after a number is a comment.
INPUT = """\
HPLinpack benchmark input file
weft
HPL.out      output file name
8            device out
1            # of problem sizes
{n}          Ns
1            # of NBs
{nb}         NBs
0            PMAP process mapping
1            # of process grids
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs
1            # of recursive stopping criterium
4            NBMINs
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs
1            # of broadcast
{bcast}      BCASTs
1            # of lookahead depth
1            DEPTHs
2            SWAP
64           swapping threshold
0            L1
0            U
1            Equilibration
8            memory alignment
##### ignored
0            additional problem sizes for PTRANS
0            values of N
0            additional blocking sizes for PTRANS
0            values of NB
"""


def number(said, name):
    found = re.search(rf"^{name}=(\S+)$", said, re.MULTILINE)
    if not found:
        job.fail(f"no {name} in\n{said[-job.TAIL:]}")
    return float(found[1])


def check(said, ranks):
    if number(said, "CommWorldProcs") != ranks or not number(said, "Success"):
        job.fail(f"not a success of {ranks} ranks\n{said[-job.TAIL:]}")
    for name in ("MPIRandomAccess_Errors", "MPIRandomAccess_LCG_Errors"):
        if number(said, name):
            job.fail(f"{name} is not 0")
    if number(said, "PTRANS_residual") > 16 or \
            number(said, "MPIFFT_maxErr") > 1e-10:
        job.fail("wrong results of PTRANS or FFT")
    passed = re.findall(r"(\d+) tests completed and passed", said)
    failed = re.findall(r"(\d+) tests completed and failed", said)
    if len(passed) != 2 or "0" in passed or failed != ["0", "0"]:
        job.fail(f"passed {passed}, failed {failed}")
    if "End of HPC Challenge tests." not in said:
        job.fail("it did not come to its end")


def main():
    job.require()
    if not shutil.which("hpcc"):
        job.skip("hpcc is not installed")
    for ranks, p, q, n, nb, bcast in ((2, 1, 2, 300, 40, 1),
                                      (4, 2, 2, 400, 32, 3)):
        with tempfile.TemporaryDirectory() as folder:
            there = pathlib.Path(folder)
            (there / "hpccinf.txt").write_text(
                INPUT.format(n=n, nb=nb, p=p, q=q, bcast=bcast))
            job.expect_good(ranks, ["hpcc"], cwd=folder)
            check((there / "hpccoutf.txt").read_text(), ranks)
        print(f"{ranks} ranks: good")


main()
