/* tests/standin/cdsprpc.h - functions of the stand-in for libcdsprpc.so that the
 * library does not have; tests find them by dlsym(). */
#ifndef TESTS_STANDIN_CDSPRPC_H
#define TESTS_STANDIN_CDSPRPC_H

/* Number of sessions, modules, queues, buffers, mappings and processes that have not
 * been released. */
unsigned standin_live(void);

/* Pid of a session's process, 0 = none; sessions count from 0 in the order of
 * reservation. */
int standin_pid(unsigned session);

#endif
