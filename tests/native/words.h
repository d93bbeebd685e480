// The calls of one program in three languages, whose records must be the same words. See examples/words.rs.
//
// In C values are given by V(type, value), which C++ leaves to inference.
#include <trace/event.h>

#ifdef __cplusplus
#define V(type, value) (value)
#else
#define V(type, value) TA_##type(value)
#endif

static void write_words(void) {
  const int32_t negative = -7;
  const uint32_t unsigned_number = 4000000000u;
  const int64_t large_negative = -5000000000;
  const uint64_t large = UINT64_MAX;
  const double number = 0.1;
  const char* text = "eleven long";
  const bool yes = true;
  const void* pointer = (const void*)0x123456789abc;
  TRACE_INSTANT("words", "thread", TRACE_SCOPE_THREAD);
  TRACE_INSTANT("words", "process", TRACE_SCOPE_PROCESS, "negative", V(INT32, negative));
  TRACE_INSTANT("words", "global", TRACE_SCOPE_GLOBAL, "unsigned", V(UINT32, unsigned_number), "yes", V(BOOL, yes));
  TRACE_COUNTER("words", "counter", 0x1234567890, "large negative", V(INT64, large_negative), "large", V(UINT64, large));
  TRACE_DURATION_BEGIN("words", "begin", "number", V(DOUBLE, number));
  TRACE_DURATION_END("words", "begin", "text", V(STRING, text));
  { TRACE_DURATION("words", "scope", "text", V(STRING, text), "pointer", V(POINTER, pointer), "null", TA_NULL()); }
  TRACE_ASYNC_BEGIN("words", "operation", 77, "koid", TA_KOID(99));
  TRACE_ASYNC_INSTANT("words", "operation", 77);
  TRACE_ASYNC_END("words", "operation", 77);
  TRACE_FLOW_BEGIN("other words", "flow", 88);
  TRACE_FLOW_STEP("other words", "flow", 88, "negative", V(INT32, negative));
  TRACE_FLOW_END("other words", "flow", 88);
  TRACE_INSTAFLOW_BEGIN("other words", "instaflow", "step", 99, "text", V(STRING, text));
  // The fast way, all strings being known.
  for (int32_t round = 0; round < 3; ++round) {
    for (uint32_t length = 0; length <= 17; ++length) {
      TRACE_INSTANT("words", "text", TRACE_SCOPE_THREAD, "round", V(INT32, round), "text",
                    TA_CHAR_ARRAY("0123456789abcdefg", length), "length", V(UINT32, length));
    }
    {
      TRACE_DURATION("words", "round", "round", V(INT32, round), "yes", V(BOOL, yes), "text", V(STRING, text), "pointer",
                     V(POINTER, pointer), "null", TA_NULL());
    }
    TRACE_COUNTER("words", "rounds", 1, "number", V(DOUBLE, number), "large", V(UINT64, large), "koid", TA_KOID(5),
                  "large negative", V(INT64, large_negative));
    TRACE_INSTAFLOW_STEP("other words", "instaflow", "step", 99, "round", V(INT32, round));
  }
  TRACE_BLOB(TRACE_BLOB_TYPE_DATA, "blob", "some bytes", 10);
  TRACE_BLOB_EVENT("words", "large blob", "some bytes", 10, "negative", V(INT32, negative));
  TRACE_BLOB_ATTACHMENT("words", "attachment", "some bytes", 10);
}
