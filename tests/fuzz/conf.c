/* tests/fuzz/conf.c - fuzzer of the config parser.
 *
 * No input may crash the parser.  A config that parses must print as a file that
 * parses to the same config.  A libFuzzer target; with fuzz/main.c it replays
 * files. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* c as a config file; the caller frees the text. */
static char *
print_conf(const struct conf *c)
{
	char *text = NULL;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL || conf_print(c, fp) < 0 || fclose(fp) != 0)
		abort();
	return text;
}

/* Parse the bytes through a memfd. */
static int
parse_bytes(const void *data, size_t size, struct conf *c, struct err *reterr)
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
		abort();		/* the message does not name its file */
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf c, again;
	char *text, *text_again;
	struct err e = {0};

	if (parse_bytes(data, size, &c, &e) == 0) {
		text = print_conf(&c);
		if (parse_bytes(text, strlen(text), &again, &e) < 0) {
			fprintf(stderr, "%s\n%s", e.msg, text);
			abort();
		}
		text_again = print_conf(&again);
		if (strcmp(text, text_again) != 0)
			abort();
		free(text);
		free(text_again);
		conf_free(&again);
	}
	conf_free(&c);
	return 0;
}
