/* tests/unit/rknpu_lib.c - tests of the library of Rockchip's NPUs as the device
 * uses it: releases, codes, chips, and a product of each type.  A stand-in
 * (standin/librknnrt.c) takes its place.  None of this has run on silicon. */
#include "tests/support/rknpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const socs[] = { "rk3588", "rk3576", "rk3562", "rk3566" };

#define CONTAINS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "%s", (text))

/* --- the library and its release --- */

START_TEST(a_missing_library_is_reported_with_its_source)
{
	const struct rknn_lib *lib;
	struct err e = { 0 };

	ck_assert_int_eq(rknn_load(&lib, &e), -ENOENT);
	CONTAINS(e.msg, "looked for librknnrt.so");
	CONTAINS(e.msg, "rknn-toolkit2");
}
END_TEST

static void
refuse_old(void)
{
	const struct rknn_lib *lib;
	struct err e = { 0 };

	ck_assert_int_eq(rknn_load(&lib, &e), -ENOENT);
	CONTAINS(e.msg, "has no rknn_mem_sync: it is too old");
}

START_TEST(a_library_before_1_6_is_refused)
{
	rk_run("version=1.5.2", refuse_old);
}
END_TEST

static const struct release {
	const char *name;
	uint32_t number, at_least;
} releases[] = {
	{ "1.6.0", RKNN_1_6, RKNN_1_6 },
	{ "2.0.0b0", RKNN_2_0, RKNN_2_0 },
	{ "2.1.0", RKNN_2_1, RKNN_2_1 },
	{ "2.2.0", RKNN_RELEASE(2, 2, 0), RKNN_2_1 },
	{ "2.3.0", RKNN_2_3, RKNN_2_1 },
	{ "2.3.2", RKNN_2_3_2, RKNN_2_1 },
};
static const struct release *release;	/* of the child process */

static void
check_release(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_release got;
	struct err e = { 0 };

	ck_assert_uint_eq(lib->at_least, release->at_least);
	CONTAINS(lib->path, "standin/librknnrt.so");
	ck_assert((lib->rknn_create_mem2 != NULL) ==
	    (release->number >= RKNN_2_0));
	ck_assert((lib->rknn_matmul_set_quant_params != NULL) ==
	    (release->number >= RKNN_2_0));
	ck_assert((lib->rknn_matmul_create_dynamic_shape != NULL) ==
	    (release->number >= RKNN_2_1));
	/* The helper of 2.0.0b0 has other arguments. */
	ck_assert((lib->rknn_B_normal_layout_to_native_layout != NULL) ==
	    (release->number >= RKNN_2_1));
	t_ok(rknn_find_release(lib, "npu0", &got, &e), &e);
	ck_assert_uint_eq(got.number, release->number);
	ck_assert_int_eq(strncmp(got.text, release->name,
	    strlen(release->name)), 0);
	ck_assert_str_eq(got.driver, "0.9.8");
	ck_assert_str_eq(got.from, "rknn_query");
}

static void
check_contradiction(void)
{
	struct rknn_release got;
	struct err e = { 0 };

	t_ok(rknn_find_release(rk_lib(), "npu0", &got, &e), &e);
	ck_assert_uint_eq(got.number, release->at_least);
	ck_assert_str_eq(got.from, "its functions");
	ck_assert_str_eq(got.driver, "0.9.8");
}

static void
check_release_by_functions(void)
{
	struct rknn_release got;
	struct err e = { 0 };

	t_ok(rknn_find_release(rk_lib(), "npu0", &got, &e), &e);
	ck_assert_uint_eq(got.number, release->at_least);
	ck_assert_str_eq(got.from, "its functions");
	ck_assert_str_eq(got.driver, "");
}

