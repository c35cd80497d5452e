/* worker/ascend/board.c - checks environment, driver, nodes and their rights,
 * and the package of operators. */
#include "board.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#define SET_ENV	"source set_env.sh of the CANN toolkit (usually " \
		"/usr/local/Ascend/ascend-toolkit/set_env.sh)"
#define KERNELS	BOARD_KERNELS "/config"

/* --- environment --- */

static void
check_variable(struct device_probe *p, const char *name, const char *value)
{
	if (value == NULL || *value == '\0')
		probe_add(p, name, 0, "not set: " SET_ENV);
	else if (access(value, R_OK | X_OK) < 0)
		probe_add(p, name, 0, "%.120s: %s: " SET_ENV, value,
		    strerror(errno));
	else
		probe_add(p, name, 1, "%.200s", value);
}

static void
check_environment(struct device_probe *p)
{
	const char *home = secure_getenv("ASCEND_HOME_PATH");

	if (home == NULL)
		home = secure_getenv("ASCEND_TOOLKIT_HOME");
	check_variable(p, "ASCEND_HOME_PATH", home);
	check_variable(p, "ASCEND_OPP_PATH", secure_getenv("ASCEND_OPP_PATH"));
}

/* --- package of operators --- */

void
board_kernels_name(const char *soc, char *ret, size_t len)
{
	size_t i, n;

	strlcpy(ret, soc, len);
	for (i = 0; ret[i] != '\0'; i++)
		ret[i] = (char)tolower((unsigned char)ret[i]);
	/* ascend310b1, ascend910b2c: the variant follows the last letter of the
	 * series. */
	n = strcspn(ret, "0123456789");
	n += strspn(ret + n, "0123456789");
	n += ret[n] == '_' ? 3 : 1;		/* Ascend910_9391: 910_93 */
	if (n < strlen(ret))
		ret[n] = '\0';
}

static void
check_operators(struct device_probe *p, const char *soc)
{
	const char *opp = secure_getenv("ASCEND_OPP_PATH");
	char name[32], path[PATH_MAX];

	if (*soc == '\0' || opp == NULL)
		return;
	board_kernels_name(soc, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/" KERNELS "/%s", opp, name);
	if (access(path, R_OK | X_OK) == 0)
		probe_add(p, "operator package", 1, "%.200s", path);
	else
		probe_add(p, "operator package", 0, "%.160s: %s: install the "
		    "package of operators for %s, Ascend-cann-kernels-%s, of "
		    "the toolkit's version", path, strerror(errno), soc,
		    name + strlen("ascend"));
}

/* --- driver and nodes --- */

static void
check_driver(const char *root, struct device_probe *p)
{
	char path[PATH_MAX], line[96];
	FILE *fp;
	int found = 0;

	snprintf(path, sizeof(path), "%s" BOARD_DRIVER, root);
	if ((fp = fopen(path, "re")) == NULL) {
		probe_add(p, "driver", 0, BOARD_DRIVER ": %s: install the "
		    "driver and firmware of the processor", strerror(errno));
		return;
	}
	while (!found && fgets(line, sizeof(line), fp) != NULL)
		found = strncasecmp(line, "version=", 8) == 0;
	fclose(fp);
	line[strcspn(line, "\r\n")] = '\0';
	probe_add(p, "driver", found, "%s%.60s", found ? "" : BOARD_DRIVER
	    " names no version: install the driver again", found ? line + 8 :
	    "");
}

static void
check_nodes(const char *root, unsigned number, struct device_probe *p)
{
	static const char *const shared[] = {
		"davinci_manager", "devmm_svm", "hisi_hdc",
	};
	char path[PATH_MAX], name[32];
	unsigned i;

	for (i = 0; i <= NITEMS(shared); i++) {
		if (i == 0)
			snprintf(name, sizeof(name), "davinci%u", number);
		else
			strlcpy(name, shared[i - 1], sizeof(name));
		snprintf(path, sizeof(path), "%s/dev/%s", root, name);
		if (access(path, R_OK | W_OK) < 0) {
			probe_add(p, "device nodes", 0, "/dev/%s: %s: %s",
			    name, strerror(errno), errno == EACCES ?
			    "add this user to the node's group (HwHiAiUser) "
			    "and log in again" : "install the driver; npu-smi "
			    "info must list the device");
			return;
		}
	}
	probe_add(p, "device nodes", 1, "/dev/davinci%u and the driver's "
	    "others, readable and writable", number);
}

void
board_check(const char *root, const char *soc, unsigned number,
    struct device_probe *ret)
{
	check_nodes(root, number, ret);
	check_driver(root, ret);
	check_environment(ret);
	check_operators(ret, soc);
}
