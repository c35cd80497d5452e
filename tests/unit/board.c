/* tests/unit/board.c - tests of the checks of a DSP board, on simulated file
 * systems. */
#include "tests/support/t.h"

#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/hexagon/board.h"

static char root[PATH_MAX / 2];

static void
put_file(const char *path, const char *text, mode_t mode)
{
	char full[PATH_MAX];

	t_put_file(root, path, text, strlen(text));
	snprintf(full, sizeof(full), "%s%s", root, path);
	ck_assert_int_eq(chmod(full, mode), 0);
}

/* Make a Radxa Dragon Q6A with a working kernel and firmware. */
static void
make_board(void)
{
	static int n;

	snprintf(root, sizeof(root), "%s/%d", t_tmpdir(), n++);
	mkdir(root, 0755);
	put_file("/sys/class/remoteproc/remoteproc0/name", "adsp\n", 0444);
	put_file("/sys/class/remoteproc/remoteproc0/state", "running\n", 0444);
	put_file("/sys/class/remoteproc/remoteproc1/name", "cdsp\n", 0444);
	put_file("/sys/class/remoteproc/remoteproc1/state", "running\n", 0444);
	put_file("/dev/fastrpc-cdsp", "", 0660);
	put_file("/dev/fastrpc-cdsp-secure", "", 0600);
	put_file("/dev/dma_heap/system", "", 0666);
	put_file("/usr/lib/dsp/cdsp/fastrpc_shell_unsigned_3", "", 0644);
	put_file("/opt/straddle/libstraddle-domain-v68.so", "", 0644);
	setenv("DSP_LIBRARY_PATH", "/opt/straddle;/usr/lib/dsp/cdsp", 1);
	unsetenv("ADSP_LIBRARY_PATH");
	unsetenv("LD_LIBRARY_PATH");
}

static struct device_probe probe;

static const struct device_check *
run_check(const struct board_user *u, const char *what)
{
	unsigned i;

	memset(&probe, 0, sizeof(probe));
	board_look(root, u, &probe);
	for (i = 0; i < probe.nchecks; i++)
		if (strcmp(probe.check[i].what, what) == 0)
			return &probe.check[i];
	ck_abort_msg("no check of %s", what);
	return NULL;
}

/* A user who does not own the files, in these groups. */
static struct board_user
make_user(unsigned ngids, gid_t gid)
{
	return (struct board_user){ .uid = geteuid() + 1, .ngids = ngids,
	    .gid = { gid } };
}

#define FAILS_WITH(c, message) do {					\
	const struct device_check *c_ = (c);				\
	ck_assert_msg(!c_->ok && strstr(c_->text, (message)) != NULL,	\
	    "ok %d: %s", c_->ok, c_->text);				\
} while (0)

START_TEST(a_machine_without_a_dsp_is_no_board)
{
	snprintf(root, sizeof(root), "%s", t_tmpdir());
	ck_assert(!board_is_one(root));
	FAILS_WITH(run_check(NULL, "board"), "no /dev/fastrpc-cdsp");
	ck_assert_uint_eq(probe.nchecks, 1);
}
END_TEST

START_TEST(a_missing_library_is_the_only_failure)
{
	struct board_user u = make_user(1, getegid());
	unsigned i, bad = 0;

	make_board();
	ck_assert(board_is_one(root));
	run_check(&u, "library");
	for (i = 0; i < probe.nchecks; i++)
		bad += !probe.check[i].ok;
	ck_assert_uint_eq(probe.nchecks, 6);
	ck_assert_uint_eq(bad, 1);
	FAILS_WITH(run_check(&u, "library"), "looked for libcdsprpc.so");
	ck_assert(run_check(&u, "device node")->ok);
	ck_assert_ptr_nonnull(strstr(run_check(&u, "device node")->text,
	    "/dev/fastrpc-cdsp may be opened"));
}
END_TEST

START_TEST(a_stopped_dsp_is_reported_with_the_start_command)
{
	make_board();
	put_file("/sys/class/remoteproc/remoteproc1/state", "offline\n", 0444);
	FAILS_WITH(run_check(NULL, "remoteproc"), "remoteproc1 is offline: as "
	    "root, echo start >/sys/class/remoteproc/remoteproc1/state");
	put_file("/sys/class/remoteproc/remoteproc1/name", "wpss\n", 0444);
	FAILS_WITH(run_check(NULL, "remoteproc"), "called cdsp");
}
END_TEST