/* Text that is no release, or one of other functions. */
START_TEST(an_answer_that_the_functions_contradict_is_not_believed)
{
	static const char *const answers[] = { "2.0.0b0 (35a6907d79)", "1.6.0",
	    "3", "", "librknnrt" };
	char switches[80];
	unsigned i;

	release = &releases[NITEMS(releases) - 1];
	for (i = 0; i < NITEMS(answers); i++) {
		snprintf(switches, sizeof(switches), "answer=%s", answers[i]);
		rk_run(switches, check_contradiction);
	}
	release = &releases[0];
	rk_run("version=1.6.0,answer=2.3.2", check_contradiction);
}
END_TEST

START_TEST(each_release_is_known_by_its_answer_or_its_functions)
{
	char switches[64];

	for (release = releases; release < releases + NITEMS(releases);
	    release++) {
		snprintf(switches, sizeof(switches), "version=%s",
		    release->name);
		rk_run(switches, check_release);
		snprintf(switches, sizeof(switches), "version=%s,query=none",
		    release->name);
		rk_run(switches, check_release_by_functions);
	}
}
END_TEST

static void
call_helper_of_b0(void)
{
	struct rknn_matmul_info info;
	int (*f)(void *, void *, int, int, struct rknn_matmul_info *);
	void *so = dlopen(RKNN_LIBRARY, RTLD_NOW), *p;
	char b[64 * 64];

	ck_assert_ptr_nonnull(so);
	p = dlsym(so, "rknn_B_normal_layout_to_native_layout");
	ck_assert_ptr_nonnull(p);
	memcpy(&f, &p, sizeof(p));
	rknn_info(&info, 2, 1, 64, 64);
	f(b, b, 64, 64, &info);
}

