#!/bin/bash
# tests/e2e/completion.sh - the completion scripts of bash and zsh, as the shells
# use them.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

check_success "help completion bash" help completion bash
cp "$OUT" "$T/straddle.bash"
check_success "help completion zsh" help completion zsh
cp "$OUT" "$T/_straddle"
check_refusal "help completion without a shell" 2 'name the shell: bash or zsh' \
    help completion
check_refusal "help completion of another shell" 2 'bash or zsh' \
    help completion fish

check "zsh proposes options again that may be repeated" \
    equal 2 "$(sed -n '/^\trun)/,/;;/p' "$T/_straddle" |
    grep -cE "^\s+'\*(-s|--stop)\[")"
check "bash accepts its script" bash -n "$T/straddle.bash"
# complete_words WORD...: print what bash proposes for the last word, sorted.
cat >"$T/complete.bash" <<'END'
source "$1"
shift
complete -p straddle >/dev/null || exit 1
COMP_WORDS=(straddle "$@") COMP_CWORD=$#
_straddle
printf '%s\n' "${COMPREPLY[@]}" | sort
END
complete_words()
{
	(cd "$T/files" && bash "$T/complete.bash" "$T/straddle.bash" "$@") |
	    tr '\n' ' ' | sed 's/ $//'
}
mkdir -p "$T/files/sub"
touch "$T/files/a.gguf" "$T/files/with blank.gguf" "$T/files/x.conf" \
    "$T/files/text.txt"

check "commands are completed" \
    equal "detokenize devices" "$(complete_words de)"
check "the first word is a command" \
    equal "bench" "$(complete_words b)"
check "an option is completed" equal "--prompts" "$(complete_words run --prom)"
check "options of other commands are not proposed" \
    is_blank "$(complete_words plan --prom)"
check "common options are proposed for every command" \
    equal "--kv-type --kv-type-k --kv-type-v" "$(complete_words eval --kv)"
check "a KV type is completed" \
    equal "f16 f32 q8_0" "$(complete_words run --kv-type '')"
check "a value after an equals sign is completed" \
    equal "q8_0" "$(complete_words run --kv-type = q)"
check "a model is a .gguf file, or in a folder" \
    equal "a.gguf sub with blank.gguf" "$(complete_words run -m '')"
check "an operand is a model" \
    equal "a.gguf" "$(complete_words inspect a)"
check "a config file ends in .conf" equal "x.conf" "$(complete_words run -c x)"
check "a prompt's file may be any file" \
    equal "text.txt" "$(complete_words run -f te)"
check "a device is completed" equal "hexagon" "$(complete_words run -s h)"
check "a number has no proposals" is_blank "$(complete_words run -n '')"
check "help completes commands" equal "quantize" "$(complete_words help q)"
check "help completion completes shells" \
    equal "bash zsh" "$(complete_words help completion '')"

# Every long option of every command's help can be completed.
for command in run chat plan bench quantize; do
	straddle help $command
	missing=
	for option in $(grep -oE '^  (-[a-z], )?--[a-z-]+' "$OUT" |
	    grep -oE -e '--[a-z-]+'); do
		complete_words $command "$option" | grep -qe "$option" ||
		    missing="$missing $option"
	done
	check "the script has every option of $command, not:$missing" \
	    is_blank "$missing"
done

if command -v zsh >/dev/null; then
	check "zsh accepts its script" zsh -n "$T/_straddle"
	cat >"$T/complete.zsh" <<-'END'
		autoload -Uz compinit && compinit -u -D
		fpath=($1 $fpath)
		autoload -Uz _straddle && whence -w _straddle
	END
	run_any zsh -f "$T/complete.zsh" "$T"
	check "zsh loads its script" stdout_has '^_straddle: function$'
else
	echo "skipped: zsh is not installed: its script is not tried"
fi
e2e_end
