// For C: functions for each number of values, as there are no lists of types. For C++ see values.h.
#ifndef LIB_TRACE_INTERNAL_ARITY_H_
#define LIB_TRACE_INTERNAL_ARITY_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace/internal/write.h>

// For each number of values: writing an event on the fast and on the slow path, and the scope of a duration.
//
// What is handed to a function that is not inline is a copy, so that the values themselves need not be in
// memory.
#define TRACE_INTERNAL_ARITY(n, WORDS, PUT, COPY, COPY_NAMES)                                                         \
  TRACE_INTERNAL_INLINE bool trace_internal_try_##n(                                                                  \
      const trace_internal_site_t* site, const trace_internal_arg_name_t* names, const trace_internal_event_t* event, \
      const trace_arg_value_t* values) {                                                                              \
    trace_internal_record_t record;                                                                                   \
    size_t words = trace_internal_event_words(event) WORDS;                                                           \
    (void)names;                                                                                                      \
    (void)values;                                                                                                     \
    if (!trace_internal_begin(&record, site, event, words)) {                                                         \
      return false;                                                                                                   \
    }                                                                                                                 \
    trace_internal_put_time(&record, event);                                                                          \
    PUT trace_internal_put_end(&record, event);                                                                       \
    trace_internal_commit(&record, event, words, n);                                                                  \
    return true;                                                                                                      \
  }                                                                                                                   \
                                                                                                                      \
  TRACE_INTERNAL_INLINE void trace_internal_write_##n(                                                                \
      const trace_internal_call_t* call, const trace_internal_event_t* event, const trace_arg_value_t* values) {      \
    trace_arg_value_t copy[n + 1];                                                                                    \
    (void)values;                                                                                                     \
    COPY trace_internal_write_slowly(call, event, copy, n);                                                           \
  }                                                                                                                   \
                                                                                                                      \
  typedef struct trace_internal_scope_##n {                                                                           \
    trace_internal_call_t call;                                                                                       \
    bool is_same;                                                                                                     \
    trace_internal_begun_t begun;                                                                                     \
    const char* names[n + 1];                                                                                         \
    trace_arg_value_t values[n + 1];                                                                                  \
  } trace_internal_scope_##n##_t;                                                                                     \
                                                                                                                      \
  TRACE_INTERNAL_INLINE void trace_internal_end_##n(trace_internal_scope_##n##_t* scope) {                            \
    if (scope->begun.start == 0) {                                                                                    \
      return;                                                                                                         \
    }                                                                                                                 \
    const uint64_t word = trace_internal_load(&scope->call.site->word);                                               \
    if (!(word & TRACE_INTERNAL_ON)) {                                                                                \
      return;                                                                                                         \
    }                                                                                                                 \
    const trace_internal_event_t event = trace_internal_make_complete(scope->begun.start);                            \
    if (scope->is_same && (word & TRACE_INTERNAL_FAST) &&                                                             \
        trace_internal_try_##n(scope->call.site, scope->call.storage, &event, scope->values + 1)) {                   \
      trace_internal_pop_scope(scope->begun.scope);                                                                   \
    } else {                                                                                                          \
      const char* names[n + 1];                                                                                       \
      const trace_internal_call_t call = trace_internal_make_cold_call(                                               \
          scope->call.site, scope->call.category, scope->call.name, names, scope->call.storage);                      \
      COPY_NAMES                                                                                                      \
      trace_internal_write_##n(&call, &event, scope->values + 1);                                                     \
      if (trace_internal_load(&scope->call.site->word) & TRACE_INTERNAL_ON) {                                         \
        trace_internal_close_scope(scope->begun.scope);                                                               \
      }                                                                                                               \
    }                                                                                                                 \
  }

