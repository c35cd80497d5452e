/* config/conf_check.c - contradictions between settings, names of sessions, and
 * the cores that each of them gets. */
#include "conf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#include "cores.h"
#include "devices.h"
#include "keys.h"

static int
is_name_taken(const struct conf *c, const char *name)
{
	int i;

	for (i = 0; i < c->nsessions; i++)
		if (strcmp(c->session[i].name, name) == 0)
			return 1;
	return 0;
}

/* Name a session after its kind and its index among that kind, "cpu1", or a
 * later index if that name is taken. */
static void
make_name(struct conf *c, int i)
{
	struct session_conf *s = &c->session[i];
	char name[MAX_NAME];
	int j, index = 0;

	for (j = 0; j < i; j++)
		index += strcmp(c->session[j].device, s->device) == 0;
	do
		snprintf(name, sizeof(name), "%.20s%d", s->device, index++);
	while (is_name_taken(c, name));
	strlcpy(s->name, name, sizeof(s->name));
}

/* Put "demo.conf:7: session cpu0: " in front of the error. */
static int
fail_session(const struct session_conf *s, struct err *reterr, int rc)
{
	err_prefix(reterr, "session %s", s->name);
	if (s->where[0] != '\0')
		err_prefix(reterr, "%s", s->where);
	return rc;
}

static int
check_names(struct conf *c, struct err *reterr)
{
	int i, j;

	for (i = 0; i < c->nsessions; i++)
		for (j = 0; j < i; j++)
			if (c->session[i].name[0] != '\0' &&
			    strcmp(c->session[i].name,
			    c->session[j].name) == 0)
				return fail_session(&c->session[i], reterr,
				    err_set(reterr, ERR_USAGE, -EINVAL,
				    "name already used at %s: each session "
				    "needs its own", c->session[j].where));
	for (i = 0; i < c->nsessions; i++)
		if (c->session[i].name[0] == '\0')
			make_name(c, i);
	return 0;
}

/* Divide the CPU quota over the cores in use: sessions on the same cores take
 * turns, and each has the quota of them all. */
static void
share_quota(struct conf *c)
{
	struct session_conf *s;
	struct cpuset all;
	struct quota q;

	quota_read("", &c->quota);
	conf_cores(c, &all);
	for (s = c->session; s < c->session + c->nsessions; s++) {
		q.cores = c->quota.cores * cpuset_count(&s->cpus) /
		    MAX(cpuset_count(&all), 1);
		s->quota_threads = q.cores > 0 ? (int)quota_threads(&q,
		    cpuset_count(&s->cpus)) : 0;
	}
}

/* Without cores of its own, the kind's; where these cores are all equal, all. */
static int
resolve_cores(struct session_conf *s, const char *sysfs, struct err *reterr)
{
	const char *usual = device_default_cores(s->device);
	struct err e;

	if (s->cores[0] == '\0' && usual[0] != '\0' &&
	    cores_resolve(usual, s->node, sysfs, &s->cpus, &e) == 0)
		return 0;
	return cores_resolve(s->cores, s->node, sysfs, &s->cpus, reterr);
}

/* Another session on the kind of s that has this number; NULL = none. */
static const struct session_conf *
with_domain(const struct conf *c, const struct session_conf *s, int domain)
{
	const struct session_conf *t;

	for (t = c->session; t < c->session + c->nsessions; t++)
		if (t != s && t->iommu_domain == domain &&
		    strcmp(t->device, s->device) == 0)
			return t;
	return NULL;
}

/* Each session on a kind with numbered address spaces has one of its own. */
static int
check_domains(struct conf *c, struct err *reterr)
{
	const struct session_conf *t;
	struct session_conf *s;
	int n, domain;

	for (s = c->session; s < c->session + c->nsessions; s++) {
		if ((n = (int)device_iommu_domains(s->device)) == 0)
			continue;
		if (s->iommu_domain >= 0 && (t = with_domain(c, s,
		    s->iommu_domain)) != NULL)
			return fail_session(s, reterr, err_set(reterr,
			    ERR_USAGE, -EINVAL, "iommu_domain %d: session %s "
			    "has it too, each needs its own",
			    s->iommu_domain, t->name));
		for (domain = 0; s->iommu_domain < 0 && domain < n; domain++)
			if (with_domain(c, s, domain) == NULL)
				s->iommu_domain = domain;
		if (s->iommu_domain < 0)
			return fail_session(s, reterr, err_set(reterr,
			    ERR_USAGE, -EINVAL, "device %s has %d IOMMU "
			    "domains, one for each session: use fewer "
			    "sessions", s->device, n));
	}
	return 0;
}

