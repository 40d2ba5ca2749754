/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings FI_WEFT_*: one table with their names, ranges, defaults and
 * reasons, and one parser. The provider takes its values from here and `weft
 * info` shows them from here, so that both always say the same.
 */
#ifndef WF_BASE_SETTING_H
#define WF_BASE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_SETTING_PREFIX "FI_WEFT_"

enum wf_setting_kind {
	WF_SETTING_BYTES,
	WF_SETTING_COUNT,
	WF_SETTING_MS,	   /* a time, in milliseconds */
	WF_SETTING_S,	   /* a time, in seconds */
	WF_SETTING_BOOL,   /* 0 or 1 */
	WF_SETTING_IFACE,  /* the rest are texts */
	WF_SETTING_CHOICE, /* one of some words */
	WF_SETTING_USERS,
	WF_SETTING_FOLDER,
	WF_SETTING_TEXT,
};

struct wf_setting {
	const char *name; /* without the prefix, as libfabric wants it */
	enum wf_setting_kind kind;
	bool power_of_two;
	bool or_zero;	   /* 0 is possible though below min */
	uint64_t min, max; /* UINT64_MAX: no upper bound */
	uint64_t fallback; /* the default */
	const char
		*words; /* the default in words: of a text, or if not fixed */
	const char *choices; /* of a choice: "tcp or udp" */
	const char *help;
	const char *why; /* the reason of the default */
};

extern const struct wf_setting wf_base_settings[];
extern const size_t wf_base_setting_count;

/* The default of coop_min where a copy between processes takes @call_ns to
 * begin. */
uint64_t wf_base_setting_coop_min(uint64_t call_ns);

/* By name, without the prefix, in any case; or NULL. */
const struct wf_setting *wf_base_setting_find(const char *name);

static inline bool wf_base_setting_is_text(const struct wf_setting *setting)
{
	return setting->kind >= WF_SETTING_IFACE;
}

enum { WF_SETTING_NOTE = 224, WF_SETTING_TEXT_LEN = 96 };

/*
 * Reads @given. @value holds the default and is changed if something else is
 * to be used; texts leave it alone. Returns whether @given counts at all (if
 * not: the default is used). @note becomes a sentence without an end if @given
 * was not taken as it stands, else "".
 */
bool wf_base_setting_read(const struct wf_setting *setting, const char *given,
			  uint64_t *value, char note[WF_SETTING_NOTE]);

/* "64 to 4096 bytes"; "" for texts. Returns @buf. */
const char *wf_base_setting_range(const struct wf_setting *setting,
				  char buf[WF_SETTING_TEXT_LEN]);

/* The value as text: "8192", "true". Not for texts. Returns @buf. */
const char *wf_base_setting_text(const struct wf_setting *setting,
				 uint64_t value, char buf[WF_SETTING_TEXT_LEN]);

/*
 * Calls @found for each variable of the environment that begins with the
 * prefix and is no setting; @meant is the setting with the most similar name,
 * or NULL.
 */
void wf_base_setting_unknown(void (*found)(const char *name,
					   const struct wf_setting *meant,
					   void *arg),
			     void *arg);

#endif
