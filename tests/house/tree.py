# SPDX-License-Identifier: BSD-2-Clause
"""Every house test needs this: the root of the tree, its files, a verdict."""

import os
import pathlib
import sys

SKIP = 77


def root():
    env = os.environ.get("WEFT_SRC")
    here = pathlib.Path(__file__).resolve().parents[2]
    return pathlib.Path(env) if env else here


def files(top, suffixes, under=("",)):
    """Files below top/<under>, sorted; no dot folders, no build folders.

    Walks instead of asking git, so that an exported tree and a file not yet
    added are held to the same rules.
    """
    found = set()
    for sub in under:
        for where, dirs, names in os.walk(pathlib.Path(top) / sub):
            if "meson-private" in dirs:
                dirs[:] = []
                continue
            dirs[:] = [d for d in dirs
                       if not d.startswith(".") and d != "__pycache__"]
            found.update(pathlib.Path(where) / n for n in names
                         if n.endswith(tuple(suffixes)))
    return sorted(found)


def write(top, texts):
    """A made-up tree for a test's test of itself."""
    for name, text in texts.items():
        path = pathlib.Path(top) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def expect(what, found, wanted):
    """Each wanted text must be in exactly one finding, and no more found."""
    missed = [w for w in wanted if sum(w in f for f in found) != 1]
    if missed or len(found) != len(wanted):
        print(f"self-test of {what} failed: wanted {wanted}, found {found}")
        sys.exit(1)


def verdict(found, checked):
    for line in found:
        print(line)
    print(f"{checked} files, {len(found)} complaints")
    sys.exit(1 if found else 0)
