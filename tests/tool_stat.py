# SPDX-License-Identifier: BSD-2-Clause
"""`weft stat` with pages made by hand: numbers and rates as counted, pages with
false contents, processes of other users, endpoints that come and go, and a
terminal that is restored."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))
# pylint: disable=wrong-import-position
import copied  # noqa: E402
import page  # noqa: E402

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
NOBODY = 65534


def fail(text):
    print(text)
    sys.exit(1)


def stat(*options, pid=None, program=WEFT, user=None, code=0):
    command = [program, "stat", *options]
    if pid:
        command += ["--pid", str(pid)]
    more = {"user": user, "group": user, "extra_groups": []} if user else {}
    done = subprocess.run(command, text=True, check=False, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **more)
    if done.returncode != code and code is not None:
        fail(f"{' '.join(command)}: {done.returncode}, not {code}:\n"
             f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def check_numbers():
    """What stands in the page is what is shown, also what we do not know."""
    big = 2 ** 64 - 1
    fd = page.publish(page.make({"sent_inline": 5, "of_tomorrow": big}))
    try:
        found = json.loads(stat("--json", pid=os.getpid())[0])["endpoints"]
        if len(found) != 1 or found[0]["address"] != "192.0.2.7:4711" or \
                found[0]["pid"] != os.getpid() or \
                found[0]["counters"] != {"sent_inline": 5, "of_tomorrow": big}:
            fail(f"{found}")
        everybody = json.loads(stat("--json")[0])["endpoints"]
        if found[0] not in everybody:
            fail(f"not among all: {everybody}")
    finally:
        os.close(fd)


def check_table():
    """A steady 20000 messages of 1000 bytes a second."""
    names = ["sent_eager", "sent_eager_bytes", "unexpected", "peers_out"]
    fd = page.publish(page.make(dict.fromkeys(names, 0)))
    page.change(fd, 2, 12345)
    page.change(fd, 3, 3)
    stop = threading.Event()
    begin = time.monotonic()

    def count():
        while not stop.wait(0.002):
            sent = int((time.monotonic() - begin) * 20000)
            page.change(fd, 0, sent)
            page.change(fd, 1, sent * 1000)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        said = stat("-n", "2", "-i", "0.5", pid=os.getpid())[0]
    finally:
        stop.set()
        thread.join()
        os.close(fd)
    heads = [line for line in said.splitlines() if "PEERS" in line]
    lines = [line for line in said.splitlines() if "192.0.2.7:4711" in line]
    if len(heads) != 2 or len(lines) != 2 or \
            max(map(len, said.splitlines())) > 80:
        fail(f"two tables of 80 columns:\n{said}")
    cells = dict(zip(heads[1].split(), lines[1].split()))
    if cells["PID"] != str(os.getpid()) or cells["PEERS"] != "3" or \
            cells["UNEXP"] != "12.3k" or cells["IN/s"] != "0":
        fail(f"{cells}")
    # The writer may be delayed, but the unit must be right.
    if not re.fullmatch(r"(\d+\.?\d*)k", cells["OUT/s"]) or \
            not re.fullmatch(r"(\d+\.?\d*)M", cells["OUT-B/s"]):
        fail(f"{cells}")


def check_packets():
    """Two pages of one endpoint are one line; names that both have are not
    mixed up."""
    shm = {"sent_eager": 7, "sent_eager_bytes": 70, "peers_out": 2,
           "peers_in": 1, "unexpected": 3, "peers_lost": 1}
    net = {"sent_eager": 11, "sent_eager_bytes": 704, "sent_longread": 5,
           "sent_longread_bytes": 5 << 20, "received": 4, "peers": 3,
           "unexpected": 2, "peers_lost": 4, "retransmits": 21,
           "losses": 17, "reorder_depth": 13, "rtt_ns": 52300,
           "cwnd_bytes": 262144}
    fds = [page.publish(page.make(net, kind=b"packets")),
           page.publish(page.make(shm)),
           page.publish(page.make({"peers_out": 9}, name=b"192.0.2.8:1"))]
    try:
        found = json.loads(stat("--json", pid=os.getpid())[0])["endpoints"]
        both = [e for e in found if e["address"] == "192.0.2.7:4711"]
        if len(found) != 2 or len(both) != 1 or \
                both[0]["kind"] != "endpoint" or \
                both[0]["counters"] != shm or both[0]["packets"] != net:
            fail(f"{found}")
        if any("packets" in e for e in found if e not in both):
            fail(f"{found}")
        said = stat("-P", "-i", "0.1", pid=os.getpid())[0]
        block = said[said.index("), 192.0.2.7:4711"):].split("\n\n")[0]
        near, far = block.split("by packets")
        for text, line in ((near, r"eager +0 +0 +7 +70 "),
                           (far, r"eager +0 +0 +11 +704"),
                           (far, r"longread +0 +0 +5 +5\.24M"),
                           (far, r"sent again +0 +21"),
                           (far, r"rtt_ns 52\.3k"),
                           (far, r"cwnd_bytes 262k"),
                           (far, r"losses 17"),
                           (far, r"reorder_depth 13"),
                           (near, r"unexpected 3"),
                           (far, r"unexpected 2")):
            if not re.search(line, text):
                fail(f"{line}:\n{said}")
        said = stat("-i", "0.1", "-s", "peers", pid=os.getpid())[0]
        lines = [line.split() for line in said.splitlines() if "192.0" in line]
        if [line[3] for line in lines] != ["9", "5"]:
            fail(f"the second has two peers here and three elsewhere:\n{said}")
        check_remote_only(net)
        os.close(fds.pop(1))
        found = json.loads(stat("--json", pid=os.getpid())[0])["endpoints"]
        if len(found) != 2 or not any(
                e["kind"] == "packets" and e["counters"] == net for e in found):
            fail(f"without its owner: {found}")
        if "longread" not in stat("-P", "-i", "0.1", pid=os.getpid())[0]:
            fail("a packet page alone has no table")
    finally:
        for fd in fds:
            os.close(fd)


def check_remote_only(net):
    """A bug: the table of shared memory, all zeros, pushed the table of packets
    off the screen of an endpoint that talks to other nodes only."""
    fds = [page.publish(page.make(net, kind=b"packets", name=b"192.0.2.9:1")),
           page.publish(page.make({"peers_out": 0}, name=b"192.0.2.9:1"))]
    try:
        said = stat("-P", "-i", "0.1", pid=os.getpid())[0]
        block = said[said.index("), 192.0.2.9:1"):].split("\n\n")[0]
        near, far = block.split("by packets")
        if "nothing through shared memory" not in near or \
                "chunked" in near or "longread" not in far:
            fail(said)
    finally:
        for fd in fds:
            os.close(fd)


def check_lies():
    """None of them is shown, none of them disturbs, and it is said why."""
    good = {"sent_inline": 1}
    for why, made, how in (
            ("no page", page.make(good, magic=1), {}),
            ("layout", page.make(good, layout=9), {}),
            ("more counters", page.make(good, count=65535), {}),
            ("no name", page.make(good, count=2), {}),
            ("no name", page.make({'x"\n': 1}), {}),
            ("no end", page.make(good, name=b"x" * 56), {}),
            ("no end", page.make(good, kind=b"x" * 16), {}),
            ("size", page.make(good), {"seals": 0}),
            ("size", page.make(good), {"size": 100}),
            ("size", page.make(good), {"size": 0}),
            ("size", page.make(good), {"size": 8192})):
        bad = page.publish(made, **how)
        sound = page.publish(page.make(good))
        try:
            said = stat("-i", "0.1", pid=os.getpid())[0]
            if said.count("192.0.2.7") != 1 or "left out" not in said or \
                    why not in said:
                fail(f"{why}:\n{said}")
            os.close(sound)
            found = json.loads(stat("--json", pid=os.getpid(), code=1)[0])
            if found["endpoints"] or found["pages_unsound"] != 1:
                fail(f"{found}")
        finally:
            os.close(bad)


def check_not_ours():
    """A page of somebody else's process that we hold, and other files."""
    fds = [page.publish(page.make({"a": 1}, pid=1)),
           page.publish(page.make({"a": 1}), file="weft-statsx"),
           page.publish(page.make({"a": 1}), file="weft-stat")]
    found = json.loads(stat("--json", pid=os.getpid(), code=1)[0])
    if found["endpoints"] or found["pages_unsound"]:
        fail(f"{found}")
    for fd in fds:
        os.close(fd)


