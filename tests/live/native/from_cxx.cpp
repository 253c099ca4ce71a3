// What from_cxx.py calls: a template, a closure, a virtual function and a handler of exceptions between it
// and Python.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Order {
  virtual ~Order() = default;
  virtual bool before(const std::string& a, const std::string& b) = 0;
};

class ByCallBack : public Order {
 public:
  explicit ByCallBack(std::function<int(int)> ask) : ask_(std::move(ask)) {}
  __attribute__((noinline)) bool before(const std::string& a, const std::string& b) override {
    return ask_(static_cast<int>(a.size())) < static_cast<int>(b.size());
  }

 private:
  std::function<int(int)> ask_;
};

template <class T>
__attribute__((noinline)) size_t sort_by(std::vector<T> values, Order& order) {
  std::stable_sort(values.begin(), values.end(),
                   [&order](const T& a, const T& b) { return order.before(a, b); });
  return values.size();
}

}  // namespace

extern "C" int from_cxx(int (*call_back)(int)) {
  try {
    ByCallBack order(call_back);
    return static_cast<int>(sort_by<std::string>({"one", "two", "three"}, order));
  } catch (const std::exception&) {
    return -1;
  }
}
