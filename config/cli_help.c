/* config/cli_help.c - the help of every command, as one text each.
 * tests/unit/conf.c holds each text against the option table of cli.c. */
#include "conf.h"

#include <string.h>

#define COMMON								\
"Common options (every command takes them; flags lie over the file, the\n" \
"file over the defaults):\n"						\
"  -c FILE           read settings from a config file (straddle.conf(5))\n" \
"  -m MODEL          the GGUF model file\n"				\
"  -s SPEC           one session, repeatable; replaces the file's sessions:\n" \
"                    [NAME=]DEVICE[,cores=LIST][,node=N][,cap=SIZE]\n"	\
"                    [,threads=N][,priority=default|nice:N|fifo:N]\n"	\
"                    [,port=emulated|fastrpc][,domain=SIZE] (hexagon)\n"	\
"                    4*DEVICE,... makes four equal ones; DEVICE is cpu,\n" \
"                    hexagon, or null (for tests)\n"			\
"                    LIST is 0-3,6 or big or little; SIZE is 3.5GiB, 512MiB\n" \
"  --ctx N           context in tokens, 1 to 16777216 (default: the smaller\n" \
"                    of the trained context and 4096)\n"		\
"  --batch N         rows that travel together, 1 to 4096 (default 128)\n" \
"  --kv-type TYPE    keys and values in f16 (default), q8_0 or f32\n"	\
"  --kv-type-k TYPE  keys alone; of these three the later holds\n"	\
"  --kv-type-v TYPE  values alone\n"					\
"  --half-layers     cut inside layers, too: between attention and\n"	\
"                    feed-forward network\n"				\
"  --strict          an operation that falls back to the CPU is an error\n" \
"  --recover N       lost workers that a run survives, 0 to 1000000 (default\n" \
"                    16): restarted, reloaded, and what they held computed\n" \
"                    anew; bench survives none\n"			\
"  -v                say more; -q says less (the later one holds)\n"	\
"  -h, --help        this text\n"

#define NO_SESSIONS							\
"This command starts no session: of the common options only -c, -m, -v and\n" \
"-q change what it does.\n"

static const char overview[] =
"Straddle runs one GGUF language model split over several memory-capped\n"
"worker processes.\n"
"\n"
"usage: straddle COMMAND [options]\n"
"\n"
"  run         generate text\n"
"  chat        talk with a model, line by line\n"
"  plan        show the split and the memory table, start nothing\n"
"  inspect     show what is in a model file\n"
"  devices     show what can compute here, and why the rest can not\n"
"  explain     show where every operation runs, with reasons\n"
"  tokenize    text to token ids\n"
"  detokenize  token ids to text\n"
"  eval        logits of given tokens, or the perplexity of a text\n"
"  bench       measure speed beside what the machine could do\n"
"  stress      push caps and faults, report what held\n"
"  quantize    make a model file of another type\n"
"  help [CMD]  this text, or the options of a command\n"
"  --version   the version\n"
"\n"
"Text and results go to stdout, everything else to stderr.\n"
"Exit status: 0 done, 1 failed while running, 2 bad usage or config,\n"
"3 can not fit under the caps, 4 bad model file.\n"
"\n"
"Examples:\n"
"  straddle run -m model.gguf -p \"Once upon a time\"\n"
"  straddle run -m model.gguf -s cpu,cores=0-3,cap=2GiB \\\n"
"      -s cpu,cores=4-7,cap=2GiB -p \"Once upon a time\"\n"
"  straddle plan -c board.conf\n";

