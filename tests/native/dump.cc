// Prints how many records of each type a trace has, how many are wrong, and the names of its events: `dump
// FILE`.
#include <trace-reader/file_reader.h>

#include <cstdio>
#include <map>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 1;
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
  reader->ReadFile();
  for (auto [type, count] : types) std::printf("type %d: %d\n", type, count);
  std::printf("errors: %d\n", errors);
}
