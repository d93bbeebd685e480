// Events of virtual threads: separate rows of a trace, for events that belong to no thread in particular,
// such as those of a hardware queue. The caller passes the time, from zx_ticks_get().
#ifndef TRACE_VTHREAD_EVENT_VTHREAD_H_
#define TRACE_VTHREAD_EVENT_VTHREAD_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace/event.h>

#ifdef NTRACE
#define TRACE_INTERNAL_VTHREAD(n, type, has_extra, extra, category_literal, name_literal, vthread_literal, vthread_id, \
                               timestamp, ...)                                                                       \
  do {                                                                                                               \
    TRACE_INTERNAL_DEAD_EVENT(n, extra, category_literal, name_literal, __VA_ARGS__);                                \
    if (0) {                                                                                                         \
      trace_internal_ignore(vthread_literal);                                                                        \
      (void)(vthread_id);                                                                                            \
      (void)(timestamp);                                                                                             \
    }                                                                                                                \
  } while (0)
#else
#define TRACE_INTERNAL_VTHREAD(n, type, has_extra, extra, category_literal, name_literal, vthread_literal, vthread_id, \
                               timestamp, ...)                                                                       \
  TRACE_INTERNAL_RARE(n, trace_internal_write_vthread_event,                                                         \
                      ((vthread_literal), (vthread_id), type, has_extra, (extra), (timestamp), n), category_literal, \
                      name_literal, __VA_ARGS__)
#endif

// TRACE_VTHREAD_DURATION_BEGIN(category_literal, name_literal, vthread_literal, vthread_id, timestamp,
// args...), and _END
#define TRACE_VTHREAD_DURATION_BEGIN(...) \
  TRACE_INTERNAL_VTHREAD_PLAIN(TRACE_INTERNAL_PAIRS_BEHIND_5(__VA_ARGS__), TRACE_INTERNAL_DURATION_BEGIN, __VA_ARGS__, ~)
#define TRACE_VTHREAD_DURATION_END(...) \
  TRACE_INTERNAL_VTHREAD_PLAIN(TRACE_INTERNAL_PAIRS_BEHIND_5(__VA_ARGS__), TRACE_INTERNAL_DURATION_END, __VA_ARGS__, ~)
#define TRACE_INTERNAL_VTHREAD_PLAIN(n, type, category_literal, name_literal, vthread_literal, vthread_id, timestamp, ...) \
  TRACE_INTERNAL_VTHREAD(n, type, false, 0, category_literal, name_literal, vthread_literal, vthread_id, timestamp, __VA_ARGS__)

// TRACE_VTHREAD_FLOW_BEGIN(category_literal, name_literal, vthread_literal, vthread_id, flow_id, timestamp,
// args...), _STEP, _END; and TRACE_VTHREAD_COUNTER with a counter id in place of the flow's
#define TRACE_VTHREAD_FLOW_BEGIN(...) \
  TRACE_INTERNAL_VTHREAD_WITH_ID(TRACE_INTERNAL_PAIRS_BEHIND_6(__VA_ARGS__), TRACE_INTERNAL_FLOW_BEGIN, __VA_ARGS__, ~)
#define TRACE_VTHREAD_FLOW_STEP(...) \
  TRACE_INTERNAL_VTHREAD_WITH_ID(TRACE_INTERNAL_PAIRS_BEHIND_6(__VA_ARGS__), TRACE_INTERNAL_FLOW_STEP, __VA_ARGS__, ~)
#define TRACE_VTHREAD_FLOW_END(...) \
  TRACE_INTERNAL_VTHREAD_WITH_ID(TRACE_INTERNAL_PAIRS_BEHIND_6(__VA_ARGS__), TRACE_INTERNAL_FLOW_END, __VA_ARGS__, ~)
#define TRACE_VTHREAD_COUNTER(...) \
  TRACE_INTERNAL_VTHREAD_WITH_ID(TRACE_INTERNAL_PAIRS_BEHIND_6(__VA_ARGS__), TRACE_INTERNAL_COUNTER, __VA_ARGS__, ~)
#define TRACE_INTERNAL_VTHREAD_WITH_ID(n, type, category_literal, name_literal, vthread_literal, vthread_id, id, timestamp, ...) \
  TRACE_INTERNAL_VTHREAD(n, type, true, id, category_literal, name_literal, vthread_literal, vthread_id, timestamp, __VA_ARGS__)

#endif  // TRACE_VTHREAD_EVENT_VTHREAD_H_
