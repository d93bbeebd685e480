// Chromium's names for recordings inside one process, over lib/trace-provider/local.h and trace-json/c_api.h:
//
//   using base::trace_event::TraceConfig;
//   using base::trace_event::TraceLog;
//   TraceLog::GetInstance()->SetEnabled(TraceConfig("app,-app.verbose", ""), TraceLog::RECORDING_MODE);
//   ...
//   TraceLog::GetInstance()->SetDisabled();
//   TraceLog::GetInstance()->Flush(callback);
//
// Link with -ltrace, and with -ltracejson if Flush(), TraceEvent::AppendAsJSON() or a TraceConfig in JSON is
// used. docs/c.md#chromium lists what is different.
#ifndef TRACE_TRACE_LOG_H_
#define TRACE_TRACE_LOG_H_

#include <lib/trace-provider/local.h>
#include <lib/trace-provider/start.h>
#include <trace-json/c_api.h>
#include <trace/category_registry.h>
#include <trace/chromium.h>
#include <trace/trace_event_impl.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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
  // As RECORD_UNTIL_FULL, in the largest buffer.
  RECORD_AS_MUCH_AS_POSSIBLE,
  // Print events: refused with a message. TRACE_ECHO=1 in the environment prints them.
  ECHO_TO_CONSOLE,
};

// What is recorded: categories, and a mode.
class TraceConfig {
 public:
  TraceConfig() = default;
  // JSON, as `{"included_categories":["app*"],"record_mode":"record-continuously"}`; "" is the default. A
  // text that is no JSON, such as a list of categories, records nothing, and the reason is printed on stderr:
  // a list needs a second argument.
  explicit TraceConfig(std::string_view config) {
    auto take = [](void* context, const trace_json_config_t* read) {
      TraceConfig* self = static_cast<TraceConfig*>(context);
      self->list_ = read->categories;
      self->mode_ = read->to_console ? ECHO_TO_CONSOLE : static_cast<TraceRecordMode>(read->mode);
      self->buffer_size_mib_ = static_cast<uint32_t>((read->buffer_size_kib + 1023) / 1024);
    };
    is_valid_ = trace_json_read_config(config.data(), config.size(), take, this);
  }
  // A list of categories with commas, in which `-name` excludes one, `name*` is all that begin so, `-*`
  // excludes all that are not named, and names that begin with `disabled-by-default-` are recorded only if
  // they are named. Empty names are skipped.
  TraceConfig(std::string_view category_filter, TraceRecordMode mode) : mode_(mode) { SetCategories(category_filter); }
  // The options, with commas: `record-until-full`, `record-continuously`, `record-as-much-as-possible`,
  // `trace-to-console`, `enable-systrace`, which is not recorded, and `enable-argument-filter`. With another
  // one nothing is recorded, and stderr says so.
  TraceConfig(std::string_view category_filter, std::string_view trace_options) {
    SetCategories(category_filter);
    ForEach(trace_options, [this](std::string_view option) {
      if (option == "record-until-full") {
        mode_ = RECORD_UNTIL_FULL;
      } else if (option == "record-continuously") {
        mode_ = RECORD_CONTINUOUSLY;
      } else if (option == "record-as-much-as-possible") {
        mode_ = RECORD_AS_MUCH_AS_POSSIBLE;
      } else if (option == "trace-to-console") {
        mode_ = ECHO_TO_CONSOLE;
      } else if (option == "enable-argument-filter") {
        is_argument_filter_enabled_ = true;
      } else if (option == "enable-systrace") {
        std::fputs("trace: enable-systrace: events of the kernel are recorded by `trace record` alone\n", stderr);
      } else {
        is_valid_ = false;
        std::string shown(option.substr(0, 100));
        std::replace_if(shown.begin(), shown.end(), [](char letter) { return letter < ' ' || letter == 0x7f; }, '?');
        std::fprintf(stderr, "trace: nothing is recorded: \"%s\" is no option of a TraceConfig\n", shown.c_str());
      }
    });
  }

  TraceRecordMode GetTraceRecordMode() const { return mode_; }
  void SetTraceRecordMode(TraceRecordMode mode) { mode_ = mode; }
  // Whether TraceLog::Flush() asks the predicate which arguments it writes.
  bool IsArgumentFilterEnabled() const { return is_argument_filter_enabled_; }
  void EnableArgumentFilter() { is_argument_filter_enabled_ = true; }
  bool IsValid() const { return is_valid_; }
  // 0: the default of the mode.
  uint32_t buffer_size_mib() const { return buffer_size_mib_; }

