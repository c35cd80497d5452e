/* tests/unit/cli.c - tests of the command line: every command, option and
 * refusal, and help texts that agree with the options. */
#include "tests/support/t.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/options.h"

static struct conf conf;
static struct err err;

/* Run conf_load() on a new conf with these words after "straddle". */
static int
load_words(const char *const *words)
{
	char *argv[32] = { strdup("straddle") };
	int argc, rc;

	conf_free(&conf);
	memset(&err, 0, sizeof(err));
	for (argc = 1; words[argc - 1] != NULL; argc++)
		argv[argc] = strdup(words[argc - 1]);
	rc = conf_load(argc, argv, &conf, &err);
	while (argc-- > 0)
		free(argv[argc]);
	return rc;
}

#define LOAD(...)	load_words((const char *const []){ __VA_ARGS__, NULL })

/* The words must be refused as bad usage, with `text` in the message. */
#define REFUSED(text, ...)	do {					\
	ck_assert_int_lt(LOAD(__VA_ARGS__), 0);				\
	ck_assert_int_eq(err.kind, ERR_USAGE);				\
	ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);	\
} while (0)

static const char *
write_conf(const char *text)
{
	static char path[256];
	FILE *fp;

	snprintf(path, sizeof(path), "%s/x.conf", t_tmpdir());
	ck_assert_ptr_nonnull(fp = fopen(path, "we"));
	fputs(text, fp);
	fclose(fp);
	return path;
}

START_TEST(every_option_of_run_sets_its_field)
{
	t_ok(LOAD("run", "-m", "x.gguf", "-s", "cpu,cap=1GiB", "-s", "a=null",
	    "--ctx", "512", "--batch=64", "--kv-type", "q8_0",
	    "--half-layers", "--strict", "--recover", "3", "-v", "-p",
	    "hi there", "-n", "-1", "--temp", "0.5", "--top-k=3", "--seed",
	    "0"), &err);
	ck_assert_int_eq(conf.cmd, CMD_RUN);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	ck_assert_int_eq(conf.nsessions, 2);
	ck_assert_str_eq(conf.session[0].name, "cpu0");
	ck_assert_uint_eq(conf.session[0].cap_bytes, GIB);
	ck_assert_str_eq(conf.session[1].name, "a");
	ck_assert_str_eq(conf.session[1].device, "null");
	ck_assert_int_eq(conf.ctx_tok, 512);
	ck_assert_int_eq(conf.batch_rows, 64);
	ck_assert_int_eq(conf.kv_type_k, KV_Q8_0);
	ck_assert_int_eq(conf.kv_type_v, KV_Q8_0);
	ck_assert_int_eq(conf.half_layers, 1);
	ck_assert_int_eq(conf.strict, 1);
	ck_assert_int_eq(conf.recover, 3);
	ck_assert_int_eq(conf.verbose, 2);
	ck_assert_str_eq(conf.prompt, "hi there");
	ck_assert_int_eq(conf.n_predict, -1);
	ck_assert(conf.sampling.temp == 0.5);
	ck_assert_int_eq(conf.sampling.top_k, 3);
	ck_assert_uint_eq(conf.sampling.seed, 0);
	ck_assert_int_eq(conf.sampling.seed_given, 1);

	t_ok(LOAD("run", "-m", "x", "--prompts", "p.txt", "--parallel", "8",
	    "--top-p", "0.5", "--min-p", "0.1", "--repeat-penalty", "1.5",
	    "--repeat-last-n", "9", "--special", "--ignore-eos", "--json",
	    "-q"), &err);
	ck_assert_str_eq(conf.prompts_file, "p.txt");
	ck_assert_int_eq(conf.parallel, 8);
	ck_assert(conf.sampling.top_p == 0.5);
	ck_assert(conf.sampling.min_p == 0.1);
	ck_assert(conf.sampling.repeat_penalty == 1.5);
	ck_assert_int_eq(conf.sampling.repeat_last_n, 9);
	ck_assert_int_eq(conf.special, 1);
	ck_assert_int_eq(conf.ignore_eos, 1);
	ck_assert_int_eq(conf.json, 1);
	ck_assert_int_eq(conf.verbose, 0);
	ck_assert_int_eq(conf.nsessions, 1);

	t_ok(LOAD("run", "-m", "x", "-f", "-"), &err);
	ck_assert_str_eq(conf.prompt_file, "-");
}
END_TEST

START_TEST(chat_takes_the_options_of_run_except_prompts)
{
	t_ok(LOAD("chat", "-m", "x", "--system", "Be brief.", "--temp", "0",
	    "--seed", "7", "--special", "--ignore-eos"), &err);
	ck_assert_int_eq(conf.cmd, CMD_CHAT);
	ck_assert_str_eq(conf.system, "Be brief.");
	ck_assert_int_eq(conf.n_predict, N_PREDICT_SHARE);
	ck_assert_int_eq(conf.context_shift, 0);
	ck_assert_int_eq(conf.ignore_eos, 1);
	t_ok(LOAD("chat", "-m", "x", "-n", "5", "--context-shift"), &err);
	ck_assert_int_eq(conf.n_predict, 5);
	ck_assert_int_eq(conf.context_shift, 1);
	t_ok(LOAD("chat", "-m", "x", "-n", "-1"), &err);
	ck_assert_int_eq(conf.n_predict, -1);	/* no limit */
	REFUSED("-n", "chat", "-m", "x", "-n", "-2");
	t_ok(LOAD("run", "-m", "x", "-p", "hi", "--chat", "--system", "s"),
	    &err);
	ck_assert_int_eq(conf.chat, 1);
	ck_assert_int_eq(conf.n_predict, 128);
	REFUSED("--system is only valid with --chat", "run", "-m", "x", "-p",
	    "hi", "--system", "s");
	REFUSED("-p: not an option of chat", "chat", "-m", "x", "-p", "hi");
	REFUSED("chat: no model", "chat");
}
END_TEST

