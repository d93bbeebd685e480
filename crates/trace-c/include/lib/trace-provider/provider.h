// Joining the trace manager: what a program needs to be recorded.
//
// The functions without a connection to the manager (`zx_handle_t to_service`) find it by themselves. A
// program that starts before the manager joins it later; while a recording is running they return when this
// process is being recorded, or the manager has not responded for 5 s. A process has one provider, however
// many are created: the last that is destroyed ends it.
#ifndef LIB_TRACE_PROVIDER_PROVIDER_H_
#define LIB_TRACE_PROVIDER_PROVIDER_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lib/async/dispatcher.h>
#include <zircon/compiler.h>
#include <zircon/types.h>

__BEGIN_CDECLS

typedef struct trace_provider trace_provider_t;

// Packets of the FIFO between provider and manager, for programs that speak to it themselves.
typedef struct trace_provider_packet {
  uint16_t request;
  union {
    uint16_t data16;
    // Its name in older programs.
    uint16_t reserved;
  };
  uint32_t data32;
  uint64_t data64;
} trace_provider_packet_t;

#define TRACE_PROVIDER_FIFO_PROTOCOL_VERSION 1
#define TRACE_PROVIDER_STARTED (0x1)
#define TRACE_PROVIDER_SAVE_BUFFER (0x2)
#define TRACE_PROVIDER_STOPPED (0x3)
#define TRACE_PROVIDER_ALERT (0x4)
#define TRACE_PROVIDER_BUFFER_SAVED (0x100)

// All of these return NULL if `to_service` is not a connection, and close it in any case. `name` is cut to
// 100 bytes; if it is NULL, and in the functions without it, the name of the process is used. The synchronous
// functions return when the manager has answered; `out_already_started`, which may be NULL, receives whether
// a trace is running.
trace_provider_t* trace_provider_create(zx_handle_t to_service, async_dispatcher_t* dispatcher);
trace_provider_t* trace_provider_create_with_name(zx_handle_t to_service, async_dispatcher_t* dispatcher,
                                                  const char* name);
trace_provider_t* trace_provider_create_synchronously(zx_handle_t to_service, async_dispatcher_t* dispatcher,
                                                      const char* name, bool* out_already_started);
trace_provider_t* trace_provider_create_with_fdio(async_dispatcher_t* dispatcher);
trace_provider_t* trace_provider_create_with_name_fdio(async_dispatcher_t* dispatcher, const char* name);
trace_provider_t* trace_provider_create_synchronously_with_fdio(async_dispatcher_t* dispatcher, const char* name,
                                                                bool* out_already_started);

// Ends a running trace of this process and leaves the manager, if this is the last provider. Does nothing for
// NULL.
void trace_provider_destroy(trace_provider_t* provider);

// For trace::TraceProvider. A category has a name and a description.
typedef void (*trace_internal_add_category_t)(void* sink, const char* name, const char* description);
typedef void (*trace_internal_describe_categories_t)(void* data, trace_internal_add_category_t add, void* sink);
void trace_internal_provider_describe_categories(trace_provider_t* provider, trace_internal_describe_categories_t describe,
                                                 void* data);
void trace_internal_provider_get_config(trace_provider_t* provider, uint32_t* out_mode, trace_internal_add_category_t add,
                                        void* sink);

__END_CDECLS

// Older names.
#define trace_provider_create_etc(to_service, dispatcher) (trace_provider_create)(to_service, dispatcher)
#define trace_provider_create_with_name_etc(to_service, dispatcher, name) \
  (trace_provider_create_with_name)(to_service, dispatcher, name)
#define trace_provider_create_synchronously_etc(to_service, dispatcher, name, out_already_started) \
  (trace_provider_create_synchronously)(to_service, dispatcher, name, out_already_started)

#ifndef __cplusplus

// Older programs call the same functions without the first argument.
#define TRACE_INTERNAL_PICK_3(a, b, function, ...) function
#define TRACE_INTERNAL_PICK_4(a, b, c, function, ...) function
#define TRACE_INTERNAL_PICK_5(a, b, c, d, function, ...) function
#define trace_provider_create(...) \
  TRACE_INTERNAL_PICK_3(__VA_ARGS__, trace_provider_create, trace_provider_create_with_fdio, ~)(__VA_ARGS__)
#define trace_provider_create_with_name(...)                                                                            \
  TRACE_INTERNAL_PICK_4(__VA_ARGS__, trace_provider_create_with_name, trace_provider_create_with_name_fdio, ~)          \
  (__VA_ARGS__)
#define trace_provider_create_synchronously(...)                                                                        \
  TRACE_INTERNAL_PICK_5(__VA_ARGS__, trace_provider_create_synchronously, trace_provider_create_synchronously_with_fdio, ~) \
  (__VA_ARGS__)

#else

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lib/fit/function.h>
#include <lib/trace-engine/types.h>
#include <lib/zx/channel.h>

