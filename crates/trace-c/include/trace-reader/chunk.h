// Words of a trace.
#ifndef TRACE_READER_CHUNK_H_
#define TRACE_READER_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace trace {

class FileReader;
class TraceReader;

// Words that are read one after another.
class Chunk final {
 public:
  Chunk() : Chunk(nullptr, 0) {}
  explicit Chunk(const uint64_t* begin, size_t num_words)
      : Chunk(Bytes{reinterpret_cast<const char*>(begin), reinterpret_cast<const char*>(begin + num_words)}) {}

  // From where the chunk began.
  uint64_t current_byte_offset() const { return static_cast<uint64_t>(current_ - begin_); }
  uint64_t remaining_words() const { return remaining_bytes() / sizeof(uint64_t); }

  // Each of these gives nothing, and moves nowhere, if there are not enough words.
  std::optional<uint64_t> ReadUint64() {
    std::optional<uint64_t> word = PeekUint64(0);
    current_ += word ? sizeof(uint64_t) : 0;
    return word;
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
  // Reads `length` bytes and skips their padding.
  std::optional<std::string_view> ReadString(size_t length) {
    std::optional<const void*> bytes = ReadInPlace(length / 8 + (length % 8 != 0));
    return bytes ? std::optional<std::string_view>(std::string_view(static_cast<const char*>(*bytes), length))
                 : std::nullopt;
  }
  std::optional<Chunk> ReadChunk(size_t num_words) {
    std::optional<const void*> words = ReadInPlace(num_words);
    return words ? std::optional<Chunk>(Chunk(Bytes{static_cast<const char*>(*words), current_}))
                 : std::nullopt;
  }
  std::optional<const void*> ReadInPlace(size_t num_words) {
    if (num_words > remaining_words()) {
      return std::nullopt;
    }
    const void* words = current_;
    current_ += num_words * sizeof(uint64_t);
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
  // Damage may have shifted records by a part of a word.
  friend class FileReader;
  friend class TraceReader;

  struct Bytes {
    const char* begin;
    const char* end;
  };
  explicit Chunk(Bytes bytes) : begin_(bytes.begin), current_(bytes.begin), end_(bytes.end) {}

  uint64_t remaining_bytes() const { return static_cast<uint64_t>(end_ - current_); }
  void SkipBytes(size_t num_bytes) { current_ += num_bytes; }
  // The word that begins so many bytes further on.
  std::optional<uint64_t> PeekUint64(size_t offset) const {
    if (remaining_bytes() < sizeof(uint64_t) || offset > remaining_bytes() - sizeof(uint64_t)) {
      return std::nullopt;
    }
    uint64_t word;
    std::memcpy(&word, current_ + offset, sizeof(word));
    return word;
  }

  template <typename T>
  static bool Store(std::optional<T> found, T* out) {
    if (found) {
      *out = *found;
    }
    return found.has_value();
  }

  const char* begin_;
  const char* current_;
  const char* end_;
};

}  // namespace trace

#endif  // TRACE_READER_CHUNK_H_
