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
#include "tests/support/load_words.h"

START_TEST(every_option_of_run_sets_its_field)
{
	t_ok(LOAD("run", "-m", "x.gguf", "-s", "cpu,cap=1GiB", "-s", "a=null",
	    "--ctx", "512", "--batch=64", "--kv-type", "q8_0",
	    "--half-layers", "--strict", "--recover", "3", "-v", "-p",
	    "hi there", "-n", "-1", "--temp", "0.5", "--top-k=3", "--seed",
	    "0"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_RUN);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	ck_assert_int_eq(loaded.nsessions, 2);
	ck_assert_str_eq(loaded.session[0].name, "cpu0");
	ck_assert_uint_eq(loaded.session[0].cap_bytes, GIB);
	ck_assert_str_eq(loaded.session[1].name, "a");
	ck_assert_str_eq(loaded.session[1].device, "null");
	ck_assert_int_eq(loaded.ctx_tok, 512);
	ck_assert_int_eq(loaded.batch_rows, 64);
	ck_assert_int_eq(loaded.kv_type_k, KV_Q8_0);
	ck_assert_int_eq(loaded.kv_type_v, KV_Q8_0);
	ck_assert_int_eq(loaded.half_layers, 1);
	ck_assert_int_eq(loaded.strict, 1);
	ck_assert_int_eq(loaded.recover, 3);
	ck_assert_int_eq(loaded.verbose, 2);
	ck_assert_str_eq(loaded.prompt, "hi there");
	ck_assert_int_eq(loaded.n_predict, -1);
	ck_assert(loaded.sampling.temp == 0.5);
	ck_assert_int_eq(loaded.sampling.top_k, 3);
	ck_assert_uint_eq(loaded.sampling.seed, 0);
	ck_assert_int_eq(loaded.sampling.seed_given, 1);

	t_ok(LOAD("run", "-m", "x", "--prompts", "p.txt", "--parallel", "8",
	    "--top-p", "0.5", "--min-p", "0.1", "--repeat-penalty", "1.5",
	    "--repeat-last-n", "9", "--special", "--ignore-eos", "--json",
	    "-q"), &load_err);
	ck_assert_str_eq(loaded.prompts_file, "p.txt");
	ck_assert_int_eq(loaded.parallel, 8);
	ck_assert(loaded.sampling.top_p == 0.5);
	ck_assert(loaded.sampling.min_p == 0.1);
	ck_assert(loaded.sampling.repeat_penalty == 1.5);
	ck_assert_int_eq(loaded.sampling.repeat_last_n, 9);
	ck_assert_int_eq(loaded.special, 1);
	ck_assert_int_eq(loaded.ignore_eos, 1);
	ck_assert_int_eq(loaded.json, 1);
	ck_assert_int_eq(loaded.verbose, 0);
	ck_assert_int_eq(loaded.nsessions, 1);

	t_ok(LOAD("run", "-m", "x", "-f", "-"), &load_err);
	ck_assert_str_eq(loaded.prompt_file, "-");
}
END_TEST

START_TEST(chat_takes_the_options_of_run_except_prompts)
{
	t_ok(LOAD("chat", "-m", "x", "--system", "Be brief.", "--temp", "0",
	    "--seed", "7", "--special", "--ignore-eos"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_CHAT);
	ck_assert_str_eq(loaded.system, "Be brief.");
	ck_assert_int_eq(loaded.n_predict, N_PREDICT_SHARE);
	ck_assert_int_eq(loaded.context_shift, 0);
	ck_assert_int_eq(loaded.ignore_eos, 1);
	t_ok(LOAD("chat", "-m", "x", "-n", "5", "--context-shift"), &load_err);
	ck_assert_int_eq(loaded.n_predict, 5);
	ck_assert_int_eq(loaded.context_shift, 1);
	t_ok(LOAD("chat", "-m", "x", "-n", "-1"), &load_err);
	ck_assert_int_eq(loaded.n_predict, -1);	/* no limit */
	REFUSED("-n", "chat", "-m", "x", "-n", "-2");
	t_ok(LOAD("run", "-m", "x", "-p", "hi", "--chat", "--system", "s"),
	    &load_err);
	ck_assert_int_eq(loaded.chat, 1);
	ck_assert_int_eq(loaded.n_predict, 128);
	REFUSED("--system is only valid with --chat", "run", "-m", "x", "-p",
	    "hi", "--system", "s");
	REFUSED("--template-arg is only valid with --chat", "run", "-m", "x",
	    "-p", "hi", "--template-arg", "a=1");
	REFUSED("the same stdin", "chat", "-m", "x", "--chat-template", "-");
	REFUSED("the same stdin", "run", "-m", "x", "--chat", "-f", "-",
	    "--chat-template", "-");
	REFUSED("the same stdin", "render", "--vars", "-", "--chat-template",
	    "-");
	t_ok(LOAD("render", "--vars", "v.json", "--chat-template", "-"),
	    &load_err);
	t_ok(LOAD("chat", "-m", "x", "--chat-template", "ChatML",
	    "--template-arg", "a=1", "--template-arg", "b=[]"), &load_err);
	ck_assert_str_eq(loaded.chat_template, "ChatML");
	ck_assert_uint_eq(loaded.template_args.n, 2);
	ck_assert_str_eq(loaded.template_args.v[1], "b=[]");
	REFUSED("-p: not an option of chat", "chat", "-m", "x", "-p", "hi");
	REFUSED("chat: no model", "chat");
}
END_TEST

START_TEST(options_of_other_commands_set_their_fields)
{
	t_ok(LOAD("render", "--chat-template", "t.jinja", "--vars", "v.json",
	    "--spans"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_RENDER);
	ck_assert_str_eq(loaded.vars_path, "v.json");
	ck_assert_int_eq(loaded.spans, 1);
	REFUSED("render: no model", "render", "--vars", "v.json");
	REFUSED("render: no variables", "render", "-m", "x");
	t_ok(LOAD("plan", "--check"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_PLAN);
	ck_assert_int_eq(loaded.check_only, 1);
	t_ok(LOAD("plan", "-m", "x", "--json", "--parallel", "256"), &load_err);
	ck_assert_int_eq(loaded.parallel, 256);
	t_ok(LOAD("plan", "-m", "x", "--fit"), &load_err);
	ck_assert_int_eq(loaded.fit, 1);
	t_ok(LOAD("inspect", "-m", "x", "--json"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_INSPECT);
	t_ok(LOAD("devices", "--json"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_DEVICES);
	t_ok(LOAD("explain", "-m", "x", "--json"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_EXPLAIN);
	t_ok(LOAD("stress", "-m", "x", "--json", "--list", "--only", "kill*",
	    "--seed", "7"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_STRESS);
	ck_assert_int_eq(loaded.stress_list, 1);
	ck_assert_str_eq(loaded.stress_only, "kill*");
	ck_assert_uint_eq(loaded.sampling.seed, 7);
	t_ok(LOAD("stress", "-m", "x", "--soak", "60"), &load_err);
	ck_assert_int_eq(loaded.soak_s, 60);

	t_ok(LOAD("tokenize", "-m", "x", "-f", "a.txt", "--no-bos", "--pieces",
	    "--special"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_TOKENIZE);
	ck_assert_str_eq(loaded.prompt_file, "a.txt");
	ck_assert_int_eq(loaded.no_bos, 1);
	ck_assert_int_eq(loaded.pieces, 1);

	t_ok(LOAD("eval", "-m", "x", "--ids", "1 2 3", "--logits", "o.f32"),
	    &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_EVAL);
	ck_assert_str_eq(loaded.ids, "1 2 3");
	ck_assert_str_eq(loaded.logits_path, "o.f32");
	t_ok(LOAD("eval", "-m", "x", "--ids-file", "i", "--logits", "o.f32"),
	    &load_err);
	ck_assert_str_eq(loaded.ids_file, "i");
	t_ok(LOAD("eval", "-m", "x", "--text", "book.txt"), &load_err);
	ck_assert_str_eq(loaded.text_path, "book.txt");
	ck_assert_int_eq(loaded.stride_tok, 0);
	t_ok(LOAD("eval", "-m", "x", "--text", "b", "--stride", "9"),
	    &load_err);
	ck_assert_int_eq(loaded.stride_tok, 9);

	t_ok(LOAD("quantize", "in", "out", "Q4_0", "--head", "Q6_K",
	    "--fallback", "Q8_0", "--threads", "3", "--json"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_QUANTIZE);
	ck_assert_str_eq(loaded.model_path, "in");
	ck_assert_str_eq(loaded.out_path, "out");
	ck_assert_str_eq(loaded.quant_type, "Q4_0");
	ck_assert_str_eq(loaded.head_type, "Q6_K");
	ck_assert_str_eq(loaded.fallback_type, "Q8_0");
	ck_assert_int_eq(loaded.quant_threads, 3);
	t_ok(LOAD("quantize", "out", "-m", "in", "F16"), &load_err);
	ck_assert_str_eq(loaded.model_path, "in");
	ck_assert_str_eq(loaded.out_path, "out");
	ck_assert_str_eq(loaded.quant_type, "F16");

	t_ok(LOAD("bench", "-m", "x", "-p", "64", "-n", "0", "-r", "5",
	    "--load", "--sweep", "1,2,4,8", "-d", "0,2048", "--parallel",
	    "1,16", "--slice", "5", "--json"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_BENCH);
	ck_assert_ptr_null(loaded.prompt);
	ck_assert_int_eq(loaded.bench_prompt, 64);
	ck_assert_int_eq(loaded.n_predict, 0);
	ck_assert_int_eq(loaded.bench_reps, 5);
	ck_assert_int_eq(loaded.bench_load, 1);
	ck_assert_int_eq(loaded.sweep.n, 4);
	ck_assert_int_eq(loaded.sweep.v[3], 8);
	ck_assert_int_eq(loaded.depths.n, 2);
	ck_assert_int_eq(loaded.depths.v[1], 2048);
	ck_assert_int_eq(loaded.parallels.n, 2);
	ck_assert_int_eq(loaded.parallels.v[1], 16);
	ck_assert_int_eq(loaded.parallel, 1);
	ck_assert_int_eq(loaded.slice_ms, 5);
}
END_TEST

START_TEST(the_model_may_be_an_operand)
{
	t_ok(LOAD("inspect", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	t_ok(LOAD("tokenize", "x.gguf", "-p", ""), &load_err);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	ck_assert_str_eq(loaded.prompt, "");
	t_ok(LOAD("detokenize", "x.gguf", "1", "2", "3"), &load_err);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	ck_assert_str_eq(loaded.ids, "1 2 3");
	t_ok(LOAD("detokenize", "-m", "x.gguf", "1", "2"), &load_err);
	ck_assert_str_eq(loaded.ids, "1 2");
	t_ok(LOAD("detokenize", "x.gguf", "-p", "1 2 3"), &load_err);
	ck_assert_str_eq(loaded.ids, "1 2 3");
	t_ok(LOAD("detokenize", "-f", "-", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.ids_file, "-");
	t_ok(LOAD("detokenize", "-c", write_conf("model = \"/f.gguf\""), "7",
	    "8"), &load_err);
	ck_assert_str_eq(loaded.model_path, "/f.gguf");
	ck_assert_str_eq(loaded.ids, "7 8");
	t_ok(LOAD("inspect", "-c", write_conf("model = \"/f.gguf\""), "x"),
	    &load_err);
	ck_assert_str_eq(loaded.model_path, "x");

	t_ok(LOAD("run", "x.gguf", "-p", "hi"), &load_err);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	t_ok(LOAD("run", "-p", "hi", "-n", "4", "--", "-x.gguf"), &load_err);
	ck_assert_str_eq(loaded.model_path, "-x.gguf");
	t_ok(LOAD("chat", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	t_ok(LOAD("plan", "x.gguf", "-s", "2*cpu"), &load_err);
	ck_assert_str_eq(loaded.model_path, "x.gguf");
	t_ok(LOAD("bench", "x.gguf"), &load_err);
	t_ok(LOAD("explain", "x.gguf"), &load_err);
	t_ok(LOAD("run", "-c", write_conf("model = \"/f.gguf\""), "y.gguf",
	    "-p", "hi"), &load_err);
	ck_assert_str_eq(loaded.model_path, "y.gguf");

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
	t_ok(LOAD("help"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_HELP);
	ck_assert_ptr_null(loaded.help_topic);
	t_ok(LOAD("--help"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_HELP);
	t_ok(LOAD("help", "bench"), &load_err);
	ck_assert_str_eq(loaded.help_topic, "bench");
	t_ok(LOAD("run", "-c", "/no/such/file", "--help"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_HELP);
	ck_assert_str_eq(loaded.help_topic, "run");
	t_ok(LOAD("eval", "-h"), &load_err);
	ck_assert_str_eq(loaded.help_topic, "eval");
	t_ok(LOAD("--version"), &load_err);
	ck_assert_int_eq(loaded.cmd, CMD_VERSION);
	REFUSED("help: 'fly' is not a command", "help", "fly");
	t_ok(LOAD("help", "options"), &load_err);
	ck_assert_str_eq(loaded.help_topic, "options");
	t_ok(LOAD("help", "completion", "bash"), &load_err);
	ck_assert_str_eq(loaded.help_shell, "bash");
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

	t_ok(LOAD("run", "-p", "x", "-c", path), &load_err);
	ck_assert_str_eq(loaded.config_path, path);
	ck_assert_str_eq(loaded.model_path, "/f.gguf");
	ck_assert_int_eq(loaded.batch_rows, 32);
	ck_assert_int_eq(loaded.half_layers, 1);
	ck_assert_int_eq(loaded.strict, 1);
	ck_assert_int_eq(loaded.kv_type_k, KV_F16);
	ck_assert_int_eq(loaded.sampling.top_k, 5);
	ck_assert(loaded.sampling.top_p == 0.95);
	ck_assert_int_eq(loaded.nsessions, 2);
	ck_assert_str_eq(loaded.session[1].name, "b");

	/* In any order of the options. */
	t_ok(LOAD("run", "-p", "x", "--batch", "16", "-m", "g.gguf", "--temp",
	    "0.2", "-s", "null", "-c", path), &load_err);
	ck_assert_str_eq(loaded.model_path, "g.gguf");
	ck_assert_int_eq(loaded.batch_rows, 16);
	ck_assert_int_eq(loaded.ctx_tok, 100);
	ck_assert(loaded.sampling.temp == 0.2);
	ck_assert_int_eq(loaded.sampling.top_k, 5);
	ck_assert_int_eq(loaded.nsessions, 1);
	ck_assert_str_eq(loaded.session[0].name, "null0");
	ck_assert_int_eq(loaded.session[0].cap_given, 0);
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
		{ "run", "--ctx", "-1",
		    "--ctx: '-1' is too small: must be 0 to 16777216" },
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
	REFUSED("run: no prompt: give -p TEXT, -f FILE or --prompts FILE, or "
	    "pipe a text in; a conversation is straddle chat", "run", "-m",
	    "x");
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
	t_ok(LOAD("run", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.prompt_file, "-");
	t_ok(LOAD("tokenize", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.prompt_file, "-");
	t_ok(LOAD("detokenize", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.ids_file, "-");
	t_ok(LOAD("eval", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.text_path, "-");
	t_ok(LOAD("run", "x.gguf", "-p", "a"), &load_err);
	ck_assert_ptr_null(loaded.prompt_file);
	t_ok(LOAD("run", "x.gguf", "--prompts", "a"), &load_err);
	ck_assert_ptr_null(loaded.prompt_file);
	feed(NULL, write_conf("text"));
	t_ok(LOAD("run", "x.gguf"), &load_err);
	ck_assert_str_eq(loaded.prompt_file, "-");
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
	REFUSED("'show': no such command: did you mean inspect?", "show", "x");
	REFUSED("'pull': no such command: nothing is downloaded here", "pull",
	    "x");
	REFUSED("'serve': no such command: this is no server", "serve");
	REFUSED("'x.gguf': give a command before the model: straddle chat "
	    "x.gguf", "x.gguf");
	REFUSED("'./x': give a command before the model", "./x", "-p", "y");
	REFUSED("'hi': not an operand of run: the prompt is -p TEXT", "run",
	    "-m", "x", "hi");
	REFUSED("'upon': not an operand of run: put a prompt of several words "
	    "in quotes", "run", "-m", "x", "-p", "Once", "upon");
	REFUSED("'hi': not an operand of tokenize: the text is -p TEXT",
	    "tokenize", "x", "hi");
	REFUSED("'upon': not an operand of tokenize: put a text of several "
	    "words in quotes", "tokenize", "x", "-p", "once", "upon");
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
	    "2"), &load_err);
	ck_assert_str_eq(loaded.model_path, "y");
	ck_assert_int_eq(loaded.n_predict, 2);
}
END_TEST

START_TEST(one_option_can_create_several_sessions)
{
	t_ok(LOAD("plan", "-m", "x", "-s", "a=null", "-s",
	    "4*cpu,cap=300MiB,threads=2", "-s", "1*null", "-s", "cpu"),
	    &load_err);
	ck_assert_int_eq(loaded.nsessions, 7);
	ck_assert_str_eq(loaded.session[0].name, "a");
	ck_assert_str_eq(loaded.session[1].name, "cpu0");
	ck_assert_str_eq(loaded.session[4].name, "cpu3");
	ck_assert_uint_eq(loaded.session[4].cap_bytes, 300 * MIB);
	ck_assert_int_eq(loaded.session[4].threads, 2);
	ck_assert_str_eq(loaded.session[4].where, "-s #2");
	ck_assert_str_eq(loaded.session[5].name, "null1");
	ck_assert_str_eq(loaded.session[6].name, "cpu4");
	ck_assert_int_eq(loaded.session[6].cap_given, 0);
	t_ok(LOAD("plan", "-m", "x", "-s", "64*cpu"), &load_err);
	ck_assert_int_eq(loaded.nsessions, MAX_SESSIONS);
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
	t_ok(conf_load(argc - 1, argv, &loaded, &load_err), &load_err);
	ck_assert_int_eq(loaded.nsessions, MAX_SESSIONS);
	ck_assert_str_eq(loaded.session[63].name, "cpu63");
	conf_free(&loaded);
	ck_assert_int_lt(conf_load(argc, argv, &loaded, &load_err), 0);
	ck_assert_ptr_nonnull(strstr(load_err.msg, "64 are allowed"));
	conf_free(&loaded);
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
