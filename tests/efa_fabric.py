# SPDX-License-Identifier: BSD-2-Clause
"""The efa provider of Debian's libfabric, unchanged, on the software EFA
device: fi_info finds it, and fi_pingpong exchanges messages of all sizes, with
the data checked, over reliable datagrams (all of EFA's RDM protocols) and over
plain ones."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import efa  # noqa: E402
import pingpong  # noqa: E402


def run(words, at_least, env=None):
    words = ["fi_pingpong", "-p", "efa", "-c", *words]
    said = efa.pair([*words, "-B", "PORT"], [*words, "-P", "PORT", "127.0.0.1"],
                    env)
    if len(pingpong.table(said)) < at_least:
        pingpong.fail(f"{' '.join(words)}:\n{said}")


def main():
    efa.require("fi_info", "fi_pingpong")
    said = efa.run("fi_info", "-p", "efa")
    for name in ("weft0-rdm", "weft0-dgrm"):
        if name not in said:
            pingpong.fail(f"fi_info does not list {name}:\n{said}")
    run(["-e", "rdm", "-m", "msg", "-S", "all", "-I", "2"], 20)
    run(["-e", "rdm", "-m", "tagged", "-S", "262144", "-I", "5"], 1)
    run(["-e", "dgram", "-S", "4096", "-I", "10"], 1)


main()
