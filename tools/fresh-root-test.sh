#!/bin/bash
# fresh-root-test.sh [--suite SUITE] [--user] [--root DIR] [--share DIR]... [MAKE-TARGET...]
#
# Proves the set-up commands: in a new Debian (default bookworm) or Ubuntu (jammy, noble) with only git and make, clones
# what is committed here, runs `make TARGET...` there (default: demo), and prints what `phlox doctor` says of the build.
# As root, or with --user as an ordinary user with sudo. Needs root and debootstrap. --root keeps the machine in DIR and
# reuses it the next time; otherwise it is removed. --share shows a directory of this machine in the new one at the same
# path (a cache, to save time; a proof has none). The directory becomes the root of a mount namespace, not of a chroot:
# programs that mount something, or give a program another root, work there as on any machine.
#
# The settings of package sources (apt, pip, certificates) are copied from this machine: a fresh machine has its own.
set -euo pipefail
suite=bookworm user=no keep= root= shared=()
while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --user) user=yes; shift ;;
    --root) keep=yes; root=$2; shift 2 ;;
    --share) shared+=("$(readlink -f "$2")"); shift 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- demo
tree=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
[ "$(id -u)" = 0 ] || { echo 'fresh-root-test: this needs root: sudo tools/fresh-root-test.sh' >&2; exit 1; }
command -v debootstrap > /dev/null || { echo 'fresh-root-test: apt-get install debootstrap' >&2; exit 1; }

[ -n "$root" ] || root=$(mktemp -d /var/tmp/phlox-fresh.XXXXXX)
# mktemp makes it private; here it becomes every user's root.
[ ! -d "$root" ] || chmod 755 "$root"
# Everything is mounted in a mount namespace of its own, so no mount can be left behind, and removing removes
# only our files. The PIDs are this machine's, so what needs the kernel's own processes, or those of BPF, runs
# too. Processes left in the namespace at the end are killed.
clean_up() {
  [ ! -s "$root/phlox.namespace" ] || for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/mnt" || true)" != "$(cat "$root/phlox.namespace")" ] || kill -9 "${process#/proc/}" || true
  done 2> /dev/null
  [ -n "$keep" ] || rm -rf --one-file-system "$root"
}
trap clean_up EXIT

mirror=$("$tree/tools/apt-mirror.sh")
script=() components=main
case $suite in
  jammy | noble | questing | resolute)
    # Next to Debian's, as on most mirrors. Its keys are not Debian's; one script suits all of its suites.
    mirror=${mirror%/debian*}/ubuntu components=main,universe script=(gutsy) ;;
esac
if [ ! -e "$root/etc/os-release" ]; then
  debootstrap ${script:+--no-check-gpg} --variant=minbase --components=$components --include=git,make,ca-certificates,sudo \
    "$suite" "$root" "$mirror" "${script[@]}" > "$root.log" 2>&1 ||
    { tail -5 "$root.log" >&2; echo "fresh-root-test: this machine's mirror has no $suite" >&2; exit 1; }
  rm -f "$root.log"
  for f in /etc/pip.conf /etc/apt/apt.conf.d/*proxy* /usr/local/share/ca-certificates/*; do
    [ ! -f "$f" ] || install -D -m 644 "$f" "$root$f"
  done
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  chroot "$root" useradd --create-home --shell /bin/bash somebody
  echo 'somebody ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/somebody"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/hosts "$root/etc/hosts"

if [ $user = yes ]; then home=/home/somebody name=somebody; else home=/root name=root; fi
rm -rf "$root$home/phlox" "$root/phlox.git"
git clone --quiet --bare "$tree" "$root/phlox.git"
git -C "$tree" rev-parse HEAD > "$root/phlox.head"
# git accepts a repository only from its owner.
chroot "$root" chown -R "$name:" /phlox.git

settings=$(env | grep -E '^(PIP_(CERT|DEFAULT_TIMEOUT|INDEX_URL)|(https?|no)_proxy|GO(PROXY|SUMDB|FLAGS))=' || true)
# npm has its own setting for trusted certificates.
cafile=$(npm config get cafile 2> /dev/null || true) # "null": there is none
[ ! -f "$cafile" ] || settings="$settings npm_config_cafile=$cafile"
rm -f "$root/phlox.namespace"
start=$(date +%s)
status=0
# shellcheck disable=SC2086
root=$root shared=$(printf '%s\n' "${shared[@]}") unshare --mount --propagation private -- bash -euc '
  readlink /proc/self/ns/mnt > "$root/phlox.namespace"
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  for directory in $shared; do mkdir -p "$root$directory"; mount --bind "$directory" "$root$directory"; done
  cd "$root"
  pivot_root . .
  umount -l .
  cd /
  name=$1 home=$2 goals=$3; shift 3
  exec setpriv --reuid "$name" --regid "$name" --init-groups \
    env -i HOME="$home" USER="$name" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" \
    bash -euc "cd; git clone --quiet /phlox.git phlox; cd phlox; git checkout --quiet --detach \$(cat /phlox.head); make $goals; [ ! -x build/release/phlox ] || build/release/phlox doctor || true"
' bash "$name" "$home" "$*" $settings || status=$?
printf 'fresh-root-test: %s as %s: make %s: %s after %s s\n' "$suite" "$name" "$*" \
  "$([ $status = 0 ] && echo good || echo "status $status")" "$(($(date +%s) - start))"
exit $status
