# SPDX-License-Identifier: BSD-2-Clause
"""Every source and every test stands in a meson.build, and what the examples'
Makefile makes in .gitignore.

A file nobody lists is neither built nor run, and nothing else would say so.
"""

import fnmatch
import re
import tempfile

import tree

WHERE = {
    "src": (".c",),
    "drivers": (".c",),
    "tools": (".c",),
    "fuzz": (".c",),
    "tests": (".c", ".py", ".sh"),
}
HOUSE = "tests/house"


def listed(top, path):
    """Named in a meson.build of its folder or of one above, up to the top."""
    for folder in path.relative_to(top).parents:
        build = top / folder / "meson.build"
        name = path.relative_to(top / folder).as_posix()
        if build.is_file() and f"'{name}'" in build.read_text():
            return True
    return False


def untracked(top):
    """Programs that `make` in examples/ leaves, and that git would show."""
    makefile, ignore = top / "examples/Makefile", top / ".gitignore"
    made = re.search(r"^all: (.*)$", makefile.read_text(), re.M)[1].split() \
        if makefile.is_file() else []
    lines = ignore.read_text().splitlines() if ignore.is_file() else []
    for name in made:
        if f"/examples/{name}" not in lines and \
                not any(fnmatch.fnmatch(name, line) for line in lines):
            yield name


def check(top):
    found, checked = [f"examples/{name}:1: is not in .gitignore"
                      for name in untracked(top)], 0
    for folder, suffixes in WHERE.items():
        for path in tree.files(top, suffixes, (folder,)):
            rel = path.relative_to(top)
            if rel.is_relative_to(HOUSE):
                continue
            checked += 1
            if not listed(top, path):
                found.append(f"{rel}:1: in no meson.build")
    return found, checked


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "src/base/meson.build": "weft_sources += files('a.c')\n",
            "src/base/a.c": "",
            "src/base/a_test.c": "",
            "tests/meson.build": "files('x_y.sh', 'sub/z.py')\n",
            "tests/x_y.sh": "",
            "tests/x_z.sh": "",
            "tests/sub/z.py": "",
            "examples/Makefile": "all: a b c.so\n",
            ".gitignore": "*.so\n/examples/a\n",
        })
        tree.expect("listed", check(tree.pathlib.Path(tmp))[0],
                    ["examples/b", "src/base/a_test.c", "tests/x_z.sh"])


self_test()
tree.verdict(*check(tree.root()))
