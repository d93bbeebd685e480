// Chromium's live bytes of categories, and events whose parts are known at run time.
#ifndef TRACE_CATEGORY_REGISTRY_H_
#define TRACE_CATEGORY_REGISTRY_H_

#include <lib/async-loop/cpp/loop.h>
#include <lib/async-loop/default.h>
#include <lib/trace/observer.h>
#include <trace/chromium.h>
#include <trace/trace_event_impl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace base {
namespace trace_event {

// The categories that were asked for, each with a byte that says whether it is recorded. There is a thread
// for it from the first one on.
class CategoryRegistry {
 public:
  static CategoryRegistry* GetInstance() {
    // It stays: bytes are read until the process ends.
    static CategoryRegistry* instance = new CategoryRegistry();
    return instance;
  }

  // Categories beyond this number share a byte that is 0.
  static constexpr size_t kMaxCategories = 4096;

  const unsigned char* Get(const char* name) {
    std::lock_guard<std::mutex> lock(lock_);
    auto found = categories_.find(name);
    if (found != categories_.end()) return &found->second->enabled;
    if (categories_.size() == kMaxCategories) return &Exhausted()->enabled;
    auto category = std::make_unique<Category>(name);
    category->Update();
    return &categories_.emplace(name, std::move(category)).first->second->enabled;
  }

  // The name that a byte was asked for with.
  static const char* NameOf(const unsigned char* enabled) {
    return reinterpret_cast<const Category*>(enabled)->name.c_str();
  }

 private:
  struct Category {
    explicit Category(const char* given) : name(given) {}
    void Update() { __atomic_store_n(&enabled, trace_is_category_enabled(name.c_str()) ? 1 : 0, __ATOMIC_RELAXED); }

    // The first member: its address is that of the category.
    unsigned char enabled = 0;
    std::string name;
  };

  static Category* Exhausted() {
    static Category* category = new Category("category-exhausted");
    return category;
  }

  CategoryRegistry() : loop_(&kAsyncLoopConfigNoAttachToCurrentThread) {
    loop_.StartThread("trace-categories");
    observer_.Start(loop_.dispatcher(), [this] {
      std::lock_guard<std::mutex> lock(lock_);
      for (auto& category : categories_) category.second->Update();
    });
  }

  std::mutex lock_;
  std::unordered_map<std::string, std::unique_ptr<Category>> categories_;
  async::Loop loop_;
  trace::TraceObserver observer_;
};

// The arguments of an event. Texts are copied.
class TraceArguments {
 public:
  static constexpr size_t kMaxSize = 2;

  TraceArguments() = default;
  template <typename T>
  TraceArguments(const char* name, const T& value) {
    Add(name, value);
  }
  template <typename T, typename U>
  TraceArguments(const char* name1, const T& value1, const char* name2, const U& value2) {
    Add(name1, value1);
    Add(name2, value2);
  }

  size_t size() const { return size_; }
  const char* const* names() const { return names_.data(); }
  const trace_arg_value_t* values() const { return values_.data(); }

 private:
  template <typename T>
  void Add(const char* name, const T& value) {
    held_[size_] = name;
    names_[size_] = held_[size_].c_str();
    values_[size_] = trace::internal::MakeValue(value);
    if (values_[size_].type == TRACE_ARG_STRING) {
      const trace_string_ref_t& text = values_[size_].string_value_ref;
      texts_[size_].assign(text.inline_string ? text.inline_string : "", trace_inline_string_ref_length(&text));
      values_[size_] = trace_make_string_arg_value(
          trace_make_inline_string_ref(texts_[size_].data(), texts_[size_].size()));
    }
    ++size_;
  }

  size_t size_ = 0;
  std::array<std::string, kMaxSize> held_;
  std::array<std::string, kMaxSize> texts_;
  std::array<const char*, kMaxSize + 1> names_ = {};
  std::array<trace_arg_value_t, kMaxSize + 1> values_ = {};
};

}  // namespace trace_event
}  // namespace base

