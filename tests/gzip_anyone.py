# SPDX-License-Identifier: BSD-2-Clause
"""gzip files of other programs through `weft gunzip`: the same bytes and the
same result with every number of threads, for complete, truncated and damaged
files; their indexes; and the names by which other programs call their
decompressor.
"""

import gzip
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from common import corpus  # noqa: E402

WEFT = os.path.join(os.environ["WEFT_BUILD"], "tools", "weft")


def weft(*args, code=0, command="gunzip", **more):
    done = subprocess.run([WEFT, command, *map(str, args)], timeout=100,
                          capture_output=True, **more)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done


def plain_of(packed):
    """What zlib makes of it before the first error, and whether there is one."""
    out = b""
    while packed[:2] == b"\x1f\x8b":
        d = zlib.decompressobj(31)
        try:
            # Byte by byte near the end: an error must not discard output.
            for at in range(0, len(packed), 1 << 14):
                out += d.decompress(packed[at:at + (1 << 14)])
        except zlib.error:
            return out, True
        if not d.eof:
            return out, True
        packed = d.unused_data.lstrip(b"\0")
    return out, False


def bgzf(data):
    out = b""
    for at in range(0, len(data) + 1, 60000):
        raw = zlib.compressobj(6, 8, -15)
        part = data[at:at + 60000]
        body = raw.compress(part) + raw.flush()
        out += (b"\x1f\x8b\x08\x04" + bytes(6) + b"\x06\0BC\x02\0" +
                struct.pack("<H", len(body) + 25) + body +
                struct.pack("<II", zlib.crc32(part), len(part)))
    return out


def files():
    source = corpus.source()
    nested = gzip.compress(source, 6)
    return {
        "text": gzip.compress(source * 2, 4),
        "mixed": gzip.compress(corpus.mixed(2_000_000), 6),
        "stored": gzip.compress(nested + corpus.noise(500_000), 0),
        "nested": gzip.compress(nested + source, 6),
        "members": b"".join(gzip.compress(source[i:i + 997], 6)
                            for i in range(0, 300_000, 997)),
        "bgzf": bgzf(source),
        "zeros": gzip.compress(bytes(12_000_000), 6),
    }


def same_everywhere(tmp):
    for name, packed in files().items():
        want, bad = plain_of(packed)
        assert not bad
        path = tmp / "x.gz"
        path.write_bytes(packed)
        for threads in (1, 2, 5):
            p = f"-p{threads}"
            assert weft("-c", p, path).stdout == want, (name, threads)
            assert weft(p, input=packed).stdout == want, (name, threads)
            weft("-k", "-f", p, path)
            assert (tmp / "x").read_bytes() == want, (name, threads)
        # Its index works, whatever program made the file.
        weft("--index", path, command="gzip")
        assert weft("--range", "0-", path).stdout == want, name
        (tmp / "x.gz.wfi").unlink()


