# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages in a fresh root: packages of this build, made by
debian/rules but for compiling, are installed in a copy of this system, used as
their users would, and purged without leaving a file (scripts/deb-check).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build")).absolute()
SRC = pathlib.Path(os.environ.get("WEFT_SRC", ".")).absolute()
# What every package needs; a build without it has no file for one of them.
OPTIONAL = ("bench/weft-bench-mpi", "src/libweft-efa.so", "src/libweft-z.so")


def skip(text):
    print(text)
    sys.exit(77)


def main():
    if os.geteuid():
        skip("not root")
    for tool in ("dpkg", "dh", "fi_info"):
        if not shutil.which(tool):
            skip(f"no {tool}: run scripts/deps test")
    for file in OPTIONAL:
        if not (BUILD / file).exists():
            skip(f"this build has no {file}: run scripts/deps test")
    with tempfile.TemporaryDirectory() as folder:
        for step in ((SRC / "scripts" / "deb", "--of", BUILD, folder),
                     (SRC / "scripts" / "deb-check", folder)):
            code = subprocess.run(step, check=False).returncode
            if code:
                sys.exit(code)


main()
