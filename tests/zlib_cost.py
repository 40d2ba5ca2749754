# SPDX-License-Identifier: BSD-2-Clause
"""libweft-z.so does not make calls slower than zlib does, however small they are.

Bug: inflate() of 80 bytes took 18 times as long as zlib's, of 4 KiB half as long
again, and `git fsck` 1.36 times. Here valgrind counts instructions, which do not
depend on what else the machine does; bench/zlib_small measures times.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build")).absolute()
PROGRAM = BUILD / "bench" / "zlib_small"
LIBRARY = BUILD / "src" / "libweft-z.so.1"

# What is called, bytes, calls, and how many of zlib's instructions it may take.
CASES = (
    ("inflate", 80, 200, 1),
    ("inflate", 4096, 50, 1),
    # By zlib itself.
    ("deflate-flush", 80, 40, 1.1),
)


def count(what, size, calls, preload):
    """Instructions of the calls; what comes before is not counted. Meson has malloc()
    fill what it returns, which users' programs do not."""
    env = {name: value for name, value in os.environ.items()
           if name != "MALLOC_PERTURB_"}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind",
             f"--callgrind-out-file={out}", "--toggle-collect=measured",
             PROGRAM, "--count", what, str(size), str(calls)],
            check=True, timeout=250, env={**env, "LD_PRELOAD": preload})
        return int(re.search(r"^totals: (\d+)", out.read_text(), re.M)[1])


def main():
    if "WEFT_BUILD" not in os.environ or not shutil.which("valgrind") or \
            not PROGRAM.exists() or not LIBRARY.exists():
        print("WEFT_BUILD is not set, or there is no valgrind, no "
              "bench/zlib_small or no libweft-z.so")
        sys.exit(77)
    if "zlib-ng" in zlib.ZLIB_RUNTIME_VERSION:
        print("zlib-ng has fewer instructions than zlib")
        sys.exit(77)
    slower = 0
    for what, size, calls, most in CASES:
        plain = count(what, size, calls, "")
        ours = count(what, size, calls, str(LIBRARY))
        print(f"{what} of {size} bytes: {plain // calls} instructions by "
              f"zlib, {ours // calls} by libweft-z: {ours / plain:.2f}")
        slower += ours > plain * most
    sys.exit(1 if slower else 0)


main()
