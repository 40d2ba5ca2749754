# SPDX-License-Identifier: BSD-2-Clause
"""While nobody records, the path of a message has no instruction for `weft trace`.

callgrind counts the instructions of each source line while bench/count calls
fi_tinject, fi_tsend, fi_trecv and fi_cq_read. A line that names the trace, or is in a
file of it, may be executed only where progress looks at the clock, which is rare. What
the compiler makes of a line, and how large the rest is, does not matter. That looks are
counted shows that such lines are found.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build")).absolute()
SRC = pathlib.Path(os.environ.get("WEFT_SRC", ".")).absolute()
ROUNDS = 1000
LOOK = "wf_core_trace_look"


def fail(text):
    print(text)
    sys.exit(1)


def count():
    """What callgrind writes, of the functions step_* of bench/count and of what they
    call."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("FI_WEFT_")}
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind",
             f"--callgrind-out-file={out}", "--compress-pos=no",
             "--compress-strings=no", "--dump-line=yes",
             "--toggle-collect=step_*", BUILD / "bench" / "count", "messages",
             str(ROUNDS)],
            check=True, timeout=250,
            env={**env, "FI_PROVIDER": "weft",
                 "FI_PROVIDER_PATH": str(BUILD / "src")})
        return out.read_text(encoding="utf-8", errors="replace")


def parse(text):
    """{(source, line, function): instructions} of our sources, {function: calls}."""
    cost, calls = collections.Counter(), collections.Counter()
    source, own, called, inclusive = None, None, None, False
    for line in text.splitlines():
        place = re.match(r"(fl|fi|fe)=(.*)", line)
        if place:
            found = re.search(r"(?:^|/)(src/.*\.[ch])$", place[2])
            source = found[1] if found else None
        elif line.startswith("fn="):
            own = line[3:]
        elif line.startswith("cfn="):
            called = line[4:]
        elif line.startswith("calls="):
            calls[called] += int(re.match(r"calls=(\d+)", line)[1])
            inclusive = True
        elif re.match(r"\d+ \d+$", line):
            # The line behind calls= has the cost of the function that was called.
            if source and not inclusive:
                number, instructions = map(int, line.split())
                cost[source, number, own] += instructions
            inclusive = False
    return cost, calls


def is_of_trace(source, number):
    path = SRC / source
    if path.stem in ("trace", "trace_defs"):
        return True
    lines = path.read_text(encoding="utf-8").splitlines() \
        if path.is_file() else []
    return number <= len(lines) and bool(
        re.search(r"\btrac|_trac", lines[number - 1]))


def main():
    if "WEFT_BUILD" not in os.environ or not shutil.which("valgrind") or \
            not (BUILD / "bench" / "count").exists():
        print("WEFT_BUILD is not set, or there is no valgrind or bench/count")
        sys.exit(77)
    cost, calls = parse(count())
    found = {place: n for place, n in cost.items() if is_of_trace(*place[:2])}
    looks = sum(n for name, n in calls.items() if name.startswith(LOOK))
    # A function that is called for few messages is not on the path of each. In
    # another one, such a line would be executed for each of them: at least one
    # instruction, and looks are rarer than one poll in 32.
    often = [f"{source}:{number}: {n} instructions in {ROUNDS} messages"
             for (source, number, name), n in sorted(found.items())
             if n >= ROUNDS and calls[name] >= ROUNDS // 2]
    if often or looks >= ROUNDS // 2:
        fail(f"{looks} looks; for the trace, on the path of each message:\n" +
             "\n".join(often))
    if not found or max(cost.values()) < ROUNDS:
        fail("no line of the trace was counted, though progress looks for "
             f"readers: {len(cost)} lines, {looks} looks")
    print(f"{len(cost)} lines, {len(found)} of the trace, {looks} looks")


main()
