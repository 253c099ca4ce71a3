# `make` builds phlox; `make help` lists the rest. The work itself is in CMake, CMakePresets.json and tools/.
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

CACHE   ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/phlox
PYTHON  ?= /usr/bin/python3
JOBS    ?= $(shell nproc)
PREFIX  ?= /usr/local
SOURCES  = $(shell git ls-files '*.cpp' '*.h')
# Each version formats differently. Debian 12, Ubuntu 22.04 and Ubuntu 24.04 all have this one.
CLANG_FORMAT ?= clang-format-14

export PHLOX_VENV := $(CACHE)/venv

# If the generator or the compiler has changed since the first time, CMake reports an error itself.
define configure_and_build
	@tools/libbpf.sh
	cmake --preset $(1) --log-level=WARNING $(3)
	cmake --build --preset $(1) --parallel $(JOBS) $(2)
endef

.PHONY: build
build: ## build build/release/phlox (the same as `make` alone)
	@tools/install-build-deps.sh --check || { echo 'hint: make deps' >&2; exit 1; }
	$(call configure_and_build,release)
	@build/release/phlox --version

.PHONY: static
static: ## build build/release/phlox-static, one file that runs in an empty container image (docs/containers.md)
	@tools/static-libraries.sh
	$(call configure_and_build,release,--target phlox_static)

.PHONY: static-aarch64
static-aarch64: ## the same for aarch64, cross-compiled on Debian 12 on x86-64: build/aarch64/phlox-static
	@tools/install-build-deps.sh
	@tools/aarch64-root.sh
	@tools/static-libraries.sh aarch64
	$(call configure_and_build,aarch64,--target phlox_static)

.PHONY: deps
deps: ## install what building needs (apt, with sudo unless root)
	@tools/install-build-deps.sh
	@tools/libbpf.sh

.PHONY: demo
demo: ## install what is needed, build, and profile a bundled program: demo.phlox, demo.svg, a summary
	@ALLOW_REDUCED='$(ALLOW_REDUCED)' tools/demo.sh $(PYTHON)

