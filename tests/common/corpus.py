# SPDX-License-Identifier: BSD-2-Clause
"""Data for compression tests: the same in every run, of several kinds."""

import os
import pathlib
import random

WORDS = [b"warp", b"weft", b"fabric", b"shuttle", b"loom", b"thread", b"the ",
         b" of ", b", ", b".\n", b"\t", b"0123456789"]


def text(size, seed=1):
    rng = random.Random(seed)
    out = bytearray()
    while len(out) < size:
        out += rng.choice(WORDS)
        if rng.random() < 0.02:
            out += rng.randbytes(3)
    return bytes(out[:size])


def noise(size, seed=2):
    return random.Random(seed).randbytes(size)


def mixed(size, seed=3):
    rng = random.Random(seed)
    out = bytearray()
    while len(out) < size:
        kind = rng.randrange(3)
        n = rng.randrange(1, 200000)
        out += (text(n, rng.random()) if kind == 0 else
                noise(n, rng.random()) if kind == 1 else bytes(n))
    return bytes(out[:size])


def source():
    """Real text: Python's own library."""
    folder = pathlib.Path(os.__file__).parent
    return b"".join(path.read_bytes()
                    for path in sorted(folder.glob("*.py")))[:1_500_000]