#define TRACE_INTERNAL_WORDS_0
#define TRACE_INTERNAL_WORDS_1 TRACE_INTERNAL_WORDS_0 + trace_internal_arg_words(&values[0])
#define TRACE_INTERNAL_WORDS_2 TRACE_INTERNAL_WORDS_1 + trace_internal_arg_words(&values[1])
#define TRACE_INTERNAL_WORDS_3 TRACE_INTERNAL_WORDS_2 + trace_internal_arg_words(&values[2])
#define TRACE_INTERNAL_WORDS_4 TRACE_INTERNAL_WORDS_3 + trace_internal_arg_words(&values[3])
#define TRACE_INTERNAL_WORDS_5 TRACE_INTERNAL_WORDS_4 + trace_internal_arg_words(&values[4])
#define TRACE_INTERNAL_WORDS_6 TRACE_INTERNAL_WORDS_5 + trace_internal_arg_words(&values[5])
#define TRACE_INTERNAL_WORDS_7 TRACE_INTERNAL_WORDS_6 + trace_internal_arg_words(&values[6])
#define TRACE_INTERNAL_WORDS_8 TRACE_INTERNAL_WORDS_7 + trace_internal_arg_words(&values[7])
#define TRACE_INTERNAL_WORDS_9 TRACE_INTERNAL_WORDS_8 + trace_internal_arg_words(&values[8])
#define TRACE_INTERNAL_WORDS_10 TRACE_INTERNAL_WORDS_9 + trace_internal_arg_words(&values[9])
#define TRACE_INTERNAL_WORDS_11 TRACE_INTERNAL_WORDS_10 + trace_internal_arg_words(&values[10])
#define TRACE_INTERNAL_WORDS_12 TRACE_INTERNAL_WORDS_11 + trace_internal_arg_words(&values[11])
#define TRACE_INTERNAL_WORDS_13 TRACE_INTERNAL_WORDS_12 + trace_internal_arg_words(&values[12])
#define TRACE_INTERNAL_WORDS_14 TRACE_INTERNAL_WORDS_13 + trace_internal_arg_words(&values[13])
#define TRACE_INTERNAL_WORDS_15 TRACE_INTERNAL_WORDS_14 + trace_internal_arg_words(&values[14])

#define TRACE_INTERNAL_PUT_0
#define TRACE_INTERNAL_PUT_1 TRACE_INTERNAL_PUT_0 trace_internal_put_arg(&record, &names[0], &values[0]);
#define TRACE_INTERNAL_PUT_2 TRACE_INTERNAL_PUT_1 trace_internal_put_arg(&record, &names[1], &values[1]);
#define TRACE_INTERNAL_PUT_3 TRACE_INTERNAL_PUT_2 trace_internal_put_arg(&record, &names[2], &values[2]);
#define TRACE_INTERNAL_PUT_4 TRACE_INTERNAL_PUT_3 trace_internal_put_arg(&record, &names[3], &values[3]);
#define TRACE_INTERNAL_PUT_5 TRACE_INTERNAL_PUT_4 trace_internal_put_arg(&record, &names[4], &values[4]);
#define TRACE_INTERNAL_PUT_6 TRACE_INTERNAL_PUT_5 trace_internal_put_arg(&record, &names[5], &values[5]);
#define TRACE_INTERNAL_PUT_7 TRACE_INTERNAL_PUT_6 trace_internal_put_arg(&record, &names[6], &values[6]);
#define TRACE_INTERNAL_PUT_8 TRACE_INTERNAL_PUT_7 trace_internal_put_arg(&record, &names[7], &values[7]);
#define TRACE_INTERNAL_PUT_9 TRACE_INTERNAL_PUT_8 trace_internal_put_arg(&record, &names[8], &values[8]);
#define TRACE_INTERNAL_PUT_10 TRACE_INTERNAL_PUT_9 trace_internal_put_arg(&record, &names[9], &values[9]);
#define TRACE_INTERNAL_PUT_11 TRACE_INTERNAL_PUT_10 trace_internal_put_arg(&record, &names[10], &values[10]);
#define TRACE_INTERNAL_PUT_12 TRACE_INTERNAL_PUT_11 trace_internal_put_arg(&record, &names[11], &values[11]);
#define TRACE_INTERNAL_PUT_13 TRACE_INTERNAL_PUT_12 trace_internal_put_arg(&record, &names[12], &values[12]);
#define TRACE_INTERNAL_PUT_14 TRACE_INTERNAL_PUT_13 trace_internal_put_arg(&record, &names[13], &values[13]);
#define TRACE_INTERNAL_PUT_15 TRACE_INTERNAL_PUT_14 trace_internal_put_arg(&record, &names[14], &values[14]);

