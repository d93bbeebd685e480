// Functions that write records into an acquired trace (see instrumentation.h).
//
// Every function may be called on any thread. A record for which the buffer has no room is dropped and
// counted.
#ifndef LIB_TRACE_ENGINE_CONTEXT_H_
#define LIB_TRACE_ENGINE_CONTEXT_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/types.h>

__BEGIN_CDECLS

// A running trace, from its acquisition until its release.
typedef struct trace_context trace_context_t;
// The same, held for longer: the trace does not stop before it is released.
typedef struct trace_prolonged_context trace_prolonged_context_t;

bool trace_context_is_category_enabled(trace_context_t* context, const char* category_literal);
bool trace_context_is_category_bytestring_enabled(trace_context_t* context, const unsigned char* bytes, size_t length);

// A string gets an index when it is first registered. If no index is left, its reference is inline, and the
// string must stay valid as long as the reference is used. `out_ref` is written in full.
void trace_context_register_string_copy(trace_context_t* context, const char* string, size_t length,
                                        trace_string_ref_t* out_ref);
void trace_context_register_string_literal(trace_context_t* context, const char* string_literal,
                                           trace_string_ref_t* out_ref);
void trace_context_register_bytestring(trace_context_t* context, const unsigned char* bytes, size_t length,
                                       trace_string_ref_t* out_ref);
// If the category is not enabled, returns false and leaves `out_ref` unchanged.
bool trace_context_register_category_literal(trace_context_t* context, const char* category_literal,
                                             trace_string_ref_t* out_ref);
bool trace_context_register_category_bytestring(trace_context_t* context, const unsigned char* bytes, size_t length,
                                                trace_string_ref_t* out_ref);

TRACE_INTERNAL_INLINE trace_string_ref_t trace_context_make_registered_string_copy(trace_context_t* context,
                                                                                   const char* string, size_t length) {
  trace_string_ref_t ref;
  trace_context_register_string_copy(context, string, length, &ref);
  return ref;
}

TRACE_INTERNAL_INLINE trace_string_ref_t trace_context_make_registered_string_literal(trace_context_t* context,
                                                                                      const char* string_literal) {
  trace_string_ref_t ref;
  trace_context_register_string_literal(context, string_literal, &ref);
  return ref;
}

void trace_context_register_current_thread(trace_context_t* context, trace_thread_ref_t* out_ref);
// A virtual thread: its koid is 2^63 | `vthread_id`. `process_koid` 0 is this process.
void trace_context_register_vthread(trace_context_t* context, zx_koid_t process_koid, const char* vthread_name,
                                    trace_vthread_id_t vthread_id, trace_thread_ref_t* out_ref);
void trace_context_register_vthread_by_ref(trace_context_t* context, zx_koid_t process_koid,
                                           const trace_string_ref_t* name_ref, trace_vthread_id_t vthread_id,
                                           trace_thread_ref_t* out_ref);
// Another thread, whose name the caller records in a kernel object record. The reference is inline.
void trace_context_register_thread(trace_context_t* context, zx_koid_t process_koid, zx_koid_t thread_koid,
                                   trace_thread_ref_t* out_ref);

TRACE_INTERNAL_INLINE trace_thread_ref_t trace_context_make_registered_thread(trace_context_t* context,
                                                                              zx_koid_t process_koid,
                                                                              zx_koid_t thread_koid) {
  trace_thread_ref_t ref;
  trace_context_register_thread(context, process_koid, thread_koid, &ref);
  return ref;
}

// Returns space for the payload of a blob. Fill it before the context is released: then the record is
// written. NULL for more than TRACE_MAX_BLOB_SIZE bytes.
void* trace_context_begin_write_blob_record(trace_context_t* context, trace_blob_type_t type,
                                            const trace_string_ref_t* name_ref, size_t blob_size);
void trace_context_write_blob_record(trace_context_t* context, trace_blob_type_t type,
                                     const trace_string_ref_t* name_ref, const void* blob, size_t blob_size);

// Sends an alert to the trace manager, without a record. Names are cut to 14 bytes.
void trace_context_send_alert(trace_context_t* context, const char* alert_name);
void trace_context_send_alert_bytestring(trace_context_t* context, const unsigned char* alert_name, size_t length);

// Only zx_process_self() and zx_thread_self() are handles of objects with names; arguments of such records
// are not written.
void trace_context_write_kernel_object_record_for_handle(trace_context_t* context, zx_handle_t handle,
                                                         const trace_arg_t* args, size_t num_args);
void trace_context_write_process_info_record(trace_context_t* context, zx_koid_t process_koid,
                                             const trace_string_ref_t* process_name_ref);
void trace_context_write_thread_info_record(trace_context_t* context, zx_koid_t process_koid, zx_koid_t thread_koid,
                                            const trace_string_ref_t* thread_name_ref);
void trace_context_write_context_switch_record(trace_context_t* context, trace_ticks_t event_time,
                                               trace_cpu_number_t cpu_number,
                                               trace_thread_state_t outgoing_thread_state,
                                               const trace_thread_ref_t* outgoing_thread_ref,
                                               const trace_thread_ref_t* incoming_thread_ref,
                                               trace_thread_priority_t outgoing_thread_priority,
                                               trace_thread_priority_t incoming_thread_priority);
