/* coordinator/engine/logits.c - explains logits that are not numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "impl.h"
#include "notes.h"

int
engine_refuse_logits(const struct engine *eng, int64_t pos,
    struct err *reterr)
{
	char at[40] = "";
	const struct session *s = eng->sessions != NULL ?
	    notes_kv_overflow(eng->sessions) : NULL;
	const struct conf *c = eng->conf;

	if (pos >= 0)
		snprintf(at, sizeof(at), " at position %" PRId64, pos);
	if (s != NULL)
		return err_set(reterr, ERR_RUN, -EDOM, "the logits%s are not "
		    "numbers: keys or values of session %s exceed the range "
		    "of F16, 65504: use --kv-type f32", at, s->name);
	return err_set(reterr, ERR_RUN, -EDOM, "the logits%s are not numbers: "
	    "the model's weights or the computation are broken%s", at,
	    c->kv_type_k == KV_F32 && c->kv_type_v == KV_F32 ? "" :
	    "; --kv-type f32 rules out keys and values beyond the range of "
	    "the KV type");
}
