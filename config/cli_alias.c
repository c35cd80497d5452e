/* config/cli_alias.c - options of other programs, most of them llama.cpp's: our
 * name for each, or why it has no effect or can not be had. */
#include "cli.h"

#include <string.h>

#define SAME(word, ours)	{ word, ALIAS_SAME, ours, 0, NULL }
#define IDLE(word, takes, why)	{ word, ALIAS_IDLE, NULL, takes, why }
#define REFUSED(word, why)	{ word, ALIAS_REFUSED, NULL, 0, why }

/* Pointers, so that the reason of several options is noted once. */
static const char layers_by_cap[] =
    "the plan places layers by the sessions' caps: -s DEVICE,cap=SIZE";
static const char not_mapped[] = "weights are read into memory, not mapped";
static const char tiled[] = "attention always works in tiles";
static const char one_number[] =
    "a session uses the same threads for prompts and for generation";
static const char kv_beside[] =
    "keys and values are kept by the session that has their layer";
static const char repacked[] = "weights are always repacked for the kernels";
static const char uncoloured[] = "nothing is coloured";
static const char no_download[] = "nothing is downloaded here: get a .gguf "
    "file from the model's page (huggingface.co/REPO, \"Files\") and give "
    "-m FILE.gguf";
static const char chat_is[] = "a conversation is the command chat";
static const char first_word[] =
    "a session begins with its device: -s cpu,... or -s hexagon,...";

static const struct alias aliases[] = {
	SAME("--model", "-m"),
	SAME("--config", "-c"),
	SAME("--session", "-s"),
	SAME("--ctx-size", "--ctx"),
	SAME("--context", "--ctx"),
	SAME("--n-ctx", "--ctx"),
	SAME("--prompt", "-p"),
	SAME("--n-prompt", "-p"),
	SAME("--file", "-f"),
	SAME("--n-predict", "-n"),
	SAME("--predict", "-n"),
	SAME("--max-tokens", "-n"),
	SAME("--n-gen", "-n"),
	SAME("--n-depth", "--depth"),
	SAME("--repetitions", "-r"),
	SAME("-b", "--batch"),
	SAME("--batch-size", "--batch"),
	SAME("-ctk", "--kv-type-k"),
	SAME("--cache-type-k", "--kv-type-k"),
	SAME("-ctv", "--kv-type-v"),
	SAME("--cache-type-v", "--kv-type-v"),
	SAME("--cache-type", "--kv-type"),
	SAME("--temperature", "--temp"),
	SAME("--repetition-penalty", "--repeat-penalty"),
	SAME("-np", "--parallel"),
	SAME("--n-parallel", "--parallel"),
	SAME("-sys", "--system"),
	SAME("--system-prompt", "--system"),
	SAME("-sp", "--special"),
	SAME("-st", "--chat"),
	SAME("--single-turn", "--chat"),
	SAME("-r", "--stop"),
	SAME("--reverse-prompt", "--stop"),
	SAME("--n-threads", "--threads"),
	SAME("--verbose", "-v"),
	SAME("--log-verbose", "-v"),
	SAME("--quiet", "-q"),
	SAME("--log-disable", "-q"),
	SAME("--usage", "-h"),
	SAME("-f", "--text"),
	SAME("--file", "--text"),
	SAME("--output-tensor-type", "--head"),
	SAME("--ppl-stride", "--stride"),

	IDLE("-ngl", 1, layers_by_cap),
	IDLE("--n-gpu-layers", 1, layers_by_cap),
	IDLE("--gpu-layers", 1, layers_by_cap),
	IDLE("-sm", 1, layers_by_cap),
	IDLE("--split-mode", 1, layers_by_cap),
	IDLE("-ts", 1, layers_by_cap),
	IDLE("--tensor-split", 1, layers_by_cap),
	IDLE("-mg", 1, layers_by_cap),
	IDLE("--main-gpu", 1, layers_by_cap),
	IDLE("-ot", 1, layers_by_cap),
	IDLE("--override-tensor", 1, layers_by_cap),
	IDLE("-cmoe", 0, layers_by_cap),
	IDLE("--cpu-moe", 0, layers_by_cap),
	IDLE("-ncmoe", 1, layers_by_cap),
	IDLE("--n-cpu-moe", 1, layers_by_cap),
	IDLE("-nkvo", 0, kv_beside),
	IDLE("--no-kv-offload", 0, kv_beside),
	IDLE("--mlock", 0, "memory is not locked; a cap in a group leaves no "
	    "room in swap"),
	IDLE("--no-mmap", 0, not_mapped),
	IDLE("--mmap", 0, not_mapped),
	IDLE("-fa", 2, tiled),
	IDLE("--flash-attn", 2, tiled),
	IDLE("-tb", 1, one_number),
	IDLE("--threads-batch", 1, one_number),
	IDLE("-ub", 1, "a batch is not divided: --batch is its size"),
	IDLE("--ubatch-size", 1, "a batch is not divided: --batch is its size"),
	IDLE("--no-warmup", 0, "there is no warm-up"),
	IDLE("--poll", 1, "threads wait for work as their cores allow"),
	IDLE("-nr", 0, repacked),
	IDLE("--no-repack", 0, repacked),
	IDLE("--repack", 0, repacked),
	IDLE("--offline", 0, "nothing is downloaded"),
	IDLE("--jinja", 0, "chat templates are always run"),
	SAME("--chat-template-file", "--chat-template"),
	IDLE("--no-context-shift", 0, "the context is not shifted unasked"),
	IDLE("--allow-requantize", 0, "every type is converted"),
	IDLE("--no-display-prompt", 0, "the prompt is never printed"),
	IDLE("--no-escape", 0, "escapes are never processed"),
	IDLE("--simple-io", 0, "only a terminal gets a line editor"),
	IDLE("-co", 2, uncoloured),
	IDLE("--color", 2, uncoloured),

	REFUSED("-e", "escapes are not processed: in a shell, -p $'a\\nb'"),
	REFUSED("--escape", "escapes are not processed: in a shell, "
	    "-p $'a\\nb'"),
	REFUSED("--pure", "write --head TYPE"),
	REFUSED("--leave-output-tensor", "write --head TYPE"),
	REFUSED("-o", "write --json"),
	REFUSED("--output", "write --json"),
	REFUSED("-dev", first_word),
	REFUSED("--device", first_word),
	REFUSED("--numa", "a session has a NUMA node: -s cpu,node=N"),
	REFUSED("--prio", "a session has a priority: -s cpu,priority=nice:N"),
	REFUSED("-hf", no_download),
	REFUSED("-hfr", no_download),
	REFUSED("--hf-repo", no_download),
	REFUSED("-hff", no_download),
	REFUSED("--hf-file", no_download),
	REFUSED("-mu", no_download),
	REFUSED("--model-url", no_download),
	REFUSED("-sysf", "write --system \"$(cat FILE)\""),
	REFUSED("--system-prompt-file", "write --system \"$(cat FILE)\""),
};