static const char help_run[] =
"usage: straddle run [options] -p TEXT | -f FILE | --prompts FILE\n"
"\n"
"Generates text and prints it as it is made, without the prompt before it;\n"
"ends with the memory table and a line of speeds, on stderr. Interrupted\n"
"(Ctrl-C), it keeps the text so far and exits with status 1.\n"
"\n"
"  -p TEXT           the prompt\n"
"  -f FILE           the prompt is in FILE; - is stdin\n"
"  --prompts FILE    one prompt a line (an empty line is one, too); results\n"
"                    as JSON lines, in order; a line that fails says so, the\n"
"                    others go on, and the exit status is 1\n"
"  --parallel N      so many of them at once, 1 to 256 (default 1), each with\n"
"                    a context of its own: same texts, sooner\n"
"  -n N              tokens to generate (default 128); -1: until the end\n"
"  --temp X          temperature, 0 to 100 (default 0.8); 0: greedy\n"
"  --top-k N         keep the N likeliest tokens (default 40); 0: off\n"
"  --top-p X         keep the likeliest that make up X (default 0.95); 1: off\n"
"  --min-p X         drop what is below X times the best (default 0.05);\n"
"                    0: off\n"
"  --repeat-penalty X  make repeated tokens less likely, 0.01 to 100\n"
"                    (default 1: off)\n"
"  --repeat-last-n N   how far back that looks (default 64)\n"
"  --seed N          makes the choices repeatable (default: drawn, printed);\n"
"                    with --prompts each line has its own, made from this\n"
"                    and its place, and tells it\n"
"  --chat            the prompt is a user's message: it goes in the form that\n"
"                    the model's own chat template asks for, as in chat\n"
"  --system TEXT     with --chat: what the model is told first\n"
"  --special         control tokens written in the prompt count as such\n"
"  --ignore-eos      go on behind the end of the text\n"
"  --json            one JSON object instead of text and table\n"
"\n"
COMMON
"  With -q: no table, no speed line, and no times in JSON lines.\n"
"\n"
"Examples:\n"
"  straddle run -m model.gguf -p \"The sea is\" -n 64 --temp 0\n"
"  straddle run -m model.gguf -s '2*cpu,cap=2GiB' -p \"The sea is\"\n"
"  straddle run -c board.conf --prompts questions.txt --parallel 8\n"
"  cat letter.txt | straddle run -m model.gguf -f - --seed 7\n";

static const char help_chat[] =
"usage: straddle chat [options]\n"
"\n"
"Talks with a model: each line of stdin is a message, the answer goes to\n"
"stdout. On a terminal lines can be edited and called back, and Ctrl-C ends\n"
"the answer; elsewhere lines are read as they are. Of each turn only the new\n"
"tokens are computed. The form is recognised from the model's own template\n"
"(ChatML, Llama 2, Llama 3, Mistral, Gemma, Phi-3, gpt-oss); without one, or\n"
"with another, messages go in as they are, and that is said.\n"
"\n"
"  /reset            forget everything said so far\n"
"  /save FILE        write what was said, as JSON\n"
"  /stats            tokens, speeds, what the context holds\n"
"  /help             these; a message that begins with / is written //\n"
"  /quit             the end; so is Ctrl-D\n"
"\n"
"  --system TEXT     what the model is told first\n"
"  -n N              tokens of an answer (default -1: until its end)\n"
"  --temp X          temperature, 0 to 100 (default 0.8); 0: greedy\n"
"  --top-k N         keep the N likeliest tokens (default 40); 0: off\n"
"  --top-p X         keep the likeliest that make up X (default 0.95); 1: off\n"
"  --min-p X         drop what is below X times the best (default 0.05);\n"
"                    0: off\n"
"  --repeat-penalty X  make repeated tokens less likely, 0.01 to 100\n"
"                    (default 1: off)\n"
"  --repeat-last-n N   how far back that looks (default 64)\n"
"  --seed N          makes the choices repeatable (default: drawn, printed)\n"
"  --special         control tokens written in messages count as such\n"
"  --ignore-eos      go on behind the end of an answer\n"
"\n"
COMMON
"  Exit status 1 when a message had no answer.\n"
"\n"
"Examples:\n"
"  straddle chat -m model.gguf --system \"Answer in one sentence.\"\n"
"  straddle chat -c board.conf -q <questions.txt >answers.txt\n";

static const char help_plan[] =
"usage: straddle plan [options]\n"
"\n"
"Shows which session holds which layers and every byte it will need; starts\n"
"no session. Exit 3 and the shortfall in bytes when it can not fit.\n"
"\n"
"  --check           only check the config, and print what was understood\n"
"  --fit             choose what fits, and say why: with one session, the\n"
"                    fewest like it; with several, the largest batch, KV\n"
"                    type or context that they hold\n"
"  --parallel N      plan for so many sequences at once, 1 to 256\n"
"                    (default 1)\n"
"  --json            the same as one JSON object\n"
"\n"
COMMON
"\n"
"Examples:\n"
"  straddle plan -m model.gguf -s cpu,cap=2GiB -s cpu,cap=2GiB --ctx 8192\n"
"  straddle plan -m model.gguf --fit -s cpu,cap=3.5GiB\n"
"  straddle plan -c board.conf --check\n";

static const char help_inspect[] =
"usage: straddle inspect [options] MODEL\n"
"\n"
"Shows a model file's header, hyper-parameters, and tensors by type and\n"
"bytes. The model is the operand, or comes from -m or the file of -c.\n"
"\n"
"  --json            the same as one JSON object\n"
"\n"
COMMON
NO_SESSIONS
"\n"
"Example:\n"
"  straddle inspect model.gguf\n";

