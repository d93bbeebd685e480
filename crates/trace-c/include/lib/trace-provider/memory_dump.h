// Reports of a program about its use of memory, on request of `trace dump-memory` or a recording.
#ifndef LIB_TRACE_PROVIDER_MEMORY_DUMP_H_
#define LIB_TRACE_PROVIDER_MEMORY_DUMP_H_

#include <zircon/compiler.h>

#include <stdbool.h>
#include <stdint.h>

__BEGIN_CDECLS

typedef struct trace_memory_dump trace_memory_dump_t;

typedef void (*trace_memory_dump_callback_t)(void* data, trace_memory_dump_t* dump);

// Registers a function that is called for each dump, on a thread of the provider's, while a recording with
// the category `memory_dump` is running. The dump is valid until the function returns. Several functions may
// be registered, each for the rest of the process's life: they, and what `data` points to, have to stay.
void trace_on_memory_dump(trace_memory_dump_callback_t callback, void* data);

// The number of the dump: the same in all programs that take part in it.
uint64_t trace_memory_dump_get_id(const trace_memory_dump_t* dump);

// Whether the dump is detailed: add values that are expensive to compute, too, not only totals.
bool trace_memory_dump_is_detailed(const trace_memory_dump_t* dump);

// Adds the number of bytes that are used for `name`. Parts may be named after the whole: `cache`,
// `cache/images`.
void trace_memory_dump_add(trace_memory_dump_t* dump, const char* name, uint64_t bytes);

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_MEMORY_DUMP_H_