START_TEST(the_helper_of_2_0_would_end_the_process)
{
	int status = rk_child("version=2.0.0b0", call_helper_of_b0);

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

/* The library's own conversion gives what ours does. */
static void
compare_with_helper(void)
{
	static const int types[] = { 1, 2 };
	struct rk_product p;
	struct rknn_matmul_info info;
	uint8_t *native;
	unsigned i;

	for (i = 0; i < NITEMS(types); i++) {
		rknn_info(&info, types[i], 1, 96, 64);
		ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
		native = malloc(p.layout[RKNPU_B].nbytes);
		ck_assert_ptr_nonnull(native);
		rk_put(&p, RKNPU_B);	/* row-major */
		ck_assert_int_eq(
		    rk_lib()->rknn_B_normal_layout_to_native_layout(
		    p.mem[RKNPU_B]->virt_addr, native, 96, 64, &info), 0);
		info.B_layout = RKNN_MM_LAYOUT_NATIVE;
		ck_assert_int_eq(rknpu_expect_layout(p.soc, &info, RKNPU_B,
		    &p.layout[RKNPU_B]), 1);
		rk_put(&p, RKNPU_B);
		ck_assert_int_eq(memcmp(native, p.mem[RKNPU_B]->virt_addr,
		    p.layout[RKNPU_B].nbytes), 0);
		free(native);
		rk_close(&p);
	}
}

START_TEST(the_library_converts_b_as_we_do)
{
	rk_run("version=2.1.0", compare_with_helper);
}
END_TEST

START_TEST(fields_that_a_release_lacks_are_refused)
{
	static const struct { uint32_t release; int type, b_layout, quant,
	    domain; const char *want; } cases[] = {
		{ RKNN_1_6, 2, 1, 0, 0, NULL },
		{ RKNN_1_6, 3, 1, 0, 0, "the product (type 3) needs "
		    "librknnrt.so 2.0.0, this is 1.6.0" },
		{ RKNN_1_6, 2, 1, 0, 1, "an IOMMU domain" },
		{ RKNN_2_0, 2, 1, 0, 15, NULL },
		{ RKNN_2_0, 2, 1, 0, 16, "domains are 0 to 15" },
		{ RKNN_2_0, 2, 1, 0, -1, "domains are 0 to 15" },
		{ RKNN_2_0, 2, 2, 0, 0, "B as its transpose" },
		{ RKNN_2_0, 2, 1, 2, 0, "scales of channels or groups" },
		{ RKNN_2_0, 9, 1, 0, 0, "needs librknnrt.so 2.1.0" },
		{ RKNN_2_1, 2, 2, 4, 0, NULL },
		{ RKNN_2_1, 12, 1, 4, 0, "the product (type 12) needs "
		    "librknnrt.so 2.3.0, this is 2.1.0" },
		{ RKNN_2_3, 15, 1, 0, 0, "2.3.2" },
		{ RKNN_2_3_2, 15, 2, 0, 0, NULL },
		{ RKNN_2_3_2, 13, 0, 0, 0, "no product has the number 13" },
		{ RKNN_2_3_2, 0, 0, 0, 0, "no product has the number 0" },
	};
	struct rknn_matmul_info info;
	unsigned i;
	int rc;

	for (i = 0; i < NITEMS(cases); i++) {
		struct err e = { 0 };

		rknn_info(&info, cases[i].type, 1, 64, 64);
		info.B_layout = (int16_t)cases[i].b_layout;
		info.B_quant_type = (int16_t)cases[i].quant;
		info.iommu_domain_id = cases[i].domain;
		rc = rknn_check_info(cases[i].release, &info, &e);
		if (cases[i].want == NULL)
			t_ok(rc, &e);
		else {
			ck_assert_int_eq(rc, -EINVAL);
			CONTAINS(e.msg, cases[i].want);
		}
	}
}
END_TEST

/* --- codes --- */

static const struct code {
	int code, error;
	const char *name, *remedy;
} codes[] = {
	{ -1, -EIO, "RKNN_ERR_FAIL", "use the CPU" },
	{ -2, -ETIMEDOUT, "RKNN_ERR_TIMEOUT", "kernel's log" },
	{ -3, -ENODEV, "RKNN_ERR_DEVICE_UNAVAILABLE", "/dev/dri" },
	{ -4, -ENOMEM, "RKNN_ERR_MALLOC_FAIL", "lower the cap" },
	{ -5, -EINVAL, "RKNN_ERR_PARAM_INVALID", "use the CPU" },
	{ -6, -EIO, "RKNN_ERR_MODEL_INVALID", "use the CPU" },
	{ -7, -EIO, "RKNN_ERR_CTX_INVALID", "use the CPU" },
	{ -8, -EIO, "RKNN_ERR_INPUT_INVALID", "use the CPU" },
	{ -9, -EIO, "RKNN_ERR_OUTPUT_INVALID", "use the CPU" },
	{ -10, -ENODEV, "RKNN_ERR_DEVICE_UNMATCH", "0.9.8" },
	{ -11, -EIO, "RKNN_ERR_INCOMPATIBLE_PRE_COMPILE_MODEL", "CPU" },
	{ -12, -EIO, "RKNN_ERR_INCOMPATIBLE_OPTIMIZATION_LEVEL_VERSION",
	    "CPU" },
	{ -13, -ENODEV, "RKNN_ERR_TARGET_PLATFORM_UNMATCH", "another chip" },
	{ -14, -EIO, "an unknown code", "use the CPU" },
	{ -2147483647 - 1, -EIO, "an unknown code", "use the CPU" },
};
static const struct code *code;		/* of the child process */

static void
fail_with_code(void)
{
	struct rknn_release r;
	struct err e = { 0 };
	char number[32];

	snprintf(number, sizeof(number), "failed with %d, ", code->code);
	ck_assert_int_eq(rknn_find_release(rk_lib(), "npu0", &r, &e),
	    code->error);
	CONTAINS(e.msg, "session npu0: rknn_matmul_create");
	CONTAINS(e.msg, number);
	CONTAINS(e.msg, code->name);
	CONTAINS(e.msg, code->remedy);
}

START_TEST(each_code_is_named_with_a_remedy)
{
	char switches[64];
	struct err e = { 0 };

	for (code = codes; code < codes + NITEMS(codes); code++) {
		snprintf(switches, sizeof(switches), "fail=create:%d",
		    code->code);
		rk_run(switches, fail_with_code);
	}
	/* The remedy of the call. */
	ck_assert_int_eq(rknn_failed("npu1", "rknn_matmul_set_core_mask", -1,
	    &e), -EIO);
	CONTAINS(e.msg, "a product takes one core");
	ck_assert_int_eq(rknn_failed("npu1", "rknn_matmul_run", -1, &e), -EIO);
	CONTAINS(e.msg, "memory of another domain");
	ck_assert_int_lt(rknn_failed("npu1", "rknn_matmul_run", 0, &e), 0);
	ck_assert_str_eq(rknn_code_name(0), "RKNN_SUCC");
	ck_assert_str_eq(rknn_code_name(1), "an unknown code");
}
END_TEST

/* --- the machine --- */

static char root[PATH_MAX / 2];

static void
put_file(const char *path, const char *text, size_t len)
{
	t_put_file(root, path, text, len);
}

static void
new_root(void)
{
	static int n;

	snprintf(root, sizeof(root), "%s/%d", t_tmpdir(), n++);
	mkdir(root, 0755);
}

#define COMPATIBLE	"/proc/device-tree/compatible"

START_TEST(the_chip_is_read_from_the_device_tree)
{
	static const struct { const char *list, *soc; size_t len; } cases[] = {
#define LIST(list, soc)	{ list, soc, sizeof(list) }
		LIST("xunlong,orangepi-5\0rockchip,rk3588s", "RK3588"),
		LIST("radxa,rock-5b\0rockchip,rk3588", "RK3588"),
		LIST("radxa,rock-4d\0rockchip,rk3576", "RK3576"),
		LIST("rockchip,rk3562-evb\0rockchip,rk3562", "RK3562"),
		LIST("pine64,quartz64-a\0rockchip,rk3566", "RK3566"),
		LIST("hardkernel,odroid-m1\0rockchip,rk3568", "RK3566"),
#undef LIST
	};
	static const char other[] = "rockchip,rv1126b-evb\0rockchip,rv1126b";
	const struct rknpu_soc *soc;
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		new_root();
		put_file(COMPATIBLE, cases[i].list, cases[i].len);
		t_ok(rknpu_find_soc(root, &soc, &e), &e);
		ck_assert_str_eq(soc->name, cases[i].soc);
	}
	new_root();
	ck_assert_int_eq(rknpu_find_soc(root, &soc, &e), -ENODEV);
	CONTAINS(e.msg, COMPATIBLE " is missing");
	put_file(COMPATIBLE, other, sizeof(other));
	ck_assert_int_eq(rknpu_find_soc(root, &soc, &e), -ENODEV);
	CONTAINS(e.msg, "the chip rockchip,rv1126b of");
	/* Not a string. */
	put_file(COMPATIBLE, "qcom,sm8550", 11);
	ck_assert_int_eq(rknpu_find_soc(root, &soc, &e), -ENODEV);
	CONTAINS(e.msg, "names none");
}
END_TEST

