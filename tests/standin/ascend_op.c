/* tests/standin/ascend_op.c - what operators by name are described with, in the
 * stand-in for libascendcl.so: tensors, data, attributes.
 * libacl_op_compiler.c compiles and runs them.  Switches: libascendcl.c. */
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

static int
end_object(enum handle_kind kind, const void *h)
{
	return ascend_end_object(kind, h) ? ACL_SUCCESS :
	    ACL_ERROR_INVALID_PARAM;
}

EXPORT struct acl_desc *
aclCreateTensorDesc(int dtype, int ndims, const int64_t *dims, int format)
{
	struct desc d = { .dtype = dtype, .format = format };

	if (ndims < 0 || ndims > MAX_DIMS || (ndims > 0 && dims == NULL) ||
	    ascend_injected(__func__) != 0)
		return NULL;
	d.ndims = (unsigned)ndims;
	memcpy(d.dims, dims, d.ndims * sizeof(*dims));
	return ascend_new_object(HANDLE_DESC, &d, sizeof(d));
}

EXPORT void
aclDestroyTensorDesc(const struct acl_desc *d)
{
	end_object(HANDLE_DESC, d);
}

EXPORT struct acl_buffer *
aclCreateDataBuffer(void *data, size_t nbytes)
{
	struct data_buffer b = { data, nbytes };

	return ascend_injected(__func__) != 0 ? NULL :
	    ascend_new_object(HANDLE_BUFFER, &b, sizeof(b));
}

EXPORT int
aclDestroyDataBuffer(const struct acl_buffer *b)
{
	return end_object(HANDLE_BUFFER, b);
}

EXPORT int
aclUpdateDataBuffer(struct acl_buffer *h, void *data, size_t nbytes)
{
	struct data_buffer *b;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	if ((b = ascend_find(HANDLE_BUFFER, h)) != NULL)
		*b = (struct data_buffer){ data, nbytes };
	pthread_mutex_unlock(&ascend_lock);
	return b != NULL ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}

EXPORT struct acl_attr *
aclopCreateAttr(void)
{
	struct attr a = { 0 };

	return ascend_new_object(HANDLE_ATTR, &a, sizeof(a));
}

EXPORT void
aclopDestroyAttr(const struct acl_attr *a)
{
	end_object(HANDLE_ATTR, a);
}

/* Names that the operator does not have are noticed when it is compiled. */
static int
set_attribute(struct acl_attr *h, const char *name, int64_t v)
{
	struct attr *a;

	pthread_mutex_lock(&ascend_lock);
	if ((a = ascend_find(HANDLE_ATTR, h)) != NULL) {
		a->nset++;
		if (strcmp(name, "transpose_x1") == 0)
			a->transpose[0] = v != 0;
		else if (strcmp(name, "transpose_x2") == 0)
			a->transpose[1] = v != 0;
		else if (strcmp(name, "offset_x") == 0)
			a->offset = v != 0;
		else
			a->nset = 100;
	}
	pthread_mutex_unlock(&ascend_lock);
	return a != NULL ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}

EXPORT int
aclopSetAttrBool(struct acl_attr *a, const char *name, uint8_t v)
{
	ENTER();
	return set_attribute(a, name, v);
}

EXPORT int
aclopSetAttrInt(struct acl_attr *a, const char *name, int64_t v)
{
	ENTER();
	return set_attribute(a, name, v);
}
