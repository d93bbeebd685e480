// The marker functions of Android's NDK. Markers are written to the kernel's trace_marker, and are recorded
// with the category `atrace:app`, which `atrace` includes; <cutils/trace.h> has other tags. Each call is a
// system call while they are wanted: in a program that has a provider, while it takes part in a recording
// with that category; in another one, while a manager that the program finds records them, for which it looks
// at most once a second. Otherwise a call costs some loads, and without a provider a reading of the clock.
// All markers are written where TRACE_MARKERS=always is set, which other software that records them needs.
// If the kernel's file cannot be opened, they do nothing.
#pragma once

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Whether markers are written: true if they are wanted, and the kernel's file could be opened.
bool ATrace_isEnabled(void);

// Begins a section on the calling thread.
void ATrace_beginSection(const char* name);

// Ends the innermost section of the calling thread.
void ATrace_endSection(void);

// Begins a section that may end on another thread.
void ATrace_beginAsyncSection(const char* name, int32_t cookie);

// Ends the section of the same name and cookie.
void ATrace_endAsyncSection(const char* name, int32_t cookie);

// Gives a counter of this process a value.
void ATrace_setCounter(const char* name, int64_t value);

#ifdef __cplusplus
}
#endif
