// The loop for C++. In C this is loop.h: older programs include it from there, too.
#ifndef LIB_ASYNC_LOOP_CPP_LOOP_H_
#define LIB_ASYNC_LOOP_CPP_LOOP_H_

#include <stdlib.h>

#include <lib/async-loop/loop.h>
#include <lib/async/default.h>

#ifdef __cplusplus

#include <lib/zx/time.h>

namespace async {

// Owns a loop. Destroy it after everything that uses its dispatcher.
class Loop {
 public:
  explicit Loop(const async_loop_config_t* config = nullptr) { async_loop_create(config, &loop_); }
  Loop(const Loop&) = delete;
  Loop(Loop&&) = delete;
  Loop& operator=(const Loop&) = delete;
  Loop& operator=(Loop&&) = delete;
  ~Loop() { async_loop_destroy(loop_); }

  async_loop_t* loop() const { return loop_; }
  async_dispatcher_t* dispatcher() const { return async_loop_get_dispatcher(loop_); }

  void Shutdown() { async_loop_shutdown(loop_); }
  zx_status_t Run(zx::time deadline = zx::time::infinite(), bool once = false) {
    return async_loop_run(loop_, deadline.get(), once);
  }
  zx_status_t RunUntilIdle() { return async_loop_run_until_idle(loop_); }
  void Quit() { async_loop_quit(loop_); }
  zx_status_t ResetQuit() { return async_loop_reset_quit(loop_); }
  async_loop_state_t GetState() const { return async_loop_get_state(loop_); }
  zx_status_t StartThread(const char* name = nullptr, thrd_t* out_thread = nullptr) {
    return async_loop_start_thread(loop_, name, out_thread);
  }
  void JoinThreads() { async_loop_join_threads(loop_); }

 private:
  async_loop_t* loop_ = nullptr;
};

}  // namespace async

#endif  // __cplusplus

#endif  // LIB_ASYNC_LOOP_CPP_LOOP_H_
