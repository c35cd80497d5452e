/* kernels/hexagon/skel.c - a domain on a DSP: the module libstraddle-domain-vNN.so,
 * which FastRPC loads into a process there.  Untested on silicon.
 *
 * The host opens the module, passes a queue (SKEL_START) and ends its use
 * (SKEL_STOP).  dspqueue calls on_packet() on its own thread, which executes the
 * packets; it sets ptr of each buffer to the address in this process.  Buffers that
 * a request flushed are returned with its response.
 *
 * The module needs only dspqueue's functions from the DSP's system, which are
 * resolved when it is loaded. */
#include "domain.h"
#include "fastrpc.h"
#include "rt.h"

enum { HEAD = offsetof(struct hxq_packet, msg) -
    offsetof(struct hxq_packet, id) };

static struct dspqueue *queue;
static struct hxq_packet request, response;
static struct dspqueue_buffer buf[DSPQUEUE_MAX_BUFFERS];
static _Atomic uint32_t progress;

/* The host maps memory here; packets that ask for it are refused. */
int
rt_map(int fd, uint32_t nbytes, void **ret)
{
	(void)fd;
	(void)nbytes;
	(void)ret;
	return -1;
}

void
rt_unmap(void *p, uint32_t nbytes)
{
	(void)p;
	(void)nbytes;
}

/* Binds the buffers that were sent to their places in the packet; a handle is a
 * place. */
static uint32_t
place_buffers(uint32_t nbufs)
{
	uint32_t i, n = 0;

	for (i = 0; i < request.nbufs && i < 32; i++) {
		request.buf[i] = (struct hxq_buf){ .handle = i };
		if (!(request.present >> i & 1))
			continue;
		if (n == nbufs || i >= HXQ_MAPS)
			return HXQ_EBADMSG;
		domain_bind(i, buf[n].ptr, buf[n].size);
		request.buf[i].nbytes = buf[n++].size;
	}
	return n == nbufs ? HXQ_OK : HXQ_EBADMSG;
}

/* Executes the request.  Returns the number of buffers to send back. */
static uint32_t
execute_request(uint32_t nbufs, uint32_t nbytes)
{
	uint32_t status = HXQ_EBADMSG, i, n = 0;

	response.id = request.id;
	response.kind = request.kind;
	response.status_op = UINT32_MAX;
	response.status_arg = 0;
	response.nbufs = response.nbytes = response.present = 0;
	if (nbytes >= HEAD && request.nbytes == nbytes - HEAD &&
	    (status = place_buffers(nbufs)) == HXQ_OK)
		status = domain_dispatch(&request, &response);
	response.status = status;
	for (i = 0; i < nbufs; i++)
		if (buf[i].flags & DSPQUEUE_FLUSH_SENDER)
			buf[n++] = buf[i];
	return n;
}

static void
on_packet(struct dspqueue *q, int error, void *context)
{
	uint32_t flags, nbufs, nbytes, n;

	(void)error;
	(void)context;
	while (dspqueue_read_noblock(q, &flags, DSPQUEUE_MAX_BUFFERS, &nbufs,
	    buf, HEAD + HXQ_MAX_MSG, &nbytes, (uint8_t *)&request.id) == 0) {
		n = execute_request(nbufs, nbytes);
		/* A host that does not read for a second is gone. */
		if (dspqueue_write(q, DSPQUEUE_MESSAGE | (n > 0 ?
		    DSPQUEUE_BUFFERS : 0), n, buf, HEAD + response.nbytes,
		    (const uint8_t *)&response.id, 1000000) != 0)
			return;
	}
}

/* Nothing to do: the host notices by its failing calls. */
static void
on_error(struct dspqueue *q, int error, void *context)
{
	(void)q;
	(void)error;
	(void)context;
}

static int
start(const remote_arg *arg)
{
	uint64_t id;

	if (queue != NULL)
		return (int)AEE_EITEMBUSY;
	if (arg->buf.nLen != sizeof(id))
		return (int)AEE_EBADPARM;
	memcpy(&id, arg->buf.pv, sizeof(id));
	domain_progress = &progress;
	return dspqueue_import(id, on_packet, on_error, NULL, &queue);
}

static int
stop(void)
{
	struct dspqueue *q = queue;

	queue = NULL;
	return q != NULL ? dspqueue_close(q) : 0;
}

__attribute__((visibility("default"))) int
straddle_skel_handle_invoke(remote_handle64 h, uint32_t scalars,
    remote_arg *args)
{
	(void)h;
	switch (scalars) {
	case REMOTE_SCALARS(SKEL_OPEN, 2, 0, 0, 1):
		args[2].h64 = 1;	/* one domain per process */
		return AEE_SUCCESS;
	case REMOTE_SCALARS(SKEL_CLOSE, 0, 0, 1, 0):
		return stop();
	case REMOTE_SCALARS(SKEL_START, 1, 0, 0, 0):
		return start(args);
	case REMOTE_SCALARS(SKEL_STOP, 0, 0, 0, 0):
		return stop();
	default:
		return AEE_EUNSUPPORTED;
	}
}