  // The list for trace_local_start().
  std::string categories() const {
    if (!list_.empty()) return list_;
    if (excludes_all_) return has_names_ ? categories_ : "-*";
    return has_inclusions_ ? categories_ : "*" + categories_;
  }

 private:
  static constexpr std::string_view kDisabledByDefault = "disabled-by-default-";

  template <typename F>
  static void ForEach(std::string_view list, const F& function) {
    while (!list.empty()) {
      size_t comma = list.find(',');
      std::string_view name = list.substr(0, comma);
      list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
      while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
      while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
      if (!name.empty()) function(name);
    }
  }

  void SetCategories(std::string_view filter) {
    ForEach(filter, [this](std::string_view name) {
      // Only what is included is recorded then.
      if (name == "-*") {
        excludes_all_ = true;
        return;
      }
      // As soon as one is included, others have to be, too.
      has_names_ |= name.front() != '-';
      has_inclusions_ |= name.front() != '-' && name.substr(0, kDisabledByDefault.size()) != kDisabledByDefault;
      categories_ += ',';
      categories_ += name;
    });
  }

  std::string categories_;
  // Of JSON.
  std::string list_;
  bool is_valid_ = true;
  bool excludes_all_ = false;
  bool has_names_ = false;
  bool has_inclusions_ = false;
  bool is_argument_filter_enabled_ = false;
  uint32_t buffer_size_mib_ = 0;
  TraceRecordMode mode_ = RECORD_UNTIL_FULL;
};

// How full a recording is.
struct TraceLogStatus {
  // Events of the smallest size, for all of which the buffer would have room.
  uint32_t event_capacity = 0;
  uint32_t event_count = 0;
};

// The recordings of this program.
class TraceLog {
 public:
  enum Mode : uint8_t {
    RECORDING_MODE = 1 << 0,
  };

  // Gets a piece of a recording, and whether there are more. Must not throw.
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

  // Is called when a recording of TraceLog's has begun, and when one has ended, on the thread that does so.
  // Must not throw. trace::TraceObserver sees recordings of a manager, too.
  class EnabledStateObserver {
   public:
    virtual ~EnabledStateObserver() = default;
    virtual void OnTraceLogEnabled() = 0;
    virtual void OnTraceLogDisabled() = 0;
  };

  static TraceLog* GetInstance() {
    // It stays: a worker thread may flush when the process ends.
    static TraceLog* instance = new TraceLog();
    return instance;
  }

  // Begins to record, with the processor time of threads. While a recording goes on, this does nothing.
  void SetEnabled(const TraceConfig& config, uint8_t modes_to_enable = RECORDING_MODE) {
    if ((modes_to_enable & RECORDING_MODE) == 0 || !config.IsValid() || IsEnabled()) return;
    if (config.GetTraceRecordMode() == ECHO_TO_CONSOLE) {
      std::fputs("trace: nothing is recorded: trace-to-console needs TRACE_ECHO=1 in the environment\n", stderr);
      return;
    }
    std::string categories = config.categories();
    trace_local_options_t options = {};
    options.categories = categories.c_str();
    options.mode = config.GetTraceRecordMode() == RECORD_CONTINUOUSLY ? TRACE_BUFFERING_MODE_CIRCULAR
                                                                      : TRACE_BUFFERING_MODE_ONESHOT;
    options.buffer_size_mib = config.buffer_size_mib() != 0                                ? config.buffer_size_mib()
                              : config.GetTraceRecordMode() == RECORD_AS_MUCH_AS_POSSIBLE ? kLargestBuffer
                                                                                          : 0;
    options.thread_time = true;
    // Arguments of the recording before, which this one discards, stay filtered until then.
    const bool was_filtered = is_filtered_;
    is_filtered_ = was_filtered || config.IsArgumentFilterEnabled();
    const bool has_begun = trace_local_start_with(&options);
    is_filtered_ = has_begun ? config.IsArgumentFilterEnabled() : was_filtered;
    if (!has_begun) return;
    buffer_size_mib_ = options.buffer_size_mib != 0 ? options.buffer_size_mib : kDefaultBuffer;
    Notify(&EnabledStateObserver::OnTraceLogEnabled);
  }

