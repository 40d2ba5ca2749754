# SPDX-License-Identifier: BSD-2-Clause
"""`weft bench mpi` on this host, whose ranks sleep in read() after their first
message, and `weft bench mpi --hosts`: a rank on each of two hosts (hosts.py),
over weft, Open MPI's own TCP and libfabric's tcp, ping-pong and allreduce; and
`--over veth`, which makes two hosts itself. Nothing is left behind, and impossible
requests are refused. No timing decides the result."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import hosts
import job

WEFT = os.path.join(os.environ["WEFT_BUILD"], "tools", "weft")
# All ranks of three jobs poll on these two processors.
HERE = {"OMPI_MCA_mpi_yield_when_idle": "1"}
ENV = {
    **HERE,
    "OMPI_MCA_plm_rsh_agent": str(job.HOST),
    "OMPI_MCA_oob_tcp_if_include": hosts.NETWORK,
    "OMPI_MCA_btl_tcp_if_include": hosts.NETWORK,
}


def bench(*options, code=0, env=ENV):
    done = subprocess.run([WEFT, "bench", *options], check=False, text=True,
                          env={**os.environ, **env}, timeout=300,
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != code:
        job.fail(f"weft bench {' '.join(options)}: {done.returncode}, not "
                 f"{code}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_refusals():
    for options, word in ((["mpi", "--hosts", "host0"], "two names"),
                          (["mpi", "--hosts", "a,b,c"], "two names"),
                          (["latency", "--hosts", "a,b"], "belongs to mpi"),
                          (["mpi", "--hosts", "a,b", "-a", "tcp"], "mpi:NAME"),
                          (["mpi", "--hosts", "a,b", "c"], "belongs to mpi"),
                          (["mpi", "--over", "veth", "--hosts", "a,b"],
                           "makes two hosts"),
                          (["mpi", "--over", "veth", "-a", "tcp"], "mpi:NAME"),
                          (["mpi", "--over", "loopback"], "leave ucx"),
                          (["mpi", "there"], "leave mpi"),
                          (["allreduce"], "weft bench mpi allreduce")):
        said = bench(*options, code=2)
        if word not in said:
            job.fail(f"{options}: no '{word}' in:\n{said}")


def check_here():
    """A bug: the first message of a rank stayed with it until it called MPI
    again, which it does when it is told to, after all messages have come."""
    said = bench("mpi", "-r", "1", "-t", "1", "-s", "8", "-p", "mpi:weft",
                 "-a", "mpi:vader", "--timeout", "60")
    if "Not measured" in said:
        job.fail(said)


def check_hosts():
    """A bug: several mpirun made their folder in /tmp at the same time, and some
    failed. Here nobody can make it."""
    before = hosts.carried()
    taken = pathlib.Path(f"/tmp/ompi.{socket.gethostname()}.{os.geteuid()}")
    taken.touch()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        said = bench("mpi", "--hosts", "host0,host1", "-r", "1", "-t", "1",
                     "-s", "8,100001", "--timeout", "60", "--json", path)
        with open(path, encoding="utf-8") as text:
            found = json.load(text)
    for name in ("mpi:weft", "mpi:btl-tcp", "mpi:tcp"):
        seen = {(one["test"], one["size"]) for one in found["results"]
                if one["series"] == name and one["samples_ns"]}
        if seen != {(test, size) for test in ("latency", "allreduce")
                    for size in (8, 100001)}:
            job.fail(f"{name}: {seen}\n{said}")
    taken.unlink()
    if hosts.carried() - before < 600000:
        job.fail(f"only {hosts.carried() - before} bytes between the hosts")


def check_nothing_left():
    left = [name for name in os.listdir("/tmp")
            if name.startswith(("weft-bench", "ompi."))]
    if left:
        job.fail(f"left in /tmp: {left}")


def check_veth():
    """Two hosts that the command makes itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        said = bench("mpi", "--over", "veth", "-r", "1", "-t", "1", "-s", "8",
                     "-a", "mpi:btl-tcp", "--timeout", "60", "--json", path,
                     env=HERE)
        with open(path, encoding="utf-8") as text:
            found = json.load(text)
    for name in ("mpi:weft", "mpi:btl-tcp"):
        if not any(one["series"] == name and one["samples_ns"]
                   for one in found["results"]):
            job.fail(f"{name} was not measured\n{said}")
    if "two network namespaces" not in said:
        job.fail(said)


def main():
    job.require()
    if not os.path.exists(os.path.join(os.environ["WEFT_BUILD"], "bench",
                                       "weft-bench-mpi")):
        job.skip("built without MPI")
    check_refusals()
    hosts.enter()
    hosts.make(2)
    check_here()
    check_hosts()
    check_veth()
    check_nothing_left()
    sys.exit(0)


main()
