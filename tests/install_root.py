# SPDX-License-Identifier: BSD-2-Clause
"""An installation as its user finds it: in a mount namespace with a /usr/local
and an /etc of its own, the examples are built by pkg-config and run, the
loader knows the libraries, manuals and completion are there, and
`make uninstall` removes it all.

The bugs: without ldconfig, programs linked through pkg-config and the
LD_PRELOAD line of weft-z(7) failed; `weft info` said that FI_PROVIDER_PATH is
needed where libfabric looks by itself; there was no weft-z.pc, no manual by a
function's name, no uninstall; without the right to write, a Python traceback.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", "build")).absolute()
SRC = pathlib.Path(os.environ.get("WEFT_SRC", ".")).absolute()
PREFIX = pathlib.Path("/usr/local")
WORK = pathlib.Path("/tmp/work")


def fail(text):
    print(text)
    sys.exit(1)


def skip(text):
    print(text)
    sys.exit(77)


def run(command, code=0, env=None, **more):
    """Standard output and error; both are wanted: the loader complains on the
    latter and goes on."""
    env = {**{k: v for k, v in os.environ.items()
              if not k.startswith(("FI_", "LD_", "PKG_"))}, **(env or {})}
    done = subprocess.run(command, env=env, check=False, timeout=280,
                          stdin=more.pop("stdin", subprocess.DEVNULL),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **more)
    if done.returncode != code:
        fail(f"{command}: {done.returncode}, not {code}:\n"
             f"{done.stdout.decode(errors='replace')}")
    return done.stdout


def enter():
    """The namespace, made by unshare: this program again, inside."""
    if os.geteuid() or not shutil.which("unshare"):
        skip("no mount namespace: not root, or no unshare")
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        skip("mount namespaces are not allowed here")
    os.execvp("unshare", ["unshare", "-m", sys.executable, "-B", __file__,
                          "inside"])


def mount(*words):
    return subprocess.run(["mount", *words], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def prepare():
    """Whatever is written here is gone with the namespace."""
    if not mount("--make-rprivate", "/") or \
            not mount("-t", "tmpfs", "tmpfs", "/mnt"):
        skip("cannot mount here")
    for name in ("etc", "tmp", "cache"):
        pathlib.Path("/mnt", name).mkdir(mode=0o755)
    os.chmod("/mnt/tmp", 0o1777)
    run(["cp", "-a", "/etc/.", "/mnt/etc"])
    keep = [path for path in (SRC, BUILD) if path.is_relative_to("/tmp")]
    for where, what in (("/etc", "etc"), ("/var/cache/ldconfig", "cache"),
                        ("/tmp", "tmp")):
        if what == "tmp" and keep:
            continue
        if os.path.isdir(where) and not mount("--bind", f"/mnt/{what}", where):
            skip(f"cannot mount on {where}")
    if BUILD.is_relative_to(PREFIX) or SRC.is_relative_to(PREFIX) or \
            not mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(PREFIX)):
        skip(f"cannot mount on {PREFIX}")
    (PREFIX / "share" / "man").mkdir(parents=True)
    WORK.mkdir()


def check_refusal():
    """A user who may not write is told so, in one line."""
    script = shutil.copy(SRC / "scripts" / "install", WORK)
    os.chmod(WORK, 0o755)

    def drop():
        os.setgid(65534)
        os.setuid(65534)

    mine, roots, hidden = (WORK / name for name in ("mine", "roots", "hidden"))
    (hidden / "build").mkdir(parents=True)
    os.chmod(hidden, 0o700)
    mine.mkdir()
    os.chown(mine, 65534, 65534)
    roots.mkdir(mode=0o755)
    # The second bug: meson's own message about its folder, a traceback. The third
    # one: "belongs to :" and nobody's name for a folder below /root. The fourth:
    # a folder that is not there was one that nobody may open.
    for build, word in ((mine, str(PREFIX)), (roots, f"{roots} belongs to root"),
                        (hidden / "build", "you may not open"),
                        (WORK / "no" / "build", "there is no build")):
        said = run(["sh", script, str(build), str(PREFIX)], 1,
                   preexec_fn=drop).decode()
        if said.count("\n") != 1 or not said.startswith("weft: ") or \
                "PREFIX=" not in said or word not in said:
            fail(f"not one line that helps:\n{said}")


def check_no_build():
    """Bug: a traceback of Python."""
    none = WORK / "none"
    none.mkdir()
    said = run(["sh", SRC / "scripts" / "install", none, PREFIX], 1).decode()
    if said.count("\n") != 1 or f"{none} is no build" not in said:
        fail(f"not one line that helps:\n{said}")


def check_sources():
    """Bug: with a clone in ~/weft, `make install PREFIX=$HOME/weft` deleted
    include/weft/smm.h. DESTDIR and a copy of the script make a folder look
    like the sources, so that this test cannot harm them."""
    sources = WORK / "tree" / PREFIX.relative_to("/")
    (sources / "scripts").mkdir(parents=True)
    script = shutil.copy(SRC / "scripts" / "install", sources / "scripts")
    said = run(["sh", script, BUILD, PREFIX], 1,
               env={"DESTDIR": str(WORK / "tree")}).decode()
    if said.count("\n") != 1 or "sources" not in said or \
            "PREFIX=" not in said:
        fail(f"not one line that helps:\n{said}")


def check_examples(libdir, printed):
    examples = WORK / "examples"
    shutil.copytree(SRC / "examples", examples)
    run(["make", "-C", str(examples)], env={"CFLAGS": "-Wall -Wextra -Werror"})
    setting = re.search(r"^ *export (FI_PROVIDER_PATH)=(.*)$", printed, re.M)
    if not setting:
        fail(f"no line for FI_PROVIDER_PATH:\n{printed}")
    said = run([examples / "ping", "weft", "500"],
               env={setting[1]: setting[2]}).decode()
    if not re.fullmatch(r"weft: 500 round trips of 8 bytes, \d+ ns one way\n",
                        said):
        fail(f"ping: {said}")
    said = run([examples / "compress", SRC / "README.md"]).decode()
    if not re.fullmatch(r"\d+ bytes became \d+, and the same again\n", said):
        fail(f"compress: {said}")
    # A zlib program, once preloaded as weft-z(7) says, once linked.
    linked = examples / "linked"
    flags = run(["pkg-config", "--cflags", "--libs", "weft-z"]).decode()
    run(["cc", "-o", linked, examples / "zpipe.c", *flags.split()])
    plain = (SRC / "README.md").read_bytes() * 20
    (WORK / "plain").write_bytes(plain)
    for program, env in ((examples / "zpipe",
                          {"LD_PRELOAD": "libweft-z.so.1"}), (linked, {})):
        with open(WORK / "plain", "rb") as file:
            packed = run([program], env=env, stdin=file)
        if gzip.decompress(packed) != plain:
            fail(f"{program}: not the same again")
        if f"{libdir}/libweft-z.so.1" not in \
                run(["ldd", program], env=env).decode():
            fail(f"{program} does not use {libdir}/libweft-z.so.1")


def alias_path():
    """A PATH with an ldconfig that names /usr/local by a link to it, /mnt/alias."""
    pathlib.Path("/mnt/alias").symlink_to(PREFIX)
    folder = WORK / "bin"
    folder.mkdir()
    script = folder / "ldconfig"
    script.write_text('#!/bin/sh\nPATH=/sbin:/usr/sbin:/bin:/usr/bin\n'
                      f'ldconfig "$@" | sed "s,{PREFIX}/,/mnt/alias/,"\n')
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def check_known(printed):
    """Bug: below /usr a line for LD_LIBRARY_PATH was printed that nobody needs,
    because the loader has the libraries in /lib, which is a link to /usr/lib."""
    if "LD_LIBRARY_PATH" in printed or "The loader knows" not in printed:
        fail(f"the loader is said not to know the libraries:\n{printed}")


def check_manuals():
    links = run([SRC / "scripts" / "man-links", SRC / "man"]).decode()
    man = PREFIX / "share" / "man"
    for line in links.splitlines():
        link, page = line.split()
        if (man / "man3" / link).read_text() != f".so man3/{page}\n" or \
                not (man / "man3" / page).exists():
            fail(f"{link}: not a link to {page}")
    if "wd_request_channel.3 wd.3" not in links.splitlines():
        fail(f"no link for wd_request_channel:\n{links}")


def complete(*words):
    script = PREFIX / "share" / "bash-completion" / "completions" / "weft"
    return run(["bash", "-c", f'. {script}; COMP_WORDS=("$@"); '
                'COMP_CWORD=$(($# - 1)); _weft weft; '
                'printf "%s\\n" "${COMPREPLY[@]}"', "complete",
                *words]).decode().split()


def check_completion():
    said = run(["weft", "--help"]).decode()
    commands = re.findall(r"^  ([a-z]+) ", said, re.M)
    if complete("weft", "") != commands + ["help", "--help", "--version"]:
        fail(f"{complete('weft', '')}, not {commands}")
    for command in commands:
        said = run(["weft", "help", command]).decode()
        if not said.startswith(f"usage: weft {command}"):
            fail(f"weft help {command}:\n{said}")
        options = {word for line in re.findall(r"^ +-.*", said, re.M)
                   for word in re.findall(r"^ *(?:-\w, )?(--[a-z-]+)", line)}
        found = {word for word in complete("weft", command, "--")
                 if word.startswith("--")}
        if not options or options - found or found - set(
                re.findall(r"--[a-z-]+", said)):
            fail(f"{command}: {sorted(found)}, not {sorted(options)}")
        if len(found) != len(complete("weft", command, "--")):
            fail(f"{command}: twice in {complete('weft', command, '--')}")
    tests = set(complete("weft", "bench", ""))
    if not {"latency", "memory", "wd"} <= tests or \
            set(complete("weft", "bench", "--floor", "")) != tests:
        fail(f"{tests} {complete('weft', 'bench', '--floor', '')}")
    # Arguments of options. Bug: names of tests were offered instead.
    keys = ["bytes", "messages", "unexpected", "sleeps", "peers", "rank",
            "pid"]
    for words, want in ((("bench", "--api", ""), ["msg", "tagged"]),
                        (("bench", "-t", ""), []),
                        (("stat", "-s", ""), keys),
                        (("stat", "--sort", "un"), ["unexpected"]),
                        (("stat", "-i", ""), [])):
        if complete("weft", *words) != want:
            fail(f"{words}: {complete('weft', *words)}, not {want}")
    if shutil.which("fi_info") and \
            "tcp" not in complete("weft", "bench", "--provider", ""):
        fail(f"{complete('weft', 'bench', '--provider', '')}")


def check_zsh():
    """What the completion of zsh gives to its system, which is replaced here
    by functions that print it."""
    script = PREFIX / "share" / "zsh" / "site-functions" / "_weft"
    if not shutil.which("zsh"):
        print("completion of zsh is not tried: no zsh")
        return
    for command in ("", *re.findall(r"^  ([a-z]+) ",
                                    run(["weft", "--help"]).decode(), re.M)):
        said = run(["zsh", "-fc", "compadd() {}; _describe() { print -rl -- "
                    "${(P)argv[-1]} }; _arguments() { print -rl -- $@ }; "
                    "words=(weft $2 ''); words=(${(@)words[1,$3]}); "
                    "CURRENT=$3; . $1", "zsh", script, command,
                    "3" if command else "2"]).decode()
        if command:
            shown = run(["weft", command, "--help"]).decode()
            wanted = set(re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)", shown,
                                    re.M))
            found = set(re.findall(r"^(--[a-z-]+)\[", said, re.M))
        else:
            wanted = {*re.findall(r"^  ([a-z]+) ", run(
                ["weft", "--help"]).decode(), re.M), "help"}
            found = set(re.findall(r"^([a-z]+):", said, re.M))
        if not wanted or wanted != found:
            fail(f"zsh, weft {command}: {sorted(found)}, not "
                 f"{sorted(wanted)}:\n{said}")


def check_other_folder():
    """Below /usr/local libfabric does not look by itself."""
    facts = json.loads(run(["weft", "info", "--json"]))["provider"]
    if not facts["found"] or "need FI_PROVIDER_PATH" not in facts["path_from"]:
        fail(f"{facts}")


def check_user():
    """The same by a user who is not root and may write to the prefix alone: a user
    namespace where the owner of these files has the number 1000, and a system that is
    read-only but for the prefix."""
    read_only = "mount --rbind /usr /usr && mount -o remount,bind,ro /usr && " \
        "mount -o remount,bind,ro /etc"
    become = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*become, "true"], check=False).returncode:
        print("installing as a user is not tried: no user namespace")
        return
    # `sudo make test` where a user has built: nobody's there.
    if os.stat(BUILD).st_uid:
        print("installing as a user is not tried: the build is not root's")
        return
    run(["unshare", "-m", "sh", "-ec", f'{read_only}; exec "$@"', "user",
         *become, sys.executable, "-B", __file__, "user"])


def as_user():
    if os.geteuid() != 1000 or os.access("/etc", os.W_OK) or \
            os.access("/usr/bin", os.W_OK):
        fail("this user may write to more than the prefix")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(WORK)}
    printed = run([SRC / "scripts" / "install", BUILD, PREFIX],
                  env={**env, "PATH": os.environ["PATH"]}).decode()
    lines = re.findall(r"^ *(export .*)$", printed, re.M)
    names = {re.match(r"export (\w+)=", line)[1] for line in lines}
    if not {"FI_PROVIDER_PATH", "LD_LIBRARY_PATH"} <= names:
        fail(f"not the lines that a user needs:\n{printed}")
    if "PATH" not in names:
        lines.append(f"export PATH={PREFIX}/bin:$PATH")
    work = WORK / "user"
    shutil.copytree(SRC / "examples", work)
    (work / "plain").write_bytes(b"plain text " * 10000)
    commands = """weft version
        fi_info -p weft | grep -q 'provider: weft'
        pkg-config --exists weft-wd weft-z
        make -s
        ./ping weft 100
        ./compress plain
        LD_PRELOAD=libweft-z.so.1 ./zpipe <plain >plain.gz
        gzip -dc plain.gz | cmp - plain
        weft gunzip -c plain.gz | cmp - plain"""
    if shutil.which("man"):
        commands += """
        man -w weft-bench
        man -w wd_request_channel"""
    said = run(["bash", "-exc", "\n".join([*lines, commands])], env=env,
               cwd=work).decode()
    if "weft: 100 round trips" not in said:
        fail(said)
    run([SRC / "scripts" / "uninstall", BUILD])
    left = [path for path in PREFIX.rglob("*") if not is_known(path)]
    if left:
        fail(f"left behind by a user: {left}")


def check_own_folder():
    """What `make install PREFIX=/usr` makes: the provider where libfabric
    looks by itself. `weft info` says so. The last check: /usr stays."""
    if not shutil.which("fi_info"):
        return
    said = run(["fi_info", "-e"]).replace(b"\0", b"").decode()
    own = re.search(r"# FI_PROVIDER_PATH:.*\n.*\(default: ([^)]*)\)", said)
    for name in ("upper", "work"):
        pathlib.Path("/mnt", name).mkdir()
    if not own or not mount("-t", "overlay", "overlay", "-o", "lowerdir=/usr,"
                            "upperdir=/mnt/upper,workdir=/mnt/work", "/usr"):
        print("libfabric's own folder is not tried: no overlay")
        return
    own = pathlib.Path(own[1])
    own.mkdir(exist_ok=True)
    shutil.copy(BUILD / "src" / "libweft-fi.so", own)
    shutil.copy(BUILD / "src" / "libwd.so.0", own.parent)
    weft = shutil.copy(BUILD / "tools" / "weft", "/usr/bin/weft")
    for program, words in ((weft, "libfabric looks there by itself"),
                           (BUILD / "tools" / "weft", "use another one")):
        facts = json.loads(run([program, "info", "--json"]))["provider"]
        if not facts["found"] or words not in facts["path_from"]:
            fail(f"{program}: {facts}")
    if "provider: weft" not in run(["fi_info", "-p", "weft"]).decode():
        fail("libfabric does not look there by itself")


def is_known(path):
    """Was there before, see prepare()."""
    return path in (PREFIX / "share", PREFIX / "share" / "man")


def check_removal():
    # A second installation creates no folders; they are removed nevertheless.
    run([SRC / "scripts" / "install", BUILD, PREFIX])
    run([SRC / "scripts" / "uninstall", BUILD])
    # Bug: empty folders that it had created stayed.
    left = [path for path in PREFIX.rglob("*") if not is_known(path)]
    if left or not (PREFIX / "share" / "man").is_dir():
        fail(f"left behind: {left}")
    said = run([SRC / "scripts" / "uninstall", BUILD], 1).decode()
    # Bug: it claimed to have removed files that were not there.
    if "nothing" not in said:
        fail(f"a second removal: {said}")
    cached = run(["sh", "-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p"])
    if str(PREFIX).encode() + b"/lib/libwd" in cached:
        fail("the loader still knows the libraries")


def check_destdir():
    """A packager's installation touches nothing but its folder."""
    before = os.stat("/etc/ld.so.cache").st_mtime_ns
    run([SRC / "scripts" / "install", BUILD, PREFIX],
        env={"DESTDIR": str(WORK / "root")})
    root = WORK / "root" / PREFIX.relative_to("/")
    if not (root / "bin" / "weft").exists() or \
            [path for path in PREFIX.rglob("*") if not path.is_dir()] or \
            os.stat("/etc/ld.so.cache").st_mtime_ns != before:
        fail("DESTDIR is not honoured")
    run([SRC / "scripts" / "uninstall", BUILD])
    if root.exists():
        fail("left behind in DESTDIR")


def main():
    if "WEFT_BUILD" not in os.environ:
        skip("WEFT_BUILD is not set")
    options = json.loads(run(["meson", "introspect", BUILD,
                              "--buildoptions"]))
    options = {one["name"]: one["value"] for one in options}
    if options["prefix"] != str(PREFIX):
        skip(f"the build is for {options['prefix']}")
    if sys.argv[1:] == ["user"]:
        as_user()
        return
    if sys.argv[1:] != ["inside"]:
        enter()
    prepare()
    check_refusal()
    check_no_build()
    check_sources()
    libdir = PREFIX / options["libdir"]
    printed = run([SRC / "scripts" / "install", BUILD, PREFIX],
                  env={"PATH": alias_path()}).decode()
    check_examples(libdir, printed)
    check_known(printed)
    check_manuals()
    check_completion()
    check_zsh()
    check_other_folder()
    check_removal()
    check_destdir()
    check_user()
    check_own_folder()


main()
