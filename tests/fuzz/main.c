/* tests/fuzz/main.c - replays files as a fuzzer's inputs, without libFuzzer.
 * Linked in where the compiler has no libFuzzer.  A call without files fails,
 * because it would test nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
main(int argc, char **argv)
{
	static uint8_t data[16 << 20];
	size_t size;
	FILE *fp;
	int i;

	for (i = 1; i < argc; i++) {
		if ((fp = fopen(argv[i], "re")) == NULL) {
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		size = fread(data, 1, sizeof(data), fp);
		fclose(fp);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("%d inputs replayed\n", argc - 1);
	return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
