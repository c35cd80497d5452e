/* tests/fuzz/conf.c - any bytes as a config file.
 *
 * No input may crash the parser, and what it understands must print to a file
 * that it understands the same way.  A libFuzzer target; with
 * fuzz/main.c it replays files. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text of c as a file; free() it. */
static char *
print(const struct conf *c)
{
	char *text = NULL;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL || conf_print(c, fp) < 0 || fclose(fp) != 0)
		abort();
	return text;
}

/* Parse these bytes by way of a file that only we see. */
static int
parse(const void *data, size_t size, struct conf *c, struct err *reterr)
{
	int fd = memfd_create("conf", MFD_CLOEXEC), rc;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf_defaults(c);
	rc = conf_parse_file(path, c, reterr);
	close(fd);
	if (rc < 0 && (reterr->kind != ERR_USAGE ||
	    strncmp(reterr->msg, path, strlen(path)) != 0))
		abort();		/* a message without its file */
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf c, again;
	char *text, *text_again;
	struct err e = {0};

	if (parse(data, size, &c, &e) == 0) {
		text = print(&c);
		if (parse(text, strlen(text), &again, &e) < 0) {
			fprintf(stderr, "%s\n%s", e.msg, text);
			abort();
		}
		text_again = print(&again);
		if (strcmp(text, text_again) != 0)
			abort();
		free(text);
		free(text_again);
		conf_free(&again);
	}
	conf_free(&c);
	return 0;
}
