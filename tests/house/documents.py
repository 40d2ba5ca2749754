# SPDX-License-Identifier: BSD-2-Clause
"""Checks that everything that documents name is there.

A link leads to a file, its anchor to a heading. A path and a unit test in
backquotes exist, and so does a name of ours (wd_, wf_, WD_, FI_WEFT_ ...) in
the sources. Every variable that the code reads is described in man/ or docs/,
and every document is in the index of docs/.
The code map of ARCHITECTURE.md names each source and no other, and the files of
its table of words use them. The bugs: functions and files were renamed, and the
documents kept the old names; words of weft's own were defined nowhere; README.md
kept times that were measured anew.
"""

import re
import tempfile

import tree

PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
CODE = (".c", ".h", ".py", ".sh", ".map", ".build", ".in", ".lua", ".cu")
WHERE = ("src", "include", "tools", "drivers", "tests", "scripts", "bench",
         "examples", "fuzz", "debian")

LINK = re.compile(r"\]\(([^)\s:]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
QUOTED = re.compile(r"`([^`\n]+)`")
OURS = re.compile(r"\b(?:wd|smm|wf|WD|WF|WEFT|FI_WEFT)_\w*[A-Za-z0-9]\b(?!\*)")
READ = re.compile(r'"((?:WD|WEFT|FI_WEFT)_[A-Z_]+)"')

# Names that stand for others, a misspelt one, and a variable by which the
# command talks to its own child.
EXAMPLES = {"src/x/y.c", "src/x/y_test.c", "src/x/meson.build",
            "man/name.section", "FI_WEFT_X", "FI_WEFT_KEYFILE"}
INTERNAL = {"WEFT_BENCH_PEER"}


def documents(top):
    return [top / name for name in PAGES if (top / name).is_file()] + \
        tree.files(top, (".md",), ("docs", "bench", "examples"))


def manuals(top):
    return tree.files(top, tuple(".1 .3 .7".split()), ("man",))


def lines(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


def anchors(path):
    """GitHub's names of the headings; indented lines are examples."""
    found = set()
    for heading in HEADING.findall(path.read_text(encoding="utf-8")):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.strip().replace(" ", "-"))
    return found


def check_links(top, path):
    for number, line in lines(path):
        for link in LINK.findall(line):
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists():
                yield number, f"no file {name}"
            elif anchor and anchor not in anchors(target):
                yield number, f"no heading #{anchor} in {target.name}"


def is_path(top, word):
    """From the root or from src; a program is named without its ending."""
    return any(found for base in (top, top / "src")
               for end in ("", ".c", ".h", ".py", ".pml")
               for found in base.glob(word.rstrip("/") + end))


def is_test(top, word):
    """`folder-noun` is a unit test, or a test of tests/ in another way."""
    folder, _, noun = word.partition("-")
    nouns = [noun, noun.rpartition("-")[0]]
    return any(list((top / "src" / folder).rglob(f"{n}_test.c")) or
               (top / "tests" / f"{n}.c").exists() for n in nouns if n)


def check_names(top, path, words, folders):
    roots = folders | {p.name for p in top.iterdir() if p.is_dir() and
                       not p.name.startswith("build")}
    for number, line in lines(path):
        said = QUOTED.findall(line) + re.findall(r"^ {4}.*", line)
        for quoted in said:
            for word in re.split(r"[\s=,:]+", quoted.strip("().")):
                if word in EXAMPLES or re.search(r"[<>${}\\]", word):
                    continue
                if re.match(r"build/bench/\w", word):
                    word = word.removeprefix("build/") + ".c"
                elif word.startswith("bench/") and \
                        not (top / word).exists():
                    yield number, f"no file {word}; a program of build/?"
                    continue
                if "/" in word and word.split("/")[0] in roots and \
                        not is_path(top, word):
                    yield number, f"no file {word}"
                elif re.fullmatch(r"[a-z]+-[a-z0-9_-]+", word) and \
                        word.split("-")[0] in folders and \
                        word not in words and not is_test(top, word):
                    yield number, f"no test {word}"
            for name in OURS.findall(quoted):
                if name not in words and name not in EXAMPLES:
                    yield number, f"no {name} in the sources"


def check_manual(top, path, words):
    for number, line in lines(path):
        if line.startswith(".TH"):
            continue
        line = re.sub(r"\\f[A-Z]|\\:", "", line).replace("\\-", "-")
        for name in re.findall(r"\bdocs/[a-z-]+\.md\b", line):
            if not (top / name).is_file():
                yield number, f"no file {name}"
        for name in OURS.findall(line):
            if name not in words:
                yield number, f"no {name} in the sources"


def check_map(top, folders):
    """Each source has its noun in backquotes in its folder's item."""
    path = top / "ARCHITECTURE.md"
    text = re.search(r"^## Code map$(.*?)^## ", path.read_text(
        encoding="utf-8"), re.M | re.S)
    items = {}
    for item in re.split(r"^- (?=`[a-z/]+/`:)", text[1], flags=re.M)[1:]:
        folder = item[1:item.index("/`")]
        items[folder] = items.get(folder, "") + item.split("`", 2)[2]
    for folder in sorted(folders | {"drivers/cuda"}):
        base = top / ("src" if folder in folders else "") / folder
        nouns = set(re.findall(r"`(?:[a-z]+/)*([a-z0-9_*]+)(?:\.[a-z]+)?`",
                               items.get(folder, "")))
        if folder not in items and base.is_dir():
            yield 1, f"{folder}/ is not in the code map"
            continue
        there = {p.stem for p in base.rglob("*") if p.suffix in (".c", ".h",
                                                                ".cu")}
        for name in sorted({p.stem for p in base.rglob("*.c")}):
            if not name.endswith("_test") and not any(
                    re.fullmatch(n.replace("*", ".*"), name) for n in nouns):
                yield 1, f"{folder}/{name} is not in the code map"
        for noun in sorted(nouns):
            if not OURS.fullmatch(noun) and not any(
                    re.fullmatch(noun.replace("*", ".*"), n) for n in there):
                yield 1, f"the code map has {folder}/{noun}"


def check_words(top):
    """Each row of the table: a word, its meaning, files that use it."""
    path = top / "ARCHITECTURE.md"
    text = path.read_text(encoding="utf-8")
    section = re.search(r"^## Words$(.*?)^## ", text, re.M | re.S)
    rows = re.findall(r"^\| ((?:to )?(\w+)[^|]*) \|[^|]+\| (`[^|]+`) \|$",
                      section[1] if section else "", re.M)
    if not rows:
        yield 1, "no table of words"
    before = ""
    for word, stem, names in rows:
        if word.removeprefix("to ").lower() < before:
            yield 1, f"{word} is not in alphabetical order"
        before = word.removeprefix("to ").lower()
        for name in QUOTED.findall(names):
            said = "".join(p.read_text(encoding="utf-8")
                           for p in (top / "src").glob(name + ".[ch]"))
            if stem.lower() not in said.lower():
                yield 1, f"{name} does not use the word {stem}"


def check_times(top):
    """Times in a table of README.md are in the document to which the row leads."""
    path = top / "README.md"
    for number, line in lines(path):
        link = re.search(r"\]\((docs/[\w-]+\.md)", line)
        if not line.startswith("|") or not link or not (top / link[1]).exists():
            continue
        text = (top / link[1]).read_text(encoding="utf-8")
        for time in re.findall(r"\b(\d[\d.]*) (?:ns|us|ms)\b", line):
            if not re.search(rf"(?<![\d.]){re.escape(time)}(?![\d.])", text):
                yield path, number, f"{time} is not in {link[1]}"


def check_index(top):
    index = top / "docs" / "README.md"
    text = index.read_text(encoding="utf-8") if index.is_file() else ""
    for path in tree.files(top, (".md",), ("docs",)):
        if path != index and f"]({path.name}" not in text:
            yield index, 1, f"{path.name} is not in the index"


def check_read(top, text):
    """Variables of the environment that nobody describes."""
    for path in tree.files(top, (".c", ".h"), ("src", "tools", "drivers")):
        if path.stem.endswith("_test"):
            continue
        for number, line in lines(path):
            for name in READ.findall(line):
                if name not in INTERNAL and not re.search(
                        rf"\b{name}\b", text):
                    yield path, number, f"{name} is described nowhere"


def check(top):
    sources = tree.files(top, CODE, WHERE) + \
        [p for p in (top / "Makefile", top / "meson.build") if p.is_file()] + \
        [p for base in ("scripts", "bench") if (top / base).is_dir()
         for p in (top / base).iterdir() if p.is_file() and not p.suffix]
    text = "\n".join(p.read_text(encoding="utf-8", errors="replace")
                     for p in sources)
    words = set(re.findall(r"\w+", text)) | \
        set(re.findall(r"[\w-]+", text)) | \
        {"FI_WEFT_" + name.upper()
         for name in re.findall(r'\.name = "(\w+)"', text)}
    src = top / "src"
    folders = {p.name for p in src.iterdir() if p.is_dir()}
    found = []
    for path in documents(top):
        said = list(check_links(top, path))
        if path.name != "CHANGELOG.md":
            said += check_names(top, path, words, folders)
        if path == top / "ARCHITECTURE.md":
            said += check_map(top, folders)
            said += check_words(top)
        found += [(path, *one) for one in said]
    for path in manuals(top):
        found += [(path, *one) for one in check_manual(top, path, words)]
    found += check_times(top)
    found += check_index(top)
    pages = documents(top) + manuals(top)
    found += check_read(top, "\n".join(
        re.sub(r"\\f[A-Z]", "", p.read_text(encoding="utf-8"))
        for p in pages))
    return [f"{path.relative_to(top)}:{number}: {what}"
            for path, number, what in found], len(pages)


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        top = tree.pathlib.Path(tmp)
        tree.write(top, {
            "README.md": "# A title, `quoted`\n"
                         "[a](docs/a.md#two-words) [b](docs/b.md)\n"
                         "[c](docs/a.md#three) [d](#a-title-quoted)\n"
                         "`src/os/file.c`, `os/file`, `os/gone.c`,\n"
                         "`bench/x`, `build/bench/x`, `build/bench/y`\n"
                         "`os-file`, `os-net`, `wf_os_open()`\n"
                         "    wd_open() FI_WEFT_MTU=1 WD_OLD=1 wd_gone()\n"
                         "| fast | 1.5 us, not 2 ms ([a](docs/a.md)) |\n",
            "ARCHITECTURE.md": "## Code map\n\n- `os/`: `file`, `knob`.\n\n"
                               "## Words\n| word | is | file |\n|---|---|---|\n"
                               "| knob | it turns | `os/map` |\n"
                               "| to file | to keep | `os/file` |\n\n"
                               "## Invariants\n`os/`: `mapping`\n",
            "docs/a.md": "## Two words\n| 1.5 | 2.5 |\n",
            "docs/README.md": "[a](a.md)\n",
            "docs/z.md": "",
            "man/a.1": ".B WD_NEW\\fR docs/c.md \\fBWD_NONE\n",
            "bench/x.c": "wf_os_open wd_open WD_OLD\n",
            "src/base/table.c": '.name = "mtu"\n',
            "src/os/file.c": '/* File */ getenv("WD_NEW"); getenv("WD_SECRET")\n',
            "src/os/file_test.c": 'getenv("WD_TEST")\n',
            "src/os/map.c": "",
        })
        tree.expect("documents", check(top)[0], [
            "README.md:2: no file docs/b.md",
            "README.md:3: no heading #three in a.md",
            "README.md:4: no file os/gone.c",
            "README.md:5: no file bench/x; a program of build/?",
            "README.md:5: no file bench/y.c",
            "README.md:6: no test os-net",
            "README.md:7: no wd_gone in the sources",
            "README.md:8: 2 is not in docs/a.md",
            "ARCHITECTURE.md:1: os/map is not in the code map",
            "ARCHITECTURE.md:1: the code map has os/knob",
            "ARCHITECTURE.md:1: os/map does not use the word knob",
            "ARCHITECTURE.md:1: to file is not in alphabetical order",
            "ARCHITECTURE.md:1: base/ is not in the code map",
            "docs/README.md:1: z.md is not in the index",
            "man/a.1:1: no file docs/c.md",
            "man/a.1:1: no WD_NONE in the sources",
            "src/os/file.c:1: WD_SECRET is described nowhere",
        ])


self_test()
tree.verdict(*check(tree.root()))
