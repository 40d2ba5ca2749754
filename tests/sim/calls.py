# SPDX-License-Identifier: BSD-2-Clause
"""No call of the provider bypasses the simulated kernel.

Reads which external names the simulator's build of the provider needs. Each
must be one that the simulator implements, or one that only computes.
"""

import os
import subprocess
import sys

# Functions that depend only on their arguments.
PURE = set("""
__assert_fail __cpu_indicator_init __cpu_model __ctype_b_loc __ctype_tolower_loc
__ctype_toupper_loc __errno_location __isoc99_sscanf __muldc3 __mulsc3 __mulxc3
__divdc3 __divsc3 __divxc3
abort fi_strerror fi_tostr fi_version fprintf inet_ntop inet_pton memcmp memmove
memchr qsort bsearch
pthread_condattr_destroy pthread_condattr_init pthread_condattr_setclock
sigaddset sigemptyset sigfillset sigismember snprintf stderr strcasecmp
strcasestr strchr strcmp strcspn strerror strlen strncasecmp strncmp strncpy
strnlen strpbrk strrchr strsep strspn strstr strtod strtol strtoul strtoull vsnprintf
sim_statics_begin
""".split())

# Functions that the simulator leaves real, and why.
REAL = {
    "closedir": "opendir() fails in the simulator",
    "dirfd": "the same",
    "fdopendir": "the same",
    "readdir64": "the same",
    "readlinkat": "the same",
    "fstatat64": "the same",
    "fopen64": "the list of mappings is not there (open() fails)",
    "fclose": "the same",
    "__getdelim": "the same",
    "dlopen": "no scenario has a key file: TLS is off in the simulator",
    "dlsym": "the same",
    "chmod": "no folder for other namespaces is there (open() fails)",
    "faccessat": "the same",
    "rename": "the same",
    "unlink": "the same",
    "prctl": "FI_WEFT_PTRACER is not set in the simulator",
    "environ": "read once: settings come from the scenario",
    "freeaddrinfo": "numeric addresses only",
    "getaddrinfo": "the same",
    "getauxval": "what the processor can do is the same for all",
    "getrlimit64": "simulated descriptors have a limit of their own",
    "setrlimit64": "the same",
    "if_nametoindex": "for link-local addresses",
    "sigtimedwait": "no signal is pending in the simulator",
    "sysconf": "the size of a page",
}


def undefined(archive):
    out = subprocess.run(["nm", "-u", archive], check=True, text=True,
                         capture_output=True).stdout
    return {line.split()[-1] for line in out.splitlines() if " U " in line}


def check(needed, answered):
    return sorted(name for name in needed
                  if name not in PURE and name not in REAL
                  and name not in answered
                  and not name.startswith(("wf_", "__tsan_", "_GLOBAL_")))


def main():
    answered = set(os.environ["WEFT_CALLS"].split())
    if check({"malloc", "splice"}, {"malloc"}) != ["splice"]:
        sys.exit("the test does not find a missing call")
    missing = set()
    for archive in sys.argv[1:]:
        missing |= set(check(undefined(archive), answered))
    for name in sorted(missing):
        print(f"{name}: the simulated kernel does not know it: add it to "
              "tests/sim and to its meson.build")
    sys.exit(bool(missing))


main()
