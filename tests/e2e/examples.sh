#!/bin/bash
# tests/e2e/examples.sh - runs the examples of the README and of the manual
# pages that need nothing but files of the tree; checks the documents' links.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

cd "$TESTS/.."
# A sanitizer's memory is in no plan, so that its tables have other lines.
EXACT=1
! sanitized || EXACT=0
export EXACT

for document in README.md config/man/straddle.1 config/man/straddle.conf.5; do
	if [ ! -e "$document" ]; then
		echo "skipped: $document is not here: its examples are not run"
		continue
	fi
	run_any "$PYTHON" "$TESTS/tools/doc_examples.py" "$BIN" "$T" "$document"
	grep . "$OUT" | sed "s|^|$document: |"
	check "the examples of $document" exits 0
	check "no process of them is left" no_process_left
done

# Links between the documents: relative ones lead to something.
broken_links()
{
	local document target

	for document in README.md */README.md kernels/hexagon/README.md \
	    tests/MEASURED.md; do
		grep -oE '\]\([^)#]+' "$document" | sed 's/^](//' |
		    while read -r target; do
			case $target in
			*://*)	;;
			*)	[ -e "$(dirname "$document")/$target" ] ||
				    printf '%s: %s; ' "$document" "$target" ;;
			esac
		done
	done
}
if [ -e coordinator/README.md ]; then
	broken=$(broken_links)
	check "documents link to what is there, not: $broken" is_blank "$broken"
	check "README.md has at most 200 lines" \
	    test "$(wc -l <README.md)" -le 200
fi
e2e_end
