/* layers/rope.c - rotary frequencies and their scaling.
 *
 * base^(-2i / n_rot): Su et al. 2021, arXiv 2104.09864, section 3.2.2; linear
 * scaling: Chen et al. 2023, arXiv 2306.15595; a factor for each pair: Llama
 * 3.1, and LongRoPE, arXiv 2402.13753.  YaRN: Peng et al. 2023, arXiv
 * 2309.00071, sections 3.2 and 3.4: pairs with many rotations within the
 * original context are not scaled, pairs with less than one are, with a ramp in
 * between. */
#include "rope.h"

#include <math.h>

static int
has_own_base(const struct hparams *hp, int local)
{
	return local && hp->rope_base_local > 0;
}

/* The (fractional) pair with this many rotations in the original context. */
static double
pair_with_turns(const struct hparams *hp, double turns)
{
	return hp->n_rot * log(hp->rope_orig_ctx / (turns * 2 * M_PI)) /
	    (2 * log((double)hp->rope_base));
}

/* Share of the scaling that pair i gets, 0 to 1. */
static double
yarn_ramp(const struct hparams *hp, uint32_t i)
{
	double lo = fmax(floor(pair_with_turns(hp, (double)hp->yarn_fast)), 0);
	double hi = fmin(ceil(pair_with_turns(hp, (double)hp->yarn_slow)),
	    hp->n_rot - 1.0);

	return fmin(fmax((i - lo) / fmax(hi - lo, 0.001), 0), 1);
}

void
rope_inv_freq(const struct hparams *hp, int local, const float *factors,
    float *ret)
{
	double base = (double)(has_own_base(hp, local) ? hp->rope_base_local :
	    hp->rope_base), scale = (double)hp->rope_scale, f, scaled;
	uint32_t i;

	for (i = 0; i < hp->n_rot / 2; i++) {
		f = pow(base, -2.0 * i / hp->n_rot);
		if (has_own_base(hp, local)) {
			ret[i] = (float)f;
			continue;
		}
		scaled = hp->rope_yarn ? yarn_ramp(hp, i) : 1;
		f = f * scale * scaled + f * (1 - scaled);
		ret[i] = (float)(factors != NULL ? f / (double)factors[i] :
		    f);
	}
}

float
rope_magnitude(const struct hparams *hp, int local)
{
	return has_own_base(hp, local) ? 1 : hp->rope_mscale;
}
