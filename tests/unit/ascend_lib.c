/* tests/unit/ascend_lib.c - tests of CANN's libraries as the device loads them:
 * both families, stubs, what is missing, codes with their remedies.  Stand-ins
 * (standin/libascendcl.c) take their place.  None of this has run on silicon. */
#include "tests/support/ascend.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTAINS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "%s", (text))

/* --- load --- */

START_TEST(a_missing_library_is_reported_with_its_source)
{
	const struct acl_lib *lib;
	struct err e = { 0 };

	ck_assert_int_eq(acl_load(&lib, &e), -ENOENT);
	CONTAINS(e.msg, "looked for libascendcl.so");
	CONTAINS(e.msg, "CANN toolkit");
	CONTAINS(e.msg, "set_env.sh");
}
END_TEST

static void
load_without_operators(void)
{
	const struct acl_lib *lib;
	struct err e = { 0 };

	ck_assert_int_eq(acl_load(&lib, &e), -ENOENT);
	CONTAINS(e.msg, "looked for libopapi.so");
}

START_TEST(operators_that_are_not_installed_are_reported)
{
	as_run_bare("", AS_NO_OPERATORS, load_without_operators);
}
END_TEST

static void
load_old(void)
{
	const struct acl_lib *lib = as_lib();
	unsigned i;

	ck_assert_uint_eq(lib->nops, 1);
	CONTAINS(lib->path, "standin/libascendcl.so");
	for (i = 0; i < ACL_NOPS; i++)
		ck_assert(acl_has_operator(lib, (enum acl_operator)i));
	ck_assert_str_eq(acl_operator_name(ACL_OP_Mm), "aclnnMm");
	ck_assert_ptr_nonnull(lib->aclnnCalculateMatmulWeightSizeV2);
}

static void
load_split(void)
{
	const struct acl_lib *lib = as_lib();
	unsigned i;

	ck_assert_uint_eq(lib->nops, 3);
	for (i = 0; i < ACL_NOPS; i++)
		ck_assert(acl_has_operator(lib, (enum acl_operator)i));
	ck_assert_ptr_null(dlopen(ACL_OPS, RTLD_NOW | RTLD_NOLOAD));
}

START_TEST(one_family_of_operators_is_loaded)
{
	as_run_bare("", AS_OLD, load_old);
	as_run_bare("", AS_SPLIT, load_split);
}
END_TEST

/* The dynamic linker reads LD_LIBRARY_PATH when a program starts: so these run
 * in this program, started again with them named as its argument. */

/* The split libraries can be found, but the old one is there already. */
START_TEST(the_split_libraries_are_left_alone)
{
	as_preload("", AS_OLD);
	ck_assert_uint_eq(as_lib()->nops, 1);
	ck_assert_ptr_null(dlopen(ACL_OPS_NN, RTLD_NOW | RTLD_NOLOAD));
}
END_TEST

/* Both families can be found. */
START_TEST(the_path_has_both_families)
{
	ck_assert_uint_eq(as_lib()->nops, 3);
	ck_assert_ptr_null(dlopen(ACL_OPS, RTLD_NOW | RTLD_NOLOAD));
}
END_TEST

START_TEST(both_families_are_refused)
{
	const struct acl_lib *lib;
	struct err e = { 0 };
	void *p;

	as_preload("both=1", AS_OLD);
	ck_assert_ptr_nonnull(dlopen(ACL_OPS_NN, RTLD_NOW));
	ck_assert_int_eq(acl_load(&lib, &e), -EINVAL);
	CONTAINS(e.msg, "both libopapi.so and libopapi_nn.so");
	CONTAINS(e.msg, "LD_PRELOAD");
	p = dlopen(ACL_OPS, RTLD_NOW | RTLD_NOLOAD);
	ck_assert_ptr_nonnull(p);
}
END_TEST

