#include "phlox/view/loop_turns.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "phlox/view/known_waits.h"
#include "phlox/view/quality.h"
#include "phlox/view/system_calls.h"

namespace phlox::view {

using namespace profile;

namespace {

// Starts of samples have a resolution of one microsecond.
constexpr Nanoseconds kStallRounding = 2'000;
// Waits too short for a record are put where the next sample is, with the stack of another wait. No wait
// below kBrief has its own record. kBriefPiece is the longest piece of them, kBriefShare their largest share
// of a turn.
constexpr Nanoseconds kBrief = 1'000'000, kBriefPiece = 1'500'000;
constexpr double kBriefShare = 0.05;
constexpr SystemCall kPollCalls[] = {system_call("poll"),        system_call("ppoll"),
                                     system_call("select"),      system_call("pselect6"),
                                     system_call("epoll_wait"),  system_call("epoll_pwait"),
                                     system_call("epoll_pwait2")};

bool is_off_cpu(const Sample& row) {
  return row.cpu_state == CpuState::blocked || row.cpu_state == CpuState::runnable;
}

// The turns found so far, and the one that goes on.
class OpenTurn {
 public:
  void begin(size_t first, Nanoseconds start, bool is_cut) {
    turn_ = {first, first, start, start, is_cut, 0};
    open_ = true;
    in_poll_ = true;
  }
  void close(size_t last, Nanoseconds at) {
    turn_.last = last;
    turn_.end = at;
    if (open_ && turn_.end > turn_.start) out_.push_back(turn_);
    open_ = false;
  }
  // It may go on: what was seen of it is certain.
  void cut(Nanoseconds at, size_t last) {
    turn_.is_cut = true;
    close(last, at);
  }
  void goes_on() { in_poll_ = false; }
  void polls(size_t row, Nanoseconds start) {
    if (in_poll_ && open_) return;
    if (!in_poll_) close(row, start);
    begin(row, start, false);
  }
  // Whether a row of the loop's poll is too short to end the turn.
  bool takes_brief(const Sample& row) {
    const bool is_brief = is_off_cpu(row) && row.wall < (row.samples == 0 ? kBriefPiece : kBrief);
    const auto room = std::max(kBrief, Nanoseconds(kBriefShare * double(row.start - turn_.start)));
    if (!open_ || !is_brief || turn_.brief + row.wall >= room) return false;
    turn_.brief += row.wall;
    return true;
  }
  std::vector<LoopTurn> take() { return std::move(out_); }

 private:
  std::vector<LoopTurn> out_;
  LoopTurn turn_;
  bool open_ = false, in_poll_ = false;  // only the poll was seen of this turn
};

}  // namespace

bool is_poll_call(int16_t system_call, bool aarch64) {
  return is_call(kPollCalls, system_call, aarch64);
}

LoopTurns::LoopTurns(const Profile& profile, const WorkRule& rule, LoopStacks& stacks)
    : profile_(profile), rule_(rule), stacks_(stacks), aarch64_(machine_of(profile) == "aarch64") {}

std::vector<LoopSample> LoopTurns::rows(const std::vector<uint32_t>& samples, bool own_stacks) {
  std::vector<LoopSample> rows;
  for (const uint32_t index : samples) rows.push_back(row_of(index, own_stacks));
  return rows;
}

LoopSample LoopTurns::row_of(uint32_t index, bool own_stacks) {
  const Sample& sample = profile_.samples()[index];
  LoopSample row{index, LoopStep::outside, stacks_.of(sample)};
  if (row.place.at == InLoop::not_in_it && own_stacks) row.place.at = InLoop::callback;
  // Such a row has the stack of another moment (docs/recording.md).
  if (sample.samples == 0 && sample.cpu_state != CpuState::blocked) return {index, LoopStep::unread, {}};
  if (row.place.at == InLoop::not_in_it && is_off_cpu(sample) && sample.wall < kLongestSum)
    return {index, LoopStep::unread, {}};
  const bool blocked = sample.cpu_state == CpuState::blocked && sample.gil_state != GilState::waits;
  const Doing doing = rule_.of(sample);
  switch (row.place.at) {
    case InLoop::not_in_it:
      break;
    case InLoop::not_read:
      // A wait whose stack is not known may be a wait for events.
      if (blocked && doing == Doing::waiting_for_work && is_poll_call(sample.system_call, aarch64_))
        row.step = LoopStep::waits;
      else
        row.step = blocked || sample.cpu_state == CpuState::unknown ? LoopStep::unknown : LoopStep::unread;
      break;
    case InLoop::poll:
    case InLoop::own: {
      const bool is_poll = row.place.at == InLoop::poll || is_poll_call(sample.system_call, aarch64_);
      if (blocked && doing == Doing::waiting_unknown) {
        row.step = LoopStep::unknown;
        break;
      }
      if (blocked && (is_poll || sample.system_call == kCallNotRecorded)) {
        row.step = doing == Doing::waiting_for_work ? LoopStep::waits : LoopStep::polls;
      } else {
        // A poll ends with a wait for the GIL if another thread holds it.
        row.step = row.place.at == InLoop::poll || sample.gil_state == GilState::waits ? LoopStep::polls
                                                                                       : LoopStep::own;
      }
      break;
    }
    case InLoop::callback:
      row.step = LoopStep::turn;
      break;
  }
  return row;
}

std::vector<LoopTurn> LoopTurns::turns(const std::vector<LoopSample>& rows) const {
  const auto sample = [this](const LoopSample& row) -> const Sample& {
    return profile_.samples()[row.sample];
  };
  const auto end = [&](const LoopSample& row) { return sample(row).start + sample(row).wall; };
  OpenTurn turn;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sample& now = sample(rows[i]);
    const LoopStep step = rows[i].step;
    const bool gap = i > 0 && now.start > end(rows[i - 1]) + kStallRounding;
    if (step == LoopStep::outside) {
      // The loop has been left: what was seen of the turn until then is certain.
      if (i > 0) turn.cut(end(rows[i - 1]), i);
    } else if (step == LoopStep::unknown) {
      turn.cut(gap ? end(rows[i - 1]) : now.start, i);
      turn.begin(i + 1, end(rows[i]), true);
    } else {
      if (gap) turn.cut(end(rows[i - 1]), i);
      if (gap || i == 0) turn.begin(i, now.start, true);
      const bool in_loop = step == LoopStep::waits || step == LoopStep::polls;
      if (in_loop && turn.takes_brief(now)) continue;
      if (step == LoopStep::waits) {
        turn.close(i, now.start);
        turn.begin(i + 1, end(rows[i]), false);
      } else if (step == LoopStep::polls) {
        turn.polls(i, now.start);
      } else {
        turn.goes_on();
      }
    }
  }
  if (!rows.empty()) turn.cut(end(rows.back()), rows.size());
  return turn.take();
}

}  // namespace phlox::view
