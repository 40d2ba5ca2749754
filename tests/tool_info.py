# SPDX-License-Identifier: BSD-2-Clause
"""`weft info` agrees with fi_info and the system, shows settings as the
provider uses them, and suggests a remedy if the provider is missing.
tool_counters tests that message sizes use the protocols that it names."""

import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build"))
WEFT = BUILD / "tools" / "weft"
SRC = pathlib.Path(os.environ.get("WEFT_SRC", "."))
OURS = ("FI_PROVIDER", "FI_WEFT_")


def fail(text):
    print(text)
    sys.exit(1)


def environment(settings):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(OURS)}
    env.update({"LC_ALL": "C", "FI_PROVIDER_PATH": str(BUILD / "src")})
    env.update(settings)
    return {key: value for key, value in env.items() if value is not None}


def run(command, settings, code):
    done = subprocess.run(command, text=True, env=environment(settings),
                          check=False, timeout=60, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != code:
        fail(f"{command} {settings}: {done.returncode}, not {code}:\n"
             f"{done.stdout}{done.stderr}")
    return done.stdout


def info(settings=None, code=0, program=WEFT):
    return json.loads(run([program, "info", "--json"], settings or {}, code))


def text(settings=None, code=0, program=WEFT):
    return run([program, "info"], settings or {}, code)


def setting(facts, name):
    for one in facts["settings"]:
        if one["name"] == "FI_WEFT_" + name:
            return one
    return fail(f"no {name}: {facts['settings']}")


def check_provider():
    facts = info()
    if not facts["provider"]["found"] or facts["provider"]["path_from"] != \
            "FI_PROVIDER_PATH":
        fail(f"{facts['provider']}")
    if shutil.which("fi_info"):
        said = run(["fi_info", "-p", "weft"], {}, 0)
        if [one["domain"] for one in facts["provider"]["interfaces"]] != \
                re.findall(r"domain: (.*)", said):
            fail(f"{facts['provider']} is not\n{said}")
    addresses = [one["address"] for one in facts["provider"]["interfaces"]]
    if "127.0.0.1" not in addresses:
        fail(f"{addresses}")
    # Without a path it is found next to the program.
    facts = info({"FI_PROVIDER_PATH": None})
    if not facts["provider"]["found"] or \
            not os.path.samefile(facts["provider"]["path"], BUILD / "src"):
        fail(f"{facts['provider']}")


def check_settings_as_used():
    """The bugs: packet settings were shown as given, not as used (MTU=1000000,
    CONNECT_TIMEOUT=-1 as 18446744073709551615), CMA_MIN=8K was 4097, garbage
    and misspelt names passed without a word."""
    good = {"CMA_MIN": ("8K", "8192"), "CONNECT_TIMEOUT": ("2s", "2000"),
            "DEAD_TIMEOUT": ("2min", "120")}
    given = {"FI_WEFT_" + name: one[0] for name, one in good.items()}
    facts = info(given)
    for name, one in good.items():
        if setting(facts, name)["value"] != one[1]:
            fail(f"{setting(facts, name)}")
    if any("FI_WEFT" in line for line in facts["problems"]) or told(given):
        fail(f"{facts['problems']} {told(given)}")
    wrong = (("MTU", "1000000", "65536", "576 to 65536 bytes"),
             ("CONNECT_TIMEOUT", "-1", "5000", "not a time"),
             ("CMA_MIN", "8X", None, "not a number of bytes"),
             ("EAGER_MAX", "-1", None, "not a number of bytes"),
             ("RX_SIZE", "100", "128", "power of two"),
             ("SHM", "perhaps", "true", "neither true nor false"),
             ("IFACE", "nosuch0", "nosuch0", "no interface"),
             ("ALLOW_UID", "alice", None, "user numbers"),
             ("FAULT", "lose=1%", None, "is invalid"),
             ("CONECT_TIMEOUT", "", None, "FI_WEFT_CONNECT_TIMEOUT meant?"))
    given = {"FI_WEFT_" + one[0]: one[1] for one in wrong}
    facts = info(given, 1)
    said = text(given, 1)
    # Reported as a problem, at the setting, and by the provider itself.
    places = [facts["problems"],
              re.split(r"\n  (?=FI_WEFT_)", said[said.index("Settings"):]),
              told(given), told(given, "warn")]
    for name, value, used, why in wrong:
        for lines in places[:1] + places[2:] if not value else places:
            if not any("FI_WEFT_" + name in line and value in line and
                       why in " ".join(line.split()) for line in lines):
                fail(f"{name}={value}: no '{why}' in {lines}")
        if not value:
            continue
        one = setting(facts, name)
        if one["value"] != (used or one["default"]) or why not in one["note"]:
            fail(f"{one}")


def told(settings, level=None):
    """What any program's user sees of the provider on standard error: also
    where libfabric's log is off, as it is by default."""
    if not shutil.which("fi_info"):
        print("no fi_info")
        sys.exit(77)
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(OURS + ("FI_LOG",))}
    env.update({"LC_ALL": "C", "FI_PROVIDER_PATH": str(BUILD / "src")})
    env.update(settings)
    if level:
        env["FI_LOG_LEVEL"] = level
    said = subprocess.run(["fi_info", "-p", "weft"], text=True, env=env,
                          check=False, timeout=60, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE).stderr
    return [line for line in said.splitlines() if "FI_WEFT" in line]


