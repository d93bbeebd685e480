// The names of Perfetto's SDK for track events, as far as docs/c.md#perfetto lists them: C++17. Categories
// are literals; names of events are literals, or perfetto::DynamicString.
#ifndef TRACE_PERFETTO_H_
#define TRACE_PERFETTO_H_

#if defined(LIB_TRACE_EVENT_H_)
#error "<trace/perfetto.h> defines other macros of the same names as <lib/trace/event.h> and <trace/chromium.h>: include one of them in a file"
#endif

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <lib/trace-engine/instrumentation.h>
#include <lib/trace-provider/start.h>
#include <lib/trace/internal/event_internal.h>
#include <zircon/compiler.h>
#include <zircon/syscalls.h>

__BEGIN_CDECLS
// As trace_internal_write_event, with strings that need not stay, on the thread of an id; 0 is the calling
// one.
void trace_internal_write_copied_event(const trace_internal_call_t* call, const trace_internal_event_t* event,
                                       zx_koid_t thread, const trace_arg_value_t* values, size_t num_values);
// Differs for each recording; 0 while there is none.
uint32_t trace_internal_run_number(void);
__END_CDECLS

namespace perfetto {

// A text that stays where it is.
struct StaticString {
  constexpr explicit StaticString(const char* text) : value(text) {}
  const char* value;
};

// A text that may go away after the event.
class DynamicString {
 public:
  explicit DynamicString(const std::string& text) : value(text) {}
  explicit DynamicString(const char* text) : value(text) {}
  DynamicString(const char* text, size_t length) : value(text, length) {}
  std::string value;
};

// A category, as PERFETTO_DEFINE_CATEGORIES lists it.
struct Category {
  constexpr explicit Category(const char* category) : name(category) {}
  constexpr Category SetDescription(const char* text) const {
    Category described = *this;
    described.description = text;
    return described;
  }
  // Tags select nothing here.
  template <typename... T>
  constexpr Category SetTags(const T&...) const {
    return *this;
  }
  const char* name;
  const char* description = nullptr;
};

// A row of the trace beside those of threads.
class Track {
 public:
  constexpr explicit Track(uint64_t id) : uuid(id) {}
  constexpr Track(uint64_t id, Track parent) : uuid(id ^ parent.uuid * UINT64_C(0x9e3779b97f4a7c15)) {}
  static Track FromPointer(const void* pointer) { return Track(reinterpret_cast<uintptr_t>(pointer)); }
  static constexpr Track Global(uint64_t id) { return Track(id); }
  uint64_t uuid;

 protected:
  constexpr Track(uint64_t id, const char* text) : uuid(id), name(text) {}

 public:
  const char* name = "Track";
};

class NamedTrack : public Track {
 public:
  constexpr explicit NamedTrack(StaticString text, uint64_t id = 0) : Track(id, text.value) {}
  constexpr explicit NamedTrack(const char* text, uint64_t id = 0) : Track(id, text) {}
};

// The row of a thread of this process.
class ThreadTrack {
 public:
  static constexpr ThreadTrack Current() { return ThreadTrack(0); }
  static constexpr ThreadTrack ForThread(uint64_t thread) { return ThreadTrack(thread); }
  uint64_t tid;

 private:
  constexpr explicit ThreadTrack(uint64_t thread) : tid(thread) {}
};

// The row of this process. Its instants concern the process.
class ProcessTrack : public Track {
 public:
  static constexpr ProcessTrack Current() { return ProcessTrack(); }

 private:
  constexpr ProcessTrack() : Track(0, "process") {}
};

class CounterTrack {
 public:
  explicit CounterTrack(StaticString text) : name(text.value) {}
  explicit CounterTrack(const char* text) : name(text) {}
  explicit CounterTrack(const DynamicString& text) : own(text.value), name(nullptr) {}
  const char* text() const { return name != nullptr ? name : own.c_str(); }

