// What is not on the hot path, and names that are no literals.
#include <trace/event.h>
#include <zircon/process.h>
#include <zircon/threads.h>

#include <lib/trace-provider/start.h>

static void EventOf(const char* category, const char* name, const char* argument) {
  TRACE_INSTANT(category, name, TRACE_SCOPE_THREAD, argument, TA_STRING(name));
  TRACE_DURATION(category, name, argument, TA_STRING(category));
}

int main(void) {
  if (TRACE_ENABLED() || TRACE_CATEGORY_ENABLED("rare")) return 1;
  trace_provider_start();
  if (!TRACE_ENABLED() || !TRACE_CATEGORY_ENABLED("rare") || TRACE_CATEGORY_ENABLED("unwanted") ||
      TRACE_CATEGORY_ENABLED("")) {
    return 2;
  }
  uint64_t nonce = TRACE_NONCE();
  if (nonce == 0 || nonce == TRACE_NONCE() || TRACE_TIME_BASED_ID() == 0) return 3;
  int round;
  for (round = 0; round < 3; ++round) {
    EventOf("rare", "one", "first");
    EventOf("rare", "two", "second");
    EventOf("unwanted", "three", "third");
    TRACE_BLOB_EVENT("rare", "blob event", "bytes", 5, "round", TA_INT32(round));
    TRACE_BLOB_ATTACHMENT("rare", "attachment", "more bytes", 10);
    TRACE_BLOB(TRACE_BLOB_TYPE_DATA, "blob", "some", 4);
    TRACE_INSTAFLOW_BEGIN("rare", "flow", "step", 7, "round", TA_INT32(round));
    TRACE_INSTAFLOW_END("rare", "flow", "end", 7);
  }
  zx_handle_t event;
  if (zx_event_create(0, &event) != ZX_OK) return 4;
  TRACE_KERNEL_OBJECT(event, "number", TA_INT32(5));
  TRACE_KERNEL_OBJECT(zx_process_self());
  TRACE_KERNEL_OBJECT(zx_thread_self());
  if (zx_handle_close(event) != ZX_OK || zx_handle_close(event) != ZX_ERR_BAD_HANDLE) return 5;
  // Longer than any record.
  static char long_text[40000];
  memset(long_text, 'x', sizeof(long_text) - 1);
  TRACE_INSTANT("rare", "long", TRACE_SCOPE_THREAD, "text", TA_STRING(long_text));
  TRACE_ALERT("rare", "an alert");
  return 0;
}
