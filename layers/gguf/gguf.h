/* layers/gguf/gguf.h - a GGUF file's header: metadata and tensor directory.
 * Owns: parsed copies of both, and the open files.  Coordinator, tests and
 * fuzzers only: workers never parse.  Knows the format, not models.
 *
 * Source: GGUF specification, versions 2 and 3 (ggml docs/gguf.md), little
 * endian.  Guarantee for hostile input: every length, count, offset and product
 * is checked for overflow and against the file's size before use; no allocation
 * is larger than a small multiple of the file; an error is -EBADMSG with
 * ERR_MODEL and a message with file, byte offset and problem. */
#ifndef LAYERS_GGUF_GGUF_H
#define LAYERS_GGUF_GGUF_H

#include <sys/types.h>

#include "config/base.h"
#include "config/err.h"
#include "kernels/types/quant.h"

enum gguf_type {
	GGUF_U8 = 0, GGUF_I8 = 1, GGUF_U16 = 2, GGUF_I16 = 3, GGUF_U32 = 4,
	GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STRING = 8,
	GGUF_ARRAY = 9, GGUF_U64 = 10, GGUF_I64 = 11, GGUF_F64 = 12,
	GGUF_NTYPES = 13
};

enum {
	GGUF_MAX_DIMS = 4,
	/* Names of tensors and keys are UTF-8 without controls. */
	GGUF_MAX_NAME = 64,		/* of a tensor, bytes */
	GGUF_MAX_KEY = 65535,
	GGUF_MAX_FILES = 1024,
	GGUF_MIN_ALIGNMENT = 8,
	GGUF_MAX_ALIGNMENT = 1 << 20,
	GGUF_MAX_HEADER = 256 << 20	/* bytes; real files: < 32 MiB */
};

/* Bytes with a length; data has a NUL after len bytes, and may have others. */
struct gguf_str {
	const char *data;
	uint64_t len;
};

struct gguf_kv {
	struct gguf_str key;
	enum gguf_type type;
	uint64_t offset;	/* of the value in the file, for messages */
	union {
		uint64_t u;	/* U8..U64, BOOL */
		int64_t i;	/* I8..I64 */
		double f;	/* F32, F64 */
		struct gguf_str s;
		struct {
			enum gguf_type type;
			uint64_t count;
			/* Numbers in host order, aligned; or struct
			 * gguf_str[count].  GGUF_ARRAY: one struct
			 * gguf_str with the bytes of all elements. */
			const void *data;
		} a;
	} v;
};

struct gguf_tensor {
	char name[GGUF_MAX_NAME + 1];
	uint32_t ndims;			/* 0 = a scalar */
	uint64_t ne[GGUF_MAX_DIMS];	/* ne[0] = row length; unused: 1 */
	uint32_t type;			/* enum quant_type, or an unknown number
					 * with nbytes == 0 */
	uint32_t file;			/* index into gguf.file */
	uint64_t offset;		/* absolute, in that file */
	uint64_t nbytes;		/* checked against the file's size */
	uint64_t room;			/* to the next tensor, or the end: the
					 * bytes of an unknown type */
};

/* The tensor's bytes in the file; of an unknown type, with its padding. */
static inline uint64_t
gguf_stored_bytes(const struct gguf_tensor *t)
{
	return quant_info(t->type) != NULL ? t->nbytes : t->room;
}

