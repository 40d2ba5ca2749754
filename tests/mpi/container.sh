#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mpirun uses this as rsh: it starts the daemon in a container, that is, on a host
# that hosts.py has created, with PID and IPC namespaces of its own.
host=$1
shift
# shellcheck disable=SC2016
exec nsenter --net="/run/netns/$host" unshare --uts --ipc --pid --fork \
	--kill-child sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" \
	"$@"
