# SPDX-License-Identifier: BSD-2-Clause
"""Reads every #include and holds the layers of the design.

A file sees its own folder, the folders its layer lists, and system headers.
Ours are always included from the root ("base/list.h"), never by "../", by a
bare name or in angle brackets. "public" is include/. The table of
ARCHITECTURE.md must say the same.
"""

import re
import tempfile

import tree

LAYERS = {
    "os": (),
    "base": ("os",),
    "op": ("os", "base"),
    "match": ("os", "base", "op"),
    "transport": ("os", "base", "op"),
    "shm": ("os", "base", "op", "match", "transport"),
    "queue": ("os", "base"),
    "wire": ("os", "base"),
    "nic": ("os", "base", "queue"),
    "rdm": ("os", "base", "op", "match", "wire", "nic", "transport"),
    "core": ("os", "base", "op", "match", "transport", "shm", "rdm"),
    "prov": ("os", "base", "op", "match", "transport", "shm", "nic", "rdm",
             "core"),
    "efa": ("os", "base", "queue", "nic"),
    "public": (),
    "chan": ("public", "base", "queue"),
    "zreal": ("base",),
    "deflate": ("public", "base"),
    "alg": ("public", "base", "queue", "chan", "deflate"),
    "drv": ("public", "base", "queue", "chan", "deflate", "alg", "zreal"),
    "zshim": ("public", "base", "queue", "chan", "deflate", "alg", "zreal"),
    "devd": ("public", "base", "queue", "chan", "alg", "drv"),
    # Plug-ins see what a vendor sees. What is below zlib is for tests.
    "cuda": ("public",),
    # nic: the one parser of FI_WEFT_FAULT.
    "tools": ("public", "base", "nic", "deflate", "alg", "drv", "devd"),
}

# Unit tests of a transport have the core drive it; those of the format and of
# a plug-in compare.
TESTS = {"shm": ("core",), "rdm": ("core",), "deflate": ("zreal",),
         "cuda": ("alg", "tools")}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def layer_of(parts):
    if parts[0] in ("src", "drivers"):
        return parts[1] if len(parts) > 2 else None
    return "public" if parts[0] == "include" else "tools"


def target_of(top, path, quote, name):
    """The layer an include names, None for the system's, "" if ill-formed."""
    first = name.split("/")[0]
    if first.startswith("."):
        return ""
    if "/" in name and (first in LAYERS and first != "public"
                        or (top / "src" / first).is_dir()):
        return first if quote == '"' else ""
    if (top / "include" / name).is_file():
        return "public"
    # A tool is a program: its own folder is its root.
    if layer_of(path.relative_to(top).parts) == "tools" and \
            (path.parent / name).is_file():
        return "tools"
    return "" if quote == '"' else None


def check_table(top):
    """Rows of the table: a folder, and those that it may use."""
    path = top / "ARCHITECTURE.md"
    if not path.is_file():
        return
    table = path.read_text(encoding="utf-8").partition("| may use |\n")[2]
    rows = dict(re.findall(r"^\| ([a-z]+)[^|]* \| (.*) \|$",
                           table.partition("\n\n")[0], re.M))
    for layer, below in LAYERS.items():
        named = re.sub(r"\([^)]*\)", "", rows.get(layer, "")).replace(
            "include/", "public")
        if layer != "public" and {word for word in re.findall(
                r"\w+", named) if word in LAYERS} != set(below):
            yield f"ARCHITECTURE.md:1: {layer} may use {', '.join(below)}"


def check(top):
    found = list(check_table(top))
    paths = tree.files(top, (".c", ".h"),
                       ("src", "drivers", "tools", "include"))
    for path in paths:
        rel = path.relative_to(top)
        layer = layer_of(rel.parts)
        if layer not in LAYERS:
            found.append(f"{rel}:1: folder is not in the layer list")
            continue
        allowed = (layer,) + LAYERS[layer]
        if rel.stem.endswith("_test"):
            allowed += TESTS.get(layer, ())
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = target_of(top, path, *match.groups())
            if target == "":
                found.append(f"{rel}:{number}: write ours as \"folder/x.h\": "
                             f"{match.group(2)}")
            elif target is not None and target not in allowed:
                found.append(f"{rel}:{number}: {layer} must not use {target}")
    return found, len(paths)


def table(layers):
    return "| folder | may use |\n|---|---|\n" + "".join(
        f"| {layer} | {', '.join(below) or 'nothing'} |\n"
        for layer, below in layers.items()) + "\n| os | base |\n"


def self_test():
    for layer, below in LAYERS.items():
        cycle = [b for b in below if layer in LAYERS[b]]
        tree.expect(f"the list at {layer}", cycle, [])
    with tempfile.TemporaryDirectory() as tmp:
        top = tree.pathlib.Path(tmp)
        tree.write(top, {
            "include/wd.h": "#include <stdint.h>\n",
            "src/base/a.h": '#include "match/m.h"\n#include <errno.h>\n',
            "src/match/m.h": '#include "base/a.h"\n#include "match/n.h"\n',
            "src/shm/s.c": '#include "../base/a.h"\n#include "op/o.h"\n',
            "src/shm/b.c": '#include "s.h"\n#  include "prov/p.h"\n',
            "src/rdm/r.c": "#include <base/a.h>\n#include <wd.h>\n",
            "src/odd/o.c": "",
            "src/shm/s_test.c": '#include "core/c.h"\n',
            "src/shm/t.c": '#include "core/c.h"\n',
            "src/rdm/s_test.c": '#include "shm/s.h"\n',
            "tools/weft.c": '#include <wd.h>\n#include "shm/s.h"\n'
                            '#include "weft.h"\n',
            "tools/weft.h": "",
            "ARCHITECTURE.md": table({**LAYERS, "shm": ("os", "prov")}),
        })
        tree.expect("layers", check(top)[0], [
            "src/base/a.h:1: base must not use match",
            'src/shm/s.c:1: write ours as "folder/x.h"',
            'src/shm/b.c:1: write ours as "folder/x.h"',
            "src/shm/b.c:2: shm must not use prov",
            'src/rdm/r.c:1: write ours as "folder/x.h"',
            "src/rdm/r.c:2: rdm must not use public",
            "src/odd/o.c:1: folder is not in the layer list",
            "src/shm/t.c:1: shm must not use core",
            "src/rdm/s_test.c:1: rdm must not use shm",
            "tools/weft.c:2: tools must not use shm",
            "ARCHITECTURE.md:1: shm may use os, base,",
        ])


self_test()
tree.verdict(*check(tree.root()))
