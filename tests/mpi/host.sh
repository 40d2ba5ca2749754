#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What mpirun takes for rsh: starts its daemon on a host that hosts.py has made,
# under that host's name.
host=$1
shift
# shellcheck disable=SC2016
exec nsenter --net="/run/netns/$host" unshare --uts \
	sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
