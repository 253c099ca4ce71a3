#!/bin/sh
# fuzz-corpus.sh BUILD_DIR [NAME...]   Copies the fewest and smallest inputs gathered by `make fuzz` that
# cover what tests/fuzz/corpus does not, into tests/fuzz/corpus/NAME, for the target of each importer or for
# those named (perf_data). BUILD_DIR: of preset fuzz. Check the sizes before committing.
set -eu
build=$(cd "$1" && pwd)
shift
corpus=$(cd "$(dirname "$0")/../tests/fuzz/corpus" && pwd)
corpora=${XDG_CACHE_HOME:-$HOME/.cache}/phlox/corpora
merged=$(mktemp -d)
trap 'rm -rf "$merged"' EXIT
for program in "$build"/tests/fuzz/*_fuzz; do
  name=${program##*/}
  name=${name%_fuzz}
  case " $* " in *" $name "*) ;; *) [ $# = 0 ] && grep -q 'support/import_check.h' "$corpus/../${name}_fuzz.cpp" || continue ;; esac
  [ -d "$corpora/${name}_fuzz" ] || continue
  # The files of real programs, and inputs copied before, come first; then the smallest input for each further
  # edge.
  rm -rf "$merged/$name"
  mkdir -p "$merged/$name" "$corpus/$name"
  cp "$corpus"/* "$corpus/$name"/* "$merged/$name/" 2> /dev/null || true
  ls "$merged/$name" > "$merged/before"
  "$program" -merge=1 -use_counters=0 -max_len=1536 -timeout=60 "$merged/$name" "$corpora/${name}_fuzz" > "$merged/log" 2>&1 || { tail -5 "$merged/log"; exit 1; }
  for input in "$merged/$name"/*; do
    grep -qxF "${input##*/}" "$merged/before" || cp "$input" "$corpus/$name/"
  done
  echo "$name: $(ls "$corpus/$name" | wc -l) inputs, $(du -bs "$corpus/$name" | cut -f1) bytes"
done
