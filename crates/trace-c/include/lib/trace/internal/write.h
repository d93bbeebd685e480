// Writing an event: the hot path. It does what `write_event` of the Rust engine does, in the same order.
#ifndef LIB_TRACE_INTERNAL_WRITE_H_
#define LIB_TRACE_INTERNAL_WRITE_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace/internal/layout.h>

__BEGIN_CDECLS

// An event without its site and its arguments.
typedef struct trace_internal_event {
  uint32_t type;
  bool has_start;
  bool has_extra;
  bool has_time;
  // The beginning of a complete duration, whose end is the time of writing.
  uint64_t start;
  // The id or scope behind the arguments.
  uint64_t extra;
  // The moment, if it was taken before.
  uint64_t time;
} trace_internal_event_t;

// The description of a call site, which it passes with each event.
typedef struct trace_internal_call {
  trace_internal_site_t* site;
  const char* category;
  const char* name;
  // One for each value.
  const char* const* names;
  // Storage of the site for the names.
  trace_internal_arg_name_t* storage;
  // Identifies the executable or library.
  void* module;
} trace_internal_call_t;

// A moment of this thread, later than all it has taken before.
uint64_t trace_internal_stamp(void);
// The same, at which a duration of this name begins.
uint64_t trace_internal_begin_scope(const char* name);
// A scope of a call begins at this moment, for which the fast path has no place. What its end passes on.
uint64_t trace_internal_open_scope(const trace_internal_call_t* call, uint64_t start);
// The end of a scope that has taken the slow path.
void trace_internal_close_scope(uint64_t scope);
// The slow path.
void trace_internal_write_event(const trace_internal_call_t* call, const trace_internal_event_t* event,
                                const trace_arg_value_t* values, size_t num_values);
// Enlists a new site, and returns whether its events are recorded now.
bool trace_internal_is_on(const trace_internal_call_t* call, size_t num_values);

// Every executable and every library has one of its own.
extern void* __dso_handle __attribute__((__visibility__("hidden")));

enum {
  TRACE_INTERNAL_INSTANT = 0,
  TRACE_INTERNAL_COUNTER = 1,
  TRACE_INTERNAL_DURATION_BEGIN = 2,
  TRACE_INTERNAL_DURATION_END = 3,
  TRACE_INTERNAL_DURATION_COMPLETE = 4,
  TRACE_INTERNAL_ASYNC_BEGIN = 5,
  TRACE_INTERNAL_ASYNC_INSTANT = 6,
  TRACE_INTERNAL_ASYNC_END = 7,
  TRACE_INTERNAL_FLOW_BEGIN = 8,
  TRACE_INTERNAL_FLOW_STEP = 9,
  TRACE_INTERNAL_FLOW_END = 10,
};

TRACE_INTERNAL_INLINE trace_internal_event_t trace_internal_make_event(uint32_t type) {
  trace_internal_event_t event = {type, false, false, false, 0, 0, 0};
  return event;
}

TRACE_INTERNAL_INLINE trace_internal_event_t trace_internal_make_event_with(uint32_t type, uint64_t extra) {
  trace_internal_event_t event = {type, false, true, false, 0, extra, 0};
  return event;
}

TRACE_INTERNAL_INLINE trace_internal_event_t trace_internal_make_event_at(trace_internal_event_t event, uint64_t time) {
  event.has_time = true;
  event.time = time;
  return event;
}

// A thread is the scope that readers assume.
TRACE_INTERNAL_INLINE trace_internal_event_t trace_internal_make_instant(trace_scope_t scope) {
  trace_internal_event_t event = {TRACE_INTERNAL_INSTANT, false, scope != TRACE_SCOPE_THREAD, false, 0, (uint64_t)scope, 0};
  return event;
}

TRACE_INTERNAL_INLINE trace_internal_event_t trace_internal_make_complete(uint64_t start) {
  trace_internal_event_t event = {TRACE_INTERNAL_DURATION_COMPLETE, true, false, false, start, 0, 0};
  return event;
}

// A copy of a value, so that the value itself need not be in memory.
TRACE_INTERNAL_INLINE trace_arg_value_t trace_internal_copy_value(const trace_arg_value_t* value) {
  return trace_internal_make_arg_value(value->type, value->reserved_for_future_expansion[0],
                                       value->reserved_for_future_expansion[1]);
}

