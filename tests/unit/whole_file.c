/* tests/unit/whole_file.c - tests of files that appear when they are whole, with
 * and without the file system's help. */
#include "tests/support/t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/print/whole_file.h"

static const int kinds[] = { 0, WHOLE_NAMED };
static char path[512];
static struct err e;

static void
set_up(void)
{
	char cmd[600];

	snprintf(cmd, sizeof(cmd), "rm -rf %s/*", t_tmpdir());
	ck_assert_int_eq(system(cmd), 0);
	snprintf(path, sizeof(path), "%s/out", t_tmpdir());
}

/* Entries of the folder. */
static int
count_files(void)
{
	DIR *d = opendir(t_tmpdir());
	int n = -2;			/* . and .. */

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
write_text(const char *text)
{
	FILE *fp = fopen(path, "w");

	fputs(text, fp);
	fclose(fp);
}

static const char *
read_text(void)
{
	static char text[64];
	FILE *fp = fopen(path, "r");

	if (fp == NULL)
		return "";
	text[fread(text, 1, sizeof(text) - 1, fp)] = '\0';
	fclose(fp);
	return text;
}

START_TEST(a_file_appears_when_it_is_committed)
{
	struct whole_file f;
	struct stat st;
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++) {
		set_up();
		umask(027);
		t_ok(whole_file_open(&f, path, kinds[i], &e), &e);
		t_ok(whole_file_write(&f, "new ", 4, &e), &e);
		t_ok(whole_file_write(&f, "text", 4, &e), &e);
		ck_assert_str_eq(read_text(), "");
		t_ok(whole_file_commit(&f, &e), &e);
		whole_file_close(&f);
		ck_assert_str_eq(read_text(), "new text");
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 0777, 0640);
		ck_assert_int_eq(count_files(), 1);
	}
}
END_TEST

START_TEST(a_file_that_is_not_committed_leaves_nothing)
{
	struct whole_file f;
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++) {
		set_up();
		t_ok(whole_file_open(&f, path, kinds[i], &e), &e);
		t_ok(whole_file_write(&f, "x", 1, &e), &e);
		if (kinds[i] == WHOLE_NAMED)
			ck_assert_int_eq(count_files(), 1);
		whole_file_close(&f);
		ck_assert_int_eq(count_files(), 0);
	}
}
END_TEST

START_TEST(an_existing_file_is_replaced_only_when_allowed)
{
	struct whole_file f;
	struct stat st;
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++) {
		set_up();
		write_text("old");
		ck_assert_int_eq(chmod(path, 0600), 0);
		ck_assert_int_eq(whole_file_open(&f, path, kinds[i], &e),
		    -EEXIST);
		ck_assert_int_eq(e.kind, ERR_USAGE);
		whole_file_close(&f);
		t_ok(whole_file_open(&f, path, kinds[i] | WHOLE_REPLACE, &e),
		    &e);
		t_ok(whole_file_write(&f, "new", 3, &e), &e);
		ck_assert_str_eq(read_text(), "old");
		t_ok(whole_file_commit(&f, &e), &e);
		whole_file_close(&f);
		ck_assert_str_eq(read_text(), "new");
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 0777, 0600);
		ck_assert_int_eq(count_files(), 1);
	}
}
END_TEST

START_TEST(a_file_that_appears_meanwhile_is_kept)
{
	struct whole_file f;
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++) {
		set_up();
		t_ok(whole_file_open(&f, path, kinds[i], &e), &e);
		t_ok(whole_file_write(&f, "mine", 4, &e), &e);
		write_text("theirs");
		ck_assert_int_eq(whole_file_commit(&f, &e), -EEXIST);
		whole_file_close(&f);
		ck_assert_str_eq(read_text(), "theirs");
		ck_assert_int_eq(count_files(), 1);
	}
}
END_TEST

START_TEST(a_pipe_takes_the_bytes_only_when_allowed)
{
	struct whole_file f;
	char buf[4];
	int fd;

	set_up();
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_ge(fd = open(path, O_RDONLY | O_NONBLOCK), 0);
	ck_assert_int_eq(whole_file_open(&f, path, WHOLE_REPLACE, &e),
	    -EINVAL);
	whole_file_close(&f);
	t_ok(whole_file_open(&f, path, WHOLE_STREAM, &e), &e);
	t_ok(whole_file_write(&f, "abc", 3, &e), &e);
	ck_assert_int_eq(read(fd, buf, sizeof(buf)), 3);
	t_ok(whole_file_commit(&f, &e), &e);
	whole_file_close(&f);
	close(fd);
	ck_assert_int_eq(whole_file_open(&f, t_tmpdir(), WHOLE_REPLACE |
	    WHOLE_STREAM, &e), -EINVAL);
	whole_file_close(&f);
	ck_assert_int_eq(count_files(), 1);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_file_appears_when_it_is_committed,
		a_file_that_is_not_committed_leaves_nothing,
		an_existing_file_is_replaced_only_when_allowed,
		a_file_that_appears_meanwhile_is_kept,
		a_pipe_takes_the_bytes_only_when_allowed,
	};

	return t_main("whole_file", 20, tests, NITEMS(tests));
}
