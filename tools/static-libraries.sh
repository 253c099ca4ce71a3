#!/bin/bash
# static-libraries.sh [aarch64]   Builds the archives that phlox-static needs and the distribution has not: Zydis, and a libcurl of
# HTTP and HTTPS alone. For this machine, or for aarch64 (cmake/aarch64.cmake).
#
# The sources are the distribution's own, with its patches, of the suites that this machine's apt knows. The archives lie in
# ${XDG_CACHE_HOME:-~/.cache}/phlox/static/MACHINE/lib, made once; PHLOX_STATIC_LIBRARIES names another place. `parts` beside them has the source packages and their versions, and
# parts.licences their licences (tools/release.py).
set -euo pipefail
export LC_ALL=C
umask 022
TOOLS=$(cd "$(dirname "$0")" && pwd)
. "$TOOLS/private-apt.sh"
MACHINE=${1:-$(uname -m)}
DIR=${PHLOX_STATIC_LIBRARIES:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/static}/$MACHINE
WHAT=curl CC=gcc TOOLCHAIN=()
case $MACHINE in
  x86_64) WHAT='zydis curl' ;;
  aarch64) [ "$(uname -m)" = aarch64 ] || TOOLCHAIN=(-DCMAKE_TOOLCHAIN_FILE="$TOOLS/../cmake/aarch64.cmake") ;;
esac
RECIPE=$(sha256sum "$0" | cut -c1-16)
mkdir -p "$DIR"
exec 8> "$DIR/.lock"
flock 8
[ "$(cat "$DIR/made" 2> /dev/null)" != "$RECIPE" ] || exit 0
rm -rf "$DIR/made" "$DIR/lib" "$DIR/parts" "$DIR/parts.licences" "$DIR/source"
mkdir -p "$DIR/lib" "$DIR/source"
trap 'rm -rf "$DIR/source"' EXIT

fetch_sources() {
  local suites
  suites=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u | sed 's/^/deb-src /')
  private_apt "$DIR/source/apt" <<< "$suites"
  # shellcheck disable=SC2086
  (cd "$DIR/source" && apt-get -qq source $WHAT > fetch.log 2>&1) || { tail -20 "$DIR/source/fetch.log" >&2; return 1; }
}

source_of() { # PACKAGE
  find "$DIR/source" -mindepth 1 -maxdepth 1 -type d -name "$1-*"
}

make_zydis() { # SOURCE
  local objects=$DIR/source/zydis-objects file
  mkdir "$objects"
  for file in "$1"/src/*.c; do
    "$CC" -O2 -DNDEBUG -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -ffile-prefix-map="$1=zydis" -I "$1/include" -I "$1/src" -c "$file" \
      -o "$objects/$(basename "$file" .c).o"
  done
  ar rcsD "$DIR/lib/libZydis.a" "$objects"/*.o
}

# OpenSSL reads no configuration file: it could name modules to load, and a static program loads none. Where the certificates are,
# curl_http.cpp finds out where it runs.
make_curl() { # SOURCE
  local build=$DIR/source/curl-build off=() word
  for word in CURL_USE_LIBPSL CURL_USE_LIBSSH CURL_USE_LIBSSH2 CURL_USE_GSSAPI USE_LIBIDN2 CURL_BROTLI CURL_ZSTD CURL_ZLIB \
    USE_LIBRTMP ENABLE_UNIX_SOCKETS ENABLE_MANUAL BUILD_CURL_EXE BUILD_SHARED_LIBS BUILD_TESTING; do off+=("-D$word=OFF"); done
  for word in COOKIES NETRC ALTSVC HSTS MIME DOH NTLM CRYPTO_AUTH LIBCURL_OPTION OPENSSL_AUTO_LOAD_CONFIG; do
    off+=("-DCURL_DISABLE_$word=ON")
  done
  cmake -G Ninja -S "$1" -B "$build" "${TOOLCHAIN[@]}" --log-level=ERROR -Wno-dev -DCMAKE_BUILD_TYPE=Release -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DUSE_NGHTTP2=ON \
    -DENABLE_THREADED_RESOLVER=ON -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCMAKE_C_FLAGS="-ffile-prefix-map=$1=curl" "${off[@]}" > /dev/null
  cmake --build "$build" --target libcurl > "$build.log" 2>&1 || { tail -20 "$build.log" >&2; return 1; }
  cp "$(find "$build" -name libcurl.a)" "$DIR/lib/libcurl.a"
}

"$TOOLS/install-packages.sh" "$TOOLS/packages-build.txt" "$TOOLS/packages-static.txt"
echo "building the libraries that have no archive: $WHAT"
fetch_sources
for what in $WHAT; do
  source=$(source_of "$what")
  "make_$what" "$source"
  (cd "$source" && echo "$what $(dpkg-parsechangelog -S Version)") >> "$DIR/parts"
  printf '%s\n\n' "$what" >> "$DIR/parts.licences"
  cat "$source/debian/copyright" >> "$DIR/parts.licences"
done
echo "$RECIPE" > "$DIR/made"
