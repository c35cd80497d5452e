/* tests/unit/conf.c - tests of config files, session specs, and conf_print().
 *
 * conf/NN.in are config files; NN.ok is the output of conf_print(), NN.err the
 * error message.  STRADDLE_BLESS=1 in the environment writes them again: review
 * the difference before you commit it. */
#include "tests/support/t.h"

#include <errno.h>
#include <glob.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/conf.h"
#include "config/keys.h"

enum { PATH_LEN = 512, TEXT_LEN = 64 << 10 };

static struct conf conf, conf2;		/* too large for the stack */

static const char *
tests_dir(void)
{
	const char *dir = getenv("STRADDLE_TESTS");

	return dir != NULL ? dir : "tests";
}

/* Read a file; returns text, "" when there is no file. */
static char *
read_text(const char *path, char *text)
{
	FILE *fp = fopen(path, "re");
	size_t n = 0;

	if (fp != NULL) {
		n = fread(text, 1, TEXT_LEN - 1, fp);
		fclose(fp);
	}
	text[n] = '\0';
	return text;
}

static void
write_text(const char *path, const char *text)
{
	FILE *fp = fopen(path, "we");

	ck_assert_msg(fp != NULL, "%s: %s", path, strerror(errno));
	fputs(text, fp);
	ck_assert_int_eq(fclose(fp), 0);
}

static char *
format_conf(const struct conf *c, char *text)
{
	FILE *fp = fmemopen(text, TEXT_LEN, "w");

	ck_assert_int_eq(conf_print(c, fp), 0);
	fclose(fp);
	return text;
}

/* Write text to a config file in the temporary folder; returns its path. */
static const char *
write_conf(const char *text)
{
	static char path[PATH_LEN];

	snprintf(path, sizeof(path), "%s/x.conf", t_tmpdir());
	write_text(path, text);
	return path;
}

static int
parse_file(const char *path, struct conf *c, struct err *e)
{
	memset(e, 0, sizeof(*e));
	conf_defaults(c);
	return conf_parse_file(path, c, e);
}

/* Compare the result of one NN.in with its .ok or .err. */
static void
check_golden(const char *in)
{
	char got[TEXT_LEN], want[TEXT_LEN], path[PATH_LEN];
	struct err e;
	int rc = parse_file(in, &conf, &e);

	strlcpy(path, in, sizeof(path));
	strlcpy(strrchr(path, '.'), rc == 0 ? ".ok" : ".err", 5);
	if (rc == 0)
		format_conf(&conf, got);
	else		/* without the folder, which depends on the caller */
		snprintf(got, sizeof(got), "%s\n", strstr(e.msg, in) == e.msg ?
		    strrchr(in, '/') + 1 - in + e.msg : e.msg);
	ck_assert_int_eq(e.kind, rc == 0 ? ERR_NONE : ERR_USAGE);
	if (getenv("STRADDLE_BLESS") != NULL)
		write_text(path, got);
	ck_assert_msg(strcmp(got, read_text(path, want)) == 0,
	    "%s: got\n%swanted\n%s", in, got, want);
	conf_free(&conf);
}

START_TEST(golden_files_match)
{
	char pattern[PATH_LEN];
	glob_t g;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/conf/*.in", tests_dir());
	ck_assert_int_eq(glob(pattern, 0, NULL, &g), 0);
	ck_assert_uint_ge(g.gl_pathc, 40);
	for (i = 0; i < g.gl_pathc; i++)
		check_golden(g.gl_pathv[i]);
	globfree(&g);
}
END_TEST

START_TEST(shipped_files_are_valid)
{
	static const struct {
		const char *name;
		int nsessions;
	} shipped[] = {
		{ "minimal.conf", 2 }, { "demo.conf", 4 }, { "example.conf", 2 }
	};
	char path[PATH_LEN], text[TEXT_LEN], key[64];
	const struct setting *s;
	struct err e;
	regex_t re;
	unsigned i;

	for (i = 0; i < NITEMS(shipped); i++) {
		snprintf(path, sizeof(path), "%s/../config/%s", tests_dir(),
		    shipped[i].name);
		t_ok(parse_file(path, &conf, &e), &e);
		ck_assert_int_eq(conf.nsessions, shipped[i].nsessions);
		ck_assert_ptr_nonnull(conf.model_path);
		conf_free(&conf);
	}
	/* The last one, example.conf, shows every key. */
	read_text(path, text);
	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (s->key == NULL)
			continue;
		snprintf(key, sizeof(key), "^[#\t]*%s *= ", s->key);
		ck_assert_int_eq(regcomp(&re, key, REG_NEWLINE | REG_NOSUB), 0);
		ck_assert_msg(regexec(&re, text, 0, NULL, 0) == 0, "no %s",
		    key);
		regfree(&re);
	}
}
END_TEST

