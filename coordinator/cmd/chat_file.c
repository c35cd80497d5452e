/* coordinator/cmd/chat_file.c - /save and /load: a conversation as JSON. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chat_talk.h"
#include "config/own_cap.h"
#include "config/user.h"
#include "coordinator/engine/signals.h"
#include "coordinator/print/output.h"
#include "coordinator/print/whole_file.h"

/* Contexts end long before.  In memory, a conversation's JSON takes up to 12 times
 * its bytes; other JSON up to 80 times, for which there may be no memory. */
enum { LOAD_MAX = 16 << 20, LOAD_FACTOR = 12 };

static const char role_system[] = "system", role_user[] = "user";
static const char role_answer[] = "assistant";
static const char key_thoughts[] = "reasoning_content";

/* --- /save --- */

static int
add_message(json_t *list, const char *role, const char *text, size_t nbytes,
    const char *thoughts, size_t nthoughts)
{
	json_t *m = json_pack("{s:s,s:o}", "role", role, "content",
	    output_json_text(text, nbytes));

	if (m != NULL && nthoughts > 0 && json_object_set_new(m, key_thoughts,
	    output_json_text(thoughts, nthoughts)) < 0) {
		json_decref(m);
		return -1;
	}
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
		rc = add_message(list, role_system, system, strlen(system),
		    NULL, 0);
	for (i = 0; rc == 0 && i < chat_stats(chat)->turns; i++) {
		p = chat_pair_at(chat, i);
		if ((rc = add_message(list, role_user, p.user, p.nuser, NULL,
		    0)) == 0)
			rc = add_message(list, role_answer, p.answer,
			    p.nanswer, p.thoughts, p.nthoughts);
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

/* A file that is being read. */
struct input {
	struct talk *talk;
	const char *path;
	int fd;
	size_t left;		/* bytes that may still be read */
	int rc;
	struct err *reterr;
};

/* Has the user had enough?  A hostile file keeps the JSON reader busy for
 * seconds. */
static int
check_stopped(struct input *in)
{
	if (in->talk->sigint_fd < 0)
		return signals_check(in->reterr);
	if (talk_is_interrupted(in->talk))
		return err_set(in->reterr, ERR_USAGE, -EINTR, "%s: reading it "
		    "was interrupted", in->path);
	return signals_check_split(in->reterr);
}

/* For json_load_callback(). */
static size_t
read_more(void *buf, size_t size, void *arg)
{
	struct input *in = arg;
	ssize_t n;

	if ((in->rc = check_stopped(in)) < 0)
		return (size_t)-1;
	n = read(in->fd, buf, MIN(size, in->left));
	if (n < 0) {
		in->rc = err_set(in->reterr, ERR_USAGE, -errno, "%s: cannot "
		    "read: %s", in->path, strerror(errno));
		return (size_t)-1;
	}
	in->left -= (size_t)n;
	return (size_t)n;
}

static int
open_regular(const char *path, struct input *in, struct err *reterr)
{
	struct stat st;

	/* Not blocked by a pipe without a writer. */
	in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (in->fd < 0 || fstat(in->fd, &st) < 0)
		return err_set(reterr, ERR_USAGE, -errno, "%s: %s%s", path,
		    strerror(errno), user_hint(-errno));
	if (!S_ISREG(st.st_mode))
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: not a regular "
		    "file", path);
	if (st.st_size > LOAD_MAX)
		return err_set(reterr, ERR_USAGE, -EFBIG, "%s: more than %d "
		    "MiB, which is no conversation", path, LOAD_MAX >> 20);
	in->left = (size_t)st.st_size;
	return own_cap_check(path, in->left, LOAD_FACTOR, reterr);
}

static int
read_json(struct talk *k, const char *path, json_t **ret, struct err *reterr)
{
	struct input in = { .talk = k, .path = path, .fd = -1,
	    .reterr = reterr };
	json_error_t je;
	int rc;

	*ret = NULL;
	if ((rc = open_regular(path, &in, reterr)) == 0) {
		*ret = json_load_callback(read_more, &in,
		    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
		    &je);
		rc = in.rc;
		if (rc == 0 && *ret == NULL)
			rc = err_set(reterr, ERR_USAGE, -EINVAL, "%s:%d: not "
			    "JSON: %s", path, je.line, je.text);
	}
	if (in.fd >= 0)
		close(in.fd);
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
	const json_t *thoughts = json_object_get(m, key_thoughts);
	const int is_answer = (i - first) % 2 == 1;
	const char *want = i < first ? role_system : is_answer ? role_answer :
	    role_user;
	const char *text = json_string_value(content);
	size_t n = json_string_length(content);
	struct chat_pair *p = &l->pair[l->npairs];

	if (!json_is_string(role) || !json_is_string(content) ||
	    json_object_size(m) != 2u + (thoughts != NULL) ||
	    (thoughts != NULL && !json_is_string(thoughts)))
		return refuse_message(l, i, "it must have \"role\" and "
		    "\"content\", two strings, and nothing else but an "
		    "answer's \"reasoning_content\"", reterr);
	if (strcmp(json_string_value(role), want) != 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: message %zu: "
		    "role \"%.32s\" where \"%s\" must be: messages of user and "
		    "assistant take turns, after at most one of the system",
		    l->path, i + 1, json_string_value(role), want);
	if (thoughts != NULL && !(is_answer && i >= first))
		return refuse_message(l, i, "only the assistant has "
		    "\"reasoning_content\"", reterr);
	if (i < first) {
		if (strlen(text) != n)
			return refuse_message(l, i, "a NUL in the system "
			    "message", reterr);
		l->system = text;
	} else if (is_answer) {
		p->answer = text;
		p->nanswer = n;
		p->thoughts = json_string_value(thoughts);
		p->nthoughts = json_string_length(thoughts);
		l->npairs++;
	} else {
		if (n == 0)
			return refuse_message(l, i, "it is empty", reterr);
		p->user = text;
		p->nuser = n;
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
	json_t *list;
	int rc = read_json(k, path, &list, reterr);

	if (rc == 0 && (rc = take_messages(&l, list, reterr)) == 0)
		rc = chat_load(k->chat, l.system, l.pair, l.npairs, ret_dropped,
		    reterr);
	json_decref(list);
	free(l.pair);
	return rc;
}
