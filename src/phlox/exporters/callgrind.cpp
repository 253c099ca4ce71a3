#include "phlox/exporters/callgrind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "phlox/exporters/recursion.h"
#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

struct Function {
  std::string object, file, name;
  int32_t first_line = 0;
};

struct Call {
  uint32_t callee = 0;  // function
  int64_t cost = 0;
};

struct Line {
  int64_t cost = 0;
  std::map<uint32_t, int64_t> calls;  // callee -> cost with all that it called
};

std::string object_of(const profile::Profile& profile, const profile::Label& label) {
  switch (label.kind) {
    case profile::FrameKind::python:
      return "Python";
    case profile::FrameKind::native:
    case profile::FrameKind::kernel:
      if (label.module_id && label.module_id.value <= profile.modules().size())
        return displayable(profile.modules()[label.module_id.value - 1].path);
      return label.kind == profile::FrameKind::kernel ? "[kernel]" : "???";
    case profile::FrameKind::marker:
      break;
  }
  return "???";
}

// Strings are written whole once, and by number from then on.
class Names {
 public:
  std::string operator()(const std::string& name) {
    const auto [at, added] = numbers_.try_emplace(name, numbers_.size() + 1);
    return added ? fmt::format("({}) {}", at->second, name) : fmt::format("({})", at->second);
  }

 private:
  std::map<std::string, size_t> numbers_;
};

class Writer {
 public:
  Writer(const profile::Profile& profile, const profile::CallTree& tree, std::ostream& out) : out_(out) {
    number_functions(profile, tree);
    tell_namesakes_apart();
    add_costs(tree);
  }

  void write() {
    for (uint32_t i = 0; i < functions_.size(); ++i) {
      if (lines_[i].empty()) continue;
      const Function& function = functions_[i];
      out_ << "\nob=" << objects_(function.object) << "\nfl=" << files_(function.file)
           << "\nfn=" << names_(function.name) << '\n';
      for (const auto& [number, line] : lines_[i]) {
        if (line.cost != 0 || line.calls.empty()) out_ << number << ' ' << line.cost << '\n';
        for (const auto& [callee, cost] : line.calls) write_call(functions_[callee], number, cost);
      }
    }
  }

 private:
  void number_functions(const profile::Profile& profile, const profile::CallTree& tree) {
    std::map<std::tuple<std::string, std::string, std::string, int32_t>, uint32_t> known;
    for (const profile::Label& label : tree.labels) {
      Function function{object_of(profile, label), label.file.empty() ? "???" : displayable(label.file),
                        displayable(label.whole_name()), label.first_line};
      const auto [at, added] =
          known.try_emplace({function.object, function.file, function.name, function.first_line},
                            static_cast<uint32_t>(functions_.size()));
      if (added) functions_.push_back(std::move(function));
      function_of_.push_back(at->second);
    }
    lines_.resize(functions_.size());
  }

  // Readers take functions of one name in one file for one: before Python 3.11 every __init__ is such.
  void tell_namesakes_apart() {
    std::map<std::tuple<std::string, std::string, std::string>, size_t> count;
    for (const Function& f : functions_) ++count[{f.object, f.file, f.name}];
    for (Function& f : functions_) {
      if (f.first_line > 0 && count[{f.object, f.file, f.name}] > 1)
        f.name += fmt::format(":{}", f.first_line);
    }
  }

  void add_costs(const profile::CallTree& tree) {
    const std::vector<Entered> entered = find_entered(tree, function_of_);
    for (uint32_t i = 1; i < tree.nodes.size(); ++i) {
      const profile::CallNode& node = tree.nodes[i];
      if (node.total == 0) continue;
      const uint32_t function = function_of_[node.label];
      Line& line = lines_[function][tree.labels[node.label].line];
      line.cost += node.self;
      if (node.parent == 0) continue;
      const uint32_t caller = tree.nodes[node.parent].label;
      // Of a function that is under way already the time is in the outer call.
      lines_[function_of_[caller]][tree.labels[caller].line].calls[function] +=
          entered[i].function ? node.total : 0;
    }
    // Weight without any frame to be written under.
    if (tree.nodes[0].self != 0) lines_[function_of_[tree.nodes[0].label]][0].cost += tree.nodes[0].self;
  }

  void write_call(const Function& callee, int32_t line, int64_t cost) {
    out_ << "cob=" << objects_(callee.object) << "\ncfi=" << files_(callee.file)
         << "\ncfn=" << names_(callee.name) << '\n';
    // How often nobody counted: once at least. Of 0 calls callgrind_annotate (3.19) takes the cost that
    // follows for the caller's own.
    out_ << "calls=1 " << callee.first_line << '\n' << line << ' ' << cost << '\n';
  }

  std::ostream& out_;
  std::vector<Function> functions_;
  std::vector<uint32_t> function_of_;           // by label
  std::vector<std::map<int32_t, Line>> lines_;  // by function
  Names objects_, files_, names_;
};

}  // namespace

void write_callgrind(const profile::Profile& profile, const profile::CallTree& tree,
                     const CallgrindFacts& facts, std::ostream& out) {
  const bool counted = facts.weight == profile::Weight::samples;
  const char* unit = facts.weight == profile::Weight::cpu ? "CPU_ns" : counted ? "Samples" : "Wall_ns";
  out << "# callgrind format\nversion: 1\ncreator: phlox " PHLOX_VERSION "\n";
  if (!facts.command.empty()) out << "cmd: " << displayable(facts.command) << '\n';
  if (!facts.description.empty()) out << "desc: Recording: " << displayable(facts.description) << '\n';
  out << "positions: line\nevents: " << unit << "\nsummary: " << tree.total << '\n';
  Writer(profile, tree, out).write();
  out << "\ntotals: " << tree.total << '\n';
}

}  // namespace phlox::exporters