void trace_context_write_log_record(trace_context_t* context, trace_ticks_t event_time,
                                    const trace_thread_ref_t* thread_ref, const char* log_message,
                                    size_t log_message_length);

void trace_context_write_instant_event_record(trace_context_t* context, trace_ticks_t event_time,
                                              const trace_thread_ref_t* thread_ref,
                                              const trace_string_ref_t* category_ref,
                                              const trace_string_ref_t* name_ref, trace_scope_t scope,
                                              const trace_arg_t* args, size_t num_args);
void trace_context_write_counter_event_record(trace_context_t* context, trace_ticks_t event_time,
                                              const trace_thread_ref_t* thread_ref,
                                              const trace_string_ref_t* category_ref,
                                              const trace_string_ref_t* name_ref, trace_counter_id_t counter_id,
                                              const trace_arg_t* args, size_t num_args);
void trace_context_write_duration_event_record(trace_context_t* context, trace_ticks_t start_time,
                                               trace_ticks_t end_time, const trace_thread_ref_t* thread_ref,
                                               const trace_string_ref_t* category_ref,
                                               const trace_string_ref_t* name_ref, const trace_arg_t* args,
                                               size_t num_args);
void trace_context_write_duration_begin_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                     const trace_thread_ref_t* thread_ref,
                                                     const trace_string_ref_t* category_ref,
                                                     const trace_string_ref_t* name_ref, const trace_arg_t* args,
                                                     size_t num_args);
void trace_context_write_duration_end_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                   const trace_thread_ref_t* thread_ref,
                                                   const trace_string_ref_t* category_ref,
                                                   const trace_string_ref_t* name_ref, const trace_arg_t* args,
                                                   size_t num_args);
void trace_context_write_async_begin_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                  const trace_thread_ref_t* thread_ref,
                                                  const trace_string_ref_t* category_ref,
                                                  const trace_string_ref_t* name_ref, trace_async_id_t async_id,
                                                  const trace_arg_t* args, size_t num_args);
void trace_context_write_async_instant_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                    const trace_thread_ref_t* thread_ref,
                                                    const trace_string_ref_t* category_ref,
                                                    const trace_string_ref_t* name_ref, trace_async_id_t async_id,
                                                    const trace_arg_t* args, size_t num_args);
void trace_context_write_async_end_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                const trace_thread_ref_t* thread_ref,
                                                const trace_string_ref_t* category_ref,
                                                const trace_string_ref_t* name_ref, trace_async_id_t async_id,
                                                const trace_arg_t* args, size_t num_args);
void trace_context_write_flow_begin_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                 const trace_thread_ref_t* thread_ref,
                                                 const trace_string_ref_t* category_ref,
                                                 const trace_string_ref_t* name_ref, trace_flow_id_t flow_id,
                                                 const trace_arg_t* args, size_t num_args);
void trace_context_write_flow_step_event_record(trace_context_t* context, trace_ticks_t event_time,
                                                const trace_thread_ref_t* thread_ref,
                                                const trace_string_ref_t* category_ref,
                                                const trace_string_ref_t* name_ref, trace_flow_id_t flow_id,
                                                const trace_arg_t* args, size_t num_args);
void trace_context_write_flow_end_event_record(trace_context_t* context, trace_ticks_t event_time,
                                               const trace_thread_ref_t* thread_ref,
                                               const trace_string_ref_t* category_ref,
                                               const trace_string_ref_t* name_ref, trace_flow_id_t flow_id,
                                               const trace_arg_t* args, size_t num_args);
void trace_context_write_blob_event_record(trace_context_t* context, trace_ticks_t event_time,
                                           const trace_thread_ref_t* thread_ref,
                                           const trace_string_ref_t* category_ref, const trace_string_ref_t* name_ref,
                                           const void* blob, size_t blob_size, const trace_arg_t* args,
                                           size_t num_args);
void trace_context_write_blob_attachment_record(trace_context_t* context, const trace_string_ref_t* category_ref,
                                                const trace_string_ref_t* name_ref, const void* blob,
                                                size_t blob_size);

void trace_context_write_initialization_record(trace_context_t* context, zx_ticks_t ticks_per_second);
// The caller chooses the index, which must not be that of a registered string.
void trace_context_write_string_record(trace_context_t* context, trace_string_index_t index, const char* string,
                                       size_t length);
void trace_context_write_thread_record(trace_context_t* context, trace_thread_index_t index, zx_koid_t process_koid,
                                       zx_koid_t thread_koid);
// Returns space for one record, whose header gives its size. Fill it before the context is released: then it
// is written. A durable record is written where nothing overwrites it. `num_bytes` must be a multiple of 8;
// NULL if it is not, or is too large.
void* trace_context_alloc_record(trace_context_t* context, size_t num_bytes);
void* trace_context_alloc_durable_record(trace_context_t* context, size_t num_bytes);

trace_buffering_mode_t trace_context_get_buffering_mode(const trace_context_t* context);

__END_CDECLS

#endif  // LIB_TRACE_ENGINE_CONTEXT_H_
