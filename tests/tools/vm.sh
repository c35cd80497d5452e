#!/bin/bash
# tests/tools/vm.sh - test memory groups under cgroup v2: boot a Debian kernel under
# qemu with cgroup v2 only, and run tests/tools/vm_init.sh there.
#
#	VM_KERNEL	a kernel image (default: Debian's cloud kernel, downloaded
#			to build/vm, not installed)
#	VM_ACCEL	kvm or tcg (default: kvm if /dev/kvm can be opened)
#
# The initrd holds everything that runs there: this build, the tests, and the programs
# that they call, with their libraries.
set -eu

B=${B:-build}
VM=$B/vm ROOT=$B/vm/root
PACKAGE=linux-image-cloud-$(dpkg --print-architecture 2>/dev/null || true)
LIMIT_S=${VM_LIMIT_S:-1800}

skip()
{
	echo "vm: skipped: $*"
	exit 77
}

command -v qemu-system-x86_64 >/dev/null ||
    skip "qemu-system-x86_64 is not installed (package qemu-system-x86)"
[ -x /bin/busybox ] && command -v cpio >/dev/null ||
    skip "busybox or cpio is not installed (packages busybox-static cpio)"
[ -x "$B/straddle" ] || skip "$B/straddle is not built"

# $PACKAGE depends on the package that has the image.
fetch_kernel()
{
	local real

	real=$(apt-cache depends "$PACKAGE" 2>/dev/null |
	    awk '/Depends: linux-image/ { print $2; exit }')
	[ -n "$real" ] || return 1
	(cd "$VM" && apt-get download "$real" >/dev/null 2>&1 &&
	    dpkg-deb -x "$real"_*.deb kernel) || return 1
	rm -f "$VM/$real"_*.deb
}

mkdir -p "$VM"
KERNEL=${VM_KERNEL:-$(ls "$VM"/kernel/boot/vmlinuz-* 2>/dev/null | head -n 1)}
if [ -z "$KERNEL" ]; then
	fetch_kernel || skip "no kernel: set VM_KERNEL, or let apt-get" \
	    "download $PACKAGE"
	KERNEL=$(ls "$VM"/kernel/boot/vmlinuz-* | head -n 1)
fi

# --- the root file system ---

rm -rf "$ROOT"
mkdir -p "$ROOT"/{bin,proc,sys,dev,tmp,etc,root,usr/bin,straddle/build/tests/{unit,tools}}
ln -s bin "$ROOT/sbin"

# install_files FILE...: copy files and the libraries of programs to the same paths.
install_files()
{
	local file

	for file; do
		[ -e "$ROOT$file" ] || install -D "$file" "$ROOT$file"
		ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true
	done | sort -u | while read -r file; do
		[ -e "$ROOT$file" ] || install -D "$file" "$ROOT$file"
	done
}

PYTHON=$(python3 -c 'import sys; print(sys.executable)')
LIBDIR=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
install_files /bin/busybox
"$ROOT/bin/busybox" --list | grep -vxE 'busybox|awk|sh' | while read -r name
do
	ln -s busybox "$ROOT/bin/$name"
done
# busybox's versions of these lack options that the tests use.
for name in bash awk pgrep timeout iconv setpriv ps mount grep sed cut seq \
    stat readlink; do
	path=$(realpath "$(command -v "$name")")
	install_files "$path"
	rm -f "$ROOT/bin/$name" "$ROOT/usr/bin/$name"
	cp "$path" "$ROOT/bin/$name"
done
ln -s bash "$ROOT/bin/sh"
install_files "$PYTHON"
ln -sf "$PYTHON" "$ROOT/bin/python3"
mkdir -p "$ROOT$LIBDIR"
(cd "$LIBDIR" && tar cf - --exclude='test*' --exclude=__pycache__ \
    --exclude=site-packages --exclude=dist-packages --exclude='*tk*' \
    --exclude=idlelib --exclude=ensurepip --exclude='config-*' .) |
    tar xf - -C "$ROOT$LIBDIR"
for name in _json _struct _posixsubprocess _random _bisect _sha512 _sha2 _blake2 _heapq \
    _opcode _pickle math select fcntl grp zlib binascii array; do
	install_files $(find "$ROOT$LIBDIR/lib-dynload" -name "$name.*.so")
done
printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n' \
    >"$ROOT/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$ROOT/etc/group"

for name in straddle tests/unit/cgroup tests/tools/mkgguf; do
	install_files "$(realpath "$B/$name")"
	mv "$ROOT$(realpath "$B/$name")" "$ROOT/straddle/build/$name"
done
mkdir -p "$ROOT/straddle/tests"
cp -r config "$ROOT/straddle/"
cp -r tests/*.sh tests/e2e tests/faults tests/tools tests/data "$ROOT/straddle/tests/"
install tests/tools/vm_init.sh "$ROOT/init"
(cd "$ROOT" && find . | cpio -o -H newc --quiet) >"$VM/initrd"

# --- the virtual machine ---

accel=${VM_ACCEL:-$([ -w /dev/kvm ] && echo kvm || echo tcg)}
qemu=
trap '[ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true' EXIT

# start_vm ACCEL ARGS: an emulated core gets no wide vectors, which would be slower.
start_vm()
{
	: >"$VM/log"
	timeout "$LIMIT_S" qemu-system-x86_64 -accel "$1" \
	    -cpu "$([ "$1" = kvm ] && echo host || echo Nehalem)" \
	    -smp 2 -m 2048 \
	    -nodefaults -nographic -no-reboot -serial stdio \
	    -kernel "$KERNEL" -initrd "$VM/initrd" -append \
	    "console=ttyS0 panic=-1 no_timer_check cgroup_no_v1=all $2" \
	    </dev/null >"$VM/log" 2>&1 &
	qemu=$!
}

# The kernel passes unknown parameters to the first process as environment variables.
SLOW=STRADDLE_SLOW=1

is_up() { grep -aq '^vm: ' "$VM/log"; }

start_vm "$accel" "$([ "$accel" = kvm ] || echo "$SLOW")"
if [ "$accel" = kvm ]; then	# /dev/kvm may exist without working
	for i in {1..40}; do
		! is_up && kill -0 "$qemu" 2>/dev/null && sleep 0.5 || break
	done
	if ! is_up; then
		echo "vm: /dev/kvm does not work here; trying tcg"
		kill "$qemu" 2>/dev/null || true
		wait "$qemu" || true
		accel=tcg
		start_vm tcg "$SLOW"
	fi
fi
wait "$qemu" || true
qemu=
grep -a '^vm: \|^e2e_\|FAILED\|^worst' "$VM/log" |
    tr -d '\r' || true
if ! grep -q '^vm: all passed' "$VM/log"; then
	tail -n 40 "$VM/log"
	echo "vm: failed, under $accel; the whole log is $VM/log"
	exit 1
fi
