# SPDX-License-Identifier: BSD-2-Clause
"""The dissector for Wireshark. Its numbers agree with the headers of the
sources. Where tshark and the permission to capture are available, it dissects
completely what fi_pingpong sends over UDP and over TCP."""

import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "common"))
# pylint: disable=wrong-import-position
import pingpong  # noqa: E402

SRC = os.environ.get("WEFT_SRC", os.path.join(os.path.dirname(__file__), ".."))
LUA = os.path.join(SRC, "tools", "wireshark", "weft.lua")
OUTGOING = 4


def fail(text):
    print(text)
    sys.exit(1)


def read(*path):
    with open(os.path.join(SRC, *path), encoding="utf-8") as file:
        return file.read()


def enum(text, name, prefix):
    """{number: name without prefix} of an enum."""
    body = re.search(r"enum " + name + r" \{(.*?)\};", text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    found, number = {}, -1
    for word, value in re.findall(r"(\w+)\s*(?:=\s*(\w+))?\s*,", body):
        number = int(value, 0) if value else number + 1
        found[number] = word[len(prefix):]
    last = max(found)
    if found[last] in ("TYPES", "KINDS", "DATA_OPS", "STATUSES"):
        del found[last]
    return found


def table(lua, name):
    body = re.search(r"local " + name + r" = \{(.*?)\n\}", lua, re.S).group(1)
    return {int(n): word for n, word in re.findall(r'\[(\d+)\] = "(.*?)"',
                                                   body)}


def check_numbers():
    lua = read("tools", "wireshark", "weft.lua")
    udp = read("src", "nic", "udp", "engine", "packet_defs.h")
    tcp = read("src", "nic", "tcp", "frame_defs.h")
    wire = read("src", "wire", "packet_defs.h")
    nic = read("src", "nic", "wqe_defs.h")
    for ours, theirs in (
            (table(lua, "UDP_TYPES"), enum(udp, "wf_udp_type", "WF_UDP_")),
            (table(lua, "UDP_OPS"), enum(udp, "wf_udp_data_op", "WF_UDP_")),
            (table(lua, "TCP_WORDS"), enum(tcp, "wf_tcp_word", "WF_TCP_")),
            (table(lua, "TCP_KINDS"), enum(tcp, "wf_tcp_kind", "WF_TCP_")),
            (table(lua, "STATUSES"), enum(nic, "wf_nic_status", "WF_NIC_"))):
        if ours != theirs:
            fail(f"{ours}\nis not\n{theirs}")
    packets = {int(n): word for n, word in re.findall(
        r'(?:packet|request)\((\d+), "(\w+)"', lua)}
    for one, two, word in re.findall(r'message\((\d+), (\d+), "(\w+)"', lua):
        packets[int(one)] = word + "_MSGRTM"
        packets[int(two)] = word + "_TAGRTM"
    theirs = enum(wire, "wf_wire_type", "WF_WIRE_")
    if packets != theirs:
        fail(f"{packets}\nis not\n{theirs}")
    for text, name, versions in ((udp, "WF_UDP_VERSION", "UDP_VERSIONS"),
                                 (tcp, "WF_TCP_VERSION", "TCP_VERSIONS")):
        version = re.search(name + r" (\d+)", text).group(1)
        known = re.search(versions + r" = \{(.*?)\}", lua).group(1)
        if f"[{version}]" not in known:
            fail(f"{name} is {version}; the dissector knows {known}")
    check_layouts(lua, read("src", "wire", "packet.c"))


def check_layouts(lua, source):
    """Length and fields of each kind of RDM packet."""
    def rows(text, pattern, field):
        return {name: (int(header), sorted(re.findall(field, rest)))
                for name, header, rest in re.findall(pattern, text, re.S)}

    ours = rows(lua, r'(?:packet|request|message)\((?:\d+, )+"(\w+)", (\d+), '
                     r"(\{.*?)\)\n", r'\{ "(\w+)", (\d+), (\d+) \}')
    field = r"F\((\w+), (\d+),\s*(\d+)\)"
    theirs = rows(source, r"(?:PACKET|MESSAGE)\((\w+),\s*[\w |]+,\s*(\d+),"
                          r"(.*?)\),\n(?=\t\w|\n|\};)", field)
    theirs.update(rows(source, r'\.name = "(\w+)",.*?\.header = (\d+)(.*?)'
                               r"(?=\n\t\[|\n\n)", field))
    if len(theirs) < 20 or ours != theirs:
        fail(f"{ours}\nis not\n{theirs}")


class Capture:
    """What comes in at the loopback, in a file."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(3))
        self.socket.bind(("lo", 0))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # RCVBUFFORCE
        self.socket.settimeout(0.2)
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0,
                                    262144, 1))
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        count = 0
        while True:
            try:
                data, where = self.socket.recvfrom(1 << 17)
            except socket.timeout:
                if self.stop.is_set():
                    return
                continue
            if where[2] != OUTGOING:
                count += 1
                self.file.write(struct.pack("<IIII", 1, count, len(data),
                                            len(data)) + data)

    def end(self):
        self.stop.set()
        self.thread.join()
        self.file.close()
        self.socket.close()


def dissect(path):
    """A summary of each packet, and all its fields."""
    command = ["tshark", "-X", f"lua_script:{LUA}", "-r", path, "-P", "-V",
               "-o", "gui.column.format:P,%p,I,%i"]
    done = subprocess.run(command, text=True, check=False, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode or "Lua" in done.stderr or "Lua Error" in done.stdout:
        fail(f"{command}: {done.stderr}\n{done.stdout[:4000]}")
    return done.stdout


def check_traffic():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "capture")
        capture = Capture(path)
        try:
            for device, size in (("udp", "64"), ("udp", "100000"),
                                 ("tcp", "64"), ("tcp", "1048576")):
                pingpong.run("127.0.0.1", ["-m", "tagged", "-S", size, "-I",
                                           "2"],
                             env={"FI_WEFT_SHM": "0", "FI_WEFT_NIC": device})
        finally:
            capture.end()
        said = dissect(path)
    for pattern in (
            # UDP: handshake of the NICs, then of the provider, then data.
            r"weft +INIT version 4", "weft +COOKIE", "weft +ACCEPT",
            "weft +ACK ack=", r"DATA seq=\d+ SEND \d+ bytes \| HANDSHAKE",
            r"DATA seq=.*EAGER_TAGRTM msg_id=\d+ tag=0x\w+ 64 bytes",
            r"DATA seq=.*(MEDIUM|LONGREAD|RUNTREAD|LONGCTS)_TAGRTM",
            # TCP.
            r"HELLO version \d, channel SMALL", "WELCOME version",
            r"SEND \d+ bytes \| (HANDSHAKE|EAGER)",
            r"SEND \d+ bytes \| EAGER_TAGRTM msg_id=\d+ tag=0x\w+ 64 bytes",
            "channel BULK", "Length of the message: 1048576"):
        if not re.search(pattern, said):
            fail(f"no {pattern} in\n{said[:6000]}")
    # Nothing else uses UDP here.
    for bad in ("continuation", "Malformed", "cut off", r"(?m)^ *UDP \d+ "):
        found = re.search(bad, said)
        if found:
            fail(f"{bad} in\n{said[found.start():][:3000]}")


def main():
    check_numbers()
    if not shutil.which("tshark") or not shutil.which("fi_pingpong") or \
            os.geteuid() or "FI_PROVIDER_PATH" not in os.environ:
        print("no tshark, fi_pingpong, provider or right to capture: only the "
              "numbers were compared")
        return
    check_traffic()


main()