START_TEST(the_demo_config_uses_the_test_model)
{
	char path[PATH_LEN];
	struct err e;
	int i;

	snprintf(path, sizeof(path), "%s/../config/demo.conf", tests_dir());
	t_ok(parse_file(path, &conf, &e), &e);
	ck_assert_int_eq(access(conf.model_path, F_OK), 0);
	ck_assert_int_eq(conf.ctx_tok, 512);
	for (i = 0; i < 4; i++) {
		ck_assert_str_eq(conf.session[i].device, "cpu");
		ck_assert_uint_eq(conf.session[i].cap_bytes, 64 * MIB);
	}
	conf_free(&conf);
}
END_TEST

START_TEST(a_model_path_is_relative_to_the_config_file)
{
	char want[PATH_LEN], cwd[PATH_LEN];
	struct err e;

	t_ok(parse_file(write_conf("model = \"m/x.gguf\""), &conf, &e), &e);
	snprintf(want, sizeof(want), "%s/m/x.gguf", t_tmpdir());
	ck_assert_str_eq(conf.model_path, want);
	conf_free(&conf);

	t_ok(parse_file(write_conf("model = \"/m/x.gguf\""), &conf, &e), &e);
	ck_assert_str_eq(conf.model_path, "/m/x.gguf");
	conf_free(&conf);

	/* A config file in the working directory adds no folder. */
	write_conf("model = \"m/x.gguf\"");
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	ck_assert_int_eq(chdir(t_tmpdir()), 0);
	t_ok(parse_file("x.conf", &conf, &e), &e);
	ck_assert_int_eq(chdir(cwd), 0);
	ck_assert_str_eq(conf.model_path, "m/x.gguf");
	conf_free(&conf);
}
END_TEST

START_TEST(a_printed_model_path_is_absolute)
{
	char text[TEXT_LEN], cwd[PATH_LEN], want[2 * PATH_LEN];

	conf_defaults(&conf);
	conf.model_path = strdup("some/m.gguf");
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(want, sizeof(want), "model = \"%s/some/m.gguf\"\n", cwd);
	ck_assert_ptr_nonnull(strstr(format_conf(&conf, text), want));
	conf_free(&conf);
}
END_TEST

START_TEST(sessions_record_their_line)
{
	struct err e;

	t_ok(parse_file(write_conf("# one\n/* two\nthree */\nsession a\n{\n\n"
	    "cap = 1GiB }\nsession b { }\n"), &conf, &e), &e);
	ck_assert_int_eq(conf.nsessions, 2);
	/* The line of the opening brace. */
	ck_assert_ptr_nonnull(strstr(conf.session[0].where, "/x.conf:5"));
	ck_assert_ptr_nonnull(strstr(conf.session[1].where, "/x.conf:8"));
	conf_free(&conf);
}
END_TEST

START_TEST(a_long_path_keeps_its_end_and_line)
{
	char path[PATH_LEN], name[120];
	struct err e;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%s-end.conf", t_tmpdir(), name);
	write_text(path, "\n\nsession a { }\nbatch = 0\n");
	ck_assert_int_lt(parse_file(path, &conf, &e), 0);
	ck_assert_ptr_nonnull(strstr(conf.session[0].where, "-end.conf:3"));
	ck_assert_ptr_nonnull(strstr(e.msg, "-end.conf:4: batch: '0'"));
	conf_free(&conf);
}
END_TEST

