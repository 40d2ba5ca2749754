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
NOBODY = 65534
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
        # As root in a clone of somebody, who can remove what it makes.
        os.chown(folder, NOBODY, NOBODY)
        out = pathlib.Path(folder) / "packages"
        for step in ((SRC / "scripts" / "deb", "--of", BUILD, out),
                     (SRC / "scripts" / "deb-check", out)):
            code = subprocess.run(step, check=False).returncode
            if code:
                sys.exit(code)
            if out.stat().st_uid != NOBODY or \
                    any(entry.is_dir() for entry in out.iterdir()):
                sys.exit(f"{step}: root's folders are left in {out}")


main()
