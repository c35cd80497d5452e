/* tests/fuzz/template.c - fuzzer of the reader of chat templates: any Jinja text gives a
 * format that can be used, within a budget.  A libFuzzer target; with fuzz/main.c it
 * replays files. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
require(int ok, const char *complaint)
{
	if (!ok) {
		fprintf(stderr, "fuzz_template: %s\n", complaint);
		abort();
	}
}

static int
is_shown_as_it_is(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s < ' ' || *s > '~')
			return 0;
	return 1;
}

/* Build the texts of two turns; reading each byte lets ASan see it. */
static void
use_format(const struct chat_template *ct, const char *system)
{
	static const char user[] = " \xe3\x80\x80hi\n";
	struct text_part parts[CHAT_MAX_PARTS];
	struct text_part s = { system, system != NULL ? strlen(system) : 0, 0 },
	    u = { user, sizeof(user) - 1, 0 };
	const char *answer = "</think>\n</think> yes\n ";
	size_t nanswer = strlen(answer), n, i, k;
	unsigned turn, sum = 0;

	for (turn = 0; turn < 2; turn++) {
		n = chat_template_turn(ct, turn, system != NULL ? &s : NULL, &u,
		    parts);
		require(n <= CHAT_MAX_PARTS, "too many parts");
		for (i = 0; i < n; i++)
			for (k = 0; k < parts[i].nbytes; k++)
				sum += (unsigned char)parts[i].text[k];
	}
	require(sum > 0, "the user's text is lost");
	chat_template_keep(ct, &answer, &nanswer);
	require(nanswer <= strlen(answer), "the answer grew");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct template_vars vars = { "<s>", "</s>", 0 };
	struct chat_template *ct;
	struct err e;

	require(chat_template_open((const char *)data, n, &vars, &ct, &e) == 0,
	    "out of memory");
	require(is_shown_as_it_is(ct->why) && is_shown_as_it_is(ct->also),
	    "a note has bytes for a terminal");
	require((ct->lost == 0) == (*ct->why == '\0'), "a loss without a reason");
	require(ct->begun_bytes <= strlen(ct->answer), "more begun than written");
	use_format(ct, NULL);
	use_format(ct, "");
	use_format(ct, " be brief\n");
	chat_template_close(ct);
	return 0;
}
