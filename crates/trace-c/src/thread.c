// The calling thread's control block, for events that are compiled into programs. They get there without a
// call, if its distance from the thread pointer is the same in each thread.
//
// It is where it belongs to the memory that is laid out when the program starts: in an executable, and in
// libtrace.so, which asks for that (TRACE_THREAD_FIXED). There is little of this memory for libraries that
// are loaded later, so the copies that libtrace.a leaves in plugins do not ask. What libtrace.so has takes
// the place of the weak functions.
#include <stdint.h>

#ifdef TRACE_THREAD_FIXED
#define MODEL __attribute__((tls_model("initial-exec")))
#define LINKAGE __attribute__((visibility("hidden")))
#define IS_FIXED 1
#else
#define MODEL
#define LINKAGE __attribute__((weak, visibility("hidden")))
#define IS_FIXED 0
#endif

// A control block without space: what a thread sees before it has one.
static uint64_t no_block[16];

static __thread void* current MODEL = no_block;

void trace_thread_set(void* block);
intptr_t trace_thread_offset(void);
int trace_thread_is_fixed(void);

LINKAGE void trace_thread_set(void* block) { current = block; }

LINKAGE intptr_t trace_thread_offset(void) {
#if defined(__x86_64__)
  char* pointer;
  __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
  char* pointer = (char*)__builtin_thread_pointer();
#endif
  return (char*)&current - pointer;
}

// Whether the distance is the same in each thread, also where this is not in the executable.
LINKAGE int trace_thread_is_fixed(void) { return IS_FIXED; }
