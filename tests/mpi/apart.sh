#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mpirun uses this as rsh: it starts the daemon here, under the name of the host
# that mpirun names. Ranks of different daemons assume that they are on different
# nodes, and share only what the provider carries.
host=$1
shift
# shellcheck disable=SC2016
exec unshare --uts sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
