// Records of a trace, with all references resolved.
//
// Getters need the type that they are named after: that is checked unless NDEBUG is defined. Strings are
// fbl::String, which is a std::string.
#ifndef TRACE_READER_RECORDS_H_
#define TRACE_READER_RECORDS_H_

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fbl/string.h>
#include <fbl/vector.h>
#include <lib/trace-engine/types.h>
#include <zircon/assert.h>

namespace trace {

namespace internal {

inline std::string Number(uint64_t number) { return std::to_string(number); }
inline std::string Hexadecimal(uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, number);
  return text;
}

template <typename T>
std::string Joined(const T& list) {
  std::string text;
  for (const auto& item : list) {
    text += (text.empty() ? "" : ", ") + item.ToString();
  }
  return "{" + text + "}";
}

// The alternative of a type, which has to be the one that is there.
template <typename T, typename... U>
const T& As(const std::variant<U...>& variant) {
  const T* found = std::get_if<T>(&variant);
  ZX_DEBUG_ASSERT(found != nullptr);
  return *found;
}

}  // namespace internal

// A thread of a process; 0 and 0 are none.
class ProcessThread final {
 public:
  constexpr ProcessThread() = default;
  explicit constexpr ProcessThread(zx_koid_t process_koid, zx_koid_t thread_koid)
      : process_koid_(process_koid), thread_koid_(thread_koid) {}

  explicit operator bool() const { return process_koid_ != 0 || thread_koid_ != 0; }
  bool operator==(const ProcessThread& other) const {
    return process_koid_ == other.process_koid_ && thread_koid_ == other.thread_koid_;
  }
  bool operator!=(const ProcessThread& other) const { return !(*this == other); }
  bool operator<(const ProcessThread& other) const {
    return std::pair(process_koid_, thread_koid_) < std::pair(other.process_koid_, other.thread_koid_);
  }

  zx_koid_t process_koid() const { return process_koid_; }
  zx_koid_t thread_koid() const { return thread_koid_; }
  fbl::String ToString() const { return internal::Number(process_koid_) + "/" + internal::Number(thread_koid_); }

 private:
  zx_koid_t process_koid_ = 0;
  zx_koid_t thread_koid_ = 0;
};

// The value of an argument.
class ArgumentValue final {
 public:
  static ArgumentValue MakeNull() { return ArgumentValue(ArgumentType::kNull, uint64_t{0}); }
  static ArgumentValue MakeBool(bool value) { return ArgumentValue(ArgumentType::kBool, uint64_t{value}); }
  static ArgumentValue MakeInt32(int32_t value) {
    return ArgumentValue(ArgumentType::kInt32, static_cast<uint64_t>(static_cast<uint32_t>(value)));
  }
  static ArgumentValue MakeUint32(uint32_t value) { return ArgumentValue(ArgumentType::kUint32, uint64_t{value}); }
  static ArgumentValue MakeInt64(int64_t value) {
    return ArgumentValue(ArgumentType::kInt64, static_cast<uint64_t>(value));
  }
  static ArgumentValue MakeUint64(uint64_t value) { return ArgumentValue(ArgumentType::kUint64, value); }
  static ArgumentValue MakeDouble(double value) { return ArgumentValue(ArgumentType::kDouble, value); }
  static ArgumentValue MakeString(fbl::String value) { return ArgumentValue(ArgumentType::kString, std::move(value)); }
  static ArgumentValue MakePointer(uint64_t value) { return ArgumentValue(ArgumentType::kPointer, value); }
  static ArgumentValue MakeKoid(zx_koid_t value) { return ArgumentValue(ArgumentType::kKoid, value); }
  static ArgumentValue MakeBlob(std::vector<uint8_t> value) { return ArgumentValue(ArgumentType::kBlob, std::move(value)); }

  ArgumentType type() const { return type_; }

