#!/bin/bash
# tests/e2e/man_pages.sh - the manual pages name every command, option and key
# that the program has, and no other; mandoc finds nothing wrong with them.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

MAN=$TESTS/../config/man
KEYS=$TESTS/../config/options.c

# options_of SECTION: the flags of the subsection's lists, one a line.
options_of()
{
	awk -v want=".Ss $1" '
	/^\.S[sh] / { inside = $0 == want }
	inside && /^\.It .*Fl / {
		for (i = 1; i < NF; i++)
			if ($i == "Fl")
				print "-" $(i + 1)
	}' "$MAN/straddle.1" | sort -u
}

# Options that the help of $OUT explains: the words at the beginnings of its
# lines.
explained()
{
	grep -oE '^  (-[a-zA-Z], )?--?[a-zA-Z][a-z-]*' "$OUT" | tr -d ' ' |
	    tr , '\n' | sort -u
}

options_of "Common options" >"$T/common"
check "there are common options" test -s "$T/common"
check_success "help" help
commands=$(sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' "$OUT" |
    grep -vxE 'help|straddle')
check "there are commands" test -n "$commands"
check_success "help options" help options
explained >"$T/every"
cp "$OUT" "$T/every.help"
for command in $commands; do
	straddle help "$command"
	explained | sort -u - "$T/every" >"$T/help"
	cat "$T/every.help" >>"$OUT"
	options_of "straddle $command" | sort -u - "$T/common" >"$T/page"
	missing=$(comm -23 "$T/help" "$T/page" | tr '\n' ' ')
	check "straddle.1 has every option of $command, not: $missing" \
	    is_blank "$missing"
	# An option may have a letter too, which the help shows by example.
	unknown=$(comm -13 "$T/help" "$T/page" | while read -r option; do
		grep -qe "[ (]$option\( \|$\)" "$OUT" || printf '%s ' "$option"
	done)
	check "the program has every option of $command, not: $unknown" \
	    is_blank "$unknown"
	check "straddle.1 shows how $command is called" \
	    grep -qx ".Cm $command" "$MAN/straddle.1"
done

# Keys: the rows of the table that name a section.
grep -oE '(TOP|SAMPLING|SESSION)\("[a-z_]+"\)' "$KEYS" | cut -d '"' -f 2 |
    sort -u >"$T/keys"
check "options.c has keys" test "$(wc -l <"$T/keys")" -ge 20
sed -n 's/^\.It Ic \([a-z_]*\).*/\1/p' "$MAN/straddle.conf.5" | sort -u \
    >"$T/page"
missing=$(comm -23 "$T/keys" "$T/page" | tr '\n' ' ')
check "straddle.conf.5 has every key, not: $missing" is_blank "$missing"
unknown=$(comm -13 "$T/keys" "$T/page" | tr '\n' ' ')
check "the program has every key, not: $unknown" is_blank "$unknown"

# References between the two pages cannot be looked up: they are not
# installed.
if command -v mandoc >/dev/null; then
	for page in straddle.1 straddle.conf.5; do
		run_any mandoc -T lint "$MAN/$page"
		check "mandoc likes $page" is_blank \
		    "$(grep -v 'referenced manual not found' "$OUT")"
	done
else
	echo "skipped: mandoc is not installed: the pages are not linted"
fi
e2e_end
