// The same in C++.
#include <trace/event.h>

extern "C" void DoSomething(int a, const char* text);

static void Do(int a, std::string b) { TRACE_DURATION("example", "DoSomething", "a", a, "b", b); }

void DoSomething(int a, const char* text) { Do(a, text); }