int
conf_shares_worker(const struct session_conf *a, const struct session_conf *b)
{
	return a == b || (a->process[0] != '\0' &&
	    strcmp(a->process, b->process) == 0);
}

/* All sessions on s's kind are served by one process: that of the first one that
 * names it, or one called after the kind. */
static int
share_kind(struct conf *c, struct session_conf *s, struct err *reterr)
{
	struct session_conf *t;
	const char *name = NULL;
	unsigned n = 0;

	for (t = c->session; t < c->session + c->nsessions; t++) {
		if (strcmp(t->device, s->device) != 0)
			continue;
		n++;
		if (name == NULL && t->process[0] != '\0')
			name = t->process;
	}
	if (s->process[0] != '\0' && strcmp(s->process, name) != 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "process: all "
		    "sessions on %s are served by one, and another session "
		    "names it %s", s->device, name);
	if (s->process[0] == '\0' && (n > 1 || name != NULL))
		strlcpy(s->process, name != NULL ? name : s->device,
		    sizeof(s->process));
	return 0;
}

static int
check_processes(struct conf *c, struct err *reterr)
{
	struct session_conf *s;
	int rc = 0;

	for (s = c->session; s < c->session + c->nsessions; s++) {
		if (device_shares_process(s->device))
			rc = share_kind(c, s, reterr);
		else if (s->process[0] != '\0' &&
		    device_needs_process(s->device))
			rc = err_set(reterr, ERR_USAGE, -EINVAL, "process: a "
			    "session on %s has a process of its own: leave it "
			    "out", s->device);
		if (rc < 0)
			return fail_session(s, reterr, rc);
	}
	return 0;
}

static int
check_sessions(struct conf *c, struct err *reterr)
{
	struct session_conf *s;
	int rc;

	if (c->nsessions == 0)
		session_defaults(&c->session[c->nsessions++]);
	if ((rc = check_names(c, reterr)) < 0)
		return rc;
	for (s = c->session; s < c->session + c->nsessions; s++) {
		if (s->threads == 0)
			s->threads = c->threads;
		if ((rc = device_check_keys(s->device, s->port,
		    s->domain_bytes != 0, s->iommu_domain >= 0, reterr)) < 0)
			return fail_session(s, reterr, rc);
		/* One device has one name, by which its memory is shared. */
		if (device_is_first(s->device, s->port))
			s->port[0] = '\0';
		if ((rc = resolve_cores(s, "/sys", reterr)) < 0) {
			err_prefix(reterr, rc == -ENODEV ? "node" : "cores");
			return fail_session(s, reterr, rc);
		}
	}
	share_quota(c);
	if ((rc = check_processes(c, reterr)) < 0)
		return rc;
	return check_domains(c, reterr);
}

void
conf_cores(const struct conf *c, struct cpuset *ret)
{
	int i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < c->nsessions; i++)
		cpuset_add_all(ret, &c->session[i].cpus);
}

static int
refuse(const struct conf *c, struct err *reterr, const char *what)
{
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: %s",
	    command_name(c->cmd), what);
}

/* Was something piped or redirected into this process?  A terminal, /dev/null
 * and a closed stdin are no source of text. */
static int
is_fed(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) ||
	    S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Without another source, text that was piped in is read: -f - is implied. */
static int
imply_stdin(char **path, struct err *reterr)
{
	if (!is_fed())
		return 0;
	*path = strdup("-");
	return *path != NULL ? 1 : err_nomem(reterr, "the name of stdin");
}

/* Exactly one source of text: of three for run, of two for tokenize. */
static int
check_prompt(struct conf *c, struct err *reterr)
{
	int given = (c->prompt != NULL) + (c->prompt_file != NULL) +
	    (c->prompts_file != NULL);

	if (c->cmd != CMD_RUN && c->cmd != CMD_TOKENIZE)
		return 0;
	if (given == 0 && (given = imply_stdin(&c->prompt_file, reterr)) < 0)
		return given;
	if (given != 1 && c->cmd == CMD_RUN)
		return refuse(c, reterr, given == 0 ? "no prompt: give -p TEXT, "
		    "-f FILE or --prompts FILE, or pipe a text in; a "
		    "conversation is straddle chat" :
		    "give only one of -p, -f and --prompts");
	if (given != 1)
		return refuse(c, reterr, given == 0 ? "no text: give -p TEXT "
		    "or -f FILE, or pipe a text in" : "give only one of -p and -f");
	if (c->system != NULL && !c->chat)
		return refuse(c, reterr, "--system is only valid with --chat");
	if (c->prefill != NULL && !c->chat)
		return refuse(c, reterr, "--prefill is only valid with --chat");
	if (c->template_args.n > 0 && !c->chat)
		return refuse(c, reterr, "--template-arg is only valid with "
		    "--chat");
	if (c->cmd == CMD_RUN && c->parallel > 1 && c->prompts_file == NULL)
		return refuse(c, reterr, "--parallel is only valid with "
		    "--prompts");
	return 0;
}

