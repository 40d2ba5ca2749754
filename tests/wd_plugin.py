#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compression drivers as plug-ins: the example is built outside of the tree
with pkg-config, and python's zlib uses it unchanged; a plug-in that cannot be
used is reported once and skipped; a set-user-ID program loads none for its
user.

Its blocks have fixed codes, which no other driver chooses for such data, so the
output shows which driver made it.
"""

import errno
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

BUILD = os.path.abspath(os.environ["WEFT_BUILD"])
SRC = os.environ["WEFT_SRC"]
LIBRARY = os.path.join(BUILD, "src", "libweft-z.so.1")
WEFT = os.path.join(BUILD, "tools", "weft")
FIXED = 1  # BTYPE

DATA = b"".join(b"line %d of the input of a driver\n" % (i * i)
                for i in range(20000))

PROGRAM = """
import os, sys, zlib
data = sys.stdin.buffer.read()
if "driver.so" in open("/proc/self/maps").read():
    sys.exit("loaded before anybody has compressed")
def check(packed):
    if zlib.decompress(packed) != data:
        sys.exit("not the same again")
packed = zlib.compress(data, 6)
check(packed)
stream = zlib.compressobj(6)
cut = b"".join(stream.compress(data[i:i + 5000])
               for i in range(0, len(data), 5000)) + stream.flush()
check(cut)
if packed[2] >> 1 & 3 != cut[2] >> 1 & 3:
    sys.exit("one by the driver, one not")
pid = os.fork()
if not pid:
    # The parent's channel is not the child's.
    again = zlib.compress(data, 6)
    os._exit(0 if again == packed else 3)
if os.waitpid(pid, 0)[1]:
    sys.exit("the child failed")
maps = open("/proc/self/maps").read()
sys.stdout.write(f"{packed[2] >> 1 & 3} {'libwd.so.0' in maps} "
                 f"{'driver.so' in maps}")
"""

# Which driver does its job, and whether the example was loaded at all.
SETUID = r"""
#include <stdio.h>
#include <string.h>
#include <weft/wd_comp.h>
int main(void)
{
	static unsigned char in[100000], out[200000];
	struct wd_comp_ctx ctx = { .comp_level = 6 };
	size_t in_len = sizeof(in), out_len = sizeof(out);
	char line[4096];
	int loaded = 0;
	FILE *maps;

	if (wd_alg_deflate(&ctx, in, &in_len, out, &out_len))
		return 1;
	maps = fopen("/proc/self/maps", "r");
	if (!maps)
		return 2;
	while (fgets(line, sizeof(line), maps))
		loaded |= strstr(line, "/driver.so") != NULL;
	printf("%s %d\n", ctx.used, loaded);
	return 0;
}
"""

CALLER = r"""
#include <stdio.h>
#include <weft/wd_comp_drv.h>
int compress(void *dst, unsigned long *dst_len, const void *src,
	     unsigned long src_len);
static int work(struct wd_comp_job *job) { (void)job; return -19; }
static const struct wd_alg_comp table = { .name = "caller",
	.can = WD_COMP_CAN_DEFLATE, .deflate = work };
static const struct wd_alg_comp *const tables[] = { &table, 0 };
const struct wd_driver wd_driver = { 1, sizeof(struct wd_driver), tables };
__attribute__((constructor)) static void begin(void)
{
	static unsigned char in[50000], out[60000];
	unsigned long len = sizeof(out);
	int ret = compress(out, &len, in, sizeof(in));

	printf("%d %d\n", ret, wd_alg_comp_register(&table));
	fflush(stdout);
}
"""

# Two drivers with a device each.
TWO = r"""
#include <stddef.h>
#include <weft/wd_comp_drv.h>
#include <weft/wd_drv.h>
static int submit(void *c, struct wd_comp_job *const *j, unsigned int n)
{ (void)c; (void)j; (void)n; return -19; }
static int poll(void *c, struct wd_comp_job **j, unsigned int n)
{ (void)c; (void)j; (void)n; return -19; }
static int open_chan(void **c, struct wd_chan *ch, unsigned int can)
{ (void)c; (void)ch; (void)can; return -19; }
static void close_chan(void *c) { (void)c; }
static int never(void) { return -19; }
static int reserve(size_t size, void **va, uint64_t *dma)
{ (void)size; (void)va; (void)dma; return -12; }
static void release(void *va, size_t size) { (void)va; (void)size; }
static int node_5(void) { return 5; }
static int node_7(void) { return 7; }
#define DRIVER(N) { .name = "two-" N, .api = "two_" N, .node = -1, \
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED, .levels = 2, \
	.version = WD_COMP_DRV_VERSION, .size = sizeof(struct wd_alg_comp), \
	.limits = { .in_flight = 7, .src_max = 3 << 20, .dst_max = 5000, \
		.align = 64, .memory = WD_COMP_MEM_RESERVED }, \
	.submit = submit, .poll = poll, .open_chan = open_chan, \
	.close_chan = close_chan }
