#!/bin/sh
# get-consumers.sh [FOLDER]   Installs the programs that read phlox's exports, for tests/cli/test_consumers.py
# and tests/browser/test_speedscope.py: npm's profiler-cli and speedscope; with cargo, inferno; with go,
# google/pprof. The others are packages (packages-test.txt) or in the tests' environment
# (requirements-test.txt); go must be installed already. Default: ~/.cache/phlox/consumers. What cannot be
# installed is named; its tests are skipped.
set -u
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/consumers}
mkdir -p "$folder" && cd "$folder" || exit 1
missing=
# Ubuntu 22.04 has Node.js 12, which does not know its syntax.
if ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; then
  missing="$missing profiler-cli"
elif [ ! -x node_modules/.bin/profiler-cli ]; then
  echo "bringing profiler-cli"
  npm install --silent --no-audit --no-fund --prefix . @firefox-devtools/profiler-cli || missing="$missing profiler-cli"
fi
if [ ! -f node_modules/speedscope/dist/release/index.html ]; then
  echo "bringing speedscope"
  npm install --silent --no-audit --no-fund --prefix . speedscope@1.25.0 || missing="$missing speedscope"
fi
if [ ! -x bin/inferno-flamegraph ] && command -v cargo > /dev/null; then
  echo "bringing inferno"
  cargo install --quiet --root . --no-default-features --features cli inferno || missing="$missing inferno"
fi
if [ ! -x bin/pprof ] && command -v go > /dev/null; then
  echo "bringing pprof"
  GOBIN=$PWD/bin go install github.com/google/pprof@latest || missing="$missing pprof"
fi
[ -z "$missing" ] || echo "not available:$missing" >&2
[ -z "$missing" ]