  bool GetBool() const { return Word(ArgumentType::kBool) != 0; }
  int32_t GetInt32() const { return static_cast<int32_t>(Word(ArgumentType::kInt32)); }
  uint32_t GetUint32() const { return static_cast<uint32_t>(Word(ArgumentType::kUint32)); }
  int64_t GetInt64() const { return static_cast<int64_t>(Word(ArgumentType::kInt64)); }
  uint64_t GetUint64() const { return Word(ArgumentType::kUint64); }
  double GetDouble() const { return internal::As<double>(value_); }
  const fbl::String& GetString() const { return internal::As<fbl::String>(value_); }
  uint64_t GetPointer() const { return Word(ArgumentType::kPointer); }
  zx_koid_t GetKoid() const { return Word(ArgumentType::kKoid); }
  const std::vector<uint8_t>& GetBlob() const { return internal::As<std::vector<uint8_t>>(value_); }

  fbl::String ToString() const {
    switch (type_) {
      case ArgumentType::kNull:
        return "null";
      case ArgumentType::kBool:
        return GetBool() ? "true" : "false";
      case ArgumentType::kInt32:
        return "int32(" + std::to_string(GetInt32()) + ")";
      case ArgumentType::kUint32:
        return "uint32(" + std::to_string(GetUint32()) + ")";
      case ArgumentType::kInt64:
        return "int64(" + std::to_string(GetInt64()) + ")";
      case ArgumentType::kUint64:
        return "uint64(" + std::to_string(GetUint64()) + ")";
      case ArgumentType::kDouble:
        return "double(" + std::to_string(GetDouble()) + ")";
      case ArgumentType::kString:
        return "\"" + GetString() + "\"";
      case ArgumentType::kPointer:
        return "pointer(" + internal::Hexadecimal(GetPointer()) + ")";
      case ArgumentType::kKoid:
        return "koid(" + internal::Number(GetKoid()) + ")";
      case ArgumentType::kBlob:
        return "blob(" + internal::Number(GetBlob().size()) + " bytes)";
    }
    return "?";
  }

 private:
  template <typename T>
  ArgumentValue(ArgumentType type, T value) : type_(type), value_(std::move(value)) {}

  uint64_t Word(ArgumentType type) const {
    ZX_DEBUG_ASSERT(type_ == type);
    return internal::As<uint64_t>(value_);
  }

  ArgumentType type_;
  std::variant<uint64_t, double, fbl::String, std::vector<uint8_t>> value_;
};

// A named value.
class Argument final {
 public:
  explicit Argument(fbl::String name, ArgumentValue value) : name_(std::move(name)), value_(std::move(value)) {}

  const fbl::String& name() const { return name_; }
  const ArgumentValue& value() const { return value_; }
  ArgumentType type() const { return value_.type(); }
  fbl::String ToString() const { return name_ + ": " + value_.ToString(); }

  // NULL if there is none of this name.
  static const Argument* Find(const fbl::String& name, const fbl::Vector<Argument>& arguments) {
    for (const Argument& argument : arguments) {
      if (argument.name_ == name) {
        return &argument;
      }
    }
    return nullptr;
  }

 private:
  fbl::String name_;
  ArgumentValue value_;
};

// Metadata about the trace as a whole.
class TraceInfoContent final {
 public:
  struct MagicNumberInfo {
    uint32_t magic_value;
  };
  explicit TraceInfoContent(MagicNumberInfo magic_number_info) : magic_number_info_(magic_number_info) {}
  TraceInfoType type() const { return TraceInfoType::kMagicNumber; }
  const MagicNumberInfo& GetMagicNumberInfo() const { return magic_number_info_; }
  fbl::String ToString() const { return "MagicNumberInfo(" + internal::Hexadecimal(magic_number_info_.magic_value) + ")"; }

 private:
  MagicNumberInfo magic_number_info_;
};

// Metadata about parts of the trace.
class MetadataContent final {
 public:
  struct ProviderInfo {
    ProviderId id;
    fbl::String name;
  };
  struct ProviderSection {
    ProviderId id;
  };
  struct ProviderEvent {
    ProviderId id;
    ProviderEventType event;
  };
  struct TraceInfo {
    TraceInfoContent content;
    TraceInfoType type() const { return content.type(); }
  };

  explicit MetadataContent(ProviderInfo content) : content_(std::move(content)) {}
  explicit MetadataContent(ProviderSection content) : content_(content) {}
  explicit MetadataContent(ProviderEvent content) : content_(content) {}
  explicit MetadataContent(TraceInfo content) : content_(std::move(content)) {}

