/* config/caps.c - reads and drops capabilities of this thread. */
#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAD	{ .version = _LINUX_CAPABILITY_VERSION_3 }

uint64_t
caps_held(void)
{
	struct __user_cap_header_struct head = HEAD;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

int
caps_keep(uint64_t own, uint64_t later)
{
	struct __user_cap_header_struct head = HEAD;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int cap;

	own &= own != 0 ? caps_held() : 0;
	data[0].permitted = data[0].effective = (uint32_t)own;
	data[1].permitted = data[1].effective = (uint32_t)(own >> 32);
	/* An error: there is no such capability, and no higher one, or this
	 * process may not drop from the bounding set. */
	for (cap = 0; cap < 64; cap++)
		if (!(later & CAPS_BIT(cap)) &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}