# ONLY='python cli': the GoogleTest binaries of these directories, and the tests in tests/python and tests/cli.
comma := ,
empty :=
only_targets = $(if $(ONLY),--target phlox make_picture $(foreach room,$(ONLY),$(if $(wildcard tests/$(room)/*_test.cpp),$(room)_tests)))
only_tests   = $(if $(ONLY),--only $(subst $(empty) $(empty),$(comma),$(strip $(ONLY))))

.PHONY: check
check: ## before each commit, two minutes: quick tests on the system's Python, the tests of web/, layers, format
	@tools/install-packages.sh tools/packages-build.txt tools/packages-check.txt tools/packages-lint.txt
	$(call configure_and_build,dev)
	@$(MAKE) lint
	@tools/run_tests.py --check $(only_tests) build/dev

.PHONY: test test-all
test: ## install what the tests need, build preset dev, run every test; only some directories: make test ONLY='python cli'
test-all: ## the same, with every installed interpreter for each test that reads a program: before you hand in
test test-all:
	@tools/install-packages.sh tools/packages-build.txt tools/packages-test.txt
	@tools/install-test-deps.sh
	@$(MAKE) build_and_pythons PRESET=dev
	@tools/run_tests.py $(if $(filter test-all,$@),--all) $(only_tests) build/dev

# Interpreters are fetched while the compiler works.
.PHONY: build_and_pythons
build_and_pythons:
	@tools/get-pythons.sh & pythons=$$!; $(MAKE) build_preset && wait $$pythons

# A new build directory compiles in batches (cmake/rooms.cmake); an existing one stays as it was configured.
.PHONY: build_preset
build_preset:
	$(call configure_and_build,$(PRESET),$(only_targets),$(if $(wildcard build/$(PRESET)/CMakeCache.txt),,-D PHLOX_UNITY=ON))

# Commit the matrix only from a machine that has nearly every interpreter: pyenv's, root's suites, PYTHONS=all for the rest.
.PHONY: pythons-doc
pythons-doc: ## update docs/pythons.md with a run on every installed interpreter: make pythons-doc PYTHONS=musl
	@tools/install-build-deps.sh
	@tools/install-test-deps.sh
	@tools/get-pythons.sh $(PYTHONS)
	$(call configure_and_build,dev,--target phlox)
	PHLOX_MATRIX_SECONDS=2 PHLOX_BUILD_DIR=build/dev PHLOX_TREE=$(CURDIR) PHLOX_PYTHONS=$${PHLOX_PYTHONS:-$(CACHE)/pythons/pythons.list} \
		$(PHLOX_VENV)/bin/python -m pytest -q tests/live/test_matrix.py -k stacks_and_lines
	cp build/dev/pythons.md docs/pythons.md

.PHONY: bench
bench: build build-reading ## run the benchmarks: make bench BENCH='truth cost --quick'
	python3 bench/run.py $(BENCH)

# The ptrace-stopped reference of the benchmarks and the experiment itself.
.PHONY: build-reading
build-reading:
	cmake --preset release --log-level=WARNING -DPHLOX_BENCHMARKS=ON
	cmake --build --preset release --parallel $(JOBS) --target reading wake native_cost kernel_cost bench_report

.PHONY: bench-reading
bench-reading: build-reading ## repeat the experiment of docs/decisions/0001: make bench-reading READING='--quick --only leaf'
	python3 bench/reading/experiment.py --reader build/release/bench/reading $(READING)

.PHONY: bench-unwinding
bench-unwinding: ## compare native frames with libdwfl's, for many libraries: make bench-unwinding UNWINDING='--samples 1000'
	cmake --preset release --log-level=WARNING -DPHLOX_BENCHMARKS=ON
	cmake --build --preset release --parallel $(JOBS) --target unwinding
	python3 bench/unwinding/run.py $(UNWINDING)

.PHONY: asan tsan
asan: ## run C++, cli and live tests under the address and undefined-behaviour sanitizers
tsan: ## run C++, cli and live tests under the thread sanitizer
asan tsan:
	@tools/install-build-deps.sh
	@tools/install-test-deps.sh
	@$(MAKE) build_and_pythons PRESET=$@
	@tools/run_tests.py --sanitized $(only_tests) build/$@

.PHONY: test-aarch64
test-aarch64: ## build for aarch64 and run its tests, in emulated machines, as root
	@tools/test-aarch64.sh

.PHONY: fuzz
fuzz: ## run every fuzz target for a while: make fuzz SECONDS=60
	@tools/install-build-deps.sh
	@tools/install-packages.sh tools/packages-fuzz.txt
	$(call configure_and_build,fuzz)
	@tools/run-fuzz.sh build/fuzz $(or $(SECONDS),30)

.PHONY: fuzz-bulk
fuzz-bulk: ## the same without the address sanitizer, and many times faster: make fuzz-bulk SECONDS=600
	@tools/install-build-deps.sh
	@tools/install-packages.sh tools/packages-fuzz.txt
	$(call configure_and_build,fuzz-bulk)
	@tools/run-fuzz.sh build/fuzz-bulk $(or $(SECONDS),30)

.PHONY: trust
trust: ## try to break phlox for an hour, as root: kills, stops, failures, corrupt memory and files; writes docs/trust.md: make trust SECONDS=600
	@tools/install-packages.sh tools/packages-build.txt tools/packages-test.txt
	$(call configure_and_build,release)
	@tests/trust/trust.py --store --seconds $(or $(SECONDS),3600) build/release/phlox

.PHONY: format
format: ## format the C++ sources, and web/
	@tools/install-packages.sh tools/packages-lint.txt
	$(CLANG_FORMAT) -i $(SOURCES)
	tools/format-web.sh

.PHONY: lint
lint: ## check the format of the C++ sources and of web/, the types of web/, and the rules of the source
	@tools/install-packages.sh tools/packages-lint.txt
	@$(CLANG_FORMAT) --dry-run --Werror $(SOURCES)
	tools/format-web.sh --check || [ $$? = 3 ]
	tsc --noEmit -p web
	python3 tests/layers_test.py

.PHONY: changelog
changelog: ## turn the files in news/ into a section of CHANGELOG.md: make changelog VERSION=0.2.0
	@tools/news.py $(or $(VERSION),$(error make changelog VERSION=0.2.0)) $(if $(DATE),--date $(DATE))

# One version of clang, so that the bytes are the same on every machine. `make test` checks them.
.PHONY: bpf
bpf: ## compile the BPF program again, after a change of src/phlox/sampler/kernel/*.bpf.*; commit the result
	@tools/install-packages.sh tools/packages-bpf.txt
	@cmake -D DO=write -P cmake/bpf_object.cmake

.PHONY: install
install: build ## install phlox under PREFIX (default /usr/local)
	cmake --install build/release --prefix $(PREFIX)

.PHONY: deb
deb: static ## make a Debian package in build/deb, with the static program: it installs on every Debian and Ubuntu
	tools/release.py --deb build/deb build/release/phlox-static

.PHONY: wheel
wheel: ## make a Python wheel in build/dist: the program, and the package phlox
	@tools/install-build-deps.sh
	@tools/install-test-deps.sh
	$(PHLOX_VENV)/bin/python -m pip wheel --no-deps --disable-pip-version-check -w build/dist .

# What a release is made for. On x86-64, Debian 12 cross-compiles for aarch64.
MACHINES ?= $(shell . /etc/os-release; uname -m; [ "$$(uname -m) $$ID $$VERSION_ID" != 'x86_64 debian 12' ] || echo aarch64)
others = $(filter-out $(shell uname -m),$(MACHINES))

# Packed files have the time of the last commit, so packing again gives the same bytes.
.PHONY: release
release: static $(others:%=static-%) ## make what people install, in dist/: a static program, a wheel and a .deb with it, the source, licences, checksums (MACHINES=x86_64: without aarch64)
	@tools/install-test-deps.sh
	rm -rf build/dist && mkdir -p build/dist
	git archive --format=tar --prefix=source/ HEAD | tar -xf - -C build/dist
	cd build/dist/source && SOURCE_DATE_EPOCH=$$(git -C $(CURDIR) log -1 --format=%ct) $(PHLOX_VENV)/bin/python -c \
	  'from scikit_build_core.build import build_sdist; build_sdist("..")'
	$(PHLOX_VENV)/bin/python tools/release.py dist build/release/phlox-static $(others:%=build/%/phlox-static) --sdist build/dist/phlox-*.tar.gz
	rm -rf build/dist

.PHONY: release-twice
release-twice: ## prove that a release has the same bytes wherever it is built: make it in two directories, and compare
	@tools/release-twice.sh

.PHONY: try-release
try-release: ## try dist/ on Debian 12, Ubuntu 22.04 and 24.04, a Python on musl, and in an empty root; as root
	@tools/install-test-deps.sh
	@tools/release-roots.sh
	-@tools/get-pythons.sh musl
	$(PHLOX_VENV)/bin/pip install -q 'pip>=24' twine auditwheel
	PHLOX_DIST=$(CURDIR)/dist PHLOX_STATIC=$$(ls $(CURDIR)/dist/phlox-*-linux-$$(uname -m)) $(PHLOX_VENV)/bin/python -m pytest -q -rs \
	  tests/package/test_release_elsewhere.py tests/package/test_empty_root.py tests/package/test_release_aarch64.py

.PHONY: clean
clean: ## remove build/ and the demo's files (downloaded interpreters stay in the cache)
	rm -rf build demo.phlox demo.svg

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