  MetadataType type() const { return static_cast<MetadataType>(content_.index() + 1); }
  const ProviderInfo& GetProviderInfo() const { return internal::As<ProviderInfo>(content_); }
  const ProviderSection& GetProviderSection() const { return internal::As<ProviderSection>(content_); }
  const ProviderEvent& GetProviderEvent() const { return internal::As<ProviderEvent>(content_); }
  const TraceInfo& GetTraceInfo() const { return internal::As<TraceInfo>(content_); }

  fbl::String ToString() const {
    switch (type()) {
      case MetadataType::kProviderInfo:
        return "ProviderInfo(" + internal::Number(GetProviderInfo().id) + ", \"" + GetProviderInfo().name + "\")";
      case MetadataType::kProviderSection:
        return "ProviderSection(" + internal::Number(GetProviderSection().id) + ")";
      case MetadataType::kProviderEvent:
        return "ProviderEvent(" + internal::Number(GetProviderEvent().id) + ", buffer overflow)";
      case MetadataType::kTraceInfo:
        return "TraceInfo(" + GetTraceInfo().content.ToString() + ")";
    }
    return "?";
  }

 private:
  // In the order of their numbers.
  std::variant<ProviderInfo, ProviderSection, ProviderEvent, TraceInfo> content_;
};

// The data that depends on the type of an event.
class EventData final {
 public:
  struct Instant {
    EventScope scope;
  };
  struct Counter {
    trace_counter_id_t id;
  };
  struct DurationBegin {};
  struct DurationEnd {};
  struct DurationComplete {
    trace_ticks_t end_time;
  };
  struct AsyncBegin {
    trace_async_id_t id;
  };
  struct AsyncInstant {
    trace_async_id_t id;
  };
  struct AsyncEnd {
    trace_async_id_t id;
  };
  struct FlowBegin {
    trace_flow_id_t id;
  };
  struct FlowStep {
    trace_flow_id_t id;
  };
  struct FlowEnd {
    trace_flow_id_t id;
  };

  template <typename T>
  explicit EventData(T data) : data_(data) {}

  EventType type() const { return static_cast<EventType>(data_.index()); }
  const Instant& GetInstant() const { return internal::As<Instant>(data_); }
  const Counter& GetCounter() const { return internal::As<Counter>(data_); }
  const DurationBegin& GetDurationBegin() const { return internal::As<DurationBegin>(data_); }
  const DurationEnd& GetDurationEnd() const { return internal::As<DurationEnd>(data_); }
  const DurationComplete& GetDurationComplete() const { return internal::As<DurationComplete>(data_); }
  const AsyncBegin& GetAsyncBegin() const { return internal::As<AsyncBegin>(data_); }
  const AsyncInstant& GetAsyncInstant() const { return internal::As<AsyncInstant>(data_); }
  const AsyncEnd& GetAsyncEnd() const { return internal::As<AsyncEnd>(data_); }
  const FlowBegin& GetFlowBegin() const { return internal::As<FlowBegin>(data_); }
  const FlowStep& GetFlowStep() const { return internal::As<FlowStep>(data_); }
  const FlowEnd& GetFlowEnd() const { return internal::As<FlowEnd>(data_); }

  fbl::String ToString() const {
    static constexpr const char* kNames[] = {"Instant",      "Counter",  "DurationBegin", "DurationEnd",
                                             "DurationComplete", "AsyncBegin", "AsyncInstant", "AsyncEnd",
                                             "FlowBegin",    "FlowStep", "FlowEnd"};
    std::string text = kNames[data_.index()];
    switch (type()) {
      case EventType::kInstant:
        return text + "(scope " + internal::Number(static_cast<uint64_t>(GetInstant().scope)) + ")";
      case EventType::kCounter:
        return text + "(id " + internal::Number(GetCounter().id) + ")";
      case EventType::kDurationComplete:
        return text + "(end " + std::to_string(GetDurationComplete().end_time) + ")";
      case EventType::kAsyncBegin:
        return text + "(id " + internal::Number(GetAsyncBegin().id) + ")";
      case EventType::kAsyncInstant:
        return text + "(id " + internal::Number(GetAsyncInstant().id) + ")";
      case EventType::kAsyncEnd:
        return text + "(id " + internal::Number(GetAsyncEnd().id) + ")";
      case EventType::kFlowBegin:
        return text + "(id " + internal::Number(GetFlowBegin().id) + ")";
      case EventType::kFlowStep:
        return text + "(id " + internal::Number(GetFlowStep().id) + ")";
      case EventType::kFlowEnd:
        return text + "(id " + internal::Number(GetFlowEnd().id) + ")";
      default:
        return text;
    }
  }

