// Trace events: include this, and write TRACE_INSTANT, TRACE_DURATION and so on.
//
// A program is recorded if it has a provider (see lib/trace-provider/provider.h). If NTRACE is defined before
// this header is included, events compile to nothing.
#ifndef LIB_TRACE_EVENT_H_
#define LIB_TRACE_EVENT_H_

#if defined(TRACE_PERFETTO_H_)
#error "<trace/perfetto.h> defines other macros of the same names as <lib/trace/event.h> and <trace/chromium.h>: include one of them in a file"
#endif

#include <lib/trace/internal/language.h>

#ifndef TRACE_INTERNAL_OLD_LANGUAGE

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <lib/trace-engine/instrumentation.h>
#include <lib/trace/event_args.h>
#include <lib/trace/internal/event_common.h>
#include <zircon/assert.h>
#include <zircon/compiler.h>
#include <zircon/syscalls.h>
#include <zircon/syscalls/object.h>
#include <zircon/types.h>

#endif  // TRACE_INTERNAL_OLD_LANGUAGE

#endif  // LIB_TRACE_EVENT_H_
