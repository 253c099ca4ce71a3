#!/bin/sh
# format-web.sh [--check] [FOLDER]   Formats the TypeScript below FOLDER (default: web) as its dprint.json says. --check
# changes nothing, and fails if a file is not formatted. The first time, it downloads dprint to ~/.cache/phlox: two npm
# packages, pinned by version and hash. Exit status 3: dprint is not available here.
set -eu
doing=fmt
if [ "${1:-}" = --check ]; then doing=check; shift; fi
folder=${1:-$(dirname "$0")/../web}

dprint=${XDG_CACHE_HOME:-$HOME/.cache}/phlox/dprint-0.54.0
if [ ! -d "$dprint" ]; then
  case $(uname -m) in
    x86_64) machine=x64 hash=8ade9076dd3a7725b669d6c05e93826fbfca40bc659b88b5529854016a96b19938b771187adc80cdaf49d20dd5bbd8ad216484228f4c9dc72000d724409ebeab ;;
    aarch64) machine=arm64 hash=412d40ef82efeb4fcbf687a61c2cdb1e038b6d5dac992246e48c52e5f8dff1959eb7252df75f160f3207062973ffeba207e3a55b65154ec9bde76506d183ab2f ;;
    *) echo "not available: dprint has no program for $(uname -m)" >&2; exit 3 ;;
  esac
  echo "downloading dprint to $dprint" >&2
  mkdir -p "$(dirname "$dprint")"
  part=$(mktemp -d "$dprint.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  download() { # PACKAGE SHA512 FILE
    (cd "$part" && npm pack --loglevel=error "$1" > /dev/null) || { echo "not available: $1 from npm" >&2; exit 3; }
    echo "$2 " "$part"/*.tgz | sha512sum --check --quiet >&2 || { echo "format-web: $1 is not the package that was pinned" >&2; exit 1; }
    tar -xzf "$part"/*.tgz -C "$part" --strip-components=1 "package/$3"
    rm "$part"/*.tgz
  }
  download "@dprint/linux-$machine-musl@0.54.0" "$hash" dprint
  download @dprint/typescript@0.96.1 9b3fe720d485421d51e62d90cbdd1258e0822b84a03464643610996daecb626524138662f3fe39a7c97ca6a73dc8dd5f6f85d8e4cba1af3761e50de316c6229b plugin.wasm
  chmod 755 "$part" "$part/dprint"
  mv -T "$part" "$dprint" 2> /dev/null || rm -rf "$part" # somebody else was faster
fi
cd "$folder"
DPRINT_CACHE_DIR=$dprint/cache exec "$dprint/dprint" $doing --config dprint.json --plugins "$dprint/plugin.wasm"
