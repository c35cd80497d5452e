#!/bin/bash
# tests/tools/fresh.sh - run the README's commands on a minimal Debian 12, and
# install and remove the Debian package there.
#
# debootstrap makes a system with no packages beyond git, make and ca-certificates.
# `make demo` and `make check` run there in a clean clone of HEAD, which fails if
# .ci/deps lacks a package, even if this machine has it.  /proc, /sys, /dev/shm and the
# memory groups are as in a container.  Packages come from the sources of this machine's
# apt.
set -eu

skip() { echo "skipped: $*"; exit 77; }

SUITE=bookworm

# --- inside: in a new mount and process namespace ---

if [ "${1-}" = --inside ]; then
	root=$2 src=$3
	shift 3			# the rest are environment variables
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/src"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
	ln -sf pts/ptmx "$root/dev/ptmx"
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
		make check
		echo "=== make deb"
		make deb
		apt-get install -y --no-install-recommends ./build/deb/straddle_*.deb
		id straddle
		cd /
		straddle run -c /usr/share/straddle/demo.conf -p "In the beginning" -n 4
		straddle devices
		dpkg --purge straddle
		[ ! -e /usr/lib/straddle ] && [ ! -e /usr/share/straddle ]'
fi

# --- outside ---

[ "$(id -u)" = 0 ] || skip "only root can make a root file system"
command -v debootstrap >/dev/null ||
    skip "debootstrap is not installed (.ci/deps fresh installs it)"
unshare --mount --pid --fork true 2>/dev/null ||
    skip "this process may not create namespaces"
src=$(git rev-parse --show-toplevel)
[ -z "$(git status --porcelain)" ] ||
    echo "note: uncommitted changes are not tested"

# Print the sources of this machine's apt, one per line.
sources() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
	    'Created-By: Packages' | grep " $SUITE" | sort -u
}
mirror=$(sources | awk -v suite=$SUITE '$2 == suite { print $1; exit }')
[ -n "$mirror" ] || skip "apt has no source for $SUITE here"

root=$(mktemp -d /var/tmp/straddle-fresh-XXXXXX)
chmod 755 "$root"		# tests run parts as another user
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
# This machine's settings for apt: proxies, credentials, certificates.
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
