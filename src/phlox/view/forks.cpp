#include "phlox/view/forks.h"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/recorded_words.h"

namespace phlox::view {

using namespace profile;

namespace {

// A function that forks, and the one that it calls only in the child. `file`: the last part of its path.
struct ForkCall {
  std::string_view caller, file, child;
};
constexpr ForkCall kForkCalls[] = {
    // multiprocessing, multiprocess, billiard (celery): Popen._launch
    {"_launch", "popen_fork.py", "_bootstrap"},
    {"main", "forkserver.py", "_serve_one"},
    {"ForkingMixIn.process_request", "socketserver.py", "finish_request"},
    {"spawn_worker", "arbiter.py", "init_process"},  // gunicorn
    {"fork_work_horse", "", "main_work_horse"},      // rq
    {"__init__", "forkedfunc.py", "_child"},         // pytest-forked
};

bool is_called(const Frame& frame, std::string_view name) {
  return name.find('.') == std::string_view::npos ? frame.function == name : frame.qualified_name == name;
}

bool forks(const Frame& caller, const Frame& child) {
  return std::any_of(std::begin(kForkCalls), std::end(kForkCalls), [&](const ForkCall& call) {
    return is_called(child, call.child) && is_called(caller, call.caller) &&
           (call.file.empty() || base_name(caller.file) == call.file);
  });
}

bool same_function(const Frame& one, const Frame& other) {
  return one.kind == other.kind && one.qualified_name == other.qualified_name && one.file == other.file &&
         one.first_line == other.first_line;
}

// One stack, root first: its rows up to the first omission.
struct Chain {
  std::vector<StackId> rows;  // of Python frames
  std::vector<FrameId> frames;
  bool is_whole = true;
};

class Forks {
 public:
  Forks(Profile& profile, Inherited inherited) : profile_(profile), inherited_(inherited) {
    for (uint32_t i = 0; i < profile.threads().size(); ++i) {
      const Thread& thread = profile.threads()[i];
      if (!is_process(thread.process)) continue;
      threads_of_[thread.process].push_back(ThreadId(i + 1));
    }
  }

  void show() {
    for (uint32_t i = 1; i <= profile_.processes().size(); ++i) {
      const ProcessId id(i);
      const ThreadId first = first_thread(id);
      if (!first) continue;
      const std::vector<FrameId> fork = fork_stack(id, first);
      if (!fork.empty()) mark(samples_of(first), fork);
    }
  }

 private:
  bool is_process(ProcessId id) const { return id && id.value <= profile_.processes().size(); }
  const Frame& frame(FrameId id) const { return profile_.frame(id); }

  // The thread that came out of fork().
  ThreadId first_thread(ProcessId id) const {
    const auto found = threads_of_.find(id);
    if (found == threads_of_.end()) return {};
    for (const ThreadId thread : found->second) {
      if (profile_.thread(thread).tid == profile_.process(id).pid) return thread;
    }
    return {};
  }

  // In order of time, only those with a reliable stack.
  const std::vector<size_t>& samples_of(ThreadId thread) {
    if (samples_.empty()) {
      samples_.resize(profile_.threads().size() + 1);
      for (size_t i = 0; i < profile_.samples().size(); ++i) {
        const Sample& sample = profile_.samples()[i];
        const bool has_stack = sample.stack && sample.stack.value <= profile_.stacks().size() &&
                               sample.quality != Quality::rejected;
        if (has_stack && sample.thread.value < samples_.size()) samples_[sample.thread.value].push_back(i);
      }
      for (auto& of_thread : samples_) {
        std::stable_sort(of_thread.begin(), of_thread.end(), [this](size_t a, size_t b) {
          return profile_.samples()[a].start < profile_.samples()[b].start;
        });
      }
    }
    return samples_[thread.value];
  }

  Chain chain_of(StackId stack) const {
    Chain chain;
    while (stack && stack.value <= profile_.stacks().size()) {
      const Stack& row = profile_.stack(stack);
      const FrameKind kind = row.frame && row.frame.value <= profile_.frames().size() ? frame(row.frame).kind
                                                                                      : FrameKind::marker;
      if (kind == FrameKind::marker) {
        chain.rows.clear();
        chain.frames.clear();
        chain.is_whole = false;
      } else if (kind == FrameKind::python) {
        chain.rows.push_back(stack);
        chain.frames.push_back(row.frame);
      }
      if (row.parent.value >= stack.value) break;  // parents come first: this ends
      stack = row.parent;
    }
    std::reverse(chain.rows.begin(), chain.rows.end());
    std::reverse(chain.frames.begin(), chain.frames.end());
    return chain;
  }

  // The parent's stack at the fork: Python frames, root first. Empty: not known.
  std::vector<FrameId> fork_stack(ProcessId id, ThreadId first) {
    auto called = by_library(first);
    return called.empty() ? by_parent(id, first) : called;
  }

  // The row of the process that it is a fork of.
  std::optional<uint32_t> forked_from(ProcessId id) const {
    const auto found = profile_.meta().find(fmt::format("{}{}", kForkedFrom, id.value));
    return found == profile_.meta().end() ? std::nullopt : parse_number<uint32_t>(found->second);
  }

  // By the innermost call that only a forked child makes.
  std::vector<FrameId> by_library(ThreadId first) {
    std::vector<FrameId> fork;
    uint32_t last = 0;
    for (const size_t i : samples_of(first)) {
      const StackId stack = profile_.samples()[i].stack;
      if (std::exchange(last, stack.value) == stack.value) continue;
      const Chain chain = chain_of(stack);
      for (size_t at = chain.frames.size(); at-- > std::max<size_t>(fork.size(), 1);) {
        if (!forks(frame(chain.frames[at - 1]), frame(chain.frames[at]))) continue;
        fork.assign(chain.frames.begin(), chain.frames.begin() + static_cast<ptrdiff_t>(at));
        break;
      }
    }
    return fork;
  }

