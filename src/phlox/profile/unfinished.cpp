#include "phlox/profile/unfinished.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace phlox::profile {
namespace {

Nanoseconds meta_time(const Profile& profile, std::string_view key) {
  const auto found = profile.meta().find(key);
  Nanoseconds time = 0;
  if (found != profile.meta().end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), time);
  return time;
}

}  // namespace

bool is_unfinished(const Profile& profile) {
  return profile.meta().contains("start_monotonic_ns") && !profile.meta().contains("end_monotonic_ns");
}

bool grows(const Profile& profile) {
  const auto found = profile.meta().find(kGrows);
  return found != profile.meta().end() && !found->second.empty();
}

Nanoseconds seen_until(const Profile& profile) {
  if (const Nanoseconds end = meta_time(profile, "end_monotonic_ns"); end > 0) return end;
  Nanoseconds last = 0;
  for (const Sample& sample : profile.samples()) last = std::max(last, sample.start + sample.wall);
  return last;
}

std::string unfinished_words(const Profile& profile) {
  if (!is_unfinished(profile)) return {};
  const Nanoseconds length =
      std::max<Nanoseconds>(0, seen_until(profile) - meta_time(profile, "start_monotonic_ns"));
  const std::string time = fmt::format("{:.1f} s", static_cast<double>(length) * 1e-9);
  if (grows(profile)) return fmt::format("still being recorded: {} so far", time);
  return fmt::format("the recorder was killed after {}: what it saw last, at most half a second, is missing",
                     time);
}

std::string not_recorded_words(const Profile& profile) {
  std::string words;
  for (const std::string_view key : {kNotRecorded, kCouldNotBeRead}) {
    const auto found = profile.meta().find(std::string(key));
    if (found != profile.meta().end()) words += (words.empty() ? "" : ". ") + found->second;
  }
  return words;
}

}  // namespace phlox::profile