  // Ends the recording, and keeps it for Flush().
  void SetDisabled(uint8_t modes_to_disable = RECORDING_MODE) {
    if ((modes_to_disable & RECORDING_MODE) != 0 && trace_local_stop()) {
      Notify(&EnabledStateObserver::OnTraceLogDisabled);
    }
  }

  bool IsEnabled() const { return trace_local_is_recording(); }

  // Reads the buffer of a recording that goes on.
  TraceLogStatus GetStatus() const {
    TraceLogStatus status;
    trace_local_summary_t summary = {};
    if (IsEnabled() && trace_local_get_summary(&summary)) {
      status.event_count = static_cast<uint32_t>(summary.events);
      status.event_capacity = (buffer_size_mib_ << 20) / kSmallestEvent;
    }
    return status;
  }

  // A byte that is not 0 while events of these categories are recorded, and stays for the rest of the
  // process's life. A forked child has those of its parent.
  static const unsigned char* GetCategoryGroupEnabled(const char* category_group) {
    return CategoryRegistry::GetInstance()->Get(category_group);
  }
  static const char* GetCategoryGroupName(const unsigned char* category_group_enabled) {
    return CategoryRegistry::NameOf(category_group_enabled);
  }

  void AddEnabledStateObserver(EnabledStateObserver* observer) {
    std::lock_guard<std::mutex> lock(lock_);
    observers_.push_back(observer);
  }
  // It may still be called by a thread that is doing so.
  void RemoveEnabledStateObserver(EnabledStateObserver* observer) {
    std::lock_guard<std::mutex> lock(lock_);
    observers_.erase(std::remove(observers_.begin(), observers_.end(), observer), observers_.end());
  }
  bool HasEnabledStateObserver(EnabledStateObserver* observer) const {
    std::lock_guard<std::mutex> lock(lock_);
    return std::find(observers_.begin(), observers_.end(), observer) != observers_.end();
  }

  // Says which arguments Flush() writes, if the TraceConfig has the argument filter. Without a predicate it
  // writes none then.
  void SetArgumentFilterPredicate(const ArgumentFilterPredicate& predicate) {
    std::lock_guard<std::mutex> lock(lock_);
    predicate_ = predicate;
  }
  // Pieces have no metadata of the system, which it would choose from.
  void SetMetadataFilterPredicate(const MetadataFilterPredicate&) {}

  // Adds one event, as the functions of trace_event_internal do. A complete event is recorded as a begin, and
  // UpdateTraceEventDuration() as its end: events of a thread have to nest. `thread_id` is that of gettid, or
  // 0 for the calling thread. The timestamp is in microseconds of CLOCK_MONOTONIC, as TRACE_TIME_TICKS_NOW().
  TraceEventHandle AddTraceEventWithThreadIdAndTimestamp(char phase, const unsigned char* category_group_enabled,
                                                         const char* name, const char* scope, unsigned long long id,
                                                         unsigned long long bind_id, uint64_t thread_id,
                                                         int64_t timestamp, TraceArguments* arguments, unsigned flags) {
    return trace_event_internal::Add(phase, category_group_enabled, name, scope, id, bind_id, thread_id, &timestamp,
                                     arguments, flags);
  }
  TraceEventHandle AddTraceEvent(char phase, const unsigned char* category_group_enabled, const char* name,
                                 const char* scope, unsigned long long id, TraceArguments* arguments, unsigned flags) {
    return trace_event_internal::Add(phase, category_group_enabled, name, scope, id, 0, 0, nullptr, arguments, flags);
  }
  void UpdateTraceEventDuration(const unsigned char* category_group_enabled, const char* name, TraceEventHandle) {
    trace_event_internal::Add(TRACE_EVENT_PHASE_END, category_group_enabled, name, nullptr, 0, 0, 0, nullptr, nullptr,
                              TRACE_EVENT_FLAG_NONE);
  }

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

