// The macros of events.
//
// Category and name are literals, or other strings that stay where they are. `args` are up to 15 pairs of
// name and value (see event_args.h), which are evaluated only while the category is recorded. With NTRACE
// defined nothing is. A private recording has categories and names only of literals.
#ifndef LIB_TRACE_INTERNAL_EVENT_COMMON_H_
#define LIB_TRACE_INTERNAL_EVENT_COMMON_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <assert.h>

#include <lib/trace/event_args.h>
#include <lib/trace/internal/event_internal.h>

// A number that is not 0 and that no other process of this machine is likely to get.
#define TRACE_NONCE() (trace_generate_nonce())

#ifndef NTRACE

// Whether a trace is being recorded.
#define TRACE_ENABLED() (trace_is_enabled())

// Whether events of a category are recorded now.
#define TRACE_CATEGORY_ENABLED(category_literal)                                                                      \
  (__extension__({                                                                                                    \
    TRACE_INTERNAL_SITE(0, trace_internal_site__, trace_internal_storage__, category_literal, "", ~);                 \
    const uint64_t trace_internal_word__ = trace_internal_load(&trace_internal_site__.word);                          \
    bool trace_internal_is_on__ = (trace_internal_word__ & TRACE_INTERNAL_ON) != 0;                                   \
    TRACE_INTERNAL_CHECK(0, trace_internal_is_on__, trace_internal_word__, trace_internal_site__, trace_internal_storage__,                  \
                         category_literal, "", ~);                                                                    \
    trace_internal_is_on__;                                                                                           \
  }))

// What a number is that was made of the time.
#define TRACE_TIME_BASED_ID() (trace_internal_time_based_id())

// A moment. What it concerns: TRACE_SCOPE_THREAD, TRACE_SCOPE_PROCESS or TRACE_SCOPE_GLOBAL.
// TRACE_INSTANT(category_literal, name_literal, scope, args...)
#define TRACE_INSTANT(...) TRACE_INTERNAL_TRACE_INSTANT(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTANT(n, category_literal, name_literal, scope, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_instant(scope), category_literal, name_literal, __VA_ARGS__)

// Samples, one for each argument, of which there is at least one. The id distinguishes instances of one
// counter. TRACE_COUNTER(category_literal, name_literal, counter_id, args...)
#define TRACE_COUNTER(...) TRACE_INTERNAL_TRACE_COUNTER(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_COUNTER(n, category_literal, name_literal, counter_id, ...) \
  do {                                                                                             \
    static_assert(n > 0, "a counter has at least one value");                                      \
    TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_COUNTER, (counter_id)), category_literal, name_literal, __VA_ARGS__); \
  } while (0)

// The beginning of a duration on this thread, for what is no block.
// TRACE_DURATION_BEGIN(category_literal, name_literal, args...)
#define TRACE_DURATION_BEGIN(...) TRACE_INTERNAL_TRACE_DURATION_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_DURATION_BEGIN(n, category_literal, name_literal, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event(TRACE_INTERNAL_DURATION_BEGIN), category_literal, name_literal, __VA_ARGS__)

// The end of the innermost duration begun on this thread.
// TRACE_DURATION_END(category_literal, name_literal, args...)
#define TRACE_DURATION_END(...) TRACE_INTERNAL_TRACE_DURATION_END(TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_DURATION_END(n, category_literal, name_literal, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event(TRACE_INTERNAL_DURATION_END), category_literal, name_literal, __VA_ARGS__)

// The beginning of an operation that may cross threads. Its parts share category, name and id.
// TRACE_ASYNC_BEGIN(category_literal, name_literal, async_id, args...)
#define TRACE_ASYNC_BEGIN(...) TRACE_INTERNAL_TRACE_ASYNC_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_ASYNC_BEGIN(n, category_literal, name_literal, async_id, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_ASYNC_BEGIN, (async_id)), category_literal, name_literal, __VA_ARGS__)

// A moment of an operation that may cross threads.
// TRACE_ASYNC_INSTANT(category_literal, name_literal, async_id, args...)
#define TRACE_ASYNC_INSTANT(...) TRACE_INTERNAL_TRACE_ASYNC_INSTANT(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_ASYNC_INSTANT(n, category_literal, name_literal, async_id, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_ASYNC_INSTANT, (async_id)), category_literal, name_literal, __VA_ARGS__)

