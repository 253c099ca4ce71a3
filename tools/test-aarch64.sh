#!/bin/sh
# test-aarch64.sh   Builds the preset aarch64 on x86-64 and runs its tests: those of C++ that open no process under qemu-user, and
# those that look at running programs in two emulated machines (aarch64-machine.sh, aarch64-tests.sh). Needs root.
set -eu
cd "$(dirname "$0")/.."
root=${PHLOX_AARCH64_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/aarch64/root}
# Not here: rooms whose tests need programs of aarch64 (objcopy), or a kernel that qemu-user does not imitate.
pure='base elf memory profile perf importers exporters report top mcp push'

tools/aarch64-root.sh
cmake --preset aarch64 --log-level=WARNING
cmake --build --preset aarch64 --parallel "$(nproc)"

failed=
for room in $pure; do
  echo "test-aarch64: $room"
  qemu-aarch64-static -L "$root" "build/aarch64/tests/${room}_tests" --gtest_brief=1 > "build/aarch64/tests/$room.log" 2>&1 || {
    tail -40 "build/aarch64/tests/$room.log"
    failed="$failed $room"
  }
done
for suite in bookworm trixie; do
  echo "test-aarch64: an emulated machine, $suite"
  tools/aarch64-machine.sh "$suite" tools/aarch64-tests.sh || failed="$failed $suite"
done
[ -z "$failed" ] || { echo "test-aarch64: failed:$failed"; exit 1; }
echo "test-aarch64: all passed"
