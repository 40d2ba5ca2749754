# SPDX-License-Identifier: BSD-2-Clause
"""`weft gzip` with more threads than processors, in both directions, for
complete and damaged files: small enough to run under TSan as well, which is its
purpose.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from common import corpus  # noqa: E402

WEFT = os.path.join(os.environ["WEFT_BUILD"], "tools", "weft")


def weft(*args, code=0, **more):
    done = subprocess.run([WEFT, *map(str, args)], timeout=100,
                          capture_output=True, **more)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done.stdout


def main():
    data = corpus.source() * 4
    with tempfile.TemporaryDirectory() as tmp:
        plain = pathlib.Path(tmp) / "plain"
        packed = pathlib.Path(tmp) / "plain.gz"
        plain.write_bytes(data)
        for level in (1, 3):
            weft("gzip", f"-{level}", "-kf", "-p", 4, plain)
            assert weft("gunzip", "-c", "-p", 4, packed) == data
            piped = weft("gzip", f"-{level}", "-p", 4, input=data)
            assert weft("gunzip", "-p", 4, input=piped) == data
            bad = bytearray(packed.read_bytes())
            bad[len(bad) // 2] ^= 0x55
            packed.write_bytes(bad)
            weft("gunzip", "-t", "-p", 4, packed, code=1)
            bad[30] ^= 0x55  # a length in the index
            packed.write_bytes(bad)
            weft("gunzip", "-t", "-p", 4, packed, code=1)


main()
