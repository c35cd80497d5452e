/* tests/standin/libopapi.c - makes a library of the older family of CANN's
 * operators: all in one.  Operators: ascend_{nn,math,transformer}.c. */
#include "ascend.h"

__attribute__((constructor)) static void
declare_family(void)
{
	ascend_family(0);
}
