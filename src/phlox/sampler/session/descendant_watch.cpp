#include "phlox/sampler/session/descendant_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "phlox/base/text.h"
#include "phlox/process/process_facts.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/text_file.h"

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kEvery = kSecond / 2;
// Checks take at most one part in this many of a CPU; with many processes they are rarer.
constexpr int64_t kRest = 200;
constexpr size_t kMostProcesses = 1000, kLongestCommand = 400;

Nanoseconds tick_length() {
  return kSecond / std::max(1L, ::sysconf(_SC_CLK_TCK));
}

uint64_t ticks_since(uint64_t before, uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

std::optional<ProcessTicks> parse_process_ticks(std::string_view text) {
  const size_t name = text.rfind(')');
  if (name == std::string_view::npos) return {};
  text.remove_prefix(name + 1);
  // Field 3, the state, comes next; the last one needed is 22.
  std::array<uint64_t, 23> fields{};
  for (size_t i = 3; i < fields.size(); ++i) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    // Some are negative (tty_nr), but none of these is needed.
    if (i > 3) fields[i] = parse_number<uint64_t>(word).value_or(0);
  }
  if (fields[22] == 0) return {};
  return ProcessTicks{static_cast<pid_t>(fields[4]), fields[14] + fields[15], fields[16] + fields[17],
                      fields[22]};
}

void DescendantAccount::check(Nanoseconds now, const std::vector<Seen>& all) {
  std::set<Identity> there;
  for (const Seen& seen : all) {
    const Identity id{seen.pid, seen.ticks.start};
    there.insert(id);
    if (!seen.recorded) {
      note_other(now, seen);
      continue;
    }
    others_.erase(id);  // its Python is up by now
    const auto [at, fresh] = recorded_.try_emplace(id);
    if (fresh) {
      at->second.first = now;
      if (seen.ticks.start < began_) at->second.waited_before = seen.ticks.waited;
    }
    at->second.waited = seen.ticks.waited;
    at->second.last = now;
  }
  note_parents(all);
  note_ended(now, there);
}

void DescendantAccount::note_other(Nanoseconds now, const Seen& seen) {
  const Identity id{seen.pid, seen.ticks.start};
  if (!others_.contains(id) && others_.size() >= kMostProcesses) return;
  const auto [at, fresh] = others_.try_emplace(id);
  Other& other = at->second;
  if (fresh) {
    other.row.pid = seen.pid;
    other.row.start = now;
    if (seen.ticks.start < began_) {
      other.used_before = seen.ticks.used;
      other.waited_before = seen.ticks.waited;
    }
  }
  other.last = seen.ticks;
  other.row.parent = seen.ticks.parent;
  other.row.end = now;
  if (!seen.command_line.empty()) other.row.command_line = seen.command_line;
}

// As last seen; none: the parent is not in others_.
DescendantAccount::Rows::const_iterator DescendantAccount::parent_of(Identity id) const {
  const pid_t parent = others_.at(id).row.parent;
  // Among the processes that had this id, the youngest that is no younger than its child.
  auto at = others_.upper_bound({parent, id.second});
  if (at == others_.begin()) return others_.end();
  --at;
  return at->first.first == parent && at->first != id ? at : others_.end();
}

// The closest ancestor that has not ended: a shell passes on the time of what it has waited for. None: it is
// not in others_.
DescendantAccount::Rows::const_iterator DescendantAccount::living_above(Identity id) const {
  auto at = parent_of(id);
  for (size_t i = 0; i < kMostProcesses && at != others_.end() && at->second.row.ended; ++i)
    at = parent_of(at->first);
  return at;
}

// The process, not in others_, to which its ended ancestors pass on its time.
pid_t DescendantAccount::waits_for(Identity id) const {
  for (size_t i = 0; i < kMostProcesses; ++i) {
    const auto above = parent_of(id);
    if (above == others_.end() || !above->second.row.ended) break;
    id = above->first;
  }
  return others_.at(id).row.parent;
}

