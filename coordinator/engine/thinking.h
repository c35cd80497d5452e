/* coordinator/engine/thinking.h - how a model's thoughts are marked, and switched
 * off.
 * Owns: nothing.  Called by engine.c once the chat template is known.  Does not
 * see answers: the decoder does. */
#ifndef COORDINATOR_ENGINE_THINKING_H
#define COORDINATOR_ENGINE_THINKING_H

#include "coordinator/text/filter.h"
#include "form.h"

/* Find the markers of f's template, and whether its generation prompt begins the
 * thoughts.  With --thinking off set the variable of the template that turns them
 * off, or log that there is none.  Errors as of form_render(). */
int thinking_open(const struct conf *c, struct form *f,
    const struct tokenizer *t, struct filter_marks *ret, struct err *reterr);

#endif