def damaged(tmp):
    rng = random.Random(11)
    packed = gzip.compress(corpus.source(), 6) + gzip.compress(b"more" * 999)
    path = tmp / "x.gz"
    for i in range(14):
        bad = bytearray(packed)
        if i % 2:
            bad = bad[:rng.randrange(20, len(bad))]
        else:
            bad[rng.randrange(20, len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        one = subprocess.run([WEFT, "gunzip", "-c", "-p1", path],
                             capture_output=True)
        want, error = plain_of(bytes(bad))
        assert one.returncode == (1 if error else 0), (i, one.stderr)
        # With zlib, the caller loses the output of the call that fails.
        assert one.stdout[:len(want)] == want, i
        for threads in (2, 4):
            out = tmp / "out"
            with open(out, "wb") as f:
                done = subprocess.run(
                    [WEFT, "gunzip", "-c", f"-p{threads}", path], stdout=f,
                    stderr=subprocess.PIPE)
            assert done.returncode == one.returncode
            assert done.stderr == one.stderr
            assert out.read_bytes() == one.stdout, (i, threads)


def output_goes_on(tmp):
    """A file that others write to before and after."""
    data = corpus.source()
    (tmp / "x.gz").write_bytes(gzip.compress(data, 6))
    script = "{ echo a; $W gunzip -c x.gz; echo b; $W gunzip -c x.gz; } "
    for to in ("> out", ">> out"):
        subprocess.run(["sh", "-c", script + to], cwd=tmp, check=True,
                       env={**os.environ, "W": WEFT})
        got = (tmp / "out").read_bytes()
        assert got.endswith(b"a\n" + data + b"b\n" + data)


def slow_pipe(tmp):
    """What has come in goes out, though more may follow; and an error ends it,
    though nothing more comes."""
    data = corpus.source()[:100_000]
    for threads in ("-p1", "-p3"):
        maker = zlib.compressobj(6, 8, 31)
        first = maker.compress(data) + maker.flush(zlib.Z_SYNC_FLUSH)
        p = subprocess.Popen([WEFT, "gunzip", threads], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        p.stdin.write(first)
        p.stdin.flush()
        got = b""
        while len(got) < len(data):
            got += os.read(p.stdout.fileno(), 1 << 16)
        assert got == data
        p.stdin.write(maker.compress(b"end") + maker.flush())
        p.stdin.close()
        assert p.stdout.read() == b"end"
        assert p.wait() == 0
        p = subprocess.Popen([WEFT, "gunzip", threads], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        p.stdin.write(first + b"\7" * 5000)
        p.stdin.flush()
        assert p.wait(60) == 1
        p.stdin.close()
        assert b"damaged" in p.stderr.read()


def index(tmp):
    data = corpus.source() * 2
    for packed in (gzip.compress(data, 6), bgzf(data),
                   gzip.compress(data[:9], 6) + gzip.compress(data[9:], 1)):
        path = tmp / "x.gz"
        path.write_bytes(packed)
        weft("--index", path, command="gzip")
        sidecar = tmp / "x.gz.wfi"
        assert sidecar.stat().st_size < len(packed) / 4
        for a, b in ((0, 0), (5, 10), (2_000_000, 2_100_000),
                     (len(data) - 7, len(data) - 1)):
            got = weft(f"--range={a}-{b}", path).stdout
            assert got == data[a:b + 1], (a, b, len(got))
        assert weft("--range", "2900000-", path).stdout == data[2900000:]
        assert weft("-c", path).stdout == data
        # One index with wrong contents, and one of another file.
        good = sidecar.read_bytes()
        for at in (9, 17, 41, 49, len(good) - 1):
            bad = bytearray(good)
            bad[at] ^= 4
            sidecar.write_bytes(bad)
            assert weft("-c", path).stdout == data, at
            assert weft("--range", "7-9", path).stdout == data[7:10], at
        sidecar.unlink()
        assert weft("--range", "2500000-2500009", path).stdout == \
            data[2500000:2500010]
    assert b"before it begins" in weft("--range", "9-3", path, code=1).stderr
    assert b"wants A-B" in weft("--range", "9:3", path, code=1).stderr
    # A range that ends behind the data returns what there is; one that begins
    # there is reported.
    beyond = f"{len(data) - 2}-{len(data) + 9}"
    assert weft("--range", beyond, path).stdout == data[-2:]
    for start in (len(data), len(data) + 7, 1 << 40):
        done = weft("--range", f"{start}-", path, code=1)
        assert f"has {len(data)} bytes" in done.stderr.decode(), done
    assert weft("--range", "0-", input=gzip.compress(b"")).stdout == b""
    # A file that is not an index is reported, and not used.
    for junk, what in ((b"junk", b"is no index"), (b"", b"is no index"),
                       (b"J" * 99, b"is no index"),
                       (b"WFINDEX1" * 9, b"another file")):
        sidecar.write_bytes(junk)
        done = weft("--range", "7-9", path)
        assert done.stdout == data[7:10] and what in done.stderr, done
        assert not weft("-tq", path).stderr
    sidecar.unlink()
    # Standard input has no index file next to it.
    before = set(os.listdir(tmp))
    done = weft("--index", command="gzip", code=1, input=gzip.compress(data),
                cwd=tmp)
    assert b"needs a file" in done.stderr and not done.stdout
    assert set(os.listdir(tmp)) == before
    # A file that has changed since is reported. Bug: it was not noticed if the
    # output became shorter or longer.
    good = gzip.compress(data, 6)
    path.write_bytes(good)
    weft("--index", path, command="gzip")
    for part in range(1, 20):
        packed = bytearray(good)
        packed[len(packed) * part // 20] ^= 1 << part % 8
        path.write_bytes(packed)
        done = subprocess.run([WEFT, "gunzip", "--range", "0-", path],
                              capture_output=True)
        assert done.returncode == 1, (part, done.stderr)


def names(tmp):
    data = corpus.source()
    packed = gzip.compress(data, 6)
    for name in ("igzip", "unpigz", "pigz", "gzip", "gunzip", "zcat"):
        (tmp / name).symlink_to(WEFT)
    (tmp / "x.gz").write_bytes(packed)

    def run(*args, **more):
        done = subprocess.run([str(tmp / args[0]), *args[1:]], cwd=tmp,
                              capture_output=True, timeout=100, **more)
        assert done.returncode == 0, done
        return done.stdout
    for args in (("igzip", "-d", "-c"), ("unpigz", "-d", "-c"), ("zcat",),
                 ("gunzip",), ("gzip", "-dc"), ("pigz", "-dc")):
        assert run(*args, input=packed) == data, args
        assert run(*args, "-c", "x.gz") == data, args
    assert gzip.decompress(run("igzip", "-3", "-c", input=data)) == data
    assert gzip.decompress(run("pigz", "-11", "-p2", input=data)) == data
    run("igzip", "-d", "x.gz")
    assert (tmp / "x.gz").exists() and (tmp / "x").read_bytes() == data


def levels(tmp):
    data = corpus.source()
    path = tmp / "x"
    path.write_bytes(data)
    size = {}
    for level in ("-0", "-6", "-9", "-11"):
        packed = weft(level, "-c", path, command="gzip").stdout
        assert gzip.decompress(packed) == data
        size[level] = len(packed)
    assert size["-0"] > len(data) > size["-6"] > size["-9"] > size["-11"]
    for n in (0, 1, 2, 100):
        ours = weft(input=data[:n], command="gzip").stdout
        assert len(ours) <= len(gzip.compress(data[:n], 6)) + 10
    (tmp / "x.gz").write_bytes(gzip.compress(data, 6, mtime=86400 * 365))
    fields = weft("-lvN", tmp / "x.gz", command="gzip").stdout.split()
    assert b"%08x" % zlib.crc32(data) in fields, fields
    assert b"%d" % len(data) in fields and b"Jan" in fields, fields


def the_same_bytes(tmp):
    data = corpus.source() + corpus.mixed(1_000_000)
    data = data[:2 << 20]  # a whole number of blocks
    path = tmp / "x"
    path.write_bytes(data)
    for level in ("-1", "-6"):
        want = weft("--reproducible", level, "-c", path, command="gzip").stdout
        assert gzip.decompress(want) == data
        for p in (1, 2, 5):
            args = ("--reproducible", level, f"-p{p}")
            assert weft(*args, command="gzip", input=data).stdout == want
            weft(*args, "-kf", path, command="gzip")
            assert (tmp / "x.gz").read_bytes() == want
    # One byte more at the beginning: most of the output is the same.
    one = weft("--rsyncable", "-c", path, command="gzip").stdout
    two = weft("--rsyncable", input=b"+" + data, command="gzip").stdout
    assert gzip.decompress(two) == b"+" + data
    half = len(one) // 2
    assert one[half:half + 1000] in two


def main():
    for test in (same_everywhere, damaged, output_goes_on, slow_pipe, index,
                 names, levels, the_same_bytes):
        with tempfile.TemporaryDirectory() as tmp:
            test(pathlib.Path(tmp))
        print(f"{test.__name__}: good", flush=True)


main()
