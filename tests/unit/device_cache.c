/* tests/unit/device_cache.c - files of what devices tried: damaged ones, those of
 * others, and folders that cannot be used. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/base.h"
#include "coordinator/session/device_cache.h"

#define KIND	"ascend"
#define HAS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" without \"%s\"", \
	    (text), (part))

static char folder[256], path[320], text[DEVICE_CACHE_TEXT];

static struct device_verdict
any_verdict(void)
{
	struct device_verdict v = { .key = "processor=X\ndriver=1\n" };
	unsigned i;

	for (i = 0; i < sizeof(v.of_device); i++)
		v.of_device[i] = (uint8_t)t_rand();
	return v;
}

static void
note(int is_kept, const struct device_verdict *v)
{
	struct wire_verdict wv = { .is_kept = (uint32_t)is_kept,
	    .verdict = *v };

	device_cache_note(KIND, &wv, text);
}

static void
begin(void)
{
	char *cache = folder;

	snprintf(folder, sizeof(folder), "%s/cache", t_tmpdir());
	ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
	strcat(folder, "/straddle/devices");
	snprintf(path, sizeof(path), "%s/" KIND, folder);
}

static int
is_read(void)
{
	struct device_verdict v;

	return device_cache_read(KIND, &v);
}

/* --- bytes --- */

START_TEST(every_changed_byte_is_found)
{
	struct device_record r = { .made_s = 1, .verdict = any_verdict() };
	uint8_t *b = (uint8_t *)&r, was, bit;
	size_t i;

	device_record_seal(&r, KIND);
	ck_assert_ptr_null(device_record_check(&r, sizeof(r), KIND));
	for (i = 0; i < sizeof(r); i++) {
		was = b[i];
		for (bit = 1; bit != 0; bit = (uint8_t)(bit << 1)) {
			b[i] = was ^ bit;
			ck_assert_msg(device_record_check(&r, sizeof(r),
			    KIND) != NULL, "byte %zu", i);
		}
		b[i] = was ^ (uint8_t)(1 + t_rand_below(255));
		ck_assert_ptr_nonnull(device_record_check(&r, sizeof(r), KIND));
		b[i] = was;
	}
}
END_TEST

START_TEST(bytes_with_a_right_sum_are_checked)
{
	struct device_record r = { .verdict = any_verdict() };

	device_record_seal(&r, KIND);
	ck_assert_ptr_nonnull(device_record_check(&r, sizeof(r) - 1, KIND));
	ck_assert_ptr_nonnull(device_record_check(&r, 0, KIND));
	HAS(device_record_check(&r, sizeof(r), "rknpu"), "another device");
	memset(r.verdict.key, 'x', sizeof(r.verdict.key));
	device_record_seal(&r, KIND);
	HAS(device_record_check(&r, sizeof(r), KIND), "malformed");
	r.verdict.key[0] = '\0';
	device_record_seal(&r, KIND);
	HAS(device_record_check(&r, sizeof(r), KIND), "malformed");
}
END_TEST

/* --- files --- */

