/* worker/rknpu/soc.c - the table of chips; device tree, driver and node. */
#include "soc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/base.h"

#define COMPATIBLE	"/proc/device-tree/compatible"
#define DRM_CLASS	"/sys/class/drm"

#define BIT(t)	(UINT32_C(1) << (t))

/* Types: the manual of 2.3.0, corrected by what was seen with 2.3.2.  Product 9
 * on RK3588 is created, then aborts or gives zeros. */
static const struct rknpu_soc socs[] = {
	{ "RK3588", { "rockchip,rk3588" }, .ncores = 3,
	    .types = BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(9) | BIT(10),
	    .broken_types = BIT(9),
	    .a_group = { 32, 16, 8 },
	    .b_cols = { 64, 32, 16 }, .b_rows = { 32, 32, 32 },
	    .segment_k = 8192 },
	{ "RK3576", { "rockchip,rk3576" }, .ncores = 2,
	    .types = BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(7) | BIT(8) |
	    BIT(12),
	    .a_group = { 32, 16, 8 },
	    .b_cols = { 64, 32, 16 }, .b_rows = { 32, 32, 32 },
	    .segment_k = 4096 },
	{ "RK3562", { "rockchip,rk3562" }, .ncores = 1,
	    .types = BIT(1) | BIT(2),
	    .a_group = { 0, 16, 8 },
	    .b_cols = { 0, 16, 8 }, .b_rows = { 0, 32, 32 } },
	{ "RK3566", { "rockchip,rk3566", "rockchip,rk3568" }, .ncores = 1,
	    .types = BIT(1) | BIT(2),
	    .a_group = { 0, 8, 4 },
	    .b_cols = { 0, 16, 8 }, .b_rows = { 0, 32, 16 } },
};

const struct rknpu_soc *
rknpu_soc(unsigned i)
{
	return i < NITEMS(socs) ? &socs[i] : NULL;
}

/* --- products --- */

static const struct product { int8_t a, b, c; } products[] = {
#define X(n, a, b, c)	[n] = { RKNN_TENSOR_##a, RKNN_TENSOR_##b,	\
			    RKNN_TENSOR_##c },
	X(1, FLOAT16, FLOAT16, FLOAT32)
	X(2, INT8, INT8, INT32)
	X(3, INT8, INT8, INT8)
	X(4, FLOAT16, FLOAT16, FLOAT16)
	X(5, FLOAT16, INT8, FLOAT32)
	X(6, FLOAT16, INT8, FLOAT16)
	X(7, FLOAT16, INT4, FLOAT32)
	X(8, FLOAT16, INT4, FLOAT16)
	X(9, INT8, INT8, FLOAT32)
	X(10, INT4, INT4, INT16)
	X(11, INT8, INT4, INT32)
	X(12, FLOAT16, INT4, BFLOAT16)
	X(15, INT8, INT4, FLOAT16)
#undef X
};

int
rknpu_matmul_types(int type, int *ret_a, int *ret_b, int *ret_c)
{
	const struct product *p;

	if (type < 0 || (size_t)type >= NITEMS(products) ||
	    products[type].a == RKNN_TENSOR_FLOAT32)	/* no row */
		return 0;
	p = &products[type];
	*ret_a = p->a;
	*ret_b = p->b;
	*ret_c = p->c;
	return 1;
}

unsigned
rknpu_tensor_bits(int tensor_type)
{
	switch (tensor_type) {
	case RKNN_TENSOR_INT4:
		return 4;
	case RKNN_TENSOR_INT8:
	case RKNN_TENSOR_UINT8:
		return 8;
	case RKNN_TENSOR_FLOAT16:
	case RKNN_TENSOR_BFLOAT16:
	case RKNN_TENSOR_INT16:
	case RKNN_TENSOR_UINT16:
		return 16;
	case RKNN_TENSOR_FLOAT32:
	case RKNN_TENSOR_INT32:
	case RKNN_TENSOR_UINT32:
		return 32;
	case RKNN_TENSOR_INT64:
		return 64;
	}
	return 0;
}

static unsigned
width_of(int tensor_type)
{
	switch (rknpu_tensor_bits(tensor_type)) {
	case 4:
		return RKNPU_4_BITS;
	case 8:
		return RKNPU_8_BITS;
	}
	return RKNPU_16_BITS;
}

/* Where A and B differ, reports differ too: the larger multiple suits both. */
static uint32_t
align_to(const uint8_t tile[RKNPU_WIDTHS], int type)
{
	int a, b, c;

	if (!rknpu_matmul_types(type, &a, &b, &c))
		return 0;
	return MAX(tile[width_of(a)], tile[width_of(b)]);
}

uint32_t
rknpu_align_k(const struct rknpu_soc *soc, int type)
{
	return align_to(soc->b_rows, type);
}

uint32_t
rknpu_align_n(const struct rknpu_soc *soc, int type)
{
	return align_to(soc->b_cols, type);
}

/* --- the machine --- */

