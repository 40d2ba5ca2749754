# SPDX-License-Identifier: BSD-2-Clause
"""weft's endpoints on an EFA device, the one in software: the device is chosen by
itself where there is one, and messages of all sizes arrive, between two processes
of weft and between weft and the efa provider of Debian's libfabric, as server and
as client, whether weft uses the rings of the device or calls libibverbs."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import efa  # noqa: E402
import pingpong  # noqa: E402

DEVICE = "domain: weft0"


def check_choice():
    """The domain of the device comes first, unless the user says otherwise."""
    said = efa.run("fi_info", "-p", "weft")
    domains = [line.strip() for line in said.splitlines() if "domain:" in line]
    if not domains or domains[0] != DEVICE or "domain: lo" not in domains:
        pingpong.fail(f"not chosen by itself:\n{said}")
    said = efa.run("fi_info", "-p", "weft", env={"FI_WEFT_NIC": "tcp"})
    if DEVICE in said:
        pingpong.fail(f"FI_WEFT_NIC=tcp:\n{said}")
    said = efa.run("fi_info", "-p", "weft", "-a", "FI_SOCKADDR")
    if DEVICE in said or "domain: lo" not in said:
        pingpong.fail(f"socket addresses were asked for:\n{said}")
    said = efa.run("fi_info", "-p", "weft", "-v", env={"FI_WEFT_NIC": "efa"})
    if "domain: lo" in said or "fi_addr_efa://[fe80:" not in said:
        pingpong.fail(f"FI_WEFT_NIC=efa:\n{said}")
    # Nothing else is taken instead.
    done = subprocess.run(["fi_info", "-p", "weft"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, FI_WEFT_NIC="efa"), timeout=60)
    if not done.returncode or "domain:" in done.stdout:
        pingpong.fail(f"FI_WEFT_NIC=efa without a device:\n{done.stdout}")
    said = efa.run(efa.WEFT, "info")
    if "packets (efa)" not in said or "by the rings of the device" not in said:
        pingpong.fail(f"weft info does not name the device:\n{said}")
    said = efa.run(efa.WEFT, "info", env={"FI_WEFT_EFA_RINGS": "0"})
    if "by calls of libibverbs: FI_WEFT_EFA_RINGS is 0" not in said:
        pingpong.fail(f"weft info, without rings:\n{said}")


def ping(server, client, words, at_least, shm="0", rings="1"):
    words = ["-e", "rdm", "-c", *words]
    said = efa.pair(["fi_pingpong", "-p", server, *words, "-B", "PORT"],
                    ["fi_pingpong", "-p", client, *words, "-P", "PORT",
                     "127.0.0.1"],
                    {"FI_WEFT_NIC": "efa", "FI_WEFT_SHM": shm,
                     "FI_WEFT_EFA_RINGS": rings})
    if len(pingpong.table(said)) < at_least:
        pingpong.fail(f"{server} and {client}, {' '.join(words)}:\n{said}")


def main():
    pingpong.require_provider()
    efa.require("fi_info", "fi_pingpong")
    check_choice()
    every = ["-m", "tagged", "-S", "all", "-I", "2"]
    ping("weft", "weft", ["-m", "msg", "-S", "65536", "-I", "50"], 1, shm="1")
    ping("efa", "weft", every, 20)
    ping("weft", "efa", every, 20)
    ping("weft", "efa", ["-m", "tagged", "-S", "65536", "-I", "5"], 1,
         rings="0")


main()
