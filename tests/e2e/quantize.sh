#!/bin/bash
# tests/e2e/quantize.sh - straddle quantize: an independent reader checks its files,
# the program runs them, perplexity shows their quality; refusals, and files that
# must not be left behind.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"


reads() { "$PYTHON" "$TESTS/tools/gguf_read.py" "$@" >"$T/read" 2>>"$ERR"; }
no_part() { [ -z "$(find "$T" -name '*.part')" ]; }
ppl() { sed -n 's/^perplexity \([0-9.]*\) .*/\1/p' "$OUT"; }
within_part() { awk "BEGIN { exit !($1 < $2 * $3) }"; }

# --- every type, from F32 ---

check_success "quantize from Q8_0 to F32" quantize "$MODEL" "$T/f32.gguf" f32
check "a file that became larger is noted" \
    stderr_has 'note: .*f32\.gguf has 20\.1 MiB, more than the 5\.3. MiB of '
check "a source of quantized tensors gives a warning" \
    stderr_has '57 of the tensors to convert are quantized'
check "an independent reader finds the same weights in F32" \
    reads "$MODEL" "$T/f32.gguf" 0 F32 blk.0.attn_k.weight 0
straddle run -m "$T/f32.gguf" -p "In the beginning God created" --temp 0 \
    -n 200 -q
cp "$OUT" "$T/text"
straddle eval -q -m "$T/f32.gguf" --ctx 64 --text "$T/text"
base=$(ppl)

# check_type TYPE FILE_TYPE ERROR PPL [HEAD]: quantize to TYPE.  ERROR is the largest
# relative error of a tensor's weights, PPL the largest ratio of the perplexity to
# that of F32.
check_type()
{
	local type=$1 file=$T/$1.gguf

	# Slow under sanitizers; the unit test encode covers them there.
	case $type in
	Q4_1 | Q5_* | IQ4_NL | Q6_K)	! sanitized || return 0 ;;
	esac
	check_success "quantize from F32 to $type" \
	    quantize "$T/f32.gguf" "$file" "$type"
	check "$type: a line per tensor and the sum" equal 75 "$(wc -l <"$OUT")"
	check "$type: a line has types, sizes and the error" stdout_has \
	    '^blk\.0\.attn_k\.weight +128 x 256 +F32 -> [A-Z0-9_]+ +128 KiB -> [0-9.]+ KiB +error [0-9.]+ %$'
	check "$type: no warning" is_blank "$(grep note "$ERR")"
	check "$type: an independent reader accepts the file" \
	    reads "$T/f32.gguf" "$file" \
	    "$2" "$type,${5:-$type}" blk.0.attn_k.weight "$3"
	check "$type: the printed error is that of the independent reader" \
	    "$PYTHON" -c 'import sys
printed = [float(l.split()[-2]) for l in open(sys.argv[1])
        if l.startswith("blk.0.attn_k.weight")]
assert abs(printed[0] - 100 * float(open(sys.argv[2]).read())) < 0.002, printed' \
	    "$OUT" "$T/read"
	check_success "$type: inspect" inspect "$file"
	check "$type: inspect says that it runs" stdout_has '^runs: yes'
	check_success "$type: run" \
	    run -m "$file" -p "In the beginning" --temp 0 \
	    -n 8 -q
	check "$type: run prints English words" stdout_has 'the|of|and'
	straddle eval -q -m "$file" --ctx 64 --text "$T/text"
	check "$type: perplexity $(ppl) is at most $4 times that of F32, $base" \
	    within_part "$(ppl)" "$base" "$4"
}
check_type Q8_0 7 0.0056 1.002
check_type Q4_0 2 0.082 1.05
check_type Q4_1 3 0.071 1.05
check_type Q5_0 8 0.041 1.02
check_type Q5_1 9 0.035 1.02
check_type IQ4_NL 25 0.076 1.05
check_type MXFP4 38 0.12 1.08
check_type Q4_K 14 0.071 1.05 Q6_K
check_type Q5_K 16 0.036 1.02 Q6_K
check_type Q6_K 18 0.018 1.005
check_type F16 1 0.0003 1.001
check_type BF16 32 0.0018 1.002
check "Q8_0 to F32 to Q8_0 gives the original file" \
    cmp -s "$T/Q8_0.gguf" "$MODEL"