static void
run_again(const char *arg, const char *folders)
{
	/* An emulator, where this program is one of another machine. */
	const char *launch = getenv("STRADDLE_LAUNCH");
	char exe[2048], path[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int status = -1;
	pid_t pid;

	ck_assert_int_gt(n, 0);
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	snprintf(path, sizeof(path), "%.*s/../standin/split:%.*s/../%s",
	    (int)(slash - exe), exe, (int)(slash - exe), exe, folders);
	if ((pid = fork()) == 0) {
		setenv("LD_LIBRARY_PATH", path, 1);
		if (launch != NULL)
			execlp(launch, launch, exe, arg, (char *)NULL);
		execl(exe, exe, arg, (char *)NULL);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s: %#x", arg, status);
}

START_TEST(a_family_that_is_there_already_is_kept)
{
	run_again("beside-old", "none");
	run_again("by-path", "standin");
	run_again("both", "none");
}
END_TEST

static void
load_some(void)
{
	const struct acl_lib *lib = as_lib();

	ck_assert(!acl_has_operator(lib, ACL_OP_Mm));
	ck_assert_ptr_null(lib->Mm);
	ck_assert(!acl_has_operator(lib, ACL_OP_SwiGlu));
	/* Half a pair is none. */
	ck_assert(!acl_has_operator(lib, ACL_OP_Neg));
	ck_assert_ptr_null(lib->Neg);
	ck_assert(acl_has_operator(lib, ACL_OP_Add));
	ck_assert_ptr_null(lib->aclrtMapMem);
	ck_assert_ptr_nonnull(lib->aclrtUnmapMem);
}

static void
load_board(void)
{
	const struct acl_lib *lib = as_lib();

	ck_assert(acl_has_operator(lib, ACL_OP_Mm));
	ck_assert(!acl_has_operator(lib, ACL_OP_RmsNorm));
	ck_assert(!acl_has_operator(lib, ACL_OP_WeightQuantBatchMatmulV2));
}

START_TEST(operators_without_a_symbol_are_missing)
{
	as_run_bare("missing=Mm+SwiGlu+aclrtMapMem+aclnnNeg",
	    AS_OLD, load_some);
	as_run_bare("missing=Mm+SwiGlu+aclrtMapMem+aclnnNeg",
	    AS_SPLIT, load_some);
	as_run_bare("soc=310B,as=missing", AS_OLD, load_board);
}
END_TEST

/* --- the process --- */

static void
start_stub(void)
{
	struct err e = { 0 };

	ck_assert_int_eq(acl_start(as_lib(), "npu0", &e), -ENOENT);
	CONTAINS(e.msg, "session npu0: ");
	CONTAINS(e.msg, "standin/libascendcl.so is a stub");
	CONTAINS(e.msg, "100039");
	CONTAINS(e.msg, "LD_LIBRARY_PATH");
}

START_TEST(a_stub_is_refused_by_name)
{
	as_run_bare("stub=1", AS_OLD, start_stub);
}
END_TEST

static void
start_twice(void)
{
	const struct acl_lib *lib = as_lib();
	struct err e = { 0 };

	t_ok(acl_start(lib, "npu0", &e), &e);
	t_ok(acl_start(lib, "npu1", &e), &e);
	t_ok(acl_finish(lib, "npu0", &e), &e);
	t_ok(acl_finish(lib, "npu1", &e), &e);
	ck_assert_int_eq(acl_start(lib, "npu1", &e), -EINVAL);
	CONTAINS(e.msg, "session npu1: CANN was finalized");
}

/* Another library of the process has initialized it, and will finalize it. */
static void
start_after_another(void)
{
	const struct acl_lib *lib = as_lib();
	struct err e = { 0 };

	as_ok(lib->aclInit(NULL));
	as_is(ACL_ERROR_REPEAT_INITIALIZE, lib->aclInit(NULL));
	t_ok(acl_start(lib, "npu0", &e), &e);
	t_ok(acl_finish(lib, "npu0", &e), &e);
	as_ok(lib->aclFinalize());
	as_is(ACL_ERROR_REPEAT_FINALIZE, lib->aclFinalize());
}

static void
fail_to_start(void)
{
	struct err e = { 0 };

	ck_assert_int_eq(acl_start(as_lib(), "npu0", &e), -ENODEV);
	CONTAINS(e.msg, "libascendcl.so: aclInit failed with 500004, "
	    "ACL_ERROR_DRV_FAILURE (the driver failed): driver and firmware");
	CONTAINS(e.msg, "[the library says: EE9999: [PID: 1] inner error "
	    "injected into aclInit]");
	/* Again, when the cause is gone. */
	t_ok(acl_start(as_lib(), "npu0", &e), &e);
	t_ok(acl_finish(as_lib(), "npu0", &e), &e);
}

START_TEST(cann_is_initialized_once)
{
	as_run_bare("", AS_OLD, start_twice);
	as_run_bare("", AS_OLD, start_after_another);
	as_run_bare("fail=aclInit:500004@1", AS_OLD, fail_to_start);
}
END_TEST

/* --- the machine --- */

static void
check_310b(void)
{
	ck_assert_str_eq(as_machine.soc, "Ascend310B1");
	ck_assert(as_machine.is_rc && as_machine.is_310b);
	ck_assert_uint_eq(as_machine.ndevices, 1);
	ck_assert(!acl_has_virtual_memory(as_lib(), &as_machine));
	ck_assert(!acl_has_capture(as_lib(), &as_machine));
	ck_assert(!acl_has_peers(as_lib(), &as_machine));
}

static void
check_910b(void)
{
	ck_assert_str_eq(as_machine.soc, "Ascend910B2");
	ck_assert(!as_machine.is_rc && !as_machine.is_310b);
	ck_assert_int_eq(as_machine.version[1], 13);
	ck_assert(acl_has_virtual_memory(as_lib(), &as_machine));
	ck_assert(acl_has_capture(as_lib(), &as_machine));
	ck_assert(acl_has_peers(as_lib(), &as_machine));
}

/* The run mode decides, not the name. */
static void
check_310b_card(void)
{
	ck_assert(!as_machine.is_rc && as_machine.is_310b);
	ck_assert(acl_has_virtual_memory(as_lib(), &as_machine));
	ck_assert(!acl_has_capture(as_lib(), &as_machine));
}

static void
check_no_vmm(void)
{
	ck_assert(!acl_has_virtual_memory(as_lib(), &as_machine));
}

START_TEST(the_machine_is_asked_what_it_is)
{
	as_run("soc=310B", check_310b);
	as_run("soc=910B", check_910b);
	as_run("soc=310B,rc=0", check_310b_card);
	as_run("missing=aclrtMapMem", check_no_vmm);
}
END_TEST

static void
find_none(void)
{
	struct acl_machine m;
	struct err e = { 0 };

	t_ok(acl_start(as_lib(), "npu0", &e), &e);
	ck_assert_int_eq(acl_find_machine(as_lib(), "npu0", &m, &e), -ENODEV);
	CONTAINS(e.msg, "/dev/davinci0");
	t_ok(acl_finish(as_lib(), "npu0", &e), &e);
}

static void
find_no_soc(void)
{
	struct acl_machine m;
	struct err e = { 0 };

	t_ok(acl_start(as_lib(), "npu0", &e), &e);
	ck_assert_int_eq(acl_find_machine(as_lib(), "npu0", &m, &e), -EIO);
	CONTAINS(e.msg, "aclrtGetSocName returned nothing: driver");
	t_ok(acl_finish(as_lib(), "npu0", &e), &e);
}

START_TEST(a_machine_without_a_device_is_reported)
{
	as_run_bare("devices=0", AS_OLD, find_none);
	as_run_bare("fail=aclrtGetSocName:500004", AS_OLD, find_no_soc);
}
END_TEST

/* --- codes --- */

static const struct code { int code, error; const char *name, *remedy; }
codes[] = {
	{ 100024, -ENOTSUP, "ACL_ERROR_OP_NOT_FOUND", "kernels-310b" },
	{ 107001, -ENODEV, "ACL_ERROR_RT_INVALID_DEVICEID", "npu-smi" },
	{ 161002, -ENOTSUP, "ACLNN_ERR_PARAM_INVALID", "use the CPU" },
	{ 207000, -ENOTSUP, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT", "straddle" },
	{ 207001, -ENOMEM, "ACL_ERROR_RT_MEMORY_ALLOCATION", "lower the cap" },
	{ 207006, -EACCES, "ACL_ERROR_RT_NO_PERMISSION", "/dev/davinci0" },
	{ 361001, -ENOTSUP, "ACLNN_ERR_RUNTIME_ERROR", "kernels-310b" },
	{ 500004, -ENODEV, "ACL_ERROR_DRV_FAILURE", "driver and firmware" },
	{ 507014, -ETIMEDOUT, "ACL_ERROR_RT_AICORE_TIMEOUT", "hangs" },
	{ 507018, -EIO, "ACL_ERROR_RT_AICPU_EXCEPTION", "kernels-310b" },
	{ 507046, -ETIMEDOUT, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT", "npu-smi" },
	{ 561103, -ENOTSUP, "ACLNN_ERR_INNER_NULLPTR", "kernels-310b" },
	{ 561107, -ENOENT, "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND",
	    "ASCEND_OPP_PATH" },
	{ 561112, -ENOTSUP, "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND",
	    "kernels-310b" },
	{ 109999, -EIO, "an unknown code", "straddle devices" },
	{ -1, -EIO, "an unknown code", "straddle devices" },
};

static void
name_codes(void)
{
	const struct code *c;
	struct err e;
	char number[48];

	for (c = codes; c < codes + NITEMS(codes); c++) {
		memset(&e, 0, sizeof(e));
		snprintf(number, sizeof(number), "libopapi.so: aclnnMm failed "
		    "with %d, ", c->code);
		ck_assert_int_eq(acl_failed(as_lib(), "npu0", "aclnnMm",
		    c->code, &e), c->error);
		CONTAINS(e.msg, "session npu0: ");
		CONTAINS(e.msg, number);
		CONTAINS(e.msg, c->name);
		CONTAINS(e.msg, c->remedy);
	}
	acl_failed(as_lib(), "npu0", "aclCreateTensor", 107000, &e);
	CONTAINS(e.msg, "libnnopbase.so: aclCreateTensor");
	acl_failed(as_lib(), "npu0", "aclrtMalloc", 109999, &e);
	CONTAINS(e.msg, "a mistake of the caller");
	CONTAINS(e.msg, "lower the cap");
}

START_TEST(each_code_is_named_with_a_remedy)
{
	as_run_bare("", AS_OLD, name_codes);
}
END_TEST

/* A code that the table does not find where it is would be a hole in its
 * order. */
START_TEST(the_table_of_codes_is_in_order)
{
	static const int all[] = { 0, 100000, 100001, 100002, 100003, 100020,
	    100029, 100036, 100037, 100039, 107000, 107003, 107016, 107019,
	    107031, 148049, 161001, 161002, 200000, 200006, 207000, 207004,
	    207018, 300000, 361001, 500000, 500005, 507000, 507010, 507018,
	    507033, 507046, 507047, 507054, 507899, 507903, 561000, 561003,
	    561101, 561103, 561112 };
	unsigned i;

	for (i = 0; i < NITEMS(all); i++) {
		ck_assert_msg(acl_find_code(all[i]) != NULL, "%d", all[i]);
		ck_assert_int_eq(acl_find_code(all[i])->code, all[i]);
	}
	ck_assert_ptr_null(acl_find_code(1));
	ck_assert_ptr_null(acl_find_code(600000));
	ck_assert(acl_is_refusal(361001) && acl_is_refusal(561103) &&
	    acl_is_refusal(161002) && acl_is_refusal(207000));
	ck_assert(!acl_is_refusal(507018) && !acl_is_refusal(207001) &&
	    !acl_is_refusal(0) && !acl_is_refusal(1));
}
END_TEST

/* The library's text is read once, and is the thread's. */
static void
read_message_once(void)
{
	struct err e = { 0 };
	void *p;

	as_is(207001, as_lib()->aclrtMalloc(&p, 64, 0));
	acl_failed(as_lib(), "npu0", "aclrtMalloc", 207001, &e);
	CONTAINS(e.msg, "[the library says: EE9999");
	acl_failed(as_lib(), "npu0", "aclrtMalloc", 207001, &e);
	ck_assert_ptr_null(strstr(e.msg, "the library says"));
}

START_TEST(what_the_library_says_is_shown_once)
{
	as_run("fail=aclrtMalloc:207001@1", read_message_once);
}
END_TEST

int
main(int argc, char **argv)
{
	const TTest *const tests[] = {
		a_missing_library_is_reported_with_its_source,
		operators_that_are_not_installed_are_reported,
		one_family_of_operators_is_loaded,
		a_family_that_is_there_already_is_kept,
		operators_without_a_symbol_are_missing,
		a_stub_is_refused_by_name,
		cann_is_initialized_once,
		the_machine_is_asked_what_it_is,
		a_machine_without_a_device_is_reported,
		each_code_is_named_with_a_remedy,
		the_table_of_codes_is_in_order,
		what_the_library_says_is_shown_once,
	};

	const TTest *again = argc < 2 ? NULL : strcmp(argv[1], "both") == 0 ?
	    both_families_are_refused : strcmp(argv[1], "by-path") == 0 ?
	    the_path_has_both_families : the_split_libraries_are_left_alone;

	if (again != NULL)
		return t_main("ascend_lib", 30, &again, 1);
	return t_main("ascend_lib", 30, tests, NITEMS(tests));
}