START_TEST(the_driver_is_read_from_debugfs_or_asked)
{
	char version[32], node[64];
	const char *from;

	new_root();
	ck_assert_int_eq(rknpu_driver_version(root, version, sizeof(version),
	    &from), 0);
	ck_assert_int_eq(rknpu_find_node(root, node, sizeof(node)), 0);
	put_file("/sys/class/drm/renderD128/device/uevent",
	    "DRIVER=panthor\n", 15);
	ck_assert_int_eq(rknpu_find_node(root, node, sizeof(node)), 0);
	/* A device that does not name its driver, and a node that is none. */
	put_file("/sys/class/drm/renderD129/device/uevent", "OF_NAME=npu\n",
	    12);
	put_file("/dev/dri/renderD129", "", 0);
	ck_assert_int_eq(rknpu_find_node(root, node, sizeof(node)), 0);
	put_file("/sys/class/drm/renderD129/device/uevent",
	    "DRIVER=RKNPU\nOF_NAME=npu\n", 25);
	ck_assert_int_eq(rknpu_find_node(root, node, sizeof(node)), 1);
	ck_assert_str_eq(node, "/dev/dri/renderD129");
	/* The node answers no request. */
	ck_assert_int_eq(rknpu_driver_version(root, version, sizeof(version),
	    &from), 0);
	ck_assert_str_eq(from, "DRM_IOCTL_VERSION");
	put_file("/sys/kernel/debug/rknpu/version", "RKNPU driver: v0.9.8\n",
	    21);
	ck_assert_int_eq(rknpu_driver_version(root, version, sizeof(version),
	    &from), 1);
	ck_assert_str_eq(version, "0.9.8");
	ck_assert_str_eq(from, "/sys/kernel/debug/rknpu/version");
}
END_TEST

