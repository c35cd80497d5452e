#!/bin/bash
# tests/tools/fresh.sh - the README's two commands on a minimal Debian 12.
#
# debootstrap makes a system with nothing beside git, make and ca-certificates;
# `make demo` and `make check` run there in a clean clone of HEAD, so that a
# package that .ci/deps forgets cannot hide behind what this machine has.  /proc,
# /sys, /dev/shm and the memory groups are as a container has them.  Packages
# come from where this machine's apt gets its own.
set -eu

skip() { echo "skipped: $*"; exit 77; }

SUITE=bookworm

# --- inside: a mount and a process namespace of our own ---

if [ "${1-}" = --inside ]; then
	root=$2 src=$3
	shift 3			# what is left are variables of the environment
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mkdir -p "$root/dev/shm" "$root/src"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount --bind -o ro "$src" "$root/src"
	# shellcheck disable=SC2016
	exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	    HOME=/root LANG=C.UTF-8 "$@" sh -euc '
		git config --global --add safe.directory "*"
		git clone -q /src /root/straddle
		cd /root/straddle
		echo "=== make demo"
		make demo
		echo "=== make check"
		make check'
fi

# --- outside ---

[ "$(id -u)" = 0 ] || skip "needs root, to make a root file system"
command -v debootstrap >/dev/null ||
    skip "debootstrap is not installed (.ci/deps fresh installs it)"
unshare --mount --pid --fork true 2>/dev/null ||
    skip "this process may not have namespaces of its own"
src=$(git rev-parse --show-toplevel)
[ -z "$(git status --porcelain)" ] ||
    echo "note: changes that are not committed are not tested"

# The hosts that this machine's apt has packages from, a line each.
sources() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
	    'Created-By: Packages' | grep " $SUITE" | sort -u
}
mirror=$(sources | awk -v suite=$SUITE '$2 == suite { print $1; exit }')
[ -n "$mirror" ] || skip "apt has no source for $SUITE here"

root=$(mktemp -d /var/tmp/straddle-fresh-XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
t0=$SECONDS
debootstrap --variant=minbase --include=git,make,ca-certificates \
    "$SUITE" "$root" "$mirror" >"$root.log" 2>&1 || {
	tail -n 20 "$root.log"
	rm -f "$root.log"
	exit 1
}
rm -f "$root.log"
echo "=== debootstrap took $((SECONDS - t0)) s"
sources | sed 's/^/deb /' >"$root/etc/apt/sources.list"
# How this machine's apt reaches them: proxies, credentials, certificates.
for f in /etc/apt/apt.conf.d/* /etc/apt/auth.conf /etc/apt/auth.conf.d/*; do
	[ -f "$f" ] && grep -qi 'proxy\|acquire\|^machine' "$f" &&
	    install -D -m 600 "$f" "$root$f"
done
for f in /etc/resolv.conf /etc/hosts; do
	[ ! -f "$f" ] || cat "$f" >"$root$f"
done
proxies=()
for name in http_proxy https_proxy no_proxy; do
	[ -z "${!name-}" ] || proxies+=("$name=${!name}")
done
unshare --mount --pid --fork --kill-child \
    bash "$0" --inside "$root" "$src" "${proxies[@]}"
