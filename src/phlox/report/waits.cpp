#include "phlox/report/waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "phlox/report/system_calls.h"

namespace phlox::report {

std::vector<WaitRow> find_waits(const profile::Profile& profile, const profile::Choices& choices,
                                std::optional<profile::ThreadId> thread, size_t limit) {
  const auto filter = profile::SampleFilter::make(profile, choices);
  if (!filter) return {};
  const auto machine = profile.meta().find("machine");
  const std::string_view architecture =
      machine == profile.meta().end() ? "x86_64" : std::string_view(machine->second);

  struct Sum {
    Nanoseconds wall = 0;
    std::set<uint32_t> threads;
  };
  std::map<std::tuple<WaitKind, int16_t, uint32_t>, Sum> sums;  // what for, frame
  Nanoseconds whole = 0;
  for (const profile::Sample& sample : profile.samples()) {
    if (thread && sample.thread != *thread) continue;
    const auto part = filter->part(sample);
    if (!part.passes) continue;
    whole += part.wall;
    if (sample.quality == profile::Quality::rejected) continue;
    WaitKind kind = WaitKind::system_call;
    int16_t system_call = -1;
    if (sample.gil_state == profile::GilState::waits) {
      kind = WaitKind::gil;
    } else if (sample.cpu_state == profile::CpuState::runnable) {
      kind = WaitKind::cpu;
    } else if (sample.cpu_state == profile::CpuState::blocked) {
      system_call = sample.system_call;
    } else {
      continue;
    }
    uint32_t frame = 0;
    if (sample.stack && sample.stack.value <= profile.stacks().size())
      frame = profile.stack(sample.stack).frame.value;
    if (frame > profile.frames().size()) frame = 0;
    Sum& sum = sums[{kind, system_call, frame}];
    sum.wall += part.wall;
    sum.threads.insert(sample.thread.value);
  }
  std::vector<WaitRow> rows;
  for (const auto& [key, sum] : sums) {
    const auto& [kind, system_call, frame] = key;
    WaitRow row;
    row.kind = kind;
    row.what = kind == WaitKind::gil   ? "the GIL"
               : kind == WaitKind::cpu ? "a CPU"
                                       : system_call_name(system_call, architecture);
    if (frame != 0) {
      const auto label = profile::line_label(profile, profile::FrameId(frame));
      row.name = label.name;
      row.file = label.file;
      row.line = label.line;
    } else {
      row.name = "(no Python frames)";
    }
    row.wall = sum.wall;
    row.share = whole > 0 ? double(sum.wall) / double(whole) : 0;
    row.threads = static_cast<uint32_t>(sum.threads.size());
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const WaitRow& a, const WaitRow& b) { return a.wall > b.wall; });
  if (rows.size() > limit) rows.resize(limit);
  return rows;
}

}  // namespace phlox::report