/* --- products --- */

static const char *soc_name;		/* of the child process */

/* A random product of this type in each combination of layouts. */
static void
check_type(int type)
{
	const struct rknpu_soc *soc = rk_soc(soc_name);
	uint32_t unit_k = rknpu_align_k(soc, type);
	uint32_t unit_n = rknpu_align_n(soc, type);
	struct rknn_matmul_info info;
	struct rk_product p;
	int i, rc, is_int4 = type == 10 || type == 7 || type == 8 ||
	    type == 12;

	for (i = 0; i < 6; i++) {
		rknn_info(&info, type, 1 + (uint32_t)t_rand_below(6),
		    unit_k * (1 + (uint32_t)t_rand_below(96 / unit_k)),
		    unit_n * (1 + (uint32_t)t_rand_below(3)));
		info.B_layout = (int16_t)(i / 2);
		info.AC_layout = (int16_t)(i % 2);
		rc = rk_open(&p, soc_name, &info);
		if (rc == RKNN_ERR_PARAM_INVALID && info.B_layout !=
		    RKNN_MM_LAYOUT_NATIVE && (is_int4 || (info.B_layout ==
		    RKNN_MM_LAYOUT_TP_NORM && soc->ncores == 1)))
			continue;
		ck_assert_msg(rc == RKNN_SUCC, "type %d layouts %d %d: %d",
		    type, info.B_layout, info.AC_layout, rc);
		ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
		ck_assert_msg(rk_is_right(&p), "%s type %d M %d K %d N %d "
		    "layouts %d %d", soc->name, type, info.M, info.K, info.N,
		    info.B_layout, info.AC_layout);
		rk_close(&p);
	}
}

static void
check_types(void)
{
	const struct rknpu_soc *soc = rk_soc(soc_name);
	struct rknn_matmul_info info;
	struct rk_product p;
	int type;

	for (type = 0; type < RKNN_MATMUL_TYPES; type++) {
		if (soc->types >> type & 1 && !(soc->broken_types >> type &
		    1)) {
			check_type(type);
			continue;
		}
		if (soc->broken_types >> type & 1)
			continue;
		rknn_info(&info, type, 1, 64, 64);
		info.B_layout = RKNN_MM_LAYOUT_NATIVE;
		ck_assert_int_eq(rk_open(&p, soc_name, &info),
		    RKNN_ERR_PARAM_INVALID);
	}
}

START_TEST(products_of_each_chip_and_type_are_exact)
{
	char switches[64];
	unsigned i;

	for (i = 0; i < NITEMS(socs); i++) {
		soc_name = socs[i];
		snprintf(switches, sizeof(switches), "soc=%s", soc_name);
		rk_run(switches, check_types);
	}
}
END_TEST

/* Each release has the types that it should. */
static void
check_types_of_release(void)
{
	struct rknn_matmul_info info;
	struct rk_product p;
	int type, rc;

	for (type = 1; type < RKNN_MATMUL_TYPES; type++) {
		rknn_info(&info, type, 2, 64, 64);
		info.B_layout = RKNN_MM_LAYOUT_NATIVE;
		rc = rk_open(&p, soc_name, &info);
		ck_assert_int_eq(rc, rknn_matmul_since(type) != 0 &&
		    rknn_matmul_since(type) <= release->number ? RKNN_SUCC :
		    RKNN_ERR_PARAM_INVALID);
		if (rc != RKNN_SUCC)
			continue;
		if (type != 9) {
			ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
			ck_assert(rk_is_right(&p));
		}
		rk_close(&p);
	}
}