 private:
  std::string own;
  const char* name;
};

// An arrow between the slices that have the same flow.
class Flow {
 public:
  static Flow Global(uint64_t id) { return Flow(id); }
  static Flow ProcessScoped(uint64_t id) { return Flow(id ^ static_cast<uint64_t>(getpid()) << 40); }
  static Flow FromPointer(const void* pointer) { return ProcessScoped(reinterpret_cast<uintptr_t>(pointer)); }
  uint64_t id;

 private:
  explicit Flow(uint64_t number) : id(number) {}
};

// The end of a flow.
class TerminatingFlow {
 public:
  static TerminatingFlow Global(uint64_t id) { return TerminatingFlow(Flow::Global(id).id); }
  static TerminatingFlow ProcessScoped(uint64_t id) { return TerminatingFlow(Flow::ProcessScoped(id).id); }
  static TerminatingFlow FromPointer(const void* pointer) { return TerminatingFlow(Flow::FromPointer(pointer).id); }
  uint64_t id;

 private:
  explicit TerminatingFlow(uint64_t number) : id(number) {}
};

enum BackendType : uint32_t {
  kUnspecifiedBackend = 0,
  kInProcessBackend = 1 << 0,
  kSystemBackend = 1 << 1,
};

// What records is the manager's business: nothing of this has an effect.
struct TracingInitArgs {
  uint32_t backends = 0;
  uint32_t shmem_size_hint_kb = 0;
  uint32_t shmem_page_size_hint_kb = 0;
  bool supports_multiple_data_source_instances = true;
};

class Tracing {
 public:
  // Joins the manager, as trace_provider_start().
  static void Initialize(const TracingInitArgs&) { Start(); }
  static bool IsInitialized() { return State().load(std::memory_order_relaxed); }

 private:
  friend class TrackEvent;
  static std::atomic<bool>& State() {
    static std::atomic<bool> is_initialized{false};
    return is_initialized;
  }
  static void Start() {
    if (!State().exchange(true)) {
      trace_provider_start();
    }
  }
};

class TrackEvent {
 public:
  // Joins the manager, if Tracing::Initialize has not.
  static bool Register() {
    Tracing::Start();
    return true;
  }
  static bool IsEnabled() { return trace_is_enabled(); }
  // Nothing has to be flushed.
  static void Flush() {}
};

namespace internal {

using ::trace::internal::Type;

template <typename T>
constexpr bool is_flow = std::is_same<Type<T>, Flow>::value || std::is_same<Type<T>, TerminatingFlow>::value;
template <typename T>
constexpr bool is_track = std::is_base_of<Track, Type<T>>::value || std::is_same<Type<T>, ThreadTrack>::value;

TRACE_INTERNAL_INLINE const char* Text(const char* text) { return text; }
TRACE_INTERNAL_INLINE const char* Text(const StaticString& text) { return text.value; }
inline const char* Text(const DynamicString& text) { return text.value.c_str(); }
inline const char* Text(const std::string& text) { return text.c_str(); }
inline const char* Text(std::nullptr_t) { return ""; }

template <typename T>
trace_arg_value_t Value(const T& value) {
  if constexpr (std::is_same<T, DynamicString>::value) {
    return ::trace::internal::MakeValue(value.value);
  } else if constexpr (std::is_same<T, StaticString>::value) {
    return ::trace::internal::MakeValue(value.value);
  } else {
    return ::trace::internal::MakeValue(value);
  }
}

// Where an event goes: 0 is the calling thread.
struct Row {
  bool is_virtual = false;
  bool is_process = false;
  const char* name = nullptr;
  uint64_t id = 0;
};

inline Row MakeRow(const ThreadTrack& track) { return {false, false, nullptr, track.tid}; }
inline Row MakeRow(const ProcessTrack& track) { return {true, true, track.name, track.uuid}; }
inline Row MakeRow(const Track& track) { return {true, false, track.name, track.uuid}; }

constexpr size_t kMaxArguments = 15;

// A row, flows and arguments, in any order.
struct Details {
  Row row;
  size_t arguments = 0;
  const char* names[kMaxArguments + 1];
  trace_arg_value_t values[kMaxArguments + 1];
  size_t flows = 0;
  std::pair<uint64_t, bool> ids[kMaxArguments];