inline trace_provider_t* trace_provider_create(async_dispatcher_t* dispatcher) {
  return trace_provider_create_with_fdio(dispatcher);
}
inline trace_provider_t* trace_provider_create_with_name(async_dispatcher_t* dispatcher, const char* name) {
  return trace_provider_create_with_name_fdio(dispatcher, name);
}
inline trace_provider_t* trace_provider_create_synchronously(async_dispatcher_t* dispatcher, const char* name,
                                                             bool* out_already_started) {
  return trace_provider_create_synchronously_with_fdio(dispatcher, name, out_already_started);
}

namespace trace {

// The configuration of the trace that this process takes part in.
struct ProviderConfig {
  trace_buffering_mode_t buffering_mode = TRACE_BUFFERING_MODE_ONESHOT;
  // None means all.
  std::vector<std::string> categories;
};

struct KnownCategory {
  std::string name;
  std::string description;
};

using GetKnownCategoriesCallback = fit::function<std::vector<KnownCategory>()>;

// From its construction until its destruction the process can be recorded.
class TraceProvider {
 public:
  TraceProvider(zx::channel to_service, async_dispatcher_t* dispatcher)
      : TraceProvider(trace_provider_create(to_service.release(), dispatcher)) {}
  TraceProvider(zx::channel to_service, async_dispatcher_t* dispatcher, const char* name)
      : TraceProvider(trace_provider_create_with_name(to_service.release(), dispatcher, name)) {}
  // Finds the manager itself.
  explicit TraceProvider(async_dispatcher_t* dispatcher) : TraceProvider(trace_provider_create_with_fdio(dispatcher)) {}
  TraceProvider(async_dispatcher_t* dispatcher, const char* name)
      : TraceProvider(trace_provider_create_with_name_fdio(dispatcher, name)) {}
  TraceProvider(const TraceProvider&) = delete;
  TraceProvider& operator=(const TraceProvider&) = delete;
  virtual ~TraceProvider() { trace_provider_destroy(provider_); }

  // Returns false and leaves `out_provider` unchanged if the provider cannot be created.
  static bool CreateSynchronously(zx::channel to_service, async_dispatcher_t* dispatcher, const char* name,
                                  std::unique_ptr<TraceProvider>* out_provider, bool* out_already_started) {
    trace_provider_t* provider =
        trace_provider_create_synchronously(to_service.release(), dispatcher, name, out_already_started);
    return Keep(provider, out_provider);
  }
  static bool CreateSynchronously(async_dispatcher_t* dispatcher, const char* name,
                                  std::unique_ptr<TraceProvider>* out_provider, bool* out_already_started) {
    return Keep(trace_provider_create_synchronously_with_fdio(dispatcher, name, out_already_started), out_provider);
  }

  bool is_valid() const { return provider_ != nullptr; }

  // Empty while there is no trace.
  ProviderConfig GetProviderConfig() const {
    ProviderConfig config;
    uint32_t mode = 0;
    trace_internal_provider_get_config(
        provider_, &mode,
        [](void* sink, const char* name, const char*) { static_cast<ProviderConfig*>(sink)->categories.push_back(name); },
        &config);
    config.buffering_mode = static_cast<trace_buffering_mode_t>(mode);
    return config;
  }

  // Sets the function that returns the categories of this program, for a client that lists them. It is called
  // on a thread of the provider's.
  void SetGetKnownCategoriesCallback(GetKnownCategoriesCallback callback) {
    // It may be called at any time from here on, also when the provider was just destroyed.
    auto* kept = new GetKnownCategoriesCallback(std::move(callback));
    trace_internal_provider_describe_categories(
        provider_,
        [](void* data, trace_internal_add_category_t add, void* sink) {
          for (const KnownCategory& category : (*static_cast<GetKnownCategoriesCallback*>(data))()) {
            add(sink, category.name.c_str(), category.description.c_str());
          }
        },
        kept);
  }

 protected:
  explicit TraceProvider(trace_provider_t* provider) : provider_(provider) {}

  template <typename T>
  static bool Keep(trace_provider_t* provider, std::unique_ptr<T>* out_provider) {
    if (provider == nullptr) {
      return false;
    }
    out_provider->reset(new T(provider));
    return true;
  }

 private:
  trace_provider_t* const provider_;
};

// The same, for a program that has no connection to the manager to pass.
class TraceProviderWithFdio : public TraceProvider {
 public:
  explicit TraceProviderWithFdio(async_dispatcher_t* dispatcher) : TraceProvider(dispatcher) {}
  explicit TraceProviderWithFdio(async_dispatcher_t* dispatcher, const char* name) : TraceProvider(dispatcher, name) {}

  static bool CreateSynchronously(async_dispatcher_t* dispatcher, const char* name,
                                  std::unique_ptr<TraceProviderWithFdio>* out_provider, bool* out_already_started) {
    return Keep(trace_provider_create_synchronously_with_fdio(dispatcher, name, out_already_started), out_provider);
  }

 private:
  friend class TraceProvider;
  explicit TraceProviderWithFdio(trace_provider_t* provider) : TraceProvider(provider) {}
};

using TraceProviderEtc = TraceProvider;

}  // namespace trace

#endif  // __cplusplus

#endif  // LIB_TRACE_PROVIDER_PROVIDER_H_
