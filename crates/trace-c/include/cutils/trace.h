// The functions and macros of Android's <cutils/trace.h>: markers with tags, such as those of the system's
// own processes. A tag is a category, such as atrace:view, and a recording with the category atrace has all
// of them. Markers whose tag is off cost a call and two loads; nothing is formatted or written. See
// <android/trace.h>.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATRACE_TAG_NEVER 0
#define ATRACE_TAG_ALWAYS (UINT64_C(1) << 0)
#define ATRACE_TAG_GRAPHICS (UINT64_C(1) << 1)
#define ATRACE_TAG_INPUT (UINT64_C(1) << 2)
#define ATRACE_TAG_VIEW (UINT64_C(1) << 3)
#define ATRACE_TAG_WEBVIEW (UINT64_C(1) << 4)
#define ATRACE_TAG_WINDOW_MANAGER (UINT64_C(1) << 5)
#define ATRACE_TAG_ACTIVITY_MANAGER (UINT64_C(1) << 6)
#define ATRACE_TAG_SYNC_MANAGER (UINT64_C(1) << 7)
#define ATRACE_TAG_AUDIO (UINT64_C(1) << 8)
#define ATRACE_TAG_VIDEO (UINT64_C(1) << 9)
#define ATRACE_TAG_CAMERA (UINT64_C(1) << 10)
#define ATRACE_TAG_HAL (UINT64_C(1) << 11)
#define ATRACE_TAG_APP (UINT64_C(1) << 12)
#define ATRACE_TAG_RESOURCES (UINT64_C(1) << 13)
#define ATRACE_TAG_DALVIK (UINT64_C(1) << 14)
#define ATRACE_TAG_RS (UINT64_C(1) << 15)
#define ATRACE_TAG_BIONIC (UINT64_C(1) << 16)
#define ATRACE_TAG_POWER (UINT64_C(1) << 17)
#define ATRACE_TAG_PACKAGE_MANAGER (UINT64_C(1) << 18)
#define ATRACE_TAG_SYSTEM_SERVER (UINT64_C(1) << 19)
#define ATRACE_TAG_DATABASE (UINT64_C(1) << 20)
#define ATRACE_TAG_NETWORK (UINT64_C(1) << 21)
#define ATRACE_TAG_ADB (UINT64_C(1) << 22)
#define ATRACE_TAG_VIBRATOR (UINT64_C(1) << 23)
#define ATRACE_TAG_AIDL (UINT64_C(1) << 24)
#define ATRACE_TAG_NNAPI (UINT64_C(1) << 25)
#define ATRACE_TAG_RRO (UINT64_C(1) << 26)
#define ATRACE_TAG_THERMAL (UINT64_C(1) << 27)
#define ATRACE_TAG_LAST ATRACE_TAG_THERMAL
#define ATRACE_TAG_VALID_MASK ((ATRACE_TAG_LAST - 1) | ATRACE_TAG_LAST)

// The tag of the macros. A file may define another one before it includes this header.
#ifndef ATRACE_TAG
#define ATRACE_TAG ATRACE_TAG_NEVER
#endif

uint64_t trace_internal_atrace_enabled(uint64_t tags);
void trace_internal_atrace_begin(uint64_t tag, const char* name);
void trace_internal_atrace_end(uint64_t tag);
void trace_internal_atrace_async_begin(uint64_t tag, const char* name, int32_t cookie);
void trace_internal_atrace_async_end(uint64_t tag, const char* name, int32_t cookie);
void trace_internal_atrace_instant(uint64_t tag, const char* name);
void trace_internal_atrace_counter(uint64_t tag, const char* name, int64_t value);

// The tags, of those given, whose markers are written.
static inline uint64_t atrace_is_tag_enabled(uint64_t tag)
{
    return trace_internal_atrace_enabled(tag);
}

// All tags whose markers are written.
static inline uint64_t atrace_get_enabled_tags(void)
{
    return trace_internal_atrace_enabled(ATRACE_TAG_VALID_MASK);
}

// Does nothing: the first marker finds out what is recorded.
static inline void atrace_init(void) {}

// Begins a section of the tag on the calling thread. A null name begins none.
static inline void atrace_begin(uint64_t tag, const char* name)
{
    trace_internal_atrace_begin(tag, name);
}

// Ends the innermost section of the calling thread.
static inline void atrace_end(uint64_t tag)
{
    trace_internal_atrace_end(tag);
}

// Begins a section that may end on another thread.
static inline void atrace_async_begin(uint64_t tag, const char* name, int32_t cookie)
{
    trace_internal_atrace_async_begin(tag, name, cookie);
}

// Ends the section of the same name and cookie.
static inline void atrace_async_end(uint64_t tag, const char* name, int32_t cookie)
{
    trace_internal_atrace_async_end(tag, name, cookie);
}

// Marks an instant on the calling thread.
static inline void atrace_instant(uint64_t tag, const char* name)
{
    trace_internal_atrace_instant(tag, name);
}

// Gives a counter of this process a value.
static inline void atrace_int(uint64_t tag, const char* name, int32_t value)
{
    trace_internal_atrace_counter(tag, name, value);
}

static inline void atrace_int64(uint64_t tag, const char* name, int64_t value)
{
    trace_internal_atrace_counter(tag, name, value);
}

#define ATRACE_INIT() atrace_init()
#define ATRACE_GET_ENABLED_TAGS() atrace_get_enabled_tags()
#define ATRACE_ENABLED() atrace_is_tag_enabled(ATRACE_TAG)
#define ATRACE_BEGIN(name) atrace_begin(ATRACE_TAG, name)
#define ATRACE_END() atrace_end(ATRACE_TAG)
#define ATRACE_ASYNC_BEGIN(name, cookie) atrace_async_begin(ATRACE_TAG, name, cookie)
#define ATRACE_ASYNC_END(name, cookie) atrace_async_end(ATRACE_TAG, name, cookie)
#define ATRACE_INSTANT(name) atrace_instant(ATRACE_TAG, name)
#define ATRACE_INT(name, value) atrace_int(ATRACE_TAG, name, value)
#define ATRACE_INT64(name, value) atrace_int64(ATRACE_TAG, name, value)

#ifdef __cplusplus
}
#endif
