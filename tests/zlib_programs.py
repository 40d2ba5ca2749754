# SPDX-License-Identifier: BSD-2-Clause
"""Programs that use zlib, unchanged, with libweft-z.so preloaded: git, curl
with a web server that answers with gzip, rsync -z, and pigz to verify.

Tests whose program is not installed are skipped, with a message.
"""

import contextlib
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from common import corpus  # noqa: E402

LIBRARY = os.path.join(os.environ["WEFT_BUILD"], "src", "libweft-z.so.1")
PRELOAD = {**os.environ, "LD_PRELOAD": LIBRARY, "LC_ALL": "C"}
PLAIN = {**os.environ, "LC_ALL": "C"}


def run(*command, env=PLAIN, **more):
    done = subprocess.run([str(c) for c in command], env=env, timeout=100,
                          capture_output=True, **more)
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}\n"
                 f"{done.stderr.decode()[-2000:]}")
    return done.stdout


def git(folder):
    """A repository packed with weft, checked and cloned without, and back."""
    def g(where, *args, env=PLAIN):
        return run("git", "-C", where, "-c", "user.name=weft",
                   "-c", "user.email=weft@localhost",
                   "-c", "protocol.file.allow=always", *args, env=env)
    one, two, three = (folder / n for n in ("one", "two", "three"))
    one.mkdir()
    g(one, "init", "-q", env=PRELOAD)
    for i in range(30):
        (one / f"file{i}").write_bytes(corpus.text(1000 * (i + 1), i))
    (one / "large").write_bytes(corpus.mixed(1_500_000))
    g(one, "add", ".", env=PRELOAD)
    g(one, "commit", "-qm", "first", env=PRELOAD)
    for i in range(10):
        (one / f"file{i}").write_bytes(corpus.text(2000 * (i + 1), i + 50))
    g(one, "commit", "-qam", "second", env=PRELOAD)
    g(one, "fsck", "--strict")
    g(one, "repack", "-adfq", env=PRELOAD)
    g(one, "fsck", "--strict")
    run("git", "clone", "-q", f"file://{one}", two)
    run("git", "clone", "-q", f"file://{two}", three, env=PRELOAD)
    g(three, "fsck", "--strict", env=PRELOAD)
    assert g(three, "rev-parse", "HEAD") == g(one, "rev-parse", "HEAD")
    assert (three / "large").read_bytes() == (one / "large").read_bytes()
    g(three, "archive", "--format=tar.gz", "-o", folder / "a.tgz", "HEAD",
      env=PRELOAD)
    run("tar", "-tzf", folder / "a.tgz")


class Handler(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


def curl(folder):
    """curl unpacks what zlib packed, as it comes in pieces."""
    import gzip
    data = corpus.mixed(2_000_000)
    Handler.body = gzip.compress(data)
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    got = run("curl", "-s", "--compressed", url, env=PRELOAD)
    server.shutdown()
    assert got == data


NGINX = """
daemon off; master_process off; pid {0}/pid; error_log {0}/error.log info;
events {{}}
http {{
  access_log off; gzip on; gzip_types *; gzip_min_length 1; gzip_comp_level {1};
  client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;
  uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
  server {{ listen 127.0.0.1:{2}; root {0}/www; }}
}}
"""


def nginx(folder):
    """nginx packs with weft, curl unpacks with zlib; and no complaints."""
    www = folder / "www"
    www.mkdir()
    files = {"text": corpus.text(700_000), "small": b"x" * 100,
             "mixed": corpus.mixed(1_000_000)}
    for name, data in files.items():
        (www / name).write_bytes(data)
    for level in (1, 6):
        with contextlib.closing(socket.socket()) as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        conf = folder / "conf"
        conf.write_text(NGINX.format(folder, level, port))
        server = subprocess.Popen(
            ["nginx", "-p", str(folder), "-e", str(folder / "error.log"),
             "-c", str(conf)], env=PRELOAD, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.1)
            for name, data in files.items():
                url = f"http://127.0.0.1:{port}/{name}"
                got = run("curl", "-s", "--compressed", url)
                raw = run("curl", "-s", "-H", "Accept-Encoding: gzip", url)
                assert got == data, (name, len(got))
                assert raw[:2] == b"\x1f\x8b", name
        finally:
            server.terminate()
            server.wait()
    log = (folder / "error.log").read_text()
    assert "[alert]" not in log and "[error]" not in log, log


def rsync(folder):
    """Two rsyncs talk zlib with each other: one with weft, one without."""
    source, target = folder / "source", folder / "target"
    source.mkdir()
    for i in range(20):
        (source / f"f{i}").write_bytes(corpus.mixed(50_000 * (i + 1), i))
    remote = folder / "remote"
    remote.write_text('#!/bin/sh\nshift\nunset LD_PRELOAD\nexec "$@"\n')
    remote.chmod(0o755)
    run("rsync", "-a", "-z", "--compress-choice=zlib", "-e", remote,
        f"{source}/", f"host:{target}/", env=PRELOAD)
    for path in source.iterdir():
        assert (target / path.name).read_bytes() == path.read_bytes(), path


def pigz(folder):
    """pigz packs with weft under it, gzip judges; and unpacks gzip's."""
    data = corpus.mixed(3_000_000)
    plain = folder / "plain"
    plain.write_bytes(data)
    for args in (["-1"], ["-6", "-p2"], ["-6", "-i"], ["-z"], ["-9", "-p1"]):
        out = run("pigz", "-c", *args, plain, env=PRELOAD)
        back = run("pigz", "-dc", *(["-z"] if "-z" in args else []),
                   input=out)
        assert back == data, args
        if "-z" not in args:
            assert run("gzip", "-dc", input=out) == data, args
    out = run("gzip", "-c", plain)
    assert run("pigz", "-dc", input=out, env=PRELOAD) == data


def main():
    if not os.path.exists(LIBRARY):
        print("no libweft-z.so here")
        sys.exit(77)
    os.environ["PATH"] += ":/usr/sbin"
    PRELOAD["PATH"] = os.environ["PATH"]
    needs = {git: "git", curl: "curl", nginx: "nginx", rsync: "rsync",
             pigz: "pigz"}
    ran = 0
    for test, program in needs.items():
        if not shutil.which(program) and not os.path.exists(
                f"/usr/sbin/{program}"):
            print(f"skipped: no {program}")
            continue
        with tempfile.TemporaryDirectory() as tmp:
            start = time.monotonic()
            test(pathlib.Path(tmp))
            print(f"{test.__name__}: {time.monotonic() - start:.1f} s")
            ran += 1
    sys.exit(0 if ran else 77)


main()
