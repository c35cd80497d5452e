#!/bin/bash
# tests/e2e/install.sh - make install: what was built runs from there, every file
# names the places it was installed to, and make uninstall leaves none.
set -u

. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
e2e_need make install
[ -e "$TESTS/../Makefile" ] || e2e_skip "the Makefile is not here"

BUILD=$(dirname "$BIN")
PREFIX=/opt/straddle
ROOT=$T/root
HERE=$ROOT$PREFIX

# in_tree TARGET: without the settings of a make that runs this test.
in_tree()
{
	run_any env -u MAKEFLAGS -u MAKELEVEL make -C "$TESTS/.." B="$BUILD" \
	    DESTDIR="$ROOT" PREFIX="$PREFIX" "$@"
}

umask 077		# of a careful administrator
in_tree install-built
check "make install" exits 0
check "everyone may read what was installed" \
    is_blank "$(find "$ROOT" ! -perm -o=r)"
check "and enter its folders" \
    is_blank "$(find "$ROOT" -type d ! -perm -o=x)"
check "no file names the tree" eval '! grep -rlE "build/|\.\./tests" \
    "$HERE/share/straddle" "$HERE/lib/systemd" --include=*.conf \
    --include=*.service | grep .'
check "the service runs what was installed" grep -q \
    "^ExecStart=$PREFIX/bin/straddle run " \
    "$HERE/lib/systemd/system/straddle.service"
for file in lib/sysusers.d/straddle.conf lib/tmpfiles.d/straddle.conf \
    share/bash-completion/completions/straddle \
    share/zsh/site-functions/_straddle share/man/man1/straddle.1 share/man/man5/straddle.conf.5; do
	check "$file is there" test -s "$HERE/$file"
done

BIN=$HERE/bin/straddle
cd "$T" || exit 1
for conf in demo example; do
	check_success "$conf.conf runs" run -c "$HERE/share/straddle/$conf.conf" \
	    -p "In the beginning" -n 4
done
if [ -e "$BUILD/hexagon-domain" ] && command -v qemu-hexagon >/dev/null &&
    ! sanitized; then
	straddle devices --json
	check "the domain's program is found" \
	    stdout_has "runs $HERE/lib/straddle/hexagon-domain"
else
	echo "skipped: no Hexagon domain here: its program is not looked for"
fi

echo mine >"$HERE/share/straddle/mine.gguf"
in_tree uninstall
check "make uninstall" exits 0
check "leaves the user's files" \
    equal "$(find "$ROOT" -type f)" "$HERE/share/straddle/mine.gguf"
rm "$HERE/share/straddle/mine.gguf"
in_tree uninstall
check "make uninstall again" exits 0
check "and no folder of its own" \
    is_blank "$(find "$ROOT" -name 'straddle' ! -path "$HERE")"
e2e_end
