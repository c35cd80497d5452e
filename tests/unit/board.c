/* tests/unit/board.c - what stands in the way of a DSP, on boards made of
 * files. */
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

/* PATH below the root, with its folders and this text. */
static void
put(const char *path, const char *text, mode_t mode)
{
	char full[PATH_MAX], *slash;
	FILE *fp;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = full + strlen(root) + 1;
	    (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0755);
	}
	unlink(full);
	ck_assert_ptr_nonnull(fp = fopen(full, "w"));
	fputs(text, fp);
	fclose(fp);
	ck_assert_int_eq(chmod(full, mode), 0);
}

/* A Radxa Dragon Q6A whose kernel and firmware are as they should be. */
static void
make_board(void)
{
	static int n;

	snprintf(root, sizeof(root), "%s/%d", t_tmpdir(), n++);
	mkdir(root, 0755);
	put("/sys/class/remoteproc/remoteproc0/name", "adsp\n", 0444);
	put("/sys/class/remoteproc/remoteproc0/state", "running\n", 0444);
	put("/sys/class/remoteproc/remoteproc1/name", "cdsp\n", 0444);
	put("/sys/class/remoteproc/remoteproc1/state", "running\n", 0444);
	put("/dev/fastrpc-cdsp", "", 0660);
	put("/dev/fastrpc-cdsp-secure", "", 0600);
	put("/dev/dma_heap/system", "", 0666);
	put("/usr/lib/dsp/cdsp/fastrpc_shell_unsigned_3", "", 0644);
	put("/opt/straddle/libstraddle-domain-v68.so", "", 0644);
	setenv("DSP_LIBRARY_PATH", "/opt/straddle;/usr/lib/dsp/cdsp", 1);
	unsetenv("ADSP_LIBRARY_PATH");
	unsetenv("LD_LIBRARY_PATH");
}

static struct device_probe probe;

static const struct device_check *
look(const struct board_user *u, const char *what)
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

/* A stranger to the files' owner, in these groups. */
static struct board_user
stranger(unsigned ngids, gid_t gid)
{
	return (struct board_user){ .uid = geteuid() + 1, .ngids = ngids,
	    .gid = { gid } };
}

#define IN_THE_WAY(c, says) do {					\
	const struct device_check *c_ = (c);				\
	ck_assert_msg(!c_->ok && strstr(c_->text, (says)) != NULL,	\
	    "ok %d: %s", c_->ok, c_->text);				\
} while (0)

START_TEST(a_machine_without_a_dsp_is_none_of_its_boards)
{
	snprintf(root, sizeof(root), "%s", t_tmpdir());
	ck_assert(!board_is_one(root));
	IN_THE_WAY(look(NULL, "board"), "no /dev/fastrpc-cdsp");
	ck_assert_uint_eq(probe.nchecks, 1);
}
END_TEST

START_TEST(a_board_that_has_all_but_the_library)
{
	struct board_user u = stranger(1, getegid());
	unsigned i, bad = 0;

	make_board();
	ck_assert(board_is_one(root));
	look(&u, "library");
	for (i = 0; i < probe.nchecks; i++)
		bad += !probe.check[i].ok;
	ck_assert_uint_eq(probe.nchecks, 6);
	ck_assert_uint_eq(bad, 1);
	IN_THE_WAY(look(&u, "library"), "looked for libcdsprpc.so");
	ck_assert(look(&u, "device node")->ok);
	ck_assert_ptr_nonnull(strstr(look(&u, "device node")->text,
	    "/dev/fastrpc-cdsp may be opened"));
}
END_TEST

START_TEST(the_state_of_the_dsp_is_told_with_what_starts_it)
{
	make_board();
	put("/sys/class/remoteproc/remoteproc1/state", "offline\n", 0444);
	IN_THE_WAY(look(NULL, "remoteproc"), "remoteproc1 is offline: as "
	    "root, echo start >/sys/class/remoteproc/remoteproc1/state");
	put("/sys/class/remoteproc/remoteproc1/name", "wpss\n", 0444);
	IN_THE_WAY(look(NULL, "remoteproc"), "called cdsp");
}
END_TEST

START_TEST(who_may_not_open_the_node_is_told_which_group_may)
{
	struct board_user u = stranger(0, 0);
	const struct group *g = getgrgid(getegid());
	char text[128];

	make_board();
	snprintf(text, sizeof(text), "usermod -aG %s", g != NULL ?
	    g->gr_name : "?");
	if (getegid() != 0)	/* root's group lets nobody in */
		IN_THE_WAY(look(&u, "device node"), text);
	else
		IN_THE_WAY(look(&u, "device node"), "for root alone");
	put("/dev/fastrpc-cdsp", "", 0600);
	IN_THE_WAY(look(&u, "device node"), "GROUP=\"render\"");
	/* The third one lets everybody in. */
	put("/dev/adsprpc-smd", "", 0666);
	ck_assert(look(&u, "device node")->ok);
	u.uid = 0;
	ck_assert(look(&u, "device node")->ok);
	put("/dev/dma_heap/system", "", 0600);
	u.uid = geteuid() + 1;
	IN_THE_WAY(look(&u, "shared memory"), "/dev/dma_heap/system");
}
END_TEST

START_TEST(a_dsp_that_runs_without_a_node_says_what_the_kernel_lacks)
{
	char path[PATH_MAX];
	unsigned i;
	static const char *const gone[] = { "fastrpc-cdsp",
	    "fastrpc-cdsp-secure", "dma_heap/system" };

	make_board();
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/dev/%s", root, gone[i]);
		unlink(path);
	}
	ck_assert(board_is_one(root));
	IN_THE_WAY(look(NULL, "device node"), "CONFIG_QCOM_FASTRPC");
	IN_THE_WAY(look(NULL, "shared memory"), "CONFIG_DMABUF_HEAPS_SYSTEM");
}
END_TEST

START_TEST(files_are_looked_for_where_the_library_looks)
{
	make_board();
	ck_assert_str_eq(look(NULL, "DSP module")->text,
	    "/opt/straddle/libstraddle-domain-v68.so");
	ck_assert_str_eq(look(NULL, "DSP shell")->text,
	    "/usr/lib/dsp/cdsp/fastrpc_shell_unsigned_3");
	setenv("DSP_LIBRARY_PATH", "/usr/lib/dsp", 1);
	IN_THE_WAY(look(NULL, "DSP module"), "DSP_LIBRARY_PATH "
	    "(/usr/lib/dsp)");
	/* The shell has places of its own. */
	ck_assert(look(NULL, "DSP shell")->ok);
	unsetenv("DSP_LIBRARY_PATH");
	setenv("ADSP_LIBRARY_PATH", "/none;/opt/straddle", 1);
	ck_assert(look(NULL, "DSP module")->ok);
	setenv("LD_LIBRARY_PATH", "/usr/lib:/vendor/lib64", 1);
	IN_THE_WAY(look(NULL, "LD_LIBRARY_PATH"), "take it out");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_machine_without_a_dsp_is_none_of_its_boards,
		a_board_that_has_all_but_the_library,
		the_state_of_the_dsp_is_told_with_what_starts_it,
		who_may_not_open_the_node_is_told_which_group_may,
		a_dsp_that_runs_without_a_node_says_what_the_kernel_lacks,
		files_are_looked_for_where_the_library_looks,
	};

	return t_main("board", 30, tests, NITEMS(tests));
}
