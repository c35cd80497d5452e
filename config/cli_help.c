/* config/cli_help.c - the help of every command.
 *
 * Only the prose is here: what a command does, and examples.  The lines about
 * options come from the rows of options.c. */
#include "options.h"

#include <string.h>
#include <bsd/string.h>

#define NO_SESSIONS							\
"This command starts no session: of the common options, only -c, -m, -v and\n" \
"-q have an effect.\n"

static const char overview[] =
"Straddle runs one GGUF language model split over several memory-capped\n"
"worker processes.\n"
"\n"
"usage: straddle COMMAND [options]\n"
"\n"
"  run         generate text\n"
"  chat        talk with a model, line by line\n"
"  plan        show the split and the memory table, start nothing\n"
"  inspect     show the contents of a model file\n"
"  devices     show which devices are usable here, and why others are not\n"
"  explain     show where every operation runs, with reasons\n"
"  tokenize    turn text into token ids\n"
"  detokenize  turn token ids into text\n"
"  render      show the prompt that a chat template makes\n"
"  eval        logits of given tokens, or the perplexity of a text\n"
"  bench       measure speed, compared with the machine's own limits\n"
"  stress      push caps and inject faults, report what held\n"
"  quantize    convert a model file to another weight type\n"
"  help [CMD]  print this text, or a command's options; help options: those\n"
"              that every command takes; help completion bash|zsh: a script\n"
"  --version   print the version\n"
"\n"
"Text and results go to stdout, everything else to stderr.\n"
"Exit status: 0 done, 1 failed while running, 2 bad usage or config,\n"
"3 cannot fit under the caps, 4 bad model file.\n"
"\n"
"Examples:\n"
"  straddle run -m model.gguf -p \"Once upon a time\"\n"
"  straddle run -m model.gguf -s cpu,cores=0-3,cap=2GiB \\\n"
"      -s cpu,cores=4-7,cap=2GiB -p \"Once upon a time\"\n"
"  straddle plan -c board.conf\n";

