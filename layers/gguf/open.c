/* layers/gguf/open.c - opens a model's files: one, or the parts of a split. */
#include "parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A part's number and count, 1 = not split.  Numbers start at 0 in the metadata
 * and at 1 in file names. */
struct split {
	uint32_t no, count;
};

static int
split_get(const struct gguf *part, struct split *ret, struct err *reterr)
{
	const char *path = part->file->path;
	int rc;

	ret->no = 0;
	ret->count = 1;
	rc = gguf_get_u32(part, "split.count", &ret->count, reterr);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (ret->count <= 1) {
		ret->count = 1;
		return 0;
	}
	if (ret->count > GGUF_MAX_FILES)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.count "
		    "is %" PRIu32 ": must be at most %d", path,
		    ret->count, GGUF_MAX_FILES);
	rc = gguf_get_u32(part, "split.no", &ret->no, reterr);
	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.count "
		    "is %" PRIu32 ", but the key split.no is missing", path,
		    ret->count);
	if (rc == 0 && ret->no >= ret->count)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.no is "
		    "%" PRIu32 " of a split.count of %" PRIu32, path, ret->no,
		    ret->count);
	return rc;
}

/* The path of part no, given that path is part s of the set.  NULL if path does
 * not end like the name of part s, or without memory. */
static char *
split_path(const char *path, const struct split *s, uint32_t no)
{
	char want[64];
	size_t len = strlen(path), suffix;
	char *p;

	suffix = (size_t)snprintf(want, sizeof(want), "-%05" PRIu32 "-of-%05"
	    PRIu32 ".gguf", s->no + 1, s->count);
	if (len < suffix || strcmp(path + len - suffix, want) != 0)
		return NULL;
	if (asprintf(&p, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf",
	    (int)(len - suffix), path, no + 1, s->count) < 0)
		return NULL;
	return p;
}

/* Append part's file and tensors to g. */
static int
append_part(struct gguf *g, struct gguf *part)
{
	struct gguf_priv *priv = g->priv, *ppriv = part->priv;
	uint64_t n = g->ntensors + part->ntensors, i;
	struct gguf_tensor *t;
	struct gguf_file *f;
	uint64_t *d;

	if ((f = reallocarray(g->file, g->nfiles + 1, sizeof(*f))) == NULL)
		return -ENOMEM;
	g->file = f;
	if ((t = reallocarray(g->tensor, n + 1, sizeof(*t))) == NULL)
		return -ENOMEM;
	g->tensor = t;
	if ((d = reallocarray(priv->declared, n + 1, sizeof(*d))) == NULL)
		return -ENOMEM;
	priv->declared = d;
	for (i = 0; i < part->ntensors; i++) {
		d[g->ntensors] = ppriv->declared[i];
		t[g->ntensors] = part->tensor[i];
		t[g->ntensors++].file = g->nfiles;
	}
	g->tensor_bytes += part->tensor_bytes;
	f[g->nfiles++] = *part->file;
	part->file->path = NULL;
	part->file->fd = -1;
	return 0;
}

/* Open part no of the set whose first part is g, and append it. */
static int
open_part(struct gguf *g, const struct split *first, uint32_t no,
    struct err *reterr)
{
	struct gguf *part = NULL;
	struct split s;
	char *path;
	int rc;

	if ((path = split_path(g->file->path, first, no)) == NULL)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: part 1 of %"
		    PRIu32 " of a split model: its name must end in "
		    "-00001-of-%05" PRIu32 ".gguf", g->file->path,
		    first->count, first->count);
	rc = gguf_parse_file(path, &part, reterr);
	if (rc == -ENOENT)
		err_set(reterr, ERR_MODEL, rc, "%s: part %" PRIu32 " of %"
		    PRIu32 " is missing", path, no + 1, first->count);
	if (rc < 0 || (rc = split_get(part, &s, reterr)) < 0)
		goto done;
	if (s.no != no || s.count != first->count)
		rc = err_set(reterr, ERR_MODEL, -EBADMSG, "%s: is "
		    "part %" PRIu32 " of %" PRIu32 ", but must be %" PRIu32
		    " of %" PRIu32, path, s.no + 1, s.count, no + 1,
		    first->count);
	else if ((rc = append_part(g, part)) < 0)
		rc = err_set(reterr, ERR_RUN, rc, "%s: no memory for the "
		    "table of %" PRIu64 " tensors", path, part->ntensors);
done:
	gguf_close(part);
	free(path);
	return rc;
}

static int
open_parts(struct gguf *g, const struct split *first, struct err *reterr)
{
	const char *path = g->file->path;
	uint32_t no, want;
	char *p;
	int rc;

	if (first->no > 0) {
		p = split_path(path, first, 0);
		rc = err_set(reterr, ERR_MODEL, -EBADMSG, "%s: part %"
		    PRIu32 " of %" PRIu32 " of a split model: give the first "
		    "part, %s", path, first->no + 1, first->count,
		    p != NULL ? p : "which ends in -00001-of-...");
		free(p);
		return rc;
	}
	for (no = 1; no < first->count; no++)
		if ((rc = open_part(g, first, no, reterr)) < 0)
			return rc;
	rc = gguf_get_u32(g, "split.tensors.count", &want, reterr);
	if (rc == 0 && want == g->ntensors)
		return 0;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	return rc == -ENOENT ?
	    err_set(reterr, ERR_MODEL, -EBADMSG, "%s: the key "
	    "split.tensors.count is missing", g->file->path) :
	    err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.tensors.count is "
	    "%" PRIu32 ", the %" PRIu32 " parts hold %" PRIu64,
	    g->file->path, want, first->count, g->ntensors);
}

int
gguf_open(const char *path, struct gguf **ret, struct err *reterr)
{
	struct gguf *g;
	struct split s;
	int rc;

	*ret = NULL;
	if ((rc = gguf_parse_file(path, &g, reterr)) < 0)
		return rc;
	if ((rc = split_get(g, &s, reterr)) < 0 ||
	    (s.count > 1 && (rc = open_parts(g, &s, reterr)) < 0) ||
	    (rc = gguf_index_tensors(g, reterr)) < 0) {
		gguf_close(g);
		return rc;
	}
	*ret = g;
	return 0;
}

void
gguf_close(struct gguf *g)
{
	struct gguf_priv *priv;
	struct gguf_chunk *k;
	uint32_t i;

	if (g == NULL)
		return;
	if ((priv = g->priv) != NULL) {
		while ((k = priv->pool) != NULL) {
			priv->pool = k->next;
			free(k);
		}
		free(priv->declared);
		free(priv->by_key);
		free(priv->by_name);
		free(priv);
	}
	for (i = 0; i < g->nfiles; i++) {
		if (g->file[i].fd >= 0)
			close(g->file[i].fd);
		free(g->file[i].path);
	}
	free(g->file);
	free(g->kv);
	free(g->tensor);
	free(g);
}
