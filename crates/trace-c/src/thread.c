// The calling thread's control block, for events that are compiled into programs.
//
// In the part of the thread's memory that is laid out when the program starts, so its distance from the
// thread pointer is the same in each thread, and programs get there without a call.
#include <stdint.h>

// A control block without space: what a thread sees before it has one.
static uint64_t no_block[16];

static __thread void* current __attribute__((tls_model("initial-exec"))) = no_block;

void trace_thread_set(void* block);
intptr_t trace_thread_offset(void);

void trace_thread_set(void* block) { current = block; }

intptr_t trace_thread_offset(void) {
#if defined(__x86_64__)
  char* pointer;
  __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
  char* pointer = (char*)__builtin_thread_pointer();
#endif
  return (char*)&current - pointer;
}
