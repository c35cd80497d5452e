#!/bin/bash
# tests/e2e/hardening.sh - the program is built with the hardening that Debian
# asks for, of whatever architecture it is; the environment changes nothing but
# what straddle(1) says, and nothing for a program with more rights than its user.
set -u

. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
e2e_need readelf

# An emulated program is started by a script of this folder.
BUILD=$(dirname "$BIN")
PROGRAM=$BUILD/straddle
LIBRARY=$BUILD/libstraddle.a

# elf OPTION... FILE: what readelf prints of it, in $OUT.
elf()
{
	run_any readelf -W "$@"
}

test_program()
{
	local program=$1 name=${1#"$BUILD/"}

	elf -h "$program"
	check "$name is position independent" stdout_has 'Type: +DYN'
	elf -d "$program"
	check "$name is so as a program" stdout_has 'FLAGS_1.* PIE'
	check "$name binds symbols at the start" stdout_has 'FLAGS_1.* NOW'
	check "$name looks for no library in a folder of the build" \
	    eval '! stdout_has "RPATH|RUNPATH"'
	check "$name has no relocations in code" eval '! stdout_has TEXTREL'
	elf -l "$program"
	check "$name has a read-only table of addresses" stdout_has 'GNU_RELRO'
	check "$name has no executable stack" \
	    stdout_has 'GNU_STACK.* RW +0x'
	check "$name has no segment to write and execute" \
	    eval '! stdout_has RWE'
	elf --dyn-syms "$program"
	check "$name guards stacks" stdout_has '__stack_chk_fail'
	sanitized || check "$name checks calls of the C library" \
	    stdout_has '__snprintf_chk'
}

# Those of make dist and make deb too, where they were made.
for program in "$PROGRAM" "$BUILD"/dist/straddle \
    "$BUILD"/deb/straddle-*/debian/straddle/usr/bin/straddle; do
	[ ! -e "$program" ] || test_program "$program"
done

elf -h "$PROGRAM"
case $(grep Machine: "$OUT") in
*X86-64*)	marks="x86 feature: IBT, SHSTK" ;;
*)		marks="AArch64 feature: BTI, PAC" ;;
esac

# Check each object: the C library's start files may lack the marks, and then the
# program has none.
elf -n "$LIBRARY"
check "every jump has a marked target" equal "$(grep -c '^File: ' "$OUT")" \
    "$(grep -c "$marks" "$OUT")"

# Functions that only the tests' programs wrap, and their variables.
hooks() { grep -aoE 'STRADDLE_[A-Z_]+|__wrap_[a-z_]+' "$1" | sort -u; }
documented()
{
	local name

	for name; do
		grep -q "^\.It Ev .*$name" "$TESTS/../config/man/straddle.1" ||
		    return 1
	done
}
# shellcheck disable=SC2046
check "every variable is in the manual" documented $(hooks "$PROGRAM")
check "variables of tests are in the tests' program alone" \
    [ ! -x "$FAULTY" -o -n "$(hooks "$FAULTY" | grep FAULT)" ]
elf --dyn-syms "$PROGRAM"
sanitized || check "variables are read with secure_getenv()" \
    eval 'stdout_has " secure_getenv" && ! stdout_has " getenv"'

# kernels MASK PROGRAM: print those that nobody's PROGRAM would use.
kernels()
{
	STRADDLE_CPU_MASK=$1 setpriv --reuid=65534 "$2" devices |
	    grep -o 'kernels: [^ ]*'
}
copies_work()
{
	chmod 711 "$T" && install -m 755 "$PROGRAM" "$T/plain" &&
	    install -m 4755 "$PROGRAM" "$T/setuid" &&
	    run_any setpriv --reuid=65534 "$T/setuid" --version
}
if [ "$(id -u)" = 0 ] && [ "$BIN" = "$PROGRAM" ] && ! sanitized &&
    command -v setpriv >/dev/null && copies_work; then
	check "a mask holds for a user's own program" \
	    equal "$(kernels 0 "$T/plain")" "kernels: ref"
	check "and not for one with more rights than the user" \
	    equal "$(kernels 0 "$T/setuid")" \
	    "$("$T/plain" devices | grep -o "kernels: [^ ]*")"
else
	echo "skipped: only root can give a program more rights than its user"
fi

e2e_end
