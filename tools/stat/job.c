/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds rank and job in the environment with which a process was started. The
 * block belongs to the process, which may have overwritten it: no text in it is
 * believed to end, and none reaches a terminal unchecked.
 */
#include "tools/stat/job.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_MAX (256 * 1024)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The first one that is there counts. A launcher inside a batch job knows more
 * than the batch system: under Slurm, mpirun starts all ranks of a node from
 * one task. */
static const char *const ranks[] = {
	"OMPI_COMM_WORLD_RANK", "PMIX_RANK",   "PMI_RANK",
	"MV2_COMM_WORLD_RANK",	"PALS_RANKID", "FLUX_TASK_RANK",
	"SLURM_PROCID",
};

static const char *const sizes[] = {
	"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",	"MV2_COMM_WORLD_SIZE",
	"FLUX_JOB_SIZE",	"SLURM_NTASKS",
};

/* Batch systems first: theirs is the number that the user knows. */
static const char *const jobs[] = {
	"SLURM_JOB_ID", "PBS_JOBID",	  "LSB_JOBID",
	"FLUX_JOB_ID",	"COBALT_JOBID",	  "PALS_APID",
	"PMI_JOBID",	"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
};

/* The value of the first of @names that stands in the block, or NULL. The
 * block ends with a 0. */
static const char *look_up(const char *block, size_t len,
			   const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t name = strlen(names[i]);

		for (const char *at = block; at < block + len;
		     at += strlen(at) + 1) {
			if (!strncmp(at, names[i], name) && at[name] == '=')
				return at + name + 1;
		}
	}
	return NULL;
}

static int number(const char *text, int otherwise)
{
	char *end;
	long value;

	if (!text || !isdigit((unsigned char)*text))
		return otherwise;
	value = strtol(text, &end, 10);
	return *end || value > INT_MAX ? otherwise : (int)value;
}

void wf_tools_job_parse(struct wf_tools_job *job, const char *block, size_t len)
{
	const char *id;

	*job = (struct wf_tools_job){ .rank = -1 };
	while (len && block[len - 1])
		len--; /* cut off in the middle */
	if (!len)
		return;
	job->rank = number(look_up(block, len, ranks, COUNT_OF(ranks)), -1);
	/* The number of tasks alone makes no job: a batch script has it too. */
	if (job->rank < 0)
		return;
	job->size = number(look_up(block, len, sizes, COUNT_OF(sizes)), 0);
	id = look_up(block, len, jobs, COUNT_OF(jobs));
	snprintf(job->id, sizeof(job->id), "%s", id ? id : "");
	for (char *c = job->id; *c; c++)
		*c = isgraph((unsigned char)*c) ? *c : '?';
}

void wf_tools_job_read(struct wf_tools_job *job, pid_t pid)
{
	char path[64], *block = malloc(BLOCK_MAX);
	size_t len = 0;
	ssize_t got;
	int fd;

	*job = (struct wf_tools_job){ .rank = -1 };
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = block ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		while (len < BLOCK_MAX &&
		       (got = read(fd, block + len, BLOCK_MAX - len)) > 0)
			len += (size_t)got;
		close(fd);
		wf_tools_job_parse(job, block, len);
	}
	free(block);
}
