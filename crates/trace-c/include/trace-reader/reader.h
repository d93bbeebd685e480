// Reads a trace, chunk by chunk.
#ifndef TRACE_READER_READER_H_
#define TRACE_READER_READER_H_

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
#include <trace-reader/chunk.h>
#include <trace-reader/records.h>

namespace trace {

// Reads one trace, and remembers its strings and threads.
class TraceReader {
 public:
  // Called once for each record.
  using RecordConsumer = fit::function<void(Record)>;
  // Receives a sentence about each invalid record, which is skipped.
  using ErrorHandler = fit::function<void(fbl::String)>;

  explicit TraceReader(RecordConsumer record_consumer, ErrorHandler error_handler)
      : record_consumer_(std::move(record_consumer)), error_handler_(std::move(error_handler)) {}
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  // Reads all complete records. Pass what is left in the chunk again, with more data after it.
  //
  // Damage is reported once, and reading continues at the next magic number or provider after it; all
  // definitions before are discarded. Returns false if this chunk has no such place; a later one may. Only
  // `FileReader` recovers from damage that has shifted the rest by a part of a word.
  bool ReadRecords(Chunk& chunk) { return Read(chunk, false, false); }

  // 0 before the first.
  ProviderId current_provider_id() const { return current_->id; }
  const fbl::String& current_provider_name() const { return current_->name; }
  // Empty for an unknown one.
  fbl::String GetProviderName(ProviderId id) const {
    auto found = providers_.find(id);
    return found == providers_.end() ? fbl::String() : found->second.name;
  }
  const ErrorHandler& error_handler() const { return error_handler_; }

 protected:
  void ReportError(fbl::String error) const { error_handler_(std::move(error)); }

  // As `ReadRecords`. With `is_end`, nothing comes behind the chunk; with `any_byte`, reading may be resumed
  // in the middle of a word.
  bool Read(Chunk& chunk, bool any_byte, bool is_end) {
    // Up to here, going from record to record leads to where reading could be resumed.
    const char* trusted_to = chunk.current_;
    while (true) {
      if (is_lost()) {
        const Search search = FindPlace(chunk, lost_bytes_, 0, any_byte, is_end);
        chunk.SkipBytes(search.bytes);
        lost_bytes_ += search.bytes;
        if (!search.is_found) {
          return false;
        }
        lost_bytes_ = 0;
      }
      std::optional<uint64_t> header = chunk.PeekUint64(0);
      if (!header) {
        return true;
      }
      const uint64_t size = RecordWords(*header);
      if (*header != 0 && (size == 0 || (is_end && size > chunk.remaining_words()))) {
        Lose(chunk, any_byte, size == 0 ? "a record without words" : "a record that is longer than what is left");
        continue;
      }
      if (size > chunk.remaining_words()) {
        return true;
      }
      if (*header == 0) {
        // Padding.
        chunk.ReadUint64();
        continue;
      }
      const Chunk start = chunk;
      Chunk record = *chunk.ReadChunk(size);
      record.ReadUint64();
      const Outcome outcome = Decode(*header, record);
      // Damage may look like this.
      const bool is_odd = outcome == Outcome::kUnknown || outcome == Outcome::kMalformed || record.remaining_words() > 0;
      if (is_odd && start.current_ >= trusted_to) {
        const Search search = FindPlace(start, 0, StepBytes(any_byte), any_byte, is_end);
        if (!search.is_found && !is_end && search.bytes < size * sizeof(uint64_t)) {
          // There may be such a place inside of this record. More words than the chunk has decide that.
          chunk = start;
          pending_.reset();
          return true;
        }
        trusted_to = start.current_ + search.bytes;
        if (search.is_found && !LeadsTo(start, search.bytes)) {
          pending_.reset();
          chunk = start;
          Lose(chunk, any_byte, "a record that makes no sense and hides others");
          continue;
        }
      }
      if (pending_) {
        record_consumer_(*std::exchange(pending_, std::nullopt));
      }
      if (outcome == Outcome::kMalformed || outcome == Outcome::kUndefined) {
        ReportError("A record of type " + std::to_string(*header & 15) + " and " + std::to_string(size) +
                    " words: " + reason_);
      }
    }
  }

  // Whether the reader searches for a place to resume.
  bool is_lost() const { return lost_bytes_ != 0; }

 private:
  // The result of reading a record.
  enum class Outcome {
    kRead,
    // Skipped, as it is of a newer version.
    kUnknown,
    // Something that it refers to is not defined; without that, it may be of use.
    kUndefined,
    kMalformed,
  };

  struct Search {
    // Where the place is, counted from where the search began.
    size_t bytes;
    // If not, what comes behind the chunk decides whether it is one.
    bool is_found;
  };

