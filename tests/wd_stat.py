#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One program in zlib's API, unchanged, served by the libraries, by a driver that
is built out of tree, by the software device and by the GPU driver (with the
libcuda of the tests): `weft stat` shows which driver did its jobs, how many bytes
and how many copies. A program that closes all descriptors works on, unseen; one
that forks has counters of its own in the child."""

import json
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ["WEFT_BUILD"])
SRC = os.environ["WEFT_SRC"]
LIBRARY = os.path.join(BUILD, "src", "libweft-z.so.1")
WEFT = os.path.join(BUILD, "tools", "weft")
CUDA = os.path.join(BUILD, "drivers", "cuda")
FAKE = os.path.join(CUDA, "libcuda-test.fake")

DATA = b"".join(b"line %d of the input of a program\n" % (i * i % 65537)
                for i in range(20000))
# To pinned memory and back; to reserved memory, from there to memory that no client
# can change meanwhile, and back both ways.
CUDA_COPIES, DEVICE_COPIES = 1, 2
PLAIN = 3 << 20  # decompressed, more than a page of counters is made for

# Each word on stdin is done, then answered.
PROGRAM = """
import ctypes, os, sys, zlib
data = open(sys.argv[1], "rb").read()
level = int(sys.argv[2])
for word in sys.stdin:
    word = word.strip()
    if word == "pack":
        good = zlib.decompress(zlib.compress(data, level)) == data
    elif word == "unpack":
        plain = bytes(%d)
        good = zlib.decompress(zlib.compress(plain, 0)) == plain
    elif word == "uncompress":
        # zlib's call for a whole stream, which python does not use itself.
        call = ctypes.CDLL(None).uncompress
        packed, room = zlib.compress(data, level), len(data) + 100
        out, size = bytearray(room), ctypes.c_ulong(room)
        place = (ctypes.c_char * room).from_buffer(out)
        good = not call(place, ctypes.byref(size), packed,
                        ctypes.c_ulong(len(packed))) and \
            out[:size.value] == data
        # What is damaged is so for everybody; what does not fit does not.
        bad = packed[:5000] + b"!!!" + packed[5003:]
        good = good and call(place, ctypes.byref(size), bad,
                             ctypes.c_ulong(len(bad))) in (-3, -5)
        size.value = 1000
        good = good and call(place, ctypes.byref(size), packed,
                             ctypes.c_ulong(len(packed))) == -5
    elif word == "close":
        os.closerange(3, 1024)
        mine = os.open("/dev/null", os.O_RDONLY)
        good = zlib.decompress(zlib.compress(data, level)) == data
        os.fstat(mine)
    elif word == "fork":
        # The child goes on; the parent waits for it and ends.
        if os.fork():
            os._exit(bool(os.wait()[1]))
        good = True
    print(os.getpid() if good else "bad", flush=True)
