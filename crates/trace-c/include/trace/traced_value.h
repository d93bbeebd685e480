// Chromium's names for arguments that are more than a number or a text: an object that renders itself when
// its event is recorded, and one that builds dictionaries and arrays. The argument is a text with JSON.
//
//   auto value = std::make_unique<base::trace_event::TracedValue>();
//   value->SetInteger("frames", 3);
//   TRACE_EVENT1("app", "Draw", "state", std::move(value));
#ifndef TRACE_TRACED_VALUE_H_
#define TRACE_TRACED_VALUE_H_

#include <trace/chromium.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace base {
namespace trace_event {

// An argument that renders itself, on the thread of the event.
class ConvertableToTraceFormat {
 public:
  ConvertableToTraceFormat() = default;
  ConvertableToTraceFormat(const ConvertableToTraceFormat&) = delete;
  ConvertableToTraceFormat& operator=(const ConvertableToTraceFormat&) = delete;
  virtual ~ConvertableToTraceFormat() = default;

  // Appends a value in JSON. Must not throw.
  virtual void AppendAsTraceFormat(std::string* out) const = 0;

  std::string ToString() const {
    std::string text;
    AppendAsTraceFormat(&text);
    return text;
  }
};

// A dictionary of values, which may be dictionaries and arrays. What is not ended when it is rendered is
// ended there; an end for which nothing has begun does nothing.
class TracedValue : public ConvertableToTraceFormat {
 public:
  TracedValue() = default;
  explicit TracedValue(size_t capacity) { text_.reserve(capacity); }

  void SetInteger(std::string_view name, int value) { Member(name), text_ += std::to_string(value); }
  void SetDouble(std::string_view name, double value) { Member(name), Double(value); }
  void SetBoolean(std::string_view name, bool value) { Member(name), text_ += value ? "true" : "false"; }
  void SetString(std::string_view name, std::string_view value) { Member(name), String(value); }
  // The values of another one.
  void SetValue(std::string_view name, TracedValue* value) { Member(name), value->AppendAsTraceFormat(&text_); }
  void BeginDictionary(std::string_view name) { Member(name), Begin('{'); }
  void BeginArray(std::string_view name) { Member(name), Begin('['); }

  void AppendInteger(int value) { Element(), text_ += std::to_string(value); }
  void AppendDouble(double value) { Element(), Double(value); }
  void AppendBoolean(bool value) { Element(), text_ += value ? "true" : "false"; }
  void AppendString(std::string_view value) { Element(), String(value); }
  void BeginDictionary() { Element(), Begin('{'); }
  void BeginArray() { Element(), Begin('['); }

  void EndDictionary() { End('{'); }
  void EndArray() { End('['); }

  void AppendAsTraceFormat(std::string* out) const override {
    *out += '{';
    *out += text_;
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) *out += *open == '{' ? '}' : ']';
    *out += '}';
  }

 private:
  // A value without a name in a dictionary has an empty one, and one with a name in an array has none.
  void Element() {
    Separate();
    if (open_.empty() || open_.back() == '{') text_ += "\"\":";
  }
  void Member(std::string_view name) {
    Separate();
    if (!open_.empty() && open_.back() == '[') return;
    String(name);
    text_ += ':';
  }
  void Separate() {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ',';
  }
  void Begin(char bracket) {
    text_ += bracket;
    open_.push_back(bracket);
  }
  void End(char bracket) {
    if (open_.empty() || open_.back() != bracket) return;
    text_ += bracket == '{' ? '}' : ']';
    open_.pop_back();
  }
  // JSON has no number that is none.
  void Double(double value) {
    if (!std::isfinite(value)) return String(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.17g", value);
    for (char* digit = digits; *digit != '\0'; ++digit) text_ += *digit == ',' ? '.' : *digit;
  }
  void String(std::string_view value) {
    text_ += '"';
    for (char letter : value) {
      if (letter == '"' || letter == '\\') {
        text_ += '\\';
        text_ += letter;
      } else if (static_cast<unsigned char>(letter) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(letter));
        text_ += escaped;
      } else {
        text_ += letter;
      }
    }
    text_ += '"';
  }

  std::string text_;
  std::vector<char> open_;
};

}  // namespace trace_event
}  // namespace base

namespace trace {
namespace internal {

template <typename T>
constexpr bool is_convertable = std::is_base_of<base::trace_event::ConvertableToTraceFormat, T>::value;

template <typename T>
struct Rendering<T, typename std::enable_if<is_convertable<T>>::type> {
  using Text = std::string;
  static std::string Render(const T& value) { return value.ToString(); }
};

template <typename T>
struct Rendering<std::unique_ptr<T>, typename std::enable_if<is_convertable<T>>::type> {
  using Text = std::string;
  static std::string Render(const std::unique_ptr<T>& value) { return value ? value->ToString() : std::string(); }
};

}  // namespace internal
}  // namespace trace

#endif  // TRACE_TRACED_VALUE_H_