  // Sizes of records: but for large ones, they have 12 bits.
  static constexpr uint64_t kMaxRecordWords = 0xfff;
  static constexpr uint64_t kMagic = 0x0016547846040010;
  // The number of valid records that have to follow each other where reading is resumed.
  static constexpr int kSoundRecords = 4;

  static constexpr uint64_t RecordWords(uint64_t header) {
    const bool is_large = (header & 15) == static_cast<uint64_t>(RecordType::kLargeRecord);
    return Bits(header, 4, is_large ? 35 : 15);
  }

  // A provider info or section, as they are written: no bit is set where there must be none.
  static constexpr bool IsProvider(uint64_t header) {
    const uint64_t name_bytes = header >> 52;
    switch (header & 0xf000f) {
      case 0x10000:
        return name_bytes < 256 && RecordWords(header) == 1 + (name_bytes + 7) / 8;
      case 0x20000:
        return name_bytes == 0 && RecordWords(header) == 1;
      default:
        return false;
    }
  }

  // Definitions may be among what is missing: it is better not to know a name than to know a wrong one.
  void Lose(Chunk& chunk, bool any_byte, const char* damage) {
    ReportError(std::string("Damaged: ") + damage + "; left out up to where reading can be resumed");
    current_->strings.clear();
    current_->threads.clear();
    lost_bytes_ = StepBytes(any_byte);
    chunk.SkipBytes(lost_bytes_);
  }

  static constexpr size_t StepBytes(bool any_byte) { return any_byte ? 1 : sizeof(uint64_t); }

  // Looks for a place from `from` bytes behind where the chunk stands, which is `lost` bytes behind where the
  // damage began.
  static Search FindPlace(const Chunk& chunk, uint64_t lost, size_t from, bool any_byte, bool is_end) {
    size_t place = from;
    while (std::optional<uint64_t> word = chunk.PeekUint64(place)) {
      const bool is_whole = (lost + place) % sizeof(uint64_t) == 0;
      if (*word == kMagic || (is_whole && IsProvider(*word))) {
        Chunk rest = chunk;
        rest.SkipBytes(place);
        const std::optional<bool> is_sound = IsSound(rest, is_end);
        if (!is_sound || *is_sound) {
          return Search{place, is_sound.has_value()};
        }
      }
      place += StepBytes(any_byte);
    }
    return Search{place, false};
  }

  // Whether four records from here on are of known kinds and make sense, where the input ends at least two;
  // nothing if that takes more than the chunk.
  static std::optional<bool> IsSound(Chunk chunk, bool is_end) {
    TraceReader judge([](Record) {}, [](fbl::String) {});
    judge.is_judge_ = true;
    for (int number = 0; number < kSoundRecords; ++number) {
      std::optional<uint64_t> header = chunk.PeekUint64(0);
      const uint64_t size = header ? RecordWords(*header) : 1;
      if (size == 0 || size > kMaxRecordWords) {
        return false;
      }
      std::optional<Chunk> record = chunk.ReadChunk(size);
      if (!record) {
        return is_end ? std::optional<bool>(number > 1 || chunk.remaining_bytes() == 0) : std::nullopt;
      }
      record->ReadUint64();
      if (judge.Decode(*header, *record) != Outcome::kRead) {
        return false;
      }
    }
    return true;
  }

  // Whether going from record to record leads to a place, and not past it.
  static bool LeadsTo(const Chunk& chunk, size_t place) {
    size_t at = 0;
    while (at < place) {
      const uint64_t header = chunk.PeekUint64(at).value_or(0);
      const uint64_t size = header == 0 ? 1 : RecordWords(header);
      if (size == 0) {
        return false;
      }
      at += size * sizeof(uint64_t);
    }
    return at == place;
  }

  Outcome Decode(uint64_t header, Chunk& record) {
    reason_ = "it does not make sense";
    is_unknown_ = false;
    is_undefined_ = false;
    const bool is_read = ReadRecord(header, record);
    if (is_undefined_) {
      return Outcome::kUndefined;
    }
    return !is_read ? Outcome::kMalformed : is_unknown_ ? Outcome::kUnknown : Outcome::kRead;
  }

  // Skips what is of a newer version.
  bool LeaveOut() {
    is_unknown_ = true;
    return true;
  }

  void MarkUndefined(const char* what, uint64_t reference) {
    is_undefined_ = true;
    reason_ = std::string(what) + " " + std::to_string(reference) + " is not defined";
  }

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

