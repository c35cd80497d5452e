/* config/conf_check.c - defaults, contradictions, printing; and the order in which
 * defaults, file and flags are laid over each other. */
#include "conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "cores.h"
#include "devices.h"
#include "keys.h"

void
conf_defaults(struct conf *c)
{
	*c = (struct conf){
		.batch_rows = 128,
		.kv_type_k = KV_F16, .kv_type_v = KV_F16,
		.recover = 16,
		.sampling = {
			.temp = 0.8,
			.top_k = 40,
			.top_p = 0.95,
			.min_p = 0.05,
			.repeat_penalty = 1.0,
			.repeat_last_n = 64,
		},
		.verbose = 1,
		.parallel = 1,
		.n_predict = 128,
		.bench_prompt = 512,
		.bench_reps = 3,
		.slice_ms = 30,
	};
}

int
conf_load(int argc, char **argv, struct conf *ret, struct err *reterr)
{
	int rc;

	conf_defaults(ret);
	if ((rc = cli_find_config(argc, argv, &ret->config_path, reterr)) < 0)
		return rc;
	if (ret->config_path != NULL &&
	    (rc = conf_parse_file(ret->config_path, ret, reterr)) < 0)
		return rc;
	if ((rc = cli_parse(argc, argv, ret, reterr)) < 0)
		return rc;
	return conf_check(ret, reterr);
}

static int
name_taken(const struct conf *c, const char *name)
{
	int i;

	for (i = 0; i < c->nsessions; i++)
		if (strcmp(c->session[i].name, name) == 0)
			return 1;
	return 0;
}

/* Call a nameless session by its kind and its index among that kind: "cpu1";
 * by a later index when somebody else is called so. */
static void
give_name(struct conf *c, int i)
{
	struct session_conf *s = &c->session[i];
	char name[MAX_NAME];
	int j, index = 0;

	for (j = 0; j < i; j++)
		index += strcmp(c->session[j].device, s->device) == 0;
	do
		snprintf(name, sizeof(name), "%.20s%d", s->device, index++);
	while (name_taken(c, name));
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
				    "the session at %s has this name: each "
				    "needs a name of its own",
				    c->session[j].where));
	for (i = 0; i < c->nsessions; i++)
		if (c->session[i].name[0] == '\0')
			give_name(c, i);
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
		if ((rc = device_check_keys(s->device, s->port,
		    s->domain_bytes != 0, reterr)) < 0)
			return fail_session(s, reterr, rc);
		if ((rc = cores_resolve(s->cores, s->node, "/sys", &s->cpus,
		    reterr)) < 0) {
			err_prefix(reterr, rc == -ENODEV ? "node" : "cores");
			return fail_session(s, reterr, rc);
		}
	}
	return 0;
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
lacks(const struct conf *c, struct err *reterr, const char *what)
{
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: %s",
	    command_name(c->cmd), what);
}

/* Where the text comes from: one of three for run, of two for tokenize. */
static int
check_prompt(const struct conf *c, struct err *reterr)
{
	int given = (c->prompt != NULL) + (c->prompt_file != NULL) +
	    (c->prompts_file != NULL);

	if (c->cmd != CMD_RUN && c->cmd != CMD_TOKENIZE)
		return 0;
	if (given != 1 && c->cmd == CMD_RUN)
		return lacks(c, reterr, given == 0 ? "no prompt: give -p TEXT, "
		    "-f FILE or --prompts FILE" :
		    "give one of -p, -f and --prompts, not several");
	if (given != 1)
		return lacks(c, reterr, given == 0 ? "no text: give -p TEXT "
		    "or -f FILE" : "give one of -p and -f, not both");
	if (c->system != NULL && !c->chat)
		return lacks(c, reterr, "--system goes with --chat");
	if (c->cmd == CMD_RUN && c->parallel > 1 && c->prompts_file == NULL)
		return lacks(c, reterr, "--parallel needs several prompts: "
		    "give --prompts FILE");
	return 0;
}

static int
check_ids(const struct conf *c, struct err *reterr)
{
	int given = (c->ids != NULL) + (c->ids_file != NULL);

	if (c->cmd == CMD_DETOKENIZE && given != 1)
		return lacks(c, reterr, given == 0 ? "no ids: give them as "
		    "operands, with -p \"1 2 3\" or -f FILE" :
		    "give the ids one way: operands, -p or -f");
	if (c->cmd != CMD_EVAL)
		return 0;
	given += c->text_path != NULL;
	if (given != 1)
		return lacks(c, reterr, given == 0 ? "nothing to evaluate: "
		    "give --ids or --ids-file with --logits, or --text" :
		    "give one of --ids, --ids-file and --text, not several");
	if ((c->text_path != NULL) != (c->logits_path == NULL))
		return lacks(c, reterr, "--logits OUT.f32 goes with --ids and "
		    "--ids-file, and they need it");
	if (c->text_path == NULL && c->stride_tok > 0)
		return lacks(c, reterr, "--stride goes with --text");
	return 0;
}

static int
check_quantize(const struct conf *c, struct err *reterr)
{
	if (c->cmd != CMD_QUANTIZE || (c->model_path != NULL &&
	    c->out_path != NULL && c->quant_type != NULL))
		return 0;
	return lacks(c, reterr, c->model_path == NULL ?
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
	/* A file without a model is complete: -m may come with each run. */
	if (c->model_path == NULL && c->cmd != CMD_NONE &&
	    c->cmd != CMD_DEVICES && !c->check_only && !c->stress_list)
		return lacks(c, reterr, "no model: give -m MODEL, or "
		    "model = \"...\" in the file of -c");
	if (c->check_only && (c->json || c->fit))
		return lacks(c, reterr, "--check prints a config, and plans "
		    "nothing: it goes without --json and --fit");
	if (c->soak_s > 0 && c->stress_only != NULL)
		return lacks(c, reterr, "--soak takes the place of the cases: "
		    "it goes without --only");
	if ((rc = check_prompt(c, reterr)) < 0 ||
	    (rc = check_ids(c, reterr)) < 0)
		return rc;
	return check_sessions(c, reterr);
}

int
conf_print(const struct conf *c, FILE *fp)
{
	int i;
	unsigned k;

	for (k = 0; k < COMMON_NKEYS; k++)
		key_print(&common_keys[k], c, "", fp);
	fputs("\nsampling {\n", fp);
	for (k = 0; k < SAMPLING_NKEYS; k++)
		key_print(&sampling_keys[k], &c->sampling, "\t", fp);
	fputs("}\n", fp);
	for (i = 0; i < c->nsessions; i++) {
		fprintf(fp, "\nsession %s {\n", c->session[i].name);
		for (k = 0; k < SESSION_NKEYS; k++)
			key_print(&session_keys[k], &c->session[i], "\t", fp);
		fputs("}\n", fp);
	}
	return fflush(fp) == 0 && !ferror(fp) ? 0 : -EIO;
}

void
conf_free(struct conf *c)
{
	free(c->config_path);
	free(c->model_path);
	free(c->prompt);
	free(c->prompt_file);
	free(c->prompts_file);
	free(c->system);
	free(c->ids);
	free(c->ids_file);
	free(c->logits_path);
	free(c->text_path);
	free(c->out_path);
	free(c->quant_type);
	free(c->head_type);
	free(c->fallback_type);
	free(c->stress_only);
	free(c->help_topic);
	conf_defaults(c);
}
