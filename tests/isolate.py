#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""scripts/isolate: a test whose source tree is in a folder that it gets anew, such as
/tmp, finds its files there.

Bugs: the tree was visible only if the test's environment had WEFT_SRC, so that
nic-conn-tls did not find its key in a clone in /tmp; one in /dev/shm never was.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SRC = pathlib.Path(os.environ.get("WEFT_SRC", ".")).absolute()
SKIPPED = 77


def isolated(script, *command):
    env = {name: value for name, value in os.environ.items()
           if name not in ("WEFT_SRC", "WEFT_TEST_ISOLATE")}
    return subprocess.run([script, *command], env=env, cwd="/", text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)


def check(original, folder):
    tree = pathlib.Path(folder) / "tree"
    (tree / "scripts").mkdir(parents=True)
    (tree / "file").write_text("seen\n")
    (pathlib.Path(folder) / "beside").write_text("hidden\n")
    script = shutil.copy(original, tree / "scripts")
    seen = isolated(script, "cat", str(tree / "file"))
    assert seen.stdout == "seen\n", seen
    hidden = isolated(script, "cat", f"{folder}/beside")
    assert hidden.returncode, hidden


def main():
    original = SRC / "scripts" / "isolate"
    if isolated(original, "--check").returncode:
        print("namespaces are refused")
        return SKIPPED
    for where in ("/tmp", "/dev/shm", "/run"):
        with tempfile.TemporaryDirectory(dir=where) as folder:
            check(original, folder)
    return 0


sys.exit(main())
