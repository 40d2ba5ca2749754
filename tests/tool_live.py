# SPDX-License-Identifier: BSD-2-Clause
"""`weft stat` as a user sees it, in a tmux terminal: at 40, 80 and 200 columns
and when the window is resized, with its keys, stopped and continued, and the
state in which it leaves the terminal. The endpoints are pages made by hand, in
processes that have the environment of MPI ranks."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))
# pylint: disable=wrong-import-position
import page  # noqa: E402

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
PACKETS = {"sent_eager": 5, "sent_eager_bytes": 500, "packets_out": 5,
           "retransmits": 1, "rtt_ns": 52300, "peers": 2}


def fail(text):
    print(text)
    sys.exit(1)


def publish(rank):
    """In a process of its own, until its input ends."""
    name = b"192.0.2.%d:4711" % rank
    fds = [page.publish(page.make({"sent_inline": 1, "peers_out": 3},
                                  name=name))]
    if rank == 2:
        fds.append(page.publish(page.make(PACKETS, kind=b"packets",
                                          name=name)))
    print("ready", flush=True)
    sys.stdin.read()


def start_rank(rank):
    child = subprocess.Popen([sys.executable, __file__, str(rank)], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={**os.environ, "PMIX_RANK": str(rank),
                                  "SLURM_JOB_ID": "8128"})
    child.stdout.readline()
    return child


class Terminal:
    """A window of tmux, of its own server."""

    def __init__(self, folder, command):
        self.base = ["tmux", "-u", "-S", f"{folder}/tmux", "-f", "/dev/null"]
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", command)

    def tmux(self, *words):
        done = subprocess.run([*self.base, *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            fail(f"tmux {words}: {done.stdout}")
        return done.stdout

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, *patterns):
        """Until all are on the screen; returns it."""
        end = time.monotonic() + 100
        while True:
            text = self.screen()
            missing = [p for p in patterns if not re.search(p, text)]
            if not missing:
                return text
            if time.monotonic() > end:
                fail(f"never on the screen: {missing}\n{text}")
            time.sleep(0.03)


def check_sizes(term):
    text = term.wait(r"weft stat .* 3 endpoints in 3 processes .*\d:\d\d:\d\d",
                     r"1 Endpoints 2 Network 3 Paths", r"NET-B/s",
                     r"(?m)^q quit .*pause", r"RANK COMMAND")
    # Idle endpoints are sorted by rank; an endpoint without packets shows none.
    rows = re.findall(r"(?m)^ *\d+ +(\d) .*(192\.0\.2\.\d):4711", text)
    if rows != [(str(i), f"192.0.2.{i}") for i in (1, 2, 3)]:
        fail(f"{rows}:\n{text}")
    term.resize(40, 20)
    text = term.wait(r"(?m)OUT-B/s IN-B/s *$", r"(?m)^q quit .*filter *$",
                     r"(?m)^ weft stat  3 endpoints +\d+:\d\d:\d\d *$")
    if len(re.findall(r"(?m)^ *\d+ +[123] ", text)) != 3:
        fail(text)
    term.resize(200, 30)
    term.wait(r"JOB .*ADDRESS .*BYTES/s .*RING-B/s CMA-B/s", "8128",
              r"(?m)^q quit .*interval")
    # Room for the table only.
    term.resize(80, 6)
    term.wait(r"\A +PID RANK", "192.0.2.3")
    term.resize(80, 24)
    term.wait(r"(?m)^q quit .*pause")


def check_keys(term):
    term.type("?")
    term.wait("Keys .any other key", "RTT WINDOW")
    term.type("x")
    term.wait("sorted by bytes")
    term.type("s")
    term.wait("sorted by messages")
    term.type("2")
    text = term.wait("52.3us", "RETX/s", "pkt/s")
    if "192.0.2.1" in text:
        fail(f"it has no packets:\n{text}")
    term.type("1", "/", "r", "=", "3")
    term.wait("No endpoint passes", "filter: r=3_")
    term.type("BSpace", "BSpace", "BSpace", "2", ".", "3", ":", "Enter")
    text = term.wait("/2.3:", "192.0.2.3")
    if "192.0.2.1" in text:
        fail(text)
    term.type("Escape")
    term.wait("192.0.2.1")
    term.type("Down", "Down", "Enter")
    text = term.wait("pid .*, rank 2., 192.0.2.2:4711, open", "inline")
    if "192.0.2.1" in text:
        fail(text)
    term.type("Escape")
    term.wait("192.0.2.1")
    term.type("Space")
    term.wait("PAUSED")
    term.type("Space")
    term.wait("every 0.1 s")


def check_end(term):
    """Stopped and continued as a job of a shell; then it ends, and what was
    there before is there again, with the last table below."""
    term.type("C-z")
    term.wait("before it", "Stopped")
    term.type("fg; echo done $?", "Enter")
    term.wait("q quit", "192.0.2.1")
    term.type("q")
    text = term.wait("before it", "192.0.2.3", "done 0")
    if "q quit" in text or text.count("192.0.2.1") != 1:
        fail(text)
    colours = term.tmux("display-message", "-p",
                        "#{cursor_flag} #{alternate_on}").split()
    if colours != ["1", "0"]:
        fail(f"cursor and screen: {colours}")


def check_colours(term, some):
    text = term.tmux("capture-pane", "-p", "-e")
    if bool(re.search(r"\x1b\[[0-9;]*3[0-7]", text)) != some:
        fail(f"colours {some}: {text!r}")


def main():
    if not os.path.exists(WEFT) or not shutil.which("tmux"):
        print("WEFT_BUILD is not set, or there is no tmux")
        sys.exit(77)
    os.environ.update(LC_ALL="C.UTF-8", PS1="$ ", TERM="xterm")
    os.environ.pop("NO_COLOR", None)
    ranks = [start_rank(rank) for rank in (3, 1, 2)]
    pids = ",".join(str(rank.pid) for rank in ranks)
    with tempfile.TemporaryDirectory() as folder:
        term = Terminal(folder, "bash --norc -i")
        try:
            term.type(f"echo before it; {WEFT} stat -i 0.1 -p {pids}",
                      "Enter")
            check_sizes(term)
            check_colours(term, True)
            check_keys(term)
            check_end(term)
            term.type(f"clear; NO_COLOR=1 LC_ALL=C {WEFT} stat -i 0.1; "
                      "echo ended $?", "Enter")
            term.wait("q quit", "192.0.2.3")
            check_colours(term, False)
            # The next line is for the shell.
            term.type("q")
            term.wait("ended 0")
            # Bug: the reason was written to the alternate screen, which
            # disappears.
            term.type(f"clear; {WEFT} stat -i 0.1 -p {ranks[0].pid}", "Enter")
            term.wait("q quit", "192.0.2.3")
            ranks[0].stdin.close()
            ranks[0].wait()
            term.wait(f"weft stat: there is no process {ranks[0].pid}")
        finally:
            term.tmux("kill-server")
            for rank in ranks:
                rank.stdin.close()
                rank.wait()


if len(sys.argv) > 1:
    publish(int(sys.argv[1]))
else:
    main()
