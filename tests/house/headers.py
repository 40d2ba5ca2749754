# SPDX-License-Identifier: BSD-2-Clause
"""Every header compiles alone, and twice in a row (its guard works)."""

import concurrent.futures
import os
import shlex
import subprocess
import tempfile

import tree

FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
         "-fsyntax-only", "-x", "c", "-"]


def compile_alone(top, path):
    rel = path.relative_to(top)
    name = "/".join(rel.parts[1:])
    command = [os.environ.get("CC", "gcc"), "-I", str(top / "src"),
               "-I", str(top / "include"), "-I", str(top / "drivers"),
               *shlex.split(os.environ.get("WEFT_CFLAGS", "")), *FLAGS]
    done = subprocess.run(command, input=f'#include "{name}"\n' * 2,
                          capture_output=True, text=True)
    return f"{rel}:1: {done.stderr.strip()}" if done.returncode else None


def check(top):
    paths = tree.files(top, (".h",), ("src", "include", "drivers"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda path: compile_alone(top, path), paths)
    return [r for r in results if r], len(paths)


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "src/base/good.h": "#pragma once\n#include <stdint.h>\n"
                               "struct good { uint32_t x; };\n",
            "src/base/needs.h": "#pragma once\nuint32_t needs(void);\n",
            "src/base/unguarded.h": "struct twice { int x; };\n",
        })
        tree.expect("headers", check(tree.pathlib.Path(tmp))[0],
                    ["src/base/needs.h:1", "src/base/unguarded.h:1"])


self_test()
tree.verdict(*check(tree.root()))
