/* tests/unit/cli_alias.c - options of other programs set what ours set, have no
 * effect, or are refused with what to write. */
#include "tests/support/t.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/load_words.h"

/* The words of another program must set what ours set. */
#define SAME_AS(ours, ...)	do {					\
	char want[4096];						\
									\
	t_ok(load_words(ours), &load_err);				\
	print_conf(want, sizeof(want));					\
	t_ok(LOAD(__VA_ARGS__), &load_err);				\
	check_conf(want);						\
} while (0)
#define OURS(...)	((const char *const []){ __VA_ARGS__, NULL })

/* Every setting that an alias can reach, as text. */
static void
print_conf(char *buf, size_t len)
{
	FILE *fp = fmemopen(buf, len, "w");

	ck_assert_ptr_nonnull(fp);
	conf_print(&loaded, fp);
	fprintf(fp, "%s|%s|%s|%d|%d|%d|%d|%d|%d|%s|%s|%d", loaded.prompt,
	    loaded.prompt_file, loaded.system, loaded.n_predict, loaded.verbose,
	    loaded.parallel, loaded.chat, loaded.special, loaded.bench_prompt,
	    loaded.head_type, loaded.quant_type, loaded.stride_tok);
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
		t_ok(load_words(ours), &load_err);
		print_conf(want, sizeof(want));
		ck_assert_msg(load_words(theirs) == 0, "%s: %s", rows[i][0],
		    load_err.msg);
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
	    "77"), &load_err);
	ck_assert_str_eq(loaded.model_path, "/f.gguf");
	ck_assert_int_eq(loaded.ctx_tok, 77);
	REFUSED("77: No such file", "plan", "-m", "x", "--config", "77");
	/* A value may look like an option. */
	t_ok(LOAD("run", "-m", "x", "-p", "--prompt", "-s", "cpu"), &load_err);
	ck_assert_str_eq(loaded.prompt, "--prompt");
	t_ok(LOAD("run", "-m", "x", "-p", "-ngl"), &load_err);
	ck_assert_str_eq(loaded.prompt, "-ngl");
	REFUSED("-n: '-ngl' is not a whole number", "run", "-n", "-ngl");
	t_ok(LOAD("run", "-m", "x", "--prompts", "--prompt"), &load_err);
	ck_assert_str_eq(loaded.prompts_file, "--prompt");
}
END_TEST

START_TEST(threads_are_the_default_of_each_session)
{
	t_ok(LOAD("plan", "-m", "x", "-t", "3", "-s", "cpu,threads=2", "-s",
	    "2*cpu"), &load_err);
	ck_assert_int_eq(loaded.session[0].threads, 2);
	ck_assert_int_eq(loaded.session[1].threads, 3);
	ck_assert_int_eq(loaded.session[2].threads, 3);
	t_ok(LOAD("quantize", "x", "y", "Q4_0", "-t", "3"), &load_err);
	ck_assert_int_eq(loaded.quant_threads, 3);
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

int
main(void)
{
	const TTest *const tests[] = {
		options_of_other_programs_work,
		threads_are_the_default_of_each_session,
		errors_name_the_option_as_it_was_typed,
		options_without_an_equivalent_are_explained,
	};

	return t_main("cli_alias", 60, tests, NITEMS(tests));
}
