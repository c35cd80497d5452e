#!/bin/bash
# tests/e2e/package.sh - the archive of make dist runs where nothing is but the C
# library, as its README says; the Debian package is whole and runs.
set -u

. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

BUILD=$(dirname "$BIN")

# --- the archive ---

# copy_library ROOT FILE...: these files, at the same place below ROOT.
copy_library()
{
	local root=$1 file

	shift
	for file; do
		mkdir -p "$root$(dirname "$file")" &&
		    cp -L "$file" "$root$file" || return 1
	done
}

# The folder's programs, by name.
interpreter() { readelf -lW "$1" | sed -n 's/.*interpreter: \(.*\)]/\1/p'; }
needed() { readelf -dW "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | xargs; }
symbols() { readelf -SW "$1" | grep -E ' \.(symtab|debug)'; }
newest() { readelf -VW "$1" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1; }

# commands FILE: the lines of its blocks of shell examples.
commands() { awk '/^```/ { on = /^```sh/; next } on' "$1"; }

# bare COMMAND...: with ROOT as the only files, and /proc.
bare()
{
	# shellcheck disable=SC2016
	run_any "${UNSHARE[@]}" --mount --pid --fork --kill-child bash -c '
		cd "$0" && mount -t proc proc proc &&
		mount --bind /dev/null dev/null &&
		exec chroot . "$@"' "$ROOT" "$@"
}

# emulated COMMAND...: the same below an emulator, which takes the loader and the
# libraries from ROOT.
emulated()
{
	local program=$1

	shift
	cd "$ROOT" && STRADDLE_LAUNCH="qemu-aarch64 -L $ROOT" run_any \
	    qemu-aarch64 -L "$ROOT" "$program" "$@"
}

# The way to start a command there: RUNS is bare or emulated, or empty.
find_way()
{
	local machine

	RUNS='' UNSHARE=(unshare --user --map-root-user)
	machine=$(readelf -h "$ROOT/straddle" | sed -n 's/ *Machine: *//p')
	case $(uname -m):$machine in
	x86_64:*X86-64 | aarch64:AArch64)
		RUNS=bare
		bare /straddle --version
		exits 0 && return
		UNSHARE=(unshare)	# root of a container, perhaps
		bare /straddle --version
		exits 0 || RUNS='' ;;
	*:AArch64)
		! command -v qemu-aarch64 >/dev/null || RUNS=emulated ;;
	esac
}

test_archive()
{
	local archive=$1 loader line words count=0
	local ROOT=$T/root

	mkdir -p "$ROOT/proc" "$ROOT/dev" "$ROOT/tmp" && true >"$ROOT/dev/null"
	tar -C "$ROOT" --strip-components=1 -xf "$archive"
	loader=$(interpreter "$ROOT/straddle")
	check "only the C library is dynamic, not: $(needed "$ROOT/straddle")" \
	    equal "$(needed "$ROOT/straddle" | sed "s/$(basename "$loader") //")" \
	    "libc.so.6 libm.so.6"
	check "the program is stripped" is_blank "$(symbols "$ROOT/straddle")"
	check "the README says which C library it needs" grep -q \
	    "\b$(newest "$ROOT/straddle" |
	    sed 's/GLIBC_//') or newer" "$ROOT/README.md"
	check "nothing in it was left to fill in" \
	    eval '! grep -n "@" "$ROOT/README.md"'
	check "licenses of all libraries are there" \
	    equal "$(find "$ROOT/licenses" -type f -size +0 | wc -l)" 10

	case $(basename "$loader") in
	*aarch64*)	copy_library "$ROOT" "$loader" \
			    /lib/aarch64-linux-gnu/lib{c,m}.so.6 ;;
	*)		copy_library "$ROOT" "$loader" \
			    /lib/x86_64-linux-gnu/lib{c,m}.so.6 ;;
	esac || {
		echo "skipped: no C library of $loader here: nothing was run"
		return
	}
	find_way
	if [ -z "$RUNS" ]; then
		echo "skipped: no bare root can be made here: nothing was run"
		return
	fi
	cp "$ROOT/config/kjv-q8_0.gguf" "$ROOT/model.gguf"
	if [ "$RUNS" = bare ]; then
		run_any "${UNSHARE[@]}" --mount chroot "$ROOT" /straddle \
		    run model.gguf -p x -n 1 -s cpu,cap=64MiB
		check "without /proc: the message asks for it" \
		    is_refusal 1 'is /proc mounted'
	fi
	while IFS= read -r line; do
		mapfile -t words < <(xargs -n 1 printf '%s\n' <<<"$line")
		"$RUNS" "${words[@]}"
		check "in a bare root: $line" is_success
		count=$((count + 1))
	done < <(commands "$ROOT/README.md")
	check "the README has commands" test "$count" -ge 5
}

# --- the Debian package ---

# run_deb VERSION FOLDER: the program of an unpacked package runs from there.
run_deb()
{
	BIN=$2/usr/bin/straddle
	straddle --version
	check "versions agree" stdout_has "straddle $1\$"
	check_success "the program in it runs" run -q -n 4 -p "In the beginning" \
	    -c "$2/usr/share/straddle/demo.conf"
	if command -v qemu-hexagon >/dev/null; then
		straddle devices --json
		check "the domain's program in it is found" \
		    stdout_has "qemu-hexagon runs $2/usr/lib/straddle/"
	fi
}

test_deb()
{
	local deb=$1 here=$T/deb

	dpkg-deb -x "$deb" "$here"
	if [ "$(dpkg-deb -f "$deb" Architecture)" = \
	    "$(dpkg --print-architecture)" ]; then
		run_deb "$(dpkg-deb -f "$deb" Version)" "$here"
	else
		echo "skipped: the package is for another architecture: not run"
	fi
	check "the service runs the program in it" grep -q \
	    '^ExecStart=/usr/bin/straddle ' \
	    "$here/usr/lib/systemd/system/straddle.service"
	dpkg-deb -e "$deb" "$T/control"
	check "the service's user is made" \
	    grep -q sysusers "$T/control/postinst"
	check "nothing is started" eval '! grep -qE "start|enable" "$T/control/postinst"'
	if ! command -v lintian >/dev/null; then
		echo "skipped: lintian is not installed"
		return
	fi
	run_any lintian --allow-root --fail-on error,warning "${deb%.deb}.changes"
	check "lintian finds nothing" eval 'exits 0 && is_empty "$OUT"'
}


ARCHIVE=$(find "$BUILD" -maxdepth 1 -name 'straddle-*.tar.gz')
if [ -n "$ARCHIVE" ] && command -v readelf >/dev/null; then
	test_archive "$ARCHIVE"
else
	echo "skipped: there is no archive of make dist, or no readelf"
fi
DEB=$(find "$BUILD" -path '*/deb/*' -maxdepth 2 -name 'straddle_*.deb')
if [ -n "$DEB" ]; then
	test_deb "$DEB"
else
	echo "skipped: there is no package of make deb"
fi
[ $((PASSED + FAILED)) -gt 0 ] || e2e_skip "no archive and no package"
e2e_end
