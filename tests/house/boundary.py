# SPDX-License-Identifier: BSD-2-Clause
"""The provider asks the kernel and the clock through src/os alone, and says
which of its variables belong to a process: a simulator can then stand in for
the kernel and run many processes in one.

Sources: which system headers a file outside src/os may include, and that
files which use memory of several processes do so by os/shared.h. Objects of
the libraries that are named as arguments: which functions of others they call,
and that each variable that changes lies in a section of os/inline.h. Warpdrive
is outside of the rule, and so are tests.

The engine of nic/udp decides, and has neither socket nor clock: its sources
include nothing that has one, and its objects call none, not even by src/os.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tree

OUTSIDE = ("os", "chan", "devd", "drv", "alg", "zshim", "zreal", "deflate",
           "efa")

# Headers that declare types, constants, and functions that work on memory
# alone. Those of Linux are layouts of what sockets carry, that of TCP its
# options. OpenSSL's and libibverbs' give types: their functions are found by
# os/library.h.
HEADERS = re.compile(
    r"assert\.h|ctype\.h|errno\.h|float\.h|inttypes\.h|limits\.h|math\.h|"
    r"std(?:arg|atomic|bool|def|int|io|lib)\.h|strings?\.h|cpuid\.h|"
    r"arpa/inet\.h|netinet/tcp\.h|linux/(?:errqueue|tcp|udp)\.h|rdma/.*|openssl/.*|"
    r"infiniband/.*|endian\.h")

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

# What the engine may include and call. thread.h and wf_os_once(): its tables are
# made once. types.h: addresses and vectors as types.
ENGINE = pathlib.PurePath("src/nic/udp/engine")
ENGINE_HEADERS = re.compile(
    r"base/.*|nic/(?:nic|timer)\.h|nic/udp/engine/.*|"
    r"os/(?:types|inline|thread)\.h")
ENGINE_CALLS = re.compile(
    r"(?:wf_os_(?!once$)|wf_nic_(?!timers_|status_str$)|wf_base_clock|"
    r"wf_base_addr_(?:is|find)_local|clock_gettime|"
    r"wf_udp_(?:sock|dev|pass|port|target|work|fault))")

INCLUDE = re.compile(r"^\s*#\s*include\s+<([^>]+)>")
OURS = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
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
            match = OURS.match(line)
            if match and rel.parent == ENGINE and \
                    not ENGINE_HEADERS.fullmatch(match[1]):
                found.append(f"{rel}:{number}: the engine has no business "
                             f"with {match[1]}")
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
            elif member.startswith("nic_udp_engine_") and \
                    ENGINE_CALLS.match(name):
                found.append(f"{member}: the engine calls {name}()")
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
            "src/nic/udp/engine/a.c": '#include "nic/udp/engine/a.h"\n'
                                      '#include "base/list.h"\n'
                                      '#include "nic/udp/sock.h"\n'
                                      '#include "os/socket.h"\n'
                                      '#include "os/types.h"\n',
            "src/nic/udp/b.c": '#include "os/socket.h"\n',
            "engine.c": """
                int wf_os_sendmsg(int); void wf_os_once(int);
                int wf_udp_sock_flush(int); int wf_udp_in_open(int);
                int wf_base_addr_is_local(int); int wf_nic_timers_take(int);
                int clock_gettime(int, void *);
                int run(int i);
                int run(int i)
                {
                        wf_os_once(i);
                        return wf_os_sendmsg(i) + wf_udp_sock_flush(i) +
                               wf_udp_in_open(i) + wf_base_addr_is_local(i) +
                               wf_nic_timers_take(i) + clock_gettime(i, 0);
                }
                """,
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
            "src/nic/udp/engine/a.c:3: the engine has no business with",
            "src/nic/udp/engine/a.c:4: the engine has no business with",
        ])
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fPIC", "-c",
                        top / "object.c", "-o", top / "object.o"], check=True)
        tree.expect("objects", check_objects(top / "object.o")[0], [
            ": getpid()", ": close()", ": plain changes", ": given changes",
            ": call changes", ": counter",
        ])
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fPIC", "-c",
                        top / "engine.c", "-o",
                        top / "nic_udp_engine_a.c.o"], check=True)
        tree.expect("engine", check_objects(top / "nic_udp_engine_a.c.o")[0], [
            "wf_os_sendmsg()", "wf_udp_sock_flush()",
            "wf_base_addr_is_local()", "clock_gettime()",
        ])


self_test()
FOUND, COUNT = check_sources(tree.root())
for library in sys.argv[1:]:
    more, objects = check_objects(library)
    FOUND += more
    COUNT += objects
tree.verdict(FOUND, COUNT)
