#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`weft devd` between a zlib program, which is not changed, and a driver: one that
crashes in submit() takes the device process with it, and the program's work is
done nevertheless, also after another device has taken its place; one that loses
jobs is named once by the device process, which serves on; a program in
namespaces of its own, as in a container, is served like others; and one that
cannot know whose device it is does not use it, and says so."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ["WEFT_BUILD"])
SRC = os.environ["WEFT_SRC"]
WEFT = os.path.join(BUILD, "tools", "weft")
LIBRARY = os.path.join(BUILD, "src", "libweft-z.so.1")

# CAN: what it does; LOST: jobs do not come back, else it crashes.
FAULTY = r"""
#include <weft/wd_comp_drv.h>
static int chan;
static int open_chan(void **c, struct wd_chan *ch, unsigned int can)
{ (void)ch; (void)can; *c = &chan; return 0; }
static void close_chan(void *c) { (void)c; }
static int submit(void *c, struct wd_comp_job *const *j, unsigned int n)
{ (void)c; (void)j; if (!LOST) *(volatile int *)8 = 1; return (int)n; }
static int poll(void *c, struct wd_comp_job **j, unsigned int n)
{ (void)c; (void)j; (void)n; return 0; }
static const struct wd_alg_comp table = { .name = "faulty", .node = -1,
	.can = CAN | WD_COMP_SIZED, .levels = 0x3fe,
	.min_window = 9, .version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp), .limits = { .in_flight = 4,
	.timeout_ms = 100 }, .open_chan = open_chan,
	.close_chan = close_chan, .submit = submit, .poll = poll };
static const struct wd_alg_comp *const tables[] = { &table, 0 };
const struct wd_driver wd_driver = { 1, sizeof(struct wd_driver), tables };
"""

PROGRAM = """
import sys, zlib
data = b"".join(b"line %d of a program\\n" % (i * i) for i in range(20000))
for line in sys.stdin:
    packed = zlib.compress(data, 1)
    if zlib.decompress(packed) != data:
        sys.exit("not the same again")
    print("done", flush=True)
"""


children = []


def fail(why):
    print(why)
    for child in children:
        child.kill()
    sys.exit(1)


def start_devd(path, *options, before=(), stderr=subprocess.DEVNULL, **env):
    devd = subprocess.Popen([*before, WEFT, "devd", "-s", path, *options],
                            text=True, stdout=subprocess.PIPE, stderr=stderr,
                            env={**os.environ, **env})
    children.append(devd)
    line = devd.stdout.readline()
    if not line.startswith("serving "):
        fail(f"devd: {line}")
    return devd


def start_program(path, *before, stderr=None):
    env = {**os.environ, "LD_PRELOAD": LIBRARY, "WEFT_DEVD": path,
           "WEFT_SYSFS": "/nonexistent", "WD_COMP_DRIVER": "device"}
    program = subprocess.Popen([*before, sys.executable, "-c", PROGRAM],
                               env=env, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=stderr)
    children.append(program)
    return program


def begin(program):
    program.stdin.write("go\n")
    program.stdin.flush()


def compress(program, when):
    begin(program)
    finish(program, when)


def finish(program, when):
    if program.stdout.readline() != "done\n":
        fail(f"{when}: the program has ended with {program.wait()}")


def end(program):
    program.stdin.close()
    if program.wait(timeout=60):
        fail(f"the program: {program.returncode}")


