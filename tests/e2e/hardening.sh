#!/bin/bash
# tests/e2e/hardening.sh - the program is built with the hardening that Debian
# asks for, of whatever architecture it is.
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

e2e_end
