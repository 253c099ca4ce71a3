#!/bin/sh
# aarch64-tests.sh [TEST...]   The part of test-aarch64.sh that runs in an emulated machine: tests of tests/live, one or more for
# each way of sampling. By default none that measures times, and none whose program ends by itself (wakers): the times of this
# machine are the emulator's, and loading the kernel's program takes it some ten seconds.
set -eu
cd "$(dirname "$0")/.."
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
printf 'system-%s\t/usr/bin/python3\tsystem\t%s.0\t-\n' "$version" "$version" > /run/pythons.list
export PHLOX_TREE="$PWD" PHLOX_BUILD_DIR="$PWD/build/aarch64" PHLOX_PYTHONS=/run/pythons.list PHLOX_SLOWER=3 PYTHONDONTWRITEBYTECODE=1
if [ $# = 0 ]; then
  truth=tests/live/test_truth.py kernel=tests/live/test_kernel.py native=tests/live/test_native.py inside=tests/live/test_kernel_native.py
  set -- \
    $truth::test_families_of_functions_never_mix $truth::test_a_name_is_of_the_moment_with_exec \
    $truth::test_threads_of_a_container_s_first_process_have_their_ids \
    $kernel::test_families_of_functions_never_mix $kernel::test_a_name_is_of_the_moment $kernel::test_a_deep_stack_keeps_both_ends \
    "$native::test_python_in_c_in_python_seven_deep[system-$version-ptrace]" \
    $native::test_dump $native::test_an_extension_s_functions_with_lines \
    $inside::test_python_in_c_in_python_seven_deep $inside::test_families_of_functions_never_mix $inside::test_an_extension_s_functions
  # glibc 2.41 makes calls in a function without a frame, whose return address the kernel does not show (docs/native.md).
  [ "$version" != 3.11 ] || set -- "$@" $native::test_a_blocked_thread_is_read_without_a_stop
fi
exec python3 -m pytest -q -p no:cacheprovider -W ignore --color=no --tb=short -rs --durations=15 "$@"
