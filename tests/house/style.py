# SPDX-License-Identifier: BSD-2-Clause
"""House rules a machine can hold: licence line, sizes, no #if in a body, names.

House formatting puts the braces of a function, and only those, in column 0:
that is how a body is found. clang-format (format.py) sees to it.
"""

import re
import tempfile

import tree

SPDX = "SPDX-License-Identifier: BSD-2-Clause"
FILE_LINES = 800
FUNCTION_LINES = 100
LATER = re.compile(r"\b(TODO|FIXME|XXX)\b")
# Names that did not say what they do, and were replaced.
RIDDLE = re.compile(r"\b(?:wf_(?:dev|device)_\w+|(?:\w+_)?(?:beside|stirs|is_told|"
                    r"tells_all|judge|doom|let_go)(?:_\w+)?)\b")
COMMENT = re.compile(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")


def check_file(rel, text):
    lines = text.splitlines()
    if not lines or SPDX not in lines[0]:
        yield f"{rel}:1: line 1 must hold {SPDX}"
    if rel.suffix == ".c" and len(lines) >= FILE_LINES:
        yield f"{rel}:{len(lines)}: {FILE_LINES} lines or more"
    start = 0
    for number, line in enumerate(lines, 1):
        if LATER.search(line):
            yield f"{rel}:{number}: an issue is the place for that"
        if line == "{":
            start = number
        elif start and line.startswith("}"):
            if number - start >= FUNCTION_LINES:
                yield (f"{rel}:{start}: function of {FUNCTION_LINES} lines "
                       "or more")
            start = 0
        elif start and CONDITION.match(line):
            yield f"{rel}:{number}: preprocessor condition in a body"
    code = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        for name in RIDDLE.findall(line):
            yield f"{rel}:{number}: {name} hides what it means"


def check(top):
    found = []
    paths = tree.files(top, (".c", ".h"))
    for path in paths:
        found += check_file(path.relative_to(top), path.read_text())
    return found, len(paths)


def self_test():
    head = f"/* {SPDX} */\n"
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "src/good.c": head + "#if A\nint f(void)\n{\n\treturn 0;\n}\n"
                                 "#endif\nstatic const int x[] = {\n\t1,\n};\n",
            "src/bare.h": "int f(void);\n",
            "src/cond.c": head + "int f(void)\n{\n#ifdef A\n\treturn 0;\n}\n",
            "src/long.c": head + "int f(void)\n{\n" + "\tf();\n" * 99 + "}\n",
            "src/fits.c": head + "int f(void)\n{\n" + "\tf();\n" * 98 + "}\n",
            "src/huge.c": head + "int x;\n" * 799,
            "src/later.c": head + "/* TO" "DO: all of it */\n",
            "src/name.c": head + "/* beside a judge\n */\nint is_told(void);\n"
                                 "int wf_devd_stop(void);\n",
            "src/names.h": head + "int wf_dev_stop(void);\n",
        })
        tree.expect("style", check(tree.pathlib.Path(tmp))[0], [
            "src/bare.h:1: line 1",
            "src/cond.c:4: preprocessor",
            "src/long.c:3: function",
            "src/huge.c:800: 800 lines",
            "src/later.c:2: an issue",
            "src/name.c:4: is_told",
            "src/names.h:2: wf_dev_stop",
        ])


self_test()
tree.verdict(*check(tree.root()))