#define DEVICE(N, NODE) { .size = sizeof(struct wd_drv_dev), \
	.name = "two-" N "-0", .api = "two_" N, .algs = "deflate", \
	.node = NODE, .open = never, .reserve = reserve, .release = release }
static const struct wd_alg_comp a = DRIVER("a"), b = DRIVER("b");
static const struct wd_drv_dev dev_a = DEVICE("a", node_5);
static const struct wd_drv_dev dev_b = DEVICE("b", node_7);
static const struct wd_alg_comp *const tables[] = { &a, &b, NULL };
static const struct wd_drv_dev *const devs[] = { &dev_a, &dev_b, NULL };
const struct wd_driver wd_driver = { 1, sizeof(struct wd_driver), tables, devs };
"""

# Built when wd_driver had no devices, and tables of drivers no size. What follows
# wd_driver is something else: whoever takes it for devices crashes.
OLD = r"""
#include <string.h>
#define wd_driver wd_driver_of_today
#include <weft/wd_comp_drv.h>
#undef wd_driver
static int stored(struct wd_comp_job *job)
{
	size_t n = job->src_len;

	if (n > 65535 || job->dst_len < n + 5 || job->flush)
		return -95;
	job->dst[0] = 1;
	job->dst[1] = (uint8_t)n;
	job->dst[2] = (uint8_t)(n >> 8);
	job->dst[3] = (uint8_t)~n;
	job->dst[4] = (uint8_t)(~n >> 8);
	memcpy(job->dst + 5, job->src, n);
	job->consumed = n;
	job->produced = n + 5;
	return 0;
}
static const struct wd_alg_comp table = { .name = "old", .priority = 1,
	.node = -1, .can = WD_COMP_CAN_DEFLATE, .levels = 0x3fe,
	.min_window = 9, .deflate = stored };
static const struct wd_alg_comp *const tables[] = { &table, 0 };
const struct { uint32_t version, size; const struct wd_alg_comp *const *comp;
	long other; } wd_driver = { 1, 16, tables, 8 };
"""

BAD = {
    # name: [source, what is said of it]
    "empty.so": ["int nothing;", "no symbol wd_driver"],
    "later.so": ["""const struct wd_driver wd_driver = {
        WD_DRIVER_VERSION + 1, sizeof(struct wd_driver), 0 };""",
                 "later version"],
    "zeros.so": ["const struct wd_driver wd_driver;", "not filled in"],
    "table.so": ["""static const struct wd_alg_comp table = { .name = "bad",
        .can = WD_COMP_CAN_DEFLATE };
        static const struct wd_alg_comp *const tables[] = { &table, 0 };
        const struct wd_driver wd_driver = { 1, sizeof(struct wd_driver),
        tables };""", "lacks"],
    "taken.so": ["""static int work(struct wd_comp_job *job)
        { (void)job; return 0; }
        static const struct wd_alg_comp table = { .name = "zlib",
        .can = WD_COMP_CAN_DEFLATE, .deflate = work };
        static const struct wd_alg_comp *const tables[] = { &table, 0 };
        const struct wd_driver wd_driver = { 1, sizeof(struct wd_driver),
        tables };""", "another driver of that name"],
}


def fail(why):
    print(why)
    sys.exit(1)


def run(command, env=None, **more):
    done = subprocess.run(command, capture_output=True, timeout=120,
                          env={**os.environ, **(env or {})}, **more)
    if done.returncode:
        fail(f"{command}: {done.returncode}\n{done.stdout[-2000:]}\n"
             f"{done.stderr.decode()[-4000:]}")
    return done


def build(folder):
    """As a vendor would: the header and pkg-config, nothing else of ours. The
    installed weft-wd.pc is install_root's to try; this one says the same."""
    for name in ("driver.c", "Makefile"):
        shutil.copy(os.path.join(SRC, "examples", name), folder)
    with open(os.path.join(folder, "weft-wd.pc"), "w") as file:
        file.write(f"Name: weft-wd\nDescription: here\nVersion: 0\n"
                   f"Cflags: -I{SRC}/include\n")
    run(["make", "-C", folder, "driver.so"],
        {"CFLAGS": "-O2 -Wall -Wextra -Werror", "PKG_CONFIG_PATH": folder})


