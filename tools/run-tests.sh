#!/bin/sh
# run-tests.sh [--only-ctest] BUILD_DIR   Runs ctest and pytest of a built tree; the last line is the total of both.
set -u
only_ctest=no
if [ "$1" = --only-ctest ]; then only_ctest=yes; shift; fi
tree=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/phlox
export PHLOX_BUILD_DIR="$build" PHLOX_TREE="$tree"
export PHLOX_PYTHONS="${PHLOX_PYTHONS:-$cache/pythons/pythons.list}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
# A list of tests of another day could name tests that are no more, and such a test "passes".
rm -f "$build/ctest.xml" "$build/pytest.xml" "$build"/tests/*_tests.cmake

ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" --repeat until-pass:2 --output-junit "$build/ctest.xml"
status=$?
reports=$build/ctest.xml
if [ $only_ctest = no ]; then
  (cd "$tree" && "${PHLOX_VENV:-$cache/venv}/bin/python" -m pytest -q -rs --junit-xml="$build/pytest.xml" tests)
  python_status=$?
  # Live tests look at running programs on a machine that others use too: what failed gets one more try, in sight.
  if [ $python_status = 1 ]; then
    echo 'run-tests: once more, those that failed'
    (cd "$tree" && "${PHLOX_VENV:-$cache/venv}/bin/python" -m pytest -q --last-failed --last-failed-no-failures none --junit-xml="$build/pytest.xml" tests)
    python_status=$?
  fi
  [ $status != 0 ] || status=$python_status
  reports="$reports $build/pytest.xml"
fi
python3 "$tree/tools/test_totals.py" $reports || status=1
exit $status
