# SPDX-License-Identifier: BSD-2-Clause
"""Runs fi_pingpong over weft, server and client, and reads their tables."""

import os
import pathlib
import re
import subprocess
import sys
import time

LISTEN = "0A"


def fail(text):
    print(text)
    sys.exit(1)


def skip(text):
    print(text)
    sys.exit(77)


def require_provider():
    if "FI_PROVIDER_PATH" not in os.environ:
        skip("FI_PROVIDER_PATH is not set")


def ports(state=None):
    """TCP ports in use, those in @state if given."""
    found = set()
    for name in ("tcp", "tcp6"):
        table = pathlib.Path("/proc/net") / name
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            if state in (None, words[3]):
                found.add(int(words[1].rpartition(":")[2], 16))
    return found


def free_port():
    used = ports()
    port = 20000 + os.getpid() % 10000
    while port in used:
        port += 1
    return port


def wait_for_listener(port, server):
    end = time.monotonic() + 20
    while port not in ports(LISTEN):
        if server.poll() is not None or time.monotonic() > end:
            server.kill()
            fail(f"the server does not listen: {server.communicate()[0]}")
        time.sleep(0.01)


def table(text):
    """(bytes, messages) of each line of a table."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and re.fullmatch(r"\d+[kmg]?", words[0]):
            rows.append((words[0], words[1]))
    return rows


def run(address, options, program="fi_pingpong", env=None):
    """Rows of the client's table. Both sides must end well."""
    port = free_port()
    common = [program, "-p", "weft", "-e", "rdm", *options]
    env = {**os.environ, **(env or {})}
    with subprocess.Popen([*common, "-B", str(port)], text=True, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as server:
        wait_for_listener(port, server)
        try:
            client = subprocess.run(
                [*common, "-P", str(port), address], text=True, env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=60)
            said = server.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            server.kill()
            fail(f"fi_pingpong {' '.join(options)} {address}: it hangs")
    what = f"fi_pingpong {' '.join(options)} {address}"
    if client.returncode or server.returncode:
        fail(f"{what}: client {client.returncode}, server "
             f"{server.returncode}\n{client.stdout}\n{said}")
    rows = table(client.stdout)
    if not rows or rows != table(said):
        fail(f"{what}: no table, or two different ones\n{client.stdout}"
             f"\n{said}")
    print(f"{what}: {len(rows)} sizes")
    return rows


def own_address():
    """The first address of this node that is not loopback, or None."""
    done = subprocess.run(["hostname", "-I"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    words = [w for w in done.stdout.split() if ":" not in w]
    return words[0] if words else None
