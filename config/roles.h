/* config/roles.h - the programs in one binary.
 * The coordinator executes itself again with a role as the only argument, and
 * main() then calls that role's function at once.  Coordinator and worker share
 * no other symbol and never include each other.
 * Owns nothing. */
#ifndef CONFIG_ROLES_H
#define CONFIG_ROLES_H

#define ROLE_WORKER_ARG		"@worker"
#define ROLE_READER_ARG		"@reader"
#define ROLE_CONVERTER_ARG	"@converter"

/* Each serves the channel on CHAN_FD until it closes; returns the exit code. */
int worker_main(int argc, char **argv);
int reader_main(int argc, char **argv);
int converter_main(int argc, char **argv);

/* Begin a role, before anything else.  The coordinator decides when this process ends:
 * ignore the terminal's signals, which it handles, and die with it.  If it died
 * earlier, its end of the channel is closed and the first read fails.
 * log_name: config/log.h.  Descriptors above last_fd are closed. */
void role_begin(const char *log_name, int last_fd);

#endif
