/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrays that grow: memory for one more element, twice as much each time.
 */
#ifndef WF_TOOLS_GROW_H
#define WF_TOOLS_GROW_H

#include <stdlib.h>

/* @all: an array of *@room elements of @size bytes, or NULL, of which @count are
 * in use. Returns it, or where it is now, with room for another one; NULL if
 * there is no memory, and then @all stays as it is. */
static inline void *wf_tools_grow(void *all, size_t count, size_t *room,
				  size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *bigger;

	if (count < *room)
		return all;
	bigger = realloc(all, more * size);
	if (bigger)
		*room = more;
	return bigger;
}

#endif