def check_containers():
    """Where containers are met, or why not and what to do."""
    with tempfile.TemporaryDirectory(prefix="weft-", dir="/tmp") as folder:
        one = info({"FI_WEFT_DIR": folder})["containers"]
        if one != {"folder": folder, "why_not": None, "advice": None} or \
                folder not in text({"FI_WEFT_DIR": folder}):
            fail(f"{one}")
        one = info({"FI_WEFT_DIR": "none"})["containers"]
        if one["folder"] or "FI_WEFT_DIR" not in one["why_not"]:
            fail(f"{one}")
        os.chmod(folder, 0o777)
        facts = info({"FI_WEFT_DIR": folder})
        if facts["containers"]["folder"] == folder or \
                not any("chmod +t" in line for line in facts["problems"]):
            fail(f"{facts['containers']} {facts['problems']}")
    if os.path.exists("/run/weft"):
        return
    one = info()["containers"]
    if one["folder"] or "/run/weft" not in one["why_not"] or \
            "mkdir" not in one["advice"] or one["why_not"] not in \
            " ".join(text().split()):
        fail(f"{one}")
    if info({"FI_WEFT_SHM": "0"})["containers"]["folder"]:
        fail("a folder although shared memory is off")


def check_manual():
    """fi_weft(7) has each setting, with its default and its bounds."""
    manual = (SRC / "man" / "fi_weft.7").read_text(encoding="utf-8")
    manual = manual[manual.index(".SH ENVIRONMENT"):]
    pages = dict(re.findall(r"\.TP\n\.B (FI_WEFT_\w+)\n(.*?)(?=\n\.TP|\n\.PP)",
                            manual, re.S))
    settings = info()["settings"]
    names = {one["name"] for one in settings}
    if names != set(pages):
        fail(f"fi_weft(7) has {set(pages)}, the provider {names}")
    for one in settings:
        numbers = re.findall(r"\d+", one["help"].rsplit(";", 1)[-1])
        if one["name"] == "FI_WEFT_FAULT":
            continue
        for word in numbers + re.findall(r"^\w+", one["default"]):
            if word not in pages[one["name"]]:
                fail(f"fi_weft(7), {one['name']}: no {word}")


def check_settings():
    plain = info()
    for one in plain["settings"]:
        # One depends on the machine.
        possible = ["65536", "32768"] if one["name"] == "FI_WEFT_COOP_MIN" \
            else [one["default"]]
        if one["source"] != "default" or one["value"] not in possible or \
                not one["help"] or not one["default"]:
            fail(f"{one}")
        if not one["why"]:
            fail(f"no reason for {one}")
    for name, given, value in (("CMA_MIN", "20000", "20000"),
                               ("CMA_MIN", "5", "4097"),
                               ("EAGER_MAX", "0x2000", "8192"),
                               ("EAGER_MAX", "999999999", "262144"),
                               ("TX_SIZE", "100", "128"),
                               ("CMA", "off", "false"),
                               ("CMA", "perhaps", "true"),
                               ("ALLOW_UID", "any", "any")):
        facts = info({"FI_WEFT_" + name: given})
        one = setting(facts, name)
        if one["value"] != value or one["source"] != "environment" or \
                one["given"] != given:
            fail(f"{name}={given}: {one}")
        odd = any("FI_WEFT_" + name in line for line in facts["problems"])
        taken = given.lower() in (value, hex(int(value))
                                  if value.isdigit() else "off")
        if odd == taken:
            fail(f"{name}={given}: {facts['problems']}")
    # For settings that the provider reports: what the provider says.
    facts = info({"FI_WEFT_TX_SIZE": "100", "FI_WEFT_INJECT_SIZE": "5000"})
    if str(facts["provider"]["tx_size"]) != \
            setting(facts, "TX_SIZE")["value"] or \
            str(facts["provider"]["inject_size"]) != \
            setting(facts, "INJECT_SIZE")["value"]:
        fail(f"{facts}")