  struct Common {
    std::vector<FrameId> frames;
    bool moved_on = false;  // the last of them is on two lines: it is the function in which they diverge
  };
  Common common(const std::vector<FrameId>& one, const std::vector<FrameId>& other) const {
    Common both;
    for (size_t i = 0; i < std::min(one.size(), other.size()) && !both.moved_on; ++i) {
      both.moved_on = one[i] != other[i];
      if (both.moved_on && !same_function(frame(one[i]), frame(other[i]))) return {both.frames, false};
      both.frames.push_back(one[i]);
    }
    return both;
  }

  // By what is on a parent thread's stack both before and after the fork, and on the child's too.
  std::vector<FrameId> by_parent(ProcessId id, ThreadId first) {
    const auto parent = forked_from(id);
    const auto found = parent ? threads_of_.find(ProcessId(*parent)) : threads_of_.end();
    if (found == threads_of_.end() || samples_of(first).empty()) return {};
    const Chain child = chain_of(profile_.samples()[samples_of(first).front()].stack);
    const Nanoseconds birth = profile_.process(id).start;
    std::vector<FrameId> longest;
    for (const ThreadId thread : found->second) {
      const std::vector<size_t>& samples = samples_of(thread);
      const auto after = std::partition_point(samples.begin(), samples.end(),
                                              [&](size_t i) { return profile_.samples()[i].start <= birth; });
      if (after == samples.begin()) continue;
      const Sample& before = profile_.samples()[*(after - 1)];
      const bool spans = before.start + before.wall > birth;
      if (!spans && after == samples.end()) continue;
      Common stayed{chain_of(before.stack).frames, false};
      if (!spans) stayed = common(stayed.frames, chain_of(profile_.samples()[*after].stack).frames);
      Common all = common(stayed.frames, child.frames);
      // Two threads that do the same do not prove that one of them started it for both.
      all.moved_on |= stayed.moved_on && all.frames.size() == stayed.frames.size();
      if (all.moved_on && all.frames.size() > longest.size()) longest = std::move(all.frames);
    }
    return longest;
  }

  // How many of its frames are those of the fork, of which `left` were still there before. The function that
  // forked moves on to other lines.
  size_t inherited(const Chain& chain, const std::vector<FrameId>& fork, size_t left) const {
    size_t i = 0;
    for (; i < std::min(left, chain.frames.size()); ++i) {
      if (chain.frames[i] == fork[i]) continue;
      if (i + 1 == fork.size() && same_function(frame(chain.frames[i]), frame(fork[i]))) ++i;
      break;
    }
    return i;
  }

  void mark(const std::vector<size_t>& samples, const std::vector<FrameId>& fork) {
    size_t left = fork.size();
    tsl::robin_map<uint32_t, StackId, Spread> known;  // by stack, for the current `left`
    for (const size_t i : samples) {
      Sample sample = profile_.samples()[i];
      auto found = known.find(sample.stack.value);
      if (found == known.end()) {
        const Chain chain = chain_of(sample.stack);
        const size_t now = inherited(chain, fork, left);
        if (chain.is_whole && now < left) {
          left = now;
          known.clear();
        }
        // The innermost frame is the child's own.
        const size_t end = chain.is_whole && now == chain.frames.size() && now > 0 ? now - 1 : now;
        const StackId marked =
            now == 0 ? sample.stack : marked_stack(sample.stack, end > 0 ? chain.rows[end - 1] : StackId());
        found = known.emplace(sample.stack.value, marked).first;
      }
      if (found->second == sample.stack) continue;
      sample.stack = found->second;
      profile_.emit(SampleId(static_cast<uint32_t>(i + 1)), sample);
    }
  }

  // `stack` with a marker after this row of it; none: at its root.
  StackId marked_stack(StackId stack, StackId last) {
    std::vector<FrameId> own;
    for (StackId at = stack; at && at != last;) {
      const Stack& row = profile_.stack(at);
      own.push_back(row.frame);
      if (row.parent.value >= at.value) break;
      at = row.parent;
    }
    StackId to = put(inherited_ == Inherited::shown ? last : StackId(), marker());
    for (size_t i = own.size(); i-- > 0;) to = put(to, own[i]);
    return to;
  }

  FrameId marker() {
    if (marker_) return marker_;
    Frame row;
    row.kind = FrameKind::marker;
    row.function = row.qualified_name = std::string(kForkedHere);
    marker_ = FrameId(static_cast<uint32_t>(profile_.frames().size() + 1));
    profile_.emit(marker_, row);
    return marker_;
  }

  StackId put(StackId parent, FrameId of) {
    const auto [at, fresh] = rows_.try_emplace(uint64_t{parent.value} << 32 | of.value,
                                               StackId(static_cast<uint32_t>(profile_.stacks().size() + 1)));
    if (fresh) profile_.emit(at->second, {parent, of});
    return at->second;
  }

  Profile& profile_;
  Inherited inherited_;
  std::map<ProcessId, std::vector<ThreadId>> threads_of_;
  std::vector<std::vector<size_t>> samples_;        // by thread
  tsl::robin_map<uint64_t, StackId, Spread> rows_;  // added here: parent << 32 | frame
  FrameId marker_;
};

}  // namespace

bool is_fork_marker(const Frame& frame) {
  return frame.kind == FrameKind::marker && frame.function == kForkedHere;
}

void show_forks(Profile& profile, Inherited inherited) {
  if (profile.processes().size() > 1) Forks(profile, inherited).show();
}

}  // namespace phlox::view
