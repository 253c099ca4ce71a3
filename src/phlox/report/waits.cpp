#include "phlox/report/waits.h"

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include <algorithm>

#include "phlox/base/spread.h"
#include "phlox/profile/system_calls.h"

namespace phlox::report {
std::vector<WaitRow> find_waits(const profile::Profile& profile, const profile::Choices& choices,
                                std::optional<profile::ThreadId> thread, size_t limit) {
  const auto filter = profile::SampleFilter::make(profile, choices);
  if (!filter) return {};
  const auto machine = profile.meta().find("machine");
  const std::string_view architecture =
      machine == profile.meta().end() ? "x86_64" : std::string_view(machine->second);

  // By what for, system call and frame; what is looked up for every sample is a number.
  struct Sum {
    WaitKind kind = WaitKind::system_call;
    int16_t system_call = -1;
    uint32_t frame = 0;
    Nanoseconds wall = 0;
    uint32_t threads = 0;
  };
  std::vector<Sum> sums;
  tsl::robin_map<uint64_t, uint32_t, Spread> places;
  tsl::robin_set<uint64_t, Spread> met;  // place and thread
  Nanoseconds whole = 0;
  for (const profile::Sample& sample : profile.samples()) {
    if (thread && sample.thread != *thread) continue;
    const auto part = filter->part_of_everything(sample);
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
    const uint64_t key =
        uint64_t{frame} << 32 | static_cast<uint64_t>(kind) << 16 | static_cast<uint16_t>(system_call);
    const auto [place, added] = places.try_emplace(key, static_cast<uint32_t>(sums.size()));
    if (added) sums.push_back({kind, system_call, frame, 0, 0});
    Sum& sum = sums[place->second];
    sum.wall += part.wall;
    sum.threads += met.insert(uint64_t{place->second} << 32 | sample.thread.value).second;
  }
  std::stable_sort(sums.begin(), sums.end(), [](const Sum& x, const Sum& y) { return x.wall > y.wall; });
  if (sums.size() > limit) sums.resize(limit);
  std::vector<WaitRow> rows;
  for (const auto& [kind, system_call, frame, wall, threads] : sums) {
    WaitRow row;
    row.kind = kind;
    row.what = kind == WaitKind::gil   ? "the GIL"
               : kind == WaitKind::cpu ? "a CPU"
                                       : profile::system_call_name(system_call, architecture);
    if (frame != 0) {
      const auto label = profile::line_label(profile, profile::FrameId(frame));
      row.name = label.name;
      row.file = label.file;
      row.line = label.line;
    } else {
      row.name = "(no Python frames)";
    }
    row.wall = wall;
    row.share = whole > 0 ? double(wall) / double(whole) : 0;
    row.threads = threads;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace phlox::report