def check_net():
    """How peers elsewhere are reached: as the system says of the interface
    that is taken, or as was asked for."""
    def net(settings, paths=("shared memory", "packets")):
        found = info(settings)["paths"]
        if [one["path"] for one in found] != list(paths):
            fail(f"{found}")
        return found[-1]

    usual, first = net({}), info()["provider"]["interfaces"][0]
    if (usual["interface"], usual["address"]) != \
            (first["domain"], first["address"]) or usual["all_peers"]:
        fail(f"{usual} {first}")
    mtu = pathlib.Path("/sys/class/net", usual["interface"], "mtu")
    if mtu.exists() and usual["mtu"] != int(mtu.read_text()):
        fail(f"{usual}")
    # Bug: with FI_WEFT_SHM=0 it showed the protocols of shared memory, too.
    asked = net({"FI_WEFT_IFACE": "lo", "FI_WEFT_MTU": "3000",
                 "FI_WEFT_SHM": "0"}, ["packets"])
    if asked["interface"] != "lo" or asked["mtu"] != 3000 or \
            not asked["all_peers"]:
        fail(f"{asked}")
    for nic in "udp", "tcp":
        if net({"FI_WEFT_NIC": nic})["device"] != nic:
            fail(nic)
    for settings, words, others in (
            ({}, "to peers on other nodes", "to all peers"),
            ({"FI_WEFT_SHM": "0"}, "to all peers", "shared memory, to peers")):
        said = text(settings)
        if f"packets (tcp), {words}" not in said or others in said:
            fail(said)


def check_key():
    """Encryption is on where there is a key that can be used, and nothing is
    offered where it cannot."""
    if not (BUILD / "src" / "nic-tls-test").exists():
        return  # built without OpenSSL
    with tempfile.TemporaryDirectory() as tmp:
        key = pathlib.Path(tmp, "key")
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        good = {"FI_WEFT_KEY_FILE": str(key)}
        for more in {}, {"FI_WEFT_NIC": "tcp"}:
            path = info(good | more)["paths"][-1]
            if not path["encrypted"] or "OpenSSL" not in path["tls"] or \
                    path["device"] != "tcp":
                fail(f"{more}: {path}")
        refused = "FI_WEFT_KTLS=false: not by the kernel"
        for value, said in (("0", True), ("1", False)):
            path = info(good | {"FI_WEFT_KTLS": value})["paths"][-1]
            if not path["encrypted"] or (refused in path["tls"]) != said:
                fail(f"FI_WEFT_KTLS={value}: {path}")
        if info()["paths"][-1]["encrypted"]:
            fail("encrypted without a key")
        for mode, more, words in (
                (0o600, {"FI_WEFT_NIC": "udp"}, "does not encrypt"),
                (0o640, {}, "chmod 600"),
                (0o600, {"FI_WEFT_KEY_FILE": ""}, "names no file"),
                (0o600, {"FI_WEFT_KEY_FILE": None, "FI_WEFT_KEYFILE": "x"},
                 "is FI_WEFT_KEY_FILE meant"),
                (0o600, {"FI_WEFT_KEY_FILE": tmp + "/none"}, "cannot be")):
            key.chmod(mode)
            facts = info(good | more, 1)
            if facts["provider"]["found"] or \
                    not any(words in one for one in facts["problems"]):
                fail(f"{more}: {facts['problems']} {facts['provider']}")
            # Bug: the first line guessed that no interface was up.
            if "FI_WEFT_KEYFILE" not in more and \
                    "offers nothing" in " ".join(facts["problems"]):
                fail(f"{more}: {facts['problems']}")