def compile_c(source, out, *flags):
    cc = os.environ.get("CC", "gcc").split()
    run([*cc, "-x", "c", "-", f"-I{SRC}/include", "-o", out, *flags],
        input=source.encode())


def check_python(folder):
    preload = {"LD_PRELOAD": LIBRARY}
    asked = {**preload, "WD_DRIVER_PATH": folder, "WD_COMP_DRIVER": "example"}
    command = [sys.executable, "-c", PROGRAM]
    said = run(command, asked, input=DATA)
    if said.stdout.decode() != f"{FIXED} True True" or said.stderr:
        fail(f"python by the example: {said.stdout} {said.stderr}")
    # Available, but not requested: the libraries are preferred.
    said = run(command, {**preload, "WD_DRIVER_PATH": folder}, input=DATA)
    if said.stdout.decode() != "2 True True":
        fail(f"python without: {said.stdout}")
    # Requested, but not available: reported once, and the work is done.
    said = run(command, {**preload, "WD_COMP_DRIVER": "example"}, input=DATA)
    if said.stdout.decode() != "2 True False" or \
            said.stderr.count(b"no driver of that name") != 1:
        fail(f"python without it: {said.stdout} {said.stderr}")


def check_command(folder):
    env = {"WD_DRIVER_PATH": folder, "WD_COMP_DRIVER": "example"}
    packed = run([WEFT, "gzip", "-p", "2", "-c"], env, input=DATA * 4).stdout
    if gzip.decompress(packed) != DATA * 4 or packed[10] >> 1 & 3 != FIXED:
        fail("weft gzip did not use it")
    if b"libwd.so.0" not in run(["readelf", "-d", WEFT]).stdout:
        fail("the command has a libwd of its own")


def check_info(folder, bad):
    env = {"WD_DRIVER_PATH": f"{bad}:{folder}:{folder}/none:here"}
    facts = json.loads(run([WEFT, "info", "--json"], env).stdout)
    drivers = {d["name"]: d for d in facts["compression"]["drivers"]}
    example = drivers.get("example")
    if not example or example["from"] != f"{folder}/driver.so" or \
            "is asked before it" not in (example["why_not"] or "") or \
            not example["can"].endswith("reaches any memory"):
        fail(f"weft info: {example}")
    if drivers["libdeflate"]["from"] != "built in":
        fail(f"weft info: {drivers}")
    problems = "\n".join(facts["problems"])
    for name, (_, why) in BAD.items():
        if f"{bad}/{name} is not used" not in problems or why not in problems:
            fail(f"weft info says nothing of {name}: {problems}")
    for folder_name in (f"{folder}/none", "here"):
        if f"{folder_name} is not used" not in problems:
            fail(f"weft info says nothing of {folder_name}: {problems}")


def check_bad(folder, bad):
    """Each is named once, and the good one behind them works."""
    said = run([sys.executable, "-c", PROGRAM],
               {"LD_PRELOAD": LIBRARY, "WD_DRIVER_PATH": f"{bad}:{folder}",
                "WD_COMP_DRIVER": "example"}, input=DATA)
    if not said.stdout.decode().startswith(str(FIXED)):
        fail(f"behind bad ones: {said.stdout} {said.stderr}")
    for name, (_, why) in BAD.items():
        lines = [line for line in said.stderr.decode().splitlines()
                 if f"/{name} " in line and why in line]
        if len(lines) != 1:
            fail(f"{name}: {why}: {said.stderr.decode()}")


def check_caller(top):
    """A plug-in that calls back while it is loaded does not stop the process:
    it compresses by the drivers before it, and is told that it must not
    register any."""
    folder = os.path.join(top, "caller")
    os.mkdir(folder)
    compile_c(CALLER, os.path.join(folder, "caller.so"), "-shared", "-fPIC")
    said = run([sys.executable, "-c", "import zlib; zlib.compress(b'0' * 999)"],
               {"LD_PRELOAD": LIBRARY, "WD_DRIVER_PATH": folder})
    if said.stdout.decode() != f"0 {-errno.EDEADLK}\n" or \
            said.stderr.count(b"must not call it while it is loaded") != 1:
        fail(f"a plug-in that calls back: {said.stdout} {said.stderr}")


