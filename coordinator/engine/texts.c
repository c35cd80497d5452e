/* coordinator/engine/texts.c - how long the text of a request may be, and why. */
#include <stdio.h>

#include "config/own_cap.h"
#include "config/units.h"
#include "impl.h"

size_t
engine_text_bytes(const struct engine *eng)
{
	return (size_t)MIN(tokenizer_max_text(eng->vocab, eng->plan.ctx_tok),
	    eng->own.text_bytes);
}

const char *
engine_text_why(const struct engine *eng, char buf[ENGINE_WHY_LEN])
{
	const uint32_t ctx = eng->plan.ctx_tok;
	char cap[UNITS_BYTES_LEN];

	if (tokenizer_max_text(eng->vocab, ctx) <= eng->own.text_bytes)
		snprintf(buf, ENGINE_WHY_LEN, "the context of %u tokens holds "
		    "at most %zu: give a shorter text or a larger --ctx (the "
		    "model was trained with %u)", ctx, engine_text_bytes(eng),
		    eng->model->hp.ctx_train);
	else
		snprintf(buf, ENGINE_WHY_LEN, "the coordinator's cap of %s "
		    "leaves room for %zu: give a shorter text or a larger "
		    "--coordinator-cap",
		    units_human_bytes(own_cap()->cap_bytes, cap),
		    engine_text_bytes(eng));
	return buf;
}
