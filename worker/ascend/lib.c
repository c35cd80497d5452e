/* worker/ascend/lib.c - loads CANN's libraries and asks them what they run on. */
#include "lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <bsd/string.h>

#define SET_ENV	"source set_env.sh of the CANN toolkit (usually /usr/local/" \
		"Ascend/ascend-toolkit/set_env.sh) in the shell that starts " \
		"straddle"

static struct acl_lib lib;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* --- load --- */

struct function { const char *name; size_t at; int must; };

static const struct function functions[] = {
#define X(f)	{ #f, offsetof(struct acl_lib, f), 1 },
	ACL_FUNCTIONS(X)
#undef X
#define X(f)	{ #f, offsetof(struct acl_lib, f), 0 },
	ACL_LATER_FUNCTIONS(X)
#undef X
}, base_functions[] = {
#define X(f)	{ #f, offsetof(struct acl_lib, f), 1 },
	ACL_BASE_FUNCTIONS(X)
#undef X
}, classic_functions[] = {
#define X(f)	{ #f, offsetof(struct acl_lib, f), 1 },
	ACL_CLASSIC_FUNCTIONS(X)
#undef X
}, phase_one[] = {		/* by enum acl_operator */
#define X(op)	{ "aclnn" #op "GetWorkspaceSize", \
		  offsetof(struct acl_lib, op), 0 },
	ACL_OPERATORS(X)
#undef X
}, phase_two[] = {
#define X(op)	{ "aclnn" #op, \
		  offsetof(struct acl_lib, run) + \
		  ACL_OP_##op * sizeof(acl_run_fn *), 0 },
	ACL_OPERATORS(X)
#undef X
}, helpers[] = {
	{ "aclnnCalculateMatmulWeightSizeV2",
	  offsetof(struct acl_lib, aclnnCalculateMatmulWeightSizeV2), 0 },
};

/* Find functions in a library, besides those found before; return the name of a
 * missing one, or NULL. */
static const char *
find_functions(void *so, const struct function *f, unsigned n)
{
	const char *missing = NULL;
	unsigned i;
	void *p;

	for (i = 0; i < n; i++) {
		memcpy(&p, (char *)&lib + f[i].at, sizeof(p));
		if (p != NULL)
			continue;
		p = dlsym(so, f[i].name);
		memcpy((char *)&lib + f[i].at, &p, sizeof(p));
		if (p == NULL && f[i].must && missing == NULL)
			missing = f[i].name;
	}
	return missing;
}

/* An operator needs both its phases. */
static void
find_operators(void *so)
{
	void *one, *two;
	unsigned i;

	find_functions(so, helpers, NITEMS(helpers));
	for (i = 0; i < ACL_NOPS; i++) {
		one = dlsym(so, phase_one[i].name);
		two = dlsym(so, phase_two[i].name);
		if (one == NULL || two == NULL)
			one = two = NULL;
		if (one == NULL && lib.run[i] != NULL)
			continue;
		memcpy((char *)&lib + phase_one[i].at, &one, sizeof(one));
		memcpy((char *)&lib + phase_two[i].at, &two, sizeof(two));
	}
}

static int
no_library(const char *name, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -ENOENT, "looked for %s: %.160s; it "
	    "comes with Huawei's CANN toolkit: install it, and " SET_ENV,
	    name, dlerror());
}

static int
no_function(const char *name, const char *function, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -ENOENT, "%s has no %s: this CANN is "
	    "too old, install 8.0 or newer", name, function);
}

/* The runtime's symbols must be global: the libraries of operators look for them
 * there. */
static int
load_runtime(struct err *reterr)
{
	const char *missing;
	Dl_info info;
	void *p;

	if ((lib.so = dlopen(ACL_LIBRARY, RTLD_NOW | RTLD_GLOBAL)) == NULL)
		return no_library(ACL_LIBRARY, reterr);
	if ((missing = find_functions(lib.so, functions,
	    NITEMS(functions))) != NULL)
		return no_function(ACL_LIBRARY, missing, reterr);
	memcpy(&p, &lib.aclInit, sizeof(p));
	if (dladdr(p, &info) != 0)
		strlcpy(lib.path, info.dli_fname, sizeof(lib.path));
	if ((lib.base = dlopen(ACL_BASE, RTLD_NOW | RTLD_GLOBAL)) == NULL)
		return no_library(ACL_BASE, reterr);
	if ((missing = find_functions(lib.base, base_functions,
	    NITEMS(base_functions))) != NULL)
		return no_function(ACL_BASE, missing, reterr);
	return 0;
}

