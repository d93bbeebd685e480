// Records texts of its run, which a private recording may not have: `secrets SECRET`. C and C++.
#include <lib/trace-engine/instrumentation.h>
#include <lib/trace-provider/provider.h>
#include <lib/trace/event.h>
#include <stddef.h>
#include <string.h>
#include <trace-vthread/event_vthread.h>
#include <trace/chromium.h>

static void write_by_hand(const char* secret) {
  trace_string_ref_t category;
  trace_context_t* context = trace_acquire_context_for_category("app", &category);
  if (!context) {
    return;
  }
  trace_string_ref_t name, copy;
  trace_thread_ref_t thread;
  trace_context_register_string_literal(context, "by hand", &name);
  trace_context_register_string_copy(context, secret, strlen(secret), &copy);
  trace_context_register_current_thread(context, &thread);
  trace_string_ref_t inline_text = trace_make_inline_c_string_ref(secret);
  trace_arg_t args[2];
  args[0] = trace_make_arg(name, trace_make_string_arg_value(inline_text));
  args[1] = trace_make_arg(copy, trace_make_string_arg_value(copy));
  trace_context_write_instant_event_record(context, zx_ticks_get(), &thread, &category, &name, TRACE_SCOPE_THREAD,
                                           args, 2);
  trace_context_write_instant_event_record(context, zx_ticks_get(), &thread, &category, &inline_text,
                                           TRACE_SCOPE_THREAD, NULL, 0);
  trace_context_write_log_record(context, zx_ticks_get(), &thread, secret, strlen(secret));
  trace_context_write_blob_record(context, TRACE_BLOB_TYPE_DATA, &inline_text, secret, strlen(secret));
  trace_context_write_string_record(context, 32000, secret, strlen(secret));
  trace_release_context(context);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const char* secret = argv[1];
  bool started;
  trace_provider_t* provider = trace_provider_create_synchronously_with_fdio(NULL, "secrets", &started);
  {
    TRACE_DURATION("app", "request", "user", TA_STRING(secret), "state", TA_STRING_LITERAL("public literal"), "number",
                   TA_INT32(7));
    TRACE_INSTANT("app", "moment", TRACE_SCOPE_THREAD, "user", TA_CHAR_ARRAY(secret, strlen(secret)));
  }
  TRACE_BLOB_EVENT("app", "large", secret, strlen(secret), "user", TA_STRING(secret));
  TRACE_BLOB(TRACE_BLOB_TYPE_DATA, "piece", secret, strlen(secret));
  TRACE_BLOB(TRACE_BLOB_TYPE_DATA, secret, "", 0);
  TRACE_EVENT_COPY_INSTANT1("app", secret, TRACE_EVENT_SCOPE_THREAD, secret, TA_INT32(1));
  write_by_hand(secret);
  trace_provider_destroy(provider);
  return 0;
}
