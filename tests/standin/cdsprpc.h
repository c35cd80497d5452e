/* tests/standin/cdsprpc.h - what the stand-in for libcdsprpc.so tells a test
 * beside the library's own functions.  Found by dlsym(). */
#ifndef TESTS_STANDIN_CDSPRPC_H
#define TESTS_STANDIN_CDSPRPC_H

/* Sessions, modules, queues, buffers, mappings and processes that are there:
 * 0 = nothing was left. */
unsigned standin_live(void);

/* The process of a session, in the order of their reservation. */
int standin_pid(unsigned session);

#endif
