#!/bin/sh
# run-fuzz.sh BUILD_DIR SECONDS   Runs every fuzz target that long, from the corpus it has gathered before (outside the tree) and tests/fuzz/corpus.
# What breaks one stays in BUILD_DIR/crashes; it becomes a named unit test (style rule 38).
set -u
build=$(cd "$1" && pwd)
seconds=$2
seeds=$(cd "$(dirname "$0")/../tests/fuzz/corpus" && pwd)
corpora=${XDG_CACHE_HOME:-$HOME/.cache}/phlox/corpora
mkdir -p "$build/crashes"
ran=0 broken=0
for program in "$build"/tests/fuzz/*_fuzz; do
  [ -x "$program" ] || continue
  name=${program##*/}
  mkdir -p "$corpora/$name"
  ran=$((ran + 1))
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=0 \
    -artifact_prefix="$build/crashes/$name-" "$corpora/$name" "$seeds" > "$build/crashes/$name.log" 2>&1; then
    echo "$name: $seconds s, $(ls "$corpora/$name" | wc -l) inputs, nothing broke"
  else
    broken=$((broken + 1))
    echo "$name: BROKE, see $build/crashes/$name.log"
    tail -20 "$build/crashes/$name.log"
  fi
done
echo "$ran fuzz targets, $broken broken"
[ $ran -gt 0 ] && [ $broken = 0 ]
