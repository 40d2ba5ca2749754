# SPDX-License-Identifier: BSD-2-Clause
"""Every public function has a manual page of its name.

The synopsis of a page of section 3 names functions; `make install` makes a
link for each (scripts/man-links). A function that is declared in include/weft
and is in no synopsis would have no page; one in a synopsis that no header
declares is an error of the page. The bug: `man wd_request_channel` found
nothing.
"""

import re
import tempfile

import tree

COMMENT = re.compile(r"/\*.*?\*/|^\s*#[^\n]*(?:\\\n[^\n]*)*", re.S | re.M)
FUNCTION = re.compile(r"(?:^|[;}]\s*)(?:[a-z_][\w ]*[\s*]+)((?:wd|smm)_\w+)\(",
                      re.M)
NAMED = re.compile(r"((?:wd|smm)_[a-z0-9_]*)\(")


def declared(text):
    return set(FUNCTION.findall(COMMENT.sub("", text)))


def check(top):
    found, public, named = [], {}, {}
    headers = tree.files(top, (".h",), ("include/weft",))
    pages = tree.files(top, (".3",), ("man",))
    for path in headers:
        for name in declared(path.read_text()):
            public[name] = path.relative_to(top)
    for path in pages:
        text = path.read_text()
        start = text.find(".SH SYNOPSIS")
        for name in NAMED.findall(text[start:text.find(".SH DESCRIPTION")]):
            named[name] = path.relative_to(top)
    found += [f"{public[name]}:1: {name}() is in no synopsis of man/*.3"
              for name in sorted(set(public) - set(named))]
    found += [f"{named[name]}:1: {name}() is declared in no public header"
              for name in sorted(set(named) - set(public))]
    return found, len(headers) + len(pages)


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        top = tree.pathlib.Path(tmp)
        tree.write(top, {
            "include/weft/wd.h": "/* int wd_comment(void); */\n"
                                 "#define wd_macro(x) \\\n\twd_more(x)\n"
                                 "int wd_here(struct wd_chan *ch);\n"
                                 "void *wd_lost(int a,\n\tint b);\n"
                                 "struct x {\n\tint (*wd_member)(void);\n};\n"
                                 "typedef void (*wd_type)(int);\n",
            "man/wd.3": '.SH SYNOPSIS\n.BI "int wd_here(struct *" ch );\n'
                        ".B int wd_gone(void);\n.SH DESCRIPTION\n"
                        "wd_text(3)\n",
        })
        tree.expect("manual", check(top)[0], [
            "include/weft/wd.h:1: wd_lost()",
            "man/wd.3:1: wd_gone()",
        ])


self_test()
tree.verdict(*check(tree.root()))