static int
is_loaded(const char *name)
{
	void *so = dlopen(name, RTLD_NOW | RTLD_NOLOAD);

	if (so != NULL)
		dlclose(so);
	return so != NULL;
}

static int
both_families(struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EINVAL, "this process has loaded both "
	    ACL_OPS " and " ACL_OPS_NN ", which CANN forbids: remove one of "
	    "them from LD_PRELOAD and LD_LIBRARY_PATH");
}

/* The split libraries are the newer ones.  A program that is there already, by
 * LD_PRELOAD, decides. */
static int
load_operators(struct err *reterr)
{
	static const char *const split[] = {
		ACL_OPS_NN, ACL_OPS_MATH, ACL_OPS_TRANSFORMER,
	};
	int old = is_loaded(ACL_OPS);
	unsigned i;

	lib.nops = 0;
	if (old && (is_loaded(ACL_OPS_NN) || is_loaded(ACL_OPS_MATH)))
		return both_families(reterr);
	for (i = 0; i < NITEMS(split) && !old; i++) {
		void *so = dlopen(split[i], RTLD_NOW);

		if (so == NULL && i == 0)
			break;			/* an older release */
		if (so == NULL && i == 1)
			return no_library(split[i], reterr);
		if (so != NULL)
			lib.ops[lib.nops++] = so;
	}
	if (lib.nops == 0) {
		if ((lib.ops[0] = dlopen(ACL_OPS, RTLD_NOW)) == NULL)
			return no_library(ACL_OPS, reterr);
		lib.nops = 1;
	}
	for (i = 0; i < lib.nops; i++)
		find_operators(lib.ops[i]);
	return 0;
}

int
acl_load(const struct acl_lib **ret, struct err *reterr)
{
	static int loaded;
	int rc = 0;

	pthread_mutex_lock(&mutex);
	if (!loaded) {
		if ((rc = load_runtime(reterr)) == 0)
			rc = load_operators(reterr);
		loaded = rc == 0;
	}
	pthread_mutex_unlock(&mutex);
	*ret = &lib;
	return rc;
}

const char *
acl_operator_name(enum acl_operator op)
{
	return phase_two[op].name;
}

int
acl_has_operator(const struct acl_lib *l, enum acl_operator op)
{
	return l->run[op] != NULL;
}

/* As a program has them that was linked with them: the runtime first, symbols
 * global. */
static int
load_classic(void)
{
	static const char *const names[] = { ACL_OP_COMPILER,
	    ACL_OP_EXECUTOR };
	const char *missing = find_functions(lib.so, classic_functions,
	    NITEMS(classic_functions));
	unsigned i;
	void *so;

	for (i = 0; i < NITEMS(names) && missing != NULL; i++)
		if ((so = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL)) != NULL)
			missing = find_functions(so, classic_functions,
			    NITEMS(classic_functions));
	return missing == NULL;
}

int
acl_has_classic(const struct acl_lib *l)
{
	static int is_tried, has;
	int rc;

	(void)l;			/* there is one */
	pthread_mutex_lock(&mutex);
	if (!is_tried)
		has = load_classic();
	is_tried = 1;
	rc = has;
	pthread_mutex_unlock(&mutex);
	return rc;
}

/* --- the process --- */

enum state { FRESH, OURS, THEIRS, FINISHED };
static enum state state;

