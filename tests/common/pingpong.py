# SPDX-License-Identifier: BSD-2-Clause
"""Runs fi_pingpong over weft, server and client, and reads their tables."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

LISTEN = "0A"
TAIL = 8000  # of what a server says


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
    end = time.monotonic() + 60
    while port not in ports(LISTEN):
        if server.poll() is not None or time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def table(text):
    """(bytes, messages) of each line of a table."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and re.fullmatch(r"\d+[kmg]?", words[0]):
            rows.append((words[0], words[1]))
    return rows


def run_both(server_command, port, client_command, env):
    """(exit code, output) of the client and of the server."""
    # A file and not a pipe, because nobody reads while the other side runs.
    with tempfile.TemporaryFile("w+") as log, \
            subprocess.Popen(server_command, env=env, text=True,
                             stdin=subprocess.DEVNULL, stdout=log,
                             stderr=subprocess.STDOUT) as server:
        client = None
        try:
            if wait_for_listener(port, server):
                client = subprocess.run(
                    client_command, text=True, env=env, timeout=200,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT)
                server.wait(timeout=200)
        except subprocess.TimeoutExpired:
            print("it hangs")
        finally:
            server.kill()
        server.wait()
        log.seek(0)
        said = log.read()[-TAIL:]
    return (client.returncode if client else -1, client.stdout if client else
            "(no client)"), (server.returncode, said)


def run(address, options, program="fi_pingpong", env=None):
    """Rows of the client's table. Both sides must end well."""
    port = free_port()
    common = [program, "-p", "weft", "-e", "rdm", *options]
    client, server = run_both([*common, "-B", str(port)], port,
                              [*common, "-P", str(port), address],
                              {**os.environ, **(env or {})})
    what = f"fi_pingpong {' '.join(options)} {address}"
    if client[0] or server[0]:
        fail(f"{what}: client {client[0]}, server {server[0]}\n{client[1]}"
             f"\n{server[1]}")
    rows = table(client[1])
    if not rows or [r[:2] for r in rows] != [r[:2] for r in table(server[1])]:
        fail(f"{what}: no table, or two different ones\n{client[1]}"
             f"\n{server[1]}")
    print(f"{what}: {len(rows)} sizes")
    return rows


def own_address():
    """The first address of this node that is not loopback, or None."""
    done = subprocess.run(["hostname", "-I"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    words = [w for w in done.stdout.split() if ":" not in w]
    return words[0] if words else None
