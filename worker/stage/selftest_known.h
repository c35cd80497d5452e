/* worker/stage/selftest_known.h - the reference kernels' result for the layer
 * of the self-test's short form.  Written by STRADDLE_BLESS=1
 * build/tests/unit/selftest, which otherwise checks it.  Included by selftest.c
 * and that test. */
#ifndef WORKER_STAGE_SELFTEST_KNOWN_H
#define WORKER_STAGE_SELFTEST_KNOWN_H

#include "selftest_run.h"

static const selftest_result selftest_known = {
	{ 0.61877f, -1.59834f, -0.86156f, 0.44513f, 0.03406f,
	    -1.34619f, 0.19862f, -0.77207f, 0.86455f, 0.78468f, 0.33484f,
	    -1.15578f, 0.88413f, -0.62480f, -0.90997f, 0.10514f, 0.14913f,
	    0.79235f, 2.09119f, 0.61824f, 2.85400f, 1.31861f, -0.37214f,
	    0.74623f, -0.44689f, -0.54951f, 1.11583f, 2.02910f, -0.76649f,
	    0.02574f, 1.97534f, -0.34818f, },
	{ -0.80489f, -1.17688f, 0.11067f, 0.91306f, -0.46940f,
	    -0.57710f, 0.08908f, 0.16531f, 0.37610f, 1.52826f, 0.82250f,
	    0.06950f, 2.86626f, -0.19514f, -0.48364f, -1.08676f, -0.27220f,
	    0.91808f, 1.56220f, -0.26043f, 0.62458f, -0.13889f, -1.99453f,
	    -0.15900f, -0.14656f, -0.02150f, -2.65560f, 0.82808f, -0.30342f,
	    0.26676f, 0.34488f, 0.59900f, },
	{ 0.28841f, -0.78482f, 0.48567f, 0.38758f, 1.02042f,
	    -0.00304f, 0.44300f, -0.46274f, 0.16995f, 2.19117f, -0.12285f,
	    1.14992f, -1.05440f, -0.23001f, -0.04852f, -0.03555f, 0.60821f,
	    -0.44542f, 0.57182f, -0.51637f, -0.87710f, 0.18053f, -0.55279f,
	    -1.14591f, -0.48205f, -0.13046f, -0.07990f, -1.29680f, 0.36104f,
	    0.43855f, -0.82517f, 0.64360f, },
};

#endif