def check_ways():
    def ways(settings):
        found = info(settings)["paths"][0]["ways"]
        for one, after in zip(found, found[1:]):
            if one["to"] + 1 != after["from"]:
                fail(f"a gap: {found}")
        if found[0]["from"] or found[-1]["to"] is not None:
            fail(f"no end: {found}")
        return {one["name"]: one for one in found}

    without = ways({"FI_WEFT_CMA": "0", "FI_WEFT_EAGER_MAX": "0"})
    if set(without) != {"inline", "eager", "stream"}:
        fail(f"{without}")
    if not info()["cma"]["in_use"]:
        return
    usual = ways({"FI_WEFT_CMA_MIN": "10000", "FI_WEFT_COOP_MIN": "50000"})
    if usual["cma"]["from"] != 10000 or usual["shared"]["from"] != 50000:
        fail(f"{usual}")
    small = ways({"FI_WEFT_CMA_MIN": "10000", "FI_WEFT_COOP_MIN": "7"})
    if "cma" in small or small["shared"]["from"] != 10000:
        fail(f"{small}")


def check_tried():
    """Which sizes each pair of processes tries, and what was measured."""
    def shm(settings):
        return info(settings)["paths"][0]

    pace = (SRC / "src" / "shm" / "pace.h").read_text(encoding="utf-8")
    define = {name: int(value) for name, value in
              re.findall(r"#define WF_SHM_PACE_(\w+) (\d+)", pace)}
    least, record = define["LEAST"], define["MIN"]
    most = record + define["LARGE"] * define["STEP"]
    small = {"from": least, "to": record, "cma": False}
    on = info()["cma"]["in_use"]
    # Bug: up to 20480, of which those above FI_WEFT_EAGER_MAX are parked.
    usual = {"from": record + 1, "to": 16384, "cma": on}
    for settings, large in (
            ({}, usual),
            ({"FI_WEFT_EAGER_MAX": "1M"}, {**usual, "to": most}),
            ({"FI_WEFT_CMA_MIN": "9000"}, None if on else usual),
            ({"FI_WEFT_CMA": "0"},
             {"from": record + 1, "to": 16384, "cma": False}),
            # Bug: one that the provider refuses counted as a limit.
            ({"FI_WEFT_CMA_MIN": "few"}, usual),
            ({"FI_WEFT_EAGER_MAX": "0"}, None)):
        found = shm(settings)["tried"]
        if found != [small] + ([large] if large else []):
            fail(f"{settings}: {found}")
    if f"{least}-{record} bytes through the ring" not in text():
        fail(text())
    if not on:
        return
    measured = shm({})["measured"]
    if not 0 < measured["cma_call_ns"] < 10 ** 9 or \
            not measured["both_copy_from_is_measured"] or \
            measured["both_copy_from"] not in (32768, 65536):
        fail(f"{measured}")
    if "ns, so both sides copy from" not in text():
        fail(text())
    refused = {"FI_WEFT_COOP_MIN": "few"}
    if not shm(refused)["measured"]["both_copy_from_is_measured"] or \
            "FI_WEFT_COOP_MIN says that both" in text(refused):
        fail(f"{shm(refused)}")
    given = {"FI_WEFT_COOP_MIN": "50000"}
    measured = shm(given)["measured"]
    if measured["both_copy_from_is_measured"] or \
            measured["both_copy_from"] != 50000 or \
            "FI_WEFT_COOP_MIN says that both" not in text(given):
        fail(f"{measured}")


def check_absence():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        broken = pathlib.Path(folder) / "broken"
        broken.mkdir()
        (broken / "libweft-fi.so").write_text("not a library\n")
        alone = shutil.copy(WEFT, folder)
        for settings, program, words in (
                ({"FI_PROVIDER_PATH": folder}, WEFT,
                 ["no libweft-fi.so in", folder]),
                ({"FI_PROVIDER_PATH": str(broken)}, WEFT,
                 ["cannot be loaded", str(broken)]),
                ({"FI_WEFT_IFACE": "nosuch0"}, WEFT,
                 ["offers nothing", "FI_WEFT_IFACE"])):
            facts = info(settings, 1, program)
            said = " ".join(facts["problems"])
            # Bug: it claimed to use an interface that does not exist.
            if facts["provider"]["found"] or "using" in said or \
                    not all(word in said for word in words):
                fail(f"{settings}: {said}")
            if not text(settings, 1, program).startswith("Problems\n"):
                fail(f"{settings}: problems do not come first")
        # The copy may also find an installed provider.
        said = run([alone, "info", "--json"], {"FI_PROVIDER_PATH": None},
                   0 if info_works_alone(alone) else 1)
        if not json.loads(said)["provider"]["found"] and \
                "set FI_PROVIDER_PATH" not in said:
            fail(said)
    facts = info({"FI_PROVIDER": "tcp"})
    if "FI_PROVIDER=tcp hides weft" not in " ".join(facts["problems"]):
        fail(f"{facts['problems']}")


