# SPDX-License-Identifier: BSD-2-Clause
"""Tables that processes share are copied by words and read by members: such words
may alias everything, or the compiler may read a member before it was written.

Bug: op/reg.c stored an entry as uint64_t and read its 32-bit members.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import tree

# They copy entries in this way.
TABLES = ("src/op/reg.c", "src/prov/av_shared.c")
# Level 1 looks at every cast of an address, without a look at how it is used.
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fsyntax-only",
         "-Wstrict-aliasing=1"]
# The casts that the interface of sockets demands.
SOCKET = re.compile(r"\(struct sockaddr \*\)")


def check(top, tables):
    found = []
    for name in tables:
        path = top / name
        done = subprocess.run(
            ["gcc", "-I", top / "src", "-I", top / "include",
             *shlex.split(os.environ.get("WEFT_CFLAGS", "")), *FLAGS, path],
            capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            found.append(f"{name}:1: {done.stderr}")
        lines = path.read_text().splitlines()
        for number in map(int, re.findall(
                rf"^{re.escape(str(path))}:(\d+):.*strict-aliasing",
                done.stderr, re.M)):
            if not SOCKET.search(lines[number - 1]):
                found.append(f"{name}:{number}: words that may not alias")
    return found, len(tables)


def self_test():
    text = """#include <stdint.h>
struct entry { uint32_t a, b; };
typedef uint64_t %sword;
word first(const struct entry *from);
word first(const struct entry *from)
{
	return *(const word *)(const void *)from;
}
"""
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "src/good.c": text % "__attribute__((may_alias)) ",
            "src/bad.c": text % "",
        })
        tree.expect("aliasing", check(tree.pathlib.Path(tmp),
                                      ("src/good.c", "src/bad.c"))[0],
                    ["src/bad.c:7"])


if not shutil.which("gcc"):
    print("no gcc")
    sys.exit(tree.SKIP)
self_test()
tree.verdict(*check(tree.root(), TABLES))