""" % PLAIN


def fail(why):
    print(why)
    sys.exit(1)


def shown(pid):
    """{driver: counters} as `weft stat` has them."""
    done = subprocess.run([WEFT, "stat", "--json", "--pid", str(pid)],
                          capture_output=True, text=True, timeout=60)
    rows = json.loads(done.stdout)["devices"]
    for row in rows:
        if row["kind"] != "driver" or row["pid"] != pid or \
                not row["command"].startswith("python"):
            fail(f"whose page is it? {row}")
    return {row["address"]: row["counters"] for row in rows}


def drivers_here():
    done = subprocess.run([WEFT, "info", "--json"], capture_output=True,
                          text=True, timeout=60)
    facts = json.loads(done.stdout)
    return {row["name"] for row in facts["compression"]["drivers"]}


class Program:
    def __init__(self, path, level, env):
        self.child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, path, str(level)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": LIBRARY, **env})

    def do(self, word):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().strip()
        if not answer.isdigit():
            fail(f"{word}: {answer!r}, {self.child.poll()}")
        return int(answer)

    def end(self):
        self.child.stdin.close()
        if self.child.wait(60):
            fail(f"it ended with {self.child.returncode}")


def copies(counters, times):
    """Of a program that compressed once and decompressed that. Python gives room
    for 16 KiB at first, so the library keeps the packed bytes, and copies the plain
    ones to python later: what the driver was given in both jobs, together. The
    driver itself copies @times what goes in and out, and with the packed bytes the
    checksum behind them, which it is given, too."""
    kept = counters["bytes_in"]
    return kept + times * (counters["bytes_in"] + counters["bytes_out"] + 4)


def check_driver(path, name, level, env, times=0):
    """@name of None: whichever library is best here, which compresses; a driver
    that is named does both directions."""
    program = Program(path, level, env)
    pid = program.child.pid
    if shown(pid):
        fail(f"pages of a program that did nothing: {shown(pid)}")
    program.do("pack")
    before = shown(pid)
    found = name or next(iter(before), None)
    if list(before) != [found]:
        fail(f"{name} is to do it, and {before} did")
    counters = before[found]
    packed = counters["bytes_in"] - len(DATA)
    if counters["jobs"] != (2 if name else 1) or counters["failed"] or \
            counters["handed_on"] or counters["passed_over"] or \
            (0 < packed < len(DATA)) != bool(name):
        fail(f"{found}: {counters}")
    if counters["copied_bytes"] != (copies(counters, times) if name else 0):
        fail(f"{found} copies {copies(counters, times)}: {counters}")
    if not name and (packed or not 0 < counters["bytes_out"] < len(DATA)):
        fail(f"{found} compresses: {counters}")
    if name and not len(DATA) < counters["bytes_out"] <= len(DATA) + packed:
        fail(f"{found} does both: {counters}")
    program.do("pack")
    if shown(pid)[found]["bytes_in"] != 2 * counters["bytes_in"]:
        fail(f"{found} counts on: {shown(pid)}")
    text = subprocess.run([WEFT, "stat", "--pid", str(pid), "-i", "0.1"],
                          capture_output=True, text=True, timeout=60).stdout
    if not re.search(rf"{pid} {found} \(python", text):
        fail(f"no line of {found}: {text}")
    before = shown(pid)[found]
    program.do("uncompress")
    after = shown(pid)[found]
    made = after["bytes_out"] - before["bytes_out"]
    if (made > len(DATA)) != bool(name):
        fail(f"uncompress() by {found}: {after}, was {before}")
    program.end()
    return found


def check_life(path):
    """Decompression by weft itself, streams of the real zlib (level 0), children,
    and programs that close what they have not opened."""
    program = Program(path, 6, {})
    pid = program.child.pid
    program.do("pack")
    program.do("unpack")
    seen = shown(pid)
    if seen["weft"]["bytes_out"] != PLAIN + len(DATA) or \
            seen["weft"]["jobs"] != 2 or \
            seen["real zlib"]["jobs"] != 1 or \
            seen["real zlib"]["bytes_in"] != PLAIN:
        fail(f"without drivers: {seen}")
    parent, child = seen, program.do("fork")
    if child == pid or shown(child):
        fail(f"{child} has pages of {pid}: {shown(child)}")
    program.do("pack")
    by = next(name for name in parent if name not in ("weft", "real zlib"))
    if shown(child)[by]["jobs"] != 1 or shown(pid) != parent:
        fail(f"parent {shown(pid)}, was {parent}, child {shown(child)}")
    program.do("close")
    if by in shown(child):
        fail(f"a page without a descriptor: {shown(child)}")
    program.do("pack")
    program.child.stdin.close()
    program.child.wait(60)


def check_device(path, top):
    name = os.path.join(top, "devd")
    devd = subprocess.Popen([WEFT, "devd", "-s", name, "-d",
                             "zip-0,scenario=share"],
                            stdout=subprocess.PIPE, text=True)
    try:
        if not devd.stdout.readline().startswith("serving "):
            fail("weft devd does not start")
        check_driver(path, "device", 6, {
            "WD_COMP_DRIVER": "device", "WEFT_DEVD": name,
            "WEFT_SYSFS": "/nonexistent"}, DEVICE_COPIES)
    finally:
        devd.terminate()
        devd.wait(60)


def main():
    if not os.path.exists(LIBRARY):
        print("no libweft-z.so here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, "data")
        with open(path, "wb") as file:
            file.write(DATA)
        check_driver(path, None, 6, {})
        for name in drivers_here() & {"isal", "libdeflate"}:
            check_driver(path, name, 1, {"WD_COMP_DRIVER": name})
        subprocess.run([*os.environ.get("CC", "gcc").split(), "-shared",
                        "-fPIC", f"-I{SRC}/include", "-pthread", "-o",
                        os.path.join(top, "driver.so"),
                        os.path.join(SRC, "examples", "driver.c")],
                       check=True, timeout=60)
        check_driver(path, "example", 6, {"WD_DRIVER_PATH": top,
                                          "WD_COMP_DRIVER": "example"})
        check_device(path, top)
        if os.path.exists(FAKE):
            check_driver(path, "cuda", 1, {
                "WD_DRIVER_PATH": CUDA, "WD_CUDA_LIBRARY": FAKE,
                "WD_CUDA_NVRTC": FAKE, "WD_COMP_DRIVER": "cuda",
                "XDG_CACHE_HOME": "/dev/null/none"}, CUDA_COPIES)
        check_life(path)


main()