#define TRACE_INTERNAL_COPY_0
#define TRACE_INTERNAL_COPY_1 TRACE_INTERNAL_COPY_0 copy[0] = trace_internal_copy_value(&values[0]);
#define TRACE_INTERNAL_COPY_2 TRACE_INTERNAL_COPY_1 copy[1] = trace_internal_copy_value(&values[1]);
#define TRACE_INTERNAL_COPY_3 TRACE_INTERNAL_COPY_2 copy[2] = trace_internal_copy_value(&values[2]);
#define TRACE_INTERNAL_COPY_4 TRACE_INTERNAL_COPY_3 copy[3] = trace_internal_copy_value(&values[3]);
#define TRACE_INTERNAL_COPY_5 TRACE_INTERNAL_COPY_4 copy[4] = trace_internal_copy_value(&values[4]);
#define TRACE_INTERNAL_COPY_6 TRACE_INTERNAL_COPY_5 copy[5] = trace_internal_copy_value(&values[5]);
#define TRACE_INTERNAL_COPY_7 TRACE_INTERNAL_COPY_6 copy[6] = trace_internal_copy_value(&values[6]);
#define TRACE_INTERNAL_COPY_8 TRACE_INTERNAL_COPY_7 copy[7] = trace_internal_copy_value(&values[7]);
#define TRACE_INTERNAL_COPY_9 TRACE_INTERNAL_COPY_8 copy[8] = trace_internal_copy_value(&values[8]);
#define TRACE_INTERNAL_COPY_10 TRACE_INTERNAL_COPY_9 copy[9] = trace_internal_copy_value(&values[9]);
#define TRACE_INTERNAL_COPY_11 TRACE_INTERNAL_COPY_10 copy[10] = trace_internal_copy_value(&values[10]);
#define TRACE_INTERNAL_COPY_12 TRACE_INTERNAL_COPY_11 copy[11] = trace_internal_copy_value(&values[11]);
#define TRACE_INTERNAL_COPY_13 TRACE_INTERNAL_COPY_12 copy[12] = trace_internal_copy_value(&values[12]);
#define TRACE_INTERNAL_COPY_14 TRACE_INTERNAL_COPY_13 copy[13] = trace_internal_copy_value(&values[13]);
#define TRACE_INTERNAL_COPY_15 TRACE_INTERNAL_COPY_14 copy[14] = trace_internal_copy_value(&values[14]);

#define TRACE_INTERNAL_COPY_NAMES_0
#define TRACE_INTERNAL_COPY_NAMES_1 TRACE_INTERNAL_COPY_NAMES_0 names[0] = scope->names[0];
#define TRACE_INTERNAL_COPY_NAMES_2 TRACE_INTERNAL_COPY_NAMES_1 names[1] = scope->names[1];
#define TRACE_INTERNAL_COPY_NAMES_3 TRACE_INTERNAL_COPY_NAMES_2 names[2] = scope->names[2];
#define TRACE_INTERNAL_COPY_NAMES_4 TRACE_INTERNAL_COPY_NAMES_3 names[3] = scope->names[3];
#define TRACE_INTERNAL_COPY_NAMES_5 TRACE_INTERNAL_COPY_NAMES_4 names[4] = scope->names[4];
#define TRACE_INTERNAL_COPY_NAMES_6 TRACE_INTERNAL_COPY_NAMES_5 names[5] = scope->names[5];
#define TRACE_INTERNAL_COPY_NAMES_7 TRACE_INTERNAL_COPY_NAMES_6 names[6] = scope->names[6];
#define TRACE_INTERNAL_COPY_NAMES_8 TRACE_INTERNAL_COPY_NAMES_7 names[7] = scope->names[7];
#define TRACE_INTERNAL_COPY_NAMES_9 TRACE_INTERNAL_COPY_NAMES_8 names[8] = scope->names[8];
#define TRACE_INTERNAL_COPY_NAMES_10 TRACE_INTERNAL_COPY_NAMES_9 names[9] = scope->names[9];
#define TRACE_INTERNAL_COPY_NAMES_11 TRACE_INTERNAL_COPY_NAMES_10 names[10] = scope->names[10];
#define TRACE_INTERNAL_COPY_NAMES_12 TRACE_INTERNAL_COPY_NAMES_11 names[11] = scope->names[11];
#define TRACE_INTERNAL_COPY_NAMES_13 TRACE_INTERNAL_COPY_NAMES_12 names[12] = scope->names[12];
#define TRACE_INTERNAL_COPY_NAMES_14 TRACE_INTERNAL_COPY_NAMES_13 names[13] = scope->names[13];
#define TRACE_INTERNAL_COPY_NAMES_15 TRACE_INTERNAL_COPY_NAMES_14 names[14] = scope->names[14];

