/* tests/support/load_words.c - command lines for tests of the settings. */
#include "tests/support/load_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/t.h"

struct conf loaded;
struct err load_err;

int
load_words(const char *const *words)
{
	char *argv[32] = { strdup("straddle") };
	int argc, rc;

	conf_free(&loaded);
	memset(&load_err, 0, sizeof(load_err));
	for (argc = 1; words[argc - 1] != NULL; argc++)
		argv[argc] = strdup(words[argc - 1]);
	rc = conf_load(argc, argv, &loaded, &load_err);
	while (argc-- > 0)
		free(argv[argc]);
	return rc;
}

const char *
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
