# SPDX-License-Identifier: BSD-2-Clause
"""The first command of each audience in README.md, run as it is in a folder with
the user's files, except that measurements are short; and the lines with
fi_pingpong in README.md and fi_weft(7), run as they are except for the number of
rounds, with a server that starts late.

The bug: the client did not wait for the server, and ended with "Connection
refused" in half of all tries; ten rounds printed poor figures.
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SRC = pathlib.Path(os.environ.get("WEFT_SRC", "."))

# The server is the line without an address; it starts a second later than
# usual.
LATE = """#!/bin/sh
case "$*" in
*127.0.0.1*) ;;
*) sleep 1 ;;
esac
exec {real} "$@"
"""


def fail(text):
    print(text)
    sys.exit(1)


def lines_of(name):
    """From the server's line to the client's."""
    text = (SRC / name).read_text(encoding="utf-8")
    text = re.sub(r"\$ \\fB|\\fP", "", text).replace("\\-", "-")
    found = re.search(r"^ *fi_pingpong -p weft.*&(?:.|\n)*?127\.0\.0\.1$",
                      text, re.M)
    if not found or found[0].count("-I 1000") != 2:
        fail(f"{name}: no fi_pingpong with -I 1000 on both sides")
    return found[0].replace("-I 1000", "-I 20")


# The audience, and what its command prints. mpi_bench runs those for MPI.
AUDIENCES = {
    "MPI on a node": None,
    "MPI between nodes": None,
    "libfabric programs": "provider: weft",
    "zlib programs": "libweft-z",
    "large gzip files": "",
    "accelerators": "empty job",
    "EFA development": "provider: efa",
}
SHORTER = {"accelerators": " -r 1 -n 50"}


def first_commands():
    """The rows of the table at the top of README.md: audience, command."""
    text = (SRC / "README.md").read_text(encoding="utf-8")
    table = re.search(r"\| You run .*\n\|[-|]+\n((?:\|.*\n)+)", text)
    if not table or text[:table.start()].count("\n") > 15:
        fail("README.md has no table of audiences on its first screen")
    for row in table[1].splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) != 3 or not re.search(r"\d", cells[1]) or \
                not cells[2].startswith("`"):
            fail(f"README.md: no audience, number and command: {row}")
        yield cells[0], cells[2].split("`")[1]


def check_first_commands():
    found = dict(first_commands())
    if list(found) != list(AUDIENCES):
        fail(f"README.md: audiences {list(found)}")
    build = os.environ["WEFT_BUILD"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(build)
        (folder / "program.py").write_text(
            "import zlib\n"
            "assert zlib.decompress(zlib.compress(b'x' * 9999)) == b'x' * 9999\n"
            "print(open('/proc/self/maps').read())\n", encoding="utf-8")
        (folder / "FILE.gz").write_bytes(gzip.compress(b"text " * 100000))
        for name, command in found.items():
            if AUDIENCES[name] is None:
                continue
            if name == "EFA development" and not (
                    pathlib.Path(build) / "src/libweft-efa.so").exists():
                continue
            env = {key: value for key, value in os.environ.items()
                   if key != "FI_PROVIDER_PATH"}
            done = subprocess.run(
                ["sh", "-c", command + SHORTER.get(name, "")], env=env,
                cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
            if done.returncode or AUDIENCES[name] not in done.stdout:
                fail(f"README.md, {name}: {command}: {done.returncode}\n"
                     f"{done.stdout}")
        if (folder / "FILE").read_bytes() != b"text " * 100000:
            fail("README.md: FILE.gz was not unpacked")


def check_mpi_later():
    """`make build` after Open MPI was installed. Bugs: only `make clean build`
    found it, which took as long as the first build; if meson did not accept it,
    each `make build` configured again."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in ("meson", "mpicc", "ninja"):
            (folder / name).write_text(
                f"#!/bin/sh\necho {name} $* >>{folder}/calls\n",
                encoding="utf-8")
            (folder / name).chmod(0o755)
        (folder / "build").mkdir()
        both = ["meson setup --reconfigure", "ninja -C"]
        other = "#!/bin/sh\n"
        for mpicc, text, calls in ((None, "", both), (None, "", ["ninja -C"]),
                                   (other, "", both),
                                   (None, "bench/weft-bench-mpi", ["ninja -C"])):
            if mpicc:
                (folder / "mpicc").write_text(mpicc, encoding="utf-8")
            (folder / "build/build.ninja").write_text(text, encoding="utf-8")
            (folder / "calls").write_text("", encoding="utf-8")
            subprocess.run(
                ["make", "-C", SRC, "ninja", f"BUILD={folder}/build"],
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                check=True, stdout=subprocess.DEVNULL, timeout=60)
            said = (folder / "calls").read_text(encoding="utf-8").splitlines()
            if len(said) != len(calls) or \
                    any(not a.startswith(b) for a, b in zip(said, calls)):
                fail(f"make ninja: {said}, not {calls}")


def main():
    real = shutil.which("fi_pingpong")
    if not real or not shutil.which("ss") or \
            "FI_PROVIDER_PATH" not in os.environ:
        print("no fi_pingpong, no ss, or no provider")
        sys.exit(77)
    if b":47592" in subprocess.run(["ss", "-ltn"], check=True,
                                   stdout=subprocess.PIPE).stdout:
        print("another fi_pingpong is running")
        sys.exit(77)
    check_first_commands()
    check_mpi_later()
    for name in ("README.md", "man/fi_weft.7"):
        with tempfile.TemporaryDirectory() as folder:
            late = pathlib.Path(folder) / "fi_pingpong"
            late.write_text(LATE.format(real=real), encoding="utf-8")
            late.chmod(0o755)
            done = subprocess.run(
                ["sh", "-c", lines_of(name) + "\ncode=$?\n"
                 "[ $code = 0 ] || kill $!\nwait\nexit $code"],
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        if done.returncode or not re.search(r"^64 +20 ", done.stdout, re.M):
            fail(f"{name}: {done.returncode}\n{done.stdout}")


main()