TRACE_INTERNAL_ARITY(0, TRACE_INTERNAL_WORDS_0, TRACE_INTERNAL_PUT_0, TRACE_INTERNAL_COPY_0,
                     TRACE_INTERNAL_COPY_NAMES_0)
TRACE_INTERNAL_ARITY(1, TRACE_INTERNAL_WORDS_1, TRACE_INTERNAL_PUT_1, TRACE_INTERNAL_COPY_1,
                     TRACE_INTERNAL_COPY_NAMES_1)
TRACE_INTERNAL_ARITY(2, TRACE_INTERNAL_WORDS_2, TRACE_INTERNAL_PUT_2, TRACE_INTERNAL_COPY_2,
                     TRACE_INTERNAL_COPY_NAMES_2)
TRACE_INTERNAL_ARITY(3, TRACE_INTERNAL_WORDS_3, TRACE_INTERNAL_PUT_3, TRACE_INTERNAL_COPY_3,
                     TRACE_INTERNAL_COPY_NAMES_3)
TRACE_INTERNAL_ARITY(4, TRACE_INTERNAL_WORDS_4, TRACE_INTERNAL_PUT_4, TRACE_INTERNAL_COPY_4,
                     TRACE_INTERNAL_COPY_NAMES_4)
TRACE_INTERNAL_ARITY(5, TRACE_INTERNAL_WORDS_5, TRACE_INTERNAL_PUT_5, TRACE_INTERNAL_COPY_5,
                     TRACE_INTERNAL_COPY_NAMES_5)
TRACE_INTERNAL_ARITY(6, TRACE_INTERNAL_WORDS_6, TRACE_INTERNAL_PUT_6, TRACE_INTERNAL_COPY_6,
                     TRACE_INTERNAL_COPY_NAMES_6)
TRACE_INTERNAL_ARITY(7, TRACE_INTERNAL_WORDS_7, TRACE_INTERNAL_PUT_7, TRACE_INTERNAL_COPY_7,
                     TRACE_INTERNAL_COPY_NAMES_7)
TRACE_INTERNAL_ARITY(8, TRACE_INTERNAL_WORDS_8, TRACE_INTERNAL_PUT_8, TRACE_INTERNAL_COPY_8,
                     TRACE_INTERNAL_COPY_NAMES_8)
TRACE_INTERNAL_ARITY(9, TRACE_INTERNAL_WORDS_9, TRACE_INTERNAL_PUT_9, TRACE_INTERNAL_COPY_9,
                     TRACE_INTERNAL_COPY_NAMES_9)
TRACE_INTERNAL_ARITY(10, TRACE_INTERNAL_WORDS_10, TRACE_INTERNAL_PUT_10, TRACE_INTERNAL_COPY_10,
                     TRACE_INTERNAL_COPY_NAMES_10)
TRACE_INTERNAL_ARITY(11, TRACE_INTERNAL_WORDS_11, TRACE_INTERNAL_PUT_11, TRACE_INTERNAL_COPY_11,
                     TRACE_INTERNAL_COPY_NAMES_11)
TRACE_INTERNAL_ARITY(12, TRACE_INTERNAL_WORDS_12, TRACE_INTERNAL_PUT_12, TRACE_INTERNAL_COPY_12,
                     TRACE_INTERNAL_COPY_NAMES_12)
TRACE_INTERNAL_ARITY(13, TRACE_INTERNAL_WORDS_13, TRACE_INTERNAL_PUT_13, TRACE_INTERNAL_COPY_13,
                     TRACE_INTERNAL_COPY_NAMES_13)
TRACE_INTERNAL_ARITY(14, TRACE_INTERNAL_WORDS_14, TRACE_INTERNAL_PUT_14, TRACE_INTERNAL_COPY_14,
                     TRACE_INTERNAL_COPY_NAMES_14)
TRACE_INTERNAL_ARITY(15, TRACE_INTERNAL_WORDS_15, TRACE_INTERNAL_PUT_15, TRACE_INTERNAL_COPY_15,
                     TRACE_INTERNAL_COPY_NAMES_15)

#endif  // LIB_TRACE_INTERNAL_ARITY_H_
