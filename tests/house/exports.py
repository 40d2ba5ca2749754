# SPDX-License-Identifier: BSD-2-Clause
"""What a library of ours shows, and what it asks of libfabric.

libweft-fi.so shows fi_prov_ini alone. It asks for no libfabric symbol version
above FABRIC_1.3: those load under Debian's 1.17 and under 2.x alike. It is
marked NODELETE, since libfabric closes providers from its destructor.
"""

import os
import re
import subprocess
import sys
import tempfile

import tree

SHOWN = {"libweft-fi.so": {"fi_prov_ini"}}
FABRIC_MAX = (1, 3)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def check(path):
    name = os.path.basename(path)
    found = []
    shown = {line.split()[-1].split("@")[0]
             for line in output("nm", "-D", "--defined-only",
                                path).splitlines() if line.strip()}
    for symbol in sorted(shown - SHOWN[name]):
        found.append(f"{name}: shows {symbol}")
    for symbol in sorted(SHOWN[name] - shown):
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


LIBRARY = os.path.abspath(sys.argv[1])
self_test()
tree.verdict(check(LIBRARY), 1)
