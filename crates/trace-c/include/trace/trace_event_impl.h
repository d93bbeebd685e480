// Chromium's names for what a hook sees of an event: see TraceLog::SetAddTraceEventOverrides().
#ifndef TRACE_TRACE_EVENT_IMPL_H_
#define TRACE_TRACE_EVENT_IMPL_H_

#include <lib/trace-engine/hook.h>
#include <trace-json/c_api.h>
#include <trace/chromium.h>
#include <zircon/syscalls.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace base {
namespace trace_event {

// The value of an argument: the field that its type names.
union TraceValue {
  bool as_bool;
  unsigned long long as_uint;
  long long as_int;
  double as_double;
  const void* as_pointer;
  const char* as_string;
};

// Names an event for the functions of a hook, which fill it in as they like.
struct TraceEventHandle {
  unsigned chunk_seq;
  unsigned chunk_index : 26;
  unsigned event_index : 6;
};

// Whether an argument of this name is written.
using ArgumentNameFilterPredicate = std::function<bool(const char* arg_name)>;
// Whether arguments of an event are written; it may fill in a function for each of them. Must not throw.
using ArgumentFilterPredicate =
    std::function<bool(const char* category_group_name, const char* event_name, ArgumentNameFilterPredicate*)>;
using MetadataFilterPredicate = std::function<bool(const std::string& metadata_name)>;

namespace internal {
// trace_json_predicate_t, with an ArgumentFilterPredicate.
inline bool KeepsArgument(void* context, const char* category, const char* name, const char* argument) {
  ArgumentNameFilterPredicate names;
  if (!(*static_cast<const ArgumentFilterPredicate*>(context))(category, name, &names)) return false;
  return argument == nullptr || !names || names(argument);
}
}  // namespace internal

// An event that a hook sees. It is valid during the call, as are the texts that it returns.
class TraceEvent {
 public:
  explicit TraceEvent(const trace_hook_event_t& event)
      : event_(event), category_(Text(event.category)), name_(Text(event.name)) {
    for (size_t i = 0; i < arg_size(); ++i) {
      arg_names_[i] = Text(event.args[i].name_ref);
      if (event.args[i].value.type == TRACE_ARG_STRING) arg_texts_[i] = Text(event.args[i].value.string_value_ref);
    }
  }
  TraceEvent(const TraceEvent&) = delete;
  TraceEvent& operator=(const TraceEvent&) = delete;

  // TRACE_EVENT_PHASE_...
  char phase() const {
    static const char kPhases[] = "ICBEXbnestf";
    return event_.type < sizeof(kPhases) - 1 ? kPhases[event_.type] : '\0';
  }
  const char* name() const { return name_.c_str(); }
  const unsigned char* category_group() const { return reinterpret_cast<const unsigned char*>(category_.c_str()); }
  // In ticks, of which zx_ticks_per_second() pass in a second.
  zx_ticks_t timestamp() const { return event_.timestamp; }
  // Of a complete duration, in ticks; 0 otherwise.
  zx_ticks_t duration() const { return event_.end - event_.timestamp; }
  unsigned long long id() const { return event_.id; }
  uint64_t thread_id() const { return event_.thread_koid; }
  uint64_t process_id() const { return event_.process_koid; }
  // TRACE_EVENT_SCOPE_... of an instant.
  unsigned scope() const {
    return event_.scope == TRACE_SCOPE_GLOBAL    ? TRACE_EVENT_SCOPE_GLOBAL
           : event_.scope == TRACE_SCOPE_PROCESS ? TRACE_EVENT_SCOPE_PROCESS
                                                 : TRACE_EVENT_SCOPE_THREAD;
  }

