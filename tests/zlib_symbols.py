# SPDX-License-Identifier: BSD-2-Clause
"""libweft-z.so exports every function of the installed zlib, under the same
version, and otherwise only zlib-ng's names.
"""

import os
import subprocess
import sys

LIBRARY = os.path.join(os.environ["WEFT_BUILD"], "src", "libweft-z.so.1")


def functions(path):
    out = subprocess.run(["nm", "-D", "--with-symbol-versions",
                          "--defined-only", path], check=True,
                         capture_output=True, text=True).stdout
    return {line.split()[2] for line in out.splitlines()
            if line.split()[1] in "TRD"}


def real():
    out = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                         env={"PATH": "/sbin:/usr/sbin:/bin:/usr/bin"})
    for line in out.stdout.splitlines():
        if line.split()[:1] == ["libz.so.1"]:
            return line.split("=>")[1].strip()
    print("no libz.so.1 here")
    sys.exit(77)


if not os.path.exists(LIBRARY):
    print("no libweft-z.so here")
    sys.exit(77)
ours = functions(LIBRARY)
theirs = {s for s in functions(real()) if not s.startswith("_")}
extra = {s for s in ours - theirs
         if not s.startswith("zng_") and not s.startswith("zlibng_")}
missing = theirs - ours
for name in sorted(missing):
    print(f"missing: {name}")
for name in sorted(extra):
    print(f"extra: {name}")
print(f"{len(theirs)} of zlib, {len(ours) - len(theirs & ours)} of zlib-ng")
sys.exit(1 if missing or extra else 0)
