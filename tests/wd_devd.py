# SPDX-License-Identifier: BSD-2-Clause
"""The command `weft devd`: it starts, prints where it listens, lists devices,
refuses a second daemon, takes over what a killed daemon left, ends at a signal
and leaves nothing behind; and `weft bench wd` runs."""

import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

WEFT = os.path.join(os.environ["WEFT_BUILD"], "tools", "weft")
# Short enough for `weft stat` to show it completely.
NAME = f"/tmp/wd-{os.getpid()}"


def start(*args):
    devd = subprocess.Popen([WEFT, "devd", *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    line = devd.stdout.readline()
    if not re.match("serving (1 device|[2-9][0-9]* devices) at ", line):
        devd.kill()
        raise AssertionError((line, devd.stderr.read()))
    return devd


def run(*args, **env):
    return subprocess.run([WEFT, *args], capture_output=True, text=True,
                          timeout=60, env={**os.environ, **env})


def stop(devd, sig=signal.SIGTERM):
    devd.send_signal(sig)
    out, err = devd.communicate(timeout=60)
    return devd.returncode, err


def check_plain():
    devd = start("-s", NAME, "-v", "-d", "zip-0,scenario=share,algs=copy+nop",
                 "-d", "crc-0,instances=2")
    shown = run("devd", "--list", WEFT_DEVD=NAME, WEFT_SYSFS="/nonexistent")
    assert shown.returncode == 0, shown
    for word in ("zip-0", "crc-0", "Share Domain", "SVA", "2 free",
                 f"{NAME}:zip-0"):
        assert word in shown.stdout, (word, shown.stdout)
    second = run("devd", "-s", NAME)
    assert second.returncode == 1 and "another one" in second.stderr, second
    pid = str(devd.pid)
    seen = json.loads(run("stat", "--json", "--pid", pid).stdout)
    assert not seen["endpoints"] and len(seen["devices"]) == 2, seen
    assert {device["address"] for device in seen["devices"]} == {
        f"{NAME}:zip-0", f"{NAME}:crc-0"}, seen
    assert seen["devices"][0]["counters"]["channels"] == 0, seen
    table = run("stat", "--pid", pid, "-i", "0.1")
    assert table.returncode == 0 and "JOBS/s" in table.stdout and \
        f"{NAME}:zip-0" in table.stdout, table
    status, err = stop(devd)
    assert status == 0 and "clients" in err, (status, err)
    shown = run("devd", "--list", WEFT_DEVD=NAME, WEFT_SYSFS="/nonexistent")
    # Bug: it reported this and exited with 0.
    assert shown.returncode == 1 and "no devices" in shown.stderr, shown
    assert shown.stderr.endswith(f" at {NAME}\n"), shown


def check_asked():
    """--list with a socket looks there, and nowhere else."""
    with tempfile.TemporaryDirectory() as tmp:
        devd = start("-s", NAME, "-d", "zip-0")
        shown = run("devd", "--list", "-s", NAME, WEFT_SYSFS="/nonexistent")
        assert shown.returncode == 0 and f"{NAME}:zip-0" in shown.stdout, shown
        shown = run("devd", "--list", "-s", f"{tmp}/none", WEFT_DEVD=NAME,
                    WEFT_SYSFS="/nonexistent")
        assert shown.returncode == 1 and not shown.stdout and \
            shown.stderr.endswith(f" at {tmp}/none\n"), shown
        # Bug: so were accelerators, whatever the socket.
        device = pathlib.Path(tmp, "sys/class/uacce/hisi_zip-0")
        device.mkdir(parents=True)
        pathlib.Path(tmp, "dev").mkdir()
        pathlib.Path(tmp, "dev/hisi_zip-0").touch()
        for attribute, value in (("api", "hisi_qm_v2"), ("flags", "1"),
                                 ("available_instances", "9"),
                                 ("algorithms", "zlib"),
                                 ("region_mmio_size", "16384"),
                                 ("region_dus_size", "135168")):
            (device / attribute).write_text(f"{value}\n")
        there = {"WEFT_SYSFS": f"{tmp}/sys", "WEFT_DEV": f"{tmp}/dev"}
        shown = run("devd", "--list", WEFT_DEVD=NAME, **there)
        assert "zip-0" in shown.stdout and "hisi_" in shown.stdout, shown
        shown = run("devd", "--list", "-s", NAME, **there)
        assert shown.returncode == 0 and f"{NAME}:zip-0" in shown.stdout and \
            "hisi_" not in shown.stdout, shown
        # As far as names go, another socket.
        shown = run("devd", "--list", "-s", NAME[:-1], **there)
        assert shown.returncode == 1 and not shown.stdout, shown
        stop(devd)


def check_accounts():
    """What a user had done is shown, after its programs have ended."""
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "data"
        path.write_bytes(b"warp and weft " * 20000)
        devd = start("-s", NAME, "-d", "zip-0,scenario=share")
        done = run("gzip", "-k", str(path), WEFT_DEVD=NAME,
                   WEFT_SYSFS="/nonexistent", WD_COMP_DRIVER="device")
        assert done.returncode == 0, done
        name = f"{NAME}:uid {os.getuid()}"
        device = f"{NAME}:zip-0"
        for _ in range(600):
            seen = json.loads(run("stat", "--json", "--pid",
                                  str(devd.pid)).stdout)["devices"]
            rows = {row["address"]: row for row in seen}
            # Rows are read one after the other, not at one instant.
            if name in rows and rows[name]["counters"]["jobs"] and \
                    not rows[name]["counters"]["channels"] and \
                    not rows[device]["counters"]["channels"]:
                break
            time.sleep(0.1)
        user = rows[name]
        assert user["kind"] == "user" and user["counters"]["jobs"] > 0, rows
        assert user["counters"] == rows[device]["counters"], rows
        metrics = run("stat", "--openmetrics", "--pid", str(devd.pid)).stdout
        listed = run("devd", "--list", WEFT_DEVD=NAME,
                     WEFT_SYSFS="/nonexistent").stdout
        done = user["counters"]
        for line in (f"jobs       {done['jobs']} done, 0 failed, 0 wait",
                     f"bytes      {done['bytes_in']} in, "
                     f"{done['bytes_out']} out"):
            assert line in listed, listed
        # A user's jobs are a device's, under another name: sums are right.
        for kind, label in (("device", device), ("user", name)):
            line = re.search(rf'weft_{kind}_jobs_total{{[^}}]*{kind}='
                             rf'"{label}"}} (\d+)', metrics)
            assert line and int(line[1]) == user["counters"]["jobs"], metrics
        stop(devd)


def check_path():
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "devd.sock"
        devd = start("-s", str(path), "--mode", "0660")
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        second = run("devd", "-s", str(path))
        assert second.returncode == 1 and "another one" in second.stderr
        stop(devd, signal.SIGKILL)
        assert path.exists()  # what a killed one leaves
        devd = start("-s", str(path))
        shown = run("devd", "--list", WEFT_DEVD=str(path),
                    WEFT_SYSFS="/nonexistent")
        assert "weft_sva-0" in shown.stdout, shown
        status, _ = stop(devd, signal.SIGINT)
        assert status == 0
        assert not list(pathlib.Path(tmp).iterdir())


def check_not_a_socket():
    """A bug: whatever lay at the path was removed."""
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "letter"
        path.write_text("dear")
        done = run("devd", "-s", str(path))
        assert done.returncode == 1 and "no socket" in done.stderr, done
        assert path.read_text() == "dear"
        assert [file.name for file in pathlib.Path(tmp).iterdir()] == ["letter"]


def check_passed():
    """A socket that the service manager made, and keeps."""
    with tempfile.TemporaryDirectory() as tmp, \
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = f"{tmp}/devd.sock"
        listener.bind(path)

        def activate(*args, count=1):
            # LISTEN_PID is the pid of the program itself.
            return subprocess.Popen(
                ["sh", "-c", 'fd=$1; shift; LISTEN_PID=$$ exec "$@" 3<&"$fd"',
                 "sh", str(listener.fileno()), WEFT, "devd", *args],
                pass_fds=[listener.fileno()], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
                env={**os.environ, "LISTEN_FDS": str(count)})

        def refused(word, *args, **how):
            devd = activate(*args, **how)
            _, err = devd.communicate(timeout=60)
            assert devd.returncode == 2 and word in err, (devd.returncode, err)

        refused("does not listen")
        listener.listen(16)
        refused("2 sockets", count=2)
        refused("was passed", "-s", NAME)
        # Twice: the first one must leave the socket unchanged.
        for _ in range(2):
            client = subprocess.Popen(
                [WEFT, "devd", "--list"], stdout=subprocess.PIPE, text=True,
                env={**os.environ, "WEFT_DEVD": path,
                     "WEFT_SYSFS": "/nonexistent"})
            devd = activate()
            line = devd.stdout.readline()
            assert line.endswith(f"at {path}\n"), line
            out, _ = client.communicate(timeout=60)
            assert "weft_sva-0" in out, out
            status, _ = stop(devd)
            assert status == 0
            assert os.listdir(tmp) == ["devd.sock"]


def check_reload():
    """SIGHUP reads the file again; a mistake in it changes nothing."""
    with tempfile.TemporaryDirectory() as tmp:
        file = pathlib.Path(tmp) / "devd.conf"
        file.write_text("# ours\n\nclients 9\ndevice = first-0,instances=3\n")
        devd = start("-s", NAME, "--config", str(file))

        def again(text, said):
            file.write_text(text)
            devd.send_signal(signal.SIGHUP)
            line = ""
            while said not in line:
                line = devd.stderr.readline()
                assert line, (text, said)
            return run("devd", "--list", WEFT_DEVD=NAME,
                       WEFT_SYSFS="/nonexistent").stdout

        shown = again("device first-0,instances=5  # more\nallow-sva\n"
                      "device other-0,scenario=share\n", "again")
        assert "other-0" in shown and "5 free" in shown, shown
        for text in ("clients many\n", "nonsense 1\n", "list\n",
                     "socket /x\n", "device a/b\n"):
            assert again(text, "stay as they were") == shown, text
        shown = again("workers 5\ndevice first-0,instances=7\n", "restart")
        assert "7 free" in shown and "0 free" in shown, shown
        assert stop(devd)[0] == 0
        for text in ("clients many\n", "config x\n", "help\n"):
            file.write_text(text)
            done = run("devd", "-s", NAME, "--config", str(file))
            assert done.returncode == 2 and str(file) in done.stderr, done
        done = run("devd", "-s", NAME, "--config", tmp)
        assert done.returncode == 2 and "cannot read" in done.stderr, done
        # Bug: the limits were dropped when the file was not there for a moment.
        file.write_text("device first-0,instances=5\n")
        devd = start("-s", NAME, "--config", str(file))
        file.unlink()
        devd.send_signal(signal.SIGHUP)
        line = devd.stderr.readline()
        assert str(file) in line and "No such file" in line, line
        line = devd.stderr.readline()
        assert "stay as they were" in line, line
        shown = run("devd", "--list", WEFT_DEVD=NAME,
                    WEFT_SYSFS="/nonexistent").stdout
        assert "5 free" in shown and "weft_sva" not in shown, shown
        status, err = stop(devd, signal.SIGTERM)
        assert status == 0 and "again" not in err, (status, err)
        # A misspelt path would be a device without limits.
        done = run("devd", "-s", NAME, "--config", str(file))
        assert done.returncode == 2 and str(file) in done.stderr and \
            "No such file" in done.stderr, done
    # The service's own is written after it is installed, if at all.
    if not os.path.exists("/etc/weft/devd.conf"):
        devd = start("-s", NAME, "--config", "/etc/weft/devd.conf")
        status, err = stop(devd)
        assert status == 0 and "there is no /etc/weft" in err, (status, err)
    # Without a file: the defaults.
    assert stop(start("-s", NAME), signal.SIGHUP)[0] == 0


def check_signals():
    """While clients are there, and twice."""
    devd = start("-s", NAME)
    client = subprocess.Popen([WEFT, "devd", "--list"],
                              stdout=subprocess.DEVNULL,
                              env={**os.environ, "WEFT_DEVD": NAME})
    for _ in range(2):
        devd.send_signal(signal.SIGTERM)
    devd.communicate(timeout=60)
    assert devd.returncode in (0, -signal.SIGTERM), devd.returncode
    client.wait(timeout=60)


def check_mistakes():
    for args in (["--nope"], ["--allow-uid", "root"], ["--allow-uid", ""],
                 ["--allow-uid", "1,"], ["--allow-uid", "-1"],
                 ["--user-memory", "x"], ["--user-clients", "0"], ["-d", "a/b"], ["-d", "a,scenario=x"],
                 ["-d", "a,algs=rsa"], ["-d", "a,color=red"], ["-d", "a,b"],
                 ["--depth", "100"], ["--list", "--socket", "/tmp/a:b"], ["--workers", "0"], ["--arena", "x"],
                 ["--mode", "9"], ["-d", "a", "-d", "a"], ["stray"],
                 ["--cpu", "-1"]):
        done = run("devd", *args)
        assert done.returncode == 2 and done.stderr, (args, done)
    done = run("devd", "--help")
    assert done.returncode == 0 and "--client-memory" in done.stdout
    done = run("devd", "-s", "/nonexistent/x")
    assert done.returncode == 1 and "cannot serve" in done.stderr, done


def children(pid):
    found = []
    for stat_file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat_file.read_text("utf-8")
        except OSError:
            continue  # it has ended
        if text.rsplit(")", 1)[1].split()[1] == str(pid):
            found.append(stat_file.parent.name)
    return found


def check_interrupt():
    """Bug: an empty file stayed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with tempfile.TemporaryDirectory() as tmp, subprocess.Popen(
                [WEFT, "bench", "wd", "-r", "1000", "-t", "100000", "--json",
                 f"{tmp}/out.json"], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL) as bench:
            # They are started after the file was opened.
            while len(children(bench.pid)) < 2:
                assert bench.poll() is None
                time.sleep(0.01)
            assert os.listdir(tmp) == ["out.json"]
            bench.send_signal(number)
            assert bench.wait(60) == -number
            assert not os.listdir(tmp), os.listdir(tmp)


def check_bench():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "out.json")
        done = run("bench", "wd", "-r", "2", "-n", "200", "--json", path)
        assert done.returncode == 0, done
        assert "empty job" in done.stdout, done
        with open(path, encoding="utf-8") as file:
            out = json.load(file)
        # Facts, not timings: no copy of reserved memory, one of other memory.
        assert out["copies"] == {"SVA": [0, 0, 1, 1],
                                 "Share Domain": [0, 0, 1, 1],
                                 "NOIOMMU": [0, 0, 1, 1]}, out["copies"]
        assert len(out["empty_job_ns"]) == 2
        # A bug: on a busy machine it ran for minutes without a word.
        done = run("bench", "wd", "-r", "1000", "-t", "1", "--json", path)
        assert "left out" in done.stdout, done
        with open(path, encoding="utf-8") as file:
            assert 0 < len(json.load(file)["empty_job_ns"]) < 1000
    check_interrupt()
    for args in (["--nope"], ["-r", "0"], ["--cpus", "1"], ["stray"]):
        done = run("bench", "wd", *args)
        assert done.returncode == 2, (args, done)
    assert run("bench", "wd", "--help").returncode == 0


START = time.monotonic()
check_plain()
check_asked()
check_accounts()
check_path()
check_not_a_socket()
check_passed()
check_reload()
check_signals()
check_mistakes()
check_bench()
print(f"{time.monotonic() - START:.1f} s")
sys.exit(0)
