#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The driver cuda in the command: other programs understand its gzip files, and
it understands theirs, with the libcuda of the tests; behind weft devd it serves
programs that have no CUDA; damaged files are refused; without a GPU the driver
is not used, and only `weft info` says so."""

import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

BUILD = os.path.abspath(os.environ["WEFT_BUILD"])
WEFT = os.path.join(BUILD, "tools", "weft")
DRIVER = os.path.join(BUILD, "drivers", "cuda")
FAKE = os.path.join(DRIVER, "libcuda-test.fake")

DATA = b"".join(b"line %d of the input of a GPU\n" % (i * i % 65537)
                for i in range(100000))


def fail(why):
    print(why)
    sys.exit(1)


def run(*args, gpu=True, ok=True, **more):
    env = {**os.environ, "WD_DRIVER_PATH": DRIVER,
           "XDG_CACHE_HOME": more.pop("cache", "/dev/null/none")}
    env.pop("WD_CUDA_LIBRARY", None)
    env.update({name: more.pop(name) for name in list(more)
                if name.startswith(("WD_", "WEFT_"))})
    if gpu:
        env.update({"WD_CUDA_LIBRARY": FAKE, "WD_CUDA_NVRTC": FAKE})
    done = subprocess.run([WEFT, *args], capture_output=True, timeout=120,
                          env=env, **more)
    if ok is not None and (done.returncode == 0) != ok:
        fail(f"{args}: {done.returncode}\n{done.stderr.decode()[-3000:]}")
    return done


def bgzf(data, size=65280):
    """As the SAM specification has it, with its empty member at the end."""
    out = b""
    for at in [*range(0, len(data), size), len(data)]:
        piece = data[at:at + size]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = packer.compress(piece) + packer.flush()
        out += struct.pack("<4BI2BH2B2H", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67,
                           2, len(body) + 25) + body
        out += struct.pack("<2I", zlib.crc32(piece), len(piece))
    return out


def check_gunzip(folder):
    path = os.path.join(folder, "file.gz")
    packed = bgzf(DATA)
    for name, text in ("bgzf", packed), ("index", None):
        if text is None:
            with open(path[:-3], "wb") as file:
                file.write(DATA)
            run("gzip", "-kf6", path[:-3])
        else:
            with open(path, "wb") as file:
                file.write(text)
        done = run("gunzip", "-c", "--stats", "--driver", "cuda", path)
        if done.stdout != DATA:
            fail(f"{name}: other bytes")
        if b"driver cuda" not in done.stderr:
            fail(f"{name}: by whom? {done.stderr}")
        # Cost decides: the first groups go to the device, and the output is the
        # same by whoever it is.
        done = run("gunzip", "-c", "--stats", path, WD_COMP_CONSIDER="cuda")
        if done.stdout != DATA or \
                (b"driver cuda" in done.stderr) != (name == "bgzf"):
            fail(f"{name}, by cost: {done.stderr}")
        with open(path, "rb") as file:
            good = file.read()
        # Damage within a member, in a checksum, in a length.
        for at in len(good) // 2, len(good) - 8 - 28 * (name == "bgzf"):
            with open(path, "wb") as file:
                file.write(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            done = run("gunzip", "-c", "--driver", "cuda", path, ok=False)
            if b"damaged" not in done.stderr:
                fail(f"{name}: {done.stderr}")


def check_gzip(folder):
    path = os.path.join(folder, "more")
    with open(path, "wb") as file:
        file.write(DATA)
    done = run("gzip", "-kf1", "--stats", "--driver", "cuda", path)
    if b"driver cuda" not in done.stderr:
        fail(f"by whom? {done.stderr}")
    with open(path + ".gz", "rb") as file:
        packed = file.read()
    if gzip.decompress(packed) != DATA:
        fail("python reads other bytes")
    if len(packed) > 1.1 * len(gzip.compress(DATA, 1)):
        fail(f"{len(packed)} bytes are too many")
    if run("gunzip", "-c", "--driver", "cuda", path + ".gz").stdout != DATA:
        fail("by itself: other bytes")


ZLIB = """
import sys, zlib
data = sys.stdin.buffer.read()
if zlib.decompress(zlib.compress(data, 1)) != data:
    sys.exit("not the same again")
# It is loaded when a job comes to the driver, and not before.
maps = open("/proc/self/maps").read()
sys.stdout.write(str("libcuda-test" in maps))
"""


def check_zlib():
    """A program of zlib's, unchanged."""
    for driver in "cuda", "isal":
        env = {**os.environ, "WD_DRIVER_PATH": DRIVER, "WD_CUDA_LIBRARY": FAKE,
               "WD_CUDA_NVRTC": FAKE, "WD_COMP_DRIVER": driver,
               "XDG_CACHE_HOME": "/dev/null/none",
               "LD_PRELOAD": os.path.join(BUILD, "src", "libweft-z.so.1")}
        done = subprocess.run([sys.executable, "-c", ZLIB], input=DATA,
                              capture_output=True, timeout=120, env=env)
        if done.returncode or done.stdout != b"%r" % (driver == "cuda"):
            fail(f"python's zlib with {driver}: {done}")


