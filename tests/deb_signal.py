# SPDX-License-Identifier: BSD-2-Clause
"""`make deb` that gets a signal ends the build, says nothing of a failure and
leaves no tree. What dpkg-buildpackage does with signals is in a program of that
name.

The bugs: dpkg-buildpackage, whose program had ended by Ctrl-C, ended with an error,
which was taken for a failed build; and at SIGTERM the build wrote to the tree on.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SRC = pathlib.Path(os.environ.get("WEFT_SRC", ".")).absolute()
# system() ignores SIGINT while it waits.
STAND_IN = r"""#!/usr/bin/perl
use warnings;
system('sh', '-c', 'echo $$ >"$STARTED.new"; mv "$STARTED.new" "$STARTED";
	while :; do mkdir -p more; rmdir more; done');
exit 2 if $?;
"""


def fail(text):
    print(text)
    sys.exit(1)


def lives(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] not in "ZX"


def check(number, send, code):
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "bin", "dpkg-buildpackage")
        started = pathlib.Path(folder, "started")
        out = pathlib.Path(folder, "out")
        program.parent.mkdir()
        program.write_text(STAND_IN)
        program.chmod(0o755)
        env = {**os.environ, "STARTED": str(started),
               "PATH": f"{program.parent}:{os.environ['PATH']}"}
        # A group of processes of its own, as on a terminal.
        with subprocess.Popen([SRC / "scripts" / "deb", out], env=env,
                              start_new_session=True, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as child:
            while not started.exists():
                if child.poll() is not None:
                    fail(child.stdout.read())
                time.sleep(0.02)
            build = int(started.read_text("ascii"))
            send(child.pid, number)
            # Whatever it leaves behind may hold the pipe.
            status = child.wait(100)
            left = [path.name for path in out.iterdir() if path.is_dir()]
            running = lives(build)
            if running:
                os.kill(build, signal.SIGKILL)
            said = child.stdout.read()
        if status != code or left or running or "weft: " in said:
            fail(f"{number.name}: status {status}, left {left}, "
                 f"{'still' if running else 'not'} running:\n{said}")


def main():
    for tool in ("dpkg-parsechangelog", "perl"):
        if not shutil.which(tool):
            print(f"no {tool}: run scripts/deps deb")
            sys.exit(77)
    # Ctrl-C is for all processes, and make sends SIGTERM to the script only.
    check(signal.SIGINT, os.killpg, 130)
    check(signal.SIGTERM, os.kill, 143)


main()