def served(pid):
    """Whether the device has done jobs. It counts them a little later."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done = subprocess.run([WEFT, "stat", "--json", "--pid", str(pid)],
                              capture_output=True, text=True, timeout=60,
                              check=True)
        if any(page["counters"]["jobs"] for page
               in json.loads(done.stdout)["devices"]
               if page["kind"] == "device"):
            return True
        time.sleep(0.05)
    return False


def build(folder, can, lost):
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-x", "c", "-",
                    "-shared", "-fPIC", f"-I{SRC}/include", f"-DCAN={can}",
                    f"-DLOST={lost}", "-o", os.path.join(folder, "faulty.so")],
                   input=FAULTY, text=True, check=True)
    return {"WD_DRIVER_PATH": folder, "WD_COMP_DRIVER": "faulty"}


def check_crash(folder):
    path = os.path.join(folder, "devd")
    for can in "WD_COMP_CAN_DEFLATE", "WD_COMP_CAN_INFLATE":
        devd = start_devd(path, **build(folder, can, 0))
        program = start_program(path)
        compress(program, f"the driver crashes, {can}")
        if devd.wait(timeout=60) != -signal.SIGSEGV:
            fail(f"devd: {devd.returncode}, {can}")
        compress(program, "there is no device")
        devd = start_devd(path)
        compress(program, "there is another device")
        if not served(devd.pid):
            fail("the other device is not used")
        end(program)
        devd.terminate()
        devd.wait(timeout=60)


def check_lost(folder):
    path = os.path.join(folder, "devd")
    env = build(folder, "(WD_COMP_CAN_DEFLATE|WD_COMP_CAN_INFLATE)", 1)
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        devd = start_devd(path, stderr=log, **env)
        programs = [start_program(path) for _ in range(2)]
        for _ in range(3):
            # At the same time: two workers may find it out.
            for program in programs:
                begin(program)
            for program in programs:
                finish(program, "the driver loses jobs")
        for program in programs:
            end(program)
        if not served(devd.pid):
            fail("the device that has the driver is not used")
        devd.terminate()
        if devd.wait(timeout=60):
            fail(f"devd: {devd.returncode}")
        log.seek(0)
        lines = log.read().splitlines()
    if len(lines) != 1 or "driver faulty " not in lines[0] or \
            "did not finish a job in time" not in lines[0]:
        fail(f"the log of the device: {lines}")


def apart(*namespaces):
    """The beginning of a command in such namespaces; none: there are none here."""
    before = ["unshare", *namespaces]
    if subprocess.run([*before, "true"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        print(f"not here: {' '.join(before)}")
        return None
    return before


def check_served(folder, before, options, who):
    """A program in namespaces of its own is served."""
    if not before:
        return
    path = os.path.join(folder, "devd")
    devd = start_devd(path, *options)
    program = start_program(path, *before)
    compress(program, who)
    if not served(devd.pid):
        fail(f"{who} is not served")
    end(program)
    devd.terminate()
    devd.wait(timeout=60)


def check_container(folder):
    """SVA needs the same PID namespace, but not the same /proc; other scenarios need
    neither. A user namespace that has a number for the device's user changes
    nothing."""
    own_pids = "--pid", "--fork", "--mount-proc"
    others = "--mount", "--net", "--ipc", "--uts"
    sva = "--device", "any-0"
    check_served(folder, apart(*others, *own_pids), (), "a container")
    check_served(folder, apart(*others, "--mount-proc"), sva,
                 "a container with the PID namespace of the device")
    user = "--user", "--map-root-user"
    check_served(folder, apart(*user, *others, *own_pids), (),
                 "a container with a user namespace")
    check_served(folder, apart(*user, *others), sva,
                 "a container with a user namespace and the device's PIDs")


def check_stranger(folder):
    """Where the user of the device has no number, nobody knows who listens: it is
    not used, also where the program's own user has none, and so seems to be the
    same. The program is told, and its work is done."""
    before = apart("--user")
    if not before:
        return
    path = os.path.join(folder, "devd")
    devd = start_devd(path, "--mode", "666")
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        # The namespace has no right to pass folders that are the user's alone.
        os.chmod(folder, 0o755)
        program = start_program(path, *before, stderr=log)
        compress(program, "the user of the device is not known")
        end(program)
        log.seek(0)
        lines = log.read().splitlines()
    if len(lines) != 1 or path not in lines[0] or \
            "has no number in the user namespace of this process" not in \
            lines[0] or "`weft devd` must run as" not in lines[0]:
        fail(f"the program says: {lines}")
    done = subprocess.run([*before, WEFT, "devd", "--list", "--socket", path],
                          capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode != 1 or "has no number" not in done.stderr:
        fail(f"weft devd --list: {done}")
    check_info(path, "weft_sva-0, weft_share-0, weft_noiommu-0")
    devd.terminate()
    if devd.wait(timeout=60):
        fail(f"devd: {devd.returncode}")
    check_info(path, "none that this user may use")
    check_strangers(folder, before)


def check_info(path, devices):
    """What `weft info` says of the device."""
    env = {**os.environ, "WEFT_DEVD": path, "WEFT_SYSFS": "/nonexistent"}
    done = subprocess.run([WEFT, "info", "--json"], env=env,
                          capture_output=True, text=True, timeout=60,
                          check=True)
    for driver in json.loads(done.stdout)["compression"]["drivers"]:
        if driver["name"] == "device" and \
                driver["devices"].startswith(devices):
            return
    fail(f"weft info: not '{devices}': {done.stdout}")


def check_strangers(folder, before):
    """Nor does a device that knows nobody let everybody in."""
    os.chmod(folder, 0o777)
    path = os.path.join(folder, "other")
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        devd = start_devd(path, "--mode", "666", before=before, stderr=log)
        done = subprocess.run([WEFT, "devd", "--list", "--socket", path],
                              capture_output=True, text=True, timeout=60,
                              check=False)
        devd.terminate()
        devd.wait(timeout=60)
        log.seek(0)
        lines = log.read()
    if done.returncode != 1 or "is not allowed here" not in lines:
        fail(f"a device that knows no user: {done}, {lines}")


for check in check_crash, check_lost, check_container, check_stranger:
    with tempfile.TemporaryDirectory() as tmp:
        check(tmp)
sys.exit(0)