  void Take() {}
  template <typename T, typename... Rest>
  void Take(const T& first, const Rest&... rest) {
    if constexpr (is_track<T>) {
      row = MakeRow(first);
      Take(rest...);
    } else if constexpr (is_flow<T>) {
      if (flows < kMaxArguments) {
        ids[flows++] = {first.id, std::is_same<T, TerminatingFlow>::value};
      }
      Take(rest...);
    } else {
      TakePair(first, rest...);
    }
  }

 private:
  template <typename K>
  void TakePair(const K&) {
    static_assert(::trace::internal::is_never<K>,
                  "expected a track, a flow, or pairs of name and value; lambdas and timestamps have no place here");
  }
  template <typename K, typename V, typename... Rest>
  void TakePair(const K& name, const V& value, const Rest&... rest) {
    static_assert(std::is_convertible<K, const char*>::value || std::is_same<K, StaticString>::value ||
                      std::is_same<K, DynamicString>::value || std::is_same<K, std::string>::value,
                  "the name of an argument is a text");
    if (arguments < kMaxArguments) {
      names[arguments] = Text(name);
      values[arguments++] = Value(value);
    }
    Take(rest...);
  }
};

// Which texts are literals, of a name and the names of arguments: a private recording has only these.
template <typename T>
constexpr bool is_literal = std::is_same<Type<T>, StaticString>::value ||
                            (std::is_array<typename std::remove_reference<T>::type>::value &&
                             std::is_const<typename std::remove_extent<typename std::remove_reference<T>::type>::type>::value);
constexpr bool AreLiterals(std::tuple<>*) { return true; }
template <typename T>
constexpr bool AreLiterals(std::tuple<T>*) {
  // A track or a flow, or the value of a counter.
  return true;
}
template <typename T, typename U, typename... Rest>
constexpr bool AreLiterals(std::tuple<T, U, Rest...>*) {
  if constexpr (is_track<T> || is_flow<T>) {
    return AreLiterals(static_cast<std::tuple<U, Rest...>*>(nullptr));
  } else {
    return is_literal<T> && AreLiterals(static_cast<std::tuple<Rest...>*>(nullptr));
  }
}
template <typename N, typename... Args>
std::integral_constant<uint32_t, (is_literal<N> ? TRACE_INTERNAL_CONSTANT_NAME : 0) |
                                     (AreLiterals(static_cast<std::tuple<Args...>*>(nullptr))
                                          ? TRACE_INTERNAL_CONSTANT_ARGS
                                          : 0)>
Marks(N&&, Args&&...);

// The first part of a flow in a recording begins it. So many flows are remembered; a flow whose place
// another one has taken begins again.
inline bool BeginsFlow(uint64_t id, bool is_last) {
  static std::atomic<uint64_t> begun[1024];
  const uint64_t mixed = (id ^ static_cast<uint64_t>(trace_internal_run_number()) << 32) * UINT64_C(0x9e3779b97f4a7c15) | 1;
  std::atomic<uint64_t>& place = begun[mixed >> 54];
  const bool is_new = place.exchange(is_last ? 0 : mixed, std::memory_order_relaxed) != mixed;
  return is_new && !is_last;
}

// Writes records of one call site.
struct Writer {
  trace_internal_site_t* site;
  trace_internal_arg_name_t* storage;
  const char* category;
  const Row& row;

  void Write(const char* name, const trace_internal_event_t& event, const char* const* names,
             const trace_arg_value_t* values, size_t count) const {
    const trace_internal_call_t call = trace_internal_make_call(site, category, name, names, storage);
    if (row.is_virtual && !(row.is_process && event.type == TRACE_INTERNAL_INSTANT)) {
      trace_internal_write_vthread_event(&call, row.name, row.id, event.type, event.has_extra, event.extra,
                                         zx_ticks_get(), count, values);
    } else if (row.id != 0 && !row.is_virtual) {
      trace_internal_write_copied_event(&call, &event, row.id, values, count);
    } else if (!HasSameTexts(name, names, count) || !Try(event, values, count)) {
      trace_internal_write_event(&call, &event, values, count);
    }
  }