  // Ends the recording, if that was not done, and delivers it as JSON: on this thread, or on one of its own;
  // then the process has to stay until the last piece. Pieces are events with commas between them, without
  // brackets: TraceResultBuffer makes a document of them. Without a recording, the callback gets one empty
  // piece.
  void Flush(const OutputCallback& callback, bool use_worker_thread = false) {
    SetDisabled();
    if (OnFlushFunction on_flush = on_flush_.load()) on_flush();
    ArgumentFilterPredicate predicate;
    {
      std::lock_guard<std::mutex> lock(lock_);
      if (is_filtered_) predicate = predicate_ ? predicate_ : StripAll;
    }
    std::string archive;
    auto take = [](void* context, const uint8_t* bytes, size_t size, bool) {
      static_cast<std::string*>(context)->append(reinterpret_cast<const char*>(bytes), size);
    };
    trace_local_flush(take, &archive, nullptr);
    if (use_worker_thread) {
      std::thread([callback, predicate, archive = std::move(archive)] { Write(archive, predicate, callback); }).detach();
    } else {
      Write(archive, predicate, callback);
    }
  }

  // As Flush(), on this thread, as pieces of an archive in Fuchsia's format, for `trace convert`. Nothing if
  // the TraceConfig has the argument filter: archives have all arguments.
  void FlushFxt(const OutputCallback& callback) {
    SetDisabled();
    if (OnFlushFunction on_flush = on_flush_.load()) on_flush();
    auto deliver = [](void* context, const uint8_t* bytes, size_t size, bool is_last) {
      auto piece = std::make_shared<RefCountedString>(std::string(reinterpret_cast<const char*>(bytes), size));
      (*static_cast<const OutputCallback*>(context))(piece, !is_last);
    };
    if (is_filtered_) {
      std::fputs("trace: an archive has all arguments, which enable-argument-filter is against: use Flush()\n", stderr);
      trace_local_flush(nullptr, nullptr, nullptr);
    }
    if (is_filtered_ || !trace_local_flush(deliver, const_cast<OutputCallback*>(&callback), nullptr)) {
      callback(std::make_shared<RefCountedString>(std::string()), false);
    }
  }

  // Ends the recording and discards it.
  void CancelTracing(const OutputCallback& callback) {
    SetDisabled();
    trace_local_flush(nullptr, nullptr, nullptr);
    callback(std::make_shared<RefCountedString>(std::string()), false);
  }

 private:
  static constexpr uint32_t kLargestBuffer = 64;
  static constexpr uint32_t kDefaultBuffer = 4;
  // Bytes of an event without arguments.
  static constexpr uint32_t kSmallestEvent = 16;

  static bool StripAll(const char*, const char*, ArgumentNameFilterPredicate*) { return false; }

  static void Write(const std::string& archive, const ArgumentFilterPredicate& predicate,
                    const OutputCallback& callback) {
    if (archive.empty()) return callback(std::make_shared<RefCountedString>(std::string()), false);
    auto deliver = [](void* context, const char* text, size_t length, bool is_last) {
      (*static_cast<const OutputCallback*>(context))(std::make_shared<RefCountedString>(std::string(text, length)),
                                                     !is_last);
    };
    trace_json_write(reinterpret_cast<const uint8_t*>(archive.data()), archive.size(),
                     predicate ? internal::KeepsArgument : nullptr, const_cast<ArgumentFilterPredicate*>(&predicate),
                     deliver, const_cast<OutputCallback*>(&callback));
  }

  void Notify(void (EnabledStateObserver::*changed)()) {
    std::vector<EnabledStateObserver*> observers;
    {
      std::lock_guard<std::mutex> lock(lock_);
      observers = observers_;
    }
    for (EnabledStateObserver* observer : observers) (observer->*changed)();
  }

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
  mutable std::mutex lock_;
  std::vector<EnabledStateObserver*> observers_;
  ArgumentFilterPredicate predicate_;
  std::atomic<bool> is_filtered_{false};
  std::atomic<uint32_t> buffer_size_mib_{0};

  TraceLog() = default;
};

// Makes one JSON document of pieces.
class TraceResultBuffer {
 public:
  using OutputCallback = std::function<void(const std::string&)>;

  void SetOutputCallback(OutputCallback callback) { output_ = std::move(callback); }
  void Start() {
    has_fragment_ = false;
    output_("[");
  }
  void AddFragment(const std::string& fragment) {
    if (fragment.empty()) return;
    if (std::exchange(has_fragment_, true)) output_(",\n");
    output_(fragment);
  }
  void Finish() { output_("]"); }

 private:
  OutputCallback output_;
  bool has_fragment_ = false;
};

}  // namespace trace_event
}  // namespace base

#endif  // TRACE_TRACE_LOG_H_