START_TEST(options_of_other_commands_set_their_fields)
{
	t_ok(LOAD("plan", "--check"), &err);
	ck_assert_int_eq(conf.cmd, CMD_PLAN);
	ck_assert_int_eq(conf.check_only, 1);
	t_ok(LOAD("plan", "-m", "x", "--json", "--parallel", "256"), &err);
	ck_assert_int_eq(conf.parallel, 256);
	t_ok(LOAD("plan", "-m", "x", "--fit"), &err);
	ck_assert_int_eq(conf.fit, 1);
	t_ok(LOAD("inspect", "-m", "x", "--json"), &err);
	ck_assert_int_eq(conf.cmd, CMD_INSPECT);
	t_ok(LOAD("devices", "--json"), &err);
	ck_assert_int_eq(conf.cmd, CMD_DEVICES);
	t_ok(LOAD("explain", "-m", "x", "--json"), &err);
	ck_assert_int_eq(conf.cmd, CMD_EXPLAIN);
	t_ok(LOAD("stress", "-m", "x", "--json", "--list", "--only", "kill*",
	    "--seed", "7"), &err);
	ck_assert_int_eq(conf.cmd, CMD_STRESS);
	ck_assert_int_eq(conf.stress_list, 1);
	ck_assert_str_eq(conf.stress_only, "kill*");
	ck_assert_uint_eq(conf.sampling.seed, 7);
	t_ok(LOAD("stress", "-m", "x", "--soak", "60"), &err);
	ck_assert_int_eq(conf.soak_s, 60);

	t_ok(LOAD("tokenize", "-m", "x", "-f", "a.txt", "--no-bos", "--pieces",
	    "--special"), &err);
	ck_assert_int_eq(conf.cmd, CMD_TOKENIZE);
	ck_assert_str_eq(conf.prompt_file, "a.txt");
	ck_assert_int_eq(conf.no_bos, 1);
	ck_assert_int_eq(conf.pieces, 1);

	t_ok(LOAD("eval", "-m", "x", "--ids", "1 2 3", "--logits", "o.f32"),
	    &err);
	ck_assert_int_eq(conf.cmd, CMD_EVAL);
	ck_assert_str_eq(conf.ids, "1 2 3");
	ck_assert_str_eq(conf.logits_path, "o.f32");
	t_ok(LOAD("eval", "-m", "x", "--ids-file", "i", "--logits", "o.f32"),
	    &err);
	ck_assert_str_eq(conf.ids_file, "i");
	t_ok(LOAD("eval", "-m", "x", "--text", "book.txt"), &err);
	ck_assert_str_eq(conf.text_path, "book.txt");
	ck_assert_int_eq(conf.stride_tok, 0);
	t_ok(LOAD("eval", "-m", "x", "--text", "b", "--stride", "9"), &err);
	ck_assert_int_eq(conf.stride_tok, 9);

	t_ok(LOAD("quantize", "in", "out", "Q4_0", "--head", "Q6_K",
	    "--fallback", "Q8_0", "--threads", "3", "--json"), &err);
	ck_assert_int_eq(conf.cmd, CMD_QUANTIZE);
	ck_assert_str_eq(conf.model_path, "in");
	ck_assert_str_eq(conf.out_path, "out");
	ck_assert_str_eq(conf.quant_type, "Q4_0");
	ck_assert_str_eq(conf.head_type, "Q6_K");
	ck_assert_str_eq(conf.fallback_type, "Q8_0");
	ck_assert_int_eq(conf.quant_threads, 3);
	t_ok(LOAD("quantize", "out", "-m", "in", "F16"), &err);
	ck_assert_str_eq(conf.model_path, "in");
	ck_assert_str_eq(conf.out_path, "out");
	ck_assert_str_eq(conf.quant_type, "F16");

	t_ok(LOAD("bench", "-m", "x", "-p", "64", "-n", "0", "-r", "5",
	    "--load", "--sweep", "1,2,4,8", "-d", "0,2048", "--parallel",
	    "1,16", "--slice", "5", "--json"), &err);
	ck_assert_int_eq(conf.cmd, CMD_BENCH);
	ck_assert_ptr_null(conf.prompt);
	ck_assert_int_eq(conf.bench_prompt, 64);
	ck_assert_int_eq(conf.n_predict, 0);
	ck_assert_int_eq(conf.bench_reps, 5);
	ck_assert_int_eq(conf.bench_load, 1);
	ck_assert_int_eq(conf.sweep.n, 4);
	ck_assert_int_eq(conf.sweep.v[3], 8);
	ck_assert_int_eq(conf.depths.n, 2);
	ck_assert_int_eq(conf.depths.v[1], 2048);
	ck_assert_int_eq(conf.parallels.n, 2);
	ck_assert_int_eq(conf.parallels.v[1], 16);
	ck_assert_int_eq(conf.parallel, 1);
	ck_assert_int_eq(conf.slice_ms, 5);
}
END_TEST

