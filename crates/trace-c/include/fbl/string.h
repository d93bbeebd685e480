// The string class of older programs.
#ifndef FBL_STRING_H_
#define FBL_STRING_H_

#include <string>
#include <string_view>

namespace fbl {

// A std::string that also comes from and goes to views.
class String : public std::string {
 public:
  using std::string::string;
  String() = default;
  String(const std::string& other) : std::string(other) {}
  String(std::string&& other) : std::string(std::move(other)) {}
  String(std::string_view view) : std::string(view) {}
  bool empty() const { return std::string::empty(); }
};

}  // namespace fbl

#endif  // FBL_STRING_H_
