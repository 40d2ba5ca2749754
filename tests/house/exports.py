# SPDX-License-Identifier: BSD-2-Clause
"""Checks which symbols a library of ours shows, and which it asks of others.

libweft-fi.so shows fi_prov_ini alone. It asks for no libfabric symbol version
above FABRIC_1.3: those load under Debian's 1.17 and under 2.x alike. It is
marked NODELETE, since libfabric closes providers from its destructor.

libweft-efa.so shows names of libibverbs and libefa alone, without a version,
and needs neither of them.

libwd.so shows what include/weft/ declares, all of it and nothing else but what
libweft-z.so and the command share with it (LIBWD_PRIVATE), and needs no library
but the C library's and those of its drivers.
"""

import os
import re
import subprocess
import sys
import tempfile

import tree

DECLARED = re.compile(r"\b((?:wd|smm)_\w+)\(")
PLAIN = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
         "libisal.so.2", "libdeflate.so.0", "libz.so.1"}
FABRIC_MAX = (1, 3)
VERBS = re.compile(r"_?ibv_|efadv_")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def declared():
    """Functions of the public headers, comments left out."""
    names = set()
    for path in (tree.root() / "include" / "weft").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        names.update(DECLARED.findall(text))
    return names


def version_names(path):
    """A version script makes a symbol of its own name."""
    return {line.split()[-1].split("@")[0]
            for line in output("nm", "-D", "--defined-only", path).splitlines()
            if " A " in line}


def private_names(path):
    """What is for our own libraries: internal functions, and nothing else."""
    names = {line.split()[-1].split("@")[0]
             for line in output("nm", "-D", "--with-symbol-versions",
                                "--defined-only", path).splitlines()
             if "@@LIBWD_PRIVATE" in line}
    return {name for name in names if name.startswith("wf_")}


def check(path):
    name = os.path.basename(path)
    found, wanted = [], set()
    if name.startswith("libwd.so"):
        wanted = declared()
        for line in output("readelf", "-d", path).splitlines():
            match = re.search(r"NEEDED.*\[(.*)\]", line)
            if match and match[1] not in PLAIN:
                found.append(f"{name}: needs {match[1]}")
    elif not name.startswith("libweft-efa"):
        wanted = {"fi_prov_ini"}
    shown = {line.split()[-1].split("@")[0]
             for line in output("nm", "-D", "--defined-only",
                                path).splitlines() if line.strip()}
    shown -= version_names(path)
    shown -= private_names(path)
    if name.startswith("libweft-efa"):
        wanted = {symbol for symbol in shown if VERBS.match(symbol)}
        wanted |= {"ibv_get_device_list", "efadv_create_qp_ex"}
        for line in output("readelf", "-d", path).splitlines():
            match = re.search(r"NEEDED.*\[(.*)\]", line)
            if match and match[1] not in PLAIN:
                found.append(f"{name}: needs {match[1]}")
        for line in output("nm", "-D", "--defined-only", path).splitlines():
            if "@" in line:
                found.append(f"{name}: a version at {line.split()[-1]}")
    for symbol in sorted(shown - wanted):
        found.append(f"{name}: shows {symbol}")
    for symbol in sorted(wanted - shown):
        found.append(f"{name}: does not show {symbol}")
    for line in output("objdump", "-T", path).splitlines():
        match = re.search(r"FABRIC_(\d+)\.(\d+)\)?\s+(\S+)$", line)
        if match and (int(match[1]), int(match[2])) > FABRIC_MAX:
            found.append(f"{name}: needs {match[3]}@FABRIC_"
                         f"{match[1]}.{match[2]}")
    if "NODELETE" not in output("readelf", "-d", path):
        found.append(f"{name}: lacks NODELETE")
    return found


def self_test():
    with tempfile.TemporaryDirectory() as tmp:
        tree.write(tmp, {
            "map": "FABRIC_1.3 { global: old; };\n"
                   "FABRIC_1.4 { global: new; };\n",
            "fabric.c": "void old(void) {}\nvoid new(void) {}\n",
            "fi.c": "void old(void); void new(void);\n"
                    "void leaked(void) { old(); new(); }\n",
        })
        os.chdir(tmp)
        cc = [os.environ.get("CC", "gcc"), "-shared", "-fPIC"]
        output(*cc, "fabric.c", "-Wl,--version-script=map", "-o", "libf.so")
        output(*cc, "fi.c", "./libf.so", "-o", "libweft-fi.so")
        found = check("libweft-fi.so")
        os.chdir("/")
    tree.expect("exports", found, ["shows leaked", "not show fi_prov_ini",
                                   "needs new@FABRIC_1.4", "lacks NODELETE"])


LIBRARIES = [os.path.abspath(path) for path in sys.argv[1:]]
self_test()
tree.verdict([line for path in LIBRARIES for line in check(path)],
             len(LIBRARIES))
