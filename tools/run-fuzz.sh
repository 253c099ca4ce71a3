#!/bin/sh
# run-fuzz.sh BUILD_DIR SECONDS [NAME...]   Runs every fuzz target, or those named (perf_data), for SECONDS each. They start from tests/fuzz/corpus
# and from the corpus of earlier runs, which is outside the tree. tests/fuzz/ledger.jsonl counts what all runs on all machines executed
# (fuzz_ledger.py table). Inputs that break a target are kept in BUILD_DIR/crashes; each becomes a named unit test. TIMEOUT: seconds for one input.
set -u
build=$(cd "$1" && pwd)
seconds=$2
shift 2
tools=$(cd "$(dirname "$0")" && pwd)
seeds=$tools/../tests/fuzz/corpus
corpora=${XDG_CACHE_HOME:-$HOME/.cache}/phlox/corpora
mkdir -p "$build/crashes" "$corpora"
# -entropic=0: to choose inputs by how rare what they reach is takes half of the time, and found no more.
options="-entropic=0"
if grep -q '^PHLOX_FUZZ_BULK:[A-Z]*=ON' "$build/CMakeCache.txt"; then
  flavour=bulk
  # To look for shorter inputs of the same reach takes a fifth of the time.
  options="$options -reduce_inputs=0"
  # What is freed is not given back to the kernel, which would clear it again for the next execution.
  export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824
else
  flavour=asan
  # Where memory was allocated is told in short, and less of what was freed is kept aside: a sixth faster. An input that broke tells all of it when run alone.
  export ASAN_OPTIONS="malloc_context_size=4:quarantine_size_mb=32${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
fi

# In bytes; 0: as long as the longest there is. In bulk so much as holds what a format has, since twice as long is twice as slow.
longest() {
  case $flavour:$1 in
    bulk:gzip_input | bulk:recognise | bulk:pprof | bulk:collapsed | bulk:tachyon) echo 256 ;;
    bulk:austin_* | bulk:jit_map | bulk:perf_script) echo 512 ;;
    bulk:firefox | bulk:perf_data) echo 2048 ;;
    bulk:elf_file) echo 4096 ;;
    # Lines are read one by one, so a few tell what many do: four times as fast.
    bulk:* | asan:collapsed | asan:austin_text | asan:perf_script) echo 1024 ;;
    *) echo 0 ;;
  esac
}

ran=0 broken=0
for program in "$build"/tests/fuzz/*_fuzz; do
  [ -x "$program" ] || continue
  name=${program##*/}
  case " $* " in *" ${name%_fuzz} "*) ;; *) [ $# = 0 ] || continue ;; esac
  mkdir -p "$corpora/$name"
  ran=$((ran + 1))
  if "$tools/fuzz_ledger.py" run --flavour "$flavour" "$tools/../tests/fuzz/ledger.jsonl" "$build/crashes/$name.log" "$name" \
    "$program" -max_total_time="$seconds" -max_len="$(longest "${name%_fuzz}")" $options -timeout="${TIMEOUT:-10}" -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" "$corpora/$name" "$seeds"; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/crashes/$name.log") executions, $(ls "$corpora/$name" | wc -l) inputs, nothing broke"
  else
    broken=$((broken + 1))
    echo "$name: BROKE, see $build/crashes/$name.log"
    tail -20 "$build/crashes/$name.log"
  fi
done
echo "$ran fuzz targets, $broken broken"
[ $ran -gt 0 ] && [ $broken = 0 ]
