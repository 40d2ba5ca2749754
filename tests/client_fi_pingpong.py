# SPDX-License-Identifier: BSD-2-Clause
"""Debian's fi_pingpong over weft: the server without a node name, the client
with the loopback address and with an address of the node, all sizes, both kinds
of messages. The data is checked."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import pingpong  # noqa: E402


def expect(rows, sizes=None, messages=None, at_least=1):
    if len(rows) < at_least or \
            (sizes and [r[0] for r in rows] != sizes) or \
            (messages and {r[1] for r in rows} != {messages}):
        pingpong.fail(f"unexpected table: {rows}")


def main():
    pingpong.require_provider()
    if not shutil.which("fi_pingpong"):
        pingpong.skip("fi_pingpong is not installed")
    rows = pingpong.run("127.0.0.1", ["-m", "msg", "-S", "all", "-I", "3",
                                      "-c"])
    expect(rows, messages="3", at_least=20)
    rows = pingpong.run("127.0.0.1", ["-m", "tagged", "-S", "all", "-I", "10"])
    expect(rows, messages="10", at_least=20)
    for size, name in (("1", "1"), ("64", "64"), ("16384", "16k"),
                       ("1048576", "1m")):
        rows = pingpong.run("localhost", ["-m", "tagged", "-S", size, "-I",
                                          "10", "-c"])
        expect(rows, sizes=[name], messages="10")
    rows = pingpong.run("127.0.0.1", ["-S", "64", "-I", "300"])
    expect(rows, sizes=["64"], messages="300")
    address = pingpong.own_address()
    if address:
        rows = pingpong.run(address, ["-m", "tagged", "-S", "all", "-I", "3"])
        expect(rows, messages="3", at_least=20)
    # Large messages without CMA.
    rows = pingpong.run("127.0.0.1", ["-S", "1048576", "-I", "20", "-c"],
                        env={"FI_WEFT_CMA": "0"})
    expect(rows, sizes=["1m"])


main()
