// Functions that may own what cannot be copied.
#ifndef LIB_FIT_FUNCTION_H_
#define LIB_FIT_FUNCTION_H_

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace fit {

template <typename T>
class function;

// Something callable, moved and not copied; or nothing, which must not be called.
template <typename Result, typename... Arguments>
class function<Result(Arguments...)> final {
 public:
  function() = default;
  function(std::nullptr_t) {}
  template <typename F, typename = std::enable_if_t<!std::is_same<std::decay_t<F>, function>::value>>
  function(F&& target) : target_(new Target<std::decay_t<F>>(std::forward<F>(target))) {}
  function(function&&) = default;
  function& operator=(function&&) = default;

  explicit operator bool() const { return target_ != nullptr; }
  Result operator()(Arguments... arguments) const { return target_->Call(std::forward<Arguments>(arguments)...); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual Result Call(Arguments... arguments) = 0;
  };
  template <typename F>
  struct Target final : Callable {
    template <typename G>
    explicit Target(G&& target) : target(std::forward<G>(target)) {}
    Result Call(Arguments... arguments) override { return target(std::forward<Arguments>(arguments)...); }
    F target;
  };
  std::unique_ptr<Callable> target_;
};

using closure = function<void()>;

}  // namespace fit

#endif  // LIB_FIT_FUNCTION_H_
