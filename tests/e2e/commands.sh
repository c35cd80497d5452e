#!/bin/bash
# tests/e2e/commands.sh - the commands beside run: what they print, for people
# and for machines.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# --- help and version ---

works "--version" --version
check "one line with a number" prints '^straddle [0-9]+\.[0-9]+'
works "help" help
for command in run chat plan inspect devices explain tokenize detokenize eval \
    bench stress quantize; do
	OUT=$T/main straddle help
	check "help lists $command" grep -q "^  $command " "$T/main"
	works "help $command" help $command
	check "help $command says how" prints "^usage: straddle $command"
	check "help $command has an example" prints "^  straddle $command "
	check "help $command has the common options" prints '^  -c FILE'
	cp "$OUT" "$T/help"
	works "$command --help" $command --help
	check "$command --help is the same" cmp -s "$OUT" "$T/help"
	works "$command -h, whatever else is there" $command -h -c "$T/none"
	check "$command -h is the same" cmp -s "$OUT" "$T/help"
done
works "--help" --help
check "--help is help" cmp -s "$OUT" "$T/main"

# --- the shipped example, and the words of a beginner ---

if [ "$(cores | grep -cx '[01]')" -eq 2 ]; then
	works "example.conf runs as it is" \
	    run -c "$TESTS/../config/example.conf" -p "In the" -n 4
fi
# Nicer than was asked, by who started it: only root could take that back.
limited=
[ "$(id -u)" -ne 0 ] ||
    limited="setpriv --bounding-set=-sys_nice --inh-caps=-all"
if [ -z "$limited" ] || $limited true 2>/dev/null; then
	run_any nice -n 15 $limited "$BIN" run -m "$MODEL" \
	    -s cpu,priority=nice:5 -p In -n 1
	check "started under nice it stays there" is_success
fi
works "four sessions by one option" \
    run -m "$MODEL" -s '4*cpu,cap=64MiB' -p "In the" -n 4
check "named by index" says '^cpu3 +cpu '
refuses "another program's option" 2 '--model: not an option of run: write -m$' \
    run --model "$MODEL" -p hello
refuses "no command" 2 'give a command first: straddle run -m' -m "$MODEL"
refuses "a cap of a few bytes" 2 '64 means 64 bytes: did you mean 64MiB' \
    run -m "$MODEL" -s cpu,cap=64 -p hello

# --- plan ---

works "plan" plan -c "$DEMO"
check "no worker's word on stderr" is_empty "$ERR"
for name in cpu0 cpu1 cpu2 cpu3; do
	check "a row of $name" prints "^$name +cpu .* 64\.00( +[0-9]+\.[0-9]+){7}"
done
works "plan --json" plan -c "$DEMO" --json
check "it has the stable keys" has_keys plan

# covers SESSIONS [HALVES]: everything once, in order; layers in one session
# each, unless cut in halves; every session within its cap.
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
check "the plan covers the model" covers 4
for n in 2 3 5 8 9 10; do
	straddle plan --json -m "$MODEL" $(sessions $n cpu,cap=64MiB)
	check "$n sessions cover the model" covers $n
done
for n in 2 3 7 18; do
	straddle plan --json --half-layers -m "$MODEL" \
	    $(sessions $n cpu,cap=64MiB)
	check "$n sessions cover the model's half layers" covers $n halves
done
works "plan --half-layers" plan --half-layers -m "$MODEL" \
    $(sessions 3 cpu,cap=64MiB)