def check_texts():
    """Nothing that an owner writes reaches the terminal as it is."""
    fd = page.publish(page.make({"a": 1}, name=b"\x1b[2J\xff\n"))
    said = stat("-i", "0.1", pid=os.getpid())[0]
    found = json.loads(stat("--json", pid=os.getpid())[0])["endpoints"]
    os.close(fd)
    if "\x1b" in said or found[0]["address"] != "?[2J??":
        fail(f"{said!r} {found}")


def check_complaints():
    for options in (["-n", "0"], ["-n", "x"], ["-i", "0"], ["-i", "nan"],
                    ["-p", "x"], ["-p", "0"], ["-p", "1,"], ["-s", "colour"],
                    ["--what"], ["word"]):
        said = stat(*options, code=2)[1]
        if "weft stat: " not in said:
            fail(f"{options}: {said}")
    said = stat("-i", "0.1", pid=os.getpid(), code=1)[0]
    if "no endpoint" not in said:
        fail(said)
    child = subprocess.Popen(["true"])
    child.wait()
    said = stat(pid=child.pid, code=1)[1]
    if f"no process {child.pid}" not in said:
        fail(said)
    if "usage: weft stat" not in stat("--help")[0]:
        fail("no help")


def check_other_user():
    if os.geteuid() != 0:
        print("not root: other users are left out")
        return
    fd = page.publish(page.make({"a": 1}))
    with tempfile.TemporaryDirectory() as folder:
        program = copied.weft(folder)
        said = stat("-i", "0.1", pid=os.getpid(), program=program,
                    user=NOBODY, code=1)[0]
        if "may not be looked into" not in said or "192.0.2.7" in said:
            fail(said)
        os.close(fd)
        check_nothing_seen(program)


