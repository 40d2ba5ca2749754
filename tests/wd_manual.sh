# SPDX-License-Identifier: BSD-2-Clause
# The programs in the manuals of Warpdrive, as a reader would try them: compiled
# against the public headers and libwd.so alone, run in each scenario.
dir=$(mktemp -d) || exit 1
devd=
cleanup() {
	[ -n "$devd" ] && kill "$devd" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# What stands between .nf and .fi after the heading EXAMPLES, without the
# escapes.
sed -n '/^\.SH EXAMPLES/,/^\.SH SEE/p' "$WEFT_SRC/man/wd_soft.7" |
	sed -n '/^\.nf/,/^\.fi/p' |
	sed -e '/^\.[nf][if]$/d' -e 's/\\-/-/g' -e 's/\\e/\\/g' >"$dir/copy.c"
${CC:-cc} -Wall -Wextra -Werror -I"$WEFT_SRC/include" -o "$dir/copy" \
	"$dir/copy.c" -L"$WEFT_BUILD/src" -lwd -Wl,-rpath,"$WEFT_BUILD/src" ||
	exit 1

export WEFT_DEVD="$dir/devd.sock" WEFT_SYSFS=/nonexistent
if "$dir/copy"; then
	echo "ran without a device"
	exit 1
fi
for scenario in sva share noiommu; do
	mkfifo "$dir/ready"
	"$WEFT_BUILD/tools/weft" devd -s "$WEFT_DEVD" \
		-d "x-0,scenario=$scenario" >"$dir/ready" &
	devd=$!
	read -r line <"$dir/ready"
	said=$(timeout 20 "$dir/copy")
	if [ "$said" != "x-0: weft, status 0" ]; then
		echo "$scenario ($line): '$said'"
		exit 1
	fi
	kill "$devd"
	wait "$devd"
	devd=
	rm "$dir/ready"
done