check "the half that a session ends with" prints '^cpu0 .* embd\+0-1\+2\.attn '
check "the half that one begins with" prints '^cpu1 .* 2\.ffn\+3-4 '
kv() { "$PYTHON" -c 'import json, sys
print(sum(s["kv"] for s in json.load(open(sys.argv[1]))["sessions"]))' "$OUT"; }
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type f16
half=$(kv)
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type f32
check "KV bytes double with F32" same $((2 * half)) "$(kv)"
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type q8_0
check "KV bytes shrink with Q8_0" test "$(kv)" -lt $((half * 6 / 10))
small=$(kv)
straddle plan --json -m "$MODEL" --ctx 1024 --kv-type-v q8_0
check "and by half of that with values alone" \
    same $(((half + small) / 2)) "$(kv)"
# 8 layers of 4 heads of 32, keys and values, two bytes each.
check "KV bytes are those of the model" same $((1024 * 8 * 4 * 32 * 4)) "$half"

# check_round WHAT ARGS...: what --check prints means itself.
check_round()
{
	local what=$1

	shift
	works "plan --check, $what" plan --check "$@"
	cp "$OUT" "$T/round.conf"
	works "plan --check of that" plan --check -c "$T/round.conf"
	check "it is a fixed point: $what" cmp -s "$OUT" "$T/round.conf"
}
core=$(cores | tail -n 1)
check_round "demo" -c "$DEMO"
check_round "flags" -m "$MODEL" --ctx 77 --batch 9 --kv-type q8_0 \
    --kv-type-k f32 --half-layers --strict \
    -s "a=cpu,cores=$core,cap=1.5GiB,threads=3,priority=nice:3" \
    -s b=null,cap=123456789B -s hexagon,cap=3.5GiB
check "it has all of that" same 3 "$(grep -c '^session' "$OUT")"
check "exactly" prints '123456789'
straddle run -c "$DEMO" -p "In the" --temp 0 -n 8 --json
want=$(field logits_hash)
straddle plan --check -c "$DEMO"
cp "$OUT" "$T/round.conf"
straddle run -c "$T/round.conf" -p "In the" --temp 0 -n 8 --json
check "and it runs as the first did" same "$want" "$(field logits_hash)"
works "--check needs no model" plan --check -s cpu,cap=1GiB

# --- inspect ---

works "inspect" inspect "$MODEL"
check "the architecture" prints '^ +general\.architecture +string +"llama"'
check "the tensors by type" prints '^ +Q8_0 +57 tensors'
check "it runs" prints '^runs: yes'
check "without the list of tensors" nothing "$(grep blk.0.attn_q "$OUT")"
works "inspect -v" inspect -v -m "$MODEL"
check "lists each tensor" same 74 "$(grep -c ' at [0-9]*$' "$OUT")"
works "inspect --json" inspect --json -c "$DEMO"
check "metadata, tensors and bytes" "$PYTHON" - "$OUT" <<-'END'
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
works "inspect of a split model" inspect "$T"/split-00001-of-00003.gguf --json
check "all its files" same 3 "$(field files)"

# --- devices ---

works "devices" devices
check "cpu is found" prints '^cpu$'
check "with its cores" prints "^ +cores +$(getconf _NPROCESSORS_ONLN) "
works "devices --json" devices --json
check "it has the stable keys" has_keys devices
check "cpu found; each kind with a reason" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	assert {'cpu', 'hexagon', 'null'} <= set(d), d.keys()
	assert d['cpu']['found'] and d['cpu']['limits']
	assert all(x['found'] or x['reason'] for x in d.values())
	END

# --- explain ---

works "explain" explain -c "$DEMO"
check "of the last layer" prints '^cpu[0-3] +7 matmul +blk\.7\.ffn_down\.weight +\| columns +cpu'
check "nothing falls back" same 4 "$(grep -c ' 0 fall back' "$OUT")"
works "explain --json" explain --json -c "$DEMO"
check "it has the stable keys" has_keys explain
works "explain of a device" explain -m "$MODEL" -s null
check "attention falls back, with the reason" \
    prints '^null0 +3 attention +\| any +cpu +[a-z]'
check "the rest does not" prints '^null0 +160 operations .* 8 fall back'
works "explain --json of a device" explain -m "$MODEL" -s cpu -s null --json
check "it has the stable keys, too" has_keys explain
check "the counts are those of the operations" "$PYTHON" - "$OUT" <<-'END'
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
check "strict: no run with a fallback" exits 1
check "strict: no text" is_empty "$OUT"
check "strict: names the operation, layer and reason" \
    says '^straddle: session s: strict: .*attention.* layer 0.*no kernel'
check "strict: one line" same 1 "$(wc -l <"$ERR")"
works "strict: the CPU needs none" run -m "$MODEL" --strict -p hello -n 2

# --- tokenize, detokenize ---

works "tokenize" tokenize "$MODEL" -p "In the beginning God"
check "ids on one line" same "1 305 2034 261 1799 1240 389" "$(cat "$OUT")"
works "tokenize --no-bos" tokenize "$MODEL" --no-bos -p "In the beginning God"
check "the first is gone" same "305 2034 261 1799 1240 389" "$(cat "$OUT")"
works "tokenize --pieces" tokenize -m "$MODEL" --pieces -p "In the beginning"
check "a line each" same 6 "$(wc -l <"$OUT")"
check "id and piece" prints "^ *261 '▁the'$"
works "no text is no ids" tokenize "$MODEL" --no-bos -p ""
check "an empty line" same 1 "$(wc -c <"$OUT")"

# back NAME: the bytes of $T/text come back from their ids.
back()
{
	straddle tokenize -c "$DEMO" -f "$T/text"
	cp "$OUT" "$T/ids"
	check "$1: one line" same 1 "$(wc -l <"$T/ids")"
	straddle detokenize "$MODEL" -f "$T/ids"
	echo >>"$T/text"
	check "$1: comes back" cmp -s "$OUT" "$T/text"
	INPUT=$T/ids straddle detokenize "$MODEL" -f -
	check "$1: from stdin" cmp -s "$OUT" "$T/text"
	straddle detokenize "$MODEL" $(cat "$T/ids")
	check "$1: from operands" cmp -s "$OUT" "$T/text"
	straddle detokenize -m "$MODEL" -p "$(cat "$T/ids")"
	check "$1: from -p" cmp -s "$OUT" "$T/text"
}
printf 'In the beginning' >"$T/text" && back "plain text"
printf '  two  spaces\tand\n\nlines\r\n' >"$T/text" && back "blanks"
printf 'gr\303\274\303\237e \342\202\254 \360\237\230\200' >"$T/text" &&
    back "UTF-8"
printf '\377\376\200 \303 \355\240\200 \360\237' >"$T/text" &&
    back "invalid UTF-8"
printf 'a\0b\0' >"$T/text" && back "NUL bytes"
printf '</s><s> <unk> <0x41>' >"$T/text" && back "the look of control tokens"
straddle tokenize "$MODEL" -p "</s>"
want=$(cat "$OUT")
straddle tokenize "$MODEL" -p "</s>" --special
check "--special makes it one" same "1 2" "$(cat "$OUT")"
check "else it is text" differ "1 2" "$want"
printf 'In the' >"$T/text"
INPUT=$T/text straddle tokenize "$MODEL" -f -
check "tokenize from stdin" same "1 305 2034 261" "$(cat "$OUT")"

# --- eval ---

straddle run -m "$MODEL" -c "$DEMO" -p "In the beginning God created" \
    --temp 0 -n 200 -q
cp "$OUT" "$T/text"
works "eval --text" eval -m "$MODEL" --ctx 64 --text "$T/text" $(sessions 2)
check "a line" prints \
    '^perplexity [0-9.]+ \+- [0-9.]+ \([0-9]+ chunks of 64 tokens'
want=$(cat "$OUT")
works "eval --text --json" eval -m "$MODEL" --ctx 64 --text "$T/text" --json
check "the same number" same "${want%% +-*}" "perplexity $("$PYTHON" -c \
    'import json, sys
print("%.4f" % json.load(open(sys.argv[1]))["perplexity"])' "$OUT")"
INPUT=$T/text straddle eval -m "$MODEL" --ctx 64 --text - --batch 7
check "the same from stdin, however cut" same "$want" "$(cat "$OUT")"
ppl() { sed -n 's/^perplexity \([0-9]*\)\..*/\1/p' "$OUT"; }
own=$(ppl)
"$PYTHON" -c 'import random, sys
words = sorted(set(open(sys.argv[1]).read().split())) * 40
random.seed(1)
random.shuffle(words)
print(" ".join(words[:300]))' "$T/text" >"$T/shuffled"
straddle eval -m "$MODEL" --ctx 64 --text "$T/shuffled"
check "its own text surprises the model less than shuffled words" \
    test "$own" -lt "$(ppl)"
straddle eval -m "$MODEL" --ctx 64 --stride 65 --text "$T/text"
check "a stride longer than the context" is_refusal 2 '65 .* context of 64'

# by_hand STRIDE: the perplexity of "$T/text" from logits of whole chunks: the
# second half of each, or its last STRIDE tokens.
by_hand()
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
	check "perplexity by hand, stride $stride" same "$(by_hand $stride)" \
	    "$(sed 's/(.*, \([0-9]* scored\))/\1/' "$OUT")"
done

straddle eval -m "$MODEL" --ctx 1024 --text "$T/text"
check "a text shorter than the context" exits 2
check "both numbers" says '[0-9]+ tokens.* 1024'

works "eval --ids" eval -m "$MODEL" --ids "1 305 2034" --logits "$T/a.f32"
check "rows x vocabulary x 4 bytes" same $((3 * 2048 * 4)) \
    "$(wc -c <"$T/a.f32")"
echo "1, 305
2034" >"$T/ids"
works "eval --ids-file" \
    eval -m "$MODEL" --ids-file "$T/ids" --logits "$T/b.f32"
check "is the same" cmp -s "$T/a.f32" "$T/b.f32"

# The likeliest token of the last row is the one that run makes.
best=$("$PYTHON" - "$T/a.f32" <<-'END'
	import array, sys
	a = array.array('f', open(sys.argv[1], 'rb').read())[-2048:]
	print(a.index(max(a)))
	END
)
straddle detokenize "$MODEL" "$best"
want=$(cat "$OUT")
straddle run -m "$MODEL" -p "In" --temp 0 -n 1 -q
check "run makes the likeliest token of eval" same "$want" \
    "$(sed 's/^ //' "$OUT")"

# --- bench, stress ---

# Slices of 2 ms: what is held here are shapes, not speeds.
bench() { local what=$1; shift; works "$what" bench --slice 2 "$@"; }

bench "bench --json" -m "$MODEL" -p 16 -n 8 -r 1 --json
check "it has the stable keys" has_keys bench
check "tests by name, cores by number, nothing of what was not asked" \
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
	    assert 0 < r['fraction'] < 100 and r['limit_tps'] > 0, r
	    assert r['fraction_of_share'] >= r['fraction'], r
	    # The prompt is bound by products, which no cache makes faster.
	    if r['test'] == 'pp16' and r['bound'] != 'read':
	        assert r['disturbed'] == (r['fraction'] > 1.1), r
	# A read of memory, and eight-bit products, whatever the machine.
	assert 0.01 < o['roofline']['read_gbs'][0] < 1000
	assert 0.01 < o['roofline']['int8_gops'][0] < 1e5
	END
core=$(cores | tail -n 1)
bench "bench of one core" -m "$MODEL" -s "cpu,cores=$core" -p 0 -n 4 -r 1 --json
check "the bound is that of the core" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	assert len(o['roofline']['read_gbs']) == 1
	assert [r['test'] for r in o['results']] == ['tg4'], o
	END
bench "bench at depths, several sequences, and loading" -m "$MODEL" \
    $(sessions 2) -p 0 -n 4 -r 2 -d 0,40 --parallel 1,3 --load --json
check "it has the stable keys, too" has_keys bench
check "a test for each, and the disk" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	r = {x['test']: x for x in o['results']}
	assert list(r) == ['tg4', 'tg4x3', 'tg4@d40', 'tg4x3@d40', 'load'], r
	assert o['roofline']['disk_gbs'] > 0
	assert r['load']['bound'] == 'disk' and r['load']['gbs'] > 0
	assert all(not x['disturbed'] for x in r.values() if x['fraction'] < 1)
	assert r['tg4@d40']['depth'] == 40 and r['tg4x3']['sequences'] == 3
	assert all(x['limit_tps'] > 0 for x in r.values() if x['tps']), r
	END
bench "bench --sweep" -m "$MODEL" -p 16 -n 4 -r 1 --sweep 1,2,50 --json
check "rows of sessions, shared and divided; why not" "$PYTHON" - "$OUT" <<-'END'
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
	        # Of one run all are its own.
	        assert close(r['fraction'], r['tps'] / r['limit_tps']), r
	assert all(r['relative'] == 1 for r in s[0]['results']), s[0]
	END
bench "bench" -m "$MODEL" -p 16 -n 8 -r 1 --load --sweep 1,2
check "the machine" prints '^int8, Gop/s +[0-9.]+ .* per cycle$'
check "speeds and fractions" \
    prints '^tg8 +[0-9.]+ \+- [0-9.]+ t/s, [0-9.]+ % of the [0-9.]+ that '
check "loading" prints '^load +[0-9.]+ \+- [0-9.]+ GB/s, .* that disk allows$'
check "a row of two sessions" prints '^2 +[0-9]+ +shared +[0-9.]+ '
refuses "a depth that --ctx does not hold" 2 'tests of 48 tokens do not fit into --ctx 40: give --ctx 48' \
    bench -m "$MODEL" --ctx 40 -p 0 -n 8 -d 40
refuses "a sweep of sessions that differ" 2 "--sweep is over sessions that are alike: cpu0 is on cpu, hexagon0 on hexagon" \
    bench -m "$MODEL" -s cpu -s hexagon --sweep 1,2
refuses "nothing to measure" 2 'nothing to measure' \
    bench -m "$MODEL" -p 0 -n 0
works "stress" stress -m "$MODEL" $(sessions 2 cpu,cap=64MiB) \
    --only 'kill -9 of all workers*'
check "says so" prints '^held +kill -9 of all workers at once '

e2e_end