/* One command's prose; every text ends its last line. */
static const struct help {
	const char *usage;	/* after "usage: straddle " */
	const char *about;
	const char *note;	/* after the common options, or NULL */
	const char *examples;
} helps[] = {
[CMD_RUN] = {
.usage = "run [options] [MODEL] -p TEXT | -f FILE | --prompts FILE\n",
.about =
"Generates text and prints it token by token, without the prompt. Ends with\n"
"the memory table and a line of speeds, on stderr. When interrupted (Ctrl-C),\n"
"it keeps the text so far and exits with status 1.\n",
.note =
"With -q: no table, no line of speeds, and no times in JSON lines.\n",
.examples =
"Examples:\n"
"  straddle run -m model.gguf -p \"The sea is\" -n 64 --temp 0\n"
"  straddle run -m model.gguf -s '2*cpu,cap=2GiB' -p \"The sea is\"\n"
"  straddle run -c board.conf --prompts questions.txt --parallel 8\n"
"  cat letter.txt | straddle run model.gguf --seed 7\n",
},
[CMD_CHAT] = {
.usage = "chat [options] [MODEL]\n",
.about =
"Talks with a model: each line of stdin is a message, the answer goes to\n"
"stdout. A line that ends in \\ goes on in the next; lines between \"\"\" and\n"
"\"\"\" are one message. On a terminal, lines can be edited and recalled, a\n"
"pasted text is one message, and Ctrl-C stops the answer, or clears the line.\n"
"Each turn computes only its new tokens, and what the model's own template,\n"
"which writes the conversation, changes of earlier ones. Without a template,\n"
"messages are sent as they are.\n"
"\n"
"  /reset            forget the conversation\n"
"  /undo             take back the last turn\n"
"  /drop [N]         forget the oldest N turns (default 1)\n"
"  /prefill TEXT     begin the next answer with TEXT, which the model continues\n"
"  /save FILE        write the conversation as JSON; /save! replaces a file\n"
"  /load FILE        go on with a conversation that /save wrote\n"
"  /stats            tokens, speeds, and how full the context is\n"
"  /help             list these; start a message that begins with / with //\n"
"  /quit             quit; so do /bye, /exit, Ctrl-D and Ctrl-C twice\n",
.note =
"The exit status is 1 when a message had no answer, or a /save failed.\n",
.examples =
"Examples:\n"
"  straddle chat -m model.gguf --system \"Answer in one sentence.\"\n"
"  straddle chat -c board.conf -q <questions.txt >answers.txt\n",
},
[CMD_PLAN] = {
.usage = "plan [options] [MODEL]\n",
.about =
"Shows which session holds which layers and every byte it will need; starts\n"
"no session. If the model does not fit, the exit status is 3 and the shortfall\n"
"is printed in bytes.\n",
.examples =
"Examples:\n"
"  straddle plan -m model.gguf -s cpu,cap=2GiB -s cpu,cap=2GiB --ctx 8192\n"
"  straddle plan -m model.gguf --fit -s cpu,cap=3.5GiB\n"
"  straddle plan -c board.conf --check\n",
},
[CMD_INSPECT] = {
.usage = "inspect [options] MODEL\n",
.about =
"Shows a model file's header, hyper-parameters, and tensors by type and\n"
"bytes. The model is the operand, or comes from -m or the config file.\n",
.note = NO_SESSIONS,
.examples =
"Example:\n"
"  straddle inspect model.gguf\n",
},
[CMD_DEVICES] = {
.usage = "devices [options]\n",
.about =
"Shows each kind of device: found or not and why, its limits and how they\n"
"are known, and which operations it supports for which types. With --verify,\n"
"also whether its results are right, and what was tried earlier is tried anew.\n",
.note =
"This command opens no model and starts no session: of the common options,\n"
"only -v, -q, --user and --coordinator-cap have an effect.\n",
.examples =
"Example:\n"
"  straddle devices --json\n"
"  straddle devices --verify\n",
},
[CMD_EXPLAIN] = {
.usage = "explain [options] [MODEL]\n",
.about =
"Shows where every operation of every layer runs, the reason when that is not\n"
"where it was requested, and each thread's share of it (rows or columns).\n"
"A | before an operation marks a barrier of all threads. Equal layers are\n"
"printed once; with -v each of them.\n",
.examples =
"Example:\n"
"  straddle explain -m model.gguf -s cpu,cap=2GiB -s null\n",
},
[CMD_TOKENIZE] = {
.usage = "tokenize [options] [MODEL] -p TEXT | -f FILE\n",
.about =
"Prints the token ids of a text on one line, separated by spaces. The model\n"
"is the operand, or comes from -m or the config file; only its vocabulary is\n"
"needed.\n",
.note = NO_SESSIONS,
.examples =
"Examples:\n"
"  straddle tokenize model.gguf -p \"Once upon a time\"\n"
"  straddle tokenize -m model.gguf -f letter.txt --pieces\n",
},
[CMD_DETOKENIZE] = {
.usage = "detokenize [options] [MODEL] ID... | -p IDS | -f FILE\n",
.about =
"Prints the text of token ids. The model is the first operand if that is not\n"
"a number, or comes from -m or the config file.\n",
.note = NO_SESSIONS,
.examples =
"Examples:\n"
"  straddle detokenize model.gguf 1 9038 2501\n"
"  straddle tokenize model.gguf -f a.txt | straddle detokenize model.gguf -f -\n",
},
[CMD_RENDER] = {
.usage = "render [options] [MODEL] --vars FILE\n",
.about =
"Shows the prompt that a chat template makes of the variables in a file, to the\n"
"byte, with nothing added: messages, tools, add_generation_prompt and others.\n"
"The template is the model's own, or that of --chat-template, which needs no\n"
"model. bos_token and eos_token are the model's where the file has none; now is\n"
"the date that the template is told (\"2026-07-31\"; default: today). A template\n"
"that fails ends the command with status 1 and its own words.\n",
.note = NO_SESSIONS,
.examples =
"Examples:\n"
"  straddle render model.gguf --vars conversation.json\n"
"  straddle render --chat-template chatml.jinja --vars conversation.json --spans\n",
},
[CMD_EVAL] = {
.usage =
"eval [options] [MODEL] --ids IDS | --ids-file FILE\n"
"           --logits OUT.f32\n"
"       straddle eval [options] [MODEL] --text FILE\n",
.about =
"Runs given tokens through the model. With ids, it writes the logits of every\n"
"position, rows x vocabulary, as little-endian 32-bit floats. With a text, it\n"
"prints the perplexity and its standard error, over chunks as long as the\n"
"context (--ctx), of which the second half is scored, as is usual.\n",
.examples =
"Examples:\n"
"  straddle eval -m model.gguf --ids \"1 9038 2501\" --logits out.f32\n"
"  straddle eval -c board.conf --text book.txt\n",
},
[CMD_BENCH] = {
.usage = "bench [options] [MODEL]\n",
.about =
"Measures prompt and generation speed, mean and standard deviation,\n"
"against the roofline of the sessions' cores: memory reads and products of\n"
"8-bit integers, bfloat16 and 32-bit floats, measured by tight loops in slices\n"
"between the runs. Each result is also given as a fraction of its tightest\n"
"bound, or with the reason why the bound does not hold. Test names say what is\n"
"measured: pp512 (a prompt of 512 tokens), tg128 (generating 128),\n"
"tg128x4@d2048 (four sequences at once, each after 2048 tokens), load.\n",
.note =
"Without --ctx, the context is as long as the tests need.\n",
.examples =
"Examples:\n"
"  straddle bench -m model.gguf -p 512 -n 128 -r 5\n"
"  straddle bench -m model.gguf -p 0 -n 32 --parallel 1,2,4,8 -d 0,2048\n"
"  straddle bench -m model.gguf --sweep 1,2,4,8 --load\n",
},
[CMD_STRESS] = {
.usage = "stress [options] [MODEL]\n",
.about =
"Pushes the caps and injects faults, each case for real with the given\n"
"config, and reports what held: memory up to the cap and beyond it, workers\n"
"killed or hanging, failing disks, overwritten rings. Where a worker is lost,\n"
"logits are compared with those of an undisturbed run. A case that cannot run\n"
"here is skipped, with the reason. The exit status is 1 when a case did not\n"
"hold. The limit of --recover does not apply.\n",
.examples =
"Examples:\n"
"  straddle stress -c board.conf\n"
"  straddle stress -c board.conf --only 'kill -9*'\n"
"  straddle stress -c board.conf --soak 3600\n",
},
[CMD_QUANTIZE] = {
.usage = "quantize [options] IN OUT TYPE\n",
.about =
"Writes the model file OUT: IN with its matrices converted to TYPE, one of\n"
"Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4, Q4_K, Q5_K, Q6_K, F16, BF16 and\n"
"F32. Prints each tensor's types, its bytes, and the relative root mean square\n"
"error of its weights. Metadata and the order of tensors stay. Norms, vectors,\n"
"expert routers, and tensors that are not weights keep their type. The output\n"
"head (output.weight, or the embedding where it is also the head) gets Q6_K if\n"
"TYPE is Q4_K or Q5_K. If the model is split, IN is its first part; OUT is one\n"
"file. OUT gets its name when it is complete; a file of that name is only\n"
"replaced with --force, or if it is a conversion of what IN was before.\n",
.note =
"This command starts no session: of the common options, only -m (IN, which is\n"
"then not an operand), -v and -q (print only the last line) have an effect.\n",
.examples =
"Examples:\n"
"  straddle quantize model-f16.gguf model-q4_0.gguf Q4_0\n"
"  straddle quantize model-bf16.gguf model-q4_k.gguf Q4_K --head Q8_0\n",
},
};

