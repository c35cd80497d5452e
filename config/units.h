/* config/units.h - numbers with units, in the form that people write.
 * Owns: sizes ("3.5GiB"), core lists ("0-3,6"), plain numbers with ranges.
 * Called by the parsers of settings and every printer.  Has no state. */
#ifndef CONFIG_UNITS_H
#define CONFIG_UNITS_H

#include "base.h"
#include "err.h"

/* Set of core numbers; bit n of word n / 64. */
struct cpuset {
	uint64_t bits[MAX_CPUS / 64];
};

/* "3.5GiB", "512MiB", "64KiB", "100B", "4096", "1.5GB" (decimal), "512M" and
 * "3G" (binary, as most tools read them).  Fractions are exact: the result is
 * rounded down to a byte.  Case does not matter.  -EINVAL with a message
 * that quotes the text and says what is allowed; -ERANGE above 2^63 - 1. */
int
units_parse_bytes(const char *text, uint64_t *ret_bytes, struct err *reterr);

enum { UNITS_BYTES_LEN = 32 };

/* Shortest form that parses back to exactly nbytes: "512MiB", "3.5GiB",
 * "1000B".  Returns buf. */
char *
units_format_bytes(uint64_t nbytes, char buf[UNITS_BYTES_LEN]);

/* For people: 3 significant figures, "804 MiB", "3.50 GiB".  Returns buf. */
char *
units_human_bytes(uint64_t nbytes, char buf[UNITS_BYTES_LEN]);

/* "0-3,6": numbers and ascending ranges, each below MAX_CPUS, none twice.
 * The words "big" and "little" are not known here: see config/cores.h. */
int
units_parse_cpus(const char *text, struct cpuset *ret, struct err *reterr);

/* "0-3,6"; "" for the empty set.  Returns buf (always terminated; a list too
 * long for len ends in "..."). */
char *
units_format_cpus(const struct cpuset *set, char *buf, size_t len);

unsigned
cpuset_count(const struct cpuset *set);
int
cpuset_has(const struct cpuset *set, unsigned cpu);	/* 0 or 1 */
void
cpuset_add(struct cpuset *set, unsigned cpu);
void
cpuset_add_all(struct cpuset *set, const struct cpuset *more);
int
cpuset_overlaps(const struct cpuset *a, const struct cpuset *b);

/* Parse a decimal integer in [lo, hi]; no spaces, no plus sign. */
int
units_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *ret,
    struct err *reterr);

/* Parse a finite decimal number in [lo, hi] ("0.8", "1e-3"), in any locale. */
int
units_parse_real(const char *text, double lo, double hi, double *ret,
    struct err *reterr);

enum { UNITS_REAL_LEN = 32 };

/* Shortest decimal that units_parse_real() reads back as x.  Returns buf. */
char *
units_format_real(double x, char buf[UNITS_REAL_LEN]);

/* "6,988" */
enum { UNITS_COUNT_LEN = 32 };
char *units_count(uint64_t n, char buf[UNITS_COUNT_LEN]);

#endif