 private:
  // Whether the site was listed with these texts, which stay.
  bool HasSameTexts(const char* name, const char* const* names, size_t count) const {
    bool is_same = trace_internal_site_is_fast(site) && trace_internal_is_same_text(site->name, name);
    for (size_t i = 0; i != count; ++i) {
      is_same = is_same && trace_internal_is_same_text(storage[i].bytes, names[i]);
    }
    return is_same;
  }

  // Writes the event the fast way, if that is possible now.
  bool Try(const trace_internal_event_t& event, const trace_arg_value_t* values, size_t count) const {
    size_t words = trace_internal_event_words(&event);
    for (size_t i = 0; i != count; ++i) {
      words += trace_internal_arg_words(&values[i]);
    }
    trace_internal_record_t record;
    if (!trace_internal_begin(&record, site, &event, words)) {
      return false;
    }
    trace_internal_put_time(&record, &event);
    for (size_t i = 0; i != count; ++i) {
      trace_internal_put_arg(&record, &storage[i], &values[i]);
    }
    trace_internal_put_end(&record, &event);
    trace_internal_commit(&record, &event, words, count);
    return true;
  }
};

// The static of a call site.
struct Site {
  trace_internal_site_t* site;
  trace_internal_arg_name_t* storage;
  const char* category;

  // Whether it is recorded now. A new one enlists, with texts that stay; those of an event may be others.
  bool IsOn(const char* name, const char* const* names, size_t count) const {
    if ((trace_internal_load(&site->word) & TRACE_INTERNAL_NEW) == 0) {
      return true;
    }
    const trace_internal_call_t call = trace_internal_make_call(site, category, name, names, storage);
    return trace_internal_is_on(&call, count);
  }
};

// Writes an event and its flows, and returns whether it is recorded.
template <typename N, typename... Args>
bool WriteEvent(const Site& site, uint32_t type, Row* where, N&& name, Args&&... args) {
  Details details;
  details.Take(args...);
  const char* const text = Text(name);
  constexpr bool stay = AreLiterals(static_cast<std::tuple<Args&&...>*>(nullptr));
  if (!site.IsOn(is_literal<N&&> ? text : "", details.names, stay ? details.arguments : 0)) {
    return false;
  }
  trace_internal_event_t event = trace_internal_make_event(type);
  if (type == TRACE_INTERNAL_INSTANT) {
    event = trace_internal_make_instant(details.row.is_process ? TRACE_SCOPE_PROCESS : TRACE_SCOPE_THREAD);
  }
  if (where != nullptr) {
    *where = details.row;
  }
  const Writer writer = {site.site, site.storage, site.category, details.row};
  // A part of a flow belongs to the slice around it.
  const bool is_end = type == TRACE_INTERNAL_DURATION_END;
  if (!is_end) {
    writer.Write(text, event, details.names, details.values, details.arguments);
  }
  for (size_t i = 0; i != details.flows; ++i) {
    const auto [id, is_last] = details.ids[i];
    const uint32_t part = BeginsFlow(id, is_last) ? TRACE_INTERNAL_FLOW_BEGIN
                          : is_last               ? TRACE_INTERNAL_FLOW_END
                                                  : TRACE_INTERNAL_FLOW_STEP;
    writer.Write("flow", trace_internal_make_event_with(part, id), nullptr, nullptr, 0);
  }
  if (is_end) {
    writer.Write(text, event, details.names, details.values, details.arguments);
  }
  return true;
}

template <uint32_t type, typename N, typename... Args>
void WriteEventOf(const Site& site, N&& name, Args&&... args) {
  (void)WriteEvent(site, type, nullptr, std::forward<N>(name), std::forward<Args>(args)...);
}

// An end has no name: it ends the innermost slice.
template <typename... Args>
void WriteEnd(const Site& site, const char*, Args&&... args) {
  (void)WriteEvent(site, TRACE_INTERNAL_DURATION_END, nullptr, "", std::forward<Args>(args)...);
}

inline const char* CounterName(const CounterTrack& track) { return track.text(); }
template <typename N>
const char* CounterName(const N& name) {
  return Text(name);
}

template <typename N, typename V>
void WriteCounter(const Site& site, N&& name, V value) {
  static_assert(std::is_arithmetic<V>::value, "the value of a counter is a number; timestamps have no place here");
  static const char* const names[] = {"value", ""};
  const trace_arg_value_t values[] = {Value(value)};
  const char* const text = CounterName(name);
  if (!site.IsOn(is_literal<N&&> ? text : "", names, 1)) {
    return;
  }
  const Row row;
  const Writer writer = {site.site, site.storage, site.category, row};
  writer.Write(text, trace_internal_make_event_with(TRACE_INTERNAL_COUNTER, 0), names, values, 1);
}

// Ends a slice with the block, if it has begun.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    if (site_.site != nullptr) {
      const Writer writer = {site_.site, site_.storage, site_.category, row_};
      writer.Write(name_, trace_internal_make_event(TRACE_INTERNAL_DURATION_END), nullptr, nullptr, 0);
    }
  }

  template <typename N, typename... Args>
  void Begin(const Site& site, N&& name, Args&&... args) {
    if constexpr (is_literal<N&&>) {
      name_ = Text(name);
    }
    if (WriteEvent(site, TRACE_INTERNAL_DURATION_BEGIN, &row_, std::forward<N>(name), std::forward<Args>(args)...)) {
      site_ = site;
    }
  }

 private:
  Site site_ = {nullptr, nullptr, nullptr};
  // Empty if it does not stay.
  const char* name_ = "";
  Row row_;
};

