/* coordinator/print/line_history.c - the file of lines typed earlier. */
#include "line_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/log.h"
#include "config/plain.h"

struct line_history {
	char *path;
};

/* --- entries --- */

/* "\x1b" is the longest form of a byte.  Returns malloc'ed text that ends in a
 * newline. */
static char *
encode_entry(const char *text)
{
	size_t n = strlen(text), len;
	char *line = malloc(n * 4 + 2), *p = line;

	if (line == NULL)
		return NULL;
	for (; n > 0; text += len, n -= len) {
		len = MAX(plain_len(text, n), 1);
		if (*text == '\n')
			p = stpcpy(p, "\\n");
		else if (*text == '\\')
			p = stpcpy(p, "\\\\");
		else if (plain_len(text, n) == 0)
			p += sprintf(p, "\\x%02x", (unsigned char)*text);
		else
			p = mempcpy(p, text, len);
	}
	strcpy(p, "\n");
	return line;
}

/* Undo encode_entry() in place, without its newline.  A backslash before
 * anything else stands for itself. */
static void
decode_entry(char *line)
{
	char *to = line, hex[3] = "";

	for (; *line != '\0'; line++) {
		if (line[0] == '\\' && (line[1] == 'n' || line[1] == '\\')) {
			*to++ = line[1] == 'n' ? '\n' : '\\';
			line++;
		} else if (line[0] == '\\' && line[1] == 'x' &&
		    strspn(line + 2, "0123456789abcdef") >= 2 &&
		    memcmp(line + 2, "00", 2) != 0) {
			memcpy(hex, line + 2, 2);
			*to++ = (char)strtoul(hex, NULL, 16);
			line += 3;
		} else {
			*to++ = *line;
		}
	}
	*to = '\0';
}

/* --- the file --- */

/* Make the folders of a path, which is changed and restored. */
static int
make_folders(char *path)
{
	char *slash = path;
	int rc = 0;

	while (rc == 0 && (slash = strchr(slash + 1, '/')) != NULL) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			rc = -errno;
		*slash = '/';
	}
	return rc;
}

/* The file's path, malloc'ed; NULL: no absolute path is known, or no memory. */
static char *
find_path(void)
{
	const char *state = secure_getenv("XDG_STATE_HOME");
	const char *home = secure_getenv("HOME");
	char *path = NULL;
	int n = -1;

	if (state != NULL && state[0] == '/')
		n = asprintf(&path, "%s/straddle/history", state);
	else if (home != NULL && home[0] == '/')
		n = asprintf(&path, "%s/.local/state/straddle/history", home);
	return n < 0 ? NULL : path;
}

/* Open the file, as a private one that is ours.  Returns a locked descriptor. */
static int
open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC |
	    O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid()) {
		close(fd);
		return -EPERM;
	}
	if ((st.st_mode & 077) != 0)
		(void)fchmod(fd, 0600);
	(void)flock(fd, LOCK_EX);
	return fd;
}

/* The last HISTORY_BYTES of the file, from the start of a line on, with room for
 * a newline and a NUL; malloc'ed.  *ret_cut: the file has more. */
static char *
read_tail(int fd, size_t *ret_n, int *ret_cut)
{
	off_t size = lseek(fd, 0, SEEK_END), from;
	char *buf = malloc(HISTORY_BYTES + 3), *nl;
	ssize_t got;

	if (buf == NULL || size < 0)
		goto fail;
	*ret_cut = size > HISTORY_BYTES;
	from = *ret_cut ? size - HISTORY_BYTES - 1 : 0;
	if ((got = pread(fd, buf, HISTORY_BYTES + 1, from)) < 0)
		goto fail;
	buf[got] = '\0';
	*ret_n = (size_t)got;
	if (*ret_cut) {
		nl = memchr(buf, '\n', *ret_n);
		*ret_n = nl != NULL ? *ret_n - (size_t)(nl + 1 - buf) : 0;
		memmove(buf, nl != NULL ? nl + 1 : buf, *ret_n);
		buf[*ret_n] = '\0';
	}
	return buf;
fail:
	free(buf);
	return NULL;
}

/* The first of the last HISTORY_LINES lines of text[n]. */
static char *
last_lines(char *text, size_t n)
{
	unsigned nlines = 0;
	size_t i;

	for (i = n; i > 0; i--)
		if (text[i - 1] == '\n' && nlines++ == HISTORY_LINES)
			return text + i;
	return text;
}

/* Make the file shorter.  Each writer opens and locks it anew, and has it empty
 * for a moment at most. */
static void
rewrite(int fd, const char *text, size_t n)
{
	if (ftruncate(fd, 0) == 0 && write(fd, text, n) != (ssize_t)n)
		log_debug("the history is incomplete: %s", strerror(errno));
}

/* Read the file, and shorten it if it has grown too long. */
static int
load_file(const char *path, void (*fn)(void *arg, const char *text), void *arg)
{
	int fd = open_file(path), cut;
	char *text, *line, *nl;
	size_t n;

	if (fd < 0)
		return fd;
	if ((text = read_tail(fd, &n, &cut)) == NULL) {
		close(fd);
		return -ENOMEM;
	}
	if (n > 0 && text[n - 1] != '\n') {	/* its writer was killed */
		stpcpy(text + n++, "\n");
		cut = 1;
	}
	line = last_lines(text, n);
	if (cut || line > text)
		rewrite(fd, line, n - (size_t)(line - text));
	close(fd);
	for (; (nl = strchr(line, '\n')) != NULL; line = nl + 1) {
		*nl = '\0';
		decode_entry(line);
		if (*line != '\0')
			fn(arg, line);
	}
	free(text);
	return 0;
}

struct line_history *
line_history_open(void (*fn)(void *arg, const char *text), void *arg)
{
	struct line_history *lh = calloc(1, sizeof(*lh));
	int rc;

	if (lh == NULL || (lh->path = find_path()) == NULL) {
		log_debug("lines are not kept: neither XDG_STATE_HOME nor HOME "
		    "names a folder");
		free(lh);
		return NULL;
	}
	if ((rc = make_folders(lh->path)) < 0 ||
	    (rc = load_file(lh->path, fn, arg)) < 0) {
		log_debug("lines are not kept: %s: %s", lh->path,
		    rc == -EPERM ? "not a file of this user" : strerror(-rc));
		line_history_close(lh);
		return NULL;
	}
	return lh;
}

void
line_history_add(struct line_history *lh, const char *text)
{
	char *line = encode_entry(text);
	size_t n = line != NULL ? strlen(line) : 0;
	int fd;

	if (n > 0 && n <= HISTORY_BYTES / 16 &&
	    (fd = open_file(lh->path)) >= 0) {
		if (write(fd, line, n) != (ssize_t)n)
			log_debug("%s: a line is not kept", lh->path);
		close(fd);
	}
	free(line);
}

void
line_history_close(struct line_history *lh)
{
	if (lh == NULL)
		return;
	free(lh->path);
	free(lh);
}
