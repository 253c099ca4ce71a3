#include "phlox/sampler/session/cpu_watch.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "phlox/base/text.h"
#include "phlox/process/cpu_set.h"
#include "phlox/process/text_file.h"

namespace phlox::sampler {
namespace {

constexpr size_t kMostGroups = 100;

std::optional<HostTicks> read_host_ticks() {
  const auto text = process::read_text("/proc/stat");
  return text ? parse_host_ticks(*text) : std::nullopt;
}

uint64_t since(uint64_t before, uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

std::optional<HostTicks> parse_host_ticks(std::string_view text) {
  // user nice system idle iowait irq softirq steal
  std::array<uint64_t, 8> ticks{};
  constexpr std::string_view kAll = "cpu ";
  if (!text.starts_with(kAll)) return {};
  text.remove_prefix(kAll.size());
  for (uint64_t& one : ticks) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (!take_number(text, one)) return {};
  }
  return HostTicks{ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6], ticks[3] + ticks[4], ticks[7]};
}

CpuWatch::CpuWatch() : before_(read_host_ticks()) {}

void CpuWatch::meet(pid_t process) {
  if (const auto set = process::CpuSet::read(process)) {
    const int64_t allowed = set->count();
    allowed_ = allowed_ > 0 ? std::min(allowed_, allowed) : allowed;
  }
  if (groups_.size() >= kMostGroups) return;
  auto quota = process::find_cpu_quota(process);
  if (!quota || std::any_of(groups_.begin(), groups_.end(),
                            [&](const Group& known) { return known.quota.folder == quota->folder; }))
    return;
  const process::Throttling now = quota->read_throttling();
  groups_.push_back({*std::move(quota), now});
}

profile::CpuUse CpuWatch::since_start() const {
  static const Nanoseconds kTick = kSecond / ::sysconf(_SC_CLK_TCK);
  profile::CpuUse use;
  use.allowed = allowed_;
  if (const auto now = read_host_ticks(); now && before_) {
    use.busy = static_cast<Nanoseconds>(since(before_->busy, now->busy)) * kTick;
    use.idle = static_cast<Nanoseconds>(since(before_->idle, now->idle)) * kTick;
    use.stolen = static_cast<Nanoseconds>(since(before_->stolen, now->stolen)) * kTick;
  }
  for (const Group& group : groups_) {
    const process::Throttling now = group.quota.read_throttling();
    use.groups.push_back({group.quota.path, group.quota.cpus,
                          static_cast<int64_t>(since(group.before.periods, now.periods)),
                          static_cast<int64_t>(since(group.before.throttled, now.throttled)),
                          static_cast<Nanoseconds>(since(group.before.time_ns, now.time_ns))});
  }
  return use;
}

}  // namespace phlox::sampler