  std::optional<fbl::String> ReadStringRef(Chunk& chunk, uint64_t reference) {
    if (reference == 0) {
      return fbl::String();
    }
    if (reference & TRACE_ENCODED_STRING_REF_INLINE_FLAG) {
      std::optional<std::string_view> text = chunk.ReadString(reference & TRACE_ENCODED_STRING_REF_LENGTH_MASK);
      return text ? std::optional<fbl::String>(fbl::String(*text)) : std::nullopt;
    }
    auto found = current_->strings.find(static_cast<trace_string_index_t>(reference));
    if (found == current_->strings.end()) {
      if (is_judge_) {
        return fbl::String();
      }
      MarkUndefined("string", reference);
      return std::nullopt;
    }
    return found->second;
  }

  std::optional<ProcessThread> ReadThreadRef(Chunk& chunk, uint64_t reference) {
    if (reference == TRACE_ENCODED_THREAD_REF_INLINE) {
      std::optional<uint64_t> process = chunk.ReadUint64();
      std::optional<uint64_t> thread = chunk.ReadUint64();
      return thread ? std::optional<ProcessThread>(ProcessThread(*process, *thread)) : std::nullopt;
    }
    auto found = current_->threads.find(static_cast<trace_thread_index_t>(reference));
    if (found == current_->threads.end()) {
      if (is_judge_) {
        return ProcessThread();
      }
      MarkUndefined("thread", reference);
      return std::nullopt;
    }
    return found->second;
  }

  bool ReadArguments(Chunk& chunk, uint64_t count, fbl::Vector<Argument>* out) {
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
      // Arguments of newer types are skipped.
      const bool is_known = static_cast<ArgumentType>(*header & 15) <= ArgumentType::kBlob;
      if (is_known && !value && !is_undefined_) {
        return false;
      }
      if (value) {
        out->push_back(Argument(std::move(*name), std::move(*value)));
      }
    }
    return true;
  }

  std::optional<ArgumentValue> ReadValue(Chunk& chunk, uint64_t header) {
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

  // Also true for what is of a newer version and skipped.
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
          // Number 0 is nothing that could be referred to.
          return text.has_value();
        }
        current_->strings[index] = fbl::String(*text);
        return Consume(Record::String{index, fbl::String(*text)});
      }
      case RecordType::kThread: {
        std::optional<ProcessThread> thread = ReadThreadRef(chunk, TRACE_ENCODED_THREAD_REF_INLINE);
        const auto index = static_cast<trace_thread_index_t>(Bits(header, 16, 23));
        if (!thread || index == 0) {
          return thread.has_value();
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
    // Of objects of programs nothing is read, but their type is known.
    return Bits(header, 0, 3) == 6 || LeaveOut();
  }

  template <typename T>
  bool Consume(T record) {
    pending_.emplace(std::move(record));
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
          return LeaveOut();
        }
        return Consume(Record::Metadata{MetadataContent(MetadataContent::TraceInfo{TraceInfoContent(
            TraceInfoContent::MagicNumberInfo{static_cast<uint32_t>(Bits(header, 24, 55))})})});
    }
    return LeaveOut();
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
    return LeaveOut();
  }

  bool ReadProfiler(uint64_t header, Chunk& chunk) {
    using Profiler = Record::Profiler;
    const uint64_t type = Bits(header, 16, 19);
    if (type > static_cast<uint64_t>(ProfilerRecordType::kBacktrace)) {
      reason_ = "type " + std::to_string(type) + " of profiler records is not known";
      return false;
    }
    std::optional<uint64_t> time = chunk.ReadUint64();
    std::optional<ProcessThread> thread = time ? ReadThreadRef(chunk, Bits(header, 20, 27)) : std::nullopt;
    if (!thread) {
      return false;
    }
    const auto timestamp = static_cast<trace_ticks_t>(*time);
    const auto module_id = static_cast<uint16_t>(Bits(header, 28, 43));
    switch (static_cast<ProfilerRecordType>(type)) {
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
    return false;
  }

  bool ReadLarge(uint64_t header, Chunk& chunk) {
    const uint64_t format = Bits(header, 40, 43);
    if (Bits(header, 36, 39) != 0 || format > TRACE_BLOB_FORMAT_ATTACHMENT) {
      return LeaveOut();
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
  // What was read last, until it is certain that it is no damage.
  std::optional<Record> pending_;
  // How far a place to go on has been looked for, in bytes from where the damage began; 0 if there is none.
  uint64_t lost_bytes_ = 0;
  // Why the current record cannot be read, and the kind of that failure.
  fbl::String reason_;
  bool is_unknown_ = false;
  bool is_undefined_ = false;
  // Only validate records: references need not be defined.
  bool is_judge_ = false;
};

}  // namespace trace

#endif  // TRACE_READER_READER_H_