START_TEST(the_model_may_be_an_operand)
{
	t_ok(LOAD("inspect", "x.gguf"), &err);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	t_ok(LOAD("tokenize", "x.gguf", "-p", ""), &err);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	ck_assert_str_eq(conf.prompt, "");
	t_ok(LOAD("detokenize", "x.gguf", "1", "2", "3"), &err);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	ck_assert_str_eq(conf.ids, "1 2 3");
	t_ok(LOAD("detokenize", "-m", "x.gguf", "1", "2"), &err);
	ck_assert_str_eq(conf.ids, "1 2");
	t_ok(LOAD("detokenize", "x.gguf", "-p", "1 2 3"), &err);
	ck_assert_str_eq(conf.ids, "1 2 3");
	t_ok(LOAD("detokenize", "-f", "-", "x.gguf"), &err);
	ck_assert_str_eq(conf.ids_file, "-");
	t_ok(LOAD("detokenize", "-c", write_conf("model = \"/f.gguf\""), "7",
	    "8"), &err);
	ck_assert_str_eq(conf.model_path, "/f.gguf");
	ck_assert_str_eq(conf.ids, "7 8");
	t_ok(LOAD("inspect", "-c", write_conf("model = \"/f.gguf\""), "x"),
	    &err);
	ck_assert_str_eq(conf.model_path, "x");

	t_ok(LOAD("run", "x.gguf", "-p", "hi"), &err);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	t_ok(LOAD("run", "-p", "hi", "-n", "4", "--", "-x.gguf"), &err);
	ck_assert_str_eq(conf.model_path, "-x.gguf");
	t_ok(LOAD("chat", "x.gguf"), &err);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	t_ok(LOAD("plan", "x.gguf", "-s", "2*cpu"), &err);
	ck_assert_str_eq(conf.model_path, "x.gguf");
	t_ok(LOAD("bench", "x.gguf"), &err);
	t_ok(LOAD("explain", "x.gguf"), &err);
	t_ok(LOAD("run", "-c", write_conf("model = \"/f.gguf\""), "y.gguf",
	    "-p", "hi"), &err);
	ck_assert_str_eq(conf.model_path, "y.gguf");

	REFUSED("'y': not an operand of inspect", "inspect", "x", "y");
	REFUSED("'y': not an operand of inspect", "inspect", "-m", "x", "y");
	REFUSED("'upon': not an operand of run: put a prompt of several words "
	    "in quotes", "run", "-c", write_conf("model = \"/f.gguf\""),
	    "-p", "Once", "upon");
	REFUSED("'x.gguf': not an operand of devices: this command takes no "
	    "model", "devices", "x.gguf");
	REFUSED("'1': give the ids one way", "detokenize", "x", "-p", "2", "1");
}
END_TEST

START_TEST(help_and_version_need_no_other_option)
{
	t_ok(LOAD("help"), &err);
	ck_assert_int_eq(conf.cmd, CMD_HELP);
	ck_assert_ptr_null(conf.help_topic);
	t_ok(LOAD("--help"), &err);
	ck_assert_int_eq(conf.cmd, CMD_HELP);
	t_ok(LOAD("help", "bench"), &err);
	ck_assert_str_eq(conf.help_topic, "bench");
	t_ok(LOAD("run", "-c", "/no/such/file", "--help"), &err);
	ck_assert_int_eq(conf.cmd, CMD_HELP);
	ck_assert_str_eq(conf.help_topic, "run");
	t_ok(LOAD("eval", "-h"), &err);
	ck_assert_str_eq(conf.help_topic, "eval");
	t_ok(LOAD("--version"), &err);
	ck_assert_int_eq(conf.cmd, CMD_VERSION);
	REFUSED("help: 'fly' is not a command", "help", "fly");
	t_ok(LOAD("help", "options"), &err);
	ck_assert_str_eq(conf.help_topic, "options");
	t_ok(LOAD("help", "completion", "bash"), &err);
	ck_assert_str_eq(conf.help_shell, "bash");
	REFUSED("name the shell: bash or zsh", "help", "completion");
	REFUSED("name the shell", "help", "completion", "fish");
}
END_TEST

START_TEST(options_override_the_file_and_the_file_overrides_defaults)
{
	const char *path = write_conf("model = \"/f.gguf\"\n"
	    "batch = 32\ncontext = 100\nstrict = true\n"
	    "half_layers = true\n"
	    "sampling { temp = 0.1 top_k = 5 }\n"
	    "session a { cap = 1GiB }\nsession b { cap = 2GiB }\n");

	t_ok(LOAD("run", "-p", "x", "-c", path), &err);
	ck_assert_str_eq(conf.config_path, path);
	ck_assert_str_eq(conf.model_path, "/f.gguf");
	ck_assert_int_eq(conf.batch_rows, 32);
	ck_assert_int_eq(conf.half_layers, 1);
	ck_assert_int_eq(conf.strict, 1);
	ck_assert_int_eq(conf.kv_type_k, KV_F16);
	ck_assert_int_eq(conf.sampling.top_k, 5);
	ck_assert(conf.sampling.top_p == 0.95);
	ck_assert_int_eq(conf.nsessions, 2);
	ck_assert_str_eq(conf.session[1].name, "b");

	/* In any order of the options. */
	t_ok(LOAD("run", "-p", "x", "--batch", "16", "-m", "g.gguf", "--temp",
	    "0.2", "-s", "null", "-c", path), &err);
	ck_assert_str_eq(conf.model_path, "g.gguf");
	ck_assert_int_eq(conf.batch_rows, 16);
	ck_assert_int_eq(conf.ctx_tok, 100);
	ck_assert(conf.sampling.temp == 0.2);
	ck_assert_int_eq(conf.sampling.top_k, 5);
	ck_assert_int_eq(conf.nsessions, 1);
	ck_assert_str_eq(conf.session[0].name, "null0");
	ck_assert_int_eq(conf.session[0].cap_given, 0);
}
END_TEST

START_TEST(errors_in_the_file_name_its_line)
{
	char want[300];
	const char *path = write_conf("# x\nbatch = 0\n");

	snprintf(want, sizeof(want), "%s:2: batch: '0' is too small", path);
	REFUSED(want, "plan", "-m", "x", "-c", path);
	path = write_conf("\nsession a { cores = \"0-1023\" }\n");
	snprintf(want, sizeof(want), "%s:2: session a: cores: cores ", path);
	REFUSED(want, "plan", "-m", "x", "-c", path);
	REFUSED("/no/such/file: No such file", "plan", "-c", "/no/such/file");
}
END_TEST

