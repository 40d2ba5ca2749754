# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts that are network namespaces, with a link between them."""

import subprocess


def inside(pid):
    """The words that run a command on the host of @pid."""
    return ["nsenter", "-t", str(pid), "-n"]


def make(stack, *addresses):
    """Two processes that hold a network each; the link goes with them. Their
    pids."""
    pids = []
    for _ in addresses:
        holder = stack.enter_context(subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep 1000"],
            stdout=subprocess.PIPE))
        stack.callback(holder.kill)
        holder.stdout.readline()
        pids.append(holder.pid)
    subprocess.run(["ip", "link", "add", "eth0", "netns", str(pids[0]), "type",
                    "veth", "peer", "name", "eth0", "netns", str(pids[1])],
                   check=True, stdin=subprocess.DEVNULL)
    for pid, address in zip(pids, addresses):
        for words in (["link", "set", "lo", "up"],
                      ["addr", "add", f"{address}/24", "dev", "eth0"],
                      ["link", "set", "eth0", "up"]):
            subprocess.run([*inside(pid), "ip", *words], check=True)
    return pids
