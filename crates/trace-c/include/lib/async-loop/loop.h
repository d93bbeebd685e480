// A loop that runs callbacks, on threads of its own or on a thread of the program that runs it.
#ifndef LIB_ASYNC_LOOP_LOOP_H_
#define LIB_ASYNC_LOOP_LOOP_H_

#include <stdbool.h>
#include <stddef.h>
#include <threads.h>

#include <lib/async/dispatcher.h>
#include <zircon/compiler.h>
#include <zircon/types.h>

__BEGIN_CDECLS

typedef struct async_loop async_loop_t;

typedef void(async_loop_callback_t)(async_loop_t* loop, void* data);

typedef async_dispatcher_t* (*async_loop_get_default_dispatcher_t)(void);
typedef void (*async_loop_set_default_dispatcher_t)(async_dispatcher_t* dispatcher);

typedef struct async_loop_default_accessors {
  async_loop_get_default_dispatcher_t getter;
  async_loop_set_default_dispatcher_t setter;
} async_loop_default_accessors_t;

typedef struct async_loop_config {
  // How the default dispatcher of a thread is found and set; NULL where threads get none.
  async_loop_default_accessors_t default_accessors;
  // Whether the loop is the default dispatcher of the thread that makes it, which then has to destroy it.
  bool make_default_for_current_thread;
  // Called before and after each unit of work; each may be NULL.
  async_loop_callback_t* prologue;
  async_loop_callback_t* epilogue;
  void* data;
  // Has no effect here.
  bool irq_support;
} async_loop_config_t;

extern const async_loop_config_t kAsyncLoopConfigNeverAttachToThread;
// Older names of those in default.h.
extern const async_loop_config_t kAsyncLoopConfigAttachToThread;
extern const async_loop_config_t kAsyncLoopConfigNoAttachToThread;

typedef uint32_t async_loop_state_t;
#define ASYNC_LOOP_RUNNABLE ((async_loop_state_t)0)
#define ASYNC_LOOP_QUIT ((async_loop_state_t)1)
#define ASYNC_LOOP_SHUTDOWN ((async_loop_state_t)2)

// `config` may be NULL: then the loop is not the default of any thread.
zx_status_t async_loop_create(const async_loop_config_t* config, async_loop_t** out_loop);
async_dispatcher_t* async_loop_get_dispatcher(async_loop_t* loop);
async_loop_t* async_loop_from_dispatcher(async_dispatcher_t* dispatcher);
// Ends the loop's threads and drops pending work. Must not be called from a callback.
void async_loop_shutdown(async_loop_t* loop);
// Shuts the loop down and frees it. Must not be called from a callback, or while another thread uses the
// loop.
void async_loop_destroy(async_loop_t* loop);
// Works until the deadline, or for one unit of work. ZX_ERR_TIMED_OUT, ZX_ERR_CANCELED after a quit,
// ZX_ERR_BAD_STATE after a shutdown; ZX_OK after `once`.
zx_status_t async_loop_run(async_loop_t* loop, zx_time_t deadline, bool once);
// Runs pending work until there is none left.
zx_status_t async_loop_run_until_idle(async_loop_t* loop);
// Makes every thread that runs the loop return after its current unit of work.
void async_loop_quit(async_loop_t* loop);
// Ends a quit. ZX_ERR_BAD_STATE while a thread runs the loop, or after a shutdown.
zx_status_t async_loop_reset_quit(async_loop_t* loop);
async_loop_state_t async_loop_get_state(async_loop_t* loop);
// `name` and `out_thread` may be NULL. The thread is the loop's to join.
zx_status_t async_loop_start_thread(async_loop_t* loop, const char* name, thrd_t* out_thread);
void async_loop_join_threads(async_loop_t* loop);

__END_CDECLS

#endif  // LIB_ASYNC_LOOP_LOOP_H_
