#!/bin/bash
# tests/e2e/commands.sh - all commands but run: their text and JSON output.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# --- help and version ---

check_success "--version" --version
check "--version prints a version number" stdout_has '^straddle [0-9]+\.[0-9]+'
check_success "help" help
for command in run chat plan inspect devices explain tokenize detokenize eval \
    bench stress quantize; do
	OUT=$T/main straddle help
	check "help lists $command" grep -q "^  $command " "$T/main"
	check_success "help $command" help $command
	check "help $command prints the usage line" \
	    stdout_has "^usage: straddle $command"
	check "help $command prints an example" \
	    stdout_has "^  straddle $command "
	check "help $command says where the common options are" \
	    stdout_has 'straddle help options$'
	check "help $command does not print them" \
	    is_blank "$(grep '^  --ctx' "$OUT")"
	cp "$OUT" "$T/help"
	check_success "$command --help" $command --help
	check "$command --help prints the same as help $command" \
	    cmp -s "$OUT" "$T/help"
	check_success "$command -h ignores a missing config" \
	    $command -h -c "$T/none"
	check "$command -h prints the same as help $command" \
	    cmp -s "$OUT" "$T/help"
done
check_success "help options" help options
check "help options prints the common options" stdout_has '^  -c FILE'
check_success "--help" --help
check "--help prints the same as help" cmp -s "$OUT" "$T/main"

# --- the shipped example, and common mistakes ---

if [ "$(cores | grep -cx '[01]')" -eq 2 ]; then
	check_success "run with example.conf, unchanged" \
	    run -c "$TESTS/../config/example.conf" -p "In the" -n 4
fi
# The parent started it with a higher nice value than the config asks for; only
# root could lower it.
limited=
[ "$(id -u)" -ne 0 ] ||
    limited="setpriv --bounding-set=-sys_nice --inh-caps=-all"
if [ -z "$limited" ] || $limited true 2>/dev/null; then
	run_any nice -n 15 $limited "$BIN" run -m "$MODEL" \
	    -s cpu,priority=nice:5 -p In -n 1
	check "a run under nice 15 with priority nice:5 succeeds" is_success
fi
check_success "four sessions from one -s option" \
    run -m "$MODEL" -s '4*cpu,cap=64MiB' -p "In the" -n 4
check "the sessions are numbered from 0" stderr_has '^cpu3 +cpu '
check_success "options of other programs" run --model "$MODEL" \
    --prompt "In the beginning" --n-predict 4 --temperature 0 -c 64 -t 1 \
    -ngl 99 --gpu-layers 99 --no-mmap
check "what has no effect is noted" \
    stderr_has '^straddle: note: -ngl has no effect: .* -s DEVICE,cap=SIZE$'
check "each reason is noted once" equal 2 "$(grep -c 'has no effect' "$ERR")"
want=$(cat "$OUT")
check_success "a model as operand" \
    run "$MODEL" -p "In the beginning" -n 4 --temp 0 -q -ngl 99
check "both give the same text" equal "$want" "$(cat "$OUT")"
check "-q leaves out the note" is_empty "$ERR"
check_refusal "-hf" 2 'nothing is downloaded here: get a .gguf file from' \
    run -hf org/model -p hello
check_refusal "options without a command" 2 \
    'give a command first: straddle run -m' -m "$MODEL"
check_refusal "a cap of 64 bytes" 2 '64 means 64 bytes: did you mean 64MiB' \
    run -m "$MODEL" -s cpu,cap=64 -p hello

# --- plan ---

check_success "plan" plan -c "$DEMO"
check "plan prints nothing on stderr" is_empty "$ERR"
for name in cpu0 cpu1 cpu2 cpu3; do
	check "plan prints a row for $name" \
	    stdout_has "^$name +cpu .* 64\.00( +[0-9]+\.[0-9]+){7}$"
done
check_success "plan --json" plan -c "$DEMO" --json
check "plan --json has the stable keys" has_keys plan