START_TEST(bad_values_are_refused_with_the_option_name)
{
	static const struct {
		const char *cmd, *option, *value, *message;
	} bad[] = {
		{ "run", "--ctx", "0",
		    "--ctx: '0' is too small: must be 1 to 16777216" },
		{ "run", "--ctx", "16777217", "is too large" },
		{ "run", "--batch", "4097",
		    "--batch: '4097' is too large: must be 1 to" },
		{ "run", "--batch", "x", "--batch: 'x' is not a whole number" },
		{ "run", "--kv-type", "q4_0", "--kv-type: 'q4_0' is not a KV" },
		{ "run", "--parallel", "0", "--parallel: '0' is too small" },
		{ "run", "--parallel", "257", "must be 1 to 256" },
		{ "run", "-n", "-2",
		    "-n: '-2' is too small: must be -1 to 2147483647" },
		{ "run", "-n", "2147483648", "is too large" },
		{ "run", "--temp", "nan", "--temp: 'nan' is not a number" },
		{ "run", "--temp", "inf", "--temp: 'inf' is not a number" },
		{ "run", "--temp", "-1", "--temp: '-1' is too small" },
		{ "run", "--top-k", "-2", "--top-k: '-2' is too small" },
		{ "run", "--top-p", "1.5", "--top-p: '1.5' is too large" },
		{ "run", "--min-p", "2", "--min-p: '2' is too large" },
		{ "run", "--repeat-penalty", "0",
		    "is too small: must be 0.01 to 100" },
		{ "run", "--repeat-last-n", "-2", "is too small" },
		{ "run", "--seed", "-2", "--seed: '-2' is not a seed: must be "
		    "0 to 18446744073709551615, or -1 for a random one" },
		{ "run", "--seed", "18446744073709551616", "is not a seed" },
		{ "run", "-m", "", "-m: the path is empty" },
		{ "run", "-f", "", "-f: the path is empty" },
		{ "run", "-s", "cpu,cap=0", "-s #1: cap: '0' is zero bytes" },
		{ "eval", "--stride", "0",
		    "--stride: '0' is too small: must be 1 to" },
		{ "quantize", "--threads", "0", "--threads: '0' is too small" },
		{ "bench", "-p", "text", "-p: 'text' is not a whole number" },
		{ "bench", "-n", "-1", "-n: '-1' is too small: must be 0 to" },
		{ "bench", "-r", "0",
		    "-r: '0' is too small: must be 1 to 1000" },
		{ "bench", "--sweep", "1,,2", "--sweep: '' is not a whole" },
		{ "bench", "--sweep", "65",
		    "--sweep: '65' is too large: must be 1 to 64" },
		{ "bench", "--sweep", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
		    "--sweep: too many numbers: at most 16" },
		{ "bench", "--parallel", "0", "--parallel: '0' is too small" },
		{ "bench", "-d", "-1", "is too small: must be 0 to 16777215" },
		{ "bench", "--slice", "0",
		    "--slice: '0' is too small: must be 1 to" },
	};
	unsigned i;

	for (i = 0; i < NITEMS(bad); i++)
		REFUSED(bad[i].message, bad[i].cmd, bad[i].option,
		    bad[i].value);
}
END_TEST

START_TEST(missing_and_conflicting_options_are_refused)
{
	REFUSED("no command", NULL);
	REFUSED("'fly': no such command", "fly");
	REFUSED("run: no model: give -m MODEL", "run", "-p", "x");
	REFUSED("plan: no model", "plan");
	REFUSED("run: no prompt: give -p TEXT", "run", "-m", "x");
	REFUSED("give only one of -p, -f and --prompts", "run", "-m", "x", "-p",
	    "a", "-f", "b");
	REFUSED("give only one of -p, -f and --prompts", "run", "-m", "x", "-p",
	    "a", "--prompts", "b");
	REFUSED("--parallel is only valid with --prompts", "run", "-m", "x",
	    "-p", "a", "--parallel", "2");
	REFUSED("tokenize: no text", "tokenize", "x");
	REFUSED("give only one of -p and -f", "tokenize", "x", "-p", "a", "-f",
	    "b");
	REFUSED("detokenize: no ids", "detokenize", "x");
	REFUSED("give the ids one way", "detokenize", "x", "-p", "1", "-f",
	    "b");
	REFUSED("eval: nothing to evaluate", "eval", "-m", "x");
	REFUSED("give only one of --ids, --ids-file and --text", "eval", "-m",
	    "x", "--ids", "1", "--text", "b");
	REFUSED("give --logits OUT.f32", "eval", "-m", "x", "--ids", "1");
	REFUSED("--logits is not valid with --text", "eval", "-m", "x",
	    "--text", "b", "--logits", "o");
	REFUSED("--stride is only valid with --text", "eval", "-m", "x",
	    "--ids", "1", "--logits", "o", "--stride", "2");
	REFUSED("quantize: no file to read", "quantize");
	REFUSED("quantize: no file to write", "quantize", "x");
	REFUSED("quantize: no type", "quantize", "x", "y");
	REFUSED("quantize: no type", "quantize", "-m", "x", "y");
	REFUSED("'Q4_0': not an operand of quantize", "quantize", "-m", "x",
	    "x", "y", "Q4_0");
	REFUSED("--ctx: needs a value", "run", "-m", "x", "--ctx");
	REFUSED("-m: needs a value", "run", "-m");
	REFUSED("--json: takes no value", "run", "--json=1");
	REFUSED("session a: ", "plan", "-m", "x", "-s", "a=cpu", "-s",
	    "a=null");
	REFUSED("port: only valid with device hexagon, not cpu", "plan", "-m",
	    "x", "-s", "cpu,port=emulated");
	REFUSED("domain: only valid with device hexagon, not null", "plan",
	    "-m", "x", "-s", "null,domain=1GiB");
	REFUSED("domain: port fastrpc has a fixed size", "plan", "-m", "x",
	    "-s", "hexagon,port=fastrpc,domain=1GiB");
}
END_TEST

