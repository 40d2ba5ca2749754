# SPDX-License-Identifier: BSD-2-Clause
"""A page of counters made by hand (src/base/stats_defs.h): what another build,
or a file that only looks like a page, may show to `weft stat`."""

import fcntl
import os
import struct
import time

FILE = "weft-stats"
BYTES = 4096
MAGIC = 0x73746677
HEAD = struct.Struct("<IHHIIQ16s56s32x")
ITEM = struct.Struct("<24sQ")
F_ADD_SEALS = 1033
SHRINK, GROW = 2, 4


def make(counters, magic=MAGIC, layout=1, count=None, pid=None,
         kind=b"endpoint", name=b"192.0.2.7:4711"):
    items = b"".join(ITEM.pack(key.encode(), value)
                     for key, value in counters.items())
    head = HEAD.pack(magic, layout, len(counters) if count is None else count,
                     os.getpid() if pid is None else pid, 0,
                     int(time.time()), kind, name)
    return (head + items).ljust(BYTES, b"\0")


def publish(page, size=BYTES, seals=SHRINK | GROW, file=FILE):
    """The descriptor; whoever holds it open has an endpoint."""
    fd = os.memfd_create(file, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    os.pwrite(fd, page[:size], 0)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def change(fd, index, value):
    at = HEAD.size + index * ITEM.size + 24
    os.pwrite(fd, struct.pack("<Q", value), at)
