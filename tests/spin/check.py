# SPDX-License-Identifier: BSD-2-Clause
"""Checks one model with Spin: it holds with the store buffers of x86 and with
those that reorder, every statement of it is reached, and each variant that is
broken on purpose is found. The heading of the model lists these, and the C
functions that it models, which must exist.

    check.py MODEL.pml
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SRC = pathlib.Path(os.environ.get("WEFT_SRC", HERE.parents[1]))
DEPTH = 100000


def fail(text):
    print(text)
    sys.exit(1)


def check_names(heading):
    """The functions that the model stands for are there."""
    models = re.findall(r"^ \*\t(src/\S+): (.+)$", heading, re.M)
    if not models:
        fail("no functions are named")
    for path, names in models:
        if not (SRC / path).is_file():
            fail(f"there is no {path}: what has become of {names}?")
        text = (SRC / path).read_text()
        for name in names.split():
            if not re.search(rf"\b{name}\(", text):
                fail(f"{path} has no {name}()")


def run(command, where):
    done = subprocess.run(command, cwd=where, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        fail(f"{' '.join(command)}:\n{done.stdout}")
    return done.stdout


def search(model, flags):
    """What the search through all states printed, and the way to the error."""
    with tempfile.TemporaryDirectory() as tmp:
        for path in HERE.glob("*.pml"):
            shutil.copy(path, tmp)
        run(["spin", *flags, "-a", model.name], tmp)
        # Compiling takes longer than searching.
        run(["gcc", "-O0", "-w", "-DSAFETY", "-o", "pan", "pan.c"], tmp)
        said = run(["./pan", f"-m{DEPTH}", "-w22"], tmp)
        if "depth too small" in said or "out of memory" in said:
            fail(f"{flags}: not all states were searched:\n{said}")
        way = ""
        if pathlib.Path(tmp, f"{model.name}.trail").exists():
            way = run(["spin", *flags, "-t", "-p", "-g", model.name], tmp)
        return said, way


def check_sound(model, flags):
    """No error, and nothing that the search could not come to."""
    said, way = search(model, flags)
    if "errors: 0" not in said:
        fail(f"{flags}: the model does not hold\n{said}\n{way}")
    missed = [line.strip() for line in re.findall(r"^\t.*, state .*", said,
                                                  re.M)
              if '"-end-"' not in line and '"assert(0)"' not in line]
    if missed:
        fail(f"{flags}: never reached: {missed}")
    states = re.search(r"(\S+) states, stored", said)
    return f"{' '.join(flags) or 'x86'}: {states[1]} states, holds"


def check_broken(model, flags):
    said, _ = search(model, flags)
    if not re.search(r"errors: [1-9]", said):
        fail(f"{flags}: what is broken was not found\n{said}")
    return f"{' '.join(flags)}: found"


def main():
    if not shutil.which("spin") or not shutil.which("gcc"):
        print("no spin, or no gcc for what it generates")
        sys.exit(77)
    model = pathlib.Path(sys.argv[1]).resolve()
    heading = model.read_text().split("*/")[1]
    check_names(heading)
    broken = re.findall(r"^ \*\t-D(\w+)( \(weak\))?: ", heading, re.M)
    if not broken:
        fail("no variant is broken")
    jobs = [(check_sound, []), (check_sound, ["-DWEAK"])]
    jobs += [(check_broken, [f"-D{name}"] + ["-DWEAK"] * bool(weak))
             for name, weak in broken]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(check, model, flags)
                       for check, flags in jobs]:
            print(future.result(), flush=True)


main()
