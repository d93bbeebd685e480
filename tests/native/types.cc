// What values of all kinds of types become.
#include <trace/event.h>

#include <lib/trace-provider/start.h>

#include <cstring>
#include <string>
#include <string_view>

enum Plain { kPlain = 3 };
enum Small : unsigned char { kSmall = 200 };

struct Text {
  const char* data() const { return "own class"; }
  size_t length() const { return 9; }
};

static int evaluations = 0;
static int Count() { return ++evaluations; }

#define EACH(value) TRACE_INSTANT("types", #value, TRACE_SCOPE_THREAD, "value", value)

int main() {
  trace_provider_start();
  bool yes = true;
  signed char int8 = -8;
  unsigned char uint8 = 8;
  short int16 = -16;
  unsigned short uint16 = 16;
  int int32 = -32;
  unsigned uint32 = 32;
  long int64 = -64;
  unsigned long uint64 = 64;
  long long longer = -65;
  const volatile int changing = 7;
  float single = 0.5f;
  double twice = 0.25;
  long double most = 0.125L;
  std::string string = "string";
  const std::string constant = "constant";
  std::string_view view = "view";
  const char* text = "text";
  const char* none = nullptr;
  char array[8] = "array";
  const char full[3] = {'a', 'b', 'c'};
  void* address = reinterpret_cast<void*>(0x1000);
  char* writable = reinterpret_cast<char*>(0x2000);
  zx_koid_t koid = 99;
  Plain plain = kPlain;
  Small small = kSmall;
  struct {
    unsigned three : 3;
  } bits = {5};
  for (int round = 0; round < 2; ++round) {
    EACH(nullptr);
    EACH(yes);
    EACH(int8);
    EACH(uint8);
    EACH(int16);
    EACH(uint16);
    EACH(int32);
    EACH(uint32);
    EACH(int64);
    EACH(uint64);
    EACH(longer);
    EACH(static_cast<int>(changing));
    EACH(single);
    EACH(twice);
    EACH(most);
    EACH(string);
    EACH(constant);
    EACH(view);
    EACH(text);
    EACH(none);
    EACH("literal");
    EACH(array);
    EACH(full);
    EACH(address);
    EACH(writable);
    EACH(koid);
    EACH(TA_KOID(koid));
    EACH(plain);
    EACH(small);
    EACH(+bits.three);
    EACH(Text());
    EACH(string + " that is temporary");
    EACH(TA_STRING(text));
    EACH(TA_CHAR_ARRAY(text, 2));
    EACH(TA_NULL());
  }
  TRACE_INSTANT("types", "fifteen", TRACE_SCOPE_THREAD, "1", 1, "2", 2u, "3", 3l, "4", 4ul, "5", 0.5, "6", "six", "7", string,
                "8", true, "9", nullptr, "10", 'A', "11", plain, "12", view, "13", TA_KOID(13), "14", address, "15",
                std::string("fifteen"));
  {
    TRACE_DURATION("types", "temporary", "text", string + " lives until the end");
    TRACE_DURATION("types", "inner", "view", std::string_view(string).substr(1, 3), "number", Count());
    std::string other(100, 'x');
    TRACE_INSTANT("types", "between", TRACE_SCOPE_THREAD, "length", other.size());
  }
  // Evaluated once where it is recorded, never where it is not.
  TRACE_INSTANT("types", "evaluated", TRACE_SCOPE_THREAD, "count", Count());
  TRACE_INSTANT("unwanted", "not evaluated", TRACE_SCOPE_THREAD, "count", Count());
  { TRACE_DURATION("unwanted", "not evaluated", "count", Count()); }
  return evaluations == 2 ? 0 : 1;
}
