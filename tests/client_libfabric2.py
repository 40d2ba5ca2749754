# SPDX-License-Identifier: BSD-2-Clause
"""weft, built against libfabric 1.17, loaded by a libfabric 2.x: its fi_info
and fi_pingpong. WEFT_TEST_LIBFABRIC2 is the prefix it is installed under."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import pingpong  # noqa: E402


def main():
    pingpong.require_provider()
    prefix = os.environ.get("WEFT_TEST_LIBFABRIC2")
    if not prefix:
        pingpong.skip("WEFT_TEST_LIBFABRIC2 names no libfabric 2.x")
    env = {"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}
    done = subprocess.run([os.path.join(prefix, "bin", "fi_info"), "-p",
                           "weft", "-v"], text=True, check=False,
                          env={**os.environ, **env}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    for text in ("FI_TAGGED", "FI_EP_RDM", "name: weft", "FI_ORDER_SAS"):
        if done.returncode or text not in done.stdout:
            pingpong.fail(f"fi_info says nothing of {text}:\n{done.stdout}")
    if "weft;" in done.stdout:
        pingpong.fail(f"a layered weft:\n{done.stdout}")
    program = os.path.join(prefix, "bin", "fi_pingpong")
    for options in (["-m", "msg"], ["-m", "tagged", "-c"]):
        rows = pingpong.run("127.0.0.1", [*options, "-S", "all", "-I", "3"],
                            program, env)
        if len(rows) < 20:
            pingpong.fail(f"not all sizes: {rows}")


main()
