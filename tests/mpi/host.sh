#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mpirun uses this as rsh: it starts the daemon on a host that hosts.py has created,
# under that host's name.
host=$1
shift
# shellcheck disable=SC2016
exec nsenter --net="/run/netns/$host" unshare --uts \
	sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