START_TEST(options_that_a_command_lacks_are_refused)
{
	REFUSED("plan: --check only prints the config: leave out --json and "
	    "--fit", "plan", "--check", "--json");
	REFUSED("plan: --check only prints the config", "plan", "--check",
	    "--fit");
	REFUSED("stress: --soak replaces the cases: leave out --only", "stress",
	    "-m", "x", "--soak", "60", "--only", "kill*");
	REFUSED("--check: not an option of run: 'straddle help run' lists",
	    "run", "--check");
	REFUSED("--wings: not an option of run: 'straddle help run' lists",
	    "run", "--wings");
	REFUSED("-x: not an option of run: 'straddle help run' lists", "run",
	    "-x");
	REFUSED("-r: not an option of eval", "eval", "-r", "3");
	REFUSED("--stop: not an option of plan", "plan", "--stop", "x");
	REFUSED("--stop: the text is empty", "run", "-m", "x", "--stop", "");
	REFUSED("-p: not an option of plan", "plan", "-p", "x");
	REFUSED("--json: not an option of tokenize", "tokenize", "--json");
	REFUSED("--temp: not an option of bench", "bench", "--temp", "1");
}
END_TEST

/* The words of another program must set what ours set. */
#define SAME_AS(ours, ...)	do {					\
	char want[4096];						\
									\
	t_ok(load_words(ours), &err);					\
	print_conf(want, sizeof(want));					\
	t_ok(LOAD(__VA_ARGS__), &err);					\
	check_conf(want);						\
} while (0)
#define OURS(...)	((const char *const []){ __VA_ARGS__, NULL })

/* Every setting that an alias can reach, as text. */
static void
print_conf(char *buf, size_t len)
{
	FILE *fp = fmemopen(buf, len, "w");

	ck_assert_ptr_nonnull(fp);
	conf_print(&conf, fp);
	fprintf(fp, "%s|%s|%s|%d|%d|%d|%d|%d|%d|%s|%s|%d", conf.prompt,
	    conf.prompt_file, conf.system, conf.n_predict, conf.verbose,
	    conf.parallel, conf.chat, conf.special, conf.bench_prompt,
	    conf.head_type, conf.quant_type, conf.stride_tok);
	fclose(fp);
}

static void
check_conf(const char *want)
{
	char got[4096];

	print_conf(got, sizeof(got));
	ck_assert_str_eq(got, want);
}

