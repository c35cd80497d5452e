#!/bin/bash
# tests/e2e/hardening.sh - the program is built with the hardening that Debian
# asks for, of whatever architecture it is; the environment changes nothing but
# what straddle(1) says, and nothing for a program with more rights than its user.
set -u

. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
e2e_need readelf

# An emulated program is started by a script of this folder.
PROGRAM=$(dirname "$BIN")/straddle
LIBRARY=$(dirname "$BIN")/libstraddle.a

# elf OPTION... FILE: what readelf prints of it, in $OUT.
elf()
{
	run_any readelf -W "$@"
}

elf -h "$PROGRAM"
check "the program is position independent" stdout_has 'Type: +DYN'
case $(grep Machine: "$OUT") in
*X86-64*)	marks="x86 feature: IBT, SHSTK" ;;
*)		marks="AArch64 feature: BTI, PAC" ;;
esac

elf -d "$PROGRAM"
check "and an executable" stdout_has 'FLAGS_1.* PIE'
check "symbols are bound at the start" stdout_has 'FLAGS_1.* NOW'
check "no library is looked for in a folder of the build" \
    eval '! stdout_has "RPATH|RUNPATH"'
check "code is not relocated" eval '! stdout_has TEXTREL'

elf -l "$PROGRAM"
check "the table of addresses is read-only" stdout_has 'GNU_RELRO'
check "the stack is not executable" stdout_has 'GNU_STACK.* RW +0x'
check "no segment is writable and executable" eval '! stdout_has "RWE"'

elf --dyn-syms "$PROGRAM"
check "stacks are guarded" stdout_has '__stack_chk_fail'
if ! sanitized; then
	check "calls of the C library are checked" \
	    stdout_has '__snprintf_chk'
fi

# Of each object: the C library's start files may lack the marks, and then the
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
