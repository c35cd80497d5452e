#!/bin/bash
# tests/e2e/bad_input.sh - what cannot run is refused: with the right exit
# code, in one line that says what and where, and with nothing left behind.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

bad=$T/bad.gguf
make_model tiny q8_0
header=$("$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$T/good.gguf")
check "an unpatched copy is the model" cmp -s "$MODEL" "$T/good.gguf"
size=$(wc -c <"$MODEL")

run_bad() { straddle run -m "$bad" -p hello -n 2 --temp 0 -q "$@"; }

# bad_model WHAT PATTERN FAULT...: exit 4, naming the file and the pattern.
bad_model()
{
	local what=$1 pattern=$2

	shift 2
	"$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$bad" "$@"
	run_bad
	check "$what" is_refusal 4 "bad\.gguf: .*$pattern"
}

# readable WHAT: tokenize and inspect do not mind.
readable()
{
	works "$1: tokenize works" tokenize "$bad" -p "In the beginning"
	check "$1: and gives ids" prints '^1( [0-9]+)+$'
	works "$1: inspect works" inspect "$bad"
	check "$1: and says why it does not run" prints "^runs: .*$2"
	works "$1: inspect --json works" inspect "$bad" --json
	check "$1: and says why, too" same False "$(field runs)"
}

# --- no such file, or none of ours ---

refuses "a missing model" 4 'nowhere\.gguf: No such file' \
    run -m "$T/nowhere.gguf" -p hello
for command in plan inspect explain bench; do
	refuses "a missing model, $command" 4 'nowhere\.gguf: No such file' \
	    $command -m "$T/nowhere.gguf"
done
refuses "a missing model, tokenize" 4 'nowhere\.gguf: No such file' \
    tokenize "$T/nowhere.gguf" -p hello
refuses "a missing model, eval" 4 'nowhere\.gguf: No such file' \
    eval -m "$T/nowhere.gguf" --ids "1 2" --logits "$T/x"
check "and no file of logits" test ! -e "$T/x"
refuses "a folder" 4 "$T: .*directory" run -m "$T" -p hello
: >"$bad"
run_bad
check "an empty file" is_refusal 4 'bad\.gguf: .*offset 0'
echo "# not a model at all, but a text" >"$bad"
run_bad
check "not a GGUF" is_refusal 4 'bad\.gguf: .*not a GGUF'
mkfifo "$T/fifo"
refuses "a pipe" 4 "$T/fifo: " run -m "$T/fifo" -p hello
refuses "a device" 4 '/dev/zero: ' run -m /dev/zero -p hello

cp "$MODEL" "$T/secret.gguf"
chmod 0 "$T/secret.gguf"
if [ "$(id -u)" -ne 0 ]; then
	refuses "an unreadable file" 4 'secret\.gguf: Permission denied' \
	    run -m "$T/secret.gguf" -p hello
elif command -v setpriv >/dev/null; then
	chmod 711 "$T"
	cp "$BIN" "$T/straddle"
	run_any setpriv --reuid=65534 --regid=65534 --clear-groups \
	    "$T/straddle" run -m "$T/secret.gguf" -p hello
	check "an unreadable file" \
	    is_refusal 4 'secret\.gguf: Permission denied'
fi

# --- truncated ---

for ((n = 0; n < header; n += 1024)); do
	head -c $n "$MODEL" >"$bad"
	run_bad
	check "truncated at $n" is_refusal 4 'bad\.gguf: .*[0-9]'
done
for n in $((header - 1)) "$header" $((header + 1)) 51104 $((size / 2)) \
    $((size - 1)); do
	head -c "$n" "$MODEL" >"$bad"
	run_bad
	check "truncated at $n" is_refusal 4 'bad\.gguf: .*[0-9]'
done

# --- a header that lies ---

huge=0xffffffffffffffff
for n in $huge 0x8000000000000000 0x100000000 1000000; do
	bad_model "$n tensors" '[0-9]' tensors=$n
	bad_model "$n keys" '[0-9]' keys=$n
	bad_model "a text of $n" '[0-9]' keylen:general.name=$n
	bad_model "an array of $n" '[0-9]' keylen:tokenizer.ggml.tokens=$n
	bad_model "a dimension of $n" 'blk\.3\.attn_q' \
	    dim1:blk.3.attn_q.weight=$n
	bad_model "a row of $n" 'blk\.3\.attn_q' dim0:blk.3.attn_q.weight=$n
	bad_model "an offset of $n" 'blk\.3\.attn_q' \
	    offset:blk.3.attn_q.weight=$n
