#!/bin/bash
# tests/e2e/bad_input.sh - bad input is refused with the right exit code and one
# line that names the problem and its place, and leaves nothing behind.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

bad=$T/bad.gguf
make_model tiny q8_0
header=$("$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$T/good.gguf")
check "gguf_patch.py without faults copies the model" \
    cmp -s "$MODEL" "$T/good.gguf"
size=$(wc -c <"$MODEL")

run_bad() { straddle run -m "$bad" -p hello -n 2 --temp 0 -q "$@"; }

# bad_model LABEL PATTERN FAULT...: exit 4; the error names the file and matches.
bad_model()
{
	local label=$1 pattern=$2

	shift 2
	"$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$bad" "$@"
	run_bad
	check "$label" is_refusal 4 "bad\.gguf: .*$pattern"
}

# readable LABEL PATTERN: tokenize and inspect accept $bad; inspect says why it
# does not run.
readable()
{
	check_success "$1: tokenize works" tokenize "$bad" -p "In the beginning"
	check "$1: tokenize prints ids" stdout_has '^1( [0-9]+)+$'
	check_success "$1: inspect works" inspect "$bad"
	check "$1: inspect says why it does not run" stdout_has "^runs: .*$2"
	check_success "$1: inspect --json works" inspect "$bad" --json
	check "$1: inspect --json says that it does not run" \
	    equal False "$(field runs)"
}

# --- missing files, and files of other kinds ---

check_refusal "a model's name in another program" 4 \
    'llama3:8b: No such file or directory; a model is a \.gguf file' \
    run llama3:8b -p hi
check_refusal "a missing model" 4 'nowhere\.gguf: No such file' \
    run -m "$T/nowhere.gguf" -p hello
for command in plan inspect explain bench; do
	check_refusal "a missing model, $command" 4 \
	    'nowhere\.gguf: No such file' \
	    $command -m "$T/nowhere.gguf"
done
check_refusal "a missing model, tokenize" 4 'nowhere\.gguf: No such file' \
    tokenize "$T/nowhere.gguf" -p hello
check_refusal "a missing model, eval" 4 'nowhere\.gguf: No such file' \
    eval -m "$T/nowhere.gguf" --ids "1 2" --logits "$T/x"
check "eval of a missing model writes no logits" test ! -e "$T/x"
check_refusal "a folder as the model" 4 "$T: .*directory" run -m "$T" -p hello
: >"$bad"
run_bad
check "an empty model file" is_refusal 4 'bad\.gguf: .*offset 0'
echo "# a text file, not a model" >"$bad"
run_bad
check "a text file as the model" is_refusal 4 'bad\.gguf: .*not a GGUF'
mkfifo "$T/fifo"
check_refusal "a pipe as the model" 4 "$T/fifo: " run -m "$T/fifo" -p hello
check_refusal "a device file as the model" 4 \
    '/dev/zero: ' run -m /dev/zero -p hello

cp "$MODEL" "$T/secret.gguf"
chmod 0 "$T/secret.gguf"
if [ "$(id -u)" -ne 0 ]; then
	check_refusal "a model file without read permission" 4 \
	    'secret\.gguf: Permission denied' \
	    run -m "$T/secret.gguf" -p hello
elif command -v setpriv >/dev/null; then
	chmod 711 "$T"
	cp "$BIN" "$T/straddle"
	run_any setpriv --reuid=65534 --regid=65534 --clear-groups \
	    "$T/straddle" run -m "$T/secret.gguf" -p hello
	check "a model file without read permission" \
	    is_refusal 4 'secret\.gguf: Permission denied'
fi

# --- truncated ---

for ((n = 0; n < header; n += 1024)); do
	head -c $n "$MODEL" >"$bad"
	run_bad
	check "a model truncated at byte $n" is_refusal 4 'bad\.gguf: .*[0-9]'
done
for n in $((header - 1)) "$header" $((header + 1)) 51104 $((size / 2)) \
    $((size - 1)); do
	head -c "$n" "$MODEL" >"$bad"
	run_bad
	check "a model truncated at byte $n" is_refusal 4 'bad\.gguf: .*[0-9]'
done

# --- corrupt headers ---