def check_nothing_seen(weft):
    """A user who may look into no process learns that there are some."""
    found = json.loads(stat("--json", program=weft, user=NOBODY, code=None)[0])
    if found["endpoints"] or found["devices"] or found["not_shown"]:
        print("others use weft here: not checked with nothing to see")
        return
    for options in (["-i", "0.1"], ["--json"]):
        said = "".join(stat(*options, program=weft, user=NOBODY, code=1))
        if "is open here" not in said or "may not be looked into" not in said \
                or "as root" not in said:
            fail(said)


def check_coming_and_going():
    stop = threading.Event()

    def come_and_go():
        while not stop.is_set():
            fd = page.publish(page.make({"sent_inline": 1}))
            time.sleep(0.0005)
            os.close(fd)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(30):
            command = [WEFT, "stat", "--json", "--pid", str(os.getpid())]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL, check=False)
            if done.returncode not in (0, 1) or \
                    len(json.loads(done.stdout)["endpoints"]) > 1:
                fail(f"{done}")
    finally:
        stop.set()
        thread.join()


def read_some(fd, seconds, until):
    said, end = b"", time.monotonic() + seconds
    while not until(said) and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                said += os.read(fd, 65536)
            except OSError:
                break
    return said.decode()


def lead(terminal):
    """Makes the child the owner of its terminal, as a shell does."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def check_terminal(end):
    """On a terminal it goes on until @end, wide as the terminal is. The
    terminal is left as it was."""
    fd = page.publish(page.make({"peers_lost": 1}))
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, 200, 0, 0))
    before = termios.tcgetattr(theirs)
    # The page is ours, seen from outside.
    child = subprocess.Popen([WEFT, "stat", "-i", "0.1", "--pid",
                              str(os.getpid())], stdin=theirs, stdout=theirs,
                             stderr=theirs, preexec_fn=lambda: lead(theirs))
    said = read_some(mine, 100, lambda text: text.count(b"LOST") >= 3)
    during = termios.tcgetattr(theirs)
    end(child, mine)
    code = child.wait(100)
    after = termios.tcgetattr(theirs)
    if during[3] & (termios.ICANON | termios.ECHO) or after != before:
        fail(f"terminal: {before} {during} {after}")
    os.close(theirs)
    os.close(mine)
    os.close(fd)
    # Not over the previous contents of the screen, and without a cursor.
    if code or said.count("LOST") < 3 or "\x1b[?1049h\x1b[?25l" not in said:
        fail(f"{code}: {said!r}")


def main():
    if not os.path.exists(WEFT) or not hasattr(os, "memfd_create"):
        print("WEFT_BUILD is not set, or Python has no memfd_create")
        sys.exit(77)
    os.environ["LC_ALL"] = "C"
    check_numbers()
    check_table()
    check_packets()
    check_lies()
    check_not_ours()
    check_texts()
    check_complaints()
    check_other_user()
    check_coming_and_going()
    check_terminal(lambda child, _: child.send_signal(signal.SIGINT))
    check_terminal(lambda _, terminal: os.write(terminal, b"xq"))


main()
