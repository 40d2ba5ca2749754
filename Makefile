# SPDX-License-Identifier: BSD-2-Clause
# A thin front: meson does the work. demo and test start from a bare Debian 12.
MAKEFLAGS += --no-print-directory

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
WEFT = $(BUILD)/tools/weft
DEMO_ENV = FI_PROVIDER_PATH="$(CURDIR)/$(BUILD)/src"

help:
	@echo 'make demo       build, show the provider, race it against the others'
	@echo 'make test       build and run every test'
	@echo 'make sim        the provider in simulated processes (FOR=3600, SEED=1)'
	@echo 'make storm      random faults among 16 processes (FOR=3600 seconds, SEED=1)'
	@echo 'make bench      the full race, plotted in $(BUILD)/bench.svg (ARGS="..." for weft bench)'
	@echo 'make lint       formatting, layers, house rules, cppcheck'
	@echo 'make format     let clang-format rewrite the sources'
	@echo 'make build      build only, in $(BUILD)/'
	@echo 'make install    install below PREFIX=$(PREFIX) (DESTDIR is honoured)'
	@echo 'make deb        build Debian packages in build-deb/'
	@echo 'make deb-check  install, use and purge them in a copy of this system'
	@echo 'make uninstall  remove what the last make install put there'
	@echo 'make clean      remove every build folder'

deps-%:
	@scripts/deps $*

# meson learns Debian's folder of libraries from dpkg-architecture, which a small
# system does not have; in lib64 nobody would find them.
$(BUILD)/build.ninja:
	@multiarch=$$(gcc -print-multiarch 2>/dev/null || true); \
	set -x; meson setup $(BUILD) --buildtype=release --prefix=$(PREFIX) \
		-Dtests=disabled $${multiarch:+--libdir=lib/$$multiarch}

# A folder that another user has built in, or installed from.
ninja-mine:
	@for file in $(BUILD) $(BUILD)/.ninja_log; do \
		test ! -e $$file || test -w $$file || { \
			echo "weft: $$file belongs to $$(stat -c %U $$file): remove" \
				"$(BUILD)/, or build elsewhere, as in make BUILD=build-mine"; \
			exit 1; }; \
	done

# Open MPI that was installed after the first build. meson may not accept it: it is
# asked once for each mpicc.
ninja-mpi: $(BUILD)/build.ninja
	@if mpicc=$$(command -v mpicc) && ! grep -q weft-bench-mpi $<; then \
		seen=$$(ls -lL "$$mpicc"); \
		test "$$seen" = "$$(cat $(BUILD)/mpicc-seen 2>/dev/null)" || { \
			meson setup --reconfigure $(BUILD) >/dev/null && \
			echo "$$seen" >$(BUILD)/mpicc-seen; }; \
	fi

ninja: ninja-mine ninja-mpi
	@ninja -C $(BUILD)

build: deps-build
	@$(MAKE) ninja

demo: deps-demo
	@$(MAKE) ninja
	@echo
	$(DEMO_ENV) fi_info -p weft
	@echo
	$(DEMO_ENV) $(WEFT) bench --short --against shm,tcp,ucx --floor \
		--timeout 60

bench: deps-bench
	@$(MAKE) ninja
	$(DEMO_ENV) $(WEFT) bench --against shm,tcp,ucx --floor \
		--svg $(BUILD)/bench.svg $(ARGS)

test: deps-test
	@scripts/run-tests

# Random faults for as long as you like; see tests/storm/storm.c.
FOR ?= 60
SEED ?= 1
storm: deps-test
	@test -d build-gcc || CC=gcc meson setup build-gcc -Dtests=enabled
	@ninja --quiet -C build-gcc tests/storm/storm src/libweft-fi.so
	FI_PROVIDER_PATH="$(CURDIR)/build-gcc/src" WEFT_SRC="$(CURDIR)" \
		scripts/isolate build-gcc/tests/storm/storm --both \
		--for $(FOR) --seed $(SEED) $(ARGS)

# Simulated processes, from a seed, on all processors; see tests/sim/main.c.
sim: deps-test
	@test -d build-gcc || CC=gcc meson setup build-gcc -Dtests=enabled
	@ninja --quiet -C build-gcc tests/sim/weft-sim
	build-gcc/tests/sim/weft-sim --for $(FOR) --seed $(SEED) \
		--jobs $$(nproc) $(ARGS)

lint: deps-lint
	@status=0; \
	for rule in format style layers listed headers manual calls; do \
		echo "== $$rule"; \
		python3 -B tests/house/$$rule.py || status=1; \
	done; \
	echo '== cppcheck'; \
	cppcheck -q --std=c11 --enable=warning,performance,portability \
		--inline-suppr --suppress=ctuuninitvar \
		--error-exitcode=1 -Isrc src || status=1; \
	exit $$status

format:
	@find src include tools tests bench fuzz examples -name '*.[ch]' 2>/dev/null | \
		xargs -r clang-format -i

install: deps-build
	@$(MAKE) ninja
	@DESTDIR="$(DESTDIR)" scripts/install "$(BUILD)" "$(PREFIX)"

uninstall:
	@scripts/uninstall "$(BUILD)"

# build-deb/ is ignored by git.
deb: deps-deb
	@scripts/deb build-deb

deb-check: deps-deb
	@scripts/deb-check build-deb

clean:
	rm -rf $(BUILD) build-deb build-gcc build-clang build-asan build-tsan

.PHONY: help ninja ninja-mine ninja-mpi build demo bench test storm sim lint format install uninstall \
	deb deb-check clean
.DEFAULT_GOAL := help
