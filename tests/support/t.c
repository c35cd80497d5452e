/* tests/support/t.c - see t.h. */
#include "t.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char tmpdir[64];
static pid_t tmpdir_owner;
static uint64_t rand_state;

int
t_main(const char *name, double timeout_s, const TTest *const *tests,
    unsigned ntests)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	SRunner *runner;
	unsigned i;
	int failed;

	t_seed();
	tcase_set_timeout(tc, timeout_s);
	for (i = 0; i < ntests; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

void
t_mark(const char *file, int line)
{
	static _Atomic uint64_t seen[64];	/* lines of all files */
	_Atomic uint64_t *word = &seen[(unsigned)line / 64 % NITEMS(seen)];
	uint64_t bit = UINT64_C(1) << line % 64;

	if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0 &&
	    (atomic_fetch_or_explicit(word, bit, memory_order_relaxed) &
	    bit) == 0)
		(_mark_point)(file, line);
}

uint64_t
t_seed(void)
{
	static uint64_t seed;
	const char *s;

	if (seed != 0)
		return seed;
	if ((s = getenv("STRADDLE_SEED")) != NULL)
		seed = strtoull(s, NULL, 0);
	if (seed == 0) {
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		seed = ((uint64_t)ts.tv_sec << 20) ^ (uint64_t)ts.tv_nsec ^
		    (uint64_t)getpid();
		seed |= 1;
	}
	printf("STRADDLE_SEED=%" PRIu64 "\n", seed);
	fflush(stdout);
	return seed;
}

/* xorshift64* (Vigna 2016). */
uint64_t
t_rand(void)
{
	if (rand_state == 0)
		rand_state = t_seed();
	rand_state ^= rand_state >> 12;
	rand_state ^= rand_state << 25;
	rand_state ^= rand_state >> 27;
	return rand_state * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t
t_rand_below(uint64_t n)
{
	return (t_rand() >> 11) % n;
}

float
t_rand_float(float lo, float hi)
{
	return lo + (hi - lo) * ((float)(t_rand() >> 40) / (float)(1 << 24));
}

int
t_full(void)
{
	const char *s = getenv("FULL");

	return s != NULL && *s != '\0';
}

int
t_sampled(uint32_t i, uint32_t n, uint32_t most)
{
	uint32_t first = (uint32_t)(t_seed() >> 3) % n;

	return t_full() || (i + n - first) % n < most;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void
remove_tmpdir(void)
{
	if (getpid() == tmpdir_owner)
		nftw(tmpdir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
t_tmpdir(void)
{
	if (tmpdir_owner != getpid()) {
		strcpy(tmpdir, "/tmp/straddle-test-XXXXXX");
		if (mkdtemp(tmpdir) == NULL) {
			perror("mkdtemp");
			exit(EXIT_FAILURE);
		}
		tmpdir_owner = getpid();
		atexit(remove_tmpdir);
	}
	return tmpdir;
}

void
t_put_file(const char *root, const char *path, const void *bytes,
    size_t nbytes)
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
	ck_assert_uint_eq(fwrite(bytes, 1, nbytes, fp), nbytes);
	fclose(fp);
}

const char *
t_data(const char *name)
{
	static char path[4][512];
	static unsigned next;
	const char *dir = getenv("STRADDLE_TESTS");
	char *p = path[next++ % NITEMS(path)];

	snprintf(p, sizeof(path[0]), "%s/data/%s", dir ? dir : "tests", name);
	return p;
}

const char *
t_bin(void)
{
	const char *s = getenv("STRADDLE_BIN");

	return s ? s : "build/straddle";
}

uint64_t
t_proc_bytes(const char *file, const char *key)
{
	unsigned long kib = 0;
	size_t len = strlen(key);
	char text[256];
	FILE *fp;

	snprintf(text, sizeof(text), "/proc/self/%s", file);
	fp = fopen(text, "r");
	while (fp != NULL && fgets(text, sizeof(text), fp) != NULL)
		if (strncmp(text, key, len) == 0)
			kib = strtoul(text + len, NULL, 10);
	if (fp != NULL)
		fclose(fp);
	return kib * KIB;
}