// The end of an operation that may cross threads.
// TRACE_ASYNC_END(category_literal, name_literal, async_id, args...)
#define TRACE_ASYNC_END(...) TRACE_INTERNAL_TRACE_ASYNC_END(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_ASYNC_END(n, category_literal, name_literal, async_id, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_ASYNC_END, (async_id)), category_literal, name_literal, __VA_ARGS__)

// The beginning of a flow, in the enclosing duration.
// TRACE_FLOW_BEGIN(category_literal, name_literal, flow_id, args...)
#define TRACE_FLOW_BEGIN(...) TRACE_INTERNAL_TRACE_FLOW_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_FLOW_BEGIN(n, category_literal, name_literal, flow_id, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_FLOW_BEGIN, (flow_id)), category_literal, name_literal, __VA_ARGS__)

// A flow passes through the enclosing duration.
// TRACE_FLOW_STEP(category_literal, name_literal, flow_id, args...)
#define TRACE_FLOW_STEP(...) TRACE_INTERNAL_TRACE_FLOW_STEP(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_FLOW_STEP(n, category_literal, name_literal, flow_id, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_FLOW_STEP, (flow_id)), category_literal, name_literal, __VA_ARGS__)

// The end of a flow, in the enclosing duration.
// TRACE_FLOW_END(category_literal, name_literal, flow_id, args...)
#define TRACE_FLOW_END(...) TRACE_INTERNAL_TRACE_FLOW_END(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_FLOW_END(n, category_literal, name_literal, flow_id, ...) \
  TRACE_INTERNAL_EVENT(n, trace_internal_make_event_with(TRACE_INTERNAL_FLOW_END, (flow_id)), category_literal, name_literal, __VA_ARGS__)

// The rest of the enclosing block, as one record that is written at its end. It declares variables, so it
// cannot be the only statement of an `if`. Strings among its arguments have to live until the end of the
// block. TRACE_DURATION(category_literal, name_literal, args...)
#define TRACE_DURATION(...) TRACE_INTERNAL_TRACE_DURATION(TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_DURATION(n, category_literal, name_literal, ...) \
  TRACE_INTERNAL_DURATION(n, __COUNTER__, category_literal, name_literal, __VA_ARGS__)

// The beginning of a flow in a duration of its own, which has the name of the step; all at one moment.
// TRACE_INSTAFLOW_BEGIN(category_literal, flow_name_literal, step_name_literal, flow_id, args...)
#define TRACE_INSTAFLOW_BEGIN(...) TRACE_INTERNAL_TRACE_INSTAFLOW_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTAFLOW_BEGIN(n, category_literal, flow_name_literal, step_name_literal, flow_id, ...) \
  TRACE_INTERNAL_INSTAFLOW(n, TRACE_INTERNAL_FLOW_BEGIN, category_literal, flow_name_literal, step_name_literal, flow_id, __VA_ARGS__)

// A step of a flow in a duration of its own, which has the name of the step; all at one moment.
// TRACE_INSTAFLOW_STEP(category_literal, flow_name_literal, step_name_literal, flow_id, args...)
#define TRACE_INSTAFLOW_STEP(...) TRACE_INTERNAL_TRACE_INSTAFLOW_STEP(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTAFLOW_STEP(n, category_literal, flow_name_literal, step_name_literal, flow_id, ...) \
  TRACE_INTERNAL_INSTAFLOW(n, TRACE_INTERNAL_FLOW_STEP, category_literal, flow_name_literal, step_name_literal, flow_id, __VA_ARGS__)

// The end of a flow in a duration of its own, which has the name of the step; all at one moment.
// TRACE_INSTAFLOW_END(category_literal, flow_name_literal, step_name_literal, flow_id, args...)
#define TRACE_INSTAFLOW_END(...) TRACE_INTERNAL_TRACE_INSTAFLOW_END(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTAFLOW_END(n, category_literal, flow_name_literal, step_name_literal, flow_id, ...) \
  TRACE_INTERNAL_INSTAFLOW(n, TRACE_INTERNAL_FLOW_END, category_literal, flow_name_literal, step_name_literal, flow_id, __VA_ARGS__)