static const char common_hint[] =
"\nCommon options, -m, -c, -s, -t, --ctx and more: straddle help options\n\n";

/* Options that every command takes, and what is allowed beside them. */
static const char *
build_common(char *text, size_t len)
{
	strlcpy(text, "usage: straddle COMMAND [options]\n\n"
	    "Options of every command. They override the config file, which "
	    "overrides\ndefaults.\n\n", len);
	options_help(CMD_RUN, 1, text, len);
	strlcat(text, "\nMost names that llama.cpp gives to these and to a "
	    "command's own options work\ntoo: --model, --ctx-size, -c 512, "
	    "--n-predict. A long option may be shortened\nwhile it is unique."
	    "\n\nExamples:\n"
	    "  straddle plan -m model.gguf -s cpu,cap=2GiB -s cpu,cap=2GiB\n"
	    "  straddle run -c board.conf --ctx 8192 -t 4 -p \"The sea is\"\n",
	    len);
	return text;
}

static const char *
build_help(enum command cmd)
{
	static char text[16 << 10];
	const struct help *h = &helps[cmd];

	if (cmd == CMD_NONE)
		return build_common(text, sizeof(text));

	strlcpy(text, "usage: straddle ", sizeof(text));
	strlcat(text, h->usage, sizeof(text));
	strlcat(text, "\n", sizeof(text));
	strlcat(text, h->about, sizeof(text));
	strlcat(text, "\n", sizeof(text));
	options_help(cmd, 0, text, sizeof(text));
	strlcat(text, common_hint, sizeof(text));
	if (h->note != NULL) {
		strlcat(text, h->note, sizeof(text));
		strlcat(text, "\n", sizeof(text));
	}
	strlcat(text, h->examples, sizeof(text));
	return text;
}

const char *
cli_help(const char *topic)
{
	enum command cmd;

	if (topic == NULL || strcmp(topic, command_name(CMD_HELP)) == 0)
		return overview;
	if (strcmp(topic, "options") == 0)
		return build_help(CMD_NONE);
	for (cmd = 0; cmd < NITEMS(helps); cmd++)
		if (helps[cmd].usage != NULL &&
		    strcmp(topic, command_name(cmd)) == 0)
			return build_help(cmd);
	return NULL;
}