  size_t arg_size() const { return event_.num_args < TRACE_MAX_ARGS ? event_.num_args : TRACE_MAX_ARGS; }
  const char* arg_name(size_t index) const { return arg_names_[index].c_str(); }
  // TRACE_VALUE_TYPE_...; an argument without a value is a null pointer.
  unsigned char arg_type(size_t index) const {
    switch (event_.args[index].value.type) {
      case TRACE_ARG_BOOL:
        return TRACE_VALUE_TYPE_BOOL;
      case TRACE_ARG_INT32:
      case TRACE_ARG_INT64:
        return TRACE_VALUE_TYPE_INT;
      case TRACE_ARG_UINT32:
      case TRACE_ARG_UINT64:
      case TRACE_ARG_KOID:
        return TRACE_VALUE_TYPE_UINT;
      case TRACE_ARG_DOUBLE:
        return TRACE_VALUE_TYPE_DOUBLE;
      case TRACE_ARG_STRING:
        return TRACE_VALUE_TYPE_COPY_STRING;
      default:
        return TRACE_VALUE_TYPE_POINTER;
    }
  }
  TraceValue arg_value(size_t index) const {
    const trace_arg_value_t& value = event_.args[index].value;
    TraceValue result = {};
    switch (value.type) {
      case TRACE_ARG_BOOL:
        result.as_bool = value.bool_value;
        break;
      case TRACE_ARG_INT32:
        result.as_int = value.int32_value;
        break;
      case TRACE_ARG_INT64:
        result.as_int = value.int64_value;
        break;
      case TRACE_ARG_UINT32:
        result.as_uint = value.uint32_value;
        break;
      case TRACE_ARG_UINT64:
        result.as_uint = value.uint64_value;
        break;
      case TRACE_ARG_KOID:
        result.as_uint = value.koid_value;
        break;
      case TRACE_ARG_DOUBLE:
        result.as_double = value.double_value;
        break;
      case TRACE_ARG_STRING:
        result.as_string = arg_texts_[index].c_str();
        break;
      case TRACE_ARG_POINTER:
        result.as_pointer = reinterpret_cast<const void*>(value.pointer_value);
        break;
      default:
        result.as_pointer = nullptr;
        break;
    }
    return result;
  }

  // Appends the event as TraceLog::Flush() writes it. Link with -ltracejson.
  void AppendAsJSON(std::string* out, const ArgumentFilterPredicate& argument_filter_predicate = nullptr) const {
    trace_json_argument_t arguments[TRACE_MAX_ARGS];
    for (size_t i = 0; i < arg_size(); ++i) {
      const trace_arg_value_t& value = event_.args[i].value;
      arguments[i].name = {arg_names_[i].data(), arg_names_[i].size()};
      arguments[i].type = value.type;
      arguments[i].value.number = value.type == TRACE_ARG_BOOL ? value.bool_value
                                  : value.type == TRACE_ARG_INT32 ? static_cast<uint64_t>(value.int32_value)
                                  : value.type == TRACE_ARG_UINT32 ? value.uint32_value
                                                                   : value.uint64_value;
      if (value.type == TRACE_ARG_STRING) arguments[i].value.text = {arg_texts_[i].data(), arg_texts_[i].size()};
    }
    const trace_json_event_t event = {
        event_.type, event_.scope, event_.timestamp, event_.end, zx_ticks_per_second(), event_.id, event_.process_koid,
        event_.thread_koid, {category_.data(), category_.size()}, {name_.data(), name_.size()}, arguments, arg_size()};
    auto append = [](void* context, const char* text, size_t length, bool) {
      static_cast<std::string*>(context)->append(text, length);
    };
    trace_json_write_event(&event, argument_filter_predicate ? internal::KeepsArgument : nullptr,
                           const_cast<ArgumentFilterPredicate*>(&argument_filter_predicate), append, out);
  }

 private:
  static std::string Text(const trace_string_ref_t& ref) {
    return trace_is_inline_string_ref(&ref) ? std::string(ref.inline_string, trace_inline_string_ref_length(&ref))
                                            : std::string();
  }

  const trace_hook_event_t& event_;
  std::string category_;
  std::string name_;
  std::string arg_names_[TRACE_MAX_ARGS];
  std::string arg_texts_[TRACE_MAX_ARGS];
};

}  // namespace trace_event
}  // namespace base

#endif  // TRACE_TRACE_EVENT_IMPL_H_
