# SPDX-License-Identifier: BSD-2-Clause
"""rdma-core's own tests of EFA devices, as Debian's python3-pyverbs ships them,
on the software EFA device: SRD traffic by both posting interfaces, states, full
queues, the sender's GID, and the queries of libefa."""

import glob
import gzip
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import efa  # noqa: E402
import pingpong  # noqa: E402

SHIPPED = "/usr/share/doc/rdma-core/tests"
# Debian's python, which the package is for; another one may come first in PATH.
PYTHON = "/usr/bin/python3"


def unpack(folder):
    """The files are compressed, as all documentation is."""
    tests = pathlib.Path(folder) / "tests"
    tests.mkdir()
    for name in glob.glob(SHIPPED + "/*"):
        path = pathlib.Path(name)
        if path.suffix == ".gz":
            (tests / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.is_file():
            shutil.copy(path, tests)
    return tests


def main():
    efa.require(PYTHON)
    if not os.path.exists(SHIPPED + "/run_tests.py"):
        pingpong.skip("python3-pyverbs is not installed")
    with tempfile.TemporaryDirectory() as folder:
        tests = unpack(folder)
        said = efa.run(PYTHON, str(tests / "run_tests.py"), "--dev", "weft0",
                       "--port", "1", "--gid", "0", "-v", "-k", "test_efa")
    ran = re.search(r"^Ran (\d+) tests", said, re.M)
    if not ran or int(ran[1]) < 16 or " ... skipped" in said:
        pingpong.fail(f"not all of them ran:\n{said}")


main()
