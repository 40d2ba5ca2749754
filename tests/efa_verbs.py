# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs for libibverbs on the software EFA device: ibv_devinfo
shows what the device is, perftest moves data over SRD, also where a packet of
the network is shorter than a message."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
import efa  # noqa: E402
import pingpong  # noqa: E402

SAYS = (r"hca_id:\s*weft0", r"vendor_id:\s*0x1d0f",
        r"vendor_part_id:\s*61345", r"state:\s*PORT_ACTIVE",
        r"GID\[\s*0\]:\s*fe80:")

# The last column of perftest's table is ignored, because it is a time.
RUNS = (("ib_send_bw", "8192"), ("ib_send_lat", "64"), ("ib_read_bw", "65536"))


def check_info():
    said = efa.run("ibv_devinfo", "-v")
    for pattern in SAYS:
        if not re.search(pattern, said):
            pingpong.fail(f"ibv_devinfo does not say {pattern}:\n{said}")
    if "weft0" not in efa.run("ibv_devices"):
        pingpong.fail("ibv_devices does not list weft0")


def check_traffic(runs):
    for program, size in runs:
        words = [program, "-c", "SRD", "-d", "weft0", "-x", "0", "-s", size,
                 "-n", "100", "-p", "PORT"]
        said = efa.pair(words, [*words, "127.0.0.1"])
        if not re.search(rf"^\s*{size}\s+100\s+[\d.]+", said, re.M):
            pingpong.fail(f"{program}: no result\n{said}")


def check_tool():
    """Errors of `weft efa` itself, and the status of what it runs."""
    efa.run("sh", "-c", "exit 7", status=7)
    efa.run("nothing-of-this-name", status=127)
    said = efa.run("ibv_devinfo", env={"WEFT_EFA_IFACE": "nosuch0"}, status=1)
    if "WEFT_EFA_IFACE" not in said:
        pingpong.fail(f"an interface that is not there:\n{said}")
    said = efa.run("ibv_devinfo", env={"FI_WEFT_KEY_FILE": "key"}, status=1)
    if "does not encrypt" not in said:
        pingpong.fail(f"with a key file:\n{said}")


def check_narrow():
    """Again where loopback is like an Ethernet, in a network of its own."""
    again = f"ip link set lo up mtu 1500; exec {sys.executable} {__file__} narrow"
    done = subprocess.run(["unshare", "--net", "sh", "-c", again], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=120)
    if done.returncode:
        pingpong.fail(f"with packets of 1500 bytes:\n{done.stdout}")


def main():
    efa.require("ibv_devinfo", "ib_send_bw", "unshare")
    if sys.argv[1:] == ["narrow"]:
        check_traffic((("ib_send_bw", "8192"),))
        return
    check_info()
    check_tool()
    check_traffic(RUNS)
    if os.geteuid() == 0:
        check_narrow()


main()
