/* config/conf_spec.c - parses the argument of -s, one session:
 *	[NAME=|TIMES*]DEVICE[,KEY=VALUE]...	cpu,cores=0-3,6,cap=1GiB
 * with the keys of a session section.  A piece that is a core number or range
 * continues the core list before it. */
#include "conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "keys.h"

/* Cut the first piece off *rest, as strsep() does. */
static char *
next_piece(char **rest)
{
	char *piece = *rest, *end = *rest, *more;
	size_t n;

	for (;;) {
		end += strcspn(end, ",");
		if (*end == '\0')
			break;
		more = end + 1;
		n = strspn(more, "0123456789-");
		if (n == 0 || (more[n] != ',' && more[n] != '\0'))
			break;
		end = more;
	}
	*rest = *end == '\0' ? NULL : end + 1;
	*end = '\0';
	return piece;
}

/* Remove "TIMES*" from the start of *spec, if present. */
static int
take_times(char **spec, int *ret_times, struct err *reterr)
{
	char *star = *spec + strspn(*spec, "0123456789");
	int64_t n;
	int rc;

	*ret_times = 1;
	if (*star != '*')
		return 0;
	*star = '\0';
	if ((rc = units_parse_int(*spec, 1, MAX_SESSIONS, &n, reterr)) < 0)
		return rc;
	*ret_times = (int)n;
	*spec = star + 1;
	if ((*spec)[strcspn(*spec, ",=")] == '=')
		return err_set(reterr, ERR_USAGE, -EINVAL, "sessions made by "
		    "%d* are named by their index: leave the name out", (int)n);
	return 0;
}

/* "[NAME=]DEVICE" */
static int
set_device(struct session_conf *s, struct key_scope *scope, char *piece,
    struct err *reterr)
{
	char *name = piece, *device = strchr(piece, '=');
	int rc;

	if (device == NULL)
		return scope_set(scope, "device", piece, reterr);
	*device++ = '\0';
	if (setting_find(SECTION_SESSION, name) != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "%s comes before the device: begin with DEVICE or "
		    "NAME=DEVICE, such as cpu,%s=...", name, name);
	if ((rc = session_set_name(s, name, reterr)) < 0)
		return rc;
	return scope_set(scope, "device", device, reterr);
}

static int
set_pieces(struct session_conf *s, char *rest, struct err *reterr)
{
	struct key_scope scope = { .section = SECTION_SESSION, .base = s };
	char *piece, *value;
	int rc;

	rc = set_device(s, &scope, next_piece(&rest), reterr);
	while (rc == 0 && rest != NULL) {
		piece = next_piece(&rest);
		if ((value = strchr(piece, '=')) == NULL)
			return err_set(reterr, ERR_USAGE, -EINVAL,
			    "'%.64s' is not KEY=VALUE: write DEVICE,KEY=VALUE,... "
			    "such as cpu,cores=0-1,cap=512MiB", piece);
		*value++ = '\0';
		rc = scope_set(&scope, piece, value, reterr);
	}
	return rc;
}

int
conf_parse_session_spec(const char *spec, const char *where,
    struct session_conf *ret, int *ret_times, struct err *reterr)
{
	char *copy, *rest;
	int rc;

	session_defaults(ret);
	strlcpy(ret->where, where, sizeof(ret->where));
	if ((copy = rest = strdup(spec)) == NULL)
		return err_nomem(reterr, "the session %s", spec);
	if ((rc = take_times(&rest, ret_times, reterr)) < 0 ||
	    (rc = set_pieces(ret, rest, reterr)) < 0) {
		if (ret->name[0] != '\0')
			err_prefix(reterr, "session %s", ret->name);
		err_prefix(reterr, "%s", where);
	}
	free(copy);
	return rc;
}
