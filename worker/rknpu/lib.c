/* worker/rknpu/lib.c - loads librknnrt.so, finds its release, and has the table
 * of its codes. */
#include "lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <bsd/string.h>

#include "config/base.h"

static struct rknn_lib lib;

/* --- load --- */

static const struct function { const char *name; size_t at; int must; }
functions[] = {
#define X(f)	{ #f, offsetof(struct rknn_lib, f), 1 },
	RKNN_FUNCTIONS(X)
#undef X
#define X(f)	{ #f, offsetof(struct rknn_lib, f), 0 },
	RKNN_LATER_FUNCTIONS(X)
#undef X
};

/* Find every function; return the name of a missing one, or NULL. */
static const char *
find_functions(void *so)
{
	const struct function *f;
	void *p;

	for (f = functions; f < functions + NITEMS(functions); f++) {
		p = dlsym(so, f->name);
		if (p == NULL && f->must)
			return f->name;
		memcpy((char *)&lib + f->at, &p, sizeof(p));
	}
	return NULL;
}

static uint32_t
release_by_functions(void)
{
	if (lib.rknn_matmul_create_dynamic_shape != NULL)
		return RKNN_2_1;
	return lib.rknn_create_mem2 != NULL ? RKNN_2_0 : RKNN_1_6;
}

/* Raise the limit of descriptors to what this user may have. */
static uint64_t
limit_of_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 0;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) < 0)
		getrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_cur;
}

static int
load(struct err *reterr)
{
	const char *missing;
	Dl_info info;
	void *so, *p;

	if (lib.so != NULL)
		return 0;
	if ((so = dlopen(RKNN_LIBRARY, RTLD_NOW)) == NULL)
		return err_set(reterr, ERR_RUN, -ENOENT, "looked for "
		    RKNN_LIBRARY ": %.120s; it comes with Rockchip's "
		    "rknn-toolkit2 (rknpu2/runtime/Linux): copy its "
		    "aarch64 file to /usr/lib", dlerror());
	if ((missing = find_functions(so)) != NULL) {
		dlclose(so);
		return err_set(reterr, ERR_RUN, -ENOENT, RKNN_LIBRARY
		    " has no %s: it is too old, install 1.6.0 or "
		    "newer, best 2.3.2", missing);
	}
	lib.at_least = release_by_functions();
	if (lib.at_least < RKNN_2_1)
		lib.rknn_B_normal_layout_to_native_layout = NULL;
	memcpy(&p, &lib.rknn_query, sizeof(p));
	if (dladdr(p, &info) != 0)
		strlcpy(lib.path, info.dli_fname, sizeof(lib.path));
	lib.max_files = limit_of_files();
	lib.so = so;
	return 0;
}

int
rknn_load(const struct rknn_lib **ret, struct err *reterr)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	int rc;

	pthread_mutex_lock(&mutex);
	rc = load(reterr);
	pthread_mutex_unlock(&mutex);
	*ret = &lib;
	return rc;
}

/* --- the release --- */

/* The text of a release that only the functions tell. */
static void
set_by_functions(const struct rknn_lib *l, struct rknn_release *ret)
{
	ret->number = l->at_least;
	ret->from = "its functions";
	snprintf(ret->text, sizeof(ret->text), "%u.%u or newer",
	    l->at_least >> 16, l->at_least >> 8 & 0xff);
	if (l->at_least == RKNN_2_0)
		strlcpy(ret->text, "2.0", sizeof(ret->text));
	else if (l->at_least == RKNN_1_6)
		strlcpy(ret->text, "1.6", sizeof(ret->text));
}

/* "2.3.2 (...)", "2.0.0b0"; 0 = not a release. */
static uint32_t
parse_release(const char *text)
{
	unsigned major, minor, patch = 0;

	if (sscanf(text, "%3u.%3u.%3u", &major, &minor, &patch) < 2 ||
	    major > 255 || minor > 255 || patch > 255)
		return 0;
	return RKNN_RELEASE(major, minor, patch);
}

/* Do the functions fit the release that the library claims? */
static int
fits_functions(const struct rknn_lib *l, uint32_t number)
{
	switch (l->at_least) {
	case RKNN_2_1:
		return number >= RKNN_2_1;
	case RKNN_2_0:
		return number >= RKNN_2_0 && number < RKNN_2_1;
	}
	return number >= RKNN_1_6 && number < RKNN_2_0;
}

void
rknn_ask_release(const struct rknn_lib *l, uint64_t ctx,
    struct rknn_release *ret)
{
	struct rknn_sdk_version v;

