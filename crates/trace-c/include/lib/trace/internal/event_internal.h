// What the macros of event.h are made of. `n` is a number of pairs; what is behind it ends in `~` (see
// pairs_internal.h).
#ifndef LIB_TRACE_INTERNAL_EVENT_INTERNAL_H_
#define LIB_TRACE_INTERNAL_EVENT_INTERNAL_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/instrumentation.h>
#include <lib/trace/internal/pairs_internal.h>
#include <lib/trace/internal/write.h>
#ifdef __cplusplus
#include <lib/trace/internal/values.h>
#else
#include <lib/trace/internal/arity.h>
#endif

// Which texts of a site are constants of the program. A private recording has only these. In the initializer
// of a static, the compiler recognizes literals even without optimization.
#define TRACE_INTERNAL_MARKS(n, category, name, ...)                                                                  \
  (TRACE_INTERNAL_MARKED | (__builtin_constant_p(category) ? TRACE_INTERNAL_CONSTANT_CATEGORY : 0) |                  \
   (__builtin_constant_p(name) ? TRACE_INTERNAL_CONSTANT_NAME : 0) |                                                  \
   (TRACE_INTERNAL_CONSTANT_NAMES_##n(__VA_ARGS__) ? TRACE_INTERNAL_CONSTANT_ARGS : 0))

// The static of a call site, and memory for the names of its arguments.
#define TRACE_INTERNAL_SITE(n, site, storage, category, name, ...)                                                    \
  static trace_internal_site_t site = {TRACE_INTERNAL_ON | TRACE_INTERNAL_NEW,                                        \
                                       NULL,                                                                          \
                                       TRACE_INTERNAL_MARKS(n, category, name, __VA_ARGS__),                          \
                                       NULL,                                                                          \
                                       0,                                                                             \
                                       NULL,                                                                          \
                                       0,                                                                             \
                                       NULL};                                                                         \
  static trace_internal_arg_name_t storage[n + 1]

// Leaves a note of the category of a site, if it is a literal, by which the library knows it before the site
// is passed: 8 bytes with an instruction that loads the address and never runs. The note is of the function's
// group, if that has one: the linker keeps or drops both. See docs/c.md#known-categories.
#if defined(__x86_64__) && !defined(__code_model_large__)
#define TRACE_INTERNAL_NOTE(category)                                                                                 \
  do {                                                                                                                \
    if (__builtin_constant_p(category)) {                                                                             \
      __asm__ volatile(                                                                                               \
          ".pushsection .note.trace_categories, \"a?\", @note\n"                                                      \
          ".balign 4\n"                                                                                               \
          ".long 8, 8, 1\n"                                                                                           \
          ".ascii \"tracect\\0\"\n"                                                                                   \
          ".Ltrace_category_%=: {lea %0, %%rax|lea rax, %0}\n"                                                        \
          ".skip 8 - (. - .Ltrace_category_%=), 0\n"                                                                  \
          ".popsection"                                                                                               \
          :                                                                                                           \
          : "m"((category)[0]));                                                                                      \
    }                                                                                                                 \
  } while (0)
#else
#define TRACE_INTERNAL_NOTE(category) ((void)0)
#endif

// Sets `is_on` to whether the events of a site are recorded now, if it is new: then it has to enlist first.
// `word` is the site's.
#define TRACE_INTERNAL_CHECK(n, is_on, word, site, storage, category, name, ...)                                            \
  do {                                                                                                                \
    if (__builtin_expect(((word) & TRACE_INTERNAL_NEW) != 0, 0)) {                                                    \
      TRACE_INTERNAL_NOTE(category);                                                                                  \
      const char* const trace_internal_names__[] = {TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""};                        \
      const trace_internal_call_t trace_internal_call__ =                                                             \
          trace_internal_make_cold_call(&site, (category), (name), trace_internal_names__, storage);                  \
      is_on = trace_internal_is_on(&trace_internal_call__, n);                                                        \
    }                                                                                                                 \
  } while (0)

// Whether the strings of a call are those that the site has listed: literals are.
#define TRACE_INTERNAL_IS_SAME_SITE(n, site, storage, category_text, category_value, name_text, name_value, ...)      \
  (TRACE_INTERNAL_IS_SAME((site).category, category_text, category_value) &&                                          \
   TRACE_INTERNAL_IS_SAME((site).name, name_text, name_value) && TRACE_INTERNAL_SAME_NAMES_##n(storage, __VA_ARGS__))

// Writes an event whose values are held as `values`.
#define TRACE_INTERNAL_WRITE(n, is_fast, site, storage, event, values, category_text, name_text, ...)                 \
  do {                                                                                                                \
    const char* const trace_internal_category__ = (category_text);                                                    \
    const char* const trace_internal_name__ = (name_text);                                                            \
    if (!((is_fast) &&                                                                                                \
          TRACE_INTERNAL_IS_SAME_SITE(n, site, storage, category_text, trace_internal_category__, name_text,          \
                                      trace_internal_name__, __VA_ARGS__) &&                                          \
          TRACE_INTERNAL_TRY(n, site, storage, event, values))) {                                                     \
      const char* const trace_internal_names__[] = {TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""};                        \
      const trace_internal_call_t trace_internal_call__ = trace_internal_make_cold_call(                              \
          &site, trace_internal_category__, trace_internal_name__, trace_internal_names__, storage);                  \
      TRACE_INTERNAL_WRITE_SLOWLY(n, trace_internal_call__, event, values);                                           \
    }                                                                                                                 \
  } while (0)

#ifdef __cplusplus

#define TRACE_INTERNAL_HOLD(values, ...) const auto values = ::trace::internal::Hold(0 __VA_ARGS__)
#define TRACE_INTERNAL_TRY(n, site, storage, event, values) values.Try(&site, storage, event)
#define TRACE_INTERNAL_WRITE_SLOWLY(n, call, event, values) values.Write(call, event)
#define TRACE_INTERNAL_FILL(n, array, values) \
  trace_arg_value_t array[n + 1];              \
  values.Fill(array)
#define TRACE_INTERNAL_SCOPE(n, scope, is_on, word, is_same, call, names, ...)                                        \
  const auto scope = is_on ? ::trace::internal::Scope(word, call, is_same, ::trace::internal::Names<n>{{names ""}},         \
                                                      ::trace::internal::Hold(0 __VA_ARGS__))                         \
                           : ::trace::internal::Off()

#else

#define TRACE_INTERNAL_HOLD(values, ...) const trace_arg_value_t values[] = {{TRACE_ARG_NULL, {0}} __VA_ARGS__}
#define TRACE_INTERNAL_TRY(n, site, storage, event, values) trace_internal_try_##n(&site, storage, &event, values + 1)
#define TRACE_INTERNAL_WRITE_SLOWLY(n, call, event, values) trace_internal_write_##n(&call, &event, values + 1)
#define TRACE_INTERNAL_FILL(n, array, values) const trace_arg_value_t* array = values + 1
#define TRACE_INTERNAL_SCOPE(n, scope, is_on, word, is_same_, call_, names_, ...)                                         \
  __attribute__((__cleanup__(trace_internal_end_##n), __unused__)) trace_internal_scope_##n##_t scope =               \
      is_on ? (trace_internal_scope_##n##_t){call_,                                                                   \
                                             is_same_,                                                                \
                                             trace_internal_begin_now(word, is_same_, call_),                         \
                                             {names_ ""},                                                             \
                                             {{TRACE_ARG_NULL, {0}} __VA_ARGS__}}                                     \
            : (trace_internal_scope_##n##_t){{NULL, NULL, NULL, NULL, NULL, NULL}, false, {0, 0}, {NULL}, {{TRACE_ARG_NULL, {0}}}}

#endif

// One event, if its site is on. `body` has `trace_internal_site__`, `trace_internal_storage__` and
// `trace_internal_values__`.
#define TRACE_INTERNAL_IF_ON(n, body, category, name, ...)                                                            \
  do {                                                                                                                \
    TRACE_INTERNAL_SITE(n, trace_internal_site__, trace_internal_storage__, category, name, __VA_ARGS__);             \
    const uint64_t trace_internal_word__ = trace_internal_load(&trace_internal_site__.word);                          \
    if (__builtin_expect((trace_internal_word__ & TRACE_INTERNAL_ON) != 0, 0)) {                                      \
      bool trace_internal_is_on__ = true;                                                                             \
      if (!(trace_internal_word__ & TRACE_INTERNAL_FAST)) {                                                           \
        TRACE_INTERNAL_CHECK(n, trace_internal_is_on__, trace_internal_load(&trace_internal_site__.word),             \
                             trace_internal_site__, trace_internal_storage__, category, name, __VA_ARGS__);           \
      }                                                                                                               \
      if (trace_internal_is_on__) {                                                                                   \
        TRACE_INTERNAL_HOLD(trace_internal_values__, TRACE_INTERNAL_VALUES_##n(__VA_ARGS__));                         \
        body;                                                                                                         \
      }                                                                                                               \
    }                                                                                                                 \
  } while (0)

#define TRACE_INTERNAL_EVENT(n, event, category, name, ...)                                                           \
  TRACE_INTERNAL_IF_ON(n,                                                                                             \
                       const trace_internal_event_t trace_internal_event__ = event;                                   \
                       TRACE_INTERNAL_WRITE(n, (trace_internal_word__ & TRACE_INTERNAL_FAST) != 0,                    \
                                            trace_internal_site__, trace_internal_storage__, trace_internal_event__,  \
                                            trace_internal_values__, category, name,          \
                                            __VA_ARGS__),                                                             \
                       category, name, __VA_ARGS__)

// One event of what is not on the hot path: `function` has the call, what is in `arguments`, the number of
// values, and these.
#define TRACE_INTERNAL_RARE(n, function, arguments, category, name, ...)                                              \
  TRACE_INTERNAL_IF_ON(                                                                                               \
      n,                                                                                                              \
      const char* const trace_internal_names__[] = {TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""};                        \
      const trace_internal_call_t trace_internal_call__ = trace_internal_make_call(                                   \
          &trace_internal_site__, (category), (name), trace_internal_names__, trace_internal_storage__);              \
      TRACE_INTERNAL_FILL(n, trace_internal_array__, trace_internal_values__);                                        \
      function(&trace_internal_call__, TRACE_INTERNAL_UNPACK arguments, trace_internal_array__),                      \
      category, name, __VA_ARGS__)
#define TRACE_INTERNAL_UNPACK(...) __VA_ARGS__

// The rest of the enclosing block.
#define TRACE_INTERNAL_DURATION(n, id, category, name, ...)                                                           \
  TRACE_INTERNAL_DURATION_(n, TRACE_INTERNAL_CAT(trace_internal_site_, id),                                           \
                           TRACE_INTERNAL_CAT(trace_internal_storage_, id),                                           \
                           TRACE_INTERNAL_CAT(trace_internal_is_on_, id),                                             \
                           TRACE_INTERNAL_CAT(trace_internal_scope_, id), category, name, __VA_ARGS__)
#define TRACE_INTERNAL_DURATION_(n, site_, storage, is_on, scope, category_, name_, ...)                              \
  TRACE_INTERNAL_SITE(n, site_, storage, category_, name_, __VA_ARGS__);                                              \
  const uint64_t TRACE_INTERNAL_CAT(is_on, word) = trace_internal_load(&site_.word);                                  \
  bool is_on = __builtin_expect((TRACE_INTERNAL_CAT(is_on, word) & TRACE_INTERNAL_ON) != 0, 0);                       \
  TRACE_INTERNAL_CHECK(n, is_on, TRACE_INTERNAL_CAT(is_on, word), site_, storage, category_, name_, __VA_ARGS__);     \
  TRACE_INTERNAL_SCOPE(n, scope, is_on, TRACE_INTERNAL_CAT(is_on, word),                                              \
                       TRACE_INTERNAL_IS_SAME_SITE(n, site_, storage, category_, category_, name_, name_, __VA_ARGS__), \
                       trace_internal_make_call(&site_, (category_), (name_), NULL, storage),                         \
                       TRACE_INTERNAL_NAMES_##n(__VA_ARGS__), TRACE_INTERNAL_VALUES_##n(__VA_ARGS__))

// A flow in a duration of its own: three events at one moment.
#define TRACE_INTERNAL_INSTAFLOW(n, type, category, flow_name, step_name, flow_id, ...)                               \
  do {                                                                                                                \
    TRACE_INTERNAL_SITE(n, trace_internal_step__, trace_internal_step_names__, category, step_name, __VA_ARGS__);     \
    TRACE_INTERNAL_SITE(n, trace_internal_flow__, trace_internal_flow_names__, category, flow_name, __VA_ARGS__);     \
    const uint64_t trace_internal_word__ = trace_internal_load(&trace_internal_step__.word);                          \
    bool trace_internal_is_on__ = (trace_internal_word__ & TRACE_INTERNAL_ON) != 0;                                   \
    TRACE_INTERNAL_CHECK(n, trace_internal_is_on__, trace_internal_word__, trace_internal_step__, trace_internal_step_names__, category,     \
                         step_name, __VA_ARGS__);                                                                     \
    if (trace_internal_is_on__) {                                                                                     \
      const uint64_t trace_internal_id__ = (flow_id);                                                                 \
      TRACE_INTERNAL_HOLD(trace_internal_values__, TRACE_INTERNAL_VALUES_##n(__VA_ARGS__));                           \
      const uint64_t trace_internal_time__ = trace_internal_now(trace_internal_load(&trace_internal_step__.word));                              \
      const trace_internal_event_t trace_internal_begin__ =                                                           \
          trace_internal_make_event_at(trace_internal_make_event(TRACE_INTERNAL_DURATION_BEGIN), trace_internal_time__); \
      const trace_internal_event_t trace_internal_middle__ = trace_internal_make_event_at(                            \
          trace_internal_make_event_with(type, trace_internal_id__), trace_internal_time__);                          \
      const trace_internal_event_t trace_internal_end__ =                                                             \
          trace_internal_make_event_at(trace_internal_make_event(TRACE_INTERNAL_DURATION_END), trace_internal_time__);  \
      TRACE_INTERNAL_WRITE(n, trace_internal_site_is_fast(&trace_internal_step__), trace_internal_step__, trace_internal_step_names__, trace_internal_begin__,             \
                           trace_internal_values__, category, step_name, __VA_ARGS__);                                \
      TRACE_INTERNAL_WRITE(n, trace_internal_site_is_fast(&trace_internal_flow__), trace_internal_flow__, trace_internal_flow_names__, trace_internal_middle__,            \
                           trace_internal_values__, category, flow_name, __VA_ARGS__);                                \
      TRACE_INTERNAL_WRITE(n, trace_internal_site_is_fast(&trace_internal_step__), trace_internal_step__, trace_internal_step_names__, trace_internal_end__,               \
                           trace_internal_values__, category, step_name, __VA_ARGS__);                                \
    }                                                                                                                 \
  } while (0)

__BEGIN_CDECLS

// What is not on the hot path. Values come last in the arguments.
void trace_internal_write_blob_event(const trace_internal_call_t* call, const void* blob, size_t blob_size,
                                     size_t num_values, const trace_arg_value_t* values);
void trace_internal_write_blob_attachment(const trace_internal_call_t* call, const void* blob, size_t blob_size,
                                          size_t num_values, const trace_arg_value_t* values);
void trace_internal_send_alert(const trace_internal_call_t* call, size_t num_values, const trace_arg_value_t* values);
void trace_internal_write_vthread_event(const trace_internal_call_t* call, const char* vthread_name,
                                        trace_vthread_id_t vthread_id, uint32_t type, bool has_extra, uint64_t extra,
                                        trace_ticks_t timestamp, size_t num_values, const trace_arg_value_t* values);
// Without a category: whenever a trace runs.
void trace_internal_write_blob(trace_blob_type_t type, const char* name, const void* blob, size_t blob_size);
void trace_internal_write_kernel_object(zx_handle_t handle, const char* const* names, size_t num_values,
                                        const trace_arg_value_t* values);
// trace_generate_nonce() with the thread's lowest bits in it.
uint64_t trace_internal_time_based_id(void);

// For NTRACE: takes anything and does nothing.
TRACE_INTERNAL_INLINE void trace_internal_ignore(const void* something) { (void)something; }

__END_CDECLS

#endif  // LIB_TRACE_INTERNAL_EVENT_INTERNAL_H_
