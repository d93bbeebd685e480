// What a program says that it uses memory for, when `trace dump-memory` or a recording asks.
#ifndef LIB_TRACE_PROVIDER_MEMORY_DUMP_H_
#define LIB_TRACE_PROVIDER_MEMORY_DUMP_H_

#include <zircon/compiler.h>

#include <stdbool.h>
#include <stdint.h>

__BEGIN_CDECLS

typedef struct trace_memory_dump trace_memory_dump_t;

typedef void (*trace_memory_dump_callback_t)(void* data, trace_memory_dump_t* dump);

// Has a function called for each dump, on a thread of the provider's, while a recording that wants the
// category `memory_dump` runs. The dump is there until it returns. Several functions may be registered, each
// for the rest of the process's life: they, and what `data` points to, stay.
void trace_on_memory_dump(trace_memory_dump_callback_t callback, void* data);

// The number of the dump: the same in all programs that are asked for it.
uint64_t trace_memory_dump_get_id(const trace_memory_dump_t* dump);

// Whether more than sums is wanted.
bool trace_memory_dump_is_detailed(const trace_memory_dump_t* dump);

// So many bytes are used for this. Parts may be named after the whole: `cache`, `cache/images`.
void trace_memory_dump_add(trace_memory_dump_t* dump, const char* name, uint64_t bytes);

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_MEMORY_DUMP_H_