done
bad_model "version 1" 'version 1' version=1
bad_model "version 99" 'version 99' version=99
bad_model "a big-endian file" '[0-9]' version=0x03000000
bad_model "no magic" 'not a GGUF' magic=0x12345678
bad_model "no tensors" 'token_embd' tensors=0
bad_model "an offset past the end" "$size.*blk\.7\.ffn_up" \
    offset:blk.7.ffn_up.weight=$((size - 50080 - 64))
bad_model "an offset off its alignment" 'blk\.2\.attn_k' \
    offset:blk.2.attn_k.weight=557057
bad_model "five dimensions" '5 dimensions.*blk\.2\.attn_k' ndims:blk.2.attn_k.weight=5
bad_model "no dimension" 'blk\.2\.attn_k' dim0:blk.2.attn_k.weight=0
bad_model "rows that are no whole blocks" 'blk\.2\.attn_k' \
    dim0:blk.2.attn_k.weight=250
bad_model "a value of no type" '77' keytype:llama.block_count=77
bad_model "a missing tensor" 'blk\.4\.ffn_down' \
    name:blk.4.ffn_down.weight=blk.4.ffn_drown.weigh
bad_model "a tensor twice" 'blk\.1\.attn_q' \
    name:blk.1.attn_k.weight=blk.1.attn_q.weight
bad_model "a missing key" 'embedding_length' \
    keyname:llama.embedding_length=llama.embedding_lemgth
bad_model "another embedding size" '(512|256)' key:llama.embedding_length=512
bad_model "more layers than tensors" 'blk\.8\.' key:llama.block_count=9
bad_model "no layers" 'block_count' key:llama.block_count=0
bad_model "absurd layers" 'block_count|blk' key:llama.block_count=0xffffffff
bad_model "no heads" 'head_count' key:llama.attention.head_count=0
bad_model "heads that do not divide" 'head' key:llama.attention.head_count=7
bad_model "more heads for keys" 'head' key:llama.attention.head_count_kv=16
bad_model "an epsilon that is no number" 'epsilon' \
    key:llama.attention.layer_norm_rms_epsilon=nan
bad_model "odd rotation" 'rope' key:llama.rope.dimension_count=31
bad_model "too much rotation" 'rope' key:llama.rope.dimension_count=64
bad_model "a context of 0" 'context' key:llama.context_length=0
bad_model "another vocabulary size" '204[89]' key:llama.vocab_size=2049
bad_model "a beginning that is no token" 'bos_token_id' \
    key:tokenizer.ggml.bos_token_id=2048

# --- known by name, not to run ---

bad_model "an unknown architecture" '"?llamb"?' \
    key:general.architecture=llamb
readable "an unknown architecture" llamb
# A layer that block_count leaves out is no error, but is not passed over in
# silence.
"$PYTHON" "$TESTS/tools/gguf_patch.py" "$MODEL" "$bad" key:llama.block_count=7
works "a layer too many" plan -m "$bad"
check "is told" says "bad\.gguf: 9 of [0-9]+ tensors are not used by a llama \
model of 7 layers, the first is blk\.7\."
works "and none is" plan -m "$MODEL"
check "where there is none" is_empty "$ERR"
bad_model "an unknown tensor type" 'blk\.5\.ffn_gate.*99' \
    type:blk.5.ffn_gate.weight=99
readable "an unknown tensor type" 99
bad_model "a type that does not run" 'blk\.5\.ffn_gate.*IQ3_S' \
    type:blk.5.ffn_gate.weight=21
readable "a type that does not run" IQ3_S
bad_model "a vocabulary of an unknown kind" 'llamb' \
    key:tokenizer.ggml.model=llamb
works "which inspect shows" inspect "$bad"
refuses "and tokenize cannot" 4 'llamb' tokenize "$bad" -p hello

# --- sessions and caps ---

good=(run -m "$MODEL" -p hello -n 2 --temp 0)

echo "model = \"$MODEL\"" >"$T/none.conf"
works "no session is one session" run -c "$T/none.conf" -p hello -n 2
check "of all CPU cores" says '^cpu0 +cpu +embd'
works "as many sessions as units" "${good[@]}" $(sessions 10)
refuses "one session more" 2 '11 sessions.* 10\b' "${good[@]}" $(sessions 11)
refuses "many more" 2 '64 sessions.* 10\b' "${good[@]}" $(sessions 64)
refuses "too many for anyone" 2 '64' "${good[@]}" $(sessions 65)
refuses "a cap of 0" 2 'cap.*0' "${good[@]}" -s cpu,cap=0
refuses "a cap below a layer" 3 \
    '[0-9]+ bytes are missing; (what would fit|neither)' \
    "${good[@]}" -s cpu,cap=100KiB
refuses "caps below a layer" 3 '[0-9]+ bytes are missing; ' \
    "${good[@]}" $(sessions 4 cpu,cap=1MiB)
