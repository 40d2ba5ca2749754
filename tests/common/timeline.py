# SPDX-License-Identifier: BSD-2-Clause
"""Checks a file of `weft trace`.

    timeline.py FILE HOW PID PID

Two processes sent each other messages of all kinds, HOW is "memory" or
"packets"."""

import collections
import json
import sys

NAMES = {
    "memory": {"send inline", "send eager", "send parked", "receive",
               "fetched or acknowledged", "sleep", "awake", "wake a peer",
               "polls"},
    "packets": {"send by packets", "receive by packets", "polls"},
}


def fail(text):
    print(text)
    sys.exit(1)


def nanoseconds(microseconds):
    """What the file says to three digits behind the point."""
    return round(microseconds * 1000)


def check_tracks(events):
    """Slices of a track follow each other or lie inside each other: Perfetto
    moves others to another track."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            tracks[event["pid"], event["tid"]].append(
                (begin, begin + nanoseconds(event["dur"])))
    for track, slices in tracks.items():
        inside = []
        for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
            while inside and inside[-1] <= begin:
                inside.pop()
            if inside and end > inside[-1]:
                fail(f"slices of {track} overlap at {begin}")
            inside.append(end)
    return tracks


def check_arrows(events, tracks):
    """Each goes from a slice to a later one."""
    ends = collections.defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            if event["ph"] in ends[event["cat"], event["id"]]:
                fail(f"twice: {event}")
            ends[event["cat"], event["id"]][event["ph"]] = event
    begins = {track: {begin for begin, _ in slices}
              for track, slices in tracks.items()}
    for both in ends.values():
        if set(both) != {"s", "f"} or both["s"]["ts"] > both["f"]["ts"]:
            fail(f"no arrow: {both}")
        for end in both.values():
            if nanoseconds(end["ts"]) not in begins[end["pid"], end["tid"]]:
                fail(f"in no slice: {end}")
    return ends


def check_operations(events):
    """Each begins before it ends. Some began before we looked, and some were
    not over. Perfetto finds the end by name, category and id. Bug: those by
    packets ended under another name, and never for Perfetto."""
    opened = {}
    closed = 0
    for event in sorted((e for e in events if e["ph"] in "be"),
                        key=lambda e: e["ts"]):
        key = event["pid"], event["name"], event["cat"], event["id"]
        if event["ph"] == "b":
            if key in opened:
                fail(f"begins twice: {event}")
            opened[key] = event
        elif opened.pop(key, None):
            closed += 1
        elif any(e["id"] == event["id"] for e in opened.values()):
            fail(f"does not end as it began: {event}")
    return closed


def main():
    name, how, one, other = sys.argv[1:]
    with open(name, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    missing = NAMES[how] - {e["name"] for e in events}
    if missing:
        fail(f"no {missing} among {len(events)} events")
    arrows = check_arrows(events, check_tracks(events))
    counts = collections.Counter()
    for (kind, _), both in arrows.items():
        counts[kind, both["s"]["pid"], both["f"]["pid"]] += 1
    for pids in (int(one), int(other)), (int(other), int(one)):
        sends = sum(e["ph"] == "X" and e["name"].startswith("send") and
                    e["pid"] == pids[0] for e in events)
        arrived = counts["message", *pids]
        # Those at either end of the recording have lost one of their ends.
        if not sends or arrived < sends - 20 or arrived > sends:
            fail(f"{pids}: {sends} sends, {arrived} arrows, {counts}")
    if how == "memory" and not counts["wake-up", int(one), int(other)]:
        fail(f"no arrow of a wake-up: {counts}")
    if not check_operations(events):
        fail("no operation that waits for a peer")
    print(f"{len(events)} events, {dict(counts)}")


main()
