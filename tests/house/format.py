# SPDX-License-Identifier: BSD-2-Clause
"""clang-format has nothing to say about any .c or .h."""

import shutil
import subprocess
import sys
import tempfile

import tree


def check(top, style):
    paths = tree.files(top, (".c", ".h"))
    if not paths:
        return [], 0
    done = subprocess.run(
        ["clang-format", "--dry-run", "-Werror", f"--style=file:{style}",
         *map(str, paths)], capture_output=True, text=True)
    found = [line.removeprefix(f"{top}/")
             for line in done.stderr.splitlines() if ": error: " in line]
    if done.returncode and not found:
        found = [done.stderr]
    return found, len(paths)


def self_test(style):
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "src/base/good.c": "int good(void)\n{\n\treturn 0;\n}\n",
            "src/base/bad.c": "int bad(void)\n{\n    return 0;\n}\n",
            "build-x/meson-private/x": "",
            "build-x/skip.c": "int  skip(void){}\n",
        })
        tree.expect("format", check(tmp, style)[0], ["src/base/bad.c:2"])


if not shutil.which("clang-format"):
    print("no clang-format")
    sys.exit(tree.SKIP)
STYLE = tree.root() / ".clang-format"
self_test(STYLE)
tree.verdict(*check(tree.root(), STYLE))