 private:
  // In the order of their numbers.
  std::variant<Instant, Counter, DurationBegin, DurationEnd, DurationComplete, AsyncBegin, AsyncInstant, AsyncEnd,
               FlowBegin, FlowStep, FlowEnd>
      data_;
};

// A blob of any size. The reader owns its bytes, which are valid during the call of the consumer only.
class LargeRecordData final {
 public:
  struct BlobEvent {
    fbl::String category;
    fbl::String name;
    trace_ticks_t timestamp;
    ProcessThread process_thread;
    fbl::Vector<Argument> arguments;
    const void* blob;
    uint64_t blob_size;
  };
  struct BlobAttachment {
    fbl::String category;
    fbl::String name;
    const void* blob;
    uint64_t blob_size;
  };
  using Blob = std::variant<BlobEvent, BlobAttachment>;

  explicit LargeRecordData(Blob blob) : blob_(std::move(blob)) {}
  LargeRecordType type() const { return LargeRecordType::kBlob; }
  const Blob& GetBlob() const { return blob_; }
  fbl::String ToString() const {
    if (const BlobEvent* event = std::get_if<BlobEvent>(&blob_)) {
      return "BlobEvent(" + event->category + ", " + event->name + ", " + internal::Number(event->blob_size) + " bytes, " +
             internal::Joined(event->arguments) + ")";
    }
    const BlobAttachment& attachment = internal::As<BlobAttachment>(blob_);
    return "BlobAttachment(" + attachment.category + ", " + attachment.name + ", " +
           internal::Number(attachment.blob_size) + " bytes)";
  }

 private:
  Blob blob_;
};

// One record.
class Record final {
 public:
  struct Metadata {
    MetadataContent content;
    MetadataType type() const { return content.type(); }
  };
  struct Initialization {
    trace_ticks_t ticks_per_second;
  };
  struct String {
    trace_string_index_t index;
    fbl::String string;
  };
  struct Thread {
    trace_thread_index_t index;
    ProcessThread process_thread;
  };
  struct Event {
    trace_ticks_t timestamp;
    ProcessThread process_thread;
    fbl::String category;
    fbl::String name;
    fbl::Vector<Argument> arguments;
    EventData data;
    EventType type() const { return data.type(); }
  };
  struct Blob {
    trace_blob_type_t type;
    fbl::String name;
    // Owned by the reader, and valid during the call of the consumer.
    const void* blob;
    size_t blob_size;
  };
  struct KernelObject {
    zx_koid_t koid;
    zx_obj_type_t object_type;
    fbl::String name;
    fbl::Vector<Argument> arguments;
  };
  struct SchedulerEvent {
    struct LegacyContextSwitch {
      trace_ticks_t timestamp;
      trace_cpu_number_t cpu_number;
      ThreadState outgoing_thread_state;
      ProcessThread outgoing_thread;
      ProcessThread incoming_thread;
      trace_thread_priority_t outgoing_thread_priority;
      trace_thread_priority_t incoming_thread_priority;
    };
    struct ContextSwitch {
      trace_ticks_t timestamp;
      trace_cpu_number_t cpu_number;
      ThreadState outgoing_thread_state;
      zx_koid_t outgoing_tid;
      zx_koid_t incoming_tid;
      fbl::Vector<Argument> arguments;
      const Argument* FindArgument(const std::string& name) const { return Argument::Find(name, arguments); }
    };
    struct ThreadWakeup {
      trace_ticks_t timestamp;
      trace_cpu_number_t cpu_number;
      zx_koid_t incoming_tid;
      fbl::Vector<Argument> arguments;
      const Argument* FindArgument(const std::string& name) const { return Argument::Find(name, arguments); }
    };

