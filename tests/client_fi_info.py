# SPDX-License-Identifier: BSD-2-Clause
"""Checks what Debian's fi_info prints about weft: text for the user, hints that
are fulfilled or refused, and variables that the manual explains."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

NO_DATA = 61


def fail(text):
    print(text)
    sys.exit(1)


def fi_info(*options):
    done = subprocess.run(["fi_info", *options], text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def expect(options, *texts):
    code, said = fi_info(*options)
    for text in texts:
        if code or text not in said:
            fail(f"fi_info {' '.join(options)}: {code}, no '{text}' in\n"
                 f"{said}")
    return said


def refuse(*options):
    code, said = fi_info(*options)
    if code != NO_DATA:
        fail(f"fi_info {' '.join(options)}: {code}, not {NO_DATA}:\n{said}")


def check_short():
    said = expect(["-p", "weft"], "provider: weft", "fabric: weft",
                  "type: FI_EP_RDM")
    if not all(name == "weft"
               for name in re.findall(r"provider: (.*)", said)):
        fail(f"other providers:\n{said}")
    # The loopback interface is listed, but never first.
    domains = re.findall(r"domain: (.*)", said)
    if "lo" not in domains or (set(domains) != {"lo"} and domains[0] == "lo"):
        fail(f"domains: {domains}")


def check_long():
    said = expect(["-p", "weft", "-v"], "FI_MSG", "FI_TAGGED", "FI_MULTI_RECV",
                  "FI_SOURCE", "FI_DIRECTED_RECV", "FI_ORDER_SAS",
                  "FI_THREAD_SAFE", "FI_SOCKADDR_IN", "cq_data_size: 8",
                  "prov_name: weft", "name: weft")
    if "prov_name: weft;" in said:
        fail(f"name said twice:\n{said}")


def check_layers():
    # rxm and rxd ask for MSG and DGRAM endpoints below them.
    code, said = fi_info()
    if code or "provider: weft\n" not in said or "weft;" in said:
        fail(f"fi_info: {code}\n{said}")


def check_hints():
    expect(["-p", "weft", "-t", "FI_EP_RDM", "-c", "FI_TAGGED"], "weft")
    expect(["-p", "weft", "-c", "FI_MSG|FI_DIRECTED_RECV|FI_SOURCE"], "weft")
    expect(["-p", "weft", "-n", "127.0.0.1", "-P", "4711", "-v"],
           "127.0.0.1:4711")
    expect(["-p", "weft", "-d", "lo"], "domain: lo")
    expect(["-p", "weft", "-a", "FI_SOCKADDR_IN", "-v"], "FI_SOCKADDR_IN")
    refuse("-p", "weft", "-t", "FI_EP_MSG")
    refuse("-p", "weft", "-t", "FI_EP_DGRAM")
    refuse("-p", "weft", "-d", "nosuchdomain")
    refuse("-p", "weft", "-f", "nosuchfabric")
    refuse("-p", "weft", "-n", "g00n13s.invalid")


def check_variables():
    said = expect(["-g", "weft"], "FI_WEFT_IFACE", "FI_WEFT_CMA",
                  "FI_WEFT_CONNECT_TIMEOUT")
    names = set(re.findall(r"FI_WEFT_\w+", said))
    page = pathlib.Path(os.environ["WEFT_SRC"]) / "man" / "fi_weft.7"
    if page.exists():
        text = page.read_text().replace("\\", "")
        for name in sorted(names):
            if name not in text:
                fail(f"{name} is not in fi_weft(7)")
        for name in sorted(set(re.findall(r"FI_WEFT_[A-Z_]*[A-Z]", text))):
            if name not in names:
                fail(f"{name} is in fi_weft(7) only")


def main():
    if "FI_PROVIDER_PATH" not in os.environ or not shutil.which("fi_info"):
        print("no provider path, or fi_info is not installed")
        sys.exit(77)
    check_short()
    check_long()
    check_layers()
    check_hints()
    check_variables()


main()