def counters_of(pid):
    """{driver: counters} of a process, as `weft stat` has them."""
    done = subprocess.run([WEFT, "stat", "--json", "--pid", str(pid)],
                          capture_output=True, text=True, timeout=120)
    return {row["address"]: row["counters"]
            for row in json.loads(done.stdout)["devices"]
            if row["kind"] == "driver" and row["pid"] == pid}


def check_devd(folder):
    """`weft devd` owns the GPU: a program of zlib's, unchanged, that has neither the
    plug-in nor CUDA is served by it. The data are one piece: those behind the first
    have a dictionary, which the GPU's deflate does not know."""
    data = DATA[:900000]
    name = os.path.join(folder, "devd")
    gpu = {"WD_DRIVER_PATH": DRIVER, "WD_CUDA_LIBRARY": FAKE,
           "WD_CUDA_NVRTC": FAKE, "WD_COMP_DRIVER": "cuda",
           "XDG_CACHE_HOME": "/dev/null/none"}
    devd = subprocess.Popen([WEFT, "devd", "-s", name], text=True,
                            stdout=subprocess.PIPE, env={**os.environ, **gpu})
    try:
        if not devd.stdout.readline().startswith("serving "):
            fail("weft devd does not start")
        if counters_of(devd.pid):
            fail(f"before any job: {counters_of(devd.pid)}")
        env = {**os.environ, "WEFT_DEVD": name, "WEFT_SYSFS": "/nonexistent",
               "WD_COMP_DRIVER": "device",
               "LD_PRELOAD": os.path.join(BUILD, "src", "libweft-z.so.1")}
        for variable in gpu:
            if variable != "WD_COMP_DRIVER":
                env.pop(variable, None)
        done = subprocess.run([sys.executable, "-c", ZLIB], input=data,
                              capture_output=True, timeout=120, env=env)
        if done.returncode or done.stdout != b"False" or done.stderr:
            fail(f"python's zlib by weft devd: {done}")
        served = counters_of(devd.pid)
    finally:
        devd.terminate()
        devd.wait(60)
    packed = served.get("cuda", {}).get("bytes_in", 0) - len(data)
    if list(served) != ["cuda"] or not 0 < packed < len(data) or \
            served["cuda"]["jobs"] != 2 or served["cuda"]["failed"] or \
            served["cuda"]["handed_on"] or \
            served["cuda"]["bytes_out"] != len(data) + packed:
        fail(f"both jobs were the GPU's: {served}")


def check_absence():
    done = run("info", gpu=False, ok=None)
    text = done.stdout.decode()
    if "cuda" not in text or "there is no such device here" not in text:
        fail(f"weft info says nothing of it: {text}")
    if "cuda" in done.stderr.decode():
        fail(f"it is no fault: {done.stderr}")
    done = run("gzip", "-1", gpu=False, input=DATA)
    if done.stderr or gzip.decompress(done.stdout) != DATA:
        fail(f"without a GPU: {done.stderr}")
    done = run("gzip", "-1", "--driver", "cuda", gpu=False, input=DATA,
               ok=False)


def check_node(folder):
    """Where the GPU is, as sysfs says, is part of the choice."""
    gpu = os.path.join(folder, "sys/bus/pci/drivers/nvidia/0000:17:00.0")
    os.makedirs(gpu)
    for node, said in ("1", True), ("-1", False):
        with open(os.path.join(gpu, "numa_node"), "w") as file:
            file.write(node + "\n")
        text = run("info", ok=None, WD_COMP_CONSIDER="cuda",
                   WEFT_SYSFS=os.path.join(folder, "sys")).stdout.decode()
        for line in "at NUMA node 1", "times are kept apart":
            if (line in text) != said:
                fail(f"{line}, node {node}: {text}")


def check_cache(folder):
    cache = os.path.join(folder, "cache")
    os.mkdir(cache)
    run("gzip", "-1", "--driver", "cuda", input=DATA, cache=cache)
    files = os.listdir(os.path.join(cache, "weft"))
    if len(files) != 1:
        fail(f"kept {files}")
    path = os.path.join(cache, "weft", files[0])
    # Code that others may have written is not used; invalid code is compiled
    # again.
    for mode, text in (0o666, b"theirs"), (0o600, b"broken"):
        with open(path, "wb") as file:
            file.write(text)
        os.chmod(path, mode)
        run("gzip", "-1", "--driver", "cuda", input=DATA, cache=cache)
        with open(path, "rb") as file:
            if file.read() == text:
                fail(f"{text} is still there")


if os.path.exists("/dev/nvidiactl"):
    print("there is a GPU")
    sys.exit(77)
with tempfile.TemporaryDirectory() as tmp:
    check_gunzip(tmp)
    check_gzip(tmp)
    check_zlib()
    check_devd(tmp)
    check_absence()
    check_node(tmp)
    check_cache(tmp)