START_TEST(each_release_has_its_types)
{
	char switches[64];

	soc_name = "rk3588";
	for (release = releases; release < releases + NITEMS(releases);
	    release++) {
		snprintf(switches, sizeof(switches), "version=%s,types=all",
		    release->name);
		rk_run(switches, check_types_of_release);
	}
}
END_TEST

/* 1.6.0 reads 24 bytes of a longer structure. */
static void
multiply_with_longer_info(void)
{
	struct rknn_matmul_info info;
	struct rk_product p;

	rknn_info(&info, 2, 3, 64, 64);
	info.B_layout = RKNN_MM_LAYOUT_NATIVE;
	info.AC_layout = RKNN_MM_LAYOUT_NATIVE;
	info.iommu_domain_id = 7;
	memset(info.reserved, 0x55, sizeof(info.reserved));
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	ck_assert_uint_eq(rk_counts().domain_bytes[7], 0);
	rk_close(&p);
	/* But two halves make one layout there. */
	info.B_quant_type = 1;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_ERR_PARAM_INVALID);
}

START_TEST(the_structures_of_1_6_are_a_part_of_the_later_ones)
{
	rk_run("version=1.6.0", multiply_with_longer_info);
}
END_TEST

/* --- memory that is not there --- */

static void
run_out_of_descriptors(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_tensor_mem *mem[4096], *last = NULL;
	struct rknn_matmul_info info;
	struct rk_product p;
	struct err e = { 0 };
	unsigned n = 0;

	rknn_info(&info, 2, 1, 64, 64);
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	while (n < NITEMS(mem) && (mem[n] = lib->rknn_create_mem(p.ctx, 64)) !=
	    NULL)
		last = mem[n++];
	ck_assert_uint_lt(n, NITEMS(mem));
	ck_assert_int_eq(rknn_no_memory("npu0", "weights", 64, 0, last->fd,
	    &e), -EMFILE);
	CONTAINS(e.msg, "session npu0: no memory of the NPU for weights (64 "
	    "bytes): each allocation takes a descriptor");
	CONTAINS(e.msg, "ulimit -n");
	while (n > 0)
		lib->rknn_destroy_mem(p.ctx, mem[--n]);
	rk_close(&p);
}

static void
limit_descriptors(void)
{
	struct rlimit r = { 64, 64 };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
	run_out_of_descriptors();
}

START_TEST(descriptors_that_run_out_are_named)
{
	struct err e = { 0 };

	rk_run("", limit_descriptors);
	ck_assert_int_eq(rknn_no_memory("npu0", "KV cache", 4096, 3, -1, &e),
	    -ENOMEM);
	CONTAINS(e.msg, "IOMMU domain 3 is full");
}
END_TEST

/* A soft limit is raised as far as the user may. */
static void
check_raised_limit(void)
{
	struct rlimit r;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = 32;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
	ck_assert_uint_eq(rk_lib()->max_files, r.rlim_max);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
	ck_assert_uint_eq(r.rlim_cur, r.rlim_max);
}

START_TEST(the_limit_of_descriptors_is_raised)
{
	rk_run("", check_raised_limit);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_missing_library_is_reported_with_its_source,
		a_library_before_1_6_is_refused,
		each_release_is_known_by_its_answer_or_its_functions,
		an_answer_that_the_functions_contradict_is_not_believed,
		the_helper_of_2_0_would_end_the_process,
		the_library_converts_b_as_we_do,
		fields_that_a_release_lacks_are_refused,
		each_code_is_named_with_a_remedy,
		the_chip_is_read_from_the_device_tree,
		the_driver_is_read_from_debugfs_or_asked,
		products_of_each_chip_and_type_are_exact,
		each_release_has_its_types,
		the_structures_of_1_6_are_a_part_of_the_later_ones,
		descriptors_that_run_out_are_named,
		the_limit_of_descriptors_is_raised,
	};

	return t_main("rknpu_lib", 60, tests, NITEMS(tests));
}
