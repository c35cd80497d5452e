/* config/roles.h - the two programs in one binary.
 * The coordinator executes itself again with ROLE_WORKER_ARG as the only
 * argument, and main() then calls worker_main() at once.  Coordinator and
 * worker share no other symbol and never include each other. */
#ifndef CONFIG_ROLES_H
#define CONFIG_ROLES_H

#define ROLE_WORKER_ARG	"@worker"

/* Serves the channel on CHAN_FD until it closes; returns the exit code. */
int worker_main(int argc, char **argv);

#endif
