// Prints how many records of each type a trace has, how many are wrong, and the names of its events: `dump
// FILE`. With `dump FILE WORDS`, so many words come at a time, and the reader does not know where the end is.
#include <trace-reader/file_reader.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

static void ReadChunks(const char* path, size_t words_at_a_time, trace::TraceReader* reader) {
  std::vector<uint64_t> words;
  std::ifstream file(path, std::ios::binary);
  for (uint64_t word; file.read(reinterpret_cast<char*>(&word), sizeof(word));) words.push_back(word);
  size_t done = 0;
  for (size_t have = 0; have < words.size();) {
    have = std::min(words.size(), have + words_at_a_time);
    trace::Chunk chunk(words.data() + done, have - done);
    reader->ReadRecords(chunk);
    done = have - chunk.remaining_words();
  }
  std::printf("left: %zu\n", words.size() - done);
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 1;
  std::map<int, int> types;
  int errors = 0;
  std::unique_ptr<trace::FileReader> reader;
  bool is_open = trace::FileReader::Create(
      argv[1],
      [&](trace::Record record) {
        ++types[static_cast<int>(record.type())];
        if (record.type() == trace::RecordType::kEvent) {
          const trace::Record::Event& event = record.GetEvent();
          std::string text = event.category + "/" + event.name + " " + event.process_thread.ToString();
          for (const trace::Argument& argument : event.arguments) {
            text += " " + argument.ToString();
          }
          std::printf("%s\n", text.c_str());
        }
      },
      [&](std::string_view error) { errors += !error.empty(); }, &reader);
  if (!is_open) return 2;
  if (argc == 3) {
    ReadChunks(argv[1], std::strtoul(argv[2], nullptr, 10), reader.get());
  } else {
    reader->ReadFile();
  }
  for (auto [type, count] : types) std::printf("type %d: %d\n", type, count);
  std::printf("errors: %d\n", errors);
}