/* Read a whole small file and end it with a NUL; 0 = none. */
static size_t
read_file(const char *root, const char *path, char *ret, size_t len)
{
	char full[PATH_MAX];
	FILE *fp;
	size_t n;

	snprintf(full, sizeof(full), "%s%s", root, path);
	if ((fp = fopen(full, "re")) == NULL)
		return 0;
	n = fread(ret, 1, len - 1, fp);
	fclose(fp);
	ret[n] = '\0';
	return n;
}

/* A variant has a longer name: rockchip,rk3588s. */
static int
is_compatible(const struct rknpu_soc *s, const char *word)
{
	unsigned i;

	for (i = 0; i < NITEMS(s->compatible) && s->compatible[i] != NULL; i++)
		if (strncmp(word, s->compatible[i],
		    strlen(s->compatible[i])) == 0)
			return 1;
	return 0;
}

/* The file is a list of strings, each with its NUL. */
int
rknpu_find_soc(const char *root, const struct rknpu_soc **ret,
    struct err *reterr)
{
	char list[512], other[64] = "";
	size_t n = read_file(root, COMPATIBLE, list, sizeof(list));
	const char *word;
	unsigned i;

	for (word = list; word < list + n; word += strlen(word) + 1) {
		for (i = 0; i < NITEMS(socs); i++)
			if (is_compatible(&socs[i], word)) {
				*ret = &socs[i];
				return 0;
			}
		if (strncmp(word, "rockchip,", 9) == 0)
			strlcpy(other, word, sizeof(other));
	}
	if (*other != '\0')
		return err_set(reterr, ERR_RUN, -ENODEV, "the chip %s of "
		    COMPATIBLE " is not one of RK3588, RK3576, RK3562, RK3566 "
		    "and RK3568", other);
	return err_set(reterr, ERR_RUN, -ENODEV, "no Rockchip NPU found: "
	    COMPATIBLE "%s", n == 0 ? " is missing" : " names none");
}

/* The kernel's struct drm_version; Debian has its header in libdrm-dev alone. */
struct drm_version {
	int major, minor, patch;
	struct { size_t len; char *text; } name, date, desc;
};
_Static_assert(sizeof(struct drm_version) == 64, "ABI");
#define DRM_IOCTL_VERSION	_IOWR('d', 0x00, struct drm_version)

/* Ask a DRM node for its driver; 0 = not the NPU's, or no answer. */
static int
ask_node(const char *root, const char *node, struct drm_version *ret)
{
	char path[PATH_MAX], name[16] = "";
	int fd, rc;

	*ret = (struct drm_version){ .name = { sizeof(name) - 1, name } };
	snprintf(path, sizeof(path), "%s%s", root, node);
	if ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return 0;
	rc = ioctl(fd, DRM_IOCTL_VERSION, ret);
	close(fd);
	ret->name.text = NULL;
	return rc == 0 && strcasecmp(name, "rknpu") == 0;
}

/* 1 if this DRM node is the NPU's.  Where the vendor's driver was added to
 * another kernel, the node's device may not name its driver. */
static int
is_npu(const char *root, const char *name, const char *node)
{
	struct drm_version v;
	char path[PATH_MAX], text[1024];

	snprintf(path, sizeof(path), DRM_CLASS "/%.200s/device/uevent", name);
	if (read_file(root, path, text, sizeof(text)) > 0 &&
	    strstr(text, "DRIVER=") != NULL)
		return strcasestr(text, "DRIVER=rknpu") != NULL;
	return ask_node(root, node, &v);
}

int
rknpu_find_node(const char *root, char *ret, size_t len)
{
	char path[PATH_MAX], node[300];
	struct dirent *e;
	int found = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s" DRM_CLASS, root);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (!found && (e = readdir(d)) != NULL) {
		snprintf(node, sizeof(node), "/dev/dri/%s", e->d_name);
		found = strncmp(e->d_name, "renderD", 7) == 0 &&
		    is_npu(root, e->d_name, node);
		if (found)
			strlcpy(ret, node, len);
	}
	closedir(d);
	return found;
}

int
rknpu_driver_version(const char *root, char *ret, size_t len,
    const char **ret_from)
{
	static const char *const files[] = {
		"/sys/kernel/debug/rknpu/version", "/proc/rknpu/version",
	};
	struct drm_version drm;
	char text[256], node[300];
	const char *v;
	unsigned i;

	for (i = 0; i < NITEMS(files); i++) {
		/* "RKNPU driver: v0.9.8" */
		if (read_file(root, files[i], text, sizeof(text)) == 0 ||
		    (v = strpbrk(text, "0123456789")) == NULL)
			continue;
		snprintf(ret, len, "%.*s", (int)strspn(v, "0123456789."), v);
		*ret_from = files[i];
		return 1;
	}
	*ret_from = "DRM_IOCTL_VERSION";
	if (!rknpu_find_node(root, node, sizeof(node)) ||
	    !ask_node(root, node, &drm))
		return 0;
	snprintf(ret, len, "%d.%d.%d", drm.major, drm.minor, drm.patch);
	return 1;
}