START_TEST(options_of_other_programs_work)
{
	static const char *const rows[][4] = {
		/* theirs, then ours */
		{ "--ctx-size", "9", "--ctx", "9" },
		{ "--ctx-size=9", NULL, "--ctx", "9" },
		{ "--ctx_size", "9", "--ctx", "9" },
		{ "-c", "512", "--ctx", "512" },
		{ "-c512", NULL, "--ctx", "512" },
		{ "-s", "42", "--seed", "42" },
		{ "-s", "-1", "--seed", "-1" },
		{ "--n-predict", "9", "-n", "9" },
		{ "--n_predict=9", NULL, "-n", "9" },
		{ "--predict", "9", "-n", "9" },
		{ "--max-tokens", "9", "-n", "9" },
		{ "--temperature", "0", "--temp", "0" },
		{ "--top_k", "1", "--top-k", "1" },
		{ "-b", "9", "--batch", "9" },
		{ "-b9", NULL, "--batch", "9" },
		{ "--batch-size=9", NULL, "--batch", "9" },
		{ "--kv_type", "f32", "--kv-type", "f32" },
		{ "-ctk", "q8_0", "--kv-type-k", "q8_0" },
		{ "-ctv", "q8_0", "--kv-type-v", "q8_0" },
		{ "--cache-type-k", "q8_0", "--kv-type-k", "q8_0" },
		{ "--cache-type-v", "q8_0", "--kv-type-v", "q8_0" },
		{ "-t", "4", "-s", "cpu,threads=4" },
		{ "-t4", NULL, "-s", "cpu,threads=4" },
		{ "--threads", "4", "-s", "cpu,threads=4" },
		{ "-st", NULL, "--chat", NULL },
		{ "-sp", NULL, "--special", NULL },
		{ "--verbose", NULL, "-v", NULL },
		{ "--log-disable", NULL, "-q", NULL },
		/* without effect */
		{ "-ngl", "99", NULL, NULL },
		{ "--n-gpu-layers=99", NULL, NULL, NULL },
		{ "--no-mmap", NULL, NULL, NULL },
		{ "-fa", NULL, NULL, NULL },
		{ "-fa", "on", NULL, NULL },
		{ "-no-cnv", NULL, NULL, NULL },
		{ "--mlock", NULL, NULL, NULL },
		{ "--jinja", NULL, NULL, NULL },
		{ "-ot", "exps=CPU", NULL, NULL },
	};
	const char *theirs[8], *ours[8];
	unsigned i, k, n, m;

	for (i = 0; i < NITEMS(rows); i++) {
		char want[4096];

		for (n = 0; n < 5; n++)
			theirs[n] = ours[n] = OURS("run", "-m", "x", "-p",
			    "hi")[n];
		for (k = 0, m = n; k < 2 && rows[i][k] != NULL; k++)
			theirs[m++] = rows[i][k];
		theirs[m] = NULL;
		for (k = 2, m = n; k < 4 && rows[i][k] != NULL; k++)
			ours[m++] = rows[i][k];
		ours[m] = NULL;
		t_ok(load_words(ours), &err);
		print_conf(want, sizeof(want));
		ck_assert_msg(load_words(theirs) == 0, "%s: %s", rows[i][0],
		    err.msg);
		check_conf(want);
	}
	SAME_AS(OURS("run", "-m", "x", "-p", "hi"), "run", "--model", "x",
	    "--prompt", "hi");
	SAME_AS(OURS("run", "-m", "x", "-p", "a=b"), "run", "--model=x",
	    "--prompt=a=b");
	SAME_AS(OURS("run", "-m", "x", "-f", "y"), "run", "-m", "x", "--file",
	    "y");
	SAME_AS(OURS("run", "-m", "x", "--prompts", "f", "--parallel", "3"),
	    "run", "-m", "x", "--prompts", "f", "-np", "3");
	SAME_AS(OURS("chat", "-m", "x", "--system", "s"), "chat", "-m", "x",
	    "-sys", "s", "-cnv");
	SAME_AS(OURS("bench", "-m", "x", "-p", "7", "-n", "8", "-r", "2"),
	    "bench", "-m", "x", "--n-prompt", "7", "--n-gen", "8",
	    "--repetitions", "2");
	SAME_AS(OURS("quantize", "x", "y", "Q4_0", "--head", "Q6_K"),
	    "quantize", "--output-tensor-type", "Q6_K", "x", "y", "Q4_0");
	SAME_AS(OURS("eval", "-m", "x", "--text", "t", "--stride", "9"),
	    "eval", "-m", "x", "--text", "t", "--ppl-stride", "9");
	SAME_AS(OURS("eval", "-m", "x", "--text", "t"), "eval", "-m", "x",
	    "-f", "t");
	SAME_AS(OURS("eval", "-m", "x", "--text", "t"), "eval", "-m", "x",
	    "--file", "t");
	SAME_AS(OURS("run", "-m", "x", "-p", "hi", "--stop", "t"), "run", "-m",
	    "x", "-p", "hi", "-r", "t");
	/* A file is a config, whatever other programs read after -c. */
	t_ok(LOAD("plan", "-c", write_conf("model = \"/f.gguf\"\n"), "-c",
	    "77"), &err);
	ck_assert_str_eq(conf.model_path, "/f.gguf");
	ck_assert_int_eq(conf.ctx_tok, 77);
	REFUSED("77: No such file", "plan", "-m", "x", "--config", "77");
	/* A value may look like an option. */
	t_ok(LOAD("run", "-m", "x", "-p", "--prompt", "-s", "cpu"), &err);
	ck_assert_str_eq(conf.prompt, "--prompt");
	t_ok(LOAD("run", "-m", "x", "-p", "-ngl"), &err);
	ck_assert_str_eq(conf.prompt, "-ngl");
	REFUSED("-n: '-ngl' is not a whole number", "run", "-n", "-ngl");
	t_ok(LOAD("run", "-m", "x", "--prompts", "--prompt"), &err);
	ck_assert_str_eq(conf.prompts_file, "--prompt");
}
END_TEST

START_TEST(threads_are_the_default_of_each_session)
{
	t_ok(LOAD("plan", "-m", "x", "-t", "3", "-s", "cpu,threads=2", "-s",
	    "2*cpu"), &err);
	ck_assert_int_eq(conf.session[0].threads, 2);
	ck_assert_int_eq(conf.session[1].threads, 3);
	ck_assert_int_eq(conf.session[2].threads, 3);
	t_ok(LOAD("quantize", "x", "y", "Q4_0", "-t", "3"), &err);
	ck_assert_int_eq(conf.quant_threads, 3);
	REFUSED("-t: '0' is too small", "run", "-t", "0");
}
END_TEST

START_TEST(errors_name_the_option_as_it_was_typed)
{
	REFUSED("--ctx-size: 'x' is not a whole number", "run", "--ctx-size",
	    "x");
	REFUSED("--model: needs a value", "run", "--model");
	REFUSED("-ngl: needs a value", "run", "-ngl");
	REFUSED("-b: '0' is too small", "run", "-b0");
	REFUSED("--prompt: given twice", "run", "-m", "x", "-p", "a",
	    "--prompt", "b");
}
END_TEST

START_TEST(options_without_an_equivalent_are_explained)
{
	REFUSED("-hf: not an option of run: nothing is downloaded here: get a "
	    ".gguf file from", "run", "-hf", "org/model");
	REFUSED("-m FILE.gguf", "chat", "--hf-repo", "org/model");
	REFUSED("-m FILE.gguf", "run", "--model-url=x");
	REFUSED("a session begins with its device", "run", "--device", "x");
	REFUSED("-cnv: not an option of run: a conversation is the command "
	    "chat", "run", "-m", "x", "-cnv");
	REFUSED("-e: not an option of run: escapes are not", "run", "-e");
	REFUSED("-o: not an option of bench: write --json", "bench", "-o",
	    "json");
	REFUSED("--pure: not an option of quantize: write --head", "quantize",
	    "--pure", "x", "y", "Q4_K");
	REFUSED("-s: '42' is a number, but -s is a session, and plan takes no "
	    "seed", "plan", "-m", "x", "-s", "42");
	REFUSED("cap belongs to a session: -s cpu,cap=...", "run", "--cap",
	    "1G");
	REFUSED("cores belongs to a session", "run", "--cores=0");
	REFUSED("did you mean --temp?", "run", "--tmep", "1");
	REFUSED("did you mean --ctx?", "run", "--ctxx", "1");
	REFUSED("did you mean --parallel?", "run", "--paralel", "1");
	REFUSED("'8': not an operand of quantize: the number of threads is "
	    "--threads N", "quantize", "x", "y", "Q4_0", "8");
	/* Only options of the command are suggested. */
	REFUSED("--prompt: not an option of plan: 'straddle help", "plan",
	    "--prompt", "x");
	REFUSED("--tmep: not an option of plan: 'straddle help", "plan",
	    "--tmep");
}
END_TEST