# --- options ---

check_success "quantize --threads 1" \
    quantize "$T/f32.gguf" "$T/one.gguf" q4_k --threads 1
check_success "quantize --threads 5" \
    quantize "$T/f32.gguf" "$T/one5.gguf" Q4_K --threads 5
check "the number of threads does not change the file" \
    cmp -s "$T/one.gguf" "$T/one5.gguf"
check "two calls write the same file" cmp -s "$T/one.gguf" "$T/Q4_K.gguf"
ln -sf "$T/one.gguf" "$T/link.gguf"
keep=$(cksum <"$T/one.gguf")
check_refusal "quantize to a file that exists" 2 \
    'link\.gguf exists: .*--force' quantize "$T/f32.gguf" "$T/link.gguf" Q8_0
check "without --force the file is unchanged" \
    equal "$keep" "$(cksum <"$T/one.gguf")"
ln -s "$T/nothing" "$T/dangling.gguf"
check_refusal "quantize to a link to nothing" 2 'exists: .*--force' \
    quantize "$T/f32.gguf" "$T/dangling.gguf" Q8_0
straddle quantize "$T/f32.gguf" "$T/link.gguf" Q8_0 -q --force
check "quantize to a symbolic link" is_success
check "-q prints one line" equal 1 "$(wc -l <"$OUT")"
check "the link stays a link" test -L "$T/link.gguf"
check "the link's target is replaced" cmp -s "$T/one.gguf" "$MODEL"
# A conversion of an earlier state of IN is only as good as a new one.
cp "$T/f32.gguf" "$T/source.gguf"
straddle quantize "$T/source.gguf" "$T/made.gguf" Q8_0
if "$PYTHON" -c 'import os, sys; os.getxattr(sys.argv[1], "user.straddle.origin")' \
    "$T/made.gguf" 2>/dev/null; then
	check_refusal "quantize to a conversion of the same file" 2 \
	    'exists: .*--force' quantize "$T/source.gguf" "$T/made.gguf" Q4_0
	touch "$T/source.gguf"
	check_success "quantize to a conversion of what IN was before" \
	    quantize "$T/source.gguf" "$T/made.gguf" Q4_0
	check "quantize says what it replaces" \
	    stderr_has 'made\.gguf is replaced: it was made from what .*source'
	touch "$T/source.gguf"
	"$PYTHON" - "$T/made.gguf" <<-'END'
		import os, sys
		key = 'user.straddle.origin'
		dev, ino, birth, rest = os.getxattr(sys.argv[1], key).split(b' ', 3)
		os.setxattr(sys.argv[1], key,
		            b' '.join([dev, ino, b'%d' % (int(birth) - 1), rest]))
	END
	check_refusal "quantize another file with the number of a removed one" 2 \
	    'exists: .*--force' quantize "$T/source.gguf" "$T/made.gguf" Q8_0
	touch "$T/source.gguf" "$T/made.gguf"
	check_refusal "quantize to a conversion that was changed" 2 \
	    'exists: .*--force' quantize "$T/source.gguf" "$T/made.gguf" Q8_0
	check_refusal "quantize another file to it" 2 'exists: .*--force' \
	    quantize "$T/f32.gguf" "$T/made.gguf" Q8_0
else
	echo "skipped: no extended attributes in $T"
fi
check_success "quantize --head" \
    quantize "$T/f32.gguf" "$T/head.gguf" Q4_0 --head q8_0
check "--head sets the type of the head" \
    stdout_has '^token_embd.weight .* -> Q8_0 '
check "--head leaves the other types alone" \
    stdout_has '17 F32, 56 Q4_0, 1 Q8_0;'
check_success "quantize --json" \
    quantize -m "$T/f32.gguf" "$T/json.gguf" Q5_0 --json
