/* config/kv_type.c - names of the KV cache's element types. */
#include "kv_type.h"

#include <errno.h>
#include <string.h>

static const char *const names[KV_NTYPES] = {
	[KV_F32] = "f32", [KV_F16] = "f16", [KV_Q8_0] = "q8_0",
};

const char *
kv_type_name(enum kv_type t)
{
	return names[t];
}

int
kv_type_parse(const char *text, enum kv_type *ret)
{
	unsigned i;

	for (i = 0; i < KV_NTYPES; i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum kv_type)i;
			return 0;
		}
	return -EINVAL;
}
