// What a program carries of the engine: call sites, and the beginning of a thread's control block.
//
// A program that was compiled with another layout does not link or load: the one symbol that all events refer
// to is named after the layout's number.
#ifndef LIB_TRACE_INTERNAL_LAYOUT_H_
#define LIB_TRACE_INTERNAL_LAYOUT_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/types.h>

#define TRACE_INTERNAL_LAYOUT trace_internal_layout_2

__BEGIN_CDECLS

// The name of an argument at a call site, with its index while a trace is running.
typedef struct trace_internal_arg_name {
  const char* bytes;
  uint32_t length;
  uint32_t index;
} trace_internal_arg_name_t;

// A call site. The program sets nothing but the word, and its marks in the place of the category's length;
// the rest follows when the site enlists.
typedef struct trace_internal_site {
  uint64_t word;
  const char* category;
  size_t category_length;
  const char* name;
  size_t name_length;
  trace_internal_arg_name_t* args;
  size_t num_args;
  struct trace_internal_site* next;
} __attribute__((__aligned__(64))) trace_internal_site_t;

// Marks of a site: that it has some, and which of its texts are constants of the program.
#define TRACE_INTERNAL_MARKED ((size_t)1)
#define TRACE_INTERNAL_CONSTANT_CATEGORY ((size_t)2)
#define TRACE_INTERNAL_CONSTANT_NAME ((size_t)4)
#define TRACE_INTERNAL_CONSTANT_ARGS ((size_t)8)

// Bits of a site's word. A new site counts as on.
#define TRACE_INTERNAL_ON ((uint64_t)1)
#define TRACE_INTERNAL_FAST ((uint64_t)2)
#define TRACE_INTERNAL_NEW ((uint64_t)4)
// The references of category and name, where they stand in the header of an event, too.
#define TRACE_INTERNAL_REFERENCES ((uint64_t)0xffffffff00000000)

// A piece of the buffer that one thread writes into.
typedef struct trace_internal_slab {
  uintptr_t cursor;
  // 0 where there is none.
  uintptr_t end;
  uint64_t events;
} trace_internal_slab_t;

// The beginning of a thread's control block.
typedef struct trace_internal_thread {
  // Odd while the thread is inside an event.
  uint64_t counter;
  // The thread's reference, where it stands in the header of an event.
  uint64_t thread_bits;
  // The last timestamp that was given out.
  uint64_t latest;
  trace_internal_slab_t slab;
  uint64_t reserved[17];
  // How far the thread's open scopes are from the next field.
  uint64_t scopes;
  // The word of no scopes: always 0.
  uint64_t no_scopes;
} trace_internal_thread_t;

// Bits of the word of open scopes with the bytes that are left of their entries, which follow it.
#define TRACE_INTERNAL_ROOM ((uint64_t)0x1f0)
#define TRACE_INTERNAL_ENTRY_BYTES ((uint64_t)16)

// What holds for the whole process.
typedef struct trace_internal_process {
  // Where the thread-local pointer to the control block is, from the thread pointer.
  intptr_t thread_offset;
} trace_internal_process_t;

extern trace_internal_process_t TRACE_INTERNAL_LAYOUT;
// For programs that were compiled with headers of earlier releases, which do not know open scopes.
extern trace_internal_process_t trace_internal_layout_1;

__END_CDECLS

#endif  // LIB_TRACE_INTERNAL_LAYOUT_H_
