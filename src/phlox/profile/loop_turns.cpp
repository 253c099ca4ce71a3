#include "phlox/profile/loop_turns.h"

#include <algorithm>
#include <iterator>

#include "phlox/profile/known_waits.h"
#include "phlox/profile/quality.h"
#include "phlox/profile/system_calls.h"

namespace phlox::profile {
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
  const bool blocked = sample.cpu_state == CpuState::blocked && sample.gil_state != GilState::waits;
  const Doing doing = rule_.of(sample);
  switch (row.place.at) {
    case InLoop::not_in_it:
      break;
    case InLoop::not_read:
      // A wait whose stack is not known may be a wait for events.
      row.step = blocked || sample.cpu_state == CpuState::unknown ? LoopStep::outside : LoopStep::unread;
      break;
    case InLoop::poll:
    case InLoop::own: {
      const bool is_poll = row.place.at == InLoop::poll || is_poll_call(sample.system_call, aarch64_);
      if (blocked && doing == Doing::waiting_unknown) break;
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
  std::vector<LoopTurn> out;
  LoopTurn turn;
  bool open = false, in_poll = false;  // only the poll was seen of this turn
  const auto begin = [&](size_t first, Nanoseconds start, bool is_cut) {
    turn = {first, first, start, start, is_cut, 0};
    open = true;
    in_poll = true;
  };
  const auto close = [&](size_t last, Nanoseconds at) {
    turn.last = last;
    turn.end = at;
    if (open && turn.end > turn.start) out.push_back(turn);
    open = false;
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const Nanoseconds start = sample(rows[i]).start;
    const bool gap = i > 0 && start > end(rows[i - 1]) + kStallRounding;
    if (gap || rows[i].step == LoopStep::outside) open = false;
    if (rows[i].step == LoopStep::outside) continue;
    if (i == 0) begin(i, start, true);
    const Sample& now = sample(rows[i]);
    const bool in_loop = rows[i].step == LoopStep::waits || rows[i].step == LoopStep::polls;
    const bool is_off_cpu = now.cpu_state == CpuState::blocked || now.cpu_state == CpuState::runnable;
    const bool is_brief = is_off_cpu && now.wall < (now.samples == 0 ? kBriefPiece : kBrief);
    if (open && in_loop && is_brief &&
        turn.brief + now.wall < std::max(kBrief, Nanoseconds(kBriefShare * double(start - turn.start)))) {
      turn.brief += now.wall;
    } else if (rows[i].step == LoopStep::waits) {
      close(i, start);
      begin(i + 1, end(rows[i]), false);
    } else if (rows[i].step == LoopStep::polls) {
      if (!in_poll) {
        close(i, start);
        begin(i, start, false);
      } else if (!open) {
        begin(i, start, false);
      }
    } else {
      in_poll = false;
    }
  }
  if (open && !rows.empty()) {
    turn.is_cut = true;
    close(rows.size(), end(rows.back()));
  }
  return out;
}

}  // namespace phlox::profile
