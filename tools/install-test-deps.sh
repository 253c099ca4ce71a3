#!/bin/sh
# Installs what the tests need in addition to the build: packages, and an environment with pytest and playwright outside the tree.
# Prints only what it does; does nothing if everything is there.
set -eu
tools=$(dirname "$0")
"$tools/install-packages.sh" "$tools/packages-test.txt"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/phlox
venv=${PHLOX_VENV:-$cache/venv}
if ! cmp -s "$tools/requirements-test.txt" "$venv/requirements-test.txt"; then
  echo "making $venv"
  # One that works is added to: others may be running tests in it.
  if ! "$venv/bin/python" -m pip --version > /dev/null 2>&1; then
    rm -rf "$venv"
    mkdir -p "$(dirname "$venv")"
    /usr/bin/python3 -m venv "$venv"
  fi
  "$venv/bin/python" -m pip --quiet install -r "$tools/requirements-test.txt"
  cp "$tools/requirements-test.txt" "$venv/"
fi

# Of a Python whose C stack tells least: 3.10.
greenlet=$cache/greenlet-3.10
if [ ! -d "$greenlet" ]; then
  rm -rf "$greenlet.part"
  "$venv/bin/python" -m pip --quiet install --target "$greenlet.part" --python-version 3.10 --only-binary :all: 'greenlet>=3,<4'
  mv "$greenlet.part" "$greenlet"
fi

# Event loops: trio and anyio are pure Python, for 3.10 and later; uvloop is for the system's Python only.
loops=$cache/loops
if [ ! -d "$loops" ]; then
  rm -rf "$loops.part"
  "$venv/bin/python" -m pip --quiet install --target "$loops.part" --python-version 3.10 --only-binary :all: \
    'trio>=0.26,<1' 'anyio>=4,<5' exceptiongroup typing_extensions
  "$venv/bin/python" -m pip --quiet install --target "$loops.part" --only-binary :all: 'uvloop<1' ||
    echo 'no uvloop for this Python: its tests are skipped'
  mv "$loops.part" "$loops"
fi
# Django's threads: pure Python, for 3.9 and later.
[ -d "$loops/asgiref" ] ||
  "$venv/bin/python" -m pip --quiet install --target "$loops" --python-version 3.10 --only-binary :all: --no-deps 'asgiref<4'

# Web frameworks: for the system's Python only.
web=$cache/web
if [ ! -d "$web" ]; then
  rm -rf "$web.part"
  "$venv/bin/python" -m pip --quiet install --target "$web.part" --only-binary :all: \
    'starlette<2' 'fastapi<1' 'flask>=2,<4' 'django>=4,<7' 'aiohttp>=3.8,<4' ||
    { rm -rf "$web.part"; mkdir -p "$web.part"; echo 'no web frameworks for this Python: their tests are skipped'; }
  mv "$web.part" "$web"
fi

# The official client of the Model Context Protocol, for phlox mcp: for the system's Python only.
client=$cache/mcp-client
if [ ! -d "$client" ]; then
  rm -rf "$client.part"
  "$venv/bin/python" -m pip --quiet install --target "$client.part" --only-binary :all: 'mcp>=2.3,<3' ||
    { rm -rf "$client.part"; mkdir -p "$client.part"; echo 'no MCP client for this Python: its test is skipped'; }
  mv "$client.part" "$client"
fi

# The official gRPC, and the official types of OpenTelemetry, for phlox agent: for the system's Python only.
grpc=$cache/grpc
if [ ! -d "$grpc" ]; then
  rm -rf "$grpc.part"
  "$venv/bin/python" -m pip --quiet install --no-warn-conflicts --target "$grpc.part" --only-binary :all: 'grpcio>=1.60,<2' 'opentelemetry-proto>=1.45,<2' ||
    { rm -rf "$grpc.part"; mkdir -p "$grpc.part"; echo 'no grpcio for this Python: its tests are skipped'; }
  mv "$grpc.part" "$grpc"
fi

# Ubuntu's Chromium is a snap, which does not run in a container, and there as nobody but its owner. An npm package has one that
# opens no window.
chromium=$cache/chromium-138
if ! command -v chromium > /dev/null && ! command -v google-chrome > /dev/null && [ ! -x "$chromium/chromium" ] && command -v npm > /dev/null; then
  echo "bringing $chromium"
  rm -rf "$chromium"
  mkdir -p "$chromium"
  (
    cd "$chromium"
    npm pack --loglevel=error @sparticuz/chromium@138.0.2 > /dev/null
    tar -xzf ./*.tgz package/bin/chromium.br
    node -e 'const fs = require("fs"), zlib = require("zlib"); fs.writeFileSync("part", zlib.brotliDecompressSync(fs.readFileSync("package/bin/chromium.br")), {mode: 0o755});'
    rm -r ./*.tgz package
    mv part chromium
  )
fi

# What cannot be had is named there, and skipped by name in the tests.
"$tools/get-consumers.sh" || true
[ -d "$cache/dprint-0.54.0" ] || "$tools/format-web.sh" --check > /dev/null || true