/* Put a pipe with text, or path, in the place of stdin. */
static void
feed(const char *text, const char *path)
{
	int fd[2];

	if (path != NULL) {
		ck_assert_int_ge(fd[0] = open(path, O_RDONLY), 0);
	} else {
		ck_assert_int_eq(pipe(fd), 0);
		ck_assert_int_eq(write(fd[1], text, strlen(text)),
		    (ssize_t)strlen(text));
		close(fd[1]);
	}
	ck_assert_int_eq(dup2(fd[0], STDIN_FILENO), STDIN_FILENO);
	close(fd[0]);
}

START_TEST(text_piped_in_needs_no_option)
{
	feed("hi", NULL);
	t_ok(LOAD("run", "x.gguf"), &err);
	ck_assert_str_eq(conf.prompt_file, "-");
	t_ok(LOAD("tokenize", "x.gguf"), &err);
	ck_assert_str_eq(conf.prompt_file, "-");
	t_ok(LOAD("detokenize", "x.gguf"), &err);
	ck_assert_str_eq(conf.ids_file, "-");
	t_ok(LOAD("eval", "x.gguf"), &err);
	ck_assert_str_eq(conf.text_path, "-");
	t_ok(LOAD("run", "x.gguf", "-p", "a"), &err);
	ck_assert_ptr_null(conf.prompt_file);
	t_ok(LOAD("run", "x.gguf", "--prompts", "a"), &err);
	ck_assert_ptr_null(conf.prompt_file);
	feed(NULL, write_conf("text"));
	t_ok(LOAD("run", "x.gguf"), &err);
	ck_assert_str_eq(conf.prompt_file, "-");
	feed(NULL, "/dev/null");
	REFUSED("run: no prompt: give -p TEXT", "run", "-m", "x");
	REFUSED("tokenize: no text", "tokenize", "x");
	REFUSED("detokenize: no ids", "detokenize", "x");
	REFUSED("eval: nothing to evaluate", "eval", "x");
	close(STDIN_FILENO);
	REFUSED("run: no prompt", "run", "-m", "x");
}
END_TEST

START_TEST(common_mistakes_are_explained)
{
	REFUSED("'-m': give a command first: straddle run -m ...", "-m", "x",
	    "-p", "hi");
	REFUSED("'rnu': no such command: did you mean run?", "rnu");
	REFUSED("'hi': not an operand of run: the prompt is -p TEXT", "run",
	    "-m", "x", "hi");
	REFUSED("'upon': not an operand of run: put a prompt of several words "
	    "in quotes", "run", "-m", "x", "-p", "Once", "upon");
	REFUSED("'y': not an operand of plan: see 'straddle help plan'", "plan",
	    "-m", "x", "y");
}
END_TEST

START_TEST(a_text_option_given_twice_is_refused)
{
	REFUSED("-p: given twice: once is allowed", "run", "-m", "x", "-p",
	    "a", "-p", "b");
	REFUSED("-f: given twice", "run", "-m", "x", "-f", "a", "-f", "b");
	REFUSED("--ids: given twice", "eval", "--ids", "1", "--ids", "2");
	t_ok(LOAD("run", "-m", "x", "-p", "a", "-m", "y", "-n", "1", "-n",
	    "2"), &err);
	ck_assert_str_eq(conf.model_path, "y");
	ck_assert_int_eq(conf.n_predict, 2);
}
END_TEST

START_TEST(one_option_can_create_several_sessions)
{
	t_ok(LOAD("plan", "-m", "x", "-s", "a=null", "-s",
	    "4*cpu,cap=300MiB,threads=2", "-s", "1*null", "-s", "cpu"), &err);
	ck_assert_int_eq(conf.nsessions, 7);
	ck_assert_str_eq(conf.session[0].name, "a");
	ck_assert_str_eq(conf.session[1].name, "cpu0");
	ck_assert_str_eq(conf.session[4].name, "cpu3");
	ck_assert_uint_eq(conf.session[4].cap_bytes, 300 * MIB);
	ck_assert_int_eq(conf.session[4].threads, 2);
	ck_assert_str_eq(conf.session[4].where, "-s #2");
	ck_assert_str_eq(conf.session[5].name, "null1");
	ck_assert_str_eq(conf.session[6].name, "cpu4");
	ck_assert_int_eq(conf.session[6].cap_given, 0);
	t_ok(LOAD("plan", "-m", "x", "-s", "64*cpu"), &err);
	ck_assert_int_eq(conf.nsessions, MAX_SESSIONS);
	REFUSED("-s #2: too many sessions: at most 64 are allowed", "plan",
	    "-m", "x", "-s", "cpu", "-s", "64*cpu");
	REFUSED("-s #1: '65' is too large: must be 1 to 64",
	    "plan", "-s", "65*cpu");
}
END_TEST

START_TEST(too_many_sessions_are_refused)
{
	char *argv[2 * MAX_SESSIONS + 8];
	int argc = 0, i;

	argv[argc++] = strdup("straddle");
	argv[argc++] = strdup("plan");
	argv[argc++] = strdup("-mx");
	for (i = 0; i <= MAX_SESSIONS; i++)
		argv[argc++] = strdup("-scpu");
	argv[argc] = NULL;
	t_ok(conf_load(argc - 1, argv, &conf, &err), &err);
	ck_assert_int_eq(conf.nsessions, MAX_SESSIONS);
	ck_assert_str_eq(conf.session[63].name, "cpu63");
	conf_free(&conf);
	ck_assert_int_lt(conf_load(argc, argv, &conf, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "64 are allowed"));
	conf_free(&conf);
	while (argc-- > 0)
		free(argv[argc]);
}
END_TEST

