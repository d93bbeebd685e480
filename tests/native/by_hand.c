// Records put together by hand, as a tool does that generates instrumentation.
#include <lib/trace-engine/instrumentation.h>
#include <lib/trace-provider/start.h>
#include <trace/event_args.h>

#define CHECK(condition, number) \
  if (!(condition)) return number

int main(void) {
  static trace_site_t site;
  trace_string_ref_t category, name, inline_name = trace_make_inline_c_string_ref("inline name");
  trace_thread_ref_t thread, other, vthread;
  CHECK(trace_acquire_context() == NULL, 1);
  CHECK(trace_acquire_context_for_category_cached("hand", &site, &category) == NULL, 2);
  CHECK(trace_acquire_prolonged_context() == NULL, 3);
  CHECK(trace_state() == TRACE_STOPPED, 4);
  trace_provider_start();
  CHECK(trace_state() == TRACE_STARTED, 5);
  CHECK(trace_acquire_context_for_category("unwanted", &category) == NULL, 6);
  trace_context_t* context = trace_acquire_context_for_category_cached("hand", &site, &category);
  CHECK(context != NULL && trace_is_indexed_string_ref(&category), 7);
  CHECK(!trace_context_is_category_enabled(context, "unwanted"), 8);
  CHECK(trace_context_is_category_bytestring_enabled(context, (const unsigned char*)"handy", 4), 9);
  CHECK(trace_context_get_buffering_mode(context) == TRACE_BUFFERING_MODE_STREAMING, 10);
  trace_context_register_string_copy(context, "registered name", 10, &name);
  CHECK(trace_is_indexed_string_ref(&name), 11);
  trace_string_ref_t again = trace_context_make_registered_string_literal(context, "registered");
  CHECK(again.encoded_value == name.encoded_value, 12);
  trace_context_register_current_thread(context, &thread);
  CHECK(trace_is_indexed_thread_ref(&thread), 13);
  trace_context_register_thread(context, 4000, 4001, &other);
  trace_context_register_vthread(context, 0, "virtual", 6, &vthread);

  trace_ticks_t time = zx_ticks_get();
  TRACE_DECLARE_ARGS(context, args, "number", TA_INT32(1), "text", TA_STRING("text"));
  TRACE_COMPLETE_ARGS(context, args, TRACE_NUM_ARGS(args));
  CHECK(TRACE_NUM_ARGS(args) == 2 && trace_is_indexed_string_ref(&args[0].name_ref), 14);
  TRACE_DECLARE_ARGS(context, none);
  CHECK(TRACE_NUM_ARGS(none) == 0, 15);
  trace_context_write_instant_event_record(context, time, &thread, &category, &name, TRACE_SCOPE_GLOBAL, args, 2);
  trace_context_write_counter_event_record(context, time + 1, &other, &category, &inline_name, 8, args, 1);
  trace_context_write_duration_event_record(context, time + 2, time + 3, &vthread, &category, &name, NULL, 0);
  trace_context_write_duration_begin_event_record(context, time + 4, &thread, &category, &name, NULL, 0);
  trace_context_write_duration_end_event_record(context, time + 5, &thread, &category, &name, NULL, 0);
  trace_context_write_async_begin_event_record(context, time + 6, &thread, &category, &name, 9, NULL, 0);
  trace_context_write_async_instant_event_record(context, time + 7, &thread, &category, &name, 9, NULL, 0);
  trace_context_write_async_end_event_record(context, time + 8, &thread, &category, &name, 9, NULL, 0);
  trace_context_write_flow_begin_event_record(context, time + 9, &thread, &category, &name, 10, NULL, 0);
  trace_context_write_flow_step_event_record(context, time + 10, &thread, &category, &name, 10, NULL, 0);
  trace_context_write_flow_end_event_record(context, time + 11, &thread, &category, &name, 10, NULL, 0);
  trace_context_write_log_record(context, time + 12, &thread, "a message", 9);
  trace_context_write_blob_record(context, TRACE_BLOB_TYPE_DATA, &name, "blob", 4);
  trace_context_write_blob_event_record(context, time + 13, &thread, &category, &name, "large blob", 10, args, 1);
  trace_context_write_blob_attachment_record(context, &category, &inline_name, "attached", 8);
  trace_context_write_context_switch_record(context, time + 14, 3, ZX_THREAD_STATE_BLOCKED, &thread, &other, 5, 6);
  trace_context_write_process_info_record(context, 4000, &inline_name);
  trace_context_write_thread_info_record(context, 4000, 4001, &inline_name);
  trace_context_write_string_record(context, 0x7000, "string by hand", 14);
  trace_string_ref_t by_hand = trace_make_indexed_string_ref(0x7000);
  trace_context_write_instant_event_record(context, time + 15, &thread, &category, &by_hand, TRACE_SCOPE_THREAD, NULL, 0);
  char* payload = trace_context_begin_write_blob_record(context, TRACE_BLOB_TYPE_DATA, &name, 5);
  CHECK(payload != NULL, 16);
  memcpy(payload, "later", 5);
  CHECK(trace_context_begin_write_blob_record(context, TRACE_BLOB_TYPE_DATA, &name, TRACE_MAX_BLOB_SIZE + 1) == NULL, 17);
  CHECK(trace_context_alloc_record(context, 12) == NULL, 18);
  // An instant of a thread, word by word.
  uint64_t* words = trace_context_alloc_record(context, 16);
  CHECK(words != NULL, 19);
  words[0] = 4 | 2 << 4 | (uint64_t)thread.encoded_value << 24 | (uint64_t)category.encoded_value << 32 |
             (uint64_t)name.encoded_value << 48;
  words[1] = (uint64_t)time + 16;
  // One that is never filled.
  CHECK(trace_context_alloc_record(context, 16) != NULL, 20);
  trace_release_context(context);

  trace_prolonged_context_t* prolonged = trace_acquire_prolonged_context();
  CHECK(prolonged != NULL, 21);
  trace_release_prolonged_context(prolonged);
  return 0;
}
