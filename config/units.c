/* config/units.c - numbers with units, read and written exactly.
 *
 * A size is   digits [ "." digits ] [ " " ] [ unit ]   where the unit is one
 * of  B  K M G T P E (binary, as most tools read them)  KiB ... EiB (binary)
 * KB ... EB (decimal), in any case.  All arithmetic is on integers: a double
 * would lose bytes above 2^53. */
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <bsd/stdlib.h>
#include <bsd/string.h>

#define SIZE_ALLOWED	\
	"write a size such as 3.5GiB, 512MiB, 64K, 1.5GB or 4096"

static const char size_letters[] = "KMGTPE";	/* 2^10, 2^20, ... 2^60 */

/* Look a unit up.  Returns 1 and its number of bytes, or 0. */
static int
unit_bytes(const char *unit, uint64_t *ret_bytes)
{
	const char *letter;
	unsigned power;
	uint64_t n = 1;

	*ret_bytes = 1;
	if (*unit == '\0' || strcasecmp(unit, "b") == 0)
		return 1;
	if ((letter = strchr(size_letters, toupper((unsigned char)*unit))) ==
	    NULL)
		return 0;
	power = (unsigned)(letter - size_letters) + 1;
	*ret_bytes = (uint64_t)1 << (10 * power);
	if (unit[1] == '\0' || strcasecmp(unit + 1, "ib") == 0)
		return 1;
	while (power-- > 0)
		n *= 1000;
	*ret_bytes = n;
	return strcasecmp(unit + 1, "b") == 0;
}

int
units_parse_bytes(const char *text, uint64_t *ret_bytes, struct err *reterr)
{
	const char *point, *frac, *unit;
	uint64_t mult, whole = 0, part = 0;
	size_t nwhole = strspn(text, "0123456789"), nfrac = 0, i;

	point = text + nwhole;
	frac = point + 1;
	unit = point;
	if (*point == '.') {
		nfrac = strspn(frac, "0123456789");
		unit = frac + nfrac;
	}
	if (*unit == ' ' && unit[1] != '\0')
		unit++;
	if (nwhole == 0 || (*point == '.' && nfrac == 0) ||
	    !unit_bytes(unit, &mult))
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a size: " SIZE_ALLOWED, text);

	for (i = 0; i < nwhole; i++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, text[i] - '0', &whole))
			goto too_large;
	if (__builtin_mul_overflow(whole, mult, &whole))
		goto too_large;
	/* Horner from the last digit.  Rounding down at each step equals
	 * rounding down once at the end; 10 * 2^60 fits. */
	for (i = nfrac; i-- > 0; )
		part = ((uint64_t)(frac[i] - '0') * mult + part) / 10;
	if (__builtin_add_overflow(whole, part, &whole) || whole > INT64_MAX)
		goto too_large;
	*ret_bytes = whole;
	return 0;
too_large:
	return err_set(reterr, ERR_USAGE, -ERANGE,
	    "'%.64s' is too large: a size is below 8EiB", text);
}

/* Write nbytes in units of 2^shift with all its digits.  Returns 0 if that does
 * not fit into len or nbytes is less than one unit. */
static int
format_exactly(uint64_t nbytes, unsigned shift, char *buf, size_t len)
{
	uint64_t one = (uint64_t)1 << shift, rest = nbytes & (one - 1);
	size_t n;

	if (nbytes < one)
		return 0;
	n = (size_t)snprintf(buf, len, "%" PRIu64, nbytes >> shift);
	if (rest != 0 && n < len)
		buf[n++] = '.';
	for (; rest != 0 && n < len; rest = rest * 10 & (one - 1))
		buf[n++] = (char)('0' + (rest * 10 >> shift));
	if (n + sizeof("KiB") > len)
		return 0;
	snprintf(buf + n, len - n, "%ciB", size_letters[shift / 10 - 1]);
	return 1;
}

char *
units_format_bytes(uint64_t nbytes, char buf[UNITS_BYTES_LEN])
{
	char other[UNITS_BYTES_LEN];
	unsigned shift;

	snprintf(buf, UNITS_BYTES_LEN, "%" PRIu64 "B", nbytes);
	for (shift = 10; shift <= 60; shift += 10)
		if (format_exactly(nbytes, shift, other, sizeof(other)) &&
		    strlen(other) < strlen(buf))
			strlcpy(buf, other, UNITS_BYTES_LEN);
	return buf;
}

char *
units_human_bytes(uint64_t nbytes, char buf[UNITS_BYTES_LEN])
{
	unsigned shift = 0;
	uint64_t milli;		/* thousandths of a unit */

	if (nbytes < 1000) {
		snprintf(buf, UNITS_BYTES_LEN, "%" PRIu64 " B", nbytes);
		return buf;
	}
	do {
		unsigned __int128 half = (unsigned __int128)1 << (shift + 9);

		shift += 10;
		milli = (uint64_t)(((unsigned __int128)nbytes * 1000 + half) >>
		    shift);
	} while (milli >= 999500 && shift < 60);
	/* Three significant figures; below one unit, milli has them already. */
	if (milli < 1000)
		snprintf(buf, UNITS_BYTES_LEN, "0.%03" PRIu64, milli);
	else if (milli < 9995)
		snprintf(buf, UNITS_BYTES_LEN, "%" PRIu64 ".%02" PRIu64,
		    (milli + 5) / 1000, (milli + 5) / 10 % 100);
	else if (milli < 99950)
		snprintf(buf, UNITS_BYTES_LEN, "%" PRIu64 ".%" PRIu64,
		    (milli + 50) / 1000, (milli + 50) / 100 % 10);
	else
		snprintf(buf, UNITS_BYTES_LEN, "%" PRIu64,
		    (milli + 500) / 1000);
	strlcat(buf, " ?iB", UNITS_BYTES_LEN);
	buf[strlen(buf) - 3] = size_letters[shift / 10 - 1];
	return buf;
}