    template <typename T>
    explicit SchedulerEvent(T event) : event(std::move(event)) {
      event_type = static_cast<SchedulerEventType>(this->event.index());
    }
    SchedulerEventType type() const { return event_type; }
    const LegacyContextSwitch& legacy_context_switch() const { return internal::As<LegacyContextSwitch>(event); }
    const ContextSwitch& context_switch() const { return internal::As<ContextSwitch>(event); }
    const ThreadWakeup& thread_wakeup() const { return internal::As<ThreadWakeup>(event); }

    SchedulerEventType event_type;
    // In the order of their numbers.
    std::variant<LegacyContextSwitch, ContextSwitch, ThreadWakeup> event;
  };
  // Replaced by SchedulerEvent.
  using ContextSwitch = SchedulerEvent::LegacyContextSwitch;
  struct Log {
    trace_ticks_t timestamp;
    ProcessThread process_thread;
    fbl::String message;
  };
  using Large = LargeRecordData;
  struct Profiler {
    struct Module {
      uint16_t module_id;
      ProcessThread process_thread;
      trace_ticks_t timestamp;
      std::string name;
      std::vector<std::byte> build_id;
    };
    struct Mmap {
      uint16_t module_id;
      ProcessThread process_thread;
      trace_ticks_t timestamp;
      uint64_t start_address;
      uint64_t address_range;
      uint64_t vaddr;
      uint8_t flags;
    };
    struct Backtrace {
      ProcessThread process_thread;
      trace_ticks_t timestamp;
      std::vector<uint64_t> backtrace;
    };

    template <typename T>
    explicit Profiler(T event) : event(std::move(event)) {
      profiler_type = static_cast<ProfilerRecordType>(this->event.index());
    }
    ProfilerRecordType type() const { return profiler_type; }
    const Module& module() const { return internal::As<Module>(event); }
    const Mmap& mmap() const { return internal::As<Mmap>(event); }
    const Backtrace& backtrace() const { return internal::As<Backtrace>(event); }

    ProfilerRecordType profiler_type;
    // In the order of their numbers.
    std::variant<Module, Mmap, Backtrace> event;
  };

  explicit Record(Metadata record) : type_(RecordType::kMetadata), record_(std::move(record)) {}
  explicit Record(Initialization record) : type_(RecordType::kInitialization), record_(record) {}
  explicit Record(String record) : type_(RecordType::kString), record_(std::move(record)) {}
  explicit Record(Thread record) : type_(RecordType::kThread), record_(record) {}
  explicit Record(Event record) : type_(RecordType::kEvent), record_(std::move(record)) {}
  explicit Record(Blob record) : type_(RecordType::kBlob), record_(std::move(record)) {}
  explicit Record(KernelObject record) : type_(RecordType::kKernelObject), record_(std::move(record)) {}
  explicit Record(SchedulerEvent record) : type_(RecordType::kScheduler), record_(std::move(record)) {}
  explicit Record(Log record) : type_(RecordType::kLog), record_(std::move(record)) {}
  explicit Record(Large record) : type_(RecordType::kLargeRecord), record_(std::move(record)) {}
  explicit Record(Profiler record) : type_(RecordType::kProfiler), record_(std::move(record)) {}

  RecordType type() const { return type_; }
  const Metadata& GetMetadata() const { return internal::As<Metadata>(record_); }
  const Initialization& GetInitialization() const { return internal::As<Initialization>(record_); }
  const String& GetString() const { return internal::As<String>(record_); }
  const Thread& GetThread() const { return internal::As<Thread>(record_); }
  const Event& GetEvent() const { return internal::As<Event>(record_); }
  const Blob& GetBlob() const { return internal::As<Blob>(record_); }
  const KernelObject& GetKernelObject() const { return internal::As<KernelObject>(record_); }
  const SchedulerEvent& GetSchedulerEvent() const { return internal::As<SchedulerEvent>(record_); }
  const ContextSwitch& GetContextSwitch() const { return GetSchedulerEvent().legacy_context_switch(); }
  const Log& GetLog() const { return internal::As<Log>(record_); }
  const Large& GetLargeRecord() const { return internal::As<Large>(record_); }
  const Profiler& GetProfiler() const { return internal::As<Profiler>(record_); }

