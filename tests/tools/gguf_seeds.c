/* tests/tools/gguf_seeds.c - write the files of gguf_cases.c into a folder, and the
 * directories of those that are accepted, as flat blocks, into another.  They are
 * the seeds of two fuzzers, kept in tests/corpus/gguf and tests/corpus/flat. */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/flat_input.h"
#include "tests/support/gguf_cases.h"

static void
save_flat(const char *path, const char *folder, const char *name)
{
	struct err e = { .kind = ERR_NONE };
	char to[4096];
	struct gguf *g;

	if (gguf_open(path, &g, &e) < 0)
		errx(1, "%s", e.msg);
	snprintf(to, sizeof(to), "%s/%s", folder, name);
	flat_input_save(g, to);
	gguf_close(g);
}

/* Part no of a set of 3.  Returns its path, in a static buffer. */
static const char *
save_part(const char *folder, unsigned no)
{
	static const uint64_t ne[] = { 32 };
	static char path[4096];
	struct gguf_writer w;
	char name[32];

	snprintf(path, sizeof(path), "%s/split-%05u-of-00003.gguf", folder,
	    no + 1);
	gw_open(&w);
	gw_kv_u16(&w, "split.no", (uint16_t)no);
	gw_kv_u16(&w, "split.count", 3);
	gw_kv_i32(&w, "split.tensors.count", 6);
	snprintf(name, sizeof(name), "blk.%u.a", no);
	gw_tensor(&w, name, QUANT_F32, 1, ne, 128);
	snprintf(name, sizeof(name), "blk.%u.b", no);
	gw_tensor(&w, name, QUANT_F32, 1, ne, 128);
	gw_save(&w, path);
	gw_close(&w);
	return path;
}

int
main(int argc, char **argv)
{
	const char *path;
	unsigned i;

	if (argc != 3) {
		fprintf(stderr, "usage: %s FOLDER FOLDER-OF-FLAT\n", argv[0]);
		return 2;
	}
	for (i = 0; i < gguf_ncases; i++) {
		path = gguf_case_save(&gguf_case[i], argv[1]);
		if (gguf_case[i].refusal == NULL)
			save_flat(path, argv[2], gguf_case[i].name);
	}
	for (i = 3; i-- > 0;)
		path = save_part(argv[2], i);
	save_flat(path, argv[2], "ok-split");
	for (i = 3; i-- > 0;)
		remove(save_part(argv[2], i));
	return 0;
}