def info_works_alone(program):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(OURS)}
    return subprocess.run([program, "info"], env=env, check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def check_machine():
    facts = info()
    if facts["machine"]["cpus_allowed"] != len(os.sched_getaffinity(0)) or \
            facts["machine"]["uid"] != os.getuid():
        fail(f"{facts['machine']}")
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    have = int(scope.read_text()) if scope.exists() else None
    if facts["cma"]["ptrace_scope"] != have:
        fail(f"{facts['cma']}")
    if facts["cma"]["siblings"] != "allowed" and \
            not facts["cma"]["why_not"]:
        fail(f"{facts['cma']}")


STYLE = re.compile(r"\033\[[0-9;]*m")


def on_terminal(columns, settings=None):
    """What it shows on a terminal of so many columns; 0: it does not say."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([WEFT, "info"], env=environment(settings or {}),
                          stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the end of a terminal
            pass
        process.wait(timeout=60)
    os.close(ours)
    return shown.decode().splitlines()


def check_width(piped):
    """As wide as a terminal, at most 80 columns, broken between words. Elsewhere
    each fact is one line: grep finds it whole. Bug: 80 columns on a terminal of
    40, which broke them anywhere."""
    for columns, most in ((0, 80), (200, 80), (40, 40)):
        lines = [STYLE.sub("", line) for line in on_terminal(columns)]
        long = [line for line in lines if len(line) > most]
        if long or "Machine" not in lines:
            fail(f"wider than {most} columns: {long}, of {len(lines)} lines")
    broken = [line for line in piped.splitlines() if line.startswith(" " * 17)
              and not re.match(r" +\S+ (and more )?bytes: ", line)]
    if broken:
        fail(f"more than a line for a fact: {broken}")


def check_style(piped):
    """Headings and settings that somebody has set stand out on a terminal, with
    colour unless NO_COLOR is set, and nowhere else."""
    given = {"FI_WEFT_CMA_MIN": "20000", "NO_COLOR": None}
    lines = on_terminal(80, given)
    bold = [STYLE.sub("", line) for line in lines
            if line.startswith("\033[0;1m")]
    if "\033[0;1;36mMachine\033[0m" not in lines or "\033" in piped or \
            [line.split()[0] for line in bold] != ["FI_WEFT_CMA_MIN"]:
        fail(f"{bold} of {lines}")
    lines = [STYLE.sub("", line) for line in
             on_terminal(80, {"FI_WEFT_SHN": "1"})]
    if lines.count("Problems") != 2 or "FI_WEFT_SHN" not in \
            " ".join(lines[lines.index("Machine"):]):
        fail(f"problems leave the screen: {lines}")
    lines = on_terminal(80, {**given, "NO_COLOR": "1"})
    if "\033[0;1mMachine\033[0m" not in lines or \
            [line for line in lines if re.search(r"\033\[[0-9;]*3\d", line)]:
        fail(f"colours: {lines}")


def check_text():
    said = text({"FI_WEFT_CMA_MIN": "20000"})
    for words in ("Provider", "Interfaces", "Copying between processes",
                  "Paths", "FI_WEFT_CMA_MIN = 20000 (environment; default: ",
                  "because:", "membarrier"):
        if words not in said:
            fail(f"no '{words}' in\n{said}")
    check_width(said)
    check_style(said)
    for words in (["--what"], ["word"]):
        run([WEFT, "info", *words], {}, 2)
    if "usage: weft info" not in run([WEFT, "info", "--help"], {}, 0):
        fail("no help")


def main():
    if not WEFT.exists() or "WEFT_BUILD" not in os.environ:
        print("WEFT_BUILD is not set, or there is no weft")
        sys.exit(77)
    check_provider()
    check_settings()
    check_settings_as_used()
    check_containers()
    check_manual()
    check_ways()
    check_tried()
    check_net()
    check_key()
    check_absence()
    check_machine()
    check_text()


main()
