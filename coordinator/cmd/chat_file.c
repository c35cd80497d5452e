/* coordinator/cmd/chat_file.c - /save and /load: a conversation as JSON. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chat_talk.h"
#include "coordinator/print/output.h"
#include "coordinator/print/whole_file.h"

/* Contexts end long before.  Parsing takes up to 80 times a file's bytes. */
enum { LOAD_MAX = 16 << 20 };

static const char role_system[] = "system", role_user[] = "user";
static const char role_answer[] = "assistant";

/* --- /save --- */

static int
add_message(json_t *list, const char *role, const char *text, size_t nbytes)
{
	json_t *m = json_pack("{s:s,s:o}", "role", role, "content",
	    output_json_text(text, nbytes));

	return m == NULL ? -1 : json_array_append_new(list, m);
}

/* The conversation as text, malloc'ed; NULL: no memory. */
static char *
dump_messages(const struct chat *chat)
{
	const char *system = chat_system(chat);
	json_t *list = json_array();
	struct chat_pair p;
	char *text = NULL;
	uint32_t i;
	int rc = list == NULL ? -1 : 0;

	if (rc == 0 && system != NULL)
		rc = add_message(list, role_system, system, strlen(system));
	for (i = 0; rc == 0 && i < chat_stats(chat)->turns; i++) {
		p = chat_pair_at(chat, i);
		if ((rc = add_message(list, role_user, p.user, p.nuser)) == 0)
			rc = add_message(list, role_answer, p.answer,
			    p.nanswer);
	}
	if (rc == 0)
		text = json_dumps(list, JSON_INDENT(1));
	json_decref(list);
	return text;
}

int
talk_save(const struct talk *k, const char *path, int replace,
    struct err *reterr)
{
	struct whole_file f = { .fd = -1 };
	char *text;
	int rc;

	if ((rc = output_refuse_model(engine_file(k->eng), path,
	    reterr)) < 0)
		return rc;
	if ((text = dump_messages(k->chat)) == NULL)
		return err_nomem(reterr, "the text of %s", path);
	if ((rc = whole_file_open(&f, path, replace ? WHOLE_REPLACE : 0,
	    reterr)) == 0 &&
	    (rc = whole_file_write(&f, text, strlen(text), reterr)) == 0 &&
	    (rc = whole_file_write(&f, "\n", 1, reterr)) == 0)
		rc = whole_file_commit(&f, reterr);
	whole_file_close(&f);
	free(text);
	return rc;
}

/* --- /load --- */

static int
read_regular(const char *path, char **ret, size_t *ret_n, struct err *reterr)
{
	/* Not blocked by a pipe without a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t n = 0;
	ssize_t got = 1;
	int rc = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		rc = err_set(reterr, ERR_USAGE, -errno, "%s: %s", path,
		    strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = err_set(reterr, ERR_USAGE, -EINVAL, "%s: not a regular "
		    "file", path);
	else if (st.st_size > LOAD_MAX)
		rc = err_set(reterr, ERR_USAGE, -EFBIG, "%s: more than %d MiB, "
		    "which is no conversation", path, LOAD_MAX >> 20);
	else if ((*ret = malloc((size_t)st.st_size + 1)) == NULL)
		rc = err_nomem(reterr, "the text of %s", path);
	while (rc == 0 && n < (size_t)st.st_size && got > 0) {
		got = read(fd, *ret + n, (size_t)st.st_size - n);
		n += (size_t)MAX(got, 0);
		if (got < 0)
			rc = err_set(reterr, ERR_USAGE, -errno, "%s: cannot "
			    "read: %s", path, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	*ret_n = n;
	return rc;
}

struct loaded {
	const char *path;
	const char *system;	/* NULL = none */
	struct chat_pair *pair;
	uint32_t npairs;
};

static int
refuse_message(const struct loaded *l, size_t i, const char *why,
    struct err *reterr)
{
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: message %zu: %s",
	    l->path, i + 1, why);
}

/* Take message i.  first: index of the first message of a user. */
static int
take_message(struct loaded *l, const json_t *m, size_t i, size_t first,
    struct err *reterr)
{
	const json_t *role = json_object_get(m, "role");
	const json_t *content = json_object_get(m, "content");
	const int is_answer = (i - first) % 2 == 1;
	const char *want = i < first ? role_system : is_answer ? role_answer :
	    role_user;
	const char *text = json_string_value(content);
	size_t n = json_string_length(content);

	if (!json_is_string(role) || !json_is_string(content) ||
	    json_object_size(m) != 2)
		return refuse_message(l, i, "it must have \"role\" and "
		    "\"content\", two strings, and nothing else", reterr);
	if (strcmp(json_string_value(role), want) != 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: message %zu: "
		    "role \"%.32s\" where \"%s\" must be: messages of user and "
		    "assistant take turns, after at most one of the system",
		    l->path, i + 1, json_string_value(role), want);
	if (i < first) {
		if (strlen(text) != n)
			return refuse_message(l, i, "a NUL in the system "
			    "message", reterr);
		l->system = text;
	} else if (is_answer) {
		l->pair[l->npairs].answer = text;
		l->pair[l->npairs++].nanswer = n;
	} else {
		if (n == 0)
			return refuse_message(l, i, "it is empty", reterr);
		l->pair[l->npairs].user = text;
		l->pair[l->npairs].nuser = n;
	}
	return 0;
}

static int
take_messages(struct loaded *l, const json_t *list, struct err *reterr)
{
	const size_t n = json_array_size(list);
	const char *role = json_string_value(json_object_get(
	    json_array_get(list, 0), "role"));
	const size_t first = role != NULL && strcmp(role, role_system) == 0;
	size_t i;
	int rc = 0;

	if (!json_is_array(list))
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: not a JSON "
		    "array of messages", l->path);
	if ((l->pair = calloc(n / 2 + 1, sizeof(*l->pair))) == NULL)
		return err_nomem(reterr, "%zu messages", n);
	for (i = 0; i < n && rc == 0; i++)
		rc = take_message(l, json_array_get(list, i), i, first,
		    reterr);
	if (rc == 0 && (n - MIN(first, n)) % 2 != 0)
		return refuse_message(l, n - 1, "a conversation ends with a "
		    "message of the assistant", reterr);
	return rc;
}

int
talk_load(struct talk *k, const char *path, uint32_t *ret_dropped,
    struct err *reterr)
{
	struct loaded l = { .path = path };
	char *text = NULL;
	json_error_t je;
	json_t *list = NULL;
	size_t n;
	int rc;

	if ((rc = read_regular(path, &text, &n, reterr)) == 0 &&
	    (list = json_loadb(text, n, JSON_REJECT_DUPLICATES |
	    JSON_ALLOW_NUL | JSON_DECODE_ANY, &je)) == NULL)
		rc = err_set(reterr, ERR_USAGE, -EINVAL, "%s:%d: not JSON: %s",
		    path, je.line, je.text);
	if (rc == 0 && (rc = take_messages(&l, list, reterr)) == 0)
		rc = chat_load(k->chat, l.system, l.pair, l.npairs, ret_dropped,
		    reterr);
	json_decref(list);
	free(l.pair);
	free(text);
	return rc;
}