straddle plan -m "$MODEL" --ctx 1024
need=$(awk '$1 == "cpu0" { print int($NF) }' "$OUT")
refuses "a cap that more sessions help" 3 'missing; what would fit: .*session' \
    "${good[@]}" --ctx 1024 -s cpu,cap=$((need - 2))MiB
refuses "a context too large for the cap" 3 'what would fit: .*--ctx [0-9]+' \
    "${good[@]}" --ctx 65536 -s cpu,cap=64MiB
for code in "bench" "explain"; do
	refuses "a cap below a layer, $code" 3 'bytes are missing' \
	    $code --json -m "$MODEL" -s cpu,cap=100KiB
done
straddle plan --json -m "$MODEL" -s cpu,cap=100KiB
check "a cap below a layer, plan: exit 3" exits 3
check "the nearest plan, and that it does not fit" "$PYTHON" -c \
    'import json, sys
o = json.load(open(sys.argv[1]))
assert o["fits"] is False and "bytes are missing" in o["advice"]
assert o["sessions"][0]["planned"] > o["sessions"][0]["cap"]' "$OUT"
refuses "a core that is not there" 2 'core 999 ' \
    "${good[@]}" -s cpu,cores=999
refuses "no core at all" 2 'core' "${good[@]}" -s cpu,cores=
refuses "a node that is not there" 2 'node 999' "${good[@]}" -s cpu,node=999
refuses "no such device" 2 'warp.*cpu' "${good[@]}" -s warp
refuses "no threads" 2 'threads' "${good[@]}" -s cpu,threads=0
refuses "a context of 0" 2 'ctx.*0' "${good[@]}" --ctx 0
refuses "a batch of 0" 2 'batch.*0' "${good[@]}" --batch 0
refuses "a batch too large" 2 'batch.*4096' "${good[@]}" --batch 4097
refuses "no such KV type" 2 'kv-type.*f16' "${good[@]}" --kv-type q1

# --- the command line ---

refuses "no command" 2 'no command'
refuses "no such command" 2 'rum' rum -m "$MODEL" -p hello
refuses "no prompt" 2 'no prompt' run -m "$MODEL"
refuses "no model" 2 'no model' run -p hello
refuses "two prompts" 2 'prompt|-p' run -m "$MODEL" -p hello -f "$T/x"
refuses "a prompt that is not there" 2 'no\.txt: No such file' \
    run -m "$MODEL" -f "$T/no.txt"
refuses "a folder as prompt" 2 'directory' run -m "$MODEL" -f "$T"
refuses "prompts that are not there" 2 'no\.txt: No such file' \
    run -m "$MODEL" --prompts "$T/no.txt"
refuses "an unknown option" 2 '--frob' "${good[@]}" --frob
refuses "another command's option" 2 '--ids' "${good[@]}" --ids 1
refuses "an option without value" 2 'value' "${good[@]}" --seed
refuses "an operand too many" 2 'more' "${good[@]}" more
for n in -2 1.5 x 99999999999999999999 ''; do
	refuses "-n '$n'" 2 "-n: '$n" run -m "$MODEL" -p hello -n "$n"
done
for x in -1 nan inf 1e999 x ''; do
	refuses "--temp '$x'" 2 "--temp: '$x" "${good[@]}" --temp "$x"
done
refuses "a negative seed" 2 '--seed' "${good[@]}" --seed -1
refuses "an unknown size unit" 2 'cap.*5parsecs' \
    "${good[@]}" -s cpu,cap=5parsecs
refuses "a size that overflows" 2 'cap' "${good[@]}" -s cpu,cap=99999EiB
ev() { straddle eval -m "$MODEL" --ctx 16 "$@"; }
ev --ids "1 2 2048" --logits "$T/x"
check "an id past the vocabulary" is_refusal 2 '2048.*2047'
ev --ids "1 2 -1" --logits "$T/x"
check "a negative id" is_refusal 2 '-1'
ev --ids " " --logits "$T/x"
check "no ids" is_refusal 2 'ids'
ev --ids "$(seq -s ' ' 1 17)" --logits "$T/x"
check "more ids than the context" is_refusal 2 '17.*16'
ev --ids-file "$T/no.txt" --logits "$T/x"
check "ids that are not there" is_refusal 2 'no\.txt: No such file'
ev --text "$T/no.txt"
check "a text that is not there" is_refusal 2 'no\.txt: No such file'
check "none of these made a file" test ! -e "$T/x"
ev --ids "1 2" --logits "$T/no/x"
check "logits that go nowhere" is_refusal 2 'no/x: No such file'
straddle eval -m "$MODEL" --ctx 2 --text "$TESTS/e2e/lib.sh"
check "a context with nothing to score" is_refusal 2 '--ctx 3'
refuses "tokenize without a model" 2 'no model' tokenize -p hello
refuses "detokenize without ids" 2 'no ids' detokenize "$MODEL"
refuses "detokenize past the vocabulary" 2 '2048.*2047' \
    detokenize "$MODEL" 1 2048
