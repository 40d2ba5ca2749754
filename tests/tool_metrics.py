# SPDX-License-Identifier: BSD-2-Clause
"""`weft stat --openmetrics`: the text follows the rules of OpenMetrics, has
every counter of the sources and the numbers of the pages; the server also
answers while other clients are slow, send nonsense, or are too many; and the
example dashboard uses only metrics, labels and values of labels that exist."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))
# pylint: disable=wrong-import-position
import page  # noqa: E402

WEFT = os.path.join(os.environ.get("WEFT_BUILD", "build"), "tools", "weft")
SRC = os.environ.get("WEFT_SRC", os.path.join(os.path.dirname(__file__), ".."))
DASHBOARD = "examples/grafana/weft.json"
SAMPLE = re.compile(r'([a-z_:]+)(?:\{([^{}]*)\})? ([0-9.]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\["\\n])*)"(?:,|$)')


def fail(text):
    print(text)
    sys.exit(1)


def counters(header):
    """The names that a list X(name) in a header of the sources has."""
    with open(os.path.join(SRC, header), encoding="utf-8") as file:
        body = re.search(r"#define WF_\w+_STATS\(X\)(.*?)\n\n", file.read(),
                         re.S)
    return re.findall(r"\bX\((\w+)\)", body.group(1))


def parse(text):
    """{family: (type, unit, {(name, labels): value})}, by the rules."""
    families, family, order = {}, None, []
    if not text.endswith("# EOF\n") or "\n\n" in text or \
            text.count("# EOF") != 1:
        fail(f"it does not end as it must: {text[-200:]!r}")
    for line in text[:-len("# EOF\n")].splitlines():
        meta = re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-z_]+) (.+)", line)
        if meta:
            word, name, value = meta.groups()
            if name != family:
                if name in families:
                    fail(f"{name} comes twice")
                family, order = name, []
                families[name] = {"TYPE": "unknown", "samples": {}}
            order.append(word)
            if order != [w for w in ("TYPE", "UNIT", "HELP") if w in order]:
                fail(f"{name}: {order}")
            families[name][word] = value
            if word == "UNIT" and not name.endswith("_" + value):
                fail(f"{name} does not end with its unit {value}")
            continue
        sample = SAMPLE.fullmatch(line)
        if not sample:
            fail(f"no sample: {line!r}")
        name, labels, value = sample.groups()
        found = LABEL.findall(labels or "")
        if ",".join(f'{k}="{v}"' for k, v in found) != (labels or ""):
            fail(f"labels: {line!r}")
        counter = families[family]["TYPE"] == "counter"
        if name != family + ("_total" if counter else ""):
            fail(f"{name} among the samples of {family}")
        key = (name, tuple(sorted(found)))
        if key in families[family]["samples"]:
            fail(f"twice: {line}")
        families[family]["samples"][key] = float(value)
    return families


def value_of(families, family, **labels):
    found = [value for (_, has), value in families[family]["samples"].items()
             if labels.items() <= dict(has).items()]
    if len(found) != 1:
        fail(f"{family} {labels}: {found}")
    return found[0]


def run(*options, code=0):
    done = subprocess.run([WEFT, "stat", *options], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    if done.returncode != code:
        fail(f"{options}: {done}")
    return done.stdout, done.stderr


def check_all_counters():
    """Each has a family; none is left over. Values differ, so that no two can be
    mistaken for each other."""
    lists = [counters(f"src/{name}/stats.h")
             for name in ("shm", "rdm", "devd", "devd", "alg")]
    kinds = [(b"endpoint", b"192.0.2.7:1"), (b"packets", b"192.0.2.7:1"),
             (b"device", b'/tmp/"a"\\b:c'), (b"user", b"/tmp/a:uid 7"),
             (b"driver", b"isal")]
    value, fds, pages = 1000, [], []
    for names, (kind, name) in zip(lists, kinds):
        pages.append({n: value + i for i, n in enumerate(names)})
        value += 1000
        fds.append(page.publish(page.make(pages[-1], kind=kind, name=name)))
    # Another endpoint of the same name, and one of a newer build.
    fds.append(page.publish(page.make({"sent_inline": 1}, name=b"192.0.2.7:1")))
    fds.append(page.publish(page.make({"of_tomorrow": 5}, name=b"192.0.2.7:2")))
    text = run("--openmetrics", "-p", str(os.getpid()))[0]
    for fd in fds:
        os.close(fd)
    families = parse(text)
    with open(os.path.join(SRC, "docs/monitoring.md"),
              encoding="utf-8") as file:
        described = set(re.findall(r"`(weft_\w+)`", file.read()))
    missing = {name.replace("weft_user_", "weft_device_")
               for family in families.values()
               for name, _ in family["samples"]} - described
    if missing:
        fail(f"docs/monitoring.md does not have {missing}")
    others = families["weft_other"]["samples"]
    if [dict(k[1])["counter"] for k in others] != ["of_tomorrow"]:
        fail(f"counters without a family: {others}")
    values = sorted(value for name, family in families.items()
                    for value in family["samples"].values()
                    if name not in ("weft_other", "weft_start_time_seconds"))
    want = [v for made in pages for v in made.values() if v != pages[1][
        "rtt_ns"]]
    missing = set(want) - set(values)
    if missing:
        fail(f"values that are nowhere: {missing}")
    rtt = value_of(families, "weft_round_trip_seconds")
    if abs(rtt * 1e9 - pages[1]["rtt_ns"]) > 0.1:
        fail(f"{rtt} s are not {pages[1]['rtt_ns']} ns")
    if value_of(families, "weft_message_bytes", path="cma",
                pid=str(os.getpid())) != pages[0]["pulled_cma_bytes"]:
        fail("bytes by CMA")
    if value_of(families, "weft_device_jobs",
                device='/tmp/\\"a\\"\\\\b:c') != pages[2]["jobs"]:
        fail("jobs of the device")
    if value_of(families, "weft_user_jobs", user="/tmp/a:uid 7") != \
            pages[3]["jobs"] or \
            value_of(families, "weft_driver_copied_bytes", driver="isal") != \
            pages[4]["copied_bytes"]:
        fail("jobs of the user, copies of the driver")
    return {name + ("_total" if family["TYPE"] == "counter" else ""):
            {label for _, labels in family["samples"] for label in labels}
            for name, family in families.items()}


def wrong_in(query, legend, names):
    """Metrics, labels and values of labels that `weft stat` never prints."""
    metrics = re.findall(r"\bweft_\w+", query)
    used = set(re.findall(r'(\w+)(?:=~|!=|!~|=)"', query)) | \
        set(re.findall(r"\{\{(\w+)\}\}", legend)) | \
        {word for group in re.findall(r"\bby \(([^)]*)\)", query)
         for word in re.split(r", *", group)} | \
        set(re.findall(r"^label_values\(.*, (\w+)\)$", query))
    for metric in metrics or ["nothing"]:
        if metric not in names:
            yield metric
            continue
        # Prometheus adds these two.
        known = {label for label, _ in names[metric]} | {"instance", "job"}
        yield from (f"{metric}{{{label}}}" for label in used - known)
        for label, value in re.findall(r'(\w+)="([^"]+)"', query):
            if (label, value) not in names[metric]:
                yield f'{metric}{{{label}="{value}"}}'


def check_dashboard(names):
    with open(os.path.join(SRC, DASHBOARD), encoding="utf-8") as file:
        board = json.load(file)
    asked = [(target["expr"], target.get("legendFormat", ""))
             for panel in board["panels"]
             for target in panel.get("targets", [])]
    if len(asked) < 8:
        fail(f"{asked}")
    asked += [(v["query"], "") for v in board["templating"]["list"]
              if v["type"] == "query"]
    for query, legend in asked:
        wrong = sorted(set(wrong_in(query, legend, names)))
        if wrong:
            fail(f"{DASHBOARD}: {query} asks for {wrong}")
    for query in ("weft_message_total", 'weft_messages_total{directon="out"}',
                  'weft_messages_total{direction="up"}',
                  "sum by (device) (weft_peers)",
                  "label_values(weft_peers, device)"):
        if not set(wrong_in(query, "", names)):
            fail(f"nothing is found to be wrong with {query}")


class Server:
    def __init__(self, where):
        self.child = subprocess.Popen(
            [WEFT, "stat", f"--openmetrics={where}", "-p", str(os.getpid())],
            stderr=subprocess.PIPE, text=True)
        said = self.child.stderr.readline()
        self.url = re.search(r"http://\S+", said).group(0)
        host, port = re.match(r"http://\[?([^]]+?)\]?:(\d+)/",
                              self.url).groups()
        self.address = (host, int(port))

    def get(self, path="/metrics", method="GET"):
        url = self.url.replace("/metrics", path)
        with urllib.request.urlopen(urllib.request.Request(
                url, method=method), timeout=100) as answer:
            return answer.read().decode(), answer.headers

    def connect(self):
        return socket.create_connection(self.address, timeout=100)

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        if self.child.wait(100):
            fail(f"ended with {self.child.returncode}")


def ask(client, request):
    client.sendall(request)
    said = b""
    while True:
        more = client.recv(65536)
        if not more:
            client.close()
            return said
        said += more


def check_server():
    # An answer that is larger than the buffers of a socket.
    names = dict.fromkeys(counters("src/shm/stats.h"), 0)
    names["sent_inline"] = 7
    fds = [page.publish(page.make(names, name=b"192.0.2.7:%d" % i))
           for i in range(40)]
    server = Server("0")
    text, headers = server.get()
    if headers["Content-Type"] != "application/openmetrics-text; " \
            "version=1.0.0; charset=utf-8" or \
            sum(parse(text)["weft_messages"]["samples"].values()) != 280:
        fail(f"{headers} {text}")
    if server.get(method="HEAD")[0] or "/metrics" not in server.get("/")[0]:
        fail("HEAD or /")
    try:
        server.get("/metricsx")
        fail("there is no such page")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            fail(f"{error}")
    # Clients that send nothing, that do not end their request, that send
    # nonsense. With them the server is nearly full, and each client that is
    # served makes room.
    idle = [server.connect() for _ in range(12)]
    idle[0].sendall(b"GET /metr")
    for request, code in ((b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
                          (b"\0\xff\r\n\r\n", b"405"),
                          (b"GET /metrics HTTP/1.0\n\n", b"200"),
                          (b"G" * 9000, b"431")):
        said = ask(server.connect(), request)
        if not said.startswith(b"HTTP/1.1 " + code):
            fail(f"{request[:20]}: {said[:80]}")
    # A client that sends a request and does not read for a while delays no
    # other client.
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(server.address)
    slow.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    if len(server.get()[0]) < 200000:
        fail("the answer is too small to be slow")
    # More clients than it serves at once: they wait until others leave.
    waiting = [server.connect() for _ in range(8)]
    for client in waiting:
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    for client in waiting:
        if b"# EOF" not in ask(client, b""):
            fail("an answer without an end")
    if b"# EOF" not in ask(slow, b""):
        fail("the slow one got half an answer")
    idle[0].sendall(b"ics HTTP/1.1\r\n\r\n")
    if b"# EOF" not in ask(idle[0], b""):
        fail("a request in two pieces")
    server.end()
    for fd in fds:
        os.close(fd)
    server = Server("[::1]:0")
    parse(server.get()[0])
    taken = f"[::1]:{server.address[1]}"
    if "Address already in use" not in run(f"--openmetrics={taken}",
                                           code=1)[1]:
        fail("two servers at one port")
    server.end()
    for where in ("x", "", "70000", ":1", "::1:1", "127.0.0.1:", "1.2.3.4:-1"):
        if "wants a port" not in run(f"--openmetrics={where}", code=2)[1]:
            fail(where)


def main():
    if not os.path.exists(WEFT) or not hasattr(os, "memfd_create"):
        print("WEFT_BUILD is not set, or Python has no memfd_create")
        sys.exit(77)
    # As a process of a job, which has more labels.
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  {**os.environ, "OMPI_COMM_WORLD_RANK": "3",
                   "SLURM_JOB_ID": "77"})
    names = check_all_counters()
    check_dashboard(names)
    check_server()


main()
