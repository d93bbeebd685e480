// Reads a trace, chunk by chunk.
#ifndef TRACE_READER_READER_H_
#define TRACE_READER_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fbl/string.h>
#include <fbl/vector.h>
#include <lib/fit/function.h>
#include <trace-reader/records.h>

namespace trace {

// Words that are read one after another.
class Chunk final {
 public:
  Chunk() : Chunk(nullptr, 0) {}
  explicit Chunk(const uint64_t* begin, size_t num_words) : begin_(begin), current_(begin), end_(begin + num_words) {}

  // From where the chunk began.
  uint64_t current_byte_offset() const { return static_cast<uint64_t>(current_ - begin_) * sizeof(uint64_t); }
  uint64_t remaining_words() const { return static_cast<uint64_t>(end_ - current_); }

  // Each of these gives nothing, and moves nowhere, if there are not enough words.
  std::optional<uint64_t> ReadUint64() {
    if (current_ == end_) {
      return std::nullopt;
    }
    return *current_++;
  }
  std::optional<int64_t> ReadInt64() {
    std::optional<uint64_t> word = ReadUint64();
    return word ? std::optional<int64_t>(static_cast<int64_t>(*word)) : std::nullopt;
  }
  std::optional<double> ReadDouble() {
    std::optional<uint64_t> word = ReadUint64();
    if (!word) {
      return std::nullopt;
    }
    double value;
    std::memcpy(&value, &*word, sizeof(value));
    return value;
  }
  // So many bytes, and their padding.
  std::optional<std::string_view> ReadString(size_t length) {
    std::optional<const void*> bytes = ReadInPlace(length / 8 + (length % 8 != 0));
    return bytes ? std::optional<std::string_view>(std::string_view(static_cast<const char*>(*bytes), length))
                 : std::nullopt;
  }
  std::optional<Chunk> ReadChunk(size_t num_words) {
    std::optional<const void*> words = ReadInPlace(num_words);
    return words ? std::optional<Chunk>(Chunk(static_cast<const uint64_t*>(*words), num_words)) : std::nullopt;
  }
  std::optional<const void*> ReadInPlace(size_t num_words) {
    if (num_words > remaining_words()) {
      return std::nullopt;
    }
    const void* words = current_;
    current_ += num_words;
    return words;
  }

  // As of older programs.
  bool ReadUint64(uint64_t* out) { return Store(ReadUint64(), out); }
  bool ReadInt64(int64_t* out) { return Store(ReadInt64(), out); }
  bool ReadDouble(double* out) { return Store(ReadDouble(), out); }
  bool ReadString(size_t length, std::string_view* out) { return Store(ReadString(length), out); }
  bool ReadChunk(size_t num_words, Chunk* out) { return Store(ReadChunk(num_words), out); }
  bool ReadInPlace(size_t num_words, const void** out) { return Store(ReadInPlace(num_words), out); }

 private:
  template <typename T>
  static bool Store(std::optional<T> found, T* out) {
    if (found) {
      *out = *found;
    }
    return found.has_value();
  }

  const uint64_t* begin_;
  const uint64_t* current_;
  const uint64_t* end_;
};

// Reads one trace, and remembers its strings and threads.
class TraceReader {
 public:
  // Is called once for each record.
  using RecordConsumer = fit::function<void(Record)>;
  // Is told in a sentence what is wrong with a record, which is left out.
  using ErrorHandler = fit::function<void(fbl::String)>;