huge=0xffffffffffffffff
for n in $huge 0x8000000000000000 0x100000000 1000000; do
	bad_model "$n tensors" '[0-9]' tensors=$n
	bad_model "$n metadata keys" '[0-9]' keys=$n
	bad_model "a string of $n bytes" '[0-9]' keylen:general.name=$n
	bad_model "an array of $n elements" \
	    '[0-9]' keylen:tokenizer.ggml.tokens=$n
	bad_model "a dimension of $n" 'blk\.3\.attn_q' \
	    dim1:blk.3.attn_q.weight=$n
	bad_model "a row of $n" 'blk\.3\.attn_q' dim0:blk.3.attn_q.weight=$n
	bad_model "a tensor at offset $n" 'blk\.3\.attn_q' \
	    offset:blk.3.attn_q.weight=$n
done
bad_model "version 1" 'version 1' version=1
bad_model "version 99" 'version 99' version=99
bad_model "a big-endian file" '[0-9]' version=0x03000000
bad_model "a wrong magic number" 'not a GGUF' magic=0x12345678
bad_model "no tensors" 'token_embd' tensors=0
bad_model "a tensor that ends past the end of the file" \
    "$size.*blk\.7\.ffn_up" \
    offset:blk.7.ffn_up.weight=$((size - 50080 - 64))
bad_model "a misaligned tensor" 'blk\.2\.attn_k' \
    offset:blk.2.attn_k.weight=557057
bad_model "a tensor of five dimensions" \
    '5 dimensions.*blk\.2\.attn_k' ndims:blk.2.attn_k.weight=5
bad_model "a dimension of 0" 'blk\.2\.attn_k' dim0:blk.2.attn_k.weight=0
bad_model "rows that are not whole blocks" 'blk\.2\.attn_k' \
    dim0:blk.2.attn_k.weight=250
bad_model "a metadata value of an unknown type" \
    '77' keytype:llama.block_count=77
bad_model "a missing tensor" 'blk\.4\.ffn_down' \
    name:blk.4.ffn_down.weight=blk.4.ffn_drown.weigh
bad_model "a duplicate tensor" 'blk\.1\.attn_q' \
    name:blk.1.attn_k.weight=blk.1.attn_q.weight
bad_model "a missing key" 'embedding_length' \
    keyname:llama.embedding_length=llama.embedding_lemgth
bad_model "an embedding size that the tensors do not have" \
    '(512|256)' key:llama.embedding_length=512
bad_model "more layers than the file has tensors for" \
    'blk\.8\.' key:llama.block_count=9
bad_model "no layers" 'block_count' key:llama.block_count=0
bad_model "2^32 - 1 layers" 'block_count|blk' key:llama.block_count=0xffffffff
bad_model "no heads" 'head_count' key:llama.attention.head_count=0
bad_model "an embedding size that the heads do not divide" \
    'head' key:llama.attention.head_count=7
bad_model "more KV heads than heads" 'head' key:llama.attention.head_count_kv=16
bad_model "an epsilon of NaN" 'epsilon' \
    key:llama.attention.layer_norm_rms_epsilon=nan
bad_model "an odd RoPE dimension" 'rope' key:llama.rope.dimension_count=31
bad_model "a RoPE dimension above the head size" \
    'rope' key:llama.rope.dimension_count=64
bad_model "a context of 0" 'context' key:llama.context_length=0
bad_model "a tokenizer with more tokens than the embedding has rows" \
    '204[78]' dim1:token_embd.weight=2047
"$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$bad" \
    key:llama.vocab_size=2049
check_success "a vocabulary size that neither of them has is not needed" \
    run -m "$bad" -p "In the beginning" -n 1 -q

# --- models that can be read but not run ---

bad_model "an unknown architecture" '"?llamb"?' \
    key:general.architecture=llamb
readable "an unknown architecture" llamb
# A layer beyond block_count is no error, but is reported.
"$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$bad" key:llama.block_count=7
check_success "plan with tensors of a layer beyond block_count" plan -m "$bad"
check "the unused tensors are reported" \
    stderr_has "bad\.gguf: 9 of [0-9]+ tensors are not used by a llama \
model of 7 layers, the first is blk\.7\."
check_success "plan with no unused tensors" plan -m "$MODEL"
check "no unused tensors: nothing is reported" is_empty "$ERR"
bad_model "an unknown tensor type" 'blk\.5\.ffn_gate.*99' \
    type:blk.5.ffn_gate.weight=99