check "--json has tensors and sums" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	t = {t['name']: t for t in o['tensors']}
	assert len(t) == 74
	k = t['blk.0.attn_k.weight']
	assert (k['from'], k['to'], k['shape']) == ('F32', 'Q5_0', [256, 128])
	assert k['bytes_after'] == 256 * 128 // 32 * 22
	assert 0.02 < k['error'] < 0.05 and 0.02 < o['error'] < 0.05
	assert o['bytes_after'] == sum(x['bytes_after'] for x in t.values())
	END

# --- rows that are no multiple of 256; split models; other shapes ---

make_model ragged f32
check_success "quantize rows that are not whole blocks to Q4_K" \
    quantize "$T/ragged.gguf" "$T/r.gguf" Q4_K
check "rows that took the fallback type are noted" stderr_has \
    'note: [0-9]+ of [0-9]+ matrices became [Q0-9_]+, not Q4_K, whose blocks of 256'
check "such rows get the fallback types" reads "$T/ragged.gguf" "$T/r.gguf" 14 \
    Q4_K,Q5_0,Q8_0
check "the fallback Q5_0 is printed" stdout_has ' -> Q5_0 '
check_success "quantize --fallback Q4_1" \
    quantize "$T/ragged.gguf" "$T/r.gguf" Q4_K --fallback Q4_1 --force
check "such rows get the type of --fallback" \
    reads "$T/ragged.gguf" "$T/r.gguf" 14 Q4_K,Q4_1
check_success "run a model with fallback types" \
    run -m "$T/r.gguf" -p "a" -n 2 -q --temp 0
make_model parts f32 --split 3
check_success "quantize a split model" quantize "$T"/parts-00001-of-00003.gguf \
    "$T/whole.gguf" Q4_0
check_success "inspect the quantized split model" inspect "$T/whole.gguf" --json
check "an independent reader accepts the quantized split model" \
    reads "$T"/parts-00001-of-00003.gguf \
    "$T/whole.gguf" 2 Q4_0
check_success "run the quantized split model" \
    run -m "$T/whole.gguf" -p "a" -n 2 -q --temp 0
check "no temporary file is left" no_part

# --- refusals ---

q() { local label=$1 code=$2 pattern=$3; shift 3
	check_refusal "$label" "$code" "$pattern" quantize "$@"; }
keep=$(cksum <"$T/Q4_0.gguf")
q "an unknown type" 2 "TYPE: 'Q4_9' is not a supported output type.*did you mean Q4_" \
    "$MODEL" "$T/x" Q4_9
q "a word that is no type" 2 "'fast' is not a supported output type.*F32, F16, Q4_0.* or MXFP4" \
    "$MODEL" "$T/x" fast
q "a mix of types" 2 "'Q4_K_M' is a mix .*use Q4_K" "$MODEL" "$T/x" Q4_K_M
q "--head with an unknown type" 2 \
    "^straddle: --head: 'big'" "$MODEL" "$T/x" Q4_0 \
    --head big
q "--fallback with a type of large blocks" 2 \
    '--fallback: Q6_K has blocks of 256' \
    "$MODEL" "$T/x" Q4_K --fallback Q6_K
q "no OUT" 2 'no file to write: give IN OUT TYPE' "$MODEL"
q "no TYPE" 2 'no type: give IN OUT TYPE' "$MODEL" "$T/x"
q "an unexpected operand" 2 "'more': not an operand" "$MODEL" "$T/x" Q4_0 more
q "a missing IN" 4 'none\.gguf: No such file' "$T/none.gguf" "$T/x" Q4_0
q "OUT is IN" 2 'is the file that is read' "$T/Q4_0.gguf" "$T/Q4_0.gguf" Q8_0
ln -s "$T/Q4_0.gguf" "$T/alias"
q "OUT is IN by another name" 2 'is the file that is read' \
    "$T/Q4_0.gguf" "$T/alias" Q8_0
q "OUT is a part of IN" 2 'is the file that is read' \
    "$T"/parts-00001-of-00003.gguf "$T"/parts-00002-of-00003.gguf Q8_0
q "OUT is a folder" 2 'is a folder' "$MODEL" "$T" Q4_0
q "OUT is a device" 2 'is a device or pipe' "$MODEL" /dev/null Q4_0
q "OUT in a folder that does not exist" 2 'no/x: cannot create .*No such file' \
    "$MODEL" "$T/no/x" Q4_0
