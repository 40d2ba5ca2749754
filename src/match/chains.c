/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of hash tables. Frees none: a table is freed by its user.
 */
#include "match/chains.h"

#include <stdlib.h>

void wf_match_chains_clear(struct wf_chains *chains)
{
	for (uint32_t i = 0; i < wf_match_chains_count(chains); i++)
		wf_base_list_init(&chains->heads[i]);
}

bool wf_match_chains_open(struct wf_chains *chains, uint32_t count)
{
	uint32_t chain_count = WF_MATCH_CHAINS;

	while (chain_count / 2 < count && chain_count < WF_MATCH_CHAINS_MAX)
		chain_count *= 2;
	chains->heads = malloc(chain_count * sizeof(*chains->heads));
	if (!chains->heads)
		return false;
	chains->shift = wf_match_chains_shift(chain_count);
	wf_match_chains_clear(chains);
	return true;
}
