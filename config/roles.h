/* config/roles.h - the two programs in one binary.
 * The coordinator re-executes itself with ROLE_WORKER as its only argument;
 * its main() then hands over at once.  They share no other symbol: coordinator
 * and worker never include each other. */
#ifndef CONFIG_ROLES_H
#define CONFIG_ROLES_H

#define ROLE_WORKER_ARG	"@worker"

/* Serves the channel on CHAN_FD until it closes; returns the exit code. */
int worker_main(int argc, char **argv);

#endif