/* Parse the core number at *p and advance *p; -1 if none or too large. */
static int
cpu_number(const char **p)
{
	int n = -1;

	for (; isdigit((unsigned char)**p); (*p)++) {
		n = MAX(n, 0) * 10 + (**p - '0');
		if (n >= MAX_CPUS)
			return -1;
	}
	return n;
}

int
units_parse_cpus(const char *text, struct cpuset *ret, struct err *reterr)
{
	struct cpuset set = {0};
	const char *p = text;
	int first, last;

	do {
		first = last = cpu_number(&p);
		if (first >= 0 && *p == '-') {
			p++;
			last = cpu_number(&p);
		}
		if (first < 0 || last < first || (*p != ',' && *p != '\0'))
			return err_set(reterr, ERR_USAGE, -EINVAL,
			    "'%.64s' is not a core list: write numbers from 0 to "
			    "%d and ascending ranges, such as 0-3,6", text,
			    MAX_CPUS - 1);
		for (; first <= last; first++) {
			if (cpuset_has(&set, (unsigned)first))
				return err_set(reterr, ERR_USAGE, -EINVAL,
				    "'%.64s' names core %d twice: once is enough",
				    text, first);
			cpuset_add(&set, (unsigned)first);
		}
	} while (*p++ == ',');
	*ret = set;
	return 0;
}

char *
units_format_cpus(const struct cpuset *set, char *buf, size_t len)
{
	unsigned cpu, first;
	size_t n = 0;
	char item[16];

	buf[0] = '\0';
	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!cpuset_has(set, cpu))
			continue;
		first = cpu;
		while (cpu + 1 < MAX_CPUS && cpuset_has(set, cpu + 1))
			cpu++;
		if (first == cpu)
			snprintf(item, sizeof(item), "%s%u", n ? "," : "", cpu);
		else
			snprintf(item, sizeof(item), "%s%u-%u", n ? "," : "",
			    first, cpu);
		/* Each item leaves room for a "..." after it. */
		if (n + strlen(item) + sizeof("...") > len) {
			strlcpy(buf + n, "...", len - n);
			break;
		}
		n = strlcat(buf, item, len);
	}
	return buf;
}

unsigned
cpuset_count(const struct cpuset *set)
{
	unsigned i, n = 0;

	for (i = 0; i < NITEMS(set->bits); i++)
		n += (unsigned)__builtin_popcountll(set->bits[i]);
	return n;
}

int
cpuset_has(const struct cpuset *set, unsigned cpu)
{
	return cpu < MAX_CPUS && (set->bits[cpu / 64] >> (cpu % 64) & 1);
}

void
cpuset_add(struct cpuset *set, unsigned cpu)
{
	set->bits[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

void
cpuset_add_all(struct cpuset *set, const struct cpuset *more)
{
	unsigned i;

	for (i = 0; i < NITEMS(set->bits); i++)
		set->bits[i] |= more->bits[i];
}

int
cpuset_overlaps(const struct cpuset *a, const struct cpuset *b)
{
	unsigned i;

	for (i = 0; i < NITEMS(a->bits); i++)
		if ((a->bits[i] & b->bits[i]) != 0)
			return 1;
	return 0;
}

int
units_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *ret,
    struct err *reterr)
{
	const char *digits = text + (*text == '-'), *problem;
	int64_t n;

	/* strtonum() would accept leading spaces and a plus sign. */
	if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a whole number: must be %" PRId64
		    " to %" PRId64, text, lo, hi);
	n = strtonum(text, lo, hi, &problem);
	if (problem != NULL)
		return err_set(reterr, ERR_USAGE, -ERANGE,
		    "'%.64s' is %s: must be %" PRId64 " to %" PRId64, text,
		    problem, lo, hi);
	*ret = n;
	return 0;
}

/* Switch this thread to the C locale, so that the decimal separator is a point
 * on every machine.  glibc returns a static object: nothing to free. */
static locale_t
use_c_locale(void)
{
	return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

int
units_parse_real(const char *text, double lo, double hi, double *ret,
    struct err *reterr)
{
	locale_t before = use_c_locale();
	char *end;
	double x = strtod(text, &end);
	int rc = 0;

	/* The character test rejects spaces, hexadecimal, inf and nan. */
	if (*text == '\0' || *end != '\0' || *text == '+' ||
	    text[strspn(text, "+-.0123456789eE")] != '\0')
		rc = err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a number: must be %g to %g", text, lo, hi);
	else if (!(x >= lo && x <= hi))
		rc = err_set(reterr, ERR_USAGE, -ERANGE,
		    "'%.64s' is too %s: must be %g to %g", text,
		    x < lo ? "small" : "large", lo, hi);
	else
		*ret = x;
	uselocale(before);
	return rc;
}

char *
units_format_real(double x, char buf[UNITS_REAL_LEN])
{
	locale_t before = use_c_locale();
	int digits;

	for (digits = 1; digits <= 17; digits++) {
		snprintf(buf, UNITS_REAL_LEN, "%.*g", digits, x);
		if (strtod(buf, NULL) == x)
			break;
	}
	uselocale(before);
	return buf;
}

char *
units_count(uint64_t n, char buf[UNITS_COUNT_LEN])
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n);
	size_t i, at = 0;

	for (i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}