/* A second reader of stdin would find it empty. */
static int
check_stdin(const struct conf *c, struct err *reterr)
{
	const char *const other[] = { c->prompt_file, c->prompts_file,
	    c->vars_path, c->cmd == CMD_CHAT ? "-" : NULL };
	size_t i;

	if (c->chat_template == NULL || strcmp(c->chat_template, "-") != 0)
		return 0;
	for (i = 0; i < NITEMS(other); i++)
		if (other[i] != NULL && strcmp(other[i], "-") == 0)
			return refuse(c, reterr, "--chat-template - would read "
			    "the same stdin as the messages: name a file");
	return 0;
}

static int
check_ids(struct conf *c, struct err *reterr)
{
	int given = (c->ids != NULL) + (c->ids_file != NULL);

	if (given == 0 && c->cmd == CMD_DETOKENIZE &&
	    (given = imply_stdin(&c->ids_file, reterr)) < 0)
		return given;
	if (c->cmd == CMD_DETOKENIZE && given != 1)
		return refuse(c, reterr, given == 0 ? "no ids: give them as "
		    "operands, with -p \"1 2 3\" or -f FILE" :
		    "give the ids one way: operands, -p or -f");
	if (c->cmd != CMD_EVAL)
		return 0;
	given += c->text_path != NULL;
	if (given == 0 && c->logits_path == NULL &&
	    (given = imply_stdin(&c->text_path, reterr)) < 0)
		return given;
	if (given != 1)
		return refuse(c, reterr, given == 0 ? "nothing to evaluate: "
		    "give --ids or --ids-file with --logits, or --text" :
		    "give only one of --ids, --ids-file and --text");
	if ((c->text_path != NULL) != (c->logits_path == NULL))
		return refuse(c, reterr, c->text_path != NULL ? "--logits is "
		    "not valid with --text" : "no file for the logits: give "
		    "--logits OUT.f32");
	if (c->text_path == NULL && c->stride_tok > 0)
		return refuse(c, reterr, "--stride is only valid with --text");
	return 0;
}

static int
check_quantize(const struct conf *c, struct err *reterr)
{
	if (c->cmd != CMD_QUANTIZE || (c->model_path != NULL &&
	    c->out_path != NULL && c->quant_type != NULL))
		return 0;
	return refuse(c, reterr, c->model_path == NULL ?
	    "no file to read: give IN OUT TYPE" : c->out_path == NULL ?
	    "no file to write: give IN OUT TYPE" :
	    "no type: give IN OUT TYPE, such as in.gguf out.gguf Q4_0");
}

int
conf_check(struct conf *c, struct err *reterr)
{
	int rc;

	if (c->cmd == CMD_HELP || c->cmd == CMD_VERSION)
		return 0;
	if ((rc = check_quantize(c, reterr)) < 0)
		return rc;
	/* plan --check accepts a config without a model: -m may add it. */
	if (c->model_path == NULL && c->cmd != CMD_NONE &&
	    c->cmd != CMD_DEVICES && !(c->cmd == CMD_RENDER &&
	    c->chat_template != NULL) && !c->check_only && !c->stress_list)
		return refuse(c, reterr, "no model: give -m MODEL, or "
		    "model = \"...\" in the file of -c");
	if (c->cmd == CMD_RENDER && c->vars_path == NULL)
		return refuse(c, reterr, "no variables: give --vars FILE, a "
		    "JSON object with messages");
	if (c->check_only && (c->json || c->fit))
		return refuse(c, reterr, "--check only prints the config: leave "
		    "out --json and --fit");
	if (c->soak_s > 0 && c->stress_only != NULL)
		return refuse(c, reterr, "--soak replaces the cases: leave out "
		    "--only");
	if ((rc = check_prompt(c, reterr)) < 0 ||
	    (rc = check_stdin(c, reterr)) < 0 ||
	    (rc = check_ids(c, reterr)) < 0)
		return rc;
	return check_sessions(c, reterr);
}
