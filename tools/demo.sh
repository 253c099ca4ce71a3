#!/bin/bash
# demo.sh PYTHON   The steps of `make demo`: installs packages, builds, records examples/orders.py, draws it.
# Output fits on one screen; that of the tools goes to build/demo.log, and to the screen when one of them
# fails. A build that lacks what README.md promises is an error, unless ALLOW_REDUCED is set.
set -u -o pipefail
cd "$(dirname "$0")/.."
python=$1
mkdir -p build
log=build/demo.log
: > "$log"

step() { # step WHAT COMMAND...
  local what=$1 start=$SECONDS
  shift
  printf '%-36s' "$what ..."
  if ! "$@" >> "$log" 2>&1 < /dev/null; then
    printf 'failed. The end of %s:\n\n' "$log"
    tail -40 "$log"
    exit 1
  fi
  printf '%4d s\n' $((SECONDS - start))
}

# sudo asks for its password on the terminal even if its output is redirected.
step 'installing packages' tools/install-packages.sh tools/packages-build.txt tools/packages-demo.txt
step 'building build/release/phlox' make build
if lacks=$(build/release/phlox --version | grep ' no ('); then
  printf '\nThis build lacks something. %s\n' "$lacks"
  if [ -z "${ALLOW_REDUCED:-}" ]; then
    echo 'hint: to see the demonstration without it: make demo ALLOW_REDUCED=1'
    exit 1
  fi
fi
printf '\nRecording examples/orders.py: a shop with four threads, which share the GIL\n\n'
build/release/phlox record -o demo.phlox -- "$python" examples/orders.py || exit
build/release/phlox export demo.phlox --by thread -f svg -o demo.svg >> "$log" 2>&1 || { tail "$log"; exit 1; }
cat <<'END'

demo.svg      the flame graph, a tower for each thread: open it in a browser, click to zoom
demo.phlox    the recording, for every other view of it:
                build/release/phlox report demo.phlox    all that it found, with what each number rests on
                build/release/phlox view demo.phlox      timeline and flame graph, in the browser
Your own program, while it runs:
                build/release/phlox record -p PID -d 10 -o app.phlox
END
