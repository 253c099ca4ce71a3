#include "phlox/exporters/callgrind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/exporters/recursion.h"
#include "phlox/exporters/words.h"
#include "phlox/view/await_time.h"

namespace phlox::exporters {
namespace {

struct CallgrindFunction {
  std::string object, file, name;
  int32_t first_line = 0;
};

// One number for each event, without zeros at the end.
using CallCost = std::vector<int64_t>;

void add(CallCost& cost, size_t event, int64_t value) {
  if (value == 0) return;
  if (cost.size() <= event) cost.resize(event + 1);
  cost[event] += value;
}

// Omitted numbers at the end of a line are 0.
std::string words(const CallCost& cost) {
  return cost.empty() ? "0" : fmt::format("{}", fmt::join(cost, " "));
}

struct Line {
  CallCost cost;
  std::map<uint32_t, CallCost> calls;  // callee -> cost including all its callees
};

// The event as one word: the ':' of "cache-misses:u" would end it.
std::string event_word(const std::string& name) {
  std::string word;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    word += plain ? c : '_';
  }
  return word.empty() ? "event" : word;
}

constexpr std::string_view kAwaitEvent = "Await_ns";

std::string callgrind_event(view::Weight weight, const std::string& event) {
  switch (weight) {
    case view::Weight::wall:
      return "Wall_ns";
    case view::Weight::cpu:
      return "CPU_ns";
    case view::Weight::samples:
      return "Samples";
    case view::Weight::count:
    case view::Weight::bytes:
      break;
  }
  return event_word(event);
}

std::string object_of(const profile::Profile& profile, const view::Label& label) {
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

// A string is written in full once, and by number after that.
class Names {
 public:
  std::string operator()(const std::string& name) {
    const auto [at, added] = numbers_.try_emplace(name, numbers_.size() + 1);
    return added ? fmt::format("({}) {}", at->second, name) : fmt::format("({})", at->second);
  }

 private:
  std::map<std::string, size_t> numbers_;
};

class CallgrindWriter {
 public:
  CallgrindWriter(const profile::Profile& profile, const std::vector<const view::CallTree*>& trees,
                  std::ostream& out)
      : out_(out) {
    for (const view::CallTree* tree : trees) number_functions(profile, *tree);
    tell_namesakes_apart();
    for (size_t event = 0; event < trees.size(); ++event)
      add_costs(*trees[event], function_of_[event], event);
  }

  void write() {
    for (uint32_t i = 0; i < functions_.size(); ++i) {
      if (lines_[i].empty()) continue;
      const CallgrindFunction& function = functions_[i];
      out_ << "\nob=" << objects_(function.object) << "\nfl=" << files_(function.file)
           << "\nfn=" << names_(function.name) << '\n';
      for (const auto& [number, line] : lines_[i]) {
        if (!line.cost.empty() || line.calls.empty()) out_ << number << ' ' << words(line.cost) << '\n';
        for (const auto& [callee, cost] : line.calls) write_call(functions_[callee], number, cost);
      }
    }
  }

 private:
  void number_functions(const profile::Profile& profile, const view::CallTree& tree) {
    std::vector<uint32_t>& function_of = function_of_.emplace_back();
    for (const view::Label& label : tree.labels) {
      CallgrindFunction function{object_of(profile, label),
                                 label.file.empty() ? "???" : displayable(label.file),
                                 displayable(label.whole_name()), label.first_line};
      const auto [at, added] =
          known_.try_emplace({function.object, function.file, function.name, function.first_line},
                             static_cast<uint32_t>(functions_.size()));
      if (added) functions_.push_back(std::move(function));
      function_of.push_back(at->second);
    }
    lines_.resize(functions_.size());
  }

  // Readers merge functions of one name in one file: before Python 3.11 every __init__ is such a function.
  void tell_namesakes_apart() {
    std::map<std::tuple<std::string, std::string, std::string>, size_t> count;
    for (const CallgrindFunction& f : functions_) ++count[{f.object, f.file, f.name}];
    for (CallgrindFunction& f : functions_) {
      if (f.first_line > 0 && count[{f.object, f.file, f.name}] > 1)
        f.name += fmt::format(":{}", f.first_line);
    }
  }

  void add_costs(const view::CallTree& tree, const std::vector<uint32_t>& function_of, size_t event) {
    const std::vector<Entered> entered = find_entered(tree, function_of);
    for (uint32_t i = 1; i < tree.nodes.size(); ++i) {
      const view::CallNode& node = tree.nodes[i];
      if (node.total == 0) continue;
      const uint32_t function = function_of[node.label];
      Line& line = lines_[function][tree.labels[node.label].line];
      add(line.cost, event, node.self);
      if (node.parent == 0) continue;
      const uint32_t caller = tree.nodes[node.parent].label;
      // For a recursive call the time is already in the outer call.
      add(lines_[function_of[caller]][tree.labels[caller].line].calls[function], event,
          entered[i].function ? node.total : 0);
    }
    // Weight that has no frame.
    if (tree.nodes[0].self != 0)
      add(lines_[function_of[tree.nodes[0].label]][0].cost, event, tree.nodes[0].self);
  }

  void write_call(const CallgrindFunction& callee, int32_t line, const CallCost& cost) {
    out_ << "cob=" << objects_(callee.object) << "\ncfi=" << files_(callee.file)
         << "\ncfn=" << names_(callee.name) << '\n';
    // The number of calls is unknown, but at least 1. With 0 calls, callgrind_annotate (3.19) takes the
    // following cost for the caller's own.
    out_ << "calls=1 " << callee.first_line << '\n' << line << ' ' << words(cost) << '\n';
  }

  std::ostream& out_;
  std::vector<CallgrindFunction> functions_;
  std::map<std::tuple<std::string, std::string, std::string, int32_t>, uint32_t> known_;
  std::vector<std::vector<uint32_t>> function_of_;  // by tree and label
  std::vector<std::map<int32_t, Line>> lines_;      // by function
  Names objects_, files_, names_;
};

}  // namespace

void write_callgrind(const profile::Profile& profile, const view::CallTree& tree, const CallgrindFacts& facts,
                     std::ostream& out) {
  std::vector<const view::CallTree*> trees = {&tree};
  std::string events = facts.awaits ? std::string(kAwaitEvent) : callgrind_event(facts.weight, facts.event);
  CallCost totals = {tree.total};
  for (const EventTree& other : facts.others) {
    trees.push_back(&other.tree);
    events += ' ';
    events += other.event.name == view::kAwaitTime ? std::string(kAwaitEvent) : event_word(other.event.name);
    totals.push_back(other.tree.total);
  }
  out << "# callgrind format\nversion: 1\ncreator: phlox " PHLOX_VERSION "\n";
  if (!facts.command.empty()) out << "cmd: " << displayable(facts.command) << '\n';
  if (!facts.description.empty()) out << "desc: Recording: " << displayable(facts.description) << '\n';
  out << "positions: line\nevents: " << events << "\nsummary: " << words(totals) << '\n';
  CallgrindWriter(profile, trees, out).write();
  out << "\ntotals: " << words(totals) << '\n';
}

}  // namespace phlox::exporters