  explicit TraceReader(RecordConsumer record_consumer, ErrorHandler error_handler)
      : record_consumer_(std::move(record_consumer)), error_handler_(std::move(error_handler)) {}
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  // Reads all complete records. What is left in the chunk has to be shown again, with more behind it. False
  // if nothing can be made of what follows.
  bool ReadRecords(Chunk& chunk) {
    while (true) {
      if (!header_) {
        header_ = chunk.ReadUint64();
        if (!header_) {
          return true;
        }
        if (*header_ == 0) {
          // Padding.
          header_.reset();
          continue;
        }
      }
      const bool is_large = (*header_ & 15) == static_cast<uint64_t>(RecordType::kLargeRecord);
      const uint64_t size = Bits(*header_, 4, is_large ? 35 : 15);
      if (size == 0) {
        ReportError("A record says that it has no words");
        return false;
      }
      std::optional<Chunk> record = chunk.ReadChunk(size - 1);
      if (!record) {
        return true;
      }
      const uint64_t header = *header_;
      header_.reset();
      if (!ReadRecord(header, *record)) {
        ReportError("Cannot read a record of type " + std::to_string(header & 15) + " and " + std::to_string(size) +
                    " words");
      }
    }
  }

  // 0 before there is one.
  ProviderId current_provider_id() const { return current_->id; }
  const fbl::String& current_provider_name() const { return current_->name; }
  // Empty for one that is not known.
  fbl::String GetProviderName(ProviderId id) const {
    auto found = providers_.find(id);
    return found == providers_.end() ? fbl::String() : found->second.name;
  }
  const ErrorHandler& error_handler() const { return error_handler_; }

 protected:
  void ReportError(fbl::String error) const { error_handler_(std::move(error)); }

 private:
  struct Provider {
    ProviderId id = 0;
    fbl::String name;
    std::map<trace_string_index_t, fbl::String> strings;
    std::map<trace_thread_index_t, ProcessThread> threads;
  };

  static constexpr uint64_t Bits(uint64_t word, unsigned first, unsigned last) {
    return word >> first & (~uint64_t{0} >> (63 - (last - first)));
  }

  Provider* FindProvider(ProviderId id) {
    Provider& provider = providers_[id];
    provider.id = id;
    return &provider;
  }

  // An empty string for an index that is not known, which is reported.
  std::optional<fbl::String> ReadStringRef(Chunk& chunk, uint64_t reference) const {
    if (reference == 0) {
      return fbl::String();
    }
    if (reference & TRACE_ENCODED_STRING_REF_INLINE_FLAG) {
      std::optional<std::string_view> text = chunk.ReadString(reference & TRACE_ENCODED_STRING_REF_LENGTH_MASK);
      return text ? std::optional<fbl::String>(fbl::String(*text)) : std::nullopt;
    }
    auto found = current_->strings.find(static_cast<trace_string_index_t>(reference));
    if (found == current_->strings.end()) {
      ReportError("String " + std::to_string(reference) + " is not defined");
      return std::nullopt;
    }
    return found->second;
  }

  std::optional<ProcessThread> ReadThreadRef(Chunk& chunk, uint64_t reference) const {
    if (reference == TRACE_ENCODED_THREAD_REF_INLINE) {
      std::optional<uint64_t> process = chunk.ReadUint64();
      std::optional<uint64_t> thread = chunk.ReadUint64();
      return thread ? std::optional<ProcessThread>(ProcessThread(*process, *thread)) : std::nullopt;
    }
    auto found = current_->threads.find(static_cast<trace_thread_index_t>(reference));
    if (found == current_->threads.end()) {
      ReportError("Thread " + std::to_string(reference) + " is not defined");
      return std::nullopt;
    }
    return found->second;
  }

  bool ReadArguments(Chunk& chunk, uint64_t count, fbl::Vector<Argument>* out) const {
    for (uint64_t i = 0; i < count; ++i) {
      std::optional<uint64_t> header = chunk.ReadUint64();
      const uint64_t size = header ? Bits(*header, 4, 15) : 0;
      std::optional<Chunk> argument = size == 0 ? std::nullopt : chunk.ReadChunk(size - 1);
      if (!argument) {
        return false;
      }
      std::optional<fbl::String> name = ReadStringRef(*argument, Bits(*header, 16, 31));
      std::optional<ArgumentValue> value = name ? ReadValue(*argument, *header) : std::nullopt;
      if (!name) {
        return false;
      }
      // One of a newer type is left out.
      if (value) {
        out->push_back(Argument(std::move(*name), std::move(*value)));
      }
    }
    return true;
  }