readable "an unknown tensor type" 99
bad_model "a tensor type that cannot run" 'blk\.5\.ffn_gate.*IQ3_S' \
    type:blk.5.ffn_gate.weight=21
readable "a tensor type that cannot run" IQ3_S
bad_model "a tokenizer of an unknown kind" 'llamb' \
    key:tokenizer.ggml.model=llamb
check_success "inspect shows a tokenizer of an unknown kind" inspect "$bad"
check_refusal "tokenize refuses a tokenizer of an unknown kind" 4 \
    'llamb' tokenize "$bad" -p hello

# --- sessions and caps ---

good=(run -m "$MODEL" -p hello -n 2 --temp 0)

echo "model = \"$MODEL\"" >"$T/none.conf"
check_success "a config without sessions gets one session" \
    run -c "$T/none.conf" -p hello -n 2
check "that session is on the CPU" stderr_has '^cpu0 +cpu +embd'
check_success "as many sessions as layers, embedding and head" \
    "${good[@]}" $(sessions 10)
check_refusal "one session too many" 2 \
    '11 sessions.* 10\b' "${good[@]}" $(sessions 11)
check_refusal "64 sessions for a model of 10 parts" 2 \
    '64 sessions.* 10\b' "${good[@]}" $(sessions 64)
check_refusal "more sessions than any model may have" 2 \
    '64' "${good[@]}" $(sessions 65)
check_refusal "a cap of 0" 2 'cap.*0' "${good[@]}" -s cpu,cap=0
check_refusal "a cap smaller than a layer" 3 \
    '[0-9]+ bytes short; (what would fit|neither)' \
    "${good[@]}" -s cpu,cap=100KiB
check_refusal "four caps, each smaller than a layer" 3 \
    '[0-9]+ bytes short; ' \
    "${good[@]}" $(sessions 4 cpu,cap=1MiB)
straddle plan -m "$MODEL" --ctx 1024 --json
need=$(planned_mib)
check_refusal "a cap that is too small: more sessions are advised" 3 \
    'short; what would fit: .*session' \
    "${good[@]}" --ctx 1024 -s cpu,cap=$((need - 2))MiB
check_refusal "a context too large for the cap: a smaller one is advised" 3 \
    'what would fit: .*--ctx [0-9]+' \
    "${good[@]}" --ctx 65536 -s cpu,cap=64MiB
for code in "bench" "explain"; do
	check_refusal "a cap smaller than a layer, $code" 3 \
	    'bytes short' \
	    $code --json -m "$MODEL" -s cpu,cap=100KiB
done
straddle plan --json -m "$MODEL" -s cpu,cap=100KiB
check "a cap smaller than a layer, plan: exit 3" exits 3
check "plan --json prints the nearest plan and fits: false" "$PYTHON" -c \
    'import json, sys
o = json.load(open(sys.argv[1]))
assert o["fits"] is False and "bytes short" in o["advice"]
assert o["sessions"][0]["planned"] > o["sessions"][0]["cap"]' "$OUT"
check_refusal "a core that does not exist" 2 'core 999 ' \
    "${good[@]}" -s cpu,cores=999
check_refusal "an empty list of cores" 2 'core' "${good[@]}" -s cpu,cores=
check_refusal "a NUMA node that does not exist" 2 \
    'node 999' "${good[@]}" -s cpu,node=999
check_refusal "an unknown device" 2 'warp.*cpu' "${good[@]}" -s warp
check_refusal "0 threads" 2 'threads' "${good[@]}" -s cpu,threads=0
check_refusal "a context below 0" 2 'ctx.*-1' "${good[@]}" --ctx -1
check_refusal "a batch of 0" 2 'batch.*0' "${good[@]}" --batch 0
check_refusal "a batch too large" 2 'batch.*4096' "${good[@]}" --batch 4097
check_refusal "an unknown KV type" 2 'kv-type.*f16' "${good[@]}" --kv-type q1

# --- the command line ---

check_refusal "no command" 2 'no command'
check_refusal "an unknown command" 2 'rum' rum -m "$MODEL" -p hello
check_refusal "no prompt" 2 'no prompt' run -m "$MODEL"
check_refusal "no model" 2 'no model' run -p hello
check_refusal "-p together with -f" 2 \
    'prompt|-p' run -m "$MODEL" -p hello -f "$T/x"
check_refusal "a missing prompt file" 2 'no\.txt: No such file' \
    run -m "$MODEL" -f "$T/no.txt"
