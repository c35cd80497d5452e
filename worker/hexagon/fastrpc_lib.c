/* worker/hexagon/fastrpc_lib.c - loads libcdsprpc.so, and its table of
 * codes. */
#include "fastrpc_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <bsd/string.h>

#include "config/base.h"

static struct fastrpc_lib lib;

int
fastrpc_load(const struct fastrpc_lib **ret, struct err *reterr)
{
	static const struct { const char *name; size_t at; } fn[] = {
#define X(f)	{ #f, offsetof(struct fastrpc_lib, f) },
		FASTRPC_FUNCTIONS(X)
#undef X
	};
	Dl_info info;
	void *so, *p;
	unsigned i;

	if (lib.so == NULL) {
		if ((so = dlopen(FASTRPC_LIBRARY, RTLD_NOW)) == NULL)
			return err_set(reterr, ERR_RUN, -ENOENT, "looked for "
			    FASTRPC_LIBRARY ": %.120s; boards of Qualcomm "
			    "have it in the packages fastrpc or libcdsprpc1",
			    dlerror());
		for (i = 0; i < NITEMS(fn); i++) {
			if ((p = dlsym(so, fn[i].name)) == NULL) {
				dlclose(so);
				return err_set(reterr, ERR_RUN, -ENOENT,
				    FASTRPC_LIBRARY " has no %s: it is too "
				    "old, install version 1.0 or newer",
				    fn[i].name);
			}
			memcpy((char *)&lib + fn[i].at, &p, sizeof(p));
		}
		if (dladdr(p, &info) != 0)
			strlcpy(lib.path, info.dli_fname, sizeof(lib.path));
		lib.so = so;
	}
	*ret = &lib;
	return 0;
}

/* --- codes --- */

static const struct meaning {
	int code, error;
	const char *text;
	const char *remedy;		/* NULL = use the call's remedy */
} meanings[] = {
	{ AEE_EFAILED, -EIO, "general failure", NULL },
	{ AEE_ENOMEMORY, -ENOMEM, "no memory", NULL },
	{ AEE_EUNABLETOLOAD, -EIO, "cannot be loaded", NULL },
	{ AEE_EEXPIRED, -ETIMEDOUT, "timed out", NULL },
	{ AEE_EBADSTATE, -EIO, "bad state", NULL },
	{ AEE_EBADPARM, -EIO, "bad parameter", NULL },
	{ AEE_EBADITEM, -EIO, "bad item", NULL },
	{ AEE_EUNSUPPORTED, -EIO, "not supported", NULL },
	{ AEE_EUNSUPPORTEDAPI, -EIO, "no such request", NULL },
	{ AEE_EITEMBUSY, -EIO, "busy", NULL },
	{ AEE_ENOSUCH, -ENOENT, "no such thing", NULL },
	{ AEE_EINTERRUPTED, -EIO, "interrupted", NULL },
	{ AEE_EINVALIDDOMAIN, -EIO, "no such DSP", NULL },
	{ AEE_EINVALIDDEVICE, -ENOENT, "the device node cannot be opened",
	    "straddle devices shows the node and who may open it" },
	{ AEE_EFOPEN, -ENOENT, "a file or the device node cannot be opened",
	    NULL },
	{ AEE_EBADPERMS, -EIO, "not permitted",
	    "straddle devices shows the node and who may open it" },
	{ AEE_ENOSUCHDEVICE, -ENOENT, "no such device",
	    "start the DSP: straddle devices shows its remoteproc state" },
	{ AEE_ENOSUCHMOD, -ENOENT, "no such module", NULL },
	{ AEE_ENOSUCHFILE, -ENOENT, "no such file", NULL },
	{ AEE_ENOSUCHMAP, -EIO, "no such mapping", NULL },
	{ AEE_EBADSIZE, -EIO, "bad size", NULL },
	{ AEE_ENORPCMEMORY, -ENOMEM, "no memory to share", NULL },
	{ AEE_ECONNREFUSED, -EIO, "the DSP refuses the connection", NULL },
	{ AEE_ECONNRESET, -EIO, "the DSP was restarted", NULL },
	{ AEE_EUNSIGNEDMOD, -EIO, "unsigned modules are refused",
	    "sign the module with the tools of Qualcomm's SDK" },
	{ AEE_ENOSESSION, -ENOMEM, "no session is left",
	    "a DSP has few: end other programs that use it, or use fewer "
	    "hexagon sessions" },
	{ AEE_ERPC, -EIO, "an error of FastRPC itself",
	    "read the kernel's log, and check that the DSP's firmware is "
	    "complete" },
	{ AEE_EFILE, -EIO, "a file error", NULL },
};

