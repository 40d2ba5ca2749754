# SPDX-License-Identifier: BSD-2-Clause
"""The lists of Debian packages: every file that is installed is in exactly one
package, every line of a list matches a file, every package has a list, and the
command has the version of the build (house-version compares it with the packages').
deb_install makes and tries the packages; this test says what is wrong in a list.
"""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build"))
SRC = pathlib.Path(os.environ.get("WEFT_SRC", "."))
# Options of debian/rules that move files.
MOVED = {"usr/share/zsh/site-functions": "usr/share/zsh/vendor-completions"}


def fail(text):
    print(text)
    sys.exit(1)


def introspect(what):
    done = subprocess.run(["meson", "introspect", str(BUILD), what],
                          check=True, capture_output=True)
    return json.loads(done.stdout)


def installed():
    """Paths as debian/tmp would have them."""
    prefix = next(option["value"] for option in introspect("--buildoptions")
                  if option["name"] == "prefix")
    for path in introspect("--installed").values():
        path = f"usr/{os.path.relpath(path, prefix)}"
        folder, _, name = path.rpartition("/")
        yield f"{MOVED.get(folder, folder)}/{name}"


def lists():
    """(package, pattern) of each line of debian/*.install."""
    for file in sorted((SRC / "debian").glob("*.install")):
        for line in file.read_text().splitlines():
            yield file.stem, line.split()[0]


def main():
    control = (SRC / "debian" / "control").read_text()
    packages = set(re.findall(r"^Package: (\S+)$", control, re.M))
    rules = list(lists())
    if packages != {package for package, _ in rules}:
        fail(f"packages {sorted(packages)}, lists of "
             f"{sorted({package for package, _ in rules})}")
    used = set()
    # A build without MPI, OpenSSL or libibverbs installs less.
    files = sorted(installed())
    for file in files:
        found = [rule for rule in rules if fnmatch.fnmatchcase(file, rule[1])
                 and file.count("/") == rule[1].count("/")]
        if len(found) != 1:
            fail(f"{file} is in {found or 'no package'}: see debian/*.install")
        used.add(found[0])
    optional = {"weft-bench-mpi", "weft-efa", "libweft-z1"}
    for rule in rules:
        if rule not in used and rule[0] not in optional:
            fail(f"debian/{rule[0]}.install: {rule[1]} finds nothing")
    version = introspect("--projectinfo")["version"]
    said = subprocess.run([BUILD / "tools" / "weft", "--version"], check=True,
                          capture_output=True, text=True).stdout
    if said != f"weft {version}\n":
        fail(f"meson.build has version {version}, weft --version: {said}")
    print(f"{len(files)} files in {len(packages)} packages")


main()
