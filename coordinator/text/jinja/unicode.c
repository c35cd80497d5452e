/* coordinator/text/jinja/unicode.c - finds characters, their properties and
 * their case. */
#include "unicode.h"

unsigned
uc_flags(uint32_t c)
{
	size_t lo = 0, hi = nunicode_runs, mid;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (unicode_runs[mid].first <= c)
			lo = mid;
		else
			hi = mid;
	}
	return unicode_runs[lo].flags;
}

/* The last row that begins at or before c. */
static const struct unicode_map *
find_map(const struct unicode_map *m, size_t n, uint32_t c)
{
	size_t lo = 0, hi = n, mid;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (m[mid].first <= c)
			lo = mid;
		else
			hi = mid;
	}
	/* Rows with a stride interleave with at most one neighbour. */
	if (lo > 0 && m[lo - 1].last >= c && m[lo].first > c)
		lo--;
	return &m[lo];
}

static unsigned
map_long(const struct unicode_long *l, size_t n, uint32_t c, uint32_t *to)
{
	size_t i;
	unsigned k;

	for (i = 0; i < n; i++)
		if (l[i].c == c) {
			for (k = 0; k < 3 && l[i].to[k] != 0; k++)
				to[k] = l[i].to[k];
			return k;
		}
	return 0;
}

unsigned
uc_map(uint32_t c, enum unicode_case to_case, uint32_t *to)
{
	const struct unicode_map *m;
	unsigned k;

	if (to_case == UC_LOWER) {
		m = find_map(unicode_lower, nunicode_lower, c);
		k = c < 0x80 ? 0 : map_long(unicode_lower_long,
		    nunicode_lower_long, c, to);
	} else if (to_case == UC_UPPER) {
		m = find_map(unicode_upper, nunicode_upper, c);
		k = c < 0x80 ? 0 : map_long(unicode_upper_long,
		    nunicode_upper_long, c, to);
	} else {
		m = find_map(unicode_title, nunicode_title, c);
		k = c < 0x80 ? 0 : map_long(unicode_title_long,
		    nunicode_title_long, c, to);
	}
	if (k > 0)
		return k;
	to[0] = c;
	if (c >= m->first && c <= m->last && (c - m->first) % m->stride == 0)
		to[0] = (uint32_t)((int32_t)c + m->delta);
	return 1;
}

unsigned
uc_get(const char *s, size_t n, uint32_t *ret)
{
	const uint8_t *p = (const uint8_t *)s;
	uint32_t c = p[0], least;
	unsigned len, i;

	*ret = c;
	if (c < 0xc2 || c > 0xf4)
		return 1;
	len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	least = len == 2 ? 0x80 : len == 3 ? 0x800 : 0x10000;
	if (n < len)
		return 1;
	c &= 0x7fU >> len;
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 1;
	*ret = c;
	return len;
}

unsigned
uc_back(const char *s, size_t n, uint32_t *ret)
{
	unsigned len;

	for (len = 2; len <= 4 && len <= n; len++)
		if (uc_get(s + n - len, len, ret) == len)
			return len;
	*ret = (uint8_t)s[n - 1];
	return 1;
}

unsigned
uc_put(uint32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

int
uc_valid(const char *s, size_t n)
{
	uint32_t c;
	unsigned len;
	size_t i;

	for (i = 0; i < n; i += len) {
		len = uc_get(s + i, n - i, &c);
		if (len == 1 && c >= 0x80)
			return 0;
	}
	return 1;
}