// An ancestor may wait for a recorded Python, whose time is counted already; that time reaches all ancestors.
void DescendantAccount::note_parents(const std::vector<Seen>& all) {
  for (const Seen& seen : all) {
    if (!seen.recorded) continue;
    pid_t above = seen.ticks.parent;
    for (size_t i = 0; i < kMostProcesses; ++i) {
      const auto at = std::find_if(others_.begin(), others_.end(), [&](const auto& one) {
        return one.first.first == above && !one.second.row.ended;
      });
      if (at == others_.end()) break;
      at->second.waits_for_recorded = true;
      above = at->second.row.parent;
    }
    for (auto& [id, one] : recorded_) one.has_recorded_children |= id.first == above;
  }
}

void DescendantAccount::note_ended(Nanoseconds now, const std::set<Identity>& there) {
  std::vector<Identity> ended;
  for (auto& [id, other] : others_) {
    if (other.row.ended || there.contains(id)) continue;
    other.row.ended = true;
    other.row.end = now;
    ended.push_back(id);
  }
  for (const Identity& id : ended) {
    const auto above = living_above(id);
    others_.at(id).is_merged = above != others_.end() && !above->second.waits_for_recorded;
  }
}

std::vector<profile::Descendant> DescendantAccount::rows() const {
  std::vector<profile::Descendant> rows;
  std::map<pid_t, Nanoseconds>
      known;  // the time of ended children, as last seen, by the process that waited for them
  for (const auto& [id, other] : others_) {
    if (other.is_merged) continue;
    uint64_t used = ticks_since(other.used_before, other.last.used);
    if (!other.waits_for_recorded) used += ticks_since(other.waited_before, other.last.waited);
    rows.push_back(other.row);
    rows.back().cpu = time_of(used);
    if (other.row.ended) known[waits_for(id)] += rows.back().cpu;
  }
  for (const auto& [id, one] : recorded_) {
    if (one.has_recorded_children) continue;
    const auto seen = known.find(id.first);
    const Nanoseconds rest =
        time_of(ticks_since(one.waited_before, one.waited)) - (seen == known.end() ? 0 : seen->second);
    if (rest <= 0) continue;
    // A child that was seen may have used some of it between its last check and its end.
    std::string whose =
        seen != known.end()
            ? fmt::format("(children of process {}, after the last reading of their CPU time)", id.first)
            : fmt::format("(children of process {} that ended soon)", id.first);
    rows.push_back({0, id.first, one.first, one.last, rest, true, std::move(whose)});
  }
  std::erase_if(rows, [](const auto& row) { return row.cpu <= 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.cpu > b.cpu; });
  return rows;
}

DescendantWatch::DescendantWatch()
    : account_(static_cast<uint64_t>(clock_now(CLOCK_BOOTTIME) / tick_length()), tick_length()) {}

void DescendantWatch::check(Nanoseconds now, const std::vector<pid_t>& of,
                            const std::function<bool(pid_t)>& recorded) {
  const Nanoseconds begin = clock_now();
  std::vector<DescendantAccount::Seen> all;
  std::set<pid_t> met(of.begin(), of.end());
  std::vector<pid_t> order(met.begin(), met.end());
  const pid_t ourselves = ::getpid();
  for (size_t i = 0; i < order.size() && i < kMostProcesses; ++i) {
    const pid_t pid = order[i];
    if (pid == ourselves) continue;  // a recorded process may have started us
    for (const pid_t child : process::read_children(pid)) {
      if (met.insert(child).second) order.push_back(child);
    }
    const auto text = process::read_text(fmt::format("/proc/{}/stat", pid));
    const auto ticks = text ? parse_process_ticks(*text) : std::nullopt;
    if (!ticks) continue;
    DescendantAccount::Seen seen{pid, *ticks, recorded(pid), {}};
    // Between fork() and execve() it has its parent's command line.
    if (!seen.recorded) {
      const auto facts = process::read_process(pid);
      seen.command_line = facts.command_line.empty() ? facts.executable : facts.command_line;
      seen.command_line = seen.command_line.substr(0, kLongestCommand);
    }
    all.push_back(std::move(seen));
  }
  account_.check(now, all);
  next_ = now + std::max(kEvery, (clock_now() - begin) * kRest);
}

}  // namespace phlox::sampler
