#!/bin/sh
# get-consumers.sh [FOLDER]   Brings the programs that read what phlox exports, for tests/cli/test_consumers.py: npm's profiler-cli, PyPI's DuckDB and,
# where there is a cargo, inferno. go and flamegraph.pl are taken where they are. Default: ~/.cache/phlox/consumers. What cannot be had is named.
set -u
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/consumers}
mkdir -p "$folder" && cd "$folder" || exit 1
missing=
if [ ! -x node_modules/.bin/profiler-cli ]; then
  npm install --silent --no-audit --no-fund --prefix . @firefox-devtools/profiler-cli || missing="$missing profiler-cli"
fi
if [ ! -x venv/bin/python ] || ! venv/bin/python -c 'import duckdb' 2> /dev/null; then
  { python3 -m venv venv && venv/bin/pip -q install duckdb; } || missing="$missing DuckDB"
fi
if [ ! -x bin/inferno-flamegraph ] && command -v cargo > /dev/null; then
  cargo install --quiet --root . --no-default-features inferno || missing="$missing inferno"
fi
[ -z "$missing" ] || echo "not to be had:$missing" >&2
[ -z "$missing" ]
