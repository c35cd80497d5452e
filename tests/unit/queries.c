/* tests/unit/queries.c - answers of a worker, which may hold any bytes. */
#include "tests/support/t.h"

#include <string.h>

#include "coordinator/engine/queries.h"
#include "shm/wire.h"

#define CHECK_TEXT(text)						\
	ck_assert_uint_eq(strnlen(text, sizeof(text)), sizeof(text) - 1)

START_TEST(every_text_of_an_answer_ends_in_it)
{
	struct wire_placed p;
	struct wire_limit l;
	struct wire_check c;
	struct wire_support s;
	struct wire_verified v;

	memset(&p, 'x', sizeof(p));
	query_end_texts(WIRE_PLACED, &p);
	CHECK_TEXT(p.share);
	CHECK_TEXT(p.op);
	CHECK_TEXT(p.tensor);
	CHECK_TEXT(p.reason);
	memset(&l, 'x', sizeof(l));
	query_end_texts(WIRE_LIMIT, &l);
	CHECK_TEXT(l.name);
	CHECK_TEXT(l.from);
	memset(&c, 'x', sizeof(c));
	query_end_texts(WIRE_CHECK, &c);
	CHECK_TEXT(c.what);
	CHECK_TEXT(c.text);
	memset(&s, 'x', sizeof(s));
	query_end_texts(WIRE_SUPPORT, &s);
	CHECK_TEXT(s.op);
	CHECK_TEXT(s.type);
	CHECK_TEXT(s.reason);
	memset(&v, 'x', sizeof(v));
	query_end_texts(WIRE_VERIFIED, &v);
	CHECK_TEXT(v.op);
	CHECK_TEXT(v.type);
	CHECK_TEXT(v.reason);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_text_of_an_answer_ends_in_it,
	};

	return t_main("queries", 20, tests, NITEMS(tests));
}
