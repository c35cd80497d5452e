/* coordinator/engine/lines.c - results in the order of their prompts. */
#include "lines.h"

#include <stdlib.h>

void
lines_init(struct lines *l)
{
	STAILQ_INIT(&l->head);
}

struct line *
lines_add(struct lines *l, uint32_t index, const struct source *prompt)
{
	struct line *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->index = index;
	n->prompt = *prompt;
	STAILQ_INSERT_TAIL(&l->head, n, next);
	return n;
}

static void
drop_first(struct lines *l)
{
	struct line *n = STAILQ_FIRST(&l->head);

	STAILQ_REMOVE_HEAD(&l->head, next);
	source_free(&n->text);
	source_free(&n->thoughts);
	json_decref(n->result);		/* accepts NULL */
	free(n);
}

int
lines_print(struct lines *l, line_print_fn *print, void *arg,
    struct err *reterr)
{
	struct line *n;
	json_t *result;
	int rc;

	while ((n = STAILQ_FIRST(&l->head)) != NULL && n->result != NULL) {
		result = n->result;
		n->result = NULL;
		drop_first(l);
		if ((rc = print(arg, result, reterr)) < 0)
			return rc;
	}
	return 0;
}

void
lines_done(struct lines *l)
{
	while (!STAILQ_EMPTY(&l->head))
		drop_first(l);
}