// In programs without trace events, arguments are still checked.
template <typename... Args>
constexpr bool Ignore(const Args&...) {
  return false;
}

}  // namespace internal
}  // namespace perfetto

// Categories need no definition: this only checks that they are literals.
#define PERFETTO_DEFINE_CATEGORIES(...)                                                     \
  namespace perfetto_track_event {                                                          \
  [[maybe_unused]] static constexpr ::perfetto::Category kCategories[] = {__VA_ARGS__};      \
  }                                                                                         \
  static_assert(sizeof(perfetto_track_event::kCategories) != 0, "at least one category")
#define PERFETTO_TRACK_EVENT_STATIC_STORAGE() static_assert(true, "nothing has to be stored")

#ifndef NTRACE

// The static of a call site, with room for the names of all arguments. Behind the category are the name and
// what follows it.
#define TRACE_INTERNAL_PERFETTO_SITE(category, ...)                                                                   \
  static trace_internal_site_t trace_internal_site__ = {                                                              \
      TRACE_INTERNAL_ON | TRACE_INTERNAL_NEW,                                                                         \
      NULL,                                                                                                           \
      TRACE_INTERNAL_MARKED | (__builtin_constant_p(category) ? TRACE_INTERNAL_CONSTANT_CATEGORY : 0) |               \
          decltype(::perfetto::internal::Marks(__VA_ARGS__))::value,                                                  \
      NULL,                                                                                                           \
      0,                                                                                                              \
      NULL,                                                                                                           \
      0,                                                                                                              \
      NULL};                                                                                                          \
  static trace_internal_arg_name_t trace_internal_storage__[::perfetto::internal::kMaxArguments + 1]