START_TEST(unreadable_and_binary_files_are_refused)
{
	char path[PATH_LEN];
	struct err e;

	ck_assert_int_eq(parse_file("/no/such/file", &conf, &e), -ENOENT);
	ck_assert_str_eq(e.msg, "/no/such/file: No such file or directory");
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_int_eq(parse_file(t_tmpdir(), &conf, &e), -EISDIR);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_int_eq(parse_file("/dev/zero", &conf, &e), -EFBIG);
	ck_assert_ptr_nonnull(strstr(e.msg, "1048576 bytes are allowed"));

	strlcpy(path, write_conf(""), sizeof(path));
	ck_assert_int_eq(truncate(path, 10), 0);
	ck_assert_int_eq(parse_file(path, &conf, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, ":1: NUL byte"));
	conf_free(&conf);
}
END_TEST

START_TEST(environment_variables_are_expanded)
{
	struct err e;

	ck_assert_int_eq(setenv("STRADDLE_T", "/d", 1), 0);
	t_ok(parse_file(write_conf("model = \"${STRADDLE_T}/\\${x}.gguf\""),
	    &conf, &e), &e);
	ck_assert_str_eq(conf.model_path, "/d/${x}.gguf");
	conf_free(&conf);
}
END_TEST

START_TEST(unset_variables_are_refused)
{
	struct err e;

	ck_assert_int_eq(unsetenv("STRADDLE_U"), 0);
	ck_assert_int_lt(parse_file(write_conf("# ${STRADDLE_U}\n"
	    "model = \"/a/${STRADDLE_U}\""), &conf, &e), 0);
	ck_assert_msg(strstr(e.msg, "x.conf:2: the environment "
	    "variable STRADDLE_U is not set: set it, or write "
	    "${STRADDLE_U:-DEFAULT}") != NULL,
	    "%s", e.msg);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_int_lt(parse_file(write_conf("model = ${STRADDLE_U}"), &conf,
	    &e), 0);
	ck_assert_ptr_nonnull(strstr(e.msg, "variable STRADDLE_U is not set"));

	t_ok(parse_file(write_conf("model = \"${STRADDLE_U:-/e}/x\""), &conf,
	    &e), &e);
	ck_assert_str_eq(conf.model_path, "/e/x");
	conf_free(&conf);
	t_ok(parse_file(write_conf("model = '/${STRADDLE_U}'"), &conf, &e), &e);
	ck_assert_str_eq(conf.model_path, "/${STRADDLE_U}");
	conf_free(&conf);
	ck_assert_int_eq(setenv("STRADDLE_U", "", 1), 0);
	t_ok(parse_file(write_conf("model = \"/a${STRADDLE_U}\""), &conf, &e),
	    &e);
	ck_assert_str_eq(conf.model_path, "/a");
	conf_free(&conf);
}
END_TEST

START_TEST(a_spec_sets_the_fields_of_a_session)
{
	struct session_conf s;
	struct err e;
	int times;

	t_ok(conf_parse_session_spec("cpu", "-s #1", &s, &times, &e), &e);
	ck_assert_int_eq(times, 1);
	ck_assert_str_eq(s.device, "cpu");
	ck_assert_str_eq(s.name, "");
	ck_assert_str_eq(s.cores, "");
	ck_assert_str_eq(s.where, "-s #1");
	ck_assert_int_eq(s.node, -1);
	ck_assert_int_eq(s.cap_given, 0);
	ck_assert_int_eq(s.threads, 0);
	ck_assert_int_eq(s.priority.kind, PRIO_DEFAULT);

	t_ok(conf_parse_session_spec("a.b=hexagon,cores=0-3,6,9-10,cap=3.5GiB,"
	    "node=2,priority=nice:-5,threads=2", "-s #1", &s, &times, &e), &e);
	ck_assert_str_eq(s.device, "hexagon");
	ck_assert_str_eq(s.name, "a.b");
	ck_assert_str_eq(s.cores, "0-3,6,9-10");
	ck_assert_uint_eq(s.cap_bytes, 3758096384);
	ck_assert_int_eq(s.cap_given, 1);
	ck_assert_int_eq(s.node, 2);
	ck_assert_int_eq(s.priority.kind, PRIO_NICE);
	ck_assert_int_eq(s.priority.level, -5);
	ck_assert_int_eq(s.threads, 2);

	t_ok(conf_parse_session_spec("cpu,priority=fifo:10,cores=1,3", "-s #1",
	    &s, &times, &e), &e);
	ck_assert_str_eq(s.cores, "1,3");
	ck_assert_int_eq(s.priority.kind, PRIO_REALTIME);
	ck_assert_int_eq(s.priority.level, 10);

	t_ok(conf_parse_session_spec("12*null,cap=1048576", "-s #1", &s,
	    &times, &e), &e);
	ck_assert_int_eq(times, 12);
	ck_assert_str_eq(s.device, "null");
	ck_assert_uint_eq(s.cap_bytes, MIB);
}
END_TEST

