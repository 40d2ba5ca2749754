# SPDX-License-Identifier: BSD-2-Clause
"""Every source and every test stands in a meson.build.

A file nobody lists is neither built nor run, and nothing else would say so.
"""

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


def check(top):
    found, checked = [], 0
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
        })
        tree.expect("listed", check(tree.pathlib.Path(tmp))[0],
                    ["src/base/a_test.c", "tests/x_z.sh"])


self_test()
tree.verdict(*check(tree.root()))