  std::optional<ArgumentValue> ReadValue(Chunk& chunk, uint64_t header) const {
    const uint32_t upper = static_cast<uint32_t>(header >> 32);
    const auto type = static_cast<ArgumentType>(header & 15);
    switch (type) {
      case ArgumentType::kNull:
        return ArgumentValue::MakeNull();
      case ArgumentType::kBool:
        return ArgumentValue::MakeBool((upper & 1) != 0);
      case ArgumentType::kInt32:
        return ArgumentValue::MakeInt32(static_cast<int32_t>(upper));
      case ArgumentType::kUint32:
        return ArgumentValue::MakeUint32(upper);
      case ArgumentType::kString: {
        std::optional<fbl::String> text = ReadStringRef(chunk, upper & 0xffff);
        return text ? std::optional<ArgumentValue>(ArgumentValue::MakeString(std::move(*text))) : std::nullopt;
      }
      case ArgumentType::kBlob: {
        std::optional<std::string_view> bytes = chunk.ReadString(upper);
        return bytes ? std::optional<ArgumentValue>(
                           ArgumentValue::MakeBlob(std::vector<uint8_t>(bytes->begin(), bytes->end())))
                     : std::nullopt;
      }
      default:
        break;
    }
    std::optional<uint64_t> word = chunk.ReadUint64();
    if (!word) {
      return std::nullopt;
    }
    double number;
    std::memcpy(&number, &*word, sizeof(number));
    switch (type) {
      case ArgumentType::kInt64:
        return ArgumentValue::MakeInt64(static_cast<int64_t>(*word));
      case ArgumentType::kUint64:
        return ArgumentValue::MakeUint64(*word);
      case ArgumentType::kDouble:
        return ArgumentValue::MakeDouble(number);
      case ArgumentType::kPointer:
        return ArgumentValue::MakePointer(*word);
      case ArgumentType::kKoid:
        return ArgumentValue::MakeKoid(*word);
      default:
        return std::nullopt;
    }
  }

  // True also for what is of a newer version and left out.
  bool ReadRecord(uint64_t header, Chunk& chunk) {
    switch (static_cast<RecordType>(header & 15)) {
      case RecordType::kMetadata:
        return ReadMetadata(header, chunk);
      case RecordType::kInitialization: {
        std::optional<uint64_t> rate = chunk.ReadUint64();
        return rate && *rate != 0 && Consume(Record::Initialization{static_cast<trace_ticks_t>(*rate)});
      }
      case RecordType::kString: {
        std::optional<std::string_view> text = chunk.ReadString(Bits(header, 32, 46));
        const auto index = static_cast<trace_string_index_t>(Bits(header, 16, 30));
        if (!text || index == 0) {
          return false;
        }
        current_->strings[index] = fbl::String(*text);
        return Consume(Record::String{index, fbl::String(*text)});
      }
      case RecordType::kThread: {
        std::optional<ProcessThread> thread = ReadThreadRef(chunk, TRACE_ENCODED_THREAD_REF_INLINE);
        const auto index = static_cast<trace_thread_index_t>(Bits(header, 16, 23));
        if (!thread || index == 0) {
          return false;
        }
        current_->threads[index] = *thread;
        return Consume(Record::Thread{index, *thread});
      }
      case RecordType::kEvent:
        return ReadEvent(header, chunk);
      case RecordType::kBlob: {
        std::optional<fbl::String> name = ReadStringRef(chunk, Bits(header, 16, 31));
        const size_t size = Bits(header, 32, 46);
        std::optional<const void*> bytes = name ? chunk.ReadInPlace((size + 7) / 8) : std::nullopt;
        return bytes && Consume(Record::Blob{static_cast<trace_blob_type_t>(Bits(header, 48, 55)), std::move(*name),
                                             *bytes, size});
      }
      case RecordType::kKernelObject: {
        std::optional<uint64_t> koid = chunk.ReadUint64();
        std::optional<fbl::String> name = koid ? ReadStringRef(chunk, Bits(header, 24, 39)) : std::nullopt;
        fbl::Vector<Argument> arguments;
        return name && ReadArguments(chunk, Bits(header, 40, 43), &arguments) &&
               Consume(Record::KernelObject{*koid, static_cast<zx_obj_type_t>(Bits(header, 16, 23)), std::move(*name),
                                            std::move(arguments)});
      }
      case RecordType::kScheduler:
        return ReadSchedulerEvent(header, chunk);
      case RecordType::kLog: {
        std::optional<uint64_t> time = chunk.ReadUint64();
        std::optional<ProcessThread> thread = time ? ReadThreadRef(chunk, Bits(header, 32, 39)) : std::nullopt;
        std::optional<std::string_view> text = thread ? chunk.ReadString(Bits(header, 16, 30)) : std::nullopt;
        return text && Consume(Record::Log{static_cast<trace_ticks_t>(*time), *thread, fbl::String(*text)});
      }
      case RecordType::kProfiler:
        return ReadProfiler(header, chunk);
      case RecordType::kLargeRecord:
        return ReadLarge(header, chunk);
    }
    return true;
  }