// Bytes with a time, a thread and arguments. The whole record has at most 256 KiB.
// TRACE_BLOB_EVENT(category_literal, name_literal, blob, blob_size, args...)
#define TRACE_BLOB_EVENT(...) \
  TRACE_INTERNAL_TRACE_BLOB_EVENT(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_BLOB_EVENT(n, category_literal, name_literal, blob, blob_size, ...)                       \
  TRACE_INTERNAL_RARE(n, trace_internal_write_blob_event, ((blob), (blob_size), n), category_literal, name_literal,   \
                      __VA_ARGS__)

// Bytes without time, thread and arguments.
#define TRACE_BLOB_ATTACHMENT(category_literal, name_literal, blob, blob_size)                                        \
  TRACE_INTERNAL_RARE(0, trace_internal_write_blob_attachment, ((blob), (blob_size), 0), category_literal,            \
                      name_literal, ~)

// Bytes of a type (trace_blob_type_t), of at most TRACE_MAX_BLOB_SIZE, regardless of categories.
// Readers join blobs of the same name.
#define TRACE_BLOB(type, name, blob, blob_size)                              \
  do {                                                                       \
    if (trace_is_enabled()) {                                                \
      trace_internal_write_blob((type), (name), (blob), (blob_size));        \
    }                                                                        \
  } while (0)

// Records which object a handle refers to, regardless of categories.
// TRACE_KERNEL_OBJECT(handle, args...)
#define TRACE_KERNEL_OBJECT(...) \
  TRACE_INTERNAL_TRACE_KERNEL_OBJECT(TRACE_INTERNAL_PAIRS_BEHIND_1(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_KERNEL_OBJECT(n, handle, ...) TRACE_INTERNAL_KERNEL_OBJECT(n, handle, __VA_ARGS__)
#define TRACE_INTERNAL_KERNEL_OBJECT(n, handle, ...)                                                                  \
  do {                                                                                                                \
    if (trace_is_enabled()) {                                                                                         \
      const char* const trace_internal_names__[] = {TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""};                        \
      TRACE_INTERNAL_HOLD(trace_internal_values__, TRACE_INTERNAL_VALUES_##n(__VA_ARGS__));                           \
      TRACE_INTERNAL_FILL(n, trace_internal_array__, trace_internal_values__);                                        \
      trace_internal_write_kernel_object((handle), trace_internal_names__, n, trace_internal_array__);                \
    }                                                                                                                 \
  } while (0)

// Sends an alert to the trace manager, past the buffer: a recording may stop or be saved at it. The name has
// at most 14 bytes.
#define TRACE_ALERT(category_literal, alert_name) \
  TRACE_INTERNAL_RARE(0, trace_internal_send_alert, (0), category_literal, alert_name, ~)
#define TRACE_TRIGGER(category_literal, trigger_name) TRACE_ALERT(category_literal, trigger_name)

#else  // NTRACE

#define TRACE_ENABLED() (false)
#define TRACE_CATEGORY_ENABLED(category_literal) ((void)(category_literal), false)
#define TRACE_TIME_BASED_ID() ((uint64_t)0)

#define TRACE_INSTANT(...) TRACE_INTERNAL_TRACE_INSTANT(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTANT(n, category_literal, name_literal, scope, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, scope, category_literal, name_literal, __VA_ARGS__)

#define TRACE_COUNTER(...) TRACE_INTERNAL_TRACE_COUNTER(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_COUNTER(n, category_literal, name_literal, counter_id, ...) \
  do {                                                                                             \
    static_assert(n > 0, "a counter has at least one value");                                      \
    TRACE_INTERNAL_DEAD_EVENT(n, counter_id, category_literal, name_literal, __VA_ARGS__); \
  } while (0)

#define TRACE_DURATION_BEGIN(...) TRACE_INTERNAL_TRACE_DURATION_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_DURATION_BEGIN(n, category_literal, name_literal, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, 0, category_literal, name_literal, __VA_ARGS__)

#define TRACE_DURATION_END(...) TRACE_INTERNAL_TRACE_DURATION_END(TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_DURATION_END(n, category_literal, name_literal, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, 0, category_literal, name_literal, __VA_ARGS__)

#define TRACE_ASYNC_BEGIN(...) TRACE_INTERNAL_TRACE_ASYNC_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_ASYNC_BEGIN(n, category_literal, name_literal, async_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, async_id, category_literal, name_literal, __VA_ARGS__)

#define TRACE_ASYNC_INSTANT(...) TRACE_INTERNAL_TRACE_ASYNC_INSTANT(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_ASYNC_INSTANT(n, category_literal, name_literal, async_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, async_id, category_literal, name_literal, __VA_ARGS__)

#define TRACE_ASYNC_END(...) TRACE_INTERNAL_TRACE_ASYNC_END(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_ASYNC_END(n, category_literal, name_literal, async_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, async_id, category_literal, name_literal, __VA_ARGS__)

#define TRACE_FLOW_BEGIN(...) TRACE_INTERNAL_TRACE_FLOW_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_FLOW_BEGIN(n, category_literal, name_literal, flow_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, flow_id, category_literal, name_literal, __VA_ARGS__)

#define TRACE_FLOW_STEP(...) TRACE_INTERNAL_TRACE_FLOW_STEP(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_FLOW_STEP(n, category_literal, name_literal, flow_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, flow_id, category_literal, name_literal, __VA_ARGS__)

#define TRACE_FLOW_END(...) TRACE_INTERNAL_TRACE_FLOW_END(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_FLOW_END(n, category_literal, name_literal, flow_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, flow_id, category_literal, name_literal, __VA_ARGS__)

#define TRACE_DURATION(...) TRACE_DURATION_BEGIN(__VA_ARGS__)

#define TRACE_INSTAFLOW_BEGIN(...) TRACE_INTERNAL_TRACE_INSTAFLOW_BEGIN(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTAFLOW_BEGIN(n, category_literal, flow_name_literal, step_name_literal, flow_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, flow_id, category_literal, flow_name_literal, __VA_ARGS__)

#define TRACE_INSTAFLOW_STEP(...) TRACE_INTERNAL_TRACE_INSTAFLOW_STEP(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTAFLOW_STEP(n, category_literal, flow_name_literal, step_name_literal, flow_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, flow_id, category_literal, flow_name_literal, __VA_ARGS__)

#define TRACE_INSTAFLOW_END(...) TRACE_INTERNAL_TRACE_INSTAFLOW_END(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_INSTAFLOW_END(n, category_literal, flow_name_literal, step_name_literal, flow_id, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, flow_id, category_literal, flow_name_literal, __VA_ARGS__)

#define TRACE_BLOB_EVENT(...) \
  TRACE_INTERNAL_TRACE_BLOB_EVENT(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_BLOB_EVENT(n, category_literal, name_literal, blob, blob_size, ...)            \
  do {                                                                                                      \
    TRACE_INTERNAL_DEAD_EVENT(n, blob_size, category_literal, name_literal, __VA_ARGS__);                   \
    if (0) {                                                                                                \
      trace_internal_ignore(blob);                                                                          \
    }                                                                                                       \
  } while (0)
#define TRACE_BLOB_ATTACHMENT(category_literal, name_literal, blob, blob_size) \
  TRACE_BLOB_EVENT(category_literal, name_literal, blob, blob_size)
#define TRACE_BLOB(type, name, blob, blob_size) \
  do {                                          \
    if (0) {                                    \
      (void)(type);                             \
      trace_internal_ignore(name);              \
      trace_internal_ignore(blob);              \
      (void)(blob_size);                        \
    }                                           \
  } while (0)
#define TRACE_KERNEL_OBJECT(...) \
  TRACE_INTERNAL_TRACE_KERNEL_OBJECT(TRACE_INTERNAL_PAIRS_BEHIND_1(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_TRACE_KERNEL_OBJECT(n, handle, ...) TRACE_INTERNAL_DEAD_EVENT(n, handle, "", "", __VA_ARGS__)
#define TRACE_ALERT(category_literal, alert_name) ((void)(category_literal), (void)(alert_name), false)
#define TRACE_TRIGGER(category_literal, trigger_name) TRACE_ALERT(category_literal, trigger_name)

// Checked by the compiler, never evaluated.
#define TRACE_INTERNAL_DEAD_EVENT(n, extra, category, name, ...)                                            \
  do {                                                                                                      \
    if (0) {                                                                                                \
      const char* const trace_internal_names__[] = {(category), (name), TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""}; \
      TRACE_INTERNAL_HOLD(trace_internal_values__, TRACE_INTERNAL_VALUES_##n(__VA_ARGS__));                 \
      const uint64_t trace_internal_extra__ = (extra);                                                      \
      (void)trace_internal_extra__;                                                                         \
      trace_internal_ignore(trace_internal_names__);                                                        \
      trace_internal_ignore(&trace_internal_values__);                                                      \
    }                                                                                                       \
  } while (0)

#endif  // NTRACE

#endif  // LIB_TRACE_INTERNAL_EVENT_COMMON_H_