check_refusal "a folder as the prompt file" 2 \
    'directory' run -m "$MODEL" -f "$T"
check_refusal "a missing --prompts file" 2 'no\.txt: No such file' \
    run -m "$MODEL" --prompts "$T/no.txt"
check_refusal "an unknown option" 2 '--frob' "${good[@]}" --frob
check_refusal "another command's option" 2 '--ids' "${good[@]}" --ids 1
check_refusal "an option without its value" 2 'value' "${good[@]}" --seed
check_refusal "an unexpected operand" 2 'more' "${good[@]}" more
for n in -2 1.5 x 99999999999999999999 ''; do
	check_refusal "-n '$n'" 2 "-n: '$n" run -m "$MODEL" -p hello -n "$n"
done
for x in -1 nan inf 1e999 x ''; do
	check_refusal "--temp '$x'" 2 "--temp: '$x" "${good[@]}" --temp "$x"
done
check_refusal "a negative seed" 2 '--seed' "${good[@]}" --seed -2
check_refusal "an unknown size unit" 2 'cap.*5parsecs' \
    "${good[@]}" -s cpu,cap=5parsecs
check_refusal "a size that overflows 64 bits" 2 \
    'cap' "${good[@]}" -s cpu,cap=99999EiB
ev() { straddle eval -m "$MODEL" --ctx 16 "$@"; }
ev --ids "1 2 2048" --logits "$T/x"
check "a token id past the vocabulary" is_refusal 2 '2048.*2047'
ev --ids "1 2 -1" --logits "$T/x"
check "a negative token id" is_refusal 2 '-1'
ev --ids " " --logits "$T/x"
check "an empty list of token ids" is_refusal 2 'ids'
ev --ids "$(seq -s ' ' 1 17)" --logits "$T/x"
check "more token ids than the context holds" is_refusal 2 '17.*16'
ev --ids-file "$T/no.txt" --logits "$T/x"
check "a missing --ids-file" is_refusal 2 'no\.txt: No such file'
ev --text "$T/no.txt"
check "a missing --text file" is_refusal 2 'no\.txt: No such file'
check "a refused eval writes no file" test ! -e "$T/x"
ev --ids "1 2" --logits "$T/no/x"
check "--logits into a folder that does not exist" \
    is_refusal 2 'no/x: cannot create .*No such file'
straddle eval -m "$MODEL" --ctx 2 --text "$TESTS/e2e/lib.sh"
check "a context too short to score anything" is_refusal 2 '--ctx 3'
check_refusal "tokenize without a model" 2 'no model' tokenize -p hello
check_refusal "detokenize without ids" 2 'no ids' detokenize "$MODEL"
check_refusal "detokenize of an id past the vocabulary" 2 '2048.*2047' \
    detokenize "$MODEL" 1 2048
ev --ids "1 2"
check "--ids without --logits" is_refusal 2 '--logits'

# --- the config file ---

# bad_conf LABEL LINE PATTERN TEXT: a config of the model's line, then TEXT, is
# refused; the error names LINE and matches.
bad_conf()
{
	printf 'model = "%s"\n%b\n' "$MODEL" "$4" >"$T/bad.conf"
	check_refusal "$1" 2 "bad\.conf:$2: .*$3" run -c "$T/bad.conf" -p hello
}

check_refusal "a model for a config file" 2 'is a model, not a config file: .*-m' \
    run -c "$MODEL" -p hi
check_refusal "a missing config file" 2 'no\.conf: No such file' \
    run -c "$T/no.conf" -p hello
bad_conf "an unknown key" 2 'frob.*context' 'frob = 1'
bad_conf "an unknown key in a session" 3 'frob.*cap' \
    'session a {\n frob = 1 }'
bad_conf "a word where a number belongs" 2 'context.*many' 'context = many'
bad_conf "a word where a size belongs" 2 'cap.*lots' 'session a { cap = lots }'
bad_conf "a cap of 0 in the config" 3 'cap' '\nsession a { cap = 0 }'
bad_conf "a core in the config that does not exist" 2 'core 999' \
    'session a { cores = "999" }'
bad_conf "a node in the config that does not exist" 2 'node 999' \
    'session a { node = 999 }'
bad_conf "an unknown device in the config" 3 'warp' \
    '\nsession a { device = warp }'