ev --ids "1 2"
check "ids without --logits" is_refusal 2 '--logits'

# --- the config file ---

# bad_conf WHAT LINE PATTERN TEXT: the text is what follows the model's line.
bad_conf()
{
	printf 'model = "%s"\n%b\n' "$MODEL" "$4" >"$T/bad.conf"
	refuses "$1" 2 "bad\.conf:$2: .*$3" run -c "$T/bad.conf" -p hello
}

refuses "a missing config" 2 'no\.conf: No such file' \
    run -c "$T/no.conf" -p hello
bad_conf "an unknown key" 2 'frob.*context' 'frob = 1'
bad_conf "an unknown key of a session" 3 'frob.*cap' \
    'session a {\n frob = 1 }'
bad_conf "a number that is none" 2 'context.*many' 'context = many'
bad_conf "a size that is none" 2 'cap.*lots' 'session a { cap = lots }'
bad_conf "a cap of 0 there" 3 'cap' '\nsession a { cap = 0 }'
bad_conf "cores that do not exist" 2 'core 999' \
    'session a { cores = "999" }'
bad_conf "a node that does not exist" 2 'node 999' \
    'session a { node = 999 }'
bad_conf "a device that does not exist" 3 'warp' \
    '\nsession a { device = warp }'
bad_conf "a key twice" 3 'twice' 'batch = 1\nbatch = 2'
bad_conf "two sessions of one name" 3 'duplicate session name a' 'session a { }\nsession a { }'
bad_conf "no end" 2 'unterminated section' 'session a { cap = "1GiB"'
bad_conf "a string without end" 2 '' 'kv_type = "f16'

# --- output that cannot be written ---

# closed WHAT: not a crash, not a hang, nothing left.
gave_up()
{
	exits 1 && ended && ! says 'signal|core|Segmentation' &&
	    [ "$(wc -l <"$ERR")" -le 1 ]
}

long=(run -m "$MODEL" -p hello -n 2000 --ctx 1024 --ignore-eos --temp 0 -q)
rm -f "$T/fifo" && mkfifo "$T/fifo"
head -c 5 <"$T/fifo" >"$T/head" &
OUT=$T/fifo straddle "${long[@]}" $(sessions 3)
wait
check "a reader that leaves" gave_up
check "got what it wanted" same 5 "$(wc -c <"$T/head")"
check "and that is said" says 'stdout: Broken pipe'
for args in "${long[*]}" "${good[*]} --json -q" "plan -m $MODEL" \
    "plan --json -m $MODEL" "inspect $MODEL" "tokenize $MODEL -p hello" \
    "detokenize $MODEL 300" "explain -m $MODEL" "devices" "help" \
    "--version"; do
	OUT=/dev/full straddle $args
	check "a full disk: ${args%% *}" gave_up
	check "and that is said: ${args%% *}" says '^straddle: stdout: '
done
straddle eval -m "$MODEL" --ids "1 2" --logits /dev/full -q
check "a full disk for logits" gave_up
check "names it" says '/dev/full: .*No space left'
run_any bash -c 'ulimit -n 20; exec "$0" "$@"' "$BIN" "${good[@]}" -q \
    $(sessions 8)
check "too few file descriptors" gave_up
check "and that is said" says 'Too many open files'
run_any bash -c 'ulimit -f 100; exec "$0" "$@"' "$BIN" "${good[@]}" -q
check "files that may not be large enough" gave_up
check "and that is said, too" says 'File too large'
run_any bash -c '"$0" "$@" >/dev/full' "$BIN" plan --check -m "$MODEL"
check "plan --check of what nobody gets" gave_up
straddle eval -q -m "$T/good.gguf" --ids "1 2 3" --logits "$T/good.gguf"
check "logits in the place of the model" is_refusal 2 \
    'good\.gguf: is the file that is read'
check "which is as it was" cmp -s "$MODEL" "$T/good.gguf"
run_any bash -c '"$0" "$@" >&-' "$BIN" "${good[@]}" -q
check "stdout closed before" gave_up
run_any bash -c '"$0" "$@" 2>&-' "$BIN" "${good[@]}"
check "stderr closed before" is_success
run_any bash -c '"$0" "$@" <&-' "$BIN" "${good[@]}" -q
check "stdin closed before" is_success
run_any bash -c '"$0" "$@" <&- >&- 2>&-' "$BIN" "${good[@]}" -q
check "all closed before" gave_up

e2e_end