	memset(&v, 0, sizeof(v));
	memset(ret, 0, sizeof(*ret));
	if (l->rknn_query(ctx, RKNN_QUERY_SDK_VERSION, &v, sizeof(v)) ==
	    RKNN_SUCC) {
		v.api_version[sizeof(v.api_version) - 1] = '\0';
		v.drv_version[sizeof(v.drv_version) - 1] = '\0';
		ret->number = parse_release(v.api_version);
		strlcpy(ret->text, v.api_version, sizeof(ret->text));
		strlcpy(ret->driver, v.drv_version, sizeof(ret->driver));
		ret->from = "rknn_query";
	}
	if (ret->number == 0 || !fits_functions(l, ret->number))
		set_by_functions(l, ret);
}

/* Product 1 of these sizes exists in every release and on every chip. */
int
rknn_find_release(const struct rknn_lib *l, const char *session,
    struct rknn_release *ret, struct err *reterr)
{
	struct rknn_matmul_io_attr attr;
	struct rknn_matmul_info info;
	uint64_t ctx = 0;
	int rc;

	rknn_info(&info, RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 1, 32, 32);
	memset(&attr, 0, sizeof(attr));
	if ((rc = l->rknn_matmul_create(&ctx, &info, &attr)) < 0)
		return rknn_failed(session, "rknn_matmul_create", rc, reterr);
	rknn_ask_release(l, ctx, ret);
	if ((rc = l->rknn_matmul_destroy(ctx)) < 0)
		return rknn_failed(session, "rknn_matmul_destroy", rc, reterr);
	return 0;
}

/* --- what a release can do --- */

uint32_t
rknn_matmul_since(int type)
{
	static const uint32_t since[RKNN_MATMUL_TYPES] = {
		[1] = RKNN_1_6, [2] = RKNN_1_6, [10] = RKNN_1_6,
		[3] = RKNN_2_0, [4] = RKNN_2_0, [5] = RKNN_2_0,
		[6] = RKNN_2_0, [7] = RKNN_2_0, [8] = RKNN_2_0,
		[11] = RKNN_2_0, [9] = RKNN_2_1, [12] = RKNN_2_3,
		[15] = RKNN_2_3_2,
	};

	return type >= 0 && type < RKNN_MATMUL_TYPES ? since[type] : 0;
}

void
rknn_info(struct rknn_matmul_info *ret, int type, uint32_t m, uint32_t k,
    uint32_t n)
{
	memset(ret, 0, sizeof(*ret));
	ret->M = (int32_t)m;
	ret->K = (int32_t)k;
	ret->N = (int32_t)n;
	ret->type = type;
}

/* The release that brought what info asks for, and its name. */
static uint32_t
needed_release(const struct rknn_matmul_info *info, const char **ret_what)
{
	if (info->B_layout > RKNN_MM_LAYOUT_NATIVE) {
		*ret_what = "B as its transpose";
		return RKNN_2_1;
	}
	if (info->B_quant_type > 0 || info->AC_quant_type > 0 ||
	    info->group_size > 0) {
		*ret_what = "scales of channels or groups";
		return RKNN_2_1;	/* 2.0.0b0 numbered them otherwise */
	}
	if (info->iommu_domain_id != 0) {
		*ret_what = "an IOMMU domain";
		return RKNN_2_0;
	}
	*ret_what = "the product";
	return rknn_matmul_since(info->type);
}

int
rknn_check_info(uint32_t release, const struct rknn_matmul_info *info,
    struct err *reterr)
{
	const char *what;
	uint32_t need;

	if (rknn_matmul_since(info->type) == 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "no product has the "
		    "number %d", info->type);
	if (info->iommu_domain_id < 0 || info->iommu_domain_id >= RKNN_DOMAINS)
		return err_set(reterr, ERR_RUN, -EINVAL, "IOMMU domain %d: "
		    "domains are 0 to %d", info->iommu_domain_id,
		    RKNN_DOMAINS - 1);
	need = MAX(needed_release(info, &what), rknn_matmul_since(info->type));
	if (release >= need)
		return 0;
	if (rknn_matmul_since(info->type) > release)
		what = "the product";
	return err_set(reterr, ERR_RUN, -EINVAL, "%s (type %d) needs "
	    RKNN_LIBRARY " %u.%u.%u, this is %u.%u.%u: install a newer one%s",
	    what, info->type, need >> 16, need >> 8 & 0xff, need & 0xff,
	    release >> 16, release >> 8 & 0xff, release & 0xff,
	    info->iommu_domain_id != 0 ? ", or use one session" : "");
}

/* --- codes --- */

