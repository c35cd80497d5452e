/* tests/unit/columns.c - tables cut into blocks that fit a terminal. */
#include "tests/support/t.h"

#include <string.h>

#include "coordinator/print/columns.h"

static struct columns table;
static char text[4096];

/* Two rows: a name, and ncols columns of numbers, each 6 wide. */
static void
make_table(unsigned ncols)
{
	static const char *const heads[] = { "a", "bb", "ccc", "dddd",
	    "eeeee", "ffffff" };
	struct column *c;
	unsigned i, r;

	columns_init(&table, 2);
	c = columns_add(&table, "name", 0);
	strcpy(c->cell[0], "x");
	strcpy(c->cell[1], "longer");
	for (i = 0; i < ncols; i++) {
		c = columns_add(&table, heads[i], 1);
		for (r = 0; r < 2; r++)
			snprintf(c->cell[r], CELL_LEN, "%u.%02u", 100 + i, r);
		c->unit = "MiB";
	}
}

static void
check_print(size_t width, const char *want)
{
	FILE *fp = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(fp);
	columns_print(fp, &table, "title", width);
	fclose(fp);
	ck_assert_str_eq(text, want);
}

START_TEST(columns_are_as_wide_as_their_text)
{
	make_table(2);
	check_print(80, "title, MiB\n"
	    "name         a     bb\n"
	    "x       100.00 101.00\n"
	    "longer  100.01 101.01\n");
}
END_TEST

START_TEST(a_wide_table_is_cut_into_blocks_that_begin_with_the_names)
{
	make_table(3);
	check_print(28, "title, MiB\n"
	    "name         a     bb    ccc\n"
	    "x       100.00 101.00 102.00\n"
	    "longer  100.01 101.01 102.01\n");
	check_print(27, "title, MiB\n"
	    "name         a     bb\n"
	    "x       100.00 101.00\n"
	    "longer  100.01 101.01\n"
	    "name       ccc\n"
	    "x       102.00\n"
	    "longer  102.01\n");
	/* Width 0 has no limit. */
	make_table(6);
	check_print(0, "title, MiB\n"
	    "name         a     bb    ccc   dddd  eeeee ffffff\n"
	    "x       100.00 101.00 102.00 103.00 104.00 105.00\n"
	    "longer  100.01 101.01 102.01 103.01 104.01 105.01\n");
}
END_TEST

START_TEST(a_group_of_columns_stays_together)
{
	make_table(4);
	table.col[3].heads_group = 1;
	check_print(34, "title, MiB\n"
	    "name         a     bb\n"
	    "x       100.00 101.00\n"
	    "longer  100.01 101.01\n"
	    "name       ccc   dddd\n"
	    "x       102.00 103.00\n"
	    "longer  102.01 103.01\n");
}
END_TEST

START_TEST(a_column_wider_than_the_terminal_is_printed)
{
	make_table(2);
	check_print(3, "title, MiB\n"
	    "name\nx\nlonger\n"
	    "name         a\nx       100.00\nlonger  100.01\n"
	    "name        bb\nx       101.00\nlonger  101.01\n");
}
END_TEST

START_TEST(different_units_have_a_row)
{
	make_table(2);
	table.col[1].unit = "GiB";
	check_print(80, "title\n"
	    "name         a     bb\n"
	    "           GiB    MiB\n"
	    "x       100.00 101.00\n"
	    "longer  100.01 101.01\n");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		columns_are_as_wide_as_their_text,
		a_wide_table_is_cut_into_blocks_that_begin_with_the_names,
		a_group_of_columns_stays_together,
		a_column_wider_than_the_terminal_is_printed,
		different_units_have_a_row,
	};

	return t_main("columns", 20, tests, NITEMS(tests));
}
