// Chromium's names for recordings inside one process, over lib/trace-provider/local.h:
//
//   using base::trace_event::TraceConfig;
//   using base::trace_event::TraceLog;
//   TraceLog::GetInstance()->SetEnabled(TraceConfig("app,-app.verbose", ""), TraceLog::RECORDING_MODE);
//   ...
//   TraceLog::GetInstance()->SetDisabled();
//   TraceLog::GetInstance()->Flush(callback);
//
// What is different: the archive is in Fuchsia's trace format, which `trace convert` turns into JSON. A
// recording into the console is none: use the variable TRACE_ECHO.
#ifndef TRACE_TRACE_LOG_H_
#define TRACE_TRACE_LOG_H_

#include <lib/trace-provider/local.h>
#include <lib/trace-provider/start.h>
#include <trace/chromium.h>
#include <trace/trace_event_impl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace base {

// A text that several owners share.
class RefCountedString {
 public:
  explicit RefCountedString(std::string text) : text_(std::move(text)) {}
  const std::string& data() const { return text_; }
  size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

namespace trace_event {

enum TraceRecordMode {
  // Record until the buffer is full.
  RECORD_UNTIL_FULL,
  // Record until recording ends. The buffer is fixed in size: the oldest events make room.
  RECORD_CONTINUOUSLY,
  // The same as RECORD_UNTIL_FULL, in the largest buffer.
  RECORD_AS_MUCH_AS_POSSIBLE,
};

// What is recorded: a list of categories with commas, in which `-name` excludes one, `name*` is all that
// begin so, `-*` excludes all that are not named, and names that begin with `disabled-by-default-` are
// recorded only if they are named.
class TraceConfig {
 public:
  TraceConfig() = default;
  explicit TraceConfig(std::string_view category_filter, TraceRecordMode mode = RECORD_UNTIL_FULL)
      : mode_(mode) {
    SetCategories(category_filter);
  }
  // The options are `record-until-full`, `record-continuously` and `record-as-much-as-possible`; others are
  // ignored.
  TraceConfig(std::string_view category_filter, std::string_view trace_options) {
    SetCategories(category_filter);
    if (trace_options.find("record-continuously") != std::string_view::npos) {
      mode_ = RECORD_CONTINUOUSLY;
    } else if (trace_options.find("record-as-much-as-possible") != std::string_view::npos) {
      mode_ = RECORD_AS_MUCH_AS_POSSIBLE;
    }
  }

  TraceRecordMode GetTraceRecordMode() const { return mode_; }
  void SetTraceRecordMode(TraceRecordMode mode) { mode_ = mode; }

  // The list for trace_local_start().
  std::string categories() const {
    if (excludes_all_) return has_names_ ? categories_ : "-*";
    return has_inclusions_ ? categories_ : "*" + categories_;
  }

 private:
  static constexpr std::string_view kDisabledByDefault = "disabled-by-default-";

  void SetCategories(std::string_view filter) {
    while (!filter.empty()) {
      size_t comma = filter.find(',');
      std::string_view name = filter.substr(0, comma);
      filter.remove_prefix(comma == std::string_view::npos ? filter.size() : comma + 1);
      while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
      while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
      if (name.empty()) continue;
      // Only what is included is recorded then.
      if (name == "-*") {
        excludes_all_ = true;
        continue;
      }
      // As soon as one is included, others have to be, too.
      has_names_ |= name.front() != '-';
      has_inclusions_ |= name.front() != '-' && name.substr(0, kDisabledByDefault.size()) != kDisabledByDefault;
      categories_ += ',';
      categories_ += name;
    }
  }

  std::string categories_;
  bool excludes_all_ = false;
  bool has_names_ = false;
  bool has_inclusions_ = false;
  TraceRecordMode mode_ = RECORD_UNTIL_FULL;
};

// The recordings of this program.
class TraceLog {
 public:
  enum Mode : uint8_t {
    RECORDING_MODE = 1 << 0,
  };

  // Gets a piece of an archive, and whether there are more. Must not throw.
  using OutputCallback = std::function<void(const std::shared_ptr<RefCountedString>&, bool has_more_events)>;

  // Gets each event in place of the recording, on the thread of the event. `thread_will_flush` is false: no
  // thread has events of its own to flush. Must not throw.
  using AddTraceEventOverrideFunction = void (*)(TraceEvent* event, bool thread_will_flush, TraceEventHandle* handle);
  // The same, and says whether the event is recorded as well.
  using AddTraceEventFilterFunction = bool (*)(TraceEvent* event, bool thread_will_flush, TraceEventHandle* handle);
  // Called when a thread flushes the recording.
  using OnFlushFunction = void (*)();
  // Gets the end of a complete duration, in ticks, directly after the function for all events had the
  // duration, with the handle that it has filled in.
  using UpdateDurationFunction = void (*)(const unsigned char* category_group, const char* name,
                                          TraceEventHandle handle, uint64_t thread_id, bool explicit_timestamps,
                                          const zx_ticks_t& now, const zx_ticks_t& thread_now);

