/* config/priority.h - scheduling class of a session's threads.
 * Requested in the config, applied by the worker. */
#ifndef CONFIG_PRIORITY_H
#define CONFIG_PRIORITY_H

enum priority_kind { PRIO_DEFAULT, PRIO_NICE, PRIO_REALTIME };

struct priority {
	enum priority_kind kind;
	int level;		/* nice -20..19, or SCHED_FIFO 1..99 */
};

#endif
