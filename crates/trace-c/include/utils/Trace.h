// Android's <utils/Trace.h>: sections that last as long as a C++ scope.
#pragma once

#include <cutils/trace.h>

#define TRACE_INTERNAL_ATRACE_JOIN(a, b) a##b
#define TRACE_INTERNAL_ATRACE_NAMED(line) TRACE_INTERNAL_ATRACE_JOIN(trace_internal_section_, line)

// A section of ATRACE_TAG, until the end of the scope.
#define ATRACE_NAME(name) ::android::ScopedTrace TRACE_INTERNAL_ATRACE_NAMED(__LINE__)(ATRACE_TAG, name)
// The same, named after the function.
#define ATRACE_CALL() ATRACE_NAME(__FUNCTION__)

namespace android {

class ScopedTrace {
public:
    ScopedTrace(uint64_t tag, const char* name) : tag_(tag) { atrace_begin(tag_, name); }
    ~ScopedTrace() { atrace_end(tag_); }
    ScopedTrace(const ScopedTrace&) = delete;
    ScopedTrace& operator=(const ScopedTrace&) = delete;

private:
    uint64_t tag_;
};

}  // namespace android