/* Find the next word of text that looks like an option.  Returns the text after
 * it, or NULL. */
static const char *
next_option(const char *text, char *word, size_t len)
{
	const char *p = text;
	size_t n;

	for (; *p != '\0'; p++) {
		if (*p != '-' || (p > text && strchr(" [(|\n", p[-1]) == NULL))
			continue;
		n = strspn(p, "-abcdefghijklmnopqrstuvwxyz");
		if (n < 2 || isdigit((unsigned char)p[n]))
			continue;
		snprintf(word, MIN(len, n + 1), "%s", p);
		return p + n;
	}
	return NULL;
}

/* Does cmd take an option of this name? */
static int
takes_option(enum command cmd, const char *word)
{
	const struct setting *o;
	char letter[3] = "-?";
	unsigned i;

	for (i = 0; (o = setting_at(i)) != NULL; i++) {
		letter[1] = (char)o->letter;
		if (option_is_taken(o, cmd) && (strcmp(word, letter) == 0 ||
		    (o->option != NULL && strcmp(word + 2, o->option) == 0)))
			return 1;
	}
	return 0;
}

START_TEST(help_and_options_agree)
{
	char item[64], word[48], buf[OPT_TEXT_LEN], letter[8], text[8192];
	const struct setting *o;
	const char *help, *p;
	enum command cmd;
	int common;
	unsigned i;

	for (cmd = CMD_RUN; cmd <= CMD_QUANTIZE; cmd++) {
		ck_assert_ptr_nonnull(help = cli_help(command_name(cmd)));
		for (p = help; (p = next_option(p, word, sizeof(word))) !=
		    NULL; )
			ck_assert_msg(takes_option(cmd, word), "help %s: %s",
			    command_name(cmd), word);
		/* Each option begins a line of the help text. */
		for (i = 0; (o = setting_at(i)) != NULL; i++) {
			if (!option_is_taken(o, cmd) || o->letter == 'q' ||
			    o->letter == 'h')
				continue;
			option_text(o, buf);
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
			snprintf(item, sizeof(item), "\n  %s%s ",
			    o->letter != 0 && o->option != NULL ? letter : "",
			    buf);
			/* quantize has threads of its own. */
			common = (o->cmds | 1u << CMD_QUANTIZE) == ~0u;
			strlcpy(text, cli_help(common ? "options" :
			    command_name(cmd)), sizeof(text));
			ck_assert_msg(strstr(text, item) != NULL,
			    "help %s lacks %s", common ? "options" :
			    command_name(cmd), buf);
			strlcpy(text, cli_help(common ? command_name(cmd) :
			    "options"), sizeof(text));
			ck_assert_msg(strstr(text, item) == NULL ||
			    strcmp(item, "\n  -t, --threads ") == 0,
			    "%s of %s is in the wrong help", buf,
			    command_name(cmd));
		}
	}
}
END_TEST

START_TEST(help_is_complete_and_narrow)
{
	const char *help, *line, *end;
	enum command cmd;
	char item[32];
	int n;

	ck_assert_ptr_null(cli_help("fly"));
	ck_assert_ptr_nonnull(strstr(cli_help("options"), "\n  -m MODEL "));
	ck_assert_ptr_nonnull(cli_help(NULL));
	for (cmd = CMD_RUN; cmd <= CMD_QUANTIZE; cmd++) {
		for (line = cli_help(command_name(cmd)), n = 0;
		    (line = strchr(line, '\n')) != NULL; line++)
			n++;
		ck_assert_msg(n <= 55, "help %s has %d lines",
		    command_name(cmd), n);
		ck_assert_ptr_nonnull(strstr(cli_help(command_name(cmd)),
		    "straddle help options"));
		snprintf(item, sizeof(item), "\n  %s ", command_name(cmd));
		ck_assert_ptr_nonnull(strstr(cli_help(NULL), item));
		help = cli_help(command_name(cmd));
		snprintf(item, sizeof(item), "usage: straddle %s ",
		    command_name(cmd));
		ck_assert_msg(strncmp(help, item, strlen(item)) == 0, "%s",
		    help);
		ck_assert_ptr_nonnull(strstr(help, "\nExample"));
		for (line = help; (end = strchr(line, '\n')) != NULL;
		    line = end + 1)
			ck_assert_msg(end - line <= 80, "%s: %.*s",
			    command_name(cmd), (int)(end - line), line);
		ck_assert_msg(*line == '\0', "%s: no line end",
		    command_name(cmd));
	}
}
END_TEST

int
main(void)
{
	/* Tests that need a text on stdin put it there. */
	if (freopen("/dev/null", "r", stdin) == NULL)
		return 1;
	const TTest *const tests[] = {
		every_option_of_run_sets_its_field,
		chat_takes_the_options_of_run_except_prompts,
		options_of_other_commands_set_their_fields,
		the_model_may_be_an_operand,
		help_and_version_need_no_other_option,
		options_override_the_file_and_the_file_overrides_defaults,
		errors_in_the_file_name_its_line,
		bad_values_are_refused_with_the_option_name,
		missing_and_conflicting_options_are_refused,
		options_that_a_command_lacks_are_refused,
		options_of_other_programs_work,
		threads_are_the_default_of_each_session,
		errors_name_the_option_as_it_was_typed,
		options_without_an_equivalent_are_explained,
		text_piped_in_needs_no_option,
		common_mistakes_are_explained,
		a_text_option_given_twice_is_refused,
		one_option_can_create_several_sessions,
		too_many_sessions_are_refused,
		help_and_options_agree,
		help_is_complete_and_narrow,
	};

	return t_main("cli", 20, tests, NITEMS(tests));
}
