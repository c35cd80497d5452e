#!/bin/bash
# tests/check_includes.sh - the table in includes.allow holds, and each header
# compiles alone.
set -eu
shopt -s extglob
cd "$(dirname "$0")/.."
bad=0

allowed() {	# allowed FILE INCLUDED
	local - pattern list p
	set -f		# patterns, not file names
	while read -r pattern list; do
		case $pattern in ''|'#'*) continue ;; esac
		# shellcheck disable=SC2254
		case $1 in
		$pattern)
			[ "$(dirname "$1")" = "$(dirname "$2")" ] && return 0
			for p in $list; do
				case $2 in $p) return 0 ;; esac
			done
			return 1 ;;
		esac
	done <tests/includes.allow
	return 1
}

for f in */*.[ch] kernels/hexagon/*.[ch]; do
	dir=$(dirname "$f")
	while read -r inc; do
		path=$(realpath -m --relative-to=. "$dir/$inc")
		if [ ! -f "$path" ]; then
			echo "$f includes $inc: no such file"; bad=1
		elif ! allowed "$f" "$path"; then
			echo "$f may not include $path (tests/includes.allow)"
			bad=1
		fi
	done < <(sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$f")
done

# What is made of HVX vectors is for Hexagon's compiler only.
for h in */*.h $(grep -L 'hexagon_types\.h' kernels/hexagon/*.h); do
	printf '#include "%s"\n' "$h" | ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -Wall \
	    -Wextra -Werror -I. -fsyntax-only -x c - || {
		echo "$h does not compile alone"; bad=1
	}
done
exit $bad
