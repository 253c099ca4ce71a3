#!/bin/sh
# run-tests.sh [--sanitized] BUILD_DIR   Runs ctest and pytest of a built tree; the last line is the total of both.
# --sanitized: on few interpreters, of pytest only what runs the program; what a sanitizer has to say, in whichever process, is a failure.
set -u
sanitized=no tests=tests
if [ "$1" = --sanitized ]; then sanitized=yes tests='tests/cli tests/live'; shift; fi
tree=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/phlox
export PHLOX_BUILD_DIR="$build" PHLOX_TREE="$tree"
export PHLOX_PYTHONS="${PHLOX_PYTHONS:-$cache/pythons/pythons.list}"
# A list of tests of another day could name tests that are no more, and such a test "passes".
rm -f "$build/ctest.xml" "$build/pytest.xml" "$build"/tests/*_tests.cmake
# Whoever the program runs as may write here.
found=$build/findings
rm -rf "$found" && mkdir "$found" && chmod 1777 "$found"
# shellcheck disable=SC2089,SC2090
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:handle_abort=1:log_path=$found/asan"
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="second_deadlock_stack=1:log_path=$found/tsan"

if [ $sanitized = yes ]; then
  # Those that differ most in what is read of them.
  awk -F '\t' '($4 ~ /^3\.(8|11|13)\./ && $5 ~ /^[-t]$/ && !seen[substr($4, 1, 4) $5]++) || $1 ~ /^(system|trixie-3\.13|standalone-3\.14)/' "$PHLOX_PYTHONS" > "$build/few.list"
  export PHLOX_PYTHONS="$build/few.list"
  # Each room in one process: under a sanitizer a process takes a second to start and to end, a test most often less.
  reports=''
  for tests_of_room in "$build"/tests/*_tests; do reports="$reports $tests_of_room.xml"; done
  # shellcheck disable=SC2086
  rm -f $reports
  printf '%s\n' "$build"/tests/*_tests | xargs -P "$(nproc)" -I {} sh -c \
    '"{}" --gtest_brief=1 --gtest_output=xml:"{}.xml" > "{}.log" 2>&1; end=$?; echo "{}: exit status $end"; [ $end = 0 ] || { tail -60 "{}.log"; exit 1; }'
  status=$?
else
  reports=$build/ctest.xml
  ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" --repeat until-pass:2 --output-junit "$reports"
  status=$?
fi
# shellcheck disable=SC2086
pytest() { (cd "$tree" && "${PHLOX_VENV:-$cache/venv}/bin/python" -m pytest -q "$@" --junit-xml="$build/pytest.xml" $tests); }
pytest -rs
python_status=$?
# Live tests look at running programs on a machine that others use too: what failed gets one more try, in sight.
if [ $python_status = 1 ]; then
  echo 'run-tests: once more, those that failed'
  pytest --last-failed --last-failed-no-failures none
  python_status=$?
fi
[ $status != 0 ] || status=$python_status
for file in "$found"/*; do
  [ -e "$file" ] || continue
  status=1
  echo "run-tests: a sanitizer found something: $file"
  head -40 "$file"
done
# shellcheck disable=SC2086
python3 "$tree/tools/test_totals.py" $reports "$build/pytest.xml" || status=1
exit $status