bad_conf "a duplicate key" 3 'twice' 'batch = 1\nbatch = 2'
bad_conf "two sessions with one name" 3 \
    'duplicate session name a' 'session a { }\nsession a { }'
bad_conf "a section without its end" 2 \
    'unterminated section' 'session a { cap = "1GiB"'
bad_conf "a string without its end" 2 '' 'kv_type = "f16'

# --- output that cannot be written ---

# The program failed in order: exit 1, at most one line, no crash, no process left.
failed_cleanly()
{
	exits 1 && no_process_left && ! stderr_has 'signal|core|Segmentation' &&
	    [ "$(wc -l <"$ERR")" -le 1 ]
}

long=(run -m "$MODEL" -p hello -n 2000 --ctx 1024 --ignore-eos --temp 0 -q)
rm -f "$T/fifo" && mkfifo "$T/fifo"
head -c 5 <"$T/fifo" >"$T/head" &
OUT=$T/fifo straddle "${long[@]}" $(sessions 3)
wait
check "the reader of stdout leaves: clean exit" failed_cleanly
check "the reader got its 5 bytes" equal 5 "$(wc -c <"$T/head")"
check "the broken pipe is reported" stderr_has 'stdout: Broken pipe'
for args in "${long[*]}" "${good[*]} --json -q" "plan -m $MODEL" \
    "plan --json -m $MODEL" "inspect $MODEL" "tokenize $MODEL -p hello" \
    "detokenize $MODEL 300" "explain -m $MODEL" "devices" "help" \
    "--version"; do
	OUT=/dev/full straddle $args
	check "stdout on a full disk, ${args%% *}: clean exit" failed_cleanly
	check "stdout on a full disk, ${args%% *}: stdout is named" \
	    stderr_has '^straddle: stdout: '
done
straddle eval -m "$MODEL" --ids "1 2" --logits /dev/full -q
check "logits to a full disk: clean exit" failed_cleanly
check "logits to a full disk: the file is named" \
    stderr_has '/dev/full: .*No space left'
echo old >"$T/x.f32"
run_any bash -c 'ulimit -f 3500; exec "$0" "$@"' "$BIN" eval -m "$MODEL" -q \
    --ids "$(seq -s ' ' 1 500)" --logits "$T/x.f32"
check "logits beyond a limit of file sizes" is_refusal 1 \
    'x\.f32: cannot write: File too large'
check "logits that are not whole replace no file" equal old "$(cat "$T/x.f32")"
run_any bash -c 'ulimit -f 3500; exec "$0" "$@"' "$BIN" eval -m "$MODEL" -q \
    --ids "$(seq -s ' ' 1 500)" --logits "$T/y.f32"
check "logits that are not whole leave no file" \
    test -z "$(find "$T" -name 'y.f32*')"
run_any bash -c 'ulimit -n 20; exec "$0" "$@"' "$BIN" "${good[@]}" -q \
    $(sessions 8)
check "too few file descriptors: clean exit" failed_cleanly
check "too few file descriptors: the error says so" \
    stderr_has 'Too many open files'
run_any bash -c 'ulimit -f 100; exec "$0" "$@"' "$BIN" "${good[@]}" -q
check "a low limit on file sizes: clean exit" failed_cleanly
check "a low limit on file sizes: the error says so" stderr_has 'File too large'
run_any bash -c '"$0" "$@" >/dev/full' "$BIN" plan --check -m "$MODEL"
check "plan --check to a full disk: clean exit" failed_cleanly
straddle eval -q -m "$T/good.gguf" --ids "1 2 3" --logits "$T/good.gguf"
check "--logits that would overwrite the model" is_refusal 2 \
    'good\.gguf: is the file that is read'
check "the model is unchanged" cmp -s "$MODEL" "$T/good.gguf"
run_any bash -c '"$0" "$@" >&-' "$BIN" "${good[@]}" -q
check "stdout closed at start: clean exit" failed_cleanly
run_any bash -c '"$0" "$@" 2>&-' "$BIN" "${good[@]}"
check "stderr closed at start: the run succeeds" is_success
run_any bash -c '"$0" "$@" <&-' "$BIN" "${good[@]}" -q
check "stdin closed at start: the run succeeds" is_success
run_any bash -c '"$0" "$@" <&- >&- 2>&-' "$BIN" "${good[@]}" -q
check "all three streams closed at start: clean exit" failed_cleanly

e2e_end
