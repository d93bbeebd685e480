// Reads a trace from a file.
#ifndef TRACE_READER_FILE_READER_H_
#define TRACE_READER_FILE_READER_H_

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <trace-reader/reader.h>

namespace trace {

class FileReader : public TraceReader {
 public:
  // False, and the handler is told, if the file cannot be opened.
  static bool Create(const char* file_path, RecordConsumer record_consumer, ErrorHandler error_handler,
                     std::unique_ptr<FileReader>* out_reader) {
    FILE* file = std::fopen(file_path, "rb");
    if (file == nullptr) {
      error_handler(fbl::String(std::string("Cannot open ") + file_path + ": " + std::strerror(errno)));
      return false;
    }
    out_reader->reset(new FileReader(file, std::move(record_consumer), std::move(error_handler)));
    return true;
  }
  ~FileReader() { std::fclose(file_); }

  // Reads to the end. The handler is told of what is wrong.
  void ReadFile() {
    // Room for more than the largest record that can be.
    std::vector<uint64_t> words(1 << 16);
    size_t kept = 0;
    while (true) {
      const size_t bytes_kept = kept * sizeof(uint64_t);
      auto* begin = reinterpret_cast<char*>(words.data());
      const size_t bytes = std::fread(begin + bytes_kept, 1, words.size() * sizeof(uint64_t) - bytes_kept, file_);
      const size_t have = kept + bytes / sizeof(uint64_t);
      Chunk chunk(words.data(), have);
      if (!ReadRecords(chunk)) {
        return;
      }
      const size_t rest = chunk.remaining_words();
      std::memmove(words.data(), words.data() + (have - rest), rest * sizeof(uint64_t));
      kept = rest;
      if (std::ferror(file_)) {
        ReportError("Cannot read the file");
        return;
      }
      if (bytes % sizeof(uint64_t) != 0 || bytes == 0) {
        if (kept != 0 || bytes % sizeof(uint64_t) != 0) {
          ReportError("The file ends in the middle of a record");
        }
        return;
      }
      if (kept == words.size()) {
        words.resize(words.size() * 2);
      }
    }
  }

 private:
  FileReader(FILE* file, RecordConsumer record_consumer, ErrorHandler error_handler)
      : TraceReader(std::move(record_consumer), std::move(error_handler)), file_(file) {}

  FILE* const file_;
};

}  // namespace trace

#endif  // TRACE_READER_FILE_READER_H_