# covers SESSIONS [HALVES]: each half layer is in the plan once, in order; whole
# layers are not split unless HALVES; every session fits its cap.
covers()
{
	"$PYTHON" - "$OUT" "$@" 2>>"$ERR" <<-'END'
	import json, sys
	s = json.load(open(sys.argv[1]))['sessions']
	def of(key):
	    return [n for x in s if x[key]
	            for n in range(x[key][0], x[key][1] + 1)]
	assert of('attention') == of('ffn') == list(range(8)), s
	assert sys.argv[3:] or of('layers') == list(range(8)), s
	assert len(s) == int(sys.argv[2]), len(s)
	assert [x['embedding'] for x in s] == [True] + [False] * (len(s) - 1)
	assert [x['head'] for x in s] == [False] * (len(s) - 1) + [True]
	for x in s:
	    total = sum(x[k] for k in ('weights', 'kv', 'compute', 'staging',
	                               'rings', 'runtime'))
	    assert 0 < total <= x['cap'], (x['name'], total)
	END
}
check "the plan of four sessions covers the model" covers 4
for n in 2 3 5 8 9 10; do
	straddle plan --json -m "$MODEL" $(sessions $n cpu,cap=64MiB)
	check "$n sessions cover the model" covers $n
done
for n in 2 3 7 18; do
	straddle plan --json --half-layers -m "$MODEL" \
	    $(sessions $n cpu,cap=64MiB)
	check "$n sessions cover the model's half layers" covers $n halves
done
check_success "plan --half-layers" plan --half-layers -m "$MODEL" \
    $(sessions 3 cpu,cap=64MiB)
check "a session that ends with half a layer is shown" \
    stdout_has '^cpu0 .* embd\+0-1\+2\.attn '
check "a session that begins with half a layer is shown" \
    stdout_has '^cpu1 .* 2\.ffn\+3-4 '