START_TEST(a_user_without_access_is_told_the_group_to_join)
{
	struct board_user u = make_user(0, 0);
	const struct group *g = getgrgid(getegid());
	char text[128];

	make_board();
	snprintf(text, sizeof(text), "usermod -aG %s", g != NULL ?
	    g->gr_name : "?");
	if (getegid() != 0)	/* else root's group, which no user may join */
		FAILS_WITH(run_check(&u, "device node"), text);
	else
		FAILS_WITH(run_check(&u, "device node"), "for root alone");
	put_file("/dev/fastrpc-cdsp", "", 0600);
	FAILS_WITH(run_check(&u, "device node"), "GROUP=\"render\"");
	/* A third node that everybody may open. */
	put_file("/dev/adsprpc-smd", "", 0666);
	ck_assert(run_check(&u, "device node")->ok);
	u.uid = 0;
	ck_assert(run_check(&u, "device node")->ok);
	put_file("/dev/dma_heap/system", "", 0600);
	u.uid = geteuid() + 1;
	FAILS_WITH(run_check(&u, "shared memory"), "/dev/dma_heap/system");
}
END_TEST

START_TEST(a_missing_node_is_reported_with_the_kernel_option)
{
	char path[PATH_MAX];
	unsigned i;
	static const char *const removed[] = { "fastrpc-cdsp",
	    "fastrpc-cdsp-secure", "dma_heap/system" };

	make_board();
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/dev/%s", root, removed[i]);
		unlink(path);
	}
	ck_assert(board_is_one(root));
	FAILS_WITH(run_check(NULL, "device node"), "CONFIG_QCOM_FASTRPC");
	FAILS_WITH(run_check(NULL, "shared memory"),
	    "CONFIG_DMABUF_HEAPS_SYSTEM");
}
END_TEST

START_TEST(files_are_searched_where_the_library_searches)
{
	make_board();
	ck_assert_str_eq(run_check(NULL, "DSP module")->text,
	    "/opt/straddle/libstraddle-domain-v68.so");
	ck_assert_str_eq(run_check(NULL, "DSP shell")->text,
	    "/usr/lib/dsp/cdsp/fastrpc_shell_unsigned_3");
	setenv("DSP_LIBRARY_PATH", "/usr/lib/dsp", 1);
	FAILS_WITH(run_check(NULL, "DSP module"), "DSP_LIBRARY_PATH "
	    "(/usr/lib/dsp)");
	/* The shell is also looked for in standard folders. */
	ck_assert(run_check(NULL, "DSP shell")->ok);
	unsetenv("DSP_LIBRARY_PATH");
	setenv("ADSP_LIBRARY_PATH", "/none;/opt/straddle", 1);
	ck_assert(run_check(NULL, "DSP module")->ok);
	setenv("LD_LIBRARY_PATH", "/usr/lib:/vendor/lib64", 1);
	FAILS_WITH(run_check(NULL, "LD_LIBRARY_PATH"), "take it out");
}
END_TEST

/* As in an installation: of bin/straddle, lib/straddle is the other. */
START_TEST(the_module_is_searched_beside_the_program)
{
	const char *list;

	unsetenv("DSP_LIBRARY_PATH");
	unsetenv("ADSP_LIBRARY_PATH");
	board_module_path();
	ck_assert_ptr_nonnull(list = getenv("DSP_LIBRARY_PATH"));
	ck_assert_int_eq(*list, '/');
	ck_assert_ptr_nonnull(strstr(list, "/tests/unit;"));
	ck_assert_ptr_nonnull(strstr(list, "/tests/unit/../lib/straddle;"));
	ck_assert_ptr_nonnull(strstr(list, ";/usr/lib/dsp;"));
	/* A user's own folders stay. */
	setenv("DSP_LIBRARY_PATH", "/mine", 1);
	board_module_path();
	ck_assert_str_eq(getenv("DSP_LIBRARY_PATH"), "/mine");
	unsetenv("DSP_LIBRARY_PATH");
	setenv("ADSP_LIBRARY_PATH", "/mine", 1);
	board_module_path();
	ck_assert_ptr_null(getenv("DSP_LIBRARY_PATH"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_machine_without_a_dsp_is_no_board,
		a_missing_library_is_the_only_failure,
		a_stopped_dsp_is_reported_with_the_start_command,
		a_user_without_access_is_told_the_group_to_join,
		a_missing_node_is_reported_with_the_kernel_option,
		files_are_searched_where_the_library_searches,
		the_module_is_searched_beside_the_program,
	};

	return t_main("board", 30, tests, NITEMS(tests));
}