head -c 3000000 "$T/Q4_0.gguf" >"$T/cut.gguf"
q "a truncated file" 4 'cut\.gguf' "$T/cut.gguf" "$T/x" Q8_0
"$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$T/empty.gguf" tensors=0 >/dev/null
q "a file without tensors" 4 'empty\.gguf: holds no tensors' \
    "$T/empty.gguf" "$T/x" Q8_0
check "a refused quantize writes no file" test ! -e "$T/x"

# An existing file survives when the new one cannot be written.
# patch_weight VALUE: write $T/bad.gguf, a copy of f32.gguf with one weight changed.
patch_weight()
{
	"$PYTHON" - "$T/f32.gguf" "$T/bad.gguf" "$1" <<-'END'
	import struct, sys
	d = bytearray(open(sys.argv[1], 'rb').read())
	at = len(d) - 400000
	d[at - at % 4:at - at % 4 + 4] = struct.pack('<f', float(sys.argv[3]))
	open(sys.argv[2], 'wb').write(d)
	END
}
for value in nan inf; do
	patch_weight $value
	straddle quantize -q "$T/bad.gguf" "$T/Q4_0.gguf" Q4_0 --force
	check "a weight that is $value" is_refusal 4 \
	    'tensor "blk\.7\.[a-z_.]*": weight [0-9]+ is '$value
done
patch_weight 1e6
straddle quantize -q "$T/bad.gguf" "$T/Q4_0.gguf" F16 --force
check "a weight that F16 cannot hold" is_refusal 4 \
    'tensor "blk\.7\..*1e\+06.* exceeds the range of F16; use BF16'
check_success "the same weight in BF16" \
    quantize -q "$T/bad.gguf" "$T/big.gguf" BF16
run_any bash -c 'ulimit -f 1000; exec "$0" quantize -q "$1" "$2" Q4_0 --force' \
    "$BIN" "$MODEL" "$T/Q4_0.gguf"
check "a limit on file sizes" is_refusal 1 'cannot create .* bytes: File too'
if [ -w /proc/self/uid_map ] && unshare -rm true 2>/dev/null; then
	mkdir "$T/small"
	run_any unshare -rm bash -c 'mount -t tmpfs -o size=1m none "$1" &&
	    "$0" quantize -q "$2" "$1/x.gguf" Q4_0; rc=$?
	    ls "$1" >&2; exit $rc' "$BIN" "$T/small" "$MODEL"
	check "a full disk" is_refusal 1 \
	    'x\.gguf: no room: the file needs 2\.88 MiB .*1\.00 MiB free'
fi
check "after all failures the existing file is unchanged" \
    equal "$keep" "$(cksum <"$T/Q4_0.gguf")"
check "after all failures no temporary file is left" no_part

# Interrupt quantize while it prints into a full pipe: a pipe of one page cannot
# hold the lines of all tensors.
is_interruptible()
{
	"$PYTHON" - "$BIN" "$T/f32.gguf" "$T/Q4_0.gguf" "$1" <<-'END'
	import fcntl, os, signal, subprocess, sys, time
	r, w = os.pipe()
	fcntl.fcntl(w, 1031, 4096)	# F_SETPIPE_SZ
	p = subprocess.Popen([sys.argv[1], 'quantize'] + sys.argv[2:4] +
	    ['Q8_0', '--threads', '2', '--force'], stdout=w, stderr=subprocess.PIPE)
	os.close(w)
	end = time.monotonic() + 300
	while time.monotonic() < end:
	    n = bytearray(4)
	    fcntl.ioctl(r, 0x541b, n)	# FIONREAD
	    if int.from_bytes(n, 'little') > 3500:
	        break
	    time.sleep(0.01)
	time.sleep(0.1)
	p.send_signal(getattr(signal, sys.argv[4]))
	time.sleep(0.1)
	while os.read(r, 65536):
	    pass
	err = p.stderr.read().decode()
	if sys.argv[4] == 'SIGKILL':
	    assert p.wait() == -9
	else:
	    assert p.wait() == 1 and 'interrupted' in err, err
	END
}
# A file system without O_TMPFILE keeps a temporary file after SIGKILL.
has_nameless() { "$PYTHON" -c 'import os, sys
os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR)' "$T" 2>/dev/null; }
for sig in SIGTERM SIGQUIT SIGKILL; do
	[ $sig != SIGKILL ] || has_nameless || continue
	check "$sig interrupts quantize" is_interruptible $sig
	check "$sig: the existing file is unchanged" \
	    equal "$keep" "$(cksum <"$T/Q4_0.gguf")"
	check "$sig: no temporary file is left" no_part
