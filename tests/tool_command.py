# SPDX-License-Identifier: BSD-2-Clause
"""The command `weft` itself: help by name, the same options in help and man
page, commands of documents that it accepts, and output that cannot be written.

The bugs: `weft help bench` printed the general help, and `weft bench >
/dev/full` exited with 0.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build"))
WEFT = BUILD / "tools" / "weft"
SRC = pathlib.Path(os.environ.get("WEFT_SRC", "."))
MAN = SRC / "man"


def fail(text):
    print(text)
    sys.exit(1)


def run(*words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL):
    return subprocess.run([WEFT, *words], stdout=stdout, stdin=stdin,
                          stderr=subprocess.PIPE, text=True, check=False,
                          timeout=60)


def check_help():
    for command in ("info", "bench", "gzip", "gunzip", "stat", "devd",
                    "efa"):
        by_name, by_option = run("help", command), run(command, "--help")
        if by_name.returncode or by_name.stdout != by_option.stdout or \
                not by_name.stdout.startswith(f"usage: weft {command}"):
            fail(f"weft help {command}: {by_name}")
    if run("help").stdout != run("--help").stdout or run("help").returncode:
        fail(f"{run('help')}")
    wrong = run("help", "nosuch")
    if wrong.returncode != 2 or "nosuch" not in wrong.stderr:
        fail(f"{wrong}")


def check_manual():
    """A page has each option of the help. Its own that the help does not
    have are other names, or options of other programs."""
    weft = (MAN / "weft.1").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^\.SH ([A-Z ]+)$(.*?)(?=^\.SH )", weft,
                            re.M | re.S))
    for words in ("info", "bench", "bench wd", "bench comp", "stat", "devd",
                  "gzip", "gunzip", "efa", "why", "trace"):
        page = MAN / f"weft-{words.replace('gunzip', 'gzip')}.1"
        text = page.read_text(encoding="utf-8") if page.exists() else ".so"
        if text.startswith(".so"):
            text = parts[words.upper()]
        named = set(re.findall(r"(?<![\w-])--?[a-z0-9][a-z-]*", re.sub(
            r"\\f[A-Z]", "", text).replace("\\-", "-"), re.I))
        said = run(*words.split(), "--help").stdout
        missing = set()
        for line in re.findall(r"^ +-.*", said, re.M):
            missing.update(re.findall(r"^ +(-\w)\b", line),
                           re.findall(r"(?<![\w-])--[a-z-]+", line))
        missing -= named | {"-h", "--help"}
        if missing:
            fail(f"weft {words}: the manual does not have {missing}")


def check_pages():
    """`man weft-COMMAND` finds a page that describes the command."""
    commands = re.findall(r"^  ([a-z]+) ", run("--help").stdout, re.M)
    if len(commands) < 9:
        fail(f"{commands}")
    for command in commands:
        text = (MAN / f"weft-{command}.1").read_text(encoding="utf-8")
        link = re.fullmatch(r"\.so man1/(\S+)\n", text)
        if link:
            text = (MAN / link[1]).read_text(encoding="utf-8")
        if not re.search(rf"^\.SH {command.upper()}$|^\.SH NAME\n.*"
                         rf"weft\\?-{command}\b", text, re.M):
            fail(f"weft-{command}.1 does not describe it")


def commands_of(page):
    """Commands `weft ...` with options in a page, without redirections."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        text = re.sub(r"\\\n\s*", " ", text)
        spans = re.findall(r"`([^`]+)`", text) + \
            re.findall(r"^ {4}.*", text, re.M)
    else:
        spans = re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-").splitlines()
    for span in spans:
        for words in re.findall(r"(?:^|[ /])weft ((?:bench|stat|gzip|gunzip|"
                                r"devd|trace|why|info) -?[^|;>#&`()[]*)",
                                " ".join(span.split())):
            if " -" in words and "..." not in words:
                yield words.replace("A-B", "0-1")


def check_documents():
    """Options and their values are right. --help at the end: what is before it
    was read."""
    pages = [SRC / "README.md", SRC / "bench/README.md",
             *sorted((SRC / "docs").glob("*.md")), *sorted(MAN.glob("*.[17]"))]
    found = {words: page for page in pages for words in commands_of(page)}
    if len(found) < 40:
        fail(f"only {len(found)} commands in documents")
    for words, page in found.items():
        done = run(*shlex.split(words), "--help")
        if done.returncode:
            fail(f"{page.name}: weft {words}: {done.stderr}")


