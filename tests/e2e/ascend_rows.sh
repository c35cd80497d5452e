#!/bin/bash
# tests/e2e/ascend_rows.sh - batches on an Ascend processor that have more rows than a
# product: the same text and logits as with fewer rows, for every split.  Nothing here
# runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "${STRADDLE_TESTS:-tests}/tools/ascend.sh"

ARGS=(run -m "$MODEL" --ctx 256 --temp 0 -n 6 -p "In the beginning God created the \
heaven and the earth. And the earth was without form, and void; and darkness was upon \
the face of the deep. And the Spirit of God moved upon the face of the waters. And God \
said, Let there be light: and there was light. And God saw the light, that it was good: \
and God divided the light from the darkness. And God called the light Day, and the \
darkness he called Night. And the evening and the morning were the first day. And God \
said, Let there be a firmament in the midst of the waters, and let it divide the waters \
from the waters. And God made the firmament")
# One row at a time takes a card's stand-in 20 s.
for soc in "910B 9 ${FULL:+1}" '310B,ops=all 1'; do
	rows=(${soc#* }) soc=${soc%% *}
	on $soc
	first "$soc, 150 rows" -s ascend --batch 150
	check "$soc, 150 rows: the prompt has as many" stderr_has \
	    'prompt 1[5-9][0-9] tokens'
	check "$soc, 150 rows: the library is not misused" no_misuse
	check_same "$soc, 65 rows, two sessions" -s ascend -s ascend --batch 65
	for n in "${rows[@]}"; do
		check_same "$soc, $n rows" -s ascend --batch "$n"
	done
done
e2e_end
