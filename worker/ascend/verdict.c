/* worker/ascend/verdict.c - see verdict.h. */
#include "verdict.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <bsd/string.h>

#include "config/words.h"
#include "board.h"
#include "graph.h"

/* More than any product's workspace. */
#define MOST_WORKSPACE	GIB

struct tried {
	struct acl_choice c;
	char groups_reason[ACL_REASON];
	struct acl_shapes shapes;
};
_Static_assert(sizeof(struct tried) <= DEVICE_VERDICT_BYTES, "a verdict");

/* --- the key --- */

/* A line for a file or folder that may not be there: another one, or another
 * version, differs. */
static void
add_file(char *key, const char *name, const char *path)
{
	struct stat st;

	if (path == NULL || stat(path, &st) < 0)
		words_add(key, DEVICE_KEY_BYTES, "", "%s=none\n", name);
	else
		words_add(key, DEVICE_KEY_BYTES, "", "%s=%s, %jd bytes of "
		    "%jd.%09ld\n", name, path, (intmax_t)st.st_size,
		    (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void
add_library(char *key, const char *name, void *so)
{
	struct link_map *map = NULL;

	if (so == NULL || dlinfo(so, RTLD_DI_LINKMAP, &map) < 0)
		map = NULL;
	add_file(key, name, map != NULL ? map->l_name : NULL);
}

/* The package of operators, and its part for this processor. */
static void
add_operators(char *key, const char *soc)
{
	static const char *const below[] = {
		"version.info", BOARD_KERNELS, BOARD_KERNELS "/config",
	};
	const char *opp = secure_getenv("ASCEND_OPP_PATH");
	const char *custom = secure_getenv("ASCEND_CUSTOM_OPP_PATH");
	char name[32], path[PATH_MAX];
	unsigned i;

	board_kernels_name(soc, name, sizeof(name));
	for (i = 0; i < NITEMS(below); i++) {
		snprintf(path, sizeof(path), "%s/%s%s%s", opp != NULL ? opp :
		    "", below[i], i > 0 ? "/" : "", i > 0 ? name : "");
		add_file(key, i == 0 ? "operators" : "kernels", opp != NULL ?
		    path : NULL);
	}
	words_add(key, DEVICE_KEY_BYTES, "", "own operators=%s\n", custom !=
	    NULL ? custom : "none");
}

void
acl_verdict_key(const struct acl_session *s, const char *root,
    char ret[DEVICE_KEY_BYTES])
{
	const struct acl_lib *l = s->src.lib;
	const struct acl_machine *m = &s->machine;
	char path[PATH_MAX];
	unsigned i;

	ret[0] = '\0';
	words_add(ret, DEVICE_KEY_BYTES, "", "program=" STRADDLE_VERSION
	    ", %08x\n", ACL_CHOICE);
	add_file(ret, "executable", "/proc/self/exe");
	words_add(ret, DEVICE_KEY_BYTES, "", "processor=%s\nmode=%s\n"
	    "interface=%d.%d.%d\n", m->soc, m->is_rc ? "RC" : "EP",
	    m->version[0], m->version[1], m->version[2]);
	add_library(ret, "runtime", l->so);
	add_library(ret, "base", l->base);
	for (i = 0; i < l->nops; i++)
		add_library(ret, "library of operators", l->ops[i]);
	add_operators(ret, m->soc);
	snprintf(path, sizeof(path), "%s" BOARD_DRIVER, root);
	add_file(ret, "driver", path);
	if (strlen(ret) >= DEVICE_KEY_BYTES - 1)	/* it may be cut off */
		ret[0] = '\0';
}

/* Say which line is another one. */
static void
compare_keys(const char *was, const char *is, char *ret, size_t len)
{
	size_t m, n;

	for (;; was += m + 1, is += n + 1) {
		m = strcspn(was, "\n");
		n = strcspn(is, "\n");
		if (m != n || memcmp(was, is, n) != 0 || was[m] == '\0' ||
		    is[n] == '\0')
			break;
	}
	snprintf(ret, len, "is %.*s, was %.*s", (int)MIN(n, 72u), is,
	    (int)MIN(m, 72u), was);
}

/* --- the verdict --- */

static int
form_is_sound(const struct acl_form *f, enum ascend_format format)
{
	unsigned i;

	if (f->way == ACL_WAY_NONE)
		return 1;
	if (f->way >= ACL_NWAYS || (format != ASCEND_HALF) !=
	    (f->way == ACL_WAY_GROUPS) || (f->c_type != ACL_FLOAT &&
	    f->c_type != ACL_FLOAT16) || f->nz >= ACL_NZ_KINDS ||
	    (f->nz != ACL_ND && f->way != ACL_WAY_MM && f->way !=
	    ACL_WAY_MATMUL) || f->nclasses < 1 || f->nclasses >
	    ACL_CLASSES)
		return 0;
	/* C of a matrix with many columns has room for no more. */
	if (f->rows[0] > ASCEND_FEW_ROWS)
		return 0;
	for (i = 0; i < f->nclasses; i++)
		if (f->rows[i] < 1 || f->rows[i] > ASCEND_ROWS ||
		    ASCEND_ROWS % f->rows[i] != 0 ||
		    (i > 0 && f->rows[i] <= f->rows[i - 1]))
			return 0;
	return 1;
}

/* A way of 16-bit floats, beside another one, that has W in this layout. */
static int
other_is_sound(unsigned way, unsigned nz)
{
	return way > ACL_WAY_NONE && way < ACL_WAY_CLASSIC && (nz == ACL_ND ||
	    (nz < ACL_NZ_KINDS && (way == ACL_WAY_MM || way ==
	    ACL_WAY_MATMUL)));
}

static int
shapes_are_sound(const struct acl_choice *c)
{
	const struct acl_shape_way *s = c->shape;
	unsigned i;

	if (c->nshapes > ACL_SHAPE_WAYS)
		return 0;
	for (; s < c->shape + c->nshapes; s++) {
		if (s->format != ASCEND_HALF || !ascend_takes(s->n, s->k) ||
		    !other_is_sound(s->way, s->nz))
			return 0;
		for (i = 0; i < ACL_CLASSES; i++)
			if (s->twin[i] != ACL_WAY_NONE &&
			    !other_is_sound(s->twin[i], s->nz))
				return 0;
	}
	return 1;
}

int
acl_choice_is_sound(const struct acl_choice *c)
{
	unsigned f;

	if (c->magic != ACL_CHOICE || c->strategy >= ACL_STRATEGIES ||
	    c->chip.groups >= ASCEND_FORMATS || c->chip.cut_k > 1 ||
	    c->chip.fns > ASCEND_FN_ALL ||
	    c->chip.workspace_bytes > MOST_WORKSPACE ||
	    c->chip.workspace_percent > ASCEND_MOST_PERCENT ||
	    c->chip.graph_bytes > ASCEND_GRAPHS_BYTES ||
	    c->graph_why < ACL_GRAPH_WHYS ||
	    c->graph_fns_why < ACL_GRAPH_WHYS || c->graphs >= ACL_GRAPH_BITS ||
	    !acl_unfit_is_sound(&c->unfit) || !shapes_are_sound(c))
		return 0;
	for (f = 0; f < ASCEND_FORMATS; f++)
		if (!form_is_sound(&c->form[f], (enum ascend_format)f) ||
		    (f > 0 && f <= c->chip.groups &&
		    c->form[f].way == ACL_WAY_NONE))
			return 0;
	for (f = 0; f < ACL_FNS; f++)
		if (acl_fn_outcome(c->fn[f]) >= ACL_FN_OUTCOMES)
			return 0;
	return 1;
}

static int
text_ends(const char text[ACL_REASON])
{
	return memchr(text, '\0', ACL_REASON) != NULL;
}

/* The way of a shape, or of some of its rows, that is not in this CANN, or NONE. */
static enum acl_way
find_missing(const struct acl_choice *c, const struct acl_lib *lib)
{
	const struct acl_shape_way *s;
	unsigned i;

	for (s = c->shape; s < c->shape + c->nshapes; s++) {
		if (!acl_way_is_there(lib, (enum acl_way)s->way) ||
		    !acl_nz_is_there(lib, (enum acl_way)s->way,
		    (enum acl_nz)s->nz))
			return (enum acl_way)s->way;
		for (i = 0; i < ACL_CLASSES; i++)
			if (s->twin[i] != ACL_WAY_NONE && !acl_way_is_there(
			    lib, (enum acl_way)s->twin[i]))
				return (enum acl_way)s->twin[i];
	}
	return ACL_WAY_NONE;
}

int
acl_verdict_take(const struct device_verdict *v, const char *key,
    const struct acl_session *s, struct acl_choice *c,
    char groups_reason[ACL_REASON], char *why, size_t len)
{
	struct tried t;
	const struct acl_lib *lib = s->src.lib;
	struct acl_choice *got = &t.c;
	unsigned f;

	memcpy(&t, v->of_device, sizeof(t));
	if (strcmp(v->key, key) != 0) {
		compare_keys(v->key, key, why, len);
		return 0;
	}
	/* Not tried, but asked of the device in this probe. */
	got->strategy = c->strategy;
	got->chip.has_memory = c->chip.has_memory;
	got->chip.granule_bytes = c->chip.granule_bytes;
	got->chip.has_slots = c->chip.has_slots;
	if (!acl_choice_is_sound(got) || !text_ends(got->reason) ||
	    !text_ends(t.groups_reason) ||
	    !acl_shapes_are_sound(&t.shapes) || got->form[ASCEND_HALF].way ==
	    ACL_WAY_NONE) {
		strlcpy(why, "it is out of bounds", len);
		return 0;
	}
	for (f = 0; f < ACL_FNS; f++)
		if (acl_fn_outcome(got->fn[f]) == ACL_FN_RIGHT &&
		    !acl_fn_is_there(lib, (enum acl_fn)f)) {
			snprintf(why, len, "%s is not in this CANN",
			    acl_fn_name((enum acl_fn)f));
			return 0;
		}
	for (f = 0; f < ASCEND_FORMATS; f++)
		if (got->form[f].way != ACL_WAY_NONE && (!acl_way_is_there(lib,
		    (enum acl_way)got->form[f].way) || !acl_nz_is_there(lib,
		    (enum acl_way)got->form[f].way,
		    (enum acl_nz)got->form[f].nz))) {
			snprintf(why, len, "%s is not in this CANN",
			    acl_way_name((enum acl_way)got->form[f].way));
			return 0;
		}
	if (find_missing(got, lib) != ACL_WAY_NONE) {
		snprintf(why, len, "%s is not in this CANN", acl_way_name(
		    find_missing(got, lib)));
		return 0;
	}
	if (got->chip.graph_bytes > 0 && (s->machine.is_rc ||
	    !acl_has_capture(lib, &s->machine))) {
		strlcpy(why, "nothing is captured here", len);
		return 0;
	}
	*c = *got;
	c->chip.fns = 0;	/* the probe makes it of fn[] */
	memset(&c->unfit, 0, sizeof(c->unfit));	/* and this of shapes */
	memcpy(groups_reason, t.groups_reason, sizeof(t.groups_reason));
	return 1;
}

void
acl_verdict_fill(const struct acl_choice *c, const char *groups_reason,
    const char *key, struct device_verdict *v)
{
	struct tried t = { .c = *c };

	strlcpy(t.groups_reason, groups_reason, sizeof(t.groups_reason));
	memset(v, 0, sizeof(*v));
	strlcpy(v->key, key, sizeof(v->key));
	memcpy(v->of_device, &t, sizeof(t));
}

void
acl_verdict_shapes(const struct device_verdict *v, struct acl_shapes *ret)
{
	struct tried t;

	memcpy(&t, v->of_device, sizeof(t));
	*ret = t.shapes;
	if (v->key[0] == '\0' || !acl_shapes_are_sound(ret))
		memset(ret, 0, sizeof(*ret));
}

void
acl_verdict_put_shapes(struct device_verdict *v, const struct acl_shapes *s,
    const struct acl_choice *c)
{
	struct tried t;

	memcpy(&t, v->of_device, sizeof(t));
	t.shapes = *s;
	t.c.nshapes = c->nshapes;
	t.c.graphs = c->graphs;
	t.c.chip.graph_bytes = c->chip.graph_bytes;
	memcpy(t.c.shape, c->shape, sizeof(t.c.shape));
	memcpy(v->of_device, &t, sizeof(t));
}