  template <typename T>
  bool Consume(T record) {
    record_consumer_(Record(std::move(record)));
    return true;
  }

  bool ReadMetadata(uint64_t header, Chunk& chunk) {
    const auto id = static_cast<ProviderId>(Bits(header, 20, 51));
    switch (static_cast<MetadataType>(Bits(header, 16, 19))) {
      case MetadataType::kProviderInfo: {
        std::optional<std::string_view> name = chunk.ReadString(Bits(header, 52, 59));
        if (!name) {
          return false;
        }
        current_ = FindProvider(id);
        // It begins anew.
        *current_ = Provider();
        current_->id = id;
        current_->name = fbl::String(*name);
        return Consume(Record::Metadata{MetadataContent(MetadataContent::ProviderInfo{id, current_->name})});
      }
      case MetadataType::kProviderSection:
        current_ = FindProvider(id);
        return Consume(Record::Metadata{MetadataContent(MetadataContent::ProviderSection{id})});
      case MetadataType::kProviderEvent:
        if (Bits(header, 52, 55) != 0) {
          return true;
        }
        return Consume(Record::Metadata{
            MetadataContent(MetadataContent::ProviderEvent{id, ProviderEventType::kBufferOverflow})});
      case MetadataType::kTraceInfo:
        if (Bits(header, 20, 23) != 0) {
          return true;
        }
        return Consume(Record::Metadata{MetadataContent(MetadataContent::TraceInfo{TraceInfoContent(
            TraceInfoContent::MagicNumberInfo{static_cast<uint32_t>(Bits(header, 24, 55))})})});
    }
    return true;
  }

  bool ReadEvent(uint64_t header, Chunk& chunk) {
    std::optional<uint64_t> time = chunk.ReadUint64();
    std::optional<ProcessThread> thread = time ? ReadThreadRef(chunk, Bits(header, 24, 31)) : std::nullopt;
    std::optional<fbl::String> category = thread ? ReadStringRef(chunk, Bits(header, 32, 47)) : std::nullopt;
    std::optional<fbl::String> name = category ? ReadStringRef(chunk, Bits(header, 48, 63)) : std::nullopt;
    fbl::Vector<Argument> arguments;
    if (!name || !ReadArguments(chunk, Bits(header, 20, 23), &arguments)) {
      return false;
    }
    const auto type = static_cast<EventType>(Bits(header, 16, 19));
    if (type > EventType::kFlowEnd) {
      return true;
    }
    // An instant without a scope is one of its thread.
    const bool has_word = type != EventType::kDurationBegin && type != EventType::kDurationEnd;
    std::optional<uint64_t> word = has_word ? chunk.ReadUint64() : std::nullopt;
    if (has_word && !word && type != EventType::kInstant) {
      return false;
    }
    return Consume(Record::Event{static_cast<trace_ticks_t>(*time), *thread, std::move(*category), std::move(*name),
                                 std::move(arguments), MakeEventData(type, word.value_or(0))});
  }

