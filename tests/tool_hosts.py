# SPDX-License-Identifier: BSD-2-Clause
"""`weft bench --server` and `weft bench HOST`, on two hosts that are network
namespaces: every byte arrives over the link between them; the server serves one
client at a time; and every error is reported in one line: nobody listens, no
answer, another version, another program that listens, a server that ends.
Nothing is left behind on either side. No timing decides the result."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import hosts  # noqa: E402

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
HERE, THERE, SILENT = "10.97.3.1", "10.97.3.2", "10.97.3.99"
PORT = 47590
START, STARTED, REFUSED = 2, 3, 4
CLONE_NEWNET = 0x40000000


def fail(text):
    print(text)
    sys.exit(1)


def make_hosts(stack):
    pids = hosts.make(stack, HERE, THERE)
    # Packets to this address leave the host, and nobody receives them.
    subprocess.run([*hosts.inside(pids[0]), "ip", "neigh", "add", SILENT,
                    "lladdr", "02:00:00:00:00:99", "dev", "eth0"], check=True)
    return [hosts.inside(pid) for pid in pids]


def start_server(there, stack):
    server = stack.enter_context(subprocess.Popen(
        [*there, WEFT, "bench", "--server"], stdout=subprocess.PIPE,
        text=True))
    stack.callback(server.kill)
    line = server.stdout.readline()
    if not line.startswith(f"listening on port {PORT}"):
        fail(f"the server says: {line}")
    return server


def bench(here, *options, code=0):
    done = subprocess.run([*here, WEFT, "bench", *options], text=True,
                          check=False, timeout=280, stdin=subprocess.DEVNULL,
                          capture_output=True)
    if done.returncode != code:
        fail(f"weft bench {' '.join(options)}: {done.returncode}, not {code}:"
             f"\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def complains(here, word, *options):
    """One line, and it helps."""
    said = bench(here, *options, code=1)[1]
    if said.count("\n") != 1 or word not in said:
        fail(f"weft bench {' '.join(options)}: no '{word}' in:\n{said}")


def carried(here):
    text = subprocess.run([*here, "cat", "/proc/net/dev"], check=True,
                          capture_output=True, text=True).stdout
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.strip().startswith("eth0:"))


def check_whole(here):
    # Runs of other providers may fail: libfabric 1.17's tcp sometimes loses
    # one.
    names = {"weft": 5, "socket": 5, "tcp": 1}
    if shutil.which("ucx_perftest"):
        names["ucx"] = 1
    before = carried(here)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        said = bench(here, THERE, "latency", "bandwidth", "rate", "--sizes",
                     "1,70000", "-r", "1", "-t", "1", "-w", "16", "--verify",
                     "--timeout", "40", "--json", path)[0]
        with open(path, encoding="utf-8") as text:
            found = json.load(text)
    if found["plan"]["over"] != "hosts" or THERE not in said:
        fail(f"{found['plan']}\n{said}")
    # Figures are worth little without the version of what was measured.
    about = {one["name"]: one["about"] for one in found["series"]}
    if "ucx" in names and not re.match(r"UCX \d+\.\d+", about["ucx"]):
        fail(f"{about}")
    for name, least in names.items():
        seen = {(one["test"], one["size"]) for one in found["results"]
                if one["series"] == name and one["samples_ns"]}
        if len(seen) < least:
            fail(f"{name}: {seen}\n{said}")
    # In both directions, of weft alone: latency and bandwidth of 70000 bytes.
    if carried(here) - before < 200000:
        fail(f"only {carried(here) - before} bytes came over the wire")
    said = bench(here, THERE, "write-latency", "fetch-add", "--sizes", "9000",
                 "-r", "1", "-t", "1", "-a", "socket", "--timeout", "60")[0]
    if "Fetch and add" not in said:
        fail(said)


# -- a client and a server of our own -----------------------------------------

def hello(version=1, weft=None, session=1):
    weft = weft or subprocess.run(
        [WEFT, "--version"], check=True, capture_output=True,
        text=True).stdout.split()[1]
    return struct.pack("!8sI", b"weftbnch", version) + \
        struct.pack("=I", 0x01020304) + struct.pack("!Q32s", session,
                                                    weft.encode())


def frame(channel, *words):
    data = b"".join(word.encode() + b"\0" for word in words)
    return struct.pack("!II", channel, len(data)) + data


def in_network(prefix, work):
    """Runs in a thread that has entered a host's network."""
    found = []

    def run():
        fd = os.open(f"/proc/{prefix[2]}/ns/net", os.O_RDONLY)
        ctypes.CDLL(None).setns(fd, CLONE_NEWNET)
        os.close(fd)
        found.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def connect(here):
    def work():
        return socket.create_connection((THERE, PORT), 30)
    return in_network(here, work)


def read(sock, size):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while len(data) < size:
            part = sock.recv(size - len(data))
            if not part:
                break
            data += part
    return data


