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
  // If the file cannot be opened, reports that to the handler and returns false.
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

  // Reads to the end, also behind damage. Reports each problem to the handler in a sentence.
  void ReadFile() {
    std::vector<char> bytes(1 << 19);
    size_t kept = 0;
    while (true) {
      const size_t wanted = bytes.size() - kept;
      const size_t have = kept + std::fread(bytes.data() + kept, 1, wanted, file_);
      const bool is_end = have < bytes.size();
      Chunk chunk(Chunk::Bytes{bytes.data(), bytes.data() + have});
      Read(chunk, true, is_end);
      kept = chunk.remaining_bytes();
      if (is_end) {
        if (std::ferror(file_)) {
          ReportError("Cannot read the file");
        } else if (kept != 0 && !is_lost()) {
          ReportError("The file ends in the middle of a record");
        }
        return;
      }
      std::memmove(bytes.data(), bytes.data() + (have - kept), kept);
      if (kept == bytes.size()) {
        bytes.resize(bytes.size() * 2);
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