static const struct meaning {
	int error;
	const char *name, *text;
	const char *remedy;		/* NULL = use the call's remedy */
} meanings[] = {			/* by -code */
	{ 0, "RKNN_SUCC", "success", NULL },
	{ -EIO, "RKNN_ERR_FAIL", "failure", NULL },
	{ -ETIMEDOUT, "RKNN_ERR_TIMEOUT", "the NPU did not finish in time",
	    "read the kernel's log for RKNPU; other programs may hold the NPU" },
	{ -ENODEV, "RKNN_ERR_DEVICE_UNAVAILABLE", "the NPU cannot be reached",
	    "the kernel needs Rockchip's RKNPU driver (the driver rocket does "
	    "not serve), and this user its node below /dev/dri: add the user "
	    "to its group" },
	{ -ENOMEM, "RKNN_ERR_MALLOC_FAIL", "no memory, or no addresses in the "
	    "IOMMU domain", "lower the cap, or use more sessions: each has a "
	    "domain of its own" },
	{ -EINVAL, "RKNN_ERR_PARAM_INVALID", "the NPU does not take this type, "
	    "shape or layout", NULL },
	{ -EIO, "RKNN_ERR_MODEL_INVALID", "invalid model", NULL },
	{ -EIO, "RKNN_ERR_CTX_INVALID", "invalid context", NULL },
	{ -EIO, "RKNN_ERR_INPUT_INVALID", "invalid or missing input", NULL },
	{ -EIO, "RKNN_ERR_OUTPUT_INVALID", "invalid or missing output", NULL },
	{ -ENODEV, "RKNN_ERR_DEVICE_UNMATCH", "library and kernel driver do "
	    "not match", "update the kernel's RKNPU driver to 0.9.8 or newer, "
	    "or install the library of the board's own release" },
	{ -EIO, "RKNN_ERR_INCOMPATIBLE_PRE_COMPILE_MODEL", "incompatible "
	    "model", NULL },
	{ -EIO, "RKNN_ERR_INCOMPATIBLE_OPTIMIZATION_LEVEL_VERSION",
	    "incompatible optimization level", NULL },
	{ -ENODEV, "RKNN_ERR_TARGET_PLATFORM_UNMATCH", "the library is for "
	    "another chip", "install " RKNN_LIBRARY " from rknpu2/runtime/"
	    "Linux, which serves all of RK3562, RK3566, RK3568, RK3576 and "
	    "RK3588" },
};

static const struct remedy { const char *call, *text; } remedies[] = {
	{ "rknn_matmul_create", "use the CPU for this product; straddle "
	    "devices shows what the NPU takes" },
	{ "rknn_matmul_set_core_mask", "a product takes one core: 1, 2 or 4 on "
	    "RK3588, 1 or 2 on RK3576, none on chips with one core" },
	{ "rknn_matmul_set_io_mem", "the IOMMU domain may be full: use a "
	    "smaller cap, or more sessions" },
	{ "rknn_matmul_run", "read the kernel's log for RKNPU: memory of "
	    "another domain, a timeout, or another program on the NPU" },
	{ "rknn_mem_sync", "read the kernel's log for RKNPU" },
	{ "rknn_query", "install " RKNN_LIBRARY " 2.3.2" },
};

static const struct meaning *
find_meaning(int code)
{
	if (code > 0 || code <= -(int)NITEMS(meanings))
		return NULL;
	return &meanings[-code];
}

const char *
rknn_code_name(int code)
{
	const struct meaning *m = find_meaning(code);

	return m != NULL ? m->name : "an unknown code";
}

int
rknn_failed(const char *session, const char *call, int code,
    struct err *reterr)
{
	const struct meaning *m = find_meaning(code);
	const char *remedy = m != NULL ? m->remedy : NULL;
	unsigned i;

	for (i = 0; remedy == NULL && i < NITEMS(remedies); i++)
		if (strcmp(remedies[i].call, call) == 0)
			remedy = remedies[i].text;
	return err_set(reterr, ERR_RUN, m != NULL && m->error != 0 ? m->error :
	    -EIO, "session %s: %s failed with %d, %s (%s): %s", session, call,
	    code, rknn_code_name(code), m != NULL ? m->text : "not in the "
	    "library's list", remedy != NULL ? remedy :
	    "straddle devices shows what is missing");
}

/* The library prints the reason and returns nothing, and a confined worker may
 * not look for it.  Descriptors are given out from the lowest: near the limit
 * the next one was not there. */
enum { FDS_OF_A_CALL = 4 };

int
rknn_no_memory(const char *session, const char *what, uint64_t nbytes,
    int domain, int highest_fd, struct err *reterr)
{
	if (highest_fd >= 0 && (uint64_t)highest_fd + FDS_OF_A_CALL >=
	    lib.max_files)
		return err_set(reterr, ERR_RUN, -EMFILE, "session %s: no "
		    "memory of the NPU for %s (%" PRIu64 " bytes): each "
		    "allocation takes a descriptor, and this process may have "
		    "%" PRIu64, session, what, nbytes, lib.max_files);
	return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no memory of the "
	    "NPU for %s (%" PRIu64 " bytes): IOMMU domain %d is full, or the "
	    "kernel has no memory for it; use a smaller cap, or more sessions: "
	    "each has a domain of its own", session, what, nbytes, domain);
}
