/* coordinator/engine/impl.h - struct engine, for the files of this folder (and
 * the tests that stand in for one). */
#ifndef COORDINATOR_ENGINE_IMPL_H
#define COORDINATOR_ENGINE_IMPL_H

#include "coordinator/reader/reader.h"
#include "engine.h"
#include "form.h"
#include "own.h"
#include "pipeline.h"
#include "thinking.h"

struct engine {
	const struct conf *conf;
	struct reader *reader;
	struct model *model;
	struct tokenizer *vocab;	/* the reader's; NULL until
					 * engine_open_tokenizer() */
	struct form *form;		/* of conversations; NULL in runs
					 * without any */
	struct filter_marks marks;	/* of its thoughts */
	struct kernels kernels;
	struct plan plan;
	struct plan_room *rooms;	/* [PLAN_ROOMS], NULL without a plan */
	struct conf *fit_conf;		/* NULL without plan --fit */
	char fit_reason[PLAN_WHY_LEN];
	struct sessions *sessions;
	struct pipeline *pipe;
	struct own own;			/* zeroed before engine_plan() */
	struct process_list processes;	/* as last filled */
	int signal_fd;
	struct batch_row *rows;		/* [plan.batch_rows], the next batch */
	/* As engine_numbers has them. */
	uint64_t load_ns, file_bytes, read_ns, reserve_ns;
};

#endif