done

# --- the converter: a child that is confined ---

confined() { grep -q "^straddle: the converter: confined: .*$1" "$ERR"; }
check_success "quantize -v" \
    quantize "$T/f32.gguf" "$T/v.gguf" Q8_0 -v --threads 2
check "-v reports how the converter is confined" confined 'no capabilities'
check "-v reports its cap" stderr_has \
    'the converter: .* a cap of [0-9.]+ MiB, held by (RLIMIT_DATA|ledger)$'
check "the file is the same" cmp -s "$T/v.gguf" "$MODEL"
filtered=
! confined 'fewer after it' || filtered=1

look() { "$PYTHON" "$TESTS/tools/converter.py" "$1" "$BIN" "$T/f32.gguf" \
    "$T/looked.gguf" Q8_0 >"$T/seen" 2>&1 || { cat "$T/seen"; return 1; }; }
if [ -n "$filtered" ]; then
	check "its threads have two filters and no capabilities" look threads
	check "its memory and its output are limited" look limits
	[ "$(id -u)" != 0 ] ||
	    check "it holds the channel, its messages,\
 the output and the model" look fds
fi

# Kill it at random moments.
has_child_or_ends() { pgrep -P "$GROUP" >/dev/null || ! kill -0 "$GROUP"; }
kill_converter()
{
	straddle_bg quantize -q "$T/f32.gguf" "$T/killed.gguf" Q4_K --threads 1
	eventually has_child_or_ends
	sleep "0.$((RANDOM % 2))$((RANDOM % 10))"
	pkill -KILL -P "$GROUP" || true
	wait "$GROUP" || RC=$?
	check "no process is left" no_process_left
}
killed=0
for ((i = 0; i < ${FULL:+10}15; i++)); do
	rm -f "$T/killed.gguf"
	kill_converter
	if [ "$RC" = 0 ]; then
		check "it was done before: the output is whole" \
		    cmp -s "$T/killed.gguf" "$T/Q4_K.gguf"
		continue
	fi
	killed=$((killed + 1))
	check "a killed converter is reported" is_refusal 1 \
	    'the converter was killed by signal 9 \(Killed\)'
	check "a killed converter leaves no output" test ! -e "$T/killed.gguf"
done
check "$killed converters were killed" test $killed -gt 0
check "no temporary file is left" no_part

if [ -x "$FAULTY" ]; then
	BIN=$FAULTY
	! sanitized || e2e_end
	if [ -n "$filtered" ]; then
		for fault in load-socket:1 load-openat:2 load-execve:1 \
		    load-clone:1 load-pwrite64:1 socket:2 openat:1 clone:2 \
		    pwrite64:1 ptrace:1; do
			export STRADDLE_FAULT=converter:$fault
			call=${fault%:*}
			straddle quantize -q "$T/f32.gguf" "$T/x" Q8_0 --threads 2
			check "$fault is blocked and reported" is_refusal 1 "the\
 converter called ${call#load-} \(number [0-9]+\), which is forbidden"
		done
	fi
	export STRADDLE_FAULT=converter:alloc:20
	straddle quantize -q "$T/f32.gguf" "$T/x" Q8_0 --threads 2
	check "without memory the cap is named" is_refusal 1 "no memory for .*;\
 the converter's cap is [0-9.]+ MiB, held by RLIMIT_DATA"
	unset STRADDLE_FAULT
	check "after all faults there is no output" test ! -e "$T/x"
fi
e2e_end