static const char help_devices[] =
"usage: straddle devices [options]\n"
"\n"
"Shows each kind of device: found or not and why, its limits and how they\n"
"are known, and which operations it has for which types.\n"
"\n"
"  --json            the same as one JSON object\n"
"\n"
COMMON
"This command opens no model and starts no session: of the common options\n"
"only -v and -q change what it does.\n"
"\n"
"Example:\n"
"  straddle devices --json\n";

static const char help_explain[] =
"usage: straddle explain [options]\n"
"\n"
"Shows for every operation of every layer where it runs, and the reason when\n"
"that is not where it was asked to; what each thread of a session does of it\n"
"(rows, columns), with | before an operation that all threads meet for.\n"
"\n"
"  --json            the same as one JSON object\n"
"\n"
COMMON
"\n"
"Example:\n"
"  straddle explain -m model.gguf -s cpu,cap=2GiB -s null\n";

static const char help_tokenize[] =
"usage: straddle tokenize [options] [MODEL] -p TEXT | -f FILE\n"
"\n"
"Prints the token ids of a text on one line, separated by blanks. The model\n"
"is the operand, or comes from -m or the file of -c; of it only the\n"
"vocabulary is needed.\n"
"\n"
"  -p TEXT           the text\n"
"  -f FILE           the text is FILE's exact bytes; - is stdin\n"
"  --no-bos          no token for the beginning of the text\n"
"  --pieces          each id with the bytes it stands for, one a line\n"
"  --special         control tokens written in the text count as such\n"
"\n"
COMMON
NO_SESSIONS
"\n"
"Examples:\n"
"  straddle tokenize model.gguf -p \"Once upon a time\"\n"
"  straddle tokenize -m model.gguf -f letter.txt --pieces\n";

static const char help_detokenize[] =
"usage: straddle detokenize [options] [MODEL] ID... | -p IDS | -f FILE\n"
"\n"
"Prints the text that token ids stand for. A first operand that is no number\n"
"is the model, which may also come from -m or the file of -c.\n"
"\n"
"  -p IDS            the ids, as in -p \"1 2 3\"\n"
"  -f FILE           the ids are in FILE; - is stdin\n"
"\n"
COMMON
NO_SESSIONS
"\n"
"Examples:\n"
"  straddle detokenize model.gguf 1 9038 2501\n"
"  straddle tokenize model.gguf -f a.txt | straddle detokenize model.gguf -f -\n";

static const char help_eval[] =
"usage: straddle eval [options] --ids IDS | --ids-file FILE --logits OUT.f32\n"
"       straddle eval [options] --text FILE\n"
"\n"
"Runs given tokens through the model. With ids: writes the logits of every\n"
"position, rows x vocabulary, as little-endian 32-bit floats. With a text:\n"
"prints its perplexity and the standard error of that, over chunks of the\n"
"context (--ctx), the second half of each scored, as others do it.\n"
"\n"
"  --ids IDS         the tokens, as in --ids \"1 2 3\"\n"
"  --ids-file FILE   the tokens are in FILE; - is stdin\n"
"  --logits OUT.f32  where the logits go\n"
"  --text FILE       the text to predict; - is stdin\n"
"  --stride N        chunks begin N tokens apart, 1 to the context (default);\n"
"                    up to half of it the last N tokens of each are scored:\n"
"                    each token once, with more of the text before it\n"
"  --json            the result as one JSON object\n"
"\n"
COMMON
"\n"
"Examples:\n"
"  straddle eval -m model.gguf --ids \"1 9038 2501\" --logits out.f32\n"
"  straddle eval -c board.conf --text book.txt\n";