static int
start(const struct acl_lib *l, const char *session, struct err *reterr)
{
	int rc;

	if (state == OURS || state == THEIRS)
		return 0;
	if (state == FINISHED)
		return err_set(reterr, ERR_RUN, -EINVAL, "session %s: CANN was "
		    "finalized in this process, and can be initialized once "
		    "only", session);
	rc = l->aclInit(NULL);
	if (rc == ACL_ERROR_STUB_LIBRARY)
		return err_set(reterr, ERR_RUN, -ENOENT, "session %s: %s is a "
		    "stub, which programs are linked with (aclInit returned "
		    "%d): take the folder devlib or stub out of "
		    "LD_LIBRARY_PATH, and " SET_ENV, session, l->path, rc);
	if (rc != ACL_SUCCESS && rc != ACL_ERROR_REPEAT_INITIALIZE)
		return acl_failed(l, session, "aclInit", rc, reterr);
	state = rc == ACL_SUCCESS ? OURS : THEIRS;
	return 0;
}

int
acl_start(const struct acl_lib *l, const char *session, struct err *reterr)
{
	int rc;

	pthread_mutex_lock(&mutex);
	rc = start(l, session, reterr);
	pthread_mutex_unlock(&mutex);
	return rc;
}

int
acl_finish(const struct acl_lib *l, const char *session, struct err *reterr)
{
	int rc = ACL_SUCCESS;

	pthread_mutex_lock(&mutex);
	if (state == OURS)
		rc = l->aclFinalize();
	if (state != FRESH)
		state = FINISHED;
	pthread_mutex_unlock(&mutex);
	return rc == ACL_SUCCESS || rc == ACL_ERROR_REPEAT_FINALIZE ? 0 :
	    acl_failed(l, session, "aclFinalize", rc, reterr);
}

/* --- the machine --- */

int
acl_find_machine(const struct acl_lib *l, const char *session,
    struct acl_machine *ret, struct err *reterr)
{
	int32_t *v = ret->version;
	const char *soc;
	int mode, rc;

	memset(ret, 0, sizeof(*ret));
	if ((soc = l->aclrtGetSocName()) == NULL)
		return acl_failed_null(l, session, "aclrtGetSocName", reterr);
	strlcpy(ret->soc, soc, sizeof(ret->soc));
	ret->is_310b = strncmp(soc, "Ascend310B", 10) == 0;
	if ((rc = l->aclrtGetVersion(&v[0], &v[1], &v[2])) != ACL_SUCCESS)
		return acl_failed(l, session, "aclrtGetVersion", rc, reterr);
	if ((rc = l->aclrtGetRunMode(&mode)) != ACL_SUCCESS)
		return acl_failed(l, session, "aclrtGetRunMode", rc, reterr);
	ret->is_rc = mode == ACL_DEVICE;
	if ((rc = l->aclrtGetDeviceCount(&ret->ndevices)) != ACL_SUCCESS)
		return acl_failed(l, session, "aclrtGetDeviceCount", rc,
		    reterr);
	if (ret->ndevices == 0)
		return err_set(reterr, ERR_RUN, -ENODEV, "session %s: %s "
		    "finds no device: npu-smi info must show one; add this "
		    "user to the group of /dev/davinci0 (HwHiAiUser)", session,
		    ACL_LIBRARY);
	return 0;
}

int
acl_has_virtual_memory(const struct acl_lib *l, const struct acl_machine *m)
{
	return !m->is_rc && l->aclrtMemGetAllocationGranularity != NULL &&
	    l->aclrtReserveMemAddress != NULL &&
	    l->aclrtReleaseMemAddress != NULL &&
	    l->aclrtMallocPhysical != NULL && l->aclrtFreePhysical != NULL &&
	    l->aclrtMapMem != NULL && l->aclrtUnmapMem != NULL;
}

int
acl_has_capture(const struct acl_lib *l, const struct acl_machine *m)
{
	return !m->is_310b && l->aclmdlRICaptureBegin != NULL &&
	    l->aclmdlRICaptureEnd != NULL && l->aclmdlRIExecuteAsync != NULL &&
	    l->aclmdlRIDestroy != NULL;
}

int
acl_has_peers(const struct acl_lib *l, const struct acl_machine *m)
{
	return !m->is_310b && m->ndevices > 1 &&
	    l->aclrtDeviceCanAccessPeer != NULL &&
	    l->aclrtDeviceEnablePeerAccess != NULL;
}
