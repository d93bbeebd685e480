// The vector class of older programs.
#ifndef FBL_VECTOR_H_
#define FBL_VECTOR_H_

#include <utility>
#include <vector>

namespace fbl {

template <typename T>
class Vector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Vector(std::vector<T>&& other) : std::vector<T>(std::move(other)) {}
  bool is_empty() const { return this->empty(); }
  T* get() { return this->data(); }
  const T* get() const { return this->data(); }
};

}  // namespace fbl

#endif  // FBL_VECTOR_H_