namespace trace_event_internal {

using base::trace_event::TraceArguments;
using base::trace_event::TraceEventHandle;

// The type of an event of a phase, and whether it has an id; false if a recording has no such event.
inline bool TypeOf(char phase, uint32_t* type, bool* has_id) {
  *has_id = true;
  switch (phase) {
    case TRACE_EVENT_PHASE_BEGIN:
    case TRACE_EVENT_PHASE_COMPLETE:
      *has_id = false;
      *type = TRACE_INTERNAL_DURATION_BEGIN;
      return true;
    case TRACE_EVENT_PHASE_END:
      *has_id = false;
      *type = TRACE_INTERNAL_DURATION_END;
      return true;
    case TRACE_EVENT_PHASE_INSTANT:
    case TRACE_EVENT_PHASE_MARK:
    case TRACE_EVENT_PHASE_SAMPLE:
      *has_id = false;
      *type = TRACE_INTERNAL_INSTANT;
      return true;
    case TRACE_EVENT_PHASE_COUNTER:
      *type = TRACE_INTERNAL_COUNTER;
      return true;
    case TRACE_EVENT_PHASE_ASYNC_BEGIN:
    case TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN:
    case TRACE_EVENT_PHASE_CREATE_OBJECT:
      *type = TRACE_INTERNAL_ASYNC_BEGIN;
      return true;
    case TRACE_EVENT_PHASE_ASYNC_STEP_INTO:
    case TRACE_EVENT_PHASE_ASYNC_STEP_PAST:
    case TRACE_EVENT_PHASE_NESTABLE_ASYNC_INSTANT:
    case TRACE_EVENT_PHASE_SNAPSHOT_OBJECT:
      *type = TRACE_INTERNAL_ASYNC_INSTANT;
      return true;
    case TRACE_EVENT_PHASE_ASYNC_END:
    case TRACE_EVENT_PHASE_NESTABLE_ASYNC_END:
    case TRACE_EVENT_PHASE_DELETE_OBJECT:
      *type = TRACE_INTERNAL_ASYNC_END;
      return true;
    case TRACE_EVENT_PHASE_FLOW_BEGIN:
      *type = TRACE_INTERNAL_FLOW_BEGIN;
      return true;
    case TRACE_EVENT_PHASE_FLOW_STEP:
      *type = TRACE_INTERNAL_FLOW_STEP;
      return true;
    case TRACE_EVENT_PHASE_FLOW_END:
      *type = TRACE_INTERNAL_FLOW_END;
      return true;
    default:
      return false;
  }
}

// Records an event of a phase that a recording has; `micros` is null for now. The handle is all 0 if none was
// recorded.
inline TraceEventHandle Add(char phase, const unsigned char* category_group_enabled, const char* name,
                            const char* scope, unsigned long long id, unsigned long long bind_id, uint64_t thread_id,
                            const int64_t* micros, const TraceArguments* arguments, unsigned flags) {
  (void)bind_id;
  TraceEventHandle handle = {0, 0, 0};
  uint32_t type;
  bool has_id;
  if (*category_group_enabled == 0 || !TypeOf(phase, &type, &has_id)) return handle;
  const char* category = base::trace_event::CategoryRegistry::NameOf(category_group_enabled);
  trace_internal_event_t event =
      type == TRACE_INTERNAL_INSTANT ? trace_internal_make_instant(trace_internal_scope_of(flags))
      : has_id                       ? trace_internal_make_event_with(type, id)
                                     : trace_internal_make_event(type);
  (void)scope;
  if (micros) event = trace_internal_make_event_at(event, trace_internal_ticks_at(*micros * 1000));
  static const TraceArguments kNone;
  const TraceArguments& given = arguments ? *arguments : kNone;
  const trace_internal_call_t call = trace_internal_make_call(nullptr, category, name, given.names(), nullptr);
  trace_internal_write_copied_event(&call, &event, thread_id, given.values(), given.size());
  handle.chunk_seq = 1;
  return handle;
}

inline TraceEventHandle AddTraceEvent(char phase, const unsigned char* category_group_enabled, const char* name,
                                      const char* scope, unsigned long long id, unsigned flags,
                                      unsigned long long bind_id) {
  return Add(phase, category_group_enabled, name, scope, id, bind_id, 0, nullptr, nullptr, flags);
}
template <typename T>
TraceEventHandle AddTraceEvent(char phase, const unsigned char* category_group_enabled, const char* name,
                               const char* scope, unsigned long long id, unsigned flags, unsigned long long bind_id,
                               const char* name1, const T& value1) {
  const TraceArguments arguments(name1, value1);
  return Add(phase, category_group_enabled, name, scope, id, bind_id, 0, nullptr, &arguments, flags);
}
template <typename T, typename U>
TraceEventHandle AddTraceEvent(char phase, const unsigned char* category_group_enabled, const char* name,
                               const char* scope, unsigned long long id, unsigned flags, unsigned long long bind_id,
                               const char* name1, const T& value1, const char* name2, const U& value2) {
  const TraceArguments arguments(name1, value1, name2, value2);
  return Add(phase, category_group_enabled, name, scope, id, bind_id, 0, nullptr, &arguments, flags);
}
template <typename... Pairs>
TraceEventHandle AddTraceEventWithThreadIdAndTimestamp(char phase, const unsigned char* category_group_enabled,
                                                       const char* name, const char* scope, unsigned long long id,
                                                       uint64_t thread_id, int64_t timestamp, unsigned flags,
                                                       unsigned long long bind_id, const Pairs&... pairs) {
  const TraceArguments arguments(pairs...);
  return Add(phase, category_group_enabled, name, scope, id, bind_id, thread_id, &timestamp, &arguments, flags);
}

}  // namespace trace_event_internal

namespace base {
namespace trace_event {
namespace trace_event_internal = ::trace_event_internal;
}  // namespace trace_event
}  // namespace base

#endif  // TRACE_CATEGORY_REGISTRY_H_