/* In a conversation these ask for what chat is; elsewhere for the command. */
static const struct alias in_chat[] = {
	IDLE("-cnv", 0, chat_is),
	IDLE("--conversation", 0, chat_is),
	IDLE("-i", 0, chat_is),
	IDLE("--interactive", 0, chat_is),
};
static const struct alias elsewhere[] = {
	REFUSED("-cnv", chat_is),
	REFUSED("--conversation", chat_is),
	REFUSED("-i", chat_is),
	REFUSED("--interactive", chat_is),
	IDLE("-no-cnv", 0, chat_is),
	IDLE("--no-conversation", 0, chat_is),
};

/* The row of a word; of several, one with an option that cmd takes. */
static const struct alias *
find(enum command cmd, const struct alias *a, size_t n, const char *typed)
{
	const struct alias *found = NULL;

	for (; n-- > 0; a++) {
		if (strcmp(a->typed, typed) != 0)
			continue;
		if (a->kind != ALIAS_SAME || option_find(cmd, a->meant) != NULL)
			return a;
		found = a;
	}
	return found;
}

const struct alias *
alias_find(enum command cmd, const char *typed)
{
	const struct alias *a = cmd == CMD_CHAT ?
	    find(cmd, in_chat, NITEMS(in_chat), typed) :
	    find(cmd, elsewhere, NITEMS(elsewhere), typed);

	return a != NULL ? a : find(cmd, aliases, NITEMS(aliases), typed);
}

const struct setting *
option_find(enum command cmd, const char *name)
{
	const struct setting *s;
	unsigned i;

	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (!option_is_taken(s, cmd))
			continue;
		if (s->option != NULL && strncmp(name, "--", 2) == 0 &&
		    strcmp(name + 2, s->option) == 0)
			return s;
		if (s->letter != 0 && name[1] == s->letter && name[2] == '\0')
			return s;
	}
	return NULL;
}
