/* tests/standin/libopapi_split.c - makes a library of the newer family of CANN's
 * operators: one of several.  Operators: ascend_{nn,math,transformer}.c. */
#include "ascend.h"

__attribute__((constructor)) static void
declare_family(void)
{
	ascend_family(1);
}