  static EventData MakeEventData(EventType type, uint64_t word) {
    switch (type) {
      case EventType::kInstant:
        return EventData(EventData::Instant{static_cast<EventScope>(word)});
      case EventType::kCounter:
        return EventData(EventData::Counter{word});
      case EventType::kDurationBegin:
        return EventData(EventData::DurationBegin{});
      case EventType::kDurationEnd:
        return EventData(EventData::DurationEnd{});
      case EventType::kDurationComplete:
        return EventData(EventData::DurationComplete{static_cast<trace_ticks_t>(word)});
      case EventType::kAsyncBegin:
        return EventData(EventData::AsyncBegin{word});
      case EventType::kAsyncInstant:
        return EventData(EventData::AsyncInstant{word});
      case EventType::kAsyncEnd:
        return EventData(EventData::AsyncEnd{word});
      case EventType::kFlowBegin:
        return EventData(EventData::FlowBegin{word});
      case EventType::kFlowStep:
        return EventData(EventData::FlowStep{word});
      case EventType::kFlowEnd:
        break;
    }
    return EventData(EventData::FlowEnd{word});
  }

  bool ReadSchedulerEvent(uint64_t header, Chunk& chunk) {
    using Scheduler = Record::SchedulerEvent;
    std::optional<uint64_t> time = chunk.ReadUint64();
    if (!time) {
      return false;
    }
    const auto timestamp = static_cast<trace_ticks_t>(*time);
    const auto kind = static_cast<SchedulerEventType>(Bits(header, 60, 63));
    if (kind == SchedulerEventType::kLegacyContextSwitch) {
      std::optional<ProcessThread> outgoing = ReadThreadRef(chunk, Bits(header, 28, 35));
      std::optional<ProcessThread> incoming = outgoing ? ReadThreadRef(chunk, Bits(header, 36, 43)) : std::nullopt;
      return incoming &&
             Consume(Scheduler(Scheduler::LegacyContextSwitch{
                 timestamp, static_cast<trace_cpu_number_t>(Bits(header, 16, 23)),
                 static_cast<ThreadState>(Bits(header, 24, 27)), *outgoing, *incoming,
                 static_cast<trace_thread_priority_t>(Bits(header, 44, 51)),
                 static_cast<trace_thread_priority_t>(Bits(header, 52, 59))}));
    }
    const auto cpu = static_cast<trace_cpu_number_t>(Bits(header, 20, 35));
    const uint64_t count = Bits(header, 16, 19);
    fbl::Vector<Argument> arguments;
    if (kind == SchedulerEventType::kContextSwitch) {
      std::optional<uint64_t> outgoing = chunk.ReadUint64();
      std::optional<uint64_t> incoming = chunk.ReadUint64();
      return incoming && ReadArguments(chunk, count, &arguments) &&
             Consume(Scheduler(Scheduler::ContextSwitch{timestamp, cpu, static_cast<ThreadState>(Bits(header, 36, 39)),
                                                        *outgoing, *incoming, std::move(arguments)}));
    }
    if (kind == SchedulerEventType::kThreadWakeup) {
      std::optional<uint64_t> incoming = chunk.ReadUint64();
      return incoming && ReadArguments(chunk, count, &arguments) &&
             Consume(Scheduler(Scheduler::ThreadWakeup{timestamp, cpu, *incoming, std::move(arguments)}));
    }
    return true;
  }