static const struct remedy { const char *call, *text; } remedies[] = {
	{ "DSPRPC_GET_DSP_INFO", "start the DSP: straddle devices shows its "
	    "state" },
	{ "FASTRPC_RESERVE_NEW_SESSION", "a DSP has few sessions: end other "
	    "programs that use it, or use fewer sessions" },
	{ "FASTRPC_GET_URI", "install a newer " FASTRPC_LIBRARY },
	{ "DSPRPC_CONTROL_UNSIGNED_MODULE", "sign the module with the tools "
	    "of Qualcomm's SDK, if this DSP requires it" },
	{ "FASTRPC_REGISTER_STATUS_NOTIFICATIONS", "install a newer "
	    FASTRPC_LIBRARY },
	{ "remote_handle64_open", "put the module (make skel) into a folder of "
	    "DSP_LIBRARY_PATH, and keep /vendor/lib64 out of LD_LIBRARY_PATH; "
	    "straddle devices checks both" },
	{ "DSPRPC_CONTROL_LATENCY", "install a newer " FASTRPC_LIBRARY },
	{ "dspqueue_create", "use " FASTRPC_LIBRARY " of the board's own "
	    "release" },
	{ "dspqueue_export", "use " FASTRPC_LIBRARY " of the board's own "
	    "release" },
	{ "start", "the module on the DSP must be of this build: copy it again" },
	{ "rpcmem_alloc2", "free some memory, and make /dev/dma_heap/system "
	    "readable; straddle devices checks it" },
	{ "rpcmem_to_fd", "use " FASTRPC_LIBRARY " of the board's own "
	    "release" },
	{ "fastrpc_mmap", "use a smaller cap or more sessions: each domain "
	    "then maps less" },
	{ "dspqueue_write", "the session is started again" },
	{ "dspqueue_read", "the session is started again" },
};

/* Look up a code of either side; NULL = unknown. */
static const struct meaning *
find_meaning(int code)
{
	uint32_t u = (uint32_t)code;
	unsigned i;

	if (u >= AEE_DSP_OFFSET)
		u -= AEE_DSP_OFFSET;
	for (i = 0; i < NITEMS(meanings); i++)
		if ((uint32_t)meanings[i].code == u)
			return &meanings[i];
	return NULL;
}

const char *
fastrpc_code_text(int code)
{
	const struct meaning *m = find_meaning(code);

	return m != NULL ? m->text : "an unknown code";
}

int
fastrpc_failed(const char *session, const char *call, int code,
    struct err *reterr)
{
	const struct meaning *m = find_meaning(code);
	const char *remedy = m != NULL ? m->remedy : NULL;
	unsigned i;

	for (i = 0; remedy == NULL && i < NITEMS(remedies); i++)
		if (strcmp(remedies[i].call, call) == 0)
			remedy = remedies[i].text;
	return err_set(reterr, ERR_RUN, m != NULL ? m->error : -EIO,
	    "session %s: %s failed with 0x%x%s (%s): %s", session, call,
	    (unsigned)code, (uint32_t)code >= AEE_DSP_OFFSET ? " of the DSP" :
	    "", fastrpc_code_text(code), remedy != NULL ? remedy :
	    "straddle devices shows what is missing");
}