  // The name of the record, if it has one.
  std::optional<std::string> GetName() const {
    switch (type_) {
      case RecordType::kEvent:
        return GetEvent().name;
      case RecordType::kBlob:
        return GetBlob().name;
      case RecordType::kKernelObject:
        return GetKernelObject().name;
      case RecordType::kLargeRecord:
        return std::visit([](const auto& blob) { return std::optional<std::string>(blob.name); },
                          GetLargeRecord().GetBlob());
      default:
        return std::nullopt;
    }
  }

  // Not a stable format.
  fbl::String ToString() const {
    switch (type_) {
      case RecordType::kMetadata:
        return "Metadata(" + GetMetadata().content.ToString() + ")";
      case RecordType::kInitialization:
        return "Initialization(" + std::to_string(GetInitialization().ticks_per_second) + " ticks per second)";
      case RecordType::kString:
        return "String(" + std::to_string(GetString().index) + ", \"" + GetString().string + "\")";
      case RecordType::kThread:
        return "Thread(" + std::to_string(GetThread().index) + ", " + GetThread().process_thread.ToString() + ")";
      case RecordType::kEvent: {
        const Event& event = GetEvent();
        return "Event(" + std::to_string(event.timestamp) + ", " + event.process_thread.ToString() + ", " +
               event.category + ", " + event.name + ", " + event.data.ToString() + ", " +
               internal::Joined(event.arguments) + ")";
      }
      case RecordType::kBlob:
        return "Blob(" + GetBlob().name + ", " + internal::Number(GetBlob().blob_size) + " bytes)";
      case RecordType::kKernelObject: {
        const KernelObject& object = GetKernelObject();
        return "KernelObject(" + internal::Number(object.koid) + ", type " + std::to_string(object.object_type) + ", \"" +
               object.name + "\", " + internal::Joined(object.arguments) + ")";
      }
      case RecordType::kScheduler:
        switch (GetSchedulerEvent().type()) {
          case SchedulerEventType::kLegacyContextSwitch: {
            const ContextSwitch& event = GetContextSwitch();
            return "ContextSwitch(" + std::to_string(event.timestamp) + ", cpu " + std::to_string(event.cpu_number) + ", " +
                   event.outgoing_thread.ToString() + " to " + event.incoming_thread.ToString() + ")";
          }
          case SchedulerEventType::kContextSwitch: {
            const SchedulerEvent::ContextSwitch& event = GetSchedulerEvent().context_switch();
            return "ContextSwitch(" + std::to_string(event.timestamp) + ", cpu " + std::to_string(event.cpu_number) + ", " +
                   internal::Number(event.outgoing_tid) + " to " + internal::Number(event.incoming_tid) + ", " +
                   internal::Joined(event.arguments) + ")";
          }
          case SchedulerEventType::kThreadWakeup: {
            const SchedulerEvent::ThreadWakeup& event = GetSchedulerEvent().thread_wakeup();
            return "ThreadWakeup(" + std::to_string(event.timestamp) + ", cpu " + std::to_string(event.cpu_number) + ", " +
                   internal::Number(event.incoming_tid) + ", " + internal::Joined(event.arguments) + ")";
          }
        }
        return "?";
      case RecordType::kLog:
        return "Log(" + std::to_string(GetLog().timestamp) + ", " + GetLog().process_thread.ToString() + ", \"" +
               GetLog().message + "\")";
      case RecordType::kLargeRecord:
        return "Large(" + GetLargeRecord().ToString() + ")";
      case RecordType::kProfiler:
        switch (GetProfiler().type()) {
          case ProfilerRecordType::kModule:
            return "Module(" + std::to_string(GetProfiler().module().module_id) + ", " + GetProfiler().module().name + ")";
          case ProfilerRecordType::kMmap:
            return "Mmap(" + std::to_string(GetProfiler().mmap().module_id) + ", " +
                   internal::Hexadecimal(GetProfiler().mmap().start_address) + ")";
          case ProfilerRecordType::kBacktrace:
            return "Backtrace(" + std::to_string(GetProfiler().backtrace().timestamp) + ", " +
                   internal::Number(GetProfiler().backtrace().backtrace.size()) + " frames)";
        }
        return "?";
    }
    return "?";
  }

 private:
  RecordType type_;
  std::variant<Metadata, Initialization, String, Thread, Event, Blob, KernelObject, SchedulerEvent, Log, Large, Profiler>
      record_;
};

}  // namespace trace

#endif  // TRACE_READER_RECORDS_H_
