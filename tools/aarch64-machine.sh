#!/bin/sh
# aarch64-machine.sh SUITE COMMAND...   Boots an emulated aarch64 machine with Debian's kernel and Python (SUITE:
# bookworm has Linux 6.1 and Python 3.11, trixie 6.12 and 3.13) and runs COMMAND in it as root, in the directory
# where this is called. This tree has the same place in it, and nothing that changes there outlives the machine but
# what is written to build/. What COMMAND prints comes out; the status is COMMAND's.
# The root file system is made once, in ~/.cache/phlox/aarch64. A machine takes 4 GiB of memory, two CPUs and a
# minute to boot; Python runs some forty times slower in it.
set -eu
suite=$1; shift
tree=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/phlox/aarch64
root=$cache/$suite
case $suite in
  bookworm) curl=libcurl4 ;;
  *) curl=libcurl4t64 ;;
esac
packages=linux-image-arm64,kmod,busybox-static,libc-bin,bash,coreutils,findutils,grep,sed,procps,util-linux,python3,python3-pytest
packages=$packages,gcc,libc6-dev,libpython3-dev,libstdc++6,libdw1,libelf1,libsqlite3-0,libncursesw6,zlib1g,liblzma5,libzstd1,$curl
modules='9p 9pnet 9pnet_virtio fscache netfs overlay virtio virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev virtio_ring'

make_root() {
  "$tree/tools/install-packages.sh" "$tree/tools/packages-cross.txt" "$tree/tools/packages-aarch64.txt"
  echo "making the root of an aarch64 machine in $root"
  rm -rf "$root" "$root.made"
  mkdir -p "$cache"
  mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*debian\/\{0,1\}\) .*/\2/p' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | sed -n 1p)
  mmdebstrap --quiet --mode="$([ "$(id -u)" = 0 ] && echo root || echo unshare)" --architectures=arm64 \
    --variant=extract --include="$packages" "$suite" "$root" ${mirror:+"$mirror"}
  mv "$root"/boot/vmlinuz-* "$root.kernel"
  rm -rf "$root/boot" "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/usr/share/perl" \
    "$root/usr/lib/aarch64-linux-gnu/perl" "$root/usr/lib/aarch64-linux-gnu/perl-base" "$root/var/lib/apt" "$root/var/cache"
  find "$root/usr/lib" -name 'libpython*.a' -delete
  keep=$(echo "$modules" | sed 's/ /|/g')
  find "$root"/lib/modules/*/kernel -type f | grep -vE "/($keep)\.ko[^/]*\$" | xargs rm -f
  find "$root"/lib/modules/*/kernel -type d -empty -delete
  /sbin/depmod -b "$root" "$(ls "$root/lib/modules")"
  ln -sf busybox "$root/bin/sh"
  # What its packages would have set up.
  ln -sf "$(cd "$root/usr/bin" && ls python3.[0-9]* | grep -x 'python3\.[0-9]*')" "$root/usr/bin/python3"
  printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n' > "$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' > "$root/etc/group"
  printf '127.0.0.1 localhost\n::1 localhost\n' > "$root/etc/hosts"
  echo "$packages" > "$root.made"
}
[ "$(cat "$root.made" 2>/dev/null || true)" = "$packages" ] || make_root

mkdir -p "$tree/build/aarch64-machine"
work=$(mktemp -d "$tree/build/aarch64-machine/$suite.XXXXXX")
trap 'rm -rf "$work"' EXIT
{
  printf '#!/bin/bash\ncd "%s"\n' "$PWD"
  printf '%q ' "$@" 2>/dev/null || printf "'%s' " "$@"
  echo
} > "$work/command"
# The first program of the machine.
cat > "$work/init" <<INIT
#!/bin/busybox sh
for m in "proc /proc" "sysfs /sys" "devtmpfs /dev" "tmpfs /tmp" "tmpfs /run" "tracefs /sys/kernel/tracing" \
  "cgroup2 /sys/fs/cgroup"; do
  set -- \$m; busybox mount -t \$1 none \$2
done
busybox mkdir -p /dev/shm /dev/pts '$tree'
busybox mount -t tmpfs none /dev/shm
busybox mount -t devpts none /dev/pts
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
modprobe -a virtio_pci 9pnet_virtio 9p overlay 2>&1 | busybox grep -v 'not found'
busybox ip link set lo up
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose tree '$tree'
bash '$work/command' < /dev/null
echo "STATUS \$?"
busybox sync
busybox poweroff -f
INIT
chmod +x "$work/init"
(cd "$root" && find . | cpio -o -H newc --quiet) > "$work/root.cpio"
(cd "$work" && echo init | cpio -o -H newc --quiet) >> "$work/root.cpio"
# Pointer authentication with QEMU's own cipher: the architecture's costs more than all else.
timeout "${SECONDS_AT_MOST:-1800}" qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 4G -nographic -nic none -no-reboot \
  -kernel "$root.kernel" -initrd "$work/root.cpio" -append "console=ttyAMA0 quiet panic=1" \
  -virtfs "local,path=$tree,mount_tag=tree,security_model=none" < "${MACHINE_INPUT:-/dev/null}" | sed -u 's,\r,,' | tee "$work/log"
exit "$(sed -n 's/^STATUS \([0-9]*\).*/\1/p' "$work/log" | tail -1)"
