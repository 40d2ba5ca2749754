# SPDX-License-Identifier: BSD-2-Clause
"""The lines with fi_pingpong in README.md and fi_weft(7), run as they are
except for the number of rounds, with a server that starts late.

The bug: the client did not wait for the server, and ended with "Connection
refused" in half of all tries; ten rounds printed poor figures.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SRC = pathlib.Path(os.environ.get("WEFT_SRC", "."))

# The server is the line without an address; it starts a second later than
# usual.
LATE = """#!/bin/sh
case "$*" in
*127.0.0.1*) ;;
*) sleep 1 ;;
esac
exec {real} "$@"
"""


def fail(text):
    print(text)
    sys.exit(1)


def lines_of(name):
    """From the server's line to the client's."""
    text = (SRC / name).read_text(encoding="utf-8")
    text = re.sub(r"\$ \\fB|\\fP", "", text).replace("\\-", "-")
    found = re.search(r"^ *fi_pingpong -p weft.*&(?:.|\n)*?127\.0\.0\.1$",
                      text, re.M)
    if not found or found[0].count("-I 1000") != 2:
        fail(f"{name}: no fi_pingpong with -I 1000 on both sides")
    return found[0].replace("-I 1000", "-I 20")


def main():
    real = shutil.which("fi_pingpong")
    if not real or not shutil.which("ss") or \
            "FI_PROVIDER_PATH" not in os.environ:
        print("no fi_pingpong, no ss, or no provider")
        sys.exit(77)
    if b":47592" in subprocess.run(["ss", "-ltn"], check=True,
                                   stdout=subprocess.PIPE).stdout:
        print("another fi_pingpong is running")
        sys.exit(77)
    for name in ("README.md", "man/fi_weft.7"):
        with tempfile.TemporaryDirectory() as folder:
            late = pathlib.Path(folder) / "fi_pingpong"
            late.write_text(LATE.format(real=real), encoding="utf-8")
            late.chmod(0o755)
            done = subprocess.run(
                ["sh", "-c", lines_of(name) + "\ncode=$?\n"
                 "[ $code = 0 ] || kill $!\nwait\nexit $code"],
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        if done.returncode or not re.search(r"^64 +20 ", done.stdout, re.M):
            fail(f"{name}: {done.returncode}\n{done.stdout}")


main()
