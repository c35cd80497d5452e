#!/bin/bash
# tests/e2e/render.sh - `straddle render`: the prompt that a chat template makes of
# variables; templates that fail, and hostile ones, end with their own words.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

cat >"$T/vars.json" <<'END'
{"messages": [{"role": "user", "content": "a <|im_end|> b"}],
 "add_generation_prompt": true, "now": "2026-07-31", "bos_token": "<s>"}
END
cat >"$T/t.jinja" <<'END'
{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor -%}
{{ strftime_now("%d %b %Y") }}{% if tools %}T{% endif %}
END

# renders TEMPLATE [OPTION...]: with the variables above.
renders()
{
	printf '%s' "$1" >"$T/hostile.jinja"
	shift
	straddle render --chat-template "$T/hostile.jinja" \
	    --vars "$T/vars.json" "$@"
}

# fails WORDS TEMPLATE
fails()
{
	renders "$2"
	check "fails: $1" is_refusal 1 "$1"
}

check_success "a file is a template" render --chat-template "$T/t.jinja" \
    --vars "$T/vars.json"
check "the text is exact" test "$(cat "$OUT")" = \
    '<s><|user|>a <|im_end|> b31 Jul 2026'
check "no line end is added" test "$(tail -c 1 "$OUT")" = 6
INPUT=$T/vars.json
check_success "variables may come from stdin" render \
    --chat-template "$T/t.jinja" --vars -
INPUT=/dev/null

check_success "spans" render --chat-template ChatML --vars "$T/vars.json" \
    --spans
e2e_need python3
check "spans tell the template from the input" python3 - "$OUT" <<'END'
import json, sys
spans = json.load(open(sys.argv[1]))["spans"]
assert spans == [
    {"by": "template", "text": "<|im_start|>user\n"},
    {"by": "input", "text": "a <|im_end|> b"},
    {"by": "template", "text": "<|im_end|>\n<|im_start|>assistant\n"}], spans
END

fails 'line 1, column 19: no such role' '{{ raise_exception("no such role") }}'
fails "line 1" '{% for %}'
fails "undefined" '{{ nothing.at_all }}'

# The confined reader may not read the time zone's file.
renders '{{ strftime_now("%Z%s%d") }}'
check "a date has no zone" test "$(cat "$OUT")" = 31

# Hostile: each ends at a limit, in the process that is confined.
fails "limit of" '{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}'
fails "limit of" '{{ "x" * 10 ** 9 }}'
fails "limit of" '{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}'
fails "limit of" "$(printf '{{ %0*d }}' 20000 0 | tr 0 '(')"
fails "limit of" '{% set ns = namespace(s="x") %}{% for a in range(99999) %}{% set ns.s = ns.s + ns.s %}{% endfor %}'
fails "Range too big" '{{ range(10 ** 9) | list }}'

# What is wrong with the call.
call=(render --chat-template)
check_refusal "a file that is not there" 2 none.jinja "${call[@]}" \
    "$T/none.jinja" --vars "$T/vars.json"
echo '[1]' >"$T/list.json"
check_refusal "variables that are no object" 2 "no JSON object" "${call[@]}" \
    ChatML --vars "$T/list.json"
printf '{\n"a": ' >"$T/bad.json"
check_refusal "variables that are no JSON" 2 'bad\.json:2' "${call[@]}" \
    ChatML --vars "$T/bad.json"
echo '{"messages": [], "now": "tomorrow"}' >"$T/now.json"
check_refusal "a date that is none" 2 'now is "tomorrow"' "${call[@]}" \
    ChatML --vars "$T/now.json"
echo '{"messages": [], "now": "2026-02-31"}' >"$T/now.json"
check_refusal "a day that is none" 2 'now is "2026-02-31"' "${call[@]}" \
    ChatML --vars "$T/now.json"
echo '{"messages": [], "now": "2023-02-29"}' >"$T/now.json"
check_refusal "a leap day of another year" 2 'now is "2023-02-29"' \
    "${call[@]}" ChatML --vars "$T/now.json"
echo '{"messages": [], "now": "2024-02-29"}' >"$T/now.json"
printf '%s' '{{ strftime_now("%d %m %Y") }}' >"$T/now.jinja"
check_success "a leap day" "${call[@]}" "$T/now.jinja" --vars "$T/now.json"
check "a leap day is taken" test "$(cat "$OUT")" = "29 02 2024"

# A model's own template, and its tokens.
straddle render -m "$MODEL" --vars "$T/vars.json"
check "a model without a template: plain" test "$(cat "$OUT")" = \
    'a <|im_end|> b'

# True renderings of many templates, where they are.
SHARED=${SHARED:-$TESTS/../../shared}
if [ -d "$SHARED/templates" ]; then
	check "every case of shared/templates" python3 \
	    "$SHARED/tools/tmplconform.py" --straddle "$BIN"
fi
e2e_end