// Calls a function with the site and what is behind the category, if the category is recorded.
#define TRACE_INTERNAL_PERFETTO(call, category, ...)                                                                  \
  do {                                                                                                                \
    TRACE_INTERNAL_PERFETTO_SITE(category, __VA_ARGS__);                                                              \
    if (__builtin_expect((trace_internal_load(&trace_internal_site__.word) & TRACE_INTERNAL_ON) != 0, 0)) {           \
      TRACE_INTERNAL_NOTE(category);                                                                                  \
      call(::perfetto::internal::Site{&trace_internal_site__, trace_internal_storage__, (category)}, __VA_ARGS__);    \
    }                                                                                                                 \
  } while (0)

#define TRACE_INTERNAL_PERFETTO_EVENT(type, category, ...) \
  TRACE_INTERNAL_PERFETTO(::perfetto::internal::WriteEventOf<TRACE_INTERNAL_##type>, category, __VA_ARGS__)

// TRACE_EVENT(category, name, args...): a slice until the end of the block.
#define TRACE_EVENT(category, ...) \
  TRACE_INTERNAL_PERFETTO_SCOPE(TRACE_INTERNAL_CAT(trace_internal_scope_, __COUNTER__), category, __VA_ARGS__)
#define TRACE_INTERNAL_PERFETTO_SCOPE(scope, category, ...) \
  ::perfetto::internal::Scope scope;                        \
  TRACE_INTERNAL_PERFETTO(scope.Begin, category, __VA_ARGS__)

#define TRACE_EVENT_BEGIN(category, ...) TRACE_INTERNAL_PERFETTO_EVENT(DURATION_BEGIN, category, __VA_ARGS__)
#define TRACE_EVENT_INSTANT(category, ...) TRACE_INTERNAL_PERFETTO_EVENT(INSTANT, category, __VA_ARGS__)
// TRACE_EVENT_END(category, args...): the end of the innermost slice of the thread, or of the track.
#define TRACE_EVENT_END(...) TRACE_INTERNAL_PERFETTO_END(TRACE_INTERNAL_PERFETTO_FIRST(__VA_ARGS__, ~), __VA_ARGS__)
#define TRACE_INTERNAL_PERFETTO_FIRST(first, ...) first
#define TRACE_INTERNAL_PERFETTO_END(category, ...) \
  TRACE_INTERNAL_PERFETTO(::perfetto::internal::WriteEnd, category, __VA_ARGS__)

// TRACE_COUNTER(category, name or CounterTrack, value)
#define TRACE_COUNTER(category, ...) \
  TRACE_INTERNAL_PERFETTO(::perfetto::internal::WriteCounter, category, __VA_ARGS__)

#define TRACE_EVENT_CATEGORY_ENABLED(category)                                                                        \
  (__extension__({                                                                                                    \
    TRACE_INTERNAL_PERFETTO_SITE(category, "");                                                                       \
    (trace_internal_load(&trace_internal_site__.word) & TRACE_INTERNAL_ON) != 0 &&                                    \
        ::perfetto::internal::Site{&trace_internal_site__, trace_internal_storage__, (category)}.IsOn("", nullptr, 0); \
  }))

#else  // NTRACE

#define TRACE_INTERNAL_PERFETTO_DEAD(...) \
  do {                                    \
    (void)sizeof(::perfetto::internal::Ignore(__VA_ARGS__)); \
  } while (0)
#define TRACE_EVENT(...) TRACE_INTERNAL_PERFETTO_DEAD(__VA_ARGS__)
#define TRACE_EVENT_BEGIN(...) TRACE_INTERNAL_PERFETTO_DEAD(__VA_ARGS__)
#define TRACE_EVENT_INSTANT(...) TRACE_INTERNAL_PERFETTO_DEAD(__VA_ARGS__)
#define TRACE_EVENT_END(...) TRACE_INTERNAL_PERFETTO_DEAD(__VA_ARGS__)
#define TRACE_COUNTER(...) TRACE_INTERNAL_PERFETTO_DEAD(__VA_ARGS__)
#define TRACE_EVENT_CATEGORY_ENABLED(category) ((void)(category), false)

#endif  // NTRACE

#endif  // TRACE_PERFETTO_H_