START_TEST(a_bad_spec_is_refused_with_its_number)
{
	static const struct {
		const char *spec, *message;
	} bad[] = {
		{ "", "-s #2: device: '' is not a device kind" },
		{ "CPU", "'CPU' is not a device kind" },
		{ "=cpu", "'' is not a session name" },
		{ "a b=cpu", "'a b' is not a session name" },
		{ "..=cpu", "'..' is not a session name" },
		{ "-x=cpu", "'-x' is not a session name" },
		{ "a/b=cpu", "'a/b' is not a session name" },
		{ "a=", "session a: device: '' is not" },
		{ "cores=0-1", "cores comes before the device" },
		{ "cpu,", "'' is not KEY=VALUE" },
		{ "cpu,cap", "'cap' is not KEY=VALUE" },
		{ "cpu,,cap=1", "'' is not KEY=VALUE" },
		{ "cpu,speed=9", "unknown key 'speed': known here are device, "
		    "cores, node, cap, threads, priority" },
		{ "cpu,cap=0", "-s #2: cap: '0' is zero bytes: give at least" },
		{ "a=cpu,cap=0.5B", "-s #2: session a: cap: '0.5B' is zero bytes" },
		{ "cpu,cap=64", "cap: 64 means 64 bytes: did you mean 64MiB?" },
		{ "cpu,cap=1.5", "1.5 means 1 byte: did you mean 1.5MiB?" },
		{ "cpu,cap=1048575", "1048575 means 1048575 bytes: did you" },
		{ "cpu,cap=-1", "cap: '-1' is not a size" },
		{ "cpu,cap=8EiB", "cap: '8EiB' is too large" },
		{ "cpu,cap=1GiB,2", "cap: '1GiB,2' is not a size" },
		{ "cpu,cap=1K,cap=2K", "cap is set twice" },
		{ "cpu,device=null", "device is set twice" },
		{ "cpu,cores=", "cores: '' is not a core list" },
		{ "cpu,cores=3-1", "cores: '3-1' is not a core list" },
		{ "cpu,cores=0,0", "cores: '0,0' names core 0 twice" },
		{ "cpu,cores=1024", "cores: '1024' is not a core list" },
		{ "cpu,node=-1", "node: '-1' is too small: must be 0 to 1023" },
		{ "cpu,threads=0",
		    "threads: '0' is too small: must be 1 to 1024" },
		{ "cpu,threads=1025", "threads: '1025' is too large" },
		{ "cpu,priority=high", "'high' is not a priority: write def" },
		{ "cpu,priority=nice:20",
		    "'20' is too large: must be -20 to 19" },
		{ "cpu,priority=fifo:0", "'0' is too small: must be 1 to 99" },
		{ "cpu,priority=nice:", "'' is not a whole number" },
		{ "cpu,thread=2", "unknown key 'thread': did you mean threads?" },
		{ "cpu,memory=1G", "did you mean cap?" },
		{ "cpu,temp=1", "unknown key 'temp': known here are device" },
		{ "0*cpu", "'0' is too small: must be 1 to 64" },
		{ "65*cpu", "'65' is too large: must be 1 to 64" },
		{ "*cpu", "'' is not a whole number: must be 1 to 64" },
		{ "4*a=cpu", "sessions made by 4* are named by their index" },
		{ "1*a=cpu", "leave the name out" },
		{ "4*", "device: '' is not a device kind" },
		{ "a=4*cpu", "'4*cpu' is not a device kind" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=cpu", "not a session name" },
		{ "aaaaaaaaaaaaaaaaaaaaa", "not a device kind" },
	};
	struct session_conf s;
	struct err e;
	unsigned i;
	int rc, times;

	for (i = 0; i < NITEMS(bad); i++) {
		rc = conf_parse_session_spec(bad[i].spec, "-s #2", &s, &times,
		    &e);
		ck_assert_msg(rc < 0, "'%s' was accepted", bad[i].spec);
		ck_assert_msg(strncmp(e.msg, "-s #2: ", 7) == 0 &&
		    strstr(e.msg, bad[i].message) != NULL, "'%s': %s",
		    bad[i].spec, e.msg);
		ck_assert_int_eq(e.kind, ERR_USAGE);
	}
}
END_TEST

static void
add_session(struct conf *c, const char *spec)
{
	char where[32];
	struct err e;
	int times;

	snprintf(where, sizeof(where), "-s #%d", c->nsessions + 1);
	t_ok(conf_parse_session_spec(spec, where, &c->session[c->nsessions++],
	    &times, &e), &e);
}

START_TEST(the_default_is_one_cpu_session)
{
	struct err e;

	conf_defaults(&conf);
	t_ok(conf_check(&conf, &e), &e);
	ck_assert_int_eq(conf.nsessions, 1);
	ck_assert_str_eq(conf.session[0].name, "cpu0");
	ck_assert_str_eq(conf.session[0].device, "cpu");
	ck_assert_int_eq(conf.session[0].cap_given, 0);
	ck_assert_int_eq(conf.session[0].node, -1);
}
END_TEST

START_TEST(unnamed_sessions_are_named_by_device_and_index)
{
	static const char *const specs[] = {
		"cpu", "hexagon", "cpu", "cpu3=null", "cpu", "x=cpu", "cpu",
		"hexagon",
	}, *const names[] = {
		"cpu0", "hexagon0", "cpu1", "cpu3", "cpu2", "x", "cpu4",
		"hexagon1",
	};
	struct err e;
	unsigned i;

	conf_defaults(&conf);
	for (i = 0; i < NITEMS(specs); i++)
		add_session(&conf, specs[i]);
	t_ok(conf_check(&conf, &e), &e);
	for (i = 0; i < NITEMS(specs); i++)
		ck_assert_str_eq(conf.session[i].name, names[i]);
}
END_TEST

/* Sessions that name a device differently share its memory all the same. */
START_TEST(number_0_is_the_first_device)
{
	static const char *const specs[] = {
		"ascend", "ascend,port=0", "ascend,port=1",
	}, *const ports[] = { "", "", "1" };
	struct err e;
	unsigned i;

	conf_defaults(&conf);
	for (i = 0; i < NITEMS(specs); i++)
		add_session(&conf, specs[i]);
	t_ok(conf_check(&conf, &e), &e);
	for (i = 0; i < NITEMS(specs); i++)
		ck_assert_str_eq(conf.session[i].port, ports[i]);
}
END_TEST

START_TEST(a_given_name_wins_over_a_generated_one)
{
	struct err e;

	conf_defaults(&conf);
	add_session(&conf, "cpu");
	add_session(&conf, "cpu0=null");
	t_ok(conf_check(&conf, &e), &e);
	ck_assert_str_eq(conf.session[0].name, "cpu1");
	ck_assert_str_eq(conf.session[1].name, "cpu0");
}
END_TEST

START_TEST(duplicate_session_names_are_refused)
{
	struct err e;

	conf_defaults(&conf);
	add_session(&conf, "a=cpu");
	add_session(&conf, "cpu");
	add_session(&conf, "a=cpu");
	ck_assert_int_eq(conf_check(&conf, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "-s #3: session a: "));
	ck_assert_ptr_nonnull(strstr(e.msg, "-s #1"));
	ck_assert_int_eq(e.kind, ERR_USAGE);
}
END_TEST

START_TEST(unavailable_cores_are_refused)
{
	struct err e;

	conf_defaults(&conf);
	add_session(&conf, "a=cpu,cores=0-1023");
	ck_assert_int_eq(conf_check(&conf, &e), -EINVAL);
	ck_assert_msg(strncmp(e.msg, "-s #1: session a: cores: cores ", 31) ==
	    0, "%s", e.msg);
	ck_assert_int_eq(e.kind, ERR_USAGE);

	conf_defaults(&conf);
	add_session(&conf, "a=cpu,cores=1023");
	ck_assert_int_eq(conf_check(&conf, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "core 1023 cannot be used (this machine "
	    "has no core 1023): ") != NULL, "%s", e.msg);
}
END_TEST

/* A random value that key_set() accepts, or "" (one time in three). */
static void
random_value(const struct setting *k, char *buf, size_t len)
{
	static const char *const cores[] = { "big", "little", "0-3,6", "1023" };
	static const char *const paths[] = {
		"/m.gguf", "/a b/\"c\"/$HOME/${x}\\.gguf", "/#/*'//,{}=()+\n\t",
		"/\xc3\xa4\xff",
	};
	double x;

	*buf = '\0';
	if (t_rand_below(3) == 0)
		return;
	switch (k->type) {
	case KEY_BOOL:
		strlcpy(buf, t_rand_below(2) ? "true" : "false", len);
		break;
	case KEY_INT:
		snprintf(buf, len, "%.0f", k->lo +
		    (double)t_rand_below((uint64_t)(k->hi - k->lo) + 1));
		break;
	case KEY_REAL:
		x = k->lo + (k->hi - k->lo) * (double)t_rand_below(1 << 30) /
		    (1 << 30);
		units_format_real(x, buf);
		break;
	case KEY_SEED:
		snprintf(buf, len, "%llu", (unsigned long long)t_rand());
		break;
	case KEY_CAP:
		snprintf(buf, len, "%lluB", 1 + (unsigned long long)
		    (t_rand() >> (1 + t_rand_below(60))));
		break;
	case KEY_KV_TYPE:
	case KEY_KV_ONE:
		strlcpy(buf, kv_type_name((enum kv_type)t_rand_below(
		    KV_NTYPES)), len);
		break;
	case KEY_DEVICE:
		strlcpy(buf, t_rand_below(2) ? "null" : "x86", len);
		break;
	case KEY_CORES:
		strlcpy(buf, cores[t_rand_below(NITEMS(cores))], len);
		break;
	case KEY_WORD:
		strlcpy(buf, k->words[t_rand_below(2)], len);
		break;
	case KEY_NAME:
		snprintf(buf, len, "p.%u", (unsigned)t_rand_below(3));
		break;
	case KEY_PORT:		/* valid with one device: conf/41, 42 */
	case KEY_SIZE:
		break;
	case KEY_PRIORITY:
		snprintf(buf, len, t_rand_below(2) ? "nice:%d" : "fifo:%d",
		    1 + (int)t_rand_below(19));
		break;
	default:
		strlcpy(buf, paths[t_rand_below(NITEMS(paths))], len);
	}
}

static void
randomize_section(enum section section, void *base)
{
	const struct setting *s = NULL;
	char text[256];
	struct err e;

	while ((s = setting_next(section, s)) != NULL) {
		random_value(s, text, sizeof(text));
		if (*text != '\0')
			t_ok(key_set(s, base, text, &e), &e);
	}
}

/* Equal in everything that a config file can set. */
static void
expect_equal(const struct conf *a, const struct conf *b)
{
	const struct session_conf *s, *t;
	int i;

	ck_assert_pstr_eq(a->model_path, b->model_path);
	ck_assert_int_eq(a->thinking, b->thinking);
	ck_assert_int_eq(a->ctx_tok, b->ctx_tok);
	ck_assert_int_eq(a->batch_rows, b->batch_rows);
	ck_assert_int_eq(a->kv_type_k, b->kv_type_k);
	ck_assert_int_eq(a->kv_type_v, b->kv_type_v);
	ck_assert_int_eq(a->half_layers, b->half_layers);
	ck_assert_int_eq(a->strict, b->strict);
	ck_assert_int_eq(a->recover, b->recover);
	ck_assert(a->sampling.temp == b->sampling.temp);
	ck_assert_int_eq(a->sampling.top_k, b->sampling.top_k);
	ck_assert(a->sampling.top_p == b->sampling.top_p);
	ck_assert(a->sampling.min_p == b->sampling.min_p);
	ck_assert(a->sampling.repeat_penalty == b->sampling.repeat_penalty);
	ck_assert_int_eq(a->sampling.repeat_last_n, b->sampling.repeat_last_n);
	ck_assert_int_eq(a->sampling.seed_given, b->sampling.seed_given);
	ck_assert_uint_eq(a->sampling.seed, b->sampling.seed);
	ck_assert_int_eq(a->nsessions, b->nsessions);
	for (i = 0; i < a->nsessions; i++) {
		s = &a->session[i];
		t = &b->session[i];
		ck_assert_str_eq(s->name, t->name);
		ck_assert_str_eq(s->device, t->device);
		ck_assert_str_eq(s->process, t->process);
		ck_assert_str_eq(s->cores, t->cores);
		ck_assert_int_eq(s->node, t->node);
		ck_assert_uint_eq(s->cap_bytes, t->cap_bytes);
		ck_assert_int_eq(s->cap_given, t->cap_given);
		ck_assert_int_eq(s->threads, t->threads);
		ck_assert_int_eq(s->priority.kind, t->priority.kind);
		ck_assert_int_eq(s->priority.level, t->priority.level);
	}
}

START_TEST(a_printed_config_parses_to_the_same)
{
	char text[TEXT_LEN], again[TEXT_LEN], name[MAX_NAME];
	struct err e;
	int i, j;

	for (i = 0; i < 300; i++) {
		conf_defaults(&conf);
		randomize_section(SECTION_TOP, &conf);
		randomize_section(SECTION_SAMPLING, &conf);
		conf.nsessions = (int)t_rand_below(MAX_SESSIONS + 1);
		for (j = 0; j < conf.nsessions; j++) {
			session_defaults(&conf.session[j]);
			snprintf(name, sizeof(name), "%c%d",
			    "aZ_0"[t_rand_below(4)], j);
			t_ok(session_set_name(&conf.session[j], name, &e), &e);
			randomize_section(SECTION_SESSION, &conf.session[j]);
		}
		t_ok(parse_file(write_conf(format_conf(&conf, text)), &conf2,
		    &e), &e);
		expect_equal(&conf, &conf2);
		ck_assert_str_eq(format_conf(&conf2, again), text);
		conf_free(&conf);
		conf_free(&conf2);
	}
}
END_TEST

START_TEST(defaults_match_the_manual)
{
	conf_defaults(&conf);
	ck_assert_int_eq(conf.ctx_tok, CTX_DEFAULT);
	ck_assert_int_eq(conf.batch_rows, 128);
	ck_assert_int_eq(conf.kv_type_k, KV_F16);
	ck_assert_int_eq(conf.kv_type_v, KV_F16);
	ck_assert_int_eq(conf.half_layers, 0);
	ck_assert_int_eq(conf.strict, 0);
	ck_assert_int_eq(conf.recover, 16);
	ck_assert_int_eq(conf.thinking, THINKING_HIDE);
	ck_assert(conf.sampling.temp == 0.8);
	ck_assert_int_eq(conf.sampling.top_k, 40);
	ck_assert(conf.sampling.top_p == 0.95);
	ck_assert(conf.sampling.min_p == 0.05);
	ck_assert(conf.sampling.repeat_penalty == 1);
	ck_assert_int_eq(conf.sampling.repeat_last_n, 64);
	ck_assert_int_eq(conf.sampling.seed_given, 0);
	ck_assert_int_eq(conf.n_predict, 128);
	ck_assert_int_eq(conf.parallel, 1);
	ck_assert_int_eq(conf.bench_prompt, 512);
	ck_assert_int_eq(conf.bench_reps, 3);
	ck_assert_int_eq(conf.verbose, 1);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		golden_files_match,
		shipped_files_are_valid,
		the_demo_config_uses_the_test_model,
		a_model_path_is_relative_to_the_config_file,
		a_printed_model_path_is_absolute,
		sessions_record_their_line,
		a_long_path_keeps_its_end_and_line,
		unreadable_and_binary_files_are_refused,
		environment_variables_are_expanded,
		unset_variables_are_refused,
		a_spec_sets_the_fields_of_a_session,
		a_bad_spec_is_refused_with_its_number,
		the_default_is_one_cpu_session,
		unnamed_sessions_are_named_by_device_and_index,
		number_0_is_the_first_device,
		a_given_name_wins_over_a_generated_one,
		duplicate_session_names_are_refused,
		unavailable_cores_are_refused,
		a_printed_config_parses_to_the_same,
		defaults_match_the_manual,
	};

	return t_main("conf", 30, tests, NITEMS(tests));
}
