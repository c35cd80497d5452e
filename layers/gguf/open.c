/* layers/gguf/open.c - a model's files: one, or the parts of a split. */
#include "parse.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The path of part no of the set that f is part s of.  -EBADMSG, without a
 * message, if f's name does not end like that of part s. */
static int
split_path(const struct gguf_file *f, const struct split *s, uint32_t no,
    char **ret, struct err *reterr)
{
	char want[64];
	size_t len = strlen(f->path), suffix;

	*ret = NULL;
	suffix = (size_t)snprintf(want, sizeof(want), "-%05" PRIu32 "-of-%05"
	    PRIu32 ".gguf", s->no + 1, s->count);
	if (len < suffix || strcmp(f->path + len - suffix, want) != 0)
		return -EBADMSG;
	if (asprintf(ret, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf",
	    (int)(len - suffix), f->path, no + 1, s->count) < 0) {
		*ret = NULL;
		return err_nomem(reterr, "the name of a part of %s", f->path);
	}
	return 0;
}

int
gguf_part_path(const struct gguf_file *first, uint32_t count, uint32_t no,
    char **ret, struct err *reterr)
{
	const struct split s = { .count = count };
	int rc = split_path(first, &s, no, ret, reterr);

	return rc != -EBADMSG ? rc : err_set(reterr, ERR_MODEL, rc,
	    "%s: part 1 of %" PRIu32 " of a split model: its name must end in "
	    "-00001-of-%05" PRIu32 ".gguf", first->path, count, count);
}

int
gguf_part_open(const struct gguf_file *first, uint32_t count, uint32_t no,
    struct gguf_file *ret, struct err *reterr)
{
	char *path;
	int rc;

	if ((rc = gguf_part_path(first, count, no, &path, reterr)) < 0)
		return rc;
	if ((rc = gguf_file_open(path, ret, reterr)) == -ENOENT)
		err_set(reterr, ERR_MODEL, rc, "%s: part %" PRIu32 " of %"
		    PRIu32 " is missing", path, no + 1, count);
	free(path);
	return rc;
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
	part->nfiles = 0;
	return 0;
}

/* A part that is not the first one cannot be opened alone. */
static int
check_first(const struct gguf_file *f, const struct split *s,
    struct err *reterr)
{
	char *p;
	int rc;

	if (s->no == 0)
		return 0;
	if ((rc = split_path(f, s, 0, &p, reterr)) == -ENOMEM)
		return rc;
	rc = err_set(reterr, ERR_MODEL, -EBADMSG, "%s: part %" PRIu32 " of %"
	    PRIu32 " of a split model: give the first part, %s", f->path,
	    s->no + 1, s->count, p != NULL ? p : "which ends in -00001-of-...");
	free(p);
	return rc;
}

int
gguf_begin(struct gguf_file *first, struct gguf **ret, uint32_t *ret_nparts,
    struct err *reterr)
{
	struct gguf_priv *priv;
	struct gguf *g;
	struct split s;
	int rc;

	*ret = NULL;
	if ((rc = gguf_parse(first, &g, reterr)) < 0)
		return rc;
	if ((rc = split_get(g, &s, reterr)) < 0 ||
	    (rc = check_first(first, &s, reterr)) < 0) {
		g->nfiles = 0;		/* still the caller's */
		gguf_close(g);
		return rc;
	}
	first->path = NULL;
	first->fd = -1;
	priv = g->priv;
	priv->nparts = *ret_nparts = s.count;
	*ret = g;
	return 0;
}

int
gguf_add_part(struct gguf *g, struct gguf_file *part, struct err *reterr)
{
	const struct gguf_priv *priv = g->priv;
	struct gguf *pg;
	struct split s;
	int rc;

	if ((rc = gguf_parse(part, &pg, reterr)) < 0)
		return rc;
	if ((rc = split_get(pg, &s, reterr)) < 0)
		goto done;
	if (s.no != g->nfiles || s.count != priv->nparts)
		rc = err_set(reterr, ERR_MODEL, -EBADMSG, "%s: is "
		    "part %" PRIu32 " of %" PRIu32 ", but must be %" PRIu32
		    " of %" PRIu32, part->path, s.no + 1, s.count,
		    g->nfiles + 1, priv->nparts);
	else if ((rc = append_part(g, pg)) < 0)
		rc = err_set(reterr, ERR_RUN, rc, "%s: no memory for the "
		    "table of %" PRIu64 " tensors", part->path, pg->ntensors);
	if (rc == 0) {
		part->path = NULL;
		part->fd = -1;
	}
done:
	pg->nfiles = 0;
	gguf_close(pg);
	return rc;
}

static int
check_tensors_count(const struct gguf *g, struct err *reterr)
{
	uint32_t want;
	int rc = gguf_get_u32(g, "split.tensors.count", &want, reterr);

	if (rc == 0 && want == g->ntensors)
		return 0;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	return rc == -ENOENT ?
	    err_set(reterr, ERR_MODEL, -EBADMSG, "%s: the key "
	    "split.tensors.count is missing", g->file->path) :
	    err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.tensors.count is "
	    "%" PRIu32 ", the %" PRIu32 " parts hold %" PRIu64,
	    g->file->path, want, g->nfiles, g->ntensors);
}

int
gguf_finish(struct gguf *g, struct err *reterr)
{
	const struct gguf_priv *priv = g->priv;
	const struct gguf_tensor *twice;
	int rc;

	assert(g->nfiles == priv->nparts);
	if (priv->nparts > 1 && (rc = check_tensors_count(g, reterr)) < 0)
		return rc;
	if ((rc = gguf_index_tensors(g, &twice, reterr)) != -EEXIST)
		return rc;
	return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: at byte %" PRIu64
	    ": duplicate tensor \"%s\"", g->file[twice->file].path,
	    priv->declared[twice - g->tensor], twice->name);
}

int
gguf_open(const char *path, struct gguf **ret, struct err *reterr)
{
	struct gguf_file f;
	struct gguf *g = NULL;
	uint32_t nparts, no;
	int rc;

	*ret = NULL;
	if ((rc = gguf_file_open(path, &f, reterr)) < 0)
		return rc;
	if ((rc = gguf_begin(&f, &g, &nparts, reterr)) < 0)
		goto fail;
	for (no = 1; no < nparts; no++)
		if ((rc = gguf_part_open(g->file, nparts, no, &f,
		    reterr)) < 0 || (rc = gguf_add_part(g, &f, reterr)) < 0)
			goto fail;
	if ((rc = gguf_finish(g, reterr)) < 0)
		goto fail;
	*ret = g;
	return 0;
fail:
	gguf_file_close(&f);
	gguf_close(g);
	return rc;
}

void
gguf_close(struct gguf *g)
{
	struct gguf_priv *priv;
	struct gguf_chunk *k;
	uint32_t i;
	int is_view = 0;

	if (g == NULL)
		return;
	if ((priv = g->priv) != NULL) {
		is_view = priv->is_view;
		while ((k = priv->pool) != NULL) {
			priv->pool = k->next;
			free(k);
		}
		free(priv->declared);
		free(priv->by_key);
		free(priv->by_name);
		free(priv);
	}
	for (i = 0; i < g->nfiles; i++)
		gguf_file_close(&g->file[i]);
	free(g->file);
	free(g->kv);
	if (!is_view)
		free(g->tensor);
	free(g);
}
