# SPDX-License-Identifier: BSD-2-Clause
"""The provider asks the kernel and the clock through src/os alone, and says
which of its variables belong to a process: a simulator can then stand in for
the kernel and run many processes in one.

Sources: which system headers a file outside src/os may include, and that
files which use memory of several processes do so by os/shared.h. Objects of
the libraries that are named as arguments: which functions of others they call,
and that each variable that changes lies in a section of os/inline.h. Warpdrive
is outside of the rule, and so are tests.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tree

OUTSIDE = ("os", "chan", "devd", "drv", "alg", "zshim", "zreal", "deflate")

# Headers that declare types, constants, and functions that work on memory
# alone. Those of Linux are layouts of what sockets carry, that of TCP its
# options.
HEADERS = re.compile(
    r"assert\.h|ctype\.h|errno\.h|float\.h|inttypes\.h|limits\.h|math\.h|"
    r"std(?:arg|atomic|bool|def|int|io|lib)\.h|strings?\.h|cpuid\.h|"
    r"arpa/inet\.h|netinet/tcp\.h|linux/(?:errqueue|udp)\.h|rdma/.*")

# Functions of other libraries that the provider may call by itself. The C
# library's: memory and text. clock_gettime: inlined by os/inline.h.
# getenv and environ are not here, because a simulated process has its own.
CALLS = re.compile(
    r"(?:wf|fi)_\w+|"
    r"malloc|calloc|realloc|aligned_alloc|free|"
    r"mem(?:cpy|set|move|cmp|chr)|bcmp|str\w+|qsort|bsearch|"
    r"v?snprintf|(?:__isoc99_)?sscanf|__(?:isoc23_)?str\w+|"
    r"inet_(?:ntop|pton)|htons|ntohs|"
    r"abort|__assert_fail|__errno_location|__stack_chk_fail|__\w+_chk|"
    r"__ctype_(?:b|tolower|toupper)_loc|"
    r"__mul[sdx]c3|__(?:u?div|u?mod)ti[34]|__cpu_(?:model|indicator_init)|"
    r"__(?:sync|atomic)_\w+|"
    r"clock_gettime|_GLOBAL_OFFSET_TABLE_|__(?:asan|ubsan|tsan|start|stop)_\w+")

# Tables of functions that libfabric wants writable, and nobody writes.
TABLES = re.compile(r"(?:^|_)ops(?:_|$)|^wf_prov_nosys_")
MUTABLE = re.compile(r"\.(?:t?data|t?bss)(?!\.rel\.ro)\b|\*COM\*")

# Where memory of several processes is used, and who may use atomics of its own
# there: user.c has a number of the process, which threads find out at once.
SHARED = re.compile(r"src/(?:shm/.*|op/reg\w*\.[ch]|prov/av_shared\w*\.[ch])")
OWN_WORDS = ("src/shm/user.c",)
ATOMIC = re.compile(r"\batomic_\w+\(|\b__atomic_\w+\(")

INCLUDE = re.compile(r"^\s*#\s*include\s+<([^>]+)>")
MEMBER = re.compile(r"^(?:.*/)?([\w.-]+\.o):\s+file format")
SYMBOL = re.compile(r"^[0-9a-f]{8,} (.{7}) (\S+)\s+[0-9a-f]{8,}\s+"
                    r"(?:\.\w+ )?(\S+)$")


def check_sources(top):
    found, count = [], 0
    for path in tree.files(top, (".c", ".h"), ("src",)):
        rel = path.relative_to(top)
        if len(rel.parts) < 3 or rel.parts[1] in OUTSIDE or \
                path.name.endswith(("_test.c", "_test.h")):
            continue
        count += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and not HEADERS.fullmatch(match[1]):
                found.append(f"{rel}:{number}: <{match[1]}> is for src/os")
            if ATOMIC.search(line) and SHARED.fullmatch(str(rel)) and \
                    str(rel) not in OWN_WORDS:
                found.append(f"{rel}:{number}: use os/shared.h")
    return found, count


def check_objects(path):
    """Of a library or an object."""
    found, member, count = [], "", 0
    text = subprocess.run(["objdump", "-t", path], check=True,
                          capture_output=True, text=True).stdout
    for line in text.splitlines():
        match = MEMBER.match(line)
        if match:
            member = match[1]
            count += not member.startswith("os_")
            continue
        match = SYMBOL.match(line)
        if not match or member.startswith("os_"):
            continue
        flags, section, name = match.groups()
        name = name.split("@")[0]
        if section == "*UND*":
            if not CALLS.fullmatch(name):
                found.append(f"{member}: {name}() is called outside of src/os")
        elif flags[6] == "O" and MUTABLE.match(section) and \
                not TABLES.search(name):
            found.append(f"{member}: {name} changes, and has neither "
                         "WF_PER_PROCESS nor WF_SAME_FOR_ALL")
    return found, count


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        top = pathlib.Path(tmp)
        tree.write(top, {
            "src/base/a.c": "#include <errno.h>\n#include <sys/epoll.h>\n",
            "src/core/new.h": "#include <unistd.h>\n",
            "src/base/a_test.c": "#include <unistd.h>\n",
            "src/shm/in.c": "\tatomic_store(&word, 1);\n",
            "src/op/cntr.c": "\tatomic_store(&word, 1);\n",
            "src/os/linux/a.c": "#include <unistd.h>\n",
            "src/chan/a.c": "#include <unistd.h>\n",
            "object.c": """
                int getpid(void); int close(int); void *malloc(unsigned long);
                int wf_os_close(int);
                static int plain;
                static int given = 3;
                static const int fixed[2] = { 1, 2 };
                static int (*const table)(int) = close;
                static int (*call)(int) = wf_os_close;
                struct ops { int (*call)(int); } fid_ops = { wf_os_close };
                __attribute__((section("wf_process"))) static int good;
                int run(int i);
                int run(int i)
                {
                        static int counter;
                        plain += i; given += i; good++; call = 0;
                        return getpid() + table(counter++) + fixed[i & 1] +
                               (malloc(plain) != 0) + given + call(good);
                }
                """,
        })
        tree.expect("sources", check_sources(top)[0], [
            "src/base/a.c:2: <sys/epoll.h>",
            "src/core/new.h:1: <unistd.h>",
            "src/shm/in.c:1: use os/shared.h",
        ])
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fPIC", "-c",
                        top / "object.c", "-o", top / "object.o"], check=True)
        tree.expect("objects", check_objects(top / "object.o")[0], [
            ": getpid()", ": close()", ": plain changes", ": given changes",
            ": call changes", ": counter",
        ])


self_test()
FOUND, COUNT = check_sources(tree.root())
for library in sys.argv[1:]:
    more, objects = check_objects(library)
    FOUND += more
    COUNT += objects
tree.verdict(FOUND, COUNT)
