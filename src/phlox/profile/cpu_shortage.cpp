#include "phlox/profile/cpu_shortage.h"

#include <fmt/format.h>

#include <optional>

#include "phlox/base/text.h"

namespace phlox::profile {
namespace {

// Limits for what a file may claim.
constexpr size_t kMostGroups = 1000;
constexpr int64_t kMost = int64_t{1} << 60;

std::string text_of(const Profile& profile, const std::string& key) {
  const auto found = profile.meta().find(key);
  return found == profile.meta().end() ? std::string() : found->second;
}

int64_t number_of(const Profile& profile, const std::string& key) {
  const auto value = parse_number<int64_t>(text_of(profile, key));
  return value && *value >= 0 && *value <= kMost ? *value : 0;
}

}  // namespace

CpuUse cpu_use(const Profile& profile) {
  CpuUse use;
  use.busy = number_of(profile, "host_busy_ns");
  use.idle = number_of(profile, "host_idle_ns");
  use.stolen = number_of(profile, "host_stolen_ns");
  use.cpus = number_of(profile, "cpus");
  use.allowed = number_of(profile, "cpus_allowed");
  for (size_t i = 1; i <= kMostGroups; ++i) {
    const auto quota = parse_number<double>(text_of(profile, fmt::format("cpu_quota.{}", i)));
    if (!quota || *quota <= 0) break;
    use.groups.push_back({text_of(profile, fmt::format("cpu_quota_group.{}", i)), *quota,
                          number_of(profile, fmt::format("cpu_quota_periods.{}", i)),
                          number_of(profile, fmt::format("cpu_quota_used_up.{}", i)),
                          number_of(profile, fmt::format("cpu_quota_held_back_ns.{}", i))});
  }
  return use;
}

void put_cpu_use(Sink& sink, const CpuUse& use) {
  const auto put = [&sink](const std::string& key, int64_t value) {
    sink.emit_meta(key, std::to_string(value));
  };
  if (use.is_known()) {
    put("host_busy_ns", use.busy);
    put("host_idle_ns", use.idle);
    put("host_stolen_ns", use.stolen);
  }
  if (use.allowed > 0) put("cpus_allowed", use.allowed);
  for (size_t i = 0; i < use.groups.size(); ++i) {
    const CpuGroup& group = use.groups[i];
    sink.emit_meta(fmt::format("cpu_quota.{}", i + 1), fmt::format("{:g}", group.quota));
    sink.emit_meta(fmt::format("cpu_quota_group.{}", i + 1), group.path);
    put(fmt::format("cpu_quota_periods.{}", i + 1), group.periods);
    put(fmt::format("cpu_quota_used_up.{}", i + 1), group.throttled);
    put(fmt::format("cpu_quota_held_back_ns.{}", i + 1), group.held_back);
  }
}

}  // namespace phlox::profile
