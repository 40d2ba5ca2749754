#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What mpirun takes for rsh: starts its daemon here, under the name of the host
# that was asked for. Ranks of different daemons believe to be on different
# nodes, and share nothing but what the provider carries.
host=$1
shift
# shellcheck disable=SC2016
exec unshare --uts sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
