# SPDX-License-Identifier: BSD-2-Clause
# The unit tests of Warpdrive's channels under valgrind: nothing read before it
# was written, nothing leaked. Those that fork by the dozen are the sanitizers'.
if ! command -v valgrind >/dev/null; then
	echo "no valgrind here"
	exit 77
fi
# Tests of bad addresses do not run here: valgrind reports each of them.
export WEFT_TEST_VALGRIND=1
for test in chan-devices chan-session devd-memory devd-stats; do
	valgrind --quiet --error-exitcode=9 --leak-check=full \
		--show-leak-kinds=definite,possible --errors-for-leak-kinds=definite \
		--child-silent-after-fork=yes --fair-sched=yes \
		"$WEFT_BUILD/src/$test-test" >"/tmp/weft-valgrind-$$" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		tail -50 "/tmp/weft-valgrind-$$"
		rm -f "/tmp/weft-valgrind-$$"
		echo "$test: $status"
		exit 1
	fi
done
rm -f "/tmp/weft-valgrind-$$"
