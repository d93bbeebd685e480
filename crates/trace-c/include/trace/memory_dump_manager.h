// Chromium's names for reports about memory, over lib/trace-provider/memory_dump.h.
#ifndef TRACE_MEMORY_DUMP_MANAGER_H_
#define TRACE_MEMORY_DUMP_MANAGER_H_

#include <lib/trace-provider/memory_dump.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace base {
namespace trace_event {

enum class MemoryDumpLevelOfDetail { BACKGROUND, LIGHT, DETAILED };

struct MemoryDumpArgs {
  MemoryDumpLevelOfDetail level_of_detail;
};

// A row of a report. What has no size is not in the trace.
class MemoryAllocatorDump {
 public:
  static constexpr char kNameSize[] = "size";
  static constexpr char kNameObjectCount[] = "object_count";
  static constexpr char kUnitsBytes[] = "bytes";
  static constexpr char kUnitsObjects[] = "objects";

  explicit MemoryAllocatorDump(std::string absolute_name) : absolute_name_(std::move(absolute_name)) {}

  // The size in bytes is recorded, and nothing else.
  void AddScalar(const char* name, const char* units, uint64_t value) {
    if (std::strcmp(name, kNameSize) == 0 && std::strcmp(units, kUnitsBytes) == 0) size_ = value, has_size_ = true;
  }
  void AddString(const char*, const char*, const std::string&) {}

  const std::string& absolute_name() const { return absolute_name_; }
  bool has_size() const { return has_size_; }
  uint64_t size() const { return size_; }

 private:
  std::string absolute_name_;
  uint64_t size_ = 0;
  bool has_size_ = false;
};

// The report of one process.
class ProcessMemoryDump {
 public:
  explicit ProcessMemoryDump(const MemoryDumpArgs& args) : args_(args) {}

  // The row of this name, which is made if there is none. It stays as long as the report.
  MemoryAllocatorDump* CreateAllocatorDump(const std::string& absolute_name) {
    auto& dump = dumps_[absolute_name];
    if (!dump) dump = std::make_unique<MemoryAllocatorDump>(absolute_name);
    return dump.get();
  }
  MemoryAllocatorDump* GetAllocatorDump(const std::string& absolute_name) const {
    auto found = dumps_.find(absolute_name);
    return found == dumps_.end() ? nullptr : found->second.get();
  }
  const MemoryDumpArgs& dump_args() const { return args_; }
  const std::map<std::string, std::unique_ptr<MemoryAllocatorDump>>& allocator_dumps() const { return dumps_; }

 private:
  MemoryDumpArgs args_;
  std::map<std::string, std::unique_ptr<MemoryAllocatorDump>> dumps_;
};

// Adds rows to reports, on a thread of the library's. Must not throw.
class MemoryDumpProvider {
 public:
  virtual ~MemoryDumpProvider() = default;
  // False if it cannot: its rows are left out then.
  virtual bool OnMemoryDump(const MemoryDumpArgs& args, ProcessMemoryDump* pmd) = 0;
};

// Reports are made on request of `trace dump-memory` or of a recording, with the category memory_dump.
class MemoryDumpManager {
 public:
  static constexpr const char* kTraceCategory = "memory_dump";

  static MemoryDumpManager* GetInstance() {
    // It stays: its function is called until the process ends.
    static MemoryDumpManager* instance = new MemoryDumpManager();
    return instance;
  }

  // The name is Chromium's for statistics, and goes nowhere.
  void RegisterDumpProvider(MemoryDumpProvider* provider, const char* name = "") {
    (void)name;
    std::lock_guard<std::mutex> lock(lock_);
    providers_.push_back(provider);
    if (!std::exchange(is_registered_, true)) trace_on_memory_dump(OnDump, this);
  }
  // Waits until a report that is being made is finished: the provider may be deleted then.
  void UnregisterDumpProvider(MemoryDumpProvider* provider) {
    std::lock_guard<std::mutex> lock(lock_);
    providers_.erase(std::remove(providers_.begin(), providers_.end(), provider), providers_.end());
  }

 private:
  MemoryDumpManager() = default;

  static void OnDump(void* data, trace_memory_dump_t* dump) {
    MemoryDumpManager* manager = static_cast<MemoryDumpManager*>(data);
    MemoryDumpArgs args = {trace_memory_dump_is_detailed(dump) ? MemoryDumpLevelOfDetail::DETAILED
                                                               : MemoryDumpLevelOfDetail::LIGHT};
    std::lock_guard<std::mutex> lock(manager->lock_);
    for (MemoryDumpProvider* provider : manager->providers_) {
      ProcessMemoryDump process_dump(args);
      if (!provider->OnMemoryDump(args, &process_dump)) continue;
      for (const auto& [name, allocator_dump] : process_dump.allocator_dumps()) {
        if (allocator_dump->has_size()) trace_memory_dump_add(dump, name.c_str(), allocator_dump->size());
      }
    }
  }

  std::mutex lock_;
  std::vector<MemoryDumpProvider*> providers_;
  bool is_registered_ = false;
};

}  // namespace trace_event
}  // namespace base

#endif  // TRACE_MEMORY_DUMP_MANAGER_H_
