# SPDX-License-Identifier: BSD-2-Clause
"""Hosts on one machine: network namespaces joined by a bridge.

They are in their own PID and mount namespaces, so that nothing of them is left,
however this process ends.
"""

import json
import os
import subprocess
import sys

import job

INSIDE = "WEFT_TEST_HOSTS"
NETWORK = "10.98.7.0/24"
HERE = "10.98.7.254"
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
           "--mount-proc", "--propagation", "private"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


def enter():
    """Starts this program again where hosts can be made."""
    if INSIDE in os.environ:
        return
    done = subprocess.run([*UNSHARE, "ip", "link", "add", "type", "veth"],
                          check=False, stdin=subprocess.DEVNULL,
                          capture_output=True)
    if os.geteuid() or done.returncode:
        job.skip("no network namespaces here: that takes root and veth links")
    os.environ[INSIDE] = "1"
    os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, *sys.argv])


def carried():
    """Bytes that hosts have sent to each other, and to this process."""
    links = json.loads(subprocess.run(
        ["ip", "-s", "-j", "link", "show", "type", "veth"], check=True,
        stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout)
    return sum(link["stats64"]["rx"]["bytes"] for link in links)


def make(count, mtu=1500):
    """Hosts host0, host1 ...; this process is on the bridge between them."""
    subprocess.run(["mount", "-t", "tmpfs", "hosts", "/run"], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "br0", "mtu", str(mtu), "type", "bridge")
    ip("addr", "add", HERE + "/24", "dev", "br0")
    ip("link", "set", "br0", "up")
    for i in range(count):
        ip("netns", "add", f"host{i}")
        ip("link", "add", f"to{i}", "mtu", str(mtu), "type", "veth", "peer",
           "name", "eth0", "netns", f"host{i}")
        ip("link", "set", f"to{i}", "master", "br0")
        ip("link", "set", f"to{i}", "up")
        for words in (["link", "set", "lo", "up"],
                      ["addr", "add", f"10.98.7.{i + 1}/24", "dev", "eth0"],
                      ["link", "set", "eth0", "up", "mtu", str(mtu)]):
            ip("-n", f"host{i}", *words)