def request(sock, *words, **how):
    """What the server answers to a START: its channel and text."""
    sock.sendall(hello(**how))
    read(sock, 56)
    sock.sendall(frame(START, *words))
    head = read(sock, 8)
    if not head:
        return None, b""
    channel, size = struct.unpack("!II", head)
    return channel, read(sock, size)


def check_turns(here):
    """A second client is refused while the first one has its turn."""
    with connect(here) as first:
        if request(first, "hold", session=77)[0] != STARTED:
            fail("no turn on a free server")
        complains(here, "another client", THERE, "latency", "-s", "8")
        with connect(here) as stray:
            if request(stray, "worker", "fabric", "weft", "responder", "-tm0",
                       "4", "4096", session=78)[0] != REFUSED:
                fail("a worker out of turn")
        for words in (["worker"], ["sh", "-c", "id"], ["worker", "floor",
                      "ring", "responder", "-tm0", "4", "4096"],
                      ["worker", "fabric", "../weft", "responder", "-tm0", "4",
                       "4096"], ["worker", "fabric", "weft", "responder",
                                 "-tm0", "4", "99999999999999"]):
            with connect(here) as one:
                channel, text = request(one, *words, session=77)
                if channel != REFUSED or not text:
                    fail(f"{words}: {channel} {text}")
    with connect(here) as noise:
        noise.sendall(os.urandom(4000))
        read(noise, 1)
    with connect(here) as other:
        if request(other, "hold", weft="9.9.9")[0] is not None:
            fail("another version was served")


def answer(there, data):
    """A server that says @data to the first who connects, whatever he says."""
    def work():
        return socket.create_server((THERE, 4444), reuse_port=True)

    listener = in_network(there, work)

    def serve():
        with listener, listener.accept()[0] as one:
            one.sendall(data)
            read(one, 56)
            time.sleep(0.2)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def check_complaints(here, there):
    wanted = (THERE, "--port", "4444", "latency", "-s", "8")
    complains(here, "nobody listens", *wanted)
    complains(here, "firewall", SILENT, "latency", "-s", "8")
    complains(here, "no host", "no.such.host.invalid", "latency")
    for data, word in ((hello(weft="9.9.9"), "weft 9.9.9"),
                       (hello(version=99), "protocol 99"),
                       (b"SSH-2.0-OpenSSH" * 10, "is not `weft bench")):
        thread = answer(there, data)
        complains(here, word, *wanted)
        thread.join()
    for options, word in (((THERE, "crowd"), "one host"),
                          ((THERE, "--over", "veth"), "one host"),
                          ((THERE, "--floor"), "leave"),
                          ((THERE, "latency", "what"), "no test"),
                          (("--port", "5"), "--server"),
                          (("--server", THERE), "too much")):
        if word not in bench(here, *options, code=2)[1]:
            fail(f"{options}: no '{word}'")


def children(name):
    """Processes of this test's namespace with that subcommand."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                if name in line.read().split(b"\0")[:2]:
                    found.append(int(pid))
    return found


def wait_for(what, condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            fail(f"{what} within a minute")
        time.sleep(0.02)


def check_deaths(here, server):
    """A client that is killed leaves the server free; a server that ends is
    noticed."""
    long = [*here, WEFT, "bench", THERE, "latency", "-s", "8", "-r", "1000",
            "-a", "socket"]
    with subprocess.Popen(long, stdout=subprocess.DEVNULL) as client:
        wait_for("no worker", lambda: len(children(b"bench-worker")) >= 4)
        client.send_signal(signal.SIGKILL)
    wait_for("workers end", lambda: not children(b"bench-worker"))
    bench(here, THERE, "latency", "-s", "8", "-r", "1", "-a", "socket",
          "--timeout", "60")
    with subprocess.Popen(long, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as client:
        wait_for("no worker", lambda: len(children(b"bench-worker")) >= 4)
        server.send_signal(signal.SIGTERM)
        if server.wait(60):
            fail(f"the server ended with {server.returncode}")
        said = client.communicate(timeout=120)[1]
        if not client.returncode:
            fail(f"no server, no complaint: {said}")
    wait_for("all end", lambda: not children(b"bench-worker") and
             not children(b"bench-proxy"))


def main():
    if not os.path.exists(WEFT):
        print("WEFT_BUILD is not set")
        sys.exit(77)
    if os.geteuid() or not shutil.which("ip") or subprocess.run(
            ["unshare", "--net", "ip", "link", "add", "probe0", "type", "veth",
             "peer", "name", "probe1"], check=False,
            stderr=subprocess.DEVNULL).returncode:
        print("no network namespaces may be made here")
        sys.exit(77)
    with contextlib.ExitStack() as stack:
        here, there = make_hosts(stack)
        server = start_server(there, stack)
        check_whole(here)
        check_turns(here)
        check_complaints(here, there)
        check_deaths(here, server)


main()
