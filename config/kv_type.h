/* config/kv_type.h - element types of the KV cache.
 * Owns: the types and their names.  Included by the config and by the kernels,
 * so that both mean the same numbers.  kernels.h has the layouts. */
#ifndef CONFIG_KV_TYPE_H
#define CONFIG_KV_TYPE_H

enum kv_type { KV_F32, KV_F16, KV_Q8_0, KV_NTYPES };

const char *kv_type_name(enum kv_type t);	/* "f16", ... */

/* Sets *ret and returns 0; -EINVAL when text is no type's name. */
int kv_type_parse(const char *text, enum kv_type *ret);

#endif
