#include "phlox/profile/kept.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"

namespace phlox::profile {
namespace {

std::string length(Nanoseconds time) {
  const auto seconds = time / kSecond;
  if (seconds < 120) return fmt::format("{:.1f} s", static_cast<double>(time) * 1e-9);
  if (seconds < 7200) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

}  // namespace

Lacking lacking(const Profile& profile) {
  Lacking lacking;
  if (const auto found = profile.meta().find(kLetGo); found != profile.meta().end())
    lacking.let_go = std::max<Nanoseconds>(0, parse_number<Nanoseconds>(found->second).value_or(0));
  for (const Gap& gap : gaps(profile)) {
    Nanoseconds sum = 0;
    if (!__builtin_add_overflow(lacking.between, gap.to - gap.from, &sum)) lacking.between = sum;
  }
  return lacking;
}

std::vector<Gap> gaps(const Profile& profile) {
  std::vector<Gap> all;
  for (const Event& event : profile.events()) {
    Nanoseconds to = 0;
    if (event.kind == EventKind::lost && event.value > 0 &&
        !__builtin_add_overflow(event.time, event.value, &to))
      all.push_back({event.time, to});
  }
  return all;
}

Nanoseconds gap_within(const std::vector<Gap>& gaps, Nanoseconds from, Nanoseconds to) {
  Nanoseconds within = 0;
  for (const Gap& gap : gaps)
    within += std::max<Nanoseconds>(0, std::min(to, gap.to) - std::max(from, gap.from));
  return within;
}

std::string lacking_words(const Lacking& lacking) {
  std::string words;
  if (lacking.let_go > 0) words = fmt::format("the first {} were dropped", length(lacking.let_go));
  if (lacking.between > 0)
    words +=
        fmt::format("{}{} between were not recorded", words.empty() ? "" : "; ", length(lacking.between));
  return words;
}

}  // namespace phlox::profile
