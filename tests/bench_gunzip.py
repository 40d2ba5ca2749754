# SPDX-License-Identifier: BSD-2-Clause
"""bench/gunzip where programs that it compares with are missing: it names them, and
leaves out ratios to them. Bug: without igzip everything was 0.00 times as fast."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build")).absolute()
SRC = pathlib.Path(os.environ.get("WEFT_SRC", ".")).absolute()


def fail(text):
    print(text)
    sys.exit(1)


def main():
    if "WEFT_BUILD" not in os.environ:
        print("WEFT_BUILD is not set")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp:
        data, programs = pathlib.Path(tmp, "data"), pathlib.Path(tmp, "bin")
        data.mkdir()
        programs.mkdir()
        (programs / "gzip").symlink_to(shutil.which("gzip"))
        for name in ("text", "libs", "layer"):
            (data / f"{name}.seed").write_bytes(gzip.compress(b"seed" * 9999))
        done = subprocess.run(
            [sys.executable, "-B", SRC / "bench" / "gunzip", "--weft",
             BUILD / "tools" / "weft", "--size", "1", "--rounds", "1",
             "--threads", "1", data],
            env={**os.environ, "PATH": str(programs)}, timeout=100, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    said = done.stdout
    missing = re.findall(r"^(\w+) not found", said, re.M)
    rows = re.findall(r"^(?:weft -p1|gzip) +\S+ +\S+ +\S+ +(\S+) +([\d.]+)$",
                      said, re.M)
    if done.returncode or missing != ["igzip", "pigz", "rapidgzip", "bgzip"] \
            or len(rows) < 6 or any(igzip != "-" for igzip, _ in rows):
        fail(f"{done.returncode} {missing} {rows}\n{said}")


main()