kv() { "$PYTHON" -c 'import json, sys
print(sum(s["kv"] for s in json.load(open(sys.argv[1]))["sessions"]))' "$OUT"; }
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type f16
half=$(kv)
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type f32
check "an F32 KV cache takes twice the bytes of F16" equal $((2 * half)) "$(kv)"
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type q8_0
check "a Q8_0 KV cache takes less than 60 % of F16" \
    test "$(kv)" -lt $((half * 6 / 10))
small=$(kv)
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type-v q8_0
check "Q8_0 for values alone saves half as much" \
    equal $(((half + small) / 2)) "$(kv)"
# 8 layers, 4 heads of 32, keys and values of two bytes each.
check "the KV cache has the size that the model's shape implies" \
    equal $((1024 * 8 * 4 * 32 * 4)) "$half"

# check_round LABEL ARGS...: plan --check prints a config that parses to the same
# config.
check_round()
{
	local label=$1

	shift
	check_success "plan --check, $label" plan --check "$@"
	cp "$OUT" "$T/round.conf"
	check_success "plan --check of its output, $label" \
	    plan --check -c "$T/round.conf"
	check "plan --check of its output prints it again, $label" \
	    cmp -s "$OUT" "$T/round.conf"
}
core=$(cores | tail -n 1)
check_round "demo.conf" -c "$DEMO"
check_round "flags" -m "$MODEL" --ctx 77 --batch 9 --kv-type q8_0 \
    --kv-type-k f32 --half-layers --strict \
    -s "a=cpu,cores=$core,cap=1.5GiB,threads=3,priority=nice:3" \
    -s b=null,cap=123456789B -s hexagon,cap=3.5GiB
check "plan --check prints all three sessions" \
    equal 3 "$(grep -c '^session' "$OUT")"
check "plan --check prints a cap to the byte" stdout_has '123456789'
straddle run -c "$DEMO" -p "In the" --temp 0 -n 8 --json
want=$(field logits_hash)
straddle plan --check -c "$DEMO"
cp "$OUT" "$T/round.conf"
straddle run -c "$T/round.conf" -p "In the" --temp 0 -n 8 --json
check "a run with the printed config gives the same logits" \
    equal "$want" "$(field logits_hash)"
check_success "plan --check without a model" plan --check -s cpu,cap=1GiB

# --- inspect ---

check_success "inspect" inspect "$MODEL"
check "inspect prints the architecture" \
    stdout_has '^ +general\.architecture +string +"llama"'
check "inspect prints the number of tensors of each type" \
    stdout_has '^ +Q8_0 +57 tensors'
check "inspect says that the model runs" stdout_has '^runs: yes'
check "inspect does not list the tensors" is_blank "$(grep blk.0.attn_q "$OUT")"
check_success "inspect -v" inspect -v -m "$MODEL"
check "inspect -v lists every tensor" equal 74 "$(grep -c ' at [0-9]*$' "$OUT")"
check_success "inspect --json" inspect --json -c "$DEMO"
check "inspect --json prints metadata, tensors and sizes" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	assert o['version'] == 3 and o['runs'] is True and o['alignment'] == 32
	assert o['metadata']['llama.block_count'] == 8
	t = {t['name']: t for t in o['tensors']}
	assert len(t) == 74
	q = t['blk.7.ffn_down.weight']
	assert q['type'] == 'Q8_0' and q['shape'] == [512, 256]
	assert q['bytes'] == 512 * 256 // 32 * 34
	assert o['tensor_bytes'] == sum(x['bytes'] for x in t.values())
	END
make_model split q4_0 --split 3
check_success "inspect of a split model" \
    inspect "$T"/split-00001-of-00003.gguf --json
check "inspect counts the files of a split model" equal 3 "$(field files)"

# --- devices ---

check_success "devices" devices
check "devices lists cpu" stdout_has '^cpu$'
check "devices prints the number of cores" \
    stdout_has "^ +cores +$(getconf _NPROCESSORS_ONLN) "
check "devices has at most 80 columns" is_blank \
    "$(grep -E '.{81}' "$OUT" | grep -vE '^ *[^ ]+$')"
check "devices wraps long lists under their beginning" \
    stdout_has '^  matmul       F32 F16 .*[0-9A-Z]$'
check "devices names the types that share a reason once" \
    test "$(grep -c 'no HVX kernel' "$OUT")" -le 2
check_success "devices --json" devices --json
check "devices --json has the stable keys" has_keys devices
check "devices --json finds cpu and gives reasons for the rest" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	assert {'cpu', 'hexagon', 'null'} <= set(d), d.keys()
	assert d['cpu']['found'] and d['cpu']['limits']
	assert all(x['found'] or x['reason'] for x in d.values())
	END

# --- explain ---

check_success "explain" explain -c "$DEMO"
check "explain prints the operations of the last layer" \
    stdout_has '^cpu[0-3] +7 matmul +blk\.7\.ffn_down\.weight +\| columns +cpu'
check "no operation of the demo falls back to the CPU" \
    equal 4 "$(grep -c ' operations on cpu, all where asked$' "$OUT")"
check "explain prints equal layers once" \
    stdout_has '^cpu0 +layers 0-1, each:$'
check "an operation of several layers has their place in its weight's name" \
    stdout_has '^cpu0 +\* matmul +blk\.\*\.ffn_down\.weight +\| columns +cpu'
check "explain has at most 80 columns" is_blank "$(grep -E '.{81}' "$OUT")"
nops() { grep -cE '^[a-z]+[0-9] +([0-9]+|-|head|\*) [a-z]' "$OUT"; }
folded=$(nops)
check_success "explain -v" explain -c "$DEMO" -v
check "explain -v prints every layer" equal 0 "$(grep -c 'each:' "$OUT" || true)"
check "explain -v prints more operations" test "$(nops)" -gt "$folded"
check_success "explain of all layers in one session" explain "$MODEL"
check "all but the last layer are equal" \
    stdout_has '^cpu0 +layers 0-6, each:$'
check_success "explain --json" explain --json -c "$DEMO"
check "explain --json has the stable keys" has_keys explain
check_success "explain of device null" explain -m "$MODEL" -s null
check "attention falls back to the CPU, with a reason" \
    stdout_has '^null0 +\* attention +\| any +cpu +[a-z]'
check "only attention falls back" \
    stdout_has '^null0 +160 operations .* 8 fall back'
check_success "explain --json of cpu and null" \
    explain -m "$MODEL" -s cpu -s null --json
check "explain --json of two devices has the stable keys" has_keys explain
check "explain's sums agree with its list of operations" \
    "$PYTHON" - "$OUT" <<-'END'
	import collections, json, sys
	o = json.load(open(sys.argv[1]))
	n = collections.Counter((x['session'], x['where'])
	                        for x in o['ops'])
	for s in o['summary']:
	    kind = s['session'].rstrip('0123456789')
	    assert s['device_ops'] == n[s['session'], kind], s
	    if kind != 'cpu':
	        assert s['cpu_ops'] == n[s['session'], 'cpu'] > 0, s
	assert all(x['reason'] for x in o['ops']
	           if x['session'] == 'null0' and x['where'] == 'cpu')
	END
printf 'model = "%s"\nstrict = true\nsession s { device = "null" }\n' \
    "$MODEL" >"$T/strict.conf"
straddle run -c "$T/strict.conf" -p hello --temp 0
check "strict: a fallback makes the exit code 1" exits 1
check "strict: a fallback prints no text" is_empty "$OUT"
check "strict: the error names operation, layer and reason" \
    stderr_has '^straddle: session s: strict: .*attention.* layer 0.*no kernel'
check "strict: the error is one line" equal 1 "$(wc -l <"$ERR")"
check_success "strict: a run on the CPU" run -m "$MODEL" --strict -p hello -n 2

# --- tokenize, detokenize ---

if ! sanitized; then
	# Its vocabulary alone takes more.
	make_model tiny f32 --big-vocab bpe
	straddle tokenize "$T/tiny.gguf" -p hello --reader-cap 4MiB -v
	if stderr_has "the reader: pid [0-9]+, cap 4.00 MiB, held by RLIMIT"; then
		straddle tokenize "$T/tiny.gguf" -p hello --reader-cap 4MiB
		check "--reader-cap is a limit" is_refusal 1 "tiny.gguf: no \
memory for .* \(the reader's cap is 4.00 MiB; --reader-cap sets another\)"
	fi
fi
check_success "tokenize" tokenize "$MODEL" -p "In the beginning God"
check "tokenize prints the ids on one line" \
    equal "1 305 2034 261 1799 1240 389" "$(cat "$OUT")"
check_success "tokenize --no-bos" \
    tokenize "$MODEL" --no-bos -p "In the beginning God"
check "--no-bos leaves out the BOS token" \
    equal "305 2034 261 1799 1240 389" "$(cat "$OUT")"
check_success "tokenize --pieces" \
    tokenize -m "$MODEL" --pieces -p "In the beginning"
check "--pieces prints a line per token" equal 6 "$(wc -l <"$OUT")"
check "--pieces prints id and piece" stdout_has "^ *261 '▁the'$"
check_success "tokenize of an empty text" tokenize "$MODEL" --no-bos -p ""
check "an empty text without BOS prints an empty line" \
    equal 1 "$(wc -c <"$OUT")"

# check_round_trip NAME: detokenize restores $T/text from its ids.
check_round_trip()
{
	straddle tokenize -c "$DEMO" -f "$T/text"
	cp "$OUT" "$T/ids"
	check "$1: tokenize prints one line" equal 1 "$(wc -l <"$T/ids")"
	straddle detokenize "$MODEL" -f "$T/ids"
	echo >>"$T/text"
	check "$1: detokenize -f restores it" cmp -s "$OUT" "$T/text"
	INPUT=$T/ids straddle detokenize "$MODEL" -f -
	check "$1: detokenize from stdin restores it" cmp -s "$OUT" "$T/text"
	straddle detokenize "$MODEL" $(cat "$T/ids")
	check "$1: detokenize of operands restores it" cmp -s "$OUT" "$T/text"
	straddle detokenize -m "$MODEL" -p "$(cat "$T/ids")"
	check "$1: detokenize -p restores it" cmp -s "$OUT" "$T/text"
}
printf 'In the beginning' >"$T/text" && check_round_trip "plain text"
printf '  two  spaces\tand\n\nlines\r\n' >"$T/text" && check_round_trip "white space"
printf 'gr\303\274\303\237e \342\202\254 \360\237\230\200' >"$T/text" &&
    check_round_trip "UTF-8"
printf '\377\376\200 \303 \355\240\200 \360\237' >"$T/text" &&
    check_round_trip "invalid UTF-8"
printf 'a\0b\0' >"$T/text" && check_round_trip "NUL bytes"
printf '</s><s> <unk> <0x41>' >"$T/text" && check_round_trip "text that looks like control tokens"
straddle tokenize "$MODEL" -p "</s>"
want=$(cat "$OUT")
straddle tokenize "$MODEL" -p "</s>" --special
check "--special parses the text </s> as the token" equal "1 2" "$(cat "$OUT")"
check "without --special </s> is plain text" differ "1 2" "$want"
printf 'In the' >"$T/text"
INPUT=$T/text straddle tokenize "$MODEL" -f -
check "tokenize -f - reads stdin" equal "1 305 2034 261" "$(cat "$OUT")"

# --- eval ---

straddle run -m "$MODEL" -c "$DEMO" -p "In the beginning God created" \
    --temp 0 -n 200 -q
cp "$OUT" "$T/text"
check_success "eval --text" \
    eval -m "$MODEL" --ctx 64 --text "$T/text" $(sessions 2)
check "eval --text prints the perplexity" stdout_has \
    '^perplexity [0-9.]+ \+- [0-9.]+ \([0-9]+ chunks of 64 tokens'
want=$(cat "$OUT")
check_success "eval --text --json" \
    eval -m "$MODEL" --ctx 64 --text "$T/text" --json
check "eval --json prints the same perplexity" \
    equal "${want%% +-*}" "perplexity $("$PYTHON" -c \
    'import json, sys
print("%.4f" % json.load(open(sys.argv[1]))["perplexity"])' "$OUT")"
INPUT=$T/text straddle eval -m "$MODEL" --ctx 64 --text - --batch 7
check "eval --text - with another batch size prints the same" \
    equal "$want" "$(cat "$OUT")"
ppl() { sed -n 's/^perplexity \([0-9]*\)\..*/\1/p' "$OUT"; }
own=$(ppl)
"$PYTHON" -c 'import random, sys
words = sorted(set(open(sys.argv[1]).read().split())) * 40
random.seed(1)
random.shuffle(words)
print(" ".join(words[:300]))' "$T/text" >"$T/shuffled"
straddle eval -m "$MODEL" --ctx 64 --text "$T/shuffled"
check "the model's own text has a lower perplexity than shuffled words" \
    test "$own" -lt "$(ppl)"
straddle eval -m "$MODEL" --ctx 64 --stride 65 --text "$T/text"
check "a stride longer than the context" is_refusal 2 '65 .* context of 64'

# expected_ppl STRIDE: compute the perplexity of $T/text here, from the logits of
# whole chunks; score the second half of each chunk, or its last STRIDE tokens.
expected_ppl()
{
	"$PYTHON" - "$BIN" "$MODEL" "$T" "$1" <<-'END'
	import array, math, subprocess, sys
	bin, model, dir, stride = sys.argv[1:4] + [int(sys.argv[4])]
	ctx, nv, nll = 64, 2048, []
	ids = subprocess.run([bin, 'tokenize', model, '-f', dir + '/text'],
	                     capture_output=True, text=True).stdout.split()
	for at in range(0, len(ids) - ctx + 1, stride):
	    chunk = [ids[0]] + ids[at + 1:at + ctx]
	    subprocess.run([bin, 'eval', '-q', '-m', model, '--ctx', '64',
	                    '--ids', ' '.join(chunk), '--logits',
	                    dir + '/chunk.f32'], check=True)
	    x = array.array('f', open(dir + '/chunk.f32', 'rb').read())
	    start = ctx - stride if stride <= ctx // 2 else ctx // 2 + 1
	    for i in range(start, ctx):
	        row = x[(i - 1) * nv:i * nv]
	        nll.append(math.log(math.fsum(map(math.exp, row))) -
	                   row[int(chunk[i])])
	n, mean = len(nll), math.fsum(nll) / len(nll)
	var = math.fsum((v - mean) ** 2 for v in nll) / n
	print('perplexity %.4f +- %.4f %d scored' % (math.exp(mean),
	      math.exp(mean) * math.sqrt(var / (n - 1)), n))
	END
}
for stride in 64 32 20; do
	straddle eval -q -m "$MODEL" --ctx 64 --stride $stride --text "$T/text"
	check "perplexity equals that computed here, stride $stride" \
	    equal "$(expected_ppl $stride)" \
	    "$(sed 's/(.*, \([0-9]* scored\))/\1/' "$OUT")"
done

straddle eval -m "$MODEL" --ctx 1024 --text "$T/text"
check "eval of a text shorter than the context: exit 2" exits 2
check "the error names the text's length and the context" \
    stderr_has '[0-9]+ tokens.* 1024'

check_success "eval --ids" \
    eval -m "$MODEL" --ids "1 305 2034" --logits "$T/a.f32"
check "the logits file has rows x vocabulary x 4 bytes" \
    equal $((3 * 2048 * 4)) \
    "$(wc -c <"$T/a.f32")"
echo "1, 305
2034" >"$T/ids"
check_success "eval --ids-file" \
    eval -m "$MODEL" --ids-file "$T/ids" --logits "$T/b.f32"
check "--ids-file gives the same logits as --ids" cmp -s "$T/a.f32" "$T/b.f32"

# Greedy sampling takes the most likely token of eval's last row.
best=$("$PYTHON" - "$T/a.f32" <<-'END'
	import array, sys
	a = array.array('f', open(sys.argv[1], 'rb').read())[-2048:]
	print(a.index(max(a)))
	END
)
straddle detokenize "$MODEL" "$best"
want=$(cat "$OUT")
straddle run -m "$MODEL" -p "In" --temp 0 -n 1 -q
check "run --temp 0 generates the most likely token of eval" equal "$want" \
    "$(sed 's/^ //' "$OUT")"

# --- bench, stress ---

# Slices of 2 ms are enough: these tests check the output's form, not speeds.
bench() { local label=$1; shift; check_success "$label" bench --slice 2 "$@"; }

bench "bench --json" -m "$MODEL" -p 16 -n 8 -r 1 --json
check "bench --json has the stable keys" has_keys bench
check "bench --json has the tests asked for and a bound for each core" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, os, sys
	o = json.load(open(sys.argv[1]))
	assert [r['test'] for r in o['results']] == ['pp16', 'tg8'], o
	n = len(os.sched_getaffinity(0))
	for k in 'read_gbs', 'int8_gops', 'f32_gflops':
	    assert len(o['roofline'][k]) == n, k
	assert o['roofline']['cores'] == n
	assert o['roofline']['disk_gbs'] is None and 'sweep' not in o
	assert 0 < o['roofline']['cpu_share'] <= 1.01
	for r in o['results']:
	    assert r['limit_tps'] > 0, r
	    # A fraction, or the reason why there is none.
	    if r['fraction'] is None:
	        assert r['no_fraction_because'] and r['tps'] > r['limit_tps'], r
	    else:
	        assert 0 < r['fraction'] <= 1.05, r
	        assert r['no_fraction_because'] is None and not r['disturbed'], r
	        assert (r['fraction_of_share'] or 9) >= r['fraction'], r
	    # The prompt is compute-bound; no cache can make it exceed its bound.
	    if r['test'] == 'pp16' and r['bound'] != 'read':
	        assert r['disturbed'] == (r['fraction'] is None), r
	# Plausible bounds for any machine.
	assert 0.01 < o['roofline']['read_gbs'][0] < 1000
	assert 0.01 < o['roofline']['int8_gops'][0] < 1e5
	END
core=$(cores | tail -n 1)
bench "bench of one core" -m "$MODEL" -s "cpu,cores=$core" -p 0 -n 4 -r 1 --json
check "a session on one core has one core's bound" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	assert len(o['roofline']['read_gbs']) == 1
	assert [r['test'] for r in o['results']] == ['tg4'], o
	END
bench "bench with depths, several sequences and --load" -m "$MODEL" \
    $(sessions 2) -p 0 -n 4 -r 2 -d 0,40 --parallel 1,3 --load --json
check "bench --json with depths has the stable keys" has_keys bench
check "each depth and sequence count has a test; load has the disk's bound" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	r = {x['test']: x for x in o['results']}
	assert list(r) == ['tg4', 'tg4x3', 'tg4@d40', 'tg4x3@d40', 'load'], r
	assert o['roofline']['disk_gbs'] > 0
	assert r['load']['bound'] == 'disk' and r['load']['gbs'] > 0
	assert all(not x['disturbed'] for x in r.values() if x['fraction'])
	assert r['tg4@d40']['depth'] == 40 and r['tg4x3']['sequences'] == 3
	assert all(x['limit_tps'] > 0 for x in r.values() if x['tps']), r
	END
bench "bench --sweep" -m "$MODEL" -p 16 -n 4 -r 1 --sweep 1,2,50 --json
check "--sweep has a row per session count, or says why not" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, os, sys
	def close(a, b):
	    return abs(a - b) < 1e-5 * b
	o = json.load(open(sys.argv[1]))
	want = [(1, 'shared'), (2, 'shared')]
	if len(os.sched_getaffinity(0)) >= 2:
	    want.append((2, 'divided'))
	want.append((50, 'shared'))
	if len(os.sched_getaffinity(0)) >= 50:
	    want.append((50, 'divided'))
	s = o['sweep']
	assert [(x['sessions'], x['cores']) for x in s] == want, s
	for x in s:
	    if x['sessions'] == 50:
	        assert '50 sessions' in x['why_not'] and not x['results'], x
	        continue
	    assert [r['test'] for r in x['results']] == ['pp16', 'tg4'], x
	    for r, base in zip(x['results'], s[0]['results']):
	        assert r['tps'] > 0
	        assert close(r['relative'], r['tps'] / base['tps']), r
	        # All numbers of a row come from one run.
	        assert r['fraction'] is None or \
	            close(r['fraction'], r['tps'] / r['limit_tps']), r
	assert all(r['relative'] == 1 for r in s[0]['results']), s[0]
	END
bench "bench" -m "$MODEL" -p 16 -n 8 -r 1 --load --sweep 1,2
check "bench prints the machine's bounds" \
    stdout_has '^int8, Gop/s +[0-9.]+ .* per cycle$'
check "bench prints speeds and fractions of the bound" \
    stdout_has '^tg8 +[0-9.]+ \+- [0-9.]+ t/s(, [0-9.]+ % of the [0-9.]+ that |; the bound of .* does not hold: )'
check "bench prints the loading speed" \
    stdout_has '^load +[0-9.]+ \+- [0-9.]+ GB/s(, .* that disk allows$|; the bound of .* \(disk\) does not hold: )'
check "--sweep prints a row for two sessions" \
    stdout_has '^2 +[0-9]+ +shared +[0-9.]+ '
check_refusal "a depth that exceeds --ctx" 2 \
    'tests of 48 tokens do not fit into --ctx 40: give --ctx 48' \
    bench -m "$MODEL" --ctx 40 -p 0 -n 8 -d 40
check_refusal "a sweep over different sessions" 2 \
    "--sweep needs identical devices: cpu0 is on cpu, hexagon0 on hexagon" \
    bench -m "$MODEL" -s cpu -s hexagon --sweep 1,2
check_refusal "bench -p 0 -n 0" 2 'nothing to measure' \
    bench -m "$MODEL" -p 0 -n 0
check_success "stress" stress -m "$MODEL" $(sessions 2 cpu,cap=64MiB) \
    --only 'kill -9 of all workers*'
check "stress reports that the case held" \
    stdout_has '^held +kill -9 of all workers at once '

e2e_end
