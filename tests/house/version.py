# SPDX-License-Identifier: BSD-2-Clause
"""Every place that names weft's version names that of meson.build: the packages,
the changelog, the manual pages and what the provider tells libfabric. Pages and
provider name the first two numbers of it."""

import re
import tempfile

import tree

MESON = "meson.build"
# Each file, where the version stands in it, and how many of its numbers.
PLACES = [
    ("debian/changelog", re.compile(r"\Aweft \(([\d.]+)\)"), 3),
    ("CHANGELOG.md", re.compile(r"\b(?:have|has|is) the version ([\d.]+\d)|"
                                r"^## (\d[\d.]*)", re.M), 3),
    ("src/prov/provider.h",
     re.compile(r"WF_PROV_VERSION FI_VERSION\((\d+), (\d+)\)"), 2),
]
PAGE = re.compile(r'^\.TH .* "weft ([\d.]+)"', re.M)


def version_in(text, pattern):
    found = pattern.search(text)
    return ".".join(part for part in found.groups() if part) if found else None


def check(top):
    places = PLACES + [(str(path.relative_to(top)), PAGE, 2) for path in
                       tree.files(top, (".1", ".3", ".7"), ("man",))
                       if not path.read_text().startswith(".so ")]
    want = version_in((top / MESON).read_text(),
                      re.compile(r"^\tversion: '([\d.]+)'", re.M))
    found = []
    for name, pattern, numbers in places:
        said = version_in((top / name).read_text(), pattern)
        wanted = ".".join(want.split(".")[:numbers])
        if said != wanted:
            found.append(f"{name}:1: version {said}, {MESON} has {wanted}")
    return found, len(places) + 1


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        top = tree.pathlib.Path(tmp)
        tree.write(top, {
            "meson.build": "project('weft', 'c',\n\tversion: '1.2.3',\n",
            "debian/changelog": "weft (1.2.4) unstable; urgency=medium\n",
            "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3\n",
            "src/prov/provider.h":
                "#define WF_PROV_VERSION FI_VERSION(1, 1)\n",
            "man/good.7": '.TH GOOD 7 2026-01-01 "weft 1.2" "x"\n',
            "man/old.1": '.TH OLD 1 2026-01-01 "weft 1.1" "x"\n',
            "man/none.3": ".SH NAME\n",
            "man/link.1": ".so man1/old.1\n",
        })
        tree.expect("version", check(top)[0], [
            "debian/changelog:1: version 1.2.4",
            "src/prov/provider.h:1: version 1.1",
            "man/old.1:1: version 1.1",
            "man/none.3:1: version None",
        ])


self_test()
tree.verdict(*check(tree.root()))
