#include "phlox/exporters/pstats.h"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "phlox/exporters/recursion.h"
#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

// CPython's Python/marshal.c, format version 3 and later (Python 3.4). An object whose type has kReference
// set can be referenced later by its number.
class Marshal {
 public:
  explicit Marshal(std::ostream& out) : out_(out) {}

  void begin_dictionary() { out_.put('{'); }
  void end_dictionary() { out_.put('0'); }
  void begin_tuple(uint32_t length) {
    out_.put('(');
    number(length);
  }
  void begin_named_tuple(uint32_t length) {
    out_.put(static_cast<char>('(' | kReference));
    number(length);
  }
  void reference(uint32_t which) {
    out_.put('r');
    number(which);
  }
  void text(std::string_view text) {
    out_.put('u');
    number(static_cast<uint32_t>(text.size()));
    out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  void integer(int32_t value) {
    out_.put('i');
    number(static_cast<uint32_t>(value));
  }
  void real(double value) {
    out_.put('g');
    little_endian(std::bit_cast<uint64_t>(value), 8);
  }

 private:
  static constexpr unsigned kReference = 0x80;

  void number(uint32_t value) { little_endian(value, 4); }
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.put(static_cast<char>(value >> (8 * i) & 0xff));
  }

  std::ostream& out_;
};

struct Cost {
  int64_t self = 0;
  int64_t total = 0;  // including callees; recursion counted once
};

struct Function {
  std::string file, name;
  int32_t line = 0;
  Cost cost;
  std::map<uint32_t, Cost> callers;
};

class Functions {
 public:
  explicit Functions(const view::CallTree& tree) {
    for (const view::Label& label : tree.labels) function_of_.push_back(number(label));
    const std::vector<Entered> entered = find_entered(tree, function_of_);
    for (uint32_t i = 0; i < tree.nodes.size(); ++i) {
      const view::CallNode& node = tree.nodes[i];
      if (i == 0 ? node.self == 0 : node.total == 0) continue;
      Function& function = rows_[function_of_[node.label]];
      function.cost.self += node.self;
      if (i == 0 || entered[i].function) function.cost.total += i == 0 ? node.self : node.total;
      if (i == 0 || node.parent == 0) continue;
      Cost& called = function.callers[function_of_[tree.nodes[node.parent].label]];
      called.self += node.self;
      if (entered[i].call) called.total += node.total;
    }
  }
  const std::vector<Function>& rows() const { return rows_; }

 private:
  uint32_t number(const view::Label& label) {
    // "~" is cProfile's name for a missing file.
    Function function{label.file.empty() ? label.module : label.file, label.whole_name(), label.line, {}, {}};
    if (function.file.empty()) function.file = "~";
    const auto [at, added] = known_.try_emplace({function.file, function.line, function.name},
                                                static_cast<uint32_t>(rows_.size()));
    if (added) rows_.push_back(std::move(function));
    return at->second;
  }

  std::map<std::tuple<std::string, int32_t, std::string>, uint32_t> known_;
  std::vector<uint32_t> function_of_;  // by label
  std::vector<Function> rows_;
};

class PstatsWriter {
 public:
  PstatsWriter(const std::vector<Function>& functions, double unit, std::ostream& out)
      : functions_(functions), unit_(unit), marshal_(out), reference_(functions.size(), kNone) {}

  void write() {
    marshal_.begin_dictionary();
    for (uint32_t i = 0; i < functions_.size(); ++i) {
      const Function& function = functions_[i];
      if (function.cost.total == 0 && function.cost.self == 0) continue;
      key(i);
      marshal_.begin_tuple(5);
      costs(function.cost);
      marshal_.begin_dictionary();
      for (const auto& [caller, cost] : function.callers) {
        key(caller);
        marshal_.begin_tuple(4);
        costs(cost);
      }
      marshal_.end_dictionary();
    }
    marshal_.end_dictionary();
  }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  void key(uint32_t function) {
    uint32_t& reference = reference_[function];
    if (reference != kNone) return marshal_.reference(reference);
    reference = references_++;
    marshal_.begin_named_tuple(3);
    marshal_.text(displayable(functions_[function].file));
    marshal_.integer(functions_[function].line);
    marshal_.text(displayable(functions_[function].name));
  }
  // Calls (all, and non-recursive ones), seconds.
  void costs(const Cost& cost) {
    marshal_.integer(0);
    marshal_.integer(0);
    marshal_.real(static_cast<double>(cost.self) / unit_);
    marshal_.real(static_cast<double>(cost.total) / unit_);
  }

  const std::vector<Function>& functions_;
  double unit_;
  Marshal marshal_;
  std::vector<uint32_t> reference_;  // by function
  uint32_t references_ = 0;
};

}  // namespace

void write_pstats(const view::CallTree& tree, view::Weight weight, std::ostream& out) {
  const Functions functions(tree);
  PstatsWriter(functions.rows(), is_time(weight) ? 1e9 : 1.0, out).write();
}

}  // namespace phlox::exporters