// Hands over a copy, so that the event itself need not be in memory.
TRACE_INTERNAL_INLINE void trace_internal_write_slowly(const trace_internal_call_t* call,
                                                       const trace_internal_event_t* event,
                                                       const trace_arg_value_t* values, size_t num_values) {
  trace_internal_event_t copy;
  copy.type = event->type;
  copy.has_start = event->has_start;
  copy.has_extra = event->has_extra;
  copy.has_time = event->has_time;
  copy.start = event->start;
  copy.extra = event->extra;
  copy.time = event->time;
  trace_internal_write_event(call, &copy, values, num_values);
}

TRACE_INTERNAL_INLINE uint64_t trace_internal_load(const uint64_t* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

TRACE_INTERNAL_INLINE void trace_internal_store(uint64_t* word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

TRACE_INTERNAL_INLINE bool trace_internal_is_same_text(const char* known, const char* text) { return known == text; }

// Whether all strings of a site have an index, so that the fast path may be tried.
TRACE_INTERNAL_INLINE bool trace_internal_site_is_fast(const trace_internal_site_t* site) {
  return __builtin_expect((trace_internal_load(&site->word) & TRACE_INTERNAL_FAST) != 0, 1);
}

TRACE_INTERNAL_INLINE trace_internal_call_t trace_internal_make_call(trace_internal_site_t* site, const char* category,
                                                                     const char* name, const char* const* names,
                                                                     trace_internal_arg_name_t* storage) {
  trace_internal_call_t call = {site, category, name, names, storage, (void*)&__dso_handle};
  return call;
}

// The address of something, which the compiler does not see: else it gets it ready in front of a loop, for
// what is not the common case.
TRACE_INTERNAL_INLINE void* trace_internal_hide(const void* something) {
#if defined(__x86_64__)
  void* address;
  __asm__ volatile("{lea %1, %0|lea %0, %1}" : "=r"(address) : "m"(*(const char*)something));
  return address;
#else
  void* address = (void*)something;
  __asm__ volatile("" : "+r"(address));
  return address;
#endif
}

// The same, on the slow path.
TRACE_INTERNAL_INLINE trace_internal_call_t trace_internal_make_cold_call(trace_internal_site_t* site,
                                                                          const char* category, const char* name,
                                                                          const char* const* names,
                                                                          trace_internal_arg_name_t* storage) {
  trace_internal_call_t call = {
      (trace_internal_site_t*)trace_internal_hide(site),
      (const char*)trace_internal_hide(category),
      (const char*)trace_internal_hide(name),
      names,
      (trace_internal_arg_name_t*)trace_internal_hide(storage),
      trace_internal_hide(&__dso_handle),
  };
  return call;
}

// The calling thread's control block, or one without space. Only to be called after a site was seen on and
// not new: before that, the library may not have published where the block is.
TRACE_INTERNAL_INLINE trace_internal_thread_t* trace_internal_thread(void) {
  trace_internal_thread_t* thread;
#if defined(__x86_64__)
  __asm__ volatile("{movq %%fs:(%1), %0|mov %0, qword ptr fs:[%1]}" : "=r"(thread) : "r"(TRACE_INTERNAL_LAYOUT.thread_offset));
#else
  char* pointer = (char*)__builtin_thread_pointer();
  thread = *(trace_internal_thread_t* volatile*)(pointer + TRACE_INTERNAL_LAYOUT.thread_offset);
#endif
  return thread;
}

// The clock, which is the processor's counter: where it is not, no site is fast.
TRACE_INTERNAL_INLINE uint64_t trace_internal_read_counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return trace_internal_stamp();
#endif
}

// A moment of this thread, later than all it has taken before.
TRACE_INTERNAL_INLINE uint64_t trace_internal_next_stamp(trace_internal_thread_t* thread) {
  uint64_t now = trace_internal_read_counter();
  uint64_t least = trace_internal_load(&thread->latest) + 4;
  now = now > least ? now : least;
  trace_internal_store(&thread->latest, now);
  return now;
}

// The same, for an event of a site whose word was this.
TRACE_INTERNAL_INLINE uint64_t trace_internal_now(uint64_t word) {
  if (__builtin_expect((word & TRACE_INTERNAL_FAST) != 0, 1)) {
    return trace_internal_next_stamp(trace_internal_thread());
  }
  return trace_internal_stamp();
}

// A scope that has begun.
typedef struct trace_internal_begun {
  // 0 where the scope is off.
  uint64_t start;
  // What its end passes on.
  uint64_t scope;
} trace_internal_begun_t;

// The word of a thread's open scopes.
TRACE_INTERNAL_INLINE uint64_t* trace_internal_scopes(trace_internal_thread_t* thread) {
  return (uint64_t*)((uintptr_t)&thread->no_scopes + (uintptr_t)trace_internal_load(&thread->scopes));
}

// A scope begins that has a place there, if there is one left. The entry says nothing before the word has it,
// and its begin comes last: what interrupts this leaves no begin there of a scope that has ended.
TRACE_INTERNAL_INLINE bool trace_internal_push_scope(uint64_t* scopes, uint64_t site_word, uint64_t start,
                                                     uint64_t* scope) {
  const uint64_t word = trace_internal_load(scopes);
  const uint64_t room = word & TRACE_INTERNAL_ROOM;
  if (__builtin_expect(room == 0, 0)) {
    return false;
  }
  uint64_t* entry = (uint64_t*)(void*)((char*)scopes + room - 8);
  trace_internal_store(entry, 0);
  __atomic_store_n(scopes, word - TRACE_INTERNAL_ENTRY_BYTES, __ATOMIC_RELEASE);
  __atomic_store_n(entry + 1, site_word, __ATOMIC_RELEASE);
  __atomic_store_n(entry, start, __ATOMIC_RELEASE);
  *scope = word;
  return true;
}

// The scope ends, and what has begun inside of it; not if it began in another run. The record comes before.
TRACE_INTERNAL_INLINE void trace_internal_pop_scope(uint64_t scope) {
  uint64_t* scopes = trace_internal_scopes(trace_internal_thread());
  if (__builtin_expect((trace_internal_load(scopes) ^ scope) >> 32 == 0, 1)) {
    __atomic_store_n(scopes, scope, __ATOMIC_RELEASE);
  }
}

// A duration of a site that is on begins.
TRACE_INTERNAL_INLINE trace_internal_begun_t trace_internal_begin_now(uint64_t word, bool is_same,
                                                                      trace_internal_call_t call) {
  trace_internal_begun_t begun;
  if (__builtin_expect(is_same && (word & TRACE_INTERNAL_FAST) != 0, 1)) {
    trace_internal_thread_t* thread = trace_internal_thread();
    begun.start = trace_internal_next_stamp(thread);
    if (__builtin_expect(trace_internal_push_scope(trace_internal_scopes(thread), word, begun.start, &begun.scope), 1)) {
      return begun;
    }
  } else {
    begun.start = trace_internal_begin_scope(call.name);
  }
  const trace_internal_call_t cold =
      trace_internal_make_cold_call(call.site, call.category, call.name, NULL, call.storage);
  begun.scope = trace_internal_open_scope(&cold, begun.start);
  return begun;
}

// A record under way.
typedef struct trace_internal_record {
  trace_internal_thread_t* thread;
  uint64_t counter;
  uint64_t references;
  uint64_t now;
  uint64_t* header;
  uint64_t* next;
} trace_internal_record_t;

// Begins an event of this many words. False if it has to take the slow path.
TRACE_INTERNAL_INLINE bool trace_internal_begin(trace_internal_record_t* record, const trace_internal_site_t* site,
                                                const trace_internal_event_t* event, size_t words) {
  trace_internal_thread_t* thread = trace_internal_thread();
  uint64_t counter = trace_internal_load(&thread->counter);
  if (__builtin_expect((counter & 1) != 0, 0)) {
    return false;
  }
  __atomic_store_n(&thread->counter, counter + 1, __ATOMIC_RELEASE);
  // The processor's half of this fence is the dispatcher's.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  uint64_t word = __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
  if (__builtin_expect((word & TRACE_INTERNAL_FAST) != 0, 1)) {
    uint64_t now = event->has_time ? event->time : trace_internal_next_stamp(thread);
    uintptr_t cursor = __atomic_load_n(&thread->slab.cursor, __ATOMIC_RELAXED);
    if (__builtin_expect(cursor + words * 8 <= __atomic_load_n(&thread->slab.end, __ATOMIC_RELAXED), 1)) {
      record->thread = thread;
      record->counter = counter;
      record->references = word & TRACE_INTERNAL_REFERENCES;
      record->now = now;
      record->header = (uint64_t*)cursor;
      record->next = record->header + 1;
      return true;
    }
  }
  __atomic_store_n(&thread->counter, counter + 2, __ATOMIC_RELEASE);
  return false;
}

TRACE_INTERNAL_INLINE void trace_internal_put(trace_internal_record_t* record, uint64_t word) {
  trace_internal_store(record->next, word);
  record->next += 1;
}

TRACE_INTERNAL_INLINE void trace_internal_put_bytes(trace_internal_record_t* record, const char* bytes, size_t length) {
  size_t rest = length % 8;
  size_t whole = length / 8;
  uint64_t word;
  for (; whole != 0; --whole, bytes += 8) {
    memcpy(&word, bytes, 8);
    trace_internal_put(record, word);
  }
  if (rest != 0) {
    word = 0;
    if (rest & 4) {
      uint32_t part;
      memcpy(&part, bytes, 4);
      word = part;
    }
    if (rest & 2) {
      uint16_t part;
      memcpy(&part, bytes + (rest & 4), 2);
      word |= (uint64_t)part << (8 * (rest & 4));
    }
    if (rest & 1) {
      word |= (uint64_t)(unsigned char)bytes[rest - 1] << (8 * (rest - 1));
    }
    trace_internal_put(record, word);
  }
}

// Finishes an event of this many words and arguments. The header comes last: from there on the record exists.
TRACE_INTERNAL_INLINE void trace_internal_commit(trace_internal_record_t* record, const trace_internal_event_t* event,
                                                 size_t words, size_t num_args) {
  trace_internal_thread_t* thread = record->thread;
  uint64_t header = 4 | (uint64_t)words << 4 | (uint64_t)event->type << 16 | (uint64_t)num_args << 20;
  trace_internal_store(&thread->slab.events, trace_internal_load(&thread->slab.events) + 1);
  header |= trace_internal_load(&thread->thread_bits) | record->references;
  __atomic_store_n(record->header, header, __ATOMIC_RELEASE);
  __atomic_store_n(&thread->slab.cursor, (uintptr_t)record->header + words * 8, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->counter, record->counter + 2, __ATOMIC_RELEASE);
}

// Words of an event without its arguments.
TRACE_INTERNAL_INLINE size_t trace_internal_event_words(const trace_internal_event_t* event) {
  return 2 + (size_t)event->has_start + (size_t)event->has_extra;
}

TRACE_INTERNAL_INLINE void trace_internal_put_time(trace_internal_record_t* record, const trace_internal_event_t* event) {
  trace_internal_put(record, event->has_start ? event->start : record->now);
}

TRACE_INTERNAL_INLINE void trace_internal_put_end(trace_internal_record_t* record, const trace_internal_event_t* event) {
  if (event->has_start) {
    trace_internal_put(record, record->now);
  }
  if (event->has_extra) {
    trace_internal_put(record, event->extra);
  }
}

// A scope that is off has no values, and does not look at them: gcc does not see that everywhere.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// How long an inline string is; 0 for one that has an index.
TRACE_INTERNAL_INLINE size_t trace_internal_string_length(const trace_arg_value_t* value) {
  uint64_t encoded = value->reserved_for_future_expansion[0];
  return (encoded & TRACE_ENCODED_STRING_REF_INLINE_FLAG) ? encoded & TRACE_ENCODED_STRING_REF_LENGTH_MASK : 0;
}

// Words of an argument whose name has an index.
TRACE_INTERNAL_INLINE size_t trace_internal_arg_words(const trace_arg_value_t* value) {
  switch (value->type) {
    case TRACE_ARG_INT64:
    case TRACE_ARG_UINT64:
    case TRACE_ARG_DOUBLE:
    case TRACE_ARG_POINTER:
    case TRACE_ARG_KOID:
      return 2;
    case TRACE_ARG_STRING:
      return 1 + (trace_internal_string_length(value) + 7) / 8;
    default:
      return 1;
  }
}

TRACE_INTERNAL_INLINE void trace_internal_put_arg(trace_internal_record_t* record, const trace_internal_arg_name_t* name,
                                                  const trace_arg_value_t* value) {
  const uint64_t word = value->reserved_for_future_expansion[0];
  uint64_t header = (uint64_t)value->type | trace_internal_arg_words(value) << 4;
  header |= (uint64_t)__atomic_load_n(&name->index, __ATOMIC_RELAXED) << 16;
  switch (value->type) {
    case TRACE_ARG_BOOL:
      trace_internal_put(record, header | (word & 0xff) << 32);
      break;
    case TRACE_ARG_INT32:
    case TRACE_ARG_UINT32:
      trace_internal_put(record, header | word << 32);
      break;
    case TRACE_ARG_INT64:
    case TRACE_ARG_UINT64:
    case TRACE_ARG_DOUBLE:
    case TRACE_ARG_POINTER:
    case TRACE_ARG_KOID:
      trace_internal_put(record, header);
      trace_internal_put(record, word);
      break;
    case TRACE_ARG_STRING:
      trace_internal_put(record, header | (word & 0xffff) << 32);
      trace_internal_put_bytes(record, (const char*)value->reserved_for_future_expansion[1],
                               trace_internal_string_length(value));
      break;
    default:
      trace_internal_put(record, (header & ~(uint64_t)15) | TRACE_ARG_NULL);
      break;
  }
}

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

__END_CDECLS

#endif  // LIB_TRACE_INTERNAL_WRITE_H_