def check_full():
    """Whatever a command prints to a full disk, it fails and says so."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "file"
        file.write_bytes(b"text " * 10000)
        packed = pathlib.Path(folder) / "file.gz"
        run("gzip", "-k", str(file))
        for words in (["--help"], ["--version"], ["info"], ["info", "--json"],
                      ["stat", "--json"], ["help", "bench"],
                      ["bench", "latency", "--sizes", "8", "--reps", "1",
                       "--time", "1", "--timeout", "60"],
                      ["gzip", "-c", str(file)], ["gzip", "-l", str(packed)],
                      ["gunzip", "-c", str(packed)], ["devd", "--help"],
                      # Bug: it went on serving, and scripts waited for its
                      # line.
                      ["devd", "--socket", f"{folder}/devd.sock"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(*words, stdout=full)
            if not done.returncode or "No space left" not in done.stderr:
                fail(f"weft {' '.join(words)} > /dev/full: {done}")


def check_complaints():
    """They begin with the command as it was typed. Bug: "stat: ..."."""
    for words in (["stat"], ["info"], ["devd"], ["gzip"], ["gunzip"],
                  ["bench"], ["bench", "wd"], ["bench", "comp"]):
        done = run(*words, "--nosuch")
        if not done.returncode or \
                not done.stderr.startswith(f"weft {' '.join(words)}: "):
            fail(f"{words}: {done}")
    done = run("devd", "-d", "a,b=c")
    if done.returncode != 2 or "scenario, algs" not in done.stderr:
        fail(f"{done}")


def check_misspelt():
    """A word that is nearly right is told from one that is like none."""
    for words, meant in (
            (["stta"], "stat"), (["verison"], "version"),
            (["--hlep"], "--help"), (["stat", "--jsn"], "--json"),
            (["why", "--logner-than=2s"], "--longer-than"),
            (["trace", "--outptu", "x"], "--output"),
            (["info", "--jsno"], "--json"), (["gzip", "--kep"], "--keep"),
            (["gunzip", "--stdot"], "--stdout"), (["efa", "--intrface"],
                                                  "--interface"),
            (["bench", "--shrt"], "--short"), (["bench", "wd", "--rps"],
                                               "--reps"),
            (["bench", "comp", "--calsl"], "--calls"),
            (["devd", "--verbsoe"], "--verbose"),
            (["bench", "localhost", "bandwith"], "bandwidth"),
            (["bench", "latncy"], "latency")):
        done = run(*words)
        if not done.returncode or f"did you mean {meant}?" not in done.stderr:
            fail(f"{words}: {done}")
    # Bug: "unknown command 'version'; did you mean version?", and wd meant wd.
    for word in ("help", "version", "--help", "--version"):
        if run("help", word).stdout != run("--help").stdout:
            fail(f"weft help {word}: {run('help', word)}")
    for word in ("wd", "comp"):
        for words in (("latency", word), ("localhost", word)):
            done = run("bench", *words)
            if not done.returncode or "did you mean" in done.stderr or \
                    f"`weft bench {word}` has" not in done.stderr:
                fail(f"{words}: {done}")
    for words in (["install"], ["--install"], ["stat", "--frobnicate"]):
        done = run(*words)
        if done.returncode != 2 or "did you mean" in done.stderr or \
                "--help` lists" not in done.stderr:
            fail(f"{words}: {done}")
    if run("version").stdout != run("--version").stdout or \
            not run("version").stdout.startswith("weft "):
        fail(f"{run('version')}")


def check_processes():
    """Processes are named in the same two ways everywhere. Bug: `weft stat`
    took only --pid, and `weft why` and `weft trace` only bare numbers."""
    with subprocess.Popen(["true"]) as child:
        gone = str(child.pid)
    for command in ("stat", "why", "trace"):
        done = [run(command, *words) for words in (
            [gone], ["-p", gone], [f"--pid={gone}"], ["-p", gone, gone])]
        if any(one.returncode != 1 or one.stderr != done[0].stderr
               for one in done) or done[0].stderr.count(gone) != 1:
            fail(f"weft {command}: {done}")
        for words in (["x"], ["-p", "1,x"]):
            if run(command, *words).returncode != 2:
                fail(f"weft {command} {words}")


def main():
    if not WEFT.exists() or "WEFT_BUILD" not in os.environ:
        print("WEFT_BUILD is not set, or there is no weft")
        sys.exit(77)
    check_help()
    check_manual()
    check_pages()
    check_documents()
    check_full()
    check_complaints()
    check_misspelt()
    check_processes()


main()