static const char help_bench[] =
"usage: straddle bench [options]\n"
"\n"
"Measures prompt and generation speed, mean and standard deviation, beside\n"
"what the cores of the sessions can do at all: reading memory, products of\n"
"8-bit integers, of bfloat16 and of 32-bit floats, by loops that do nothing\n"
"else, in slices between the runs. Each result is also a fraction of the bound\n"
"that it meets first, the median of the runs. Tests are named by what they do:\n"
"pp512, tg128, tg128x4@d2048 (four sequences at once, behind 2048 tokens\n"
"each), load.\n"
"\n"
"  -p N              prompt tokens, 0 to 16777216 (default 512); 0: no such\n"
"                    test\n"
"  -n N              tokens to generate, 0 to 16777216 (default 128); 0: no\n"
"                    such test\n"
"  -r N              repetitions, 1 to 1000 (default 3)\n"
"  --depth LIST      generate behind so many tokens, as in -d 0,2048,8192\n"
"                    (default 0)\n"
"  --parallel LIST   so many sequences at once, 1 to 256 (default 1)\n"
"  --load            measure loading, too, beside raw direct reads of the file\n"
"  --sweep LIST      the same tests over so many sessions, as in --sweep 1,2,4:\n"
"                    on the cores and within the caps that the sessions have\n"
"                    now, cores shared and, where there are enough, divided\n"
"  --slice MS        length of a slice, 1 to 10000 ms (default 30)\n"
"  --json            the same as one JSON object\n"
"\n"
COMMON
"  Without --ctx the context is what the tests need.\n"
"\n"
"Examples:\n"
"  straddle bench -m model.gguf -p 512 -n 128 -r 5\n"
"  straddle bench -m model.gguf -p 0 -n 32 --parallel 1,2,4,8 -d 0,2048\n"
"  straddle bench -m model.gguf --sweep 1,2,4,8 --load\n";

static const char help_stress[] =
"usage: straddle stress [options]\n"
"\n"
"Pushes the caps and provokes faults, each case for real against the given\n"
"config, and reports what held: memory to the byte and past it, workers that\n"
"are killed or hang, disks that fail, rings that are written over. Where a\n"
"worker is lost, logits are compared with those of an undisturbed run. A case\n"
"that cannot be run here is skipped, with the reason. Exit status 1 when one\n"
"did not hold. However many workers are lost, --recover does not end it.\n"
"\n"
"  --list            the names of the cases\n"
"  --only NAME       this case; * and ? match anything\n"
"  --seed N          the same choices of moments and workers (default: drawn,\n"
"                    printed)\n"
"  --soak N          instead of the cases: N seconds of texts and losses, in\n"
"                    which nothing that is held may grow\n"
"  --json            one JSON object, with the peaks of every session\n"
"\n"
COMMON
"\n"
"Examples:\n"
"  straddle stress -c board.conf\n"
"  straddle stress -c board.conf --only 'kill -9*'\n"
"  straddle stress -c board.conf --soak 3600\n";

static const char help_quantize[] =
"usage: straddle quantize [options] IN OUT TYPE\n"
"\n"
"Makes the model file OUT from IN with its matrices in another type: Q8_0,\n"
"Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4, Q4_K, Q5_K, Q6_K, F16, BF16 or F32.\n"
"Prints for each tensor its types, its bytes, and the root mean square error\n"
"of its weights as a part of theirs. Metadata and the order of tensors stay;\n"
"norms, vectors, and the routers of experts keep their type, and so does what\n"
"is no weight. All else gets TYPE, but for the output head (output.weight, or\n"
"the embedding where that is the head, too), which gets Q6_K with Q4_K and\n"
"Q5_K. Of a split model IN is the first part; OUT is one file. It is written\n"
"under another name beside OUT, and takes its place when it is whole.\n"
"\n"
"  --head TYPE       another type for the output head\n"
"  --fallback TYPE   for rows that have no whole blocks of 256 (default: Q5_0\n"
"                    for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K); F16 where this\n"
"                    does not fit either\n"
"  --threads N       1 to 1024 (default: one on each core that may be used);\n"
"                    the file is the same with any number\n"
"  --json            one JSON object instead of the lines\n"
"\n"
COMMON
"This command starts no session: of the common options only -m (IN, which is\n"
"no operand then), -v and -q (the last line alone) change what it does.\n"
"\n"
"Examples:\n"
"  straddle quantize model-f16.gguf model-q4_0.gguf Q4_0\n"
"  straddle quantize model-bf16.gguf model-q4_k.gguf Q4_K --head Q8_0\n";

static const struct {
	const char *topic, *text;
} topics[] = {
	{ "run", help_run },
	{ "chat", help_chat },
	{ "plan", help_plan },
	{ "inspect", help_inspect },
	{ "devices", help_devices },
	{ "explain", help_explain },
	{ "tokenize", help_tokenize },
	{ "detokenize", help_detokenize },
	{ "eval", help_eval },
	{ "bench", help_bench },
	{ "stress", help_stress },
	{ "quantize", help_quantize },
	{ "help", overview },
};

const char *
cli_help(const char *topic)
{
	unsigned i;

	if (topic == NULL)
		return overview;
	for (i = 0; i < NITEMS(topics); i++)
		if (strcmp(topic, topics[i].topic) == 0)
			return topics[i].text;
	return NULL;
}