/* 0 = empty: it has no bytes, and its offset may be anywhere. */
static inline uint64_t
gguf_elements(const struct gguf_tensor *t)
{
	return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

struct gguf_file {
	char *path;
	int fd;				/* O_RDONLY, buffered */
	uint64_t nbytes;		/* at open */
	uint64_t data_off;		/* of the data section */
	uint64_t dev, ino;		/* identity, checked again at reload */
	int64_t mtime_ns, ctime_ns;
	uint32_t version;
};

struct gguf {
	uint32_t nfiles;
	struct gguf_file *file;		/* [nfiles] */
	uint64_t nkv;
	struct gguf_kv *kv;		/* [nkv], of the first file */
	uint64_t ntensors;
	struct gguf_tensor *tensor;	/* [ntensors], of all files, in order */
	uint64_t alignment;		/* general.alignment, default 32 */
	uint64_t tensor_bytes;		/* sum */
	void *priv;			/* allocations, index by name */
};

/* Open path and, if it is the first part of a split model (split.count > 1; the
 * name ends in -00001-of-00003.gguf), all parts in order.  Tensors
 * of an unknown type (nbytes = 0) and empty ones are kept: only a model that
 * needs one refuses it.
 *
 * -EBADMSG for bad content: also duplicate keys or tensor names, and tensors
 * that are misaligned, overlap, or exceed the file.  -errno with ERR_MODEL if
 * the path cannot be opened. */
int gguf_open(const char *path, struct gguf **ret, struct err *reterr);
void gguf_close(struct gguf *g);

/* The same in steps, for a process that parses and another one that opens.
 *
 * Opens: the first part; then parts 1 to count - 1, whose names follow from the
 * first one's.  Only identity and size are taken, nothing is read.  *ret is
 * closed by gguf_file_close(), or by the gguf that took it. */
int gguf_file_open(const char *path, struct gguf_file *ret, struct err *reterr);
int gguf_part_open(const struct gguf_file *first, uint32_t count, uint32_t no,
    struct gguf_file *ret, struct err *reterr);
/* A descriptor that another process has opened, with the path for messages.
 * *ret owns fd on success. */
int gguf_file_from_fd(int fd, const char *path, struct gguf_file *ret,
    struct err *reterr);
void gguf_file_close(struct gguf_file *f);	/* f->fd may be -1 */

/* Open f a second time with O_DIRECT, which belongs to the open file description.
 * Surely the same file.  -1 = the file system has no direct I/O. */
int gguf_open_direct(const struct gguf_file *f);

/* Hold open, to the end of the process, those of n files that its real user may
 * not open: gguf_file_open() and gguf_open_direct() use them when this process
 * has become that user.  kept.c */
void gguf_keep(const struct gguf_file *f, uint32_t n);
/* The same file again, a descriptor for the caller; -1 = it is not held. */
int gguf_kept(const char *path, int direct);

/* The path of part no (from 0) of a split model of count parts, in new memory.
 * -EBADMSG if the name of the first part does not end as it must. */
int gguf_part_path(const struct gguf_file *first, uint32_t count, uint32_t no,
    char **ret, struct err *reterr);

/* Parses: the first part, whose number of parts is *ret_nparts (1 = it is not
 * split); each other part in order; the checks of all together, after which *ret
 * is complete.  A part is taken over on success: its fd is -1 then.  On a
 * failure the caller closes g and the part. */
int gguf_begin(struct gguf_file *first, struct gguf **ret,
    uint32_t *ret_nparts, struct err *reterr);
int gguf_add_part(struct gguf *g, struct gguf_file *part,
    struct err *reterr);
int gguf_finish(struct gguf *g, struct err *reterr);

/* -ESTALE with ERR_MODEL if a file of g has changed since it was opened: for
 * callers that have read its data. */
int gguf_check_unchanged(const struct gguf *g, struct err *reterr);

/* NULL if absent. */
const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g,
    const char *name);

/* Typed getters.  -ENOENT, without a message, if the key is absent; -EBADMSG
 * with ERR_MODEL if it has another type or its value does not fit. */
int gguf_get_u32(const struct gguf *g, const char *key, uint32_t *ret,
    struct err *reterr);	/* any integer type in range */
int gguf_get_f32(const struct gguf *g, const char *key, float *ret,
    struct err *reterr);	/* F32, F64 or an integer, finite */
int gguf_get_bool(const struct gguf *g, const char *key, int *ret,
    struct err *reterr);
int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *ret,
    struct err *reterr);
/* Array of one element type; *ret_data has *ret_count elements.  -ENODATA with
 * ERR_RUN if g has no array data: flat.h. */
int gguf_get_array(const struct gguf *g, const char *key, enum gguf_type type,
    const void **ret_data, uint64_t *ret_count, struct err *reterr);

/* Element i, below v.a.count, of an array of integers of any type.  Returns 0;
 * -EINVAL: kv is no such array; -ERANGE: the element exceeds an int64_t;
 * -ENODATA: as in gguf_get_array(). */
int gguf_array_int(const struct gguf_kv *kv, uint64_t i, int64_t *ret);

const char *gguf_type_name(enum gguf_type t);	/* "u32", ... */

#endif
