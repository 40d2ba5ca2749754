# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs on the software EFA device, alone or as server and client."""

import os
import pathlib
import shutil
import subprocess

import pingpong

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build"))
WEFT = str(BUILD / "tools" / "weft")


def require(*programs):
    """Skips where something is missing."""
    if not (BUILD / "src" / "libweft-efa.so").exists():
        pingpong.skip("libweft-efa.so is not built")
    for program in programs:
        if not shutil.which(program):
            pingpong.skip(f"{program} is not installed")


def run(*words, env=None, status=0):
    done = subprocess.run([WEFT, "efa", "--", *words], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, **(env or {})), timeout=120)
    if done.returncode != status:
        pingpong.fail(f"{' '.join(words)}: {done.returncode}\n{done.stdout}")
    return done.stdout


def pair(server, client, env=None):
    """What the client says of a server that listens at a port of TCP, PORT in
    the words of both."""
    port = pingpong.free_port()
    commands = [[WEFT, "efa", "--", *(str(port) if word == "PORT" else word
                                      for word in words)]
                for words in (server, client)]
    ends = pingpong.run_both(commands[0], port, commands[1],
                             {**os.environ, **(env or {})})
    if ends[0][0] or ends[1][0]:
        pingpong.fail(f"{' '.join(client)}\nclient {ends[0][0]}\n"
                      f"{ends[0][1]}\nserver {ends[1][0]}\n{ends[1][1]}")
    return ends[0][1]
