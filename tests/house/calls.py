# SPDX-License-Identifier: BSD-2-Clause
"""Calls that only one file may make, because a rule of ARCHITECTURE.md hangs
on how it makes them. Tests may call what they like.
"""

import re
import tempfile

import tree

# A pattern, who may match it, and why.
RULES = (
    (re.compile(r"\b(?:process_vm_(?:readv|writev)|wf_os_vm_(?:read|write)|"
                r"wf_os_memory_(?:open|read|write))\b"
                r" *[(,;:]|"
                r"[=?:] *(?:process_vm_(?:readv|writev)|"
                r"wf_os_vm_(?:read|write)|"
                r"wf_os_memory_(?:open|read|write))\b"),
     ("src/os/process.h", "src/os/linux/process.c", "src/base/cma.c",
      "src/shm/mover.c", "tools/info/cma.c"),
     "no stale process is touched: copy through shm/mover.h"),
    (re.compile(r"\b(?:sched_yield|wf_os_yield) *\("),
     # The bench plays a user who yields, where it is asked to.
     ("src/os/thread.h", "src/os/linux/thread.c", "src/base/rest.c",
      "tools/bench/floor.c", "tools/bench/message.h",
      "tools/bench/socket.c"),
     "a yield beside a busy process starves: use base/rest.h"),
    (re.compile(r"\bset(?:fs|res|re|e)?[ug]id *\("),
     (),
     "no thread takes on the identity of somebody else"),
    (re.compile(r"\bwf_shm_board_answer *\(|\bin->(?:watched|again_at) = |"
                r"\bwf_base_list_(?:add|del)\w*\([^;]*\bagain_link\b"),
     ("src/shm/board.h", "src/shm/watch.c"),
     "no ring is forgotten: shm/watch.h owns watched rings and bells"),
    # The second one is that of a ring that nobody has used yet.
    (re.compile(r"\bwf_shared_store\(&[^,;]*\bbell_wanted\b"),
     ("src/shm/watch.c", "src/shm/offer.c"),
     "no ring is forgotten: shm/watch.h says which rings want a bell"),
    (re.compile(r"\b(?:fi_param_\w+|wf_os_getenv) *\("),
     # It looks at libfabric's own variables.
     ("src/os/process.h", "src/os/linux/process.c", "src/prov/init.c",
      "src/prov/param.c"),
     "settings are what they say: read them in prov/param.c"),
)
COMMENT = re.compile(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)


def blank(match):
    return "\n" * match.group().count("\n")


def check(top):
    found = []
    paths = [p for p in tree.files(top, (".c", ".h"), ("src", "tools"))
             if not p.name.endswith(("_test.c", "_test.h"))]
    for path in paths:
        rel = path.relative_to(top)
        lines = COMMENT.sub(blank, path.read_text()).splitlines()
        for number, line in enumerate(lines, 1):
            found += [f"{rel}:{number}: {why}" for pattern, allowed, why
                      in RULES
                      if pattern.search(line) and str(rel) not in allowed]
    return found, len(paths)


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "src/shm/mover.c": "\tcall = w ? process_vm_writev : r;\n",
            "src/shm/other.c": "/*\n * process_vm_readv() */\n"
                               "\tprocess_vm_readv(pid, a, 1, b, 1, 0);\n",
            "src/shm/table.c": "\tf = process_vm_writev;\n",
            "src/base/rest.c": "\tsched_yield();\n",
            "src/base/wait.c": "\tsched_yield();\n",
            "src/base/again.c": "\twf_os_yield();\n",
            "src/shm/reader.c": "\twf_os_vm_read(pid, a, 1, b, 1);\n",
            "src/shm/filer.c": "\tfd = wf_os_memory_open(pid);\n",
            "src/devd/user.c": "\tsetfsuid(uid);\n",
            "src/shm/watch.c": "\tin->watched = true;\n",
            "src/shm/in.c": "\tin->watched = true;\n",
            "src/shm/doze.c": "\twf_shm_board_answer(board, bell);\n",
            "src/shm/tx.c": "\twf_base_list_del(&in->again_link);\n",
            "src/shm/out.c": "\twf_shared_store(&h->bell_wanted, 1, relaxed);\n"
                             "\twf_shared_load(&h->bell_wanted, relaxed);\n",
            "src/prov/ep.c": "\tfi_param_get_str(provider, name, &text);\n",
            "src/nic/open.c": "\tname = wf_os_getenv(variable);\n",
            "src/devd/user_test.c": "\tsetfsuid(uid);\n",
            "tools/text.c": 'const char *s = "sched_yield()";\n',
        })
        tree.expect("calls", check(tree.pathlib.Path(tmp))[0], [
            "src/shm/other.c:3: no stale",
            "src/shm/table.c:1: no stale",
            "src/base/wait.c:1: a yield",
            "src/base/again.c:1: a yield",
            "src/shm/reader.c:1: no stale",
            "src/shm/filer.c:1: no stale",
            "src/devd/user.c:1: no thread",
            "src/shm/in.c:1: no ring",
            "src/shm/doze.c:1: no ring",
            "src/shm/tx.c:1: no ring",
            "src/shm/out.c:1: no ring",
            "src/prov/ep.c:1: settings",
            "src/nic/open.c:1: settings",
        ])


self_test()
tree.verdict(*check(tree.root()))
