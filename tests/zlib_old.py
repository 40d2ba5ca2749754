# SPDX-License-Identifier: BSD-2-Clause
"""libweft-z.so with the zlib of older systems. Ubuntu 20.04 and RHEL 8 have
1.2.11, which lacks four functions. Bug: the library then refused all of it.

There is no old zlib here, so this test takes the installed one and makes those
functions impossible to find, by changing hashes in its symbol table.
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

LIBRARY = os.path.join(os.environ["WEFT_BUILD"], "src", "libweft-z.so.1")
# Since 1.2.12.
LATER = {b"crc32_combine_gen64", b"crc32_combine_gen", b"crc32_combine_op"}

USE = r"""
import ctypes, gzip, sys, zlib
z = ctypes.CDLL(sys.argv[1])
data = bytes(range(256)) * 2000
for level in range(10):
    assert zlib.decompress(zlib.compress(data, level)) == data
assert gzip.decompress(gzip.compress(data)) == data
for name in ("crc32_combine_gen", "crc32_combine_op", "crc32_combine"):
    getattr(z, name).restype = ctypes.c_ulong
one, two = data[:1000], data[1000:]
op = z.crc32_combine_gen(ctypes.c_long(len(two)))
want = zlib.crc32(data)
first, second = (ctypes.c_ulong(zlib.crc32(d)) for d in (one, two))
assert z.crc32_combine_op(first, second, ctypes.c_ulong(op)) == want
assert z.crc32_combine(first, second, ctypes.c_long(len(two))) == want
print("used", zlib.ZLIB_RUNTIME_VERSION)
"""


def real():
    out = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                         env={"PATH": "/sbin:/usr/sbin:/bin:/usr/bin"})
    for line in out.stdout.splitlines():
        if line.split()[:1] == ["libz.so.1"]:
            return pathlib.Path(line.split("=>")[1].strip())
    print("no libz.so.1 here")
    sys.exit(77)


def sections(elf):
    """Offset and size by name, of a 64-bit file."""
    at, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3a)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, at + i * size)
             for i in range(count)]
    names = heads[names][4]
    return {bytes(elf[names + h[0]:elf.index(0, names + h[0])]): h[4:6]
            for h in heads}


def without(elf, functions):
    """The library, where the loader does not find these functions."""
    elf = bytearray(elf)
    found = sections(elf)
    table = found[b".gnu.hash"][0]
    buckets, first, words, _ = struct.unpack_from("<IIII", elf, table)
    chain = table + 16 + words * 8 + buckets * 4
    symbols, size = found[b".dynsym"]
    strings = found[b".dynstr"][0]
    for i in range(first, size // 24):
        name = strings + struct.unpack_from("<I", elf, symbols + i * 24)[0]
        if bytes(elf[name:elf.index(0, name)]) in functions:
            # The lowest bit marks the end of a chain.
            elf[chain + (i - first) * 4] ^= 0x02
    return bytes(elf)


def run(library):
    env = {**os.environ, "LD_PRELOAD": LIBRARY, "WEFT_LIBZ": str(library)}
    done = subprocess.run([sys.executable, "-c", USE, LIBRARY], env=env,
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    # No function was missed.
    assert done.stderr == "", done.stderr
    return done.stdout


if not os.path.exists(LIBRARY):
    print("no libweft-z.so here")
    sys.exit(77)
given = real().read_bytes()
with tempfile.TemporaryDirectory() as tmp:
    path = pathlib.Path(tmp, "libz-old.so.1")
    path.write_bytes(without(given, LATER))
    print(run(path), end="")
    # A zlib that lacks more is reported, and refused.
    path.write_bytes(without(given, LATER | {b"inflateValidate"}))
    env = {**os.environ, "LD_PRELOAD": LIBRARY, "WEFT_LIBZ": str(path)}
    done = subprocess.run([sys.executable, "-c",
                           "import zlib; zlib.compress(b'x')"], env=env,
                          capture_output=True, text=True, timeout=100)
    assert done.returncode and "inflateValidate" in done.stderr, done