  static TraceLog* GetInstance() {
    static TraceLog instance;
    return &instance;
  }

  // Begins to record. While a recording goes on, this does nothing.
  void SetEnabled(const TraceConfig& config, uint8_t modes_to_enable = RECORDING_MODE) {
    if ((modes_to_enable & RECORDING_MODE) == 0 || IsEnabled()) return;
    bool is_circular = config.GetTraceRecordMode() == RECORD_CONTINUOUSLY;
    uint32_t size = config.GetTraceRecordMode() == RECORD_AS_MUCH_AS_POSSIBLE ? kLargestBuffer : 0;
    trace_local_start(config.categories().c_str(),
                      is_circular ? TRACE_BUFFERING_MODE_CIRCULAR : TRACE_BUFFERING_MODE_ONESHOT, size);
  }

  // Ends the recording, and keeps it for Flush().
  void SetDisabled(uint8_t modes_to_disable = RECORDING_MODE) {
    if ((modes_to_disable & RECORDING_MODE) != 0) trace_local_stop();
  }

  bool IsEnabled() const { return trace_local_is_recording(); }

  // Sets functions that get each event of all recordings of this process, a manager's too, or, where that
  // is nullptr, ends that. Each event that begins afterwards is seen once, a complete duration when it
  // ends. This waits until the functions before have returned on other threads. Events that they record are
  // recorded.
  void SetAddTraceEventOverrides(const AddTraceEventOverrideFunction& add_event_override,
                                 const OnFlushFunction& on_flush_callback,
                                 const UpdateDurationFunction& update_duration_callback) {
    SetOverrides({add_event_override, nullptr, update_duration_callback}, on_flush_callback);
  }
  void SetAddTraceEventOverrides(const AddTraceEventFilterFunction& add_event_filter,
                                 const OnFlushFunction& on_flush_callback,
                                 const UpdateDurationFunction& update_duration_callback) {
    SetOverrides({nullptr, add_event_filter, update_duration_callback}, on_flush_callback);
  }
  void SetAddTraceEventOverrides(std::nullptr_t, const OnFlushFunction& on_flush_callback,
                                 const UpdateDurationFunction& update_duration_callback) {
    SetOverrides({nullptr, nullptr, update_duration_callback}, on_flush_callback);
  }

  // Ends the recording, if that was not done, and delivers it on this thread. If there is none, the
  // callback gets one empty piece.
  void Flush(const OutputCallback& callback, bool use_worker_thread = false) {
    (void)use_worker_thread;
    if (OnFlushFunction on_flush = on_flush_.load()) on_flush();
    auto deliver = [](void* context, const uint8_t* bytes, size_t size, bool is_last) {
      auto piece = std::make_shared<RefCountedString>(std::string(reinterpret_cast<const char*>(bytes), size));
      (*static_cast<const OutputCallback*>(context))(piece, !is_last);
    };
    if (!trace_local_flush(deliver, const_cast<OutputCallback*>(&callback), nullptr)) {
      callback(std::make_shared<RefCountedString>(std::string()), false);
    }
  }

  // Ends the recording and discards it.
  void CancelTracing(const OutputCallback& callback) {
    trace_local_flush(nullptr, nullptr, nullptr);
    callback(std::make_shared<RefCountedString>(std::string()), false);
  }

 private:
  static constexpr uint32_t kLargestBuffer = 64;

  struct Overrides {
    AddTraceEventOverrideFunction override_event;
    AddTraceEventFilterFunction filter_event;
    UpdateDurationFunction update_duration;
  };

  void SetOverrides(const Overrides& overrides, OnFlushFunction on_flush) {
    on_flush_.store(on_flush);
    if (!overrides.override_event && !overrides.filter_event && !overrides.update_duration) {
      trace_set_event_hook(nullptr, nullptr);
      return;
    }
    // They stay: a thread may use them.
    trace_set_event_hook(OnEvent, new Overrides(overrides));
  }

  static bool OnEvent(void* context, const trace_hook_event_t* hook_event) {
    const Overrides* overrides = static_cast<const Overrides*>(context);
    TraceEvent event(*hook_event);
    TraceEventHandle handle = {0, 0, 0};
    bool is_recorded = !overrides->override_event;
    if (overrides->override_event) overrides->override_event(&event, false, &handle);
    if (overrides->filter_event) is_recorded = overrides->filter_event(&event, false, &handle);
    if (overrides->update_duration && hook_event->type == TRACE_HOOK_DURATION_COMPLETE) {
      overrides->update_duration(event.category_group(), event.name(), handle, event.thread_id(), false,
                                 hook_event->end, 0);
    }
    return is_recorded;
  }

  std::atomic<OnFlushFunction> on_flush_{nullptr};

  TraceLog() = default;
};

}  // namespace trace_event
}  // namespace base

#endif  // TRACE_TRACE_LOG_H_