START_TEST(a_verdict_is_kept_and_forgotten)
{
	const struct device_verdict v = any_verdict();
	struct device_verdict got;
	struct stat st;

	begin();
	ck_assert(!is_read());
	note(0, &v);
	HAS(text, "tried now, and kept as straddle/devices/" KIND);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(stat(folder, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(device_cache_read(KIND, &got), 1);
	ck_assert_mem_eq(&got, &v, sizeof(v));
	note(1, &v);
	HAS(text, "not tried again: found out 0 s ago");
	device_cache_forget("rknpu", 0);
	ck_assert(is_read());
	device_cache_forget(KIND, 1);
	ck_assert_int_lt(stat(path, &st), 0);
	ck_assert(!is_read());
}
END_TEST

START_TEST(only_a_verdict_that_was_used_is_removed)
{
	const struct device_verdict v = any_verdict();
	struct device_record r = { .verdict = v };

	begin();
	device_record_seal(&r, KIND);
	t_put_file(t_tmpdir(), "/cache/straddle/devices/" KIND, &r,
	    sizeof(r));
	ck_assert_int_eq(chmod(folder, 0700), 0);
	ck_assert_int_eq(chmod(path, 0600), 0);
	device_cache_forget(KIND, 1);
	ck_assert(is_read());
	device_cache_forget(KIND, 1);
	ck_assert(!is_read());
}
END_TEST

/* Two devices of a kind must choose alike, also where no file can be kept. */
START_TEST(a_verdict_without_a_file_is_of_this_process)
{
	const struct device_verdict v = any_verdict();
	struct device_verdict got;

	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	note(0, &v);
	HAS(text, "cannot be kept");
	ck_assert_int_eq(device_cache_read(KIND, &got), 1);
	ck_assert_mem_eq(&got, &v, sizeof(v));
	note(1, &v);
	HAS(text, "not tried again: found out for another device");
	ck_assert_int_eq(device_cache_read("rknpu", &got), 0);
	device_cache_forget(KIND, 1);
	ck_assert_int_eq(device_cache_read(KIND, &got), 0);
}
END_TEST

START_TEST(a_partial_verdict_is_of_this_process)
{
	const struct wire_verdict wv = { .is_partial = 1,
	    .verdict = any_verdict() };
	struct device_verdict got;

	begin();
	device_cache_note(KIND, &wv, text);
	HAS(text, "not kept: no time or memory was left");
	ck_assert_int_lt(access(path, F_OK), 0);
	ck_assert_int_eq(device_cache_read(KIND, &got), 1);
	ck_assert_mem_eq(&got, &wv.verdict, sizeof(got));
}
END_TEST

START_TEST(files_that_others_can_write_are_not_read)
{
	const struct device_verdict v = any_verdict(), newer = any_verdict();
	struct device_verdict got;
	char other[330];

	begin();
	note(0, &v);
	ck_assert(is_read());
	ck_assert_int_eq(chmod(path, 0620), 0);
	ck_assert(!is_read());
	ck_assert_int_eq(chmod(path, 0602), 0);
	ck_assert(!is_read());
	ck_assert_int_eq(chmod(path, 0644), 0);
	ck_assert(is_read());
	ck_assert_int_eq(chmod(folder, 0770), 0);
	ck_assert(!is_read());
	note(0, &newer);
	HAS(text, "cannot be kept");
	ck_assert_int_eq(chmod(folder, 0700), 0);
	/* The file is older than what could not be kept. */
	ck_assert_int_eq(device_cache_read(KIND, &got), 1);
	ck_assert_mem_eq(&got, &newer, sizeof(got));
	note(0, &v);
	ck_assert_int_eq(device_cache_read(KIND, &got), 1);
	ck_assert_mem_eq(&got, &v, sizeof(got));
	snprintf(other, sizeof(other), "%s.moved", path);
	ck_assert_int_eq(rename(path, other), 0);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert(!is_read());
	note(0, &v);		/* replaces the link, not its target */
	ck_assert(is_read());
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(path, 1, 0), 0);
		ck_assert(!is_read());
	}
}
END_TEST

START_TEST(anything_may_have_the_name)
{
	const struct device_verdict v = any_verdict();
	struct device_record r = { .verdict = v };

	begin();
	note(0, &v);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert(!is_read());
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert(!is_read());
	note(0, &v);
	HAS(text, "cannot be kept");
	device_cache_forget(KIND, 0);
	ck_assert_int_eq(rmdir(path), 0);
	device_record_seal(&r, KIND);
	t_put_file(folder, "/" KIND, &r, sizeof(r) - 1);
	ck_assert(!is_read());
	t_put_file(folder, "/" KIND, "", 0);
	ck_assert(!is_read());
	r.verdict.of_device[3] ^= 1;
	t_put_file(folder, "/" KIND, &r, sizeof(r));
	ck_assert(!is_read());
}
END_TEST

START_TEST(without_a_home_nothing_is_kept)
{
	const struct device_verdict v = any_verdict();
	struct stat st;

	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	ck_assert(!is_read());
	note(0, &v);
	HAS(text, "cannot be kept");
	setenv("HOME", "relative", 1);
	note(0, &v);
	HAS(text, "cannot be kept");
	snprintf(path, sizeof(path), "%s/missing", t_tmpdir());
	setenv("HOME", path, 1);
	note(0, &v);
	HAS(text, "cannot be kept");
	ck_assert_int_lt(stat(path, &st), 0);
	setenv("HOME", "/dev/null", 1);
	note(0, &v);
	HAS(text, "cannot be kept");
	device_cache_forget(KIND, 0);
	ck_assert(!is_read());
	setenv("HOME", t_tmpdir(), 1);
	note(0, &v);
	HAS(text, "tried now, and kept");
	snprintf(path, sizeof(path), "%s/.cache/straddle/devices/" KIND,
	    t_tmpdir());
	ck_assert_int_eq(stat(path, &st), 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_changed_byte_is_found,
		bytes_with_a_right_sum_are_checked,
		a_verdict_is_kept_and_forgotten,
		only_a_verdict_that_was_used_is_removed,
		a_verdict_without_a_file_is_of_this_process,
		a_partial_verdict_is_of_this_process,
		files_that_others_can_write_are_not_read,
		anything_may_have_the_name,
		without_a_home_nothing_is_kept,
	};

	return t_main("device_cache", 60, tests, NITEMS(tests));
}