def check_old(top):
    """A plug-in of before serves programs as it did."""
    folder = os.path.join(top, "old")
    os.mkdir(folder)
    compile_c(OLD, os.path.join(folder, "old.so"), "-shared", "-fPIC")
    said = run([sys.executable, "-c", "import sys, zlib; "
                "sys.stdout.buffer.write(zlib.compress(b'0' * 999))"],
               {"LD_PRELOAD": LIBRARY, "WD_DRIVER_PATH": folder,
                "WD_COMP_DRIVER": "old"})
    if zlib.decompress(said.stdout) != b"0" * 999 or \
            said.stdout[2] != 1 or said.stderr:
        fail(f"a plug-in of before: {said.stdout} {said.stderr}")


def check_two(top):
    """Each driver of a plug-in has the node of its device (bug: only the one
    with the first device had), and `weft info` says what they take."""
    folder = os.path.join(top, "two")
    os.mkdir(folder)
    compile_c(TWO, os.path.join(folder, "two.so"), "-shared", "-fPIC")
    facts = json.loads(run([WEFT, "info", "--json"],
                           {"WD_DRIVER_PATH": folder}).stdout)
    can = {d["name"]: d["can"] for d in facts["compression"]["drivers"]}
    for name, node in (("two-a", 5), ("two-b", 7)):
        if f"at NUMA node {node}" not in can[name]:
            fail(f"weft info: {name}: {can[name]}")
        if "7 jobs in flight on a channel, jobs of up to 3 MiB, room of up to " \
                "5000 bytes, memory aligned to 64 bytes, " \
                "reaches memory of its channels" not in can[name]:
            fail(f"weft info: {name}: {can[name]}")


def check_devd(folder, top):
    """A plug-in behind the device process serves who does not have it."""
    name = os.path.join(top, "devd")
    driver = {"WD_DRIVER_PATH": folder, "WD_COMP_DRIVER": "example"}
    devd = subprocess.Popen([WEFT, "devd", "-s", name],
                            stdout=subprocess.PIPE, text=True,
                            env={**os.environ, **driver})
    try:
        if not devd.stdout.readline().startswith("serving "):
            fail("weft devd does not start")
        packed = run([WEFT, "gzip", "-p", "1", "-c"],
                     {"WEFT_DEVD": name, "WEFT_SYSFS": "/nonexistent",
                      "WD_COMP_DRIVER": "device"}, input=DATA).stdout
    finally:
        devd.terminate()
        devd.wait(60)
    if gzip.decompress(packed) != DATA or packed[10] >> 1 & 3 != FIXED:
        fail("the device process did not use it")


def check_setuid(folder, top):
    """The user of such a program must not choose which code it runs: what is only
    loaded runs, too."""
    program = os.path.join(top, "setuid")
    shutil.copy(os.path.join(BUILD, "src", "libwd.so.0"), top)
    compile_c(SETUID, program, f"-L{top}", "-l:libwd.so.0",
              f"-Wl,-rpath,{top}")
    env = {"WD_DRIVER_PATH": folder, "WD_COMP_DRIVER": "example"}
    if run([program], env).stdout != b"example 1\n":
        fail("the program does not use the example")
    if os.geteuid() or os.statvfs(program).f_flag & os.ST_NOSUID:
        return
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o6755)
    for name in ("example", "zlib"):
        said = run([program], {**env, "WD_COMP_DRIVER": name}).stdout
        used, loaded = said.decode().split()
        if used in ("example", "zlib") or loaded != "0":
            fail(f"a set-user-ID program took a driver from its user: {said}")


def main():
    if not os.path.exists(LIBRARY) or not shutil.which("pkg-config"):
        print("no libweft-z.so here, or no pkg-config")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, bad = os.path.join(top, "good"), os.path.join(top, "bad")
        os.mkdir(folder)
        os.mkdir(bad)
        build(folder)
        for name, (source, _) in BAD.items():
            compile_c("#include <weft/wd_comp_drv.h>\n" + source,
                      os.path.join(bad, name), "-shared", "-fPIC")
        check_python(folder)
        check_command(folder)
        check_info(folder, bad)
        check_bad(folder, bad)
        check_caller(top)
        check_old(top)
        check_two(top)
        check_devd(folder, top)
        check_setuid(folder, top)


main()
