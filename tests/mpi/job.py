# SPDX-License-Identifier: BSD-2-Clause
"""Starts MPI jobs whose messages go over weft, and over nothing else."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

# Debian's openmpi-mca-params.conf excludes OFI, so name it here. pml cm has no
# transport except an mtl, and weft is the only provider allowed: without weft,
# MPI_Init fails. btl self: Open MPI's own shared memory is not opened.
MESSAGES = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "btl", "self",
            "--mca", "opal_common_ofi_provider_include", "weft"]
# Windows need a btl with RMA and atomics, and only weft's is allowed: without
# it, no window can be created.
ONE_SIDED = ["--mca", "pml", "cm", "--mca", "mtl", "ofi",
             "--mca", "btl", "ofi,self", "--mca", "osc", "rdma",
             "--mca", "osc_rdma_btls", "ofi",
             "--mca", "opal_common_ofi_provider_include", "weft"]
# libfabric's own efa provider, on the device of libweft-efa.so.
EFA = [*MESSAGES[:-1], "efa"]
APART = pathlib.Path(__file__).resolve().with_name("apart.sh")
HOST = APART.with_name("host.sh")
CONTAINER = APART.with_name("container.sh")
TAIL = 6000


def fail(text):
    print(text)
    sys.exit(1)


def skip(text):
    print(text)
    sys.exit(77)


def require():
    if "FI_PROVIDER_PATH" not in os.environ:
        skip("FI_PROVIDER_PATH is not set")
    if not shutil.which("mpirun"):
        skip("mpirun is not installed")


def require_efa():
    """Everything that is started from here on finds the device."""
    library = pathlib.Path(os.environ["WEFT_BUILD"]) / "src/libweft-efa.so"
    if not library.exists():
        skip("libweft-efa.so is not built")
    os.environ["LD_PRELOAD"] = str(library)


def require_apart():
    done = subprocess.run(["unshare", "--uts", "true"], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        skip("no names of hosts of our own: unshare --uts is refused here")


def command(ranks, program, session, transport=MESSAGES, apart=False,
            hosts=0, agent=HOST):
    # There are more ranks and threads than processors, and all of them poll: a
    # rank that has nothing to do must let the others run.
    line = ["mpirun", "--allow-run-as-root", "-np", str(ranks), "--bind-to",
            "none", "--mca", "mpi_yield_when_idle", "1", "--mca",
            "orte_tmpdir_base", session, *transport]
    if apart:
        line += ["-H", ",".join(f"node{i}:1" for i in range(ranks)), "--mca",
                 "plm_rsh_agent", str(APART), "--mca", "oob_tcp_if_include",
                 "lo"]
    elif hosts:
        each = ranks // hosts
        line += ["-H", ",".join(f"host{i}:{each}" for i in range(hosts)),
                 "--mca", "plm_rsh_agent", str(agent), "--mca",
                 "oob_tcp_if_include", "10.98.7.0/24"]
    else:
        line += ["--oversubscribe"]
    for name in ("FI_PROVIDER_PATH", "WEFT_MPI_EXPECT"):
        line += ["-x", name]
    for name in os.environ:
        if name.startswith("FI_WEFT_"):
            line += ["-x", name]
    return line + program


def end(process):
    """mpirun ends its ranks when asked to; its group goes if it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=5)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    process.wait()


def run(ranks, program, env=None, timeout=400, cwd=None, **how):
    """(exit code, output) of a job; the code is None if it took too long."""
    full = {**os.environ, "WEFT_MPI_EXPECT": "weft",
            "OPENBLAS_NUM_THREADS": "1", **(env or {})}
    # A folder of its own, because jobs that share one disturb each other when
    # they start and end. A file and not a pipe, because processes that a rank
    # started may keep a pipe open.
    with tempfile.TemporaryDirectory() as session, \
            tempfile.TemporaryFile("w+", errors="replace") as log, \
            subprocess.Popen(command(ranks, program, session, **how),
                             env=full, cwd=cwd, stdin=subprocess.DEVNULL,
                             stdout=log, stderr=subprocess.STDOUT,
                             start_new_session=True) as process:
        try:
            code = process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(process)
        log.seek(0)
        return code, log.read()


def expect_good(ranks, program, **more):
    """The output of a job that must end well."""
    code, said = run(ranks, program, **more)
    if code is None:
        fail(f"{ranks} ranks of {' '.join(program)} hang\n{said[-TAIL:]}")
    if code:
        fail(f"{ranks} ranks of {' '.join(program)}: exit code {code}\n"
             f"{said[-TAIL:]}")
    return said
