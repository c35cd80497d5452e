/* coordinator/text/probe.h - what a chat template writes behind an answer.
 * Called by encoder.c, for the file's own template, and by engine/form.c.  Owns
 * nothing. */
#ifndef COORDINATOR_TEXT_PROBE_H
#define COORDINATOR_TEXT_PROBE_H

#include "layers/gguf/gguf.h"
#include "render.h"

enum { PROBE_END_BYTES = 64 };

/* Does an answer in this template consist of messages with channels, as gpt-oss'
 * does?  One of them ends as the answer does. */
int probe_has_channels(const char *jinja, size_t n);

/* Render an answer between two messages with fn(arg): the first word behind it,
 * up to a blank or PROBE_END_BYTES; "" = there is none, or the template refuses
 * the conversation.  bos, eos: texts of these tokens; NULL = none. */
int probe_answer_end(render_fn *fn, void *arg, const char *jinja, size_t n,
    const struct gguf_str *bos, const struct gguf_str *eos,
    char ret[PROBE_END_BYTES + 1], struct err *reterr);

#endif
