# SPDX-License-Identifier: BSD-2-Clause
"""The software EFA device on two hosts that are network namespaces: Debian's
libfabric exchanges messages with the data checked, over packets of 1500 bytes;
and perftest, whose server is killed, hears of it by completions with an error."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import efa  # noqa: E402
import hosts  # noqa: E402
import pingpong  # noqa: E402

HERE, THERE = "10.97.5.1", "10.97.5.2"
PORT = 47700
LONG = 60  # seconds, for what takes one or two


def wait_until(what, test, server):
    end = time.monotonic() + LONG
    while not test():
        if server.poll() is not None or time.monotonic() > end:
            pingpong.fail(f"{what}: server {server.poll()}")
        time.sleep(0.01)


def listens(pid):
    table = pathlib.Path(f"/proc/{pid}/net/tcp").read_text()
    return any(f":{PORT:04X} " in line and f" {pingpong.LISTEN} " in line
               for line in table.splitlines())


def received(pid):
    """Bytes that the host has received over the link."""
    for line in pathlib.Path(f"/proc/{pid}/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "eth0":
            return int(counts.split()[0])
    return 0


def start(stack, pid, words, log):
    ends = stack.enter_context(subprocess.Popen(
        [*hosts.inside(pid), efa.WEFT, "efa", "--", *words], stdout=log,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))
    stack.callback(ends.kill)
    return ends


def said(log):
    log.seek(0)
    return log.read()[-pingpong.TAIL:]


def pair(stack, pids, server_words, client_words):
    """Both sides, and what they say. The server is the first to start."""
    logs = [stack.enter_context(tempfile.TemporaryFile("w+"))
            for _ in range(2)]
    server = start(stack, pids[1], server_words, logs[1])
    wait_until("it does not listen", lambda: listens(pids[1]), server)
    client = start(stack, pids[0], client_words, logs[0])
    return client, server, logs


def check_traffic(stack, pids):
    words = ["fi_pingpong", "-p", "efa", "-e", "rdm", "-c", "-m", "tagged",
             "-S", "100000", "-I", "5"]
    before = received(pids[1])
    client, server, logs = pair(stack, pids, [*words, "-B", str(PORT)],
                                [*words, "-P", str(PORT), THERE])
    ends = client.wait(LONG), server.wait(LONG)
    if any(ends) or len(pingpong.table(said(logs[0]))) != 1:
        pingpong.fail(f"between hosts: {ends}\n{said(logs[0])}\n{said(logs[1])}")
    if received(pids[1]) - before < 500000:
        pingpong.fail("the data did not go over the link")


def check_death(stack, pids):
    words = ["ib_send_bw", "-c", "SRD", "-d", "weft0", "-x", "0", "-s", "4096",
             "-n", "100000000", "-p", str(PORT)]
    client, server, logs = pair(stack, pids, words, [*words, THERE])
    before = received(pids[1])
    wait_until("no traffic", lambda: received(pids[1]) > before + 500000,
               server)
    server.kill()
    try:
        status = client.wait(LONG)
    except subprocess.TimeoutExpired:
        status = None
    if not status or "ompletion with error" not in said(logs[0]):
        pingpong.fail(f"the server was killed, and the client ends with "
                      f"{status}:\n{said(logs[0])}")


def main():
    efa.require("fi_pingpong", "ib_send_bw", "nsenter", "unshare", "ip")
    if os.geteuid():
        pingpong.skip("networks of their own need root")
    with contextlib.ExitStack() as stack:
        pids = hosts.make(stack, HERE, THERE)
        check_traffic(stack, pids)
        # Enough for one that is there and gets no processor for a while.
        os.environ["WEFT_EFA_TIMEOUT"] = "10s"
        check_death(stack, pids)


main()