  bool ReadProfiler(uint64_t header, Chunk& chunk) {
    using Profiler = Record::Profiler;
    std::optional<uint64_t> time = chunk.ReadUint64();
    std::optional<ProcessThread> thread = time ? ReadThreadRef(chunk, Bits(header, 20, 27)) : std::nullopt;
    if (!thread) {
      return false;
    }
    const auto timestamp = static_cast<trace_ticks_t>(*time);
    const auto module_id = static_cast<uint16_t>(Bits(header, 28, 43));
    switch (static_cast<ProfilerRecordType>(Bits(header, 16, 19))) {
      case ProfilerRecordType::kModule: {
        std::optional<std::string_view> name = chunk.ReadString(Bits(header, 44, 51));
        std::optional<std::string_view> id = name ? chunk.ReadString(Bits(header, 52, 59)) : std::nullopt;
        if (!id) {
          return false;
        }
        const auto* bytes = reinterpret_cast<const std::byte*>(id->data());
        return Consume(Profiler(Profiler::Module{module_id, *thread, timestamp, std::string(*name),
                                                 std::vector<std::byte>(bytes, bytes + id->size())}));
      }
      case ProfilerRecordType::kMmap: {
        std::optional<uint64_t> start = chunk.ReadUint64();
        std::optional<uint64_t> range = chunk.ReadUint64();
        std::optional<uint64_t> vaddr = chunk.ReadUint64();
        return vaddr && Consume(Profiler(Profiler::Mmap{module_id, *thread, timestamp, *start, *range, *vaddr,
                                                        static_cast<uint8_t>(Bits(header, 44, 46))}));
      }
      case ProfilerRecordType::kBacktrace: {
        std::vector<uint64_t> frames;
        for (uint64_t i = Bits(header, 28, 35); i > 0; --i) {
          std::optional<uint64_t> frame = chunk.ReadUint64();
          if (!frame) {
            return false;
          }
          frames.push_back(*frame);
        }
        return Consume(Profiler(Profiler::Backtrace{*thread, timestamp, std::move(frames)}));
      }
    }
    return true;
  }

  bool ReadLarge(uint64_t header, Chunk& chunk) {
    const uint64_t format = Bits(header, 40, 43);
    if (Bits(header, 36, 39) != 0 || format > TRACE_BLOB_FORMAT_ATTACHMENT) {
      return true;
    }
    std::optional<uint64_t> references = chunk.ReadUint64();
    std::optional<fbl::String> category = references ? ReadStringRef(chunk, Bits(*references, 0, 15)) : std::nullopt;
    std::optional<fbl::String> name = category ? ReadStringRef(chunk, Bits(*references, 16, 31)) : std::nullopt;
    if (!name) {
      return false;
    }
    std::optional<uint64_t> time;
    std::optional<ProcessThread> thread;
    fbl::Vector<Argument> arguments;
    if (format == TRACE_BLOB_FORMAT_EVENT) {
      time = chunk.ReadUint64();
      thread = time ? ReadThreadRef(chunk, Bits(*references, 36, 43)) : std::nullopt;
      if (!thread || !ReadArguments(chunk, Bits(*references, 32, 35), &arguments)) {
        return false;
      }
    }
    std::optional<uint64_t> size = chunk.ReadUint64();
    std::optional<std::string_view> bytes = size ? chunk.ReadString(*size) : std::nullopt;
    if (!bytes) {
      return false;
    }
    if (format == TRACE_BLOB_FORMAT_EVENT) {
      return Consume(LargeRecordData(LargeRecordData::Blob(
          LargeRecordData::BlobEvent{std::move(*category), std::move(*name), static_cast<trace_ticks_t>(*time), *thread,
                                     std::move(arguments), bytes->data(), *size})));
    }
    return Consume(LargeRecordData(LargeRecordData::Blob(
        LargeRecordData::BlobAttachment{std::move(*category), std::move(*name), bytes->data(), *size})));
  }

  RecordConsumer record_consumer_;
  ErrorHandler error_handler_;
  std::map<ProviderId, Provider> providers_;
  // What comes before any provider is that of number 0.
  Provider* current_ = FindProvider(0);
  // Of a record the rest of which has not been shown yet.
  std::optional<uint64_t> header_;
};

}  // namespace trace

#endif  // TRACE_READER_READER_H_
