#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stalls.h"
#include "phlox/view/system_calls.h"

namespace phlox::view {

using namespace profile;

namespace {

// By kind.
constexpr std::string_view kStallKeys[] = {"cpu", "collecting", "blocked", "gil", "no_cpu", "unknown"};
// Smaller parts of a stall are not mentioned.
constexpr double kMostly = 0.9, kWorthSaying = 0.01;

std::string time(Nanoseconds time) {
  const double ms = double(time) * 1e-6;
  if (ms >= 1000) return fmt::format("{:.2f} s", ms * 1e-3);
  return fmt::format("{:.{}f} ms", ms, ms < 10 ? 1 : 0);
}

// The requested limit, as it was written: "50 ms", "2.5 ms", "1 s".
std::string limit(Nanoseconds time) {
  return time >= kSecond ? fmt::format("{:g} s", double(time) * 1e-9)
                         : fmt::format("{:g} ms", double(time) * 1e-6);
}

std::string blocked_words(const Profile& profile, WaitClasses& classes, const Stall& stall) {
  if (stall.sample == 0 || stall.sample > profile.samples().size()) return "blocked";
  const Sample& sample = profile.samples()[stall.sample - 1];
  const WaitClass waits = classes.of(sample);
  if (waits == WaitClass::sleep) return "asleep";
  const bool known = sample.wait_target && sample.wait_target.value <= profile.wait_targets().size();
  const std::string wait_target =
      known ? wait_target_words(profile.wait_targets()[sample.wait_target.value - 1], WaitTargetDetail::alike)
            : "";
  const std::string call = sample.system_call == kCallNotRecorded || sample.system_call < 0
                               ? std::string()
                               : system_call_name(sample.system_call, machine_of(profile));
  const std::string words = wait_words(waits, call, wait_target);
  return words.empty()                     ? "blocked"
         : wait_class_words(waits).empty() ? "blocked in " + words
                                           : "waiting for " + words;
}

std::string state_words(const Profile& profile, WaitClasses& classes, const Stall& stall) {
  switch (stall.kind) {
    case StallKind::cpu:
      return "on a CPU";
    case StallKind::collecting:
      return "collecting garbage";
    case StallKind::no_cpu:
      return "waiting for a CPU";
    case StallKind::blocked:
      return blocked_words(profile, classes, stall);
    case StallKind::unknown:
      return "not known how";
    case StallKind::gil:
      break;
  }
  if (!stall.holder) return "waiting for the GIL";
  const std::string place = stall_place(profile, stall.holder_frame);
  return fmt::format("waiting for the GIL, held by {}{}", thread_label(profile.thread(stall.holder)),
                     place.empty() ? "" : " in " + place);
}

// The text after the length.
std::string rest_words(const Profile& profile, const Stall& stall) {
  WaitClasses classes(profile);
  const std::string place = stall_place(profile, stall.frame);
  return fmt::format("{}{}, {}", stall.callbacks > 1 ? fmt::format(" in {} callbacks", stall.callbacks) : "",
                     place.empty()         ? ""
                     : stall.callbacks > 1 ? ", most in " + place
                                           : " in " + place,
                     stall_words(profile, classes, stall));
}

std::string count(size_t number, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", number, number == 1 ? one : several);
}

}  // namespace

std::string_view stall_key(StallKind kind) {
  return kStallKeys[static_cast<size_t>(kind)];
}

std::string stall_length(const Stall& stall) {
  std::string text = time(stall.wall);
  if (stall.is_cut) {
    text = "at least " + text;
  } else if (stall.least > 0 && !stall.is_one_turn()) {
    text = fmt::format("{} to {}", time(stall.least), text);
  }
  if (double(stall.error) >= kWorthSaying * double(stall.wall)) text += " ± " + time(stall.error);
  return text;
}

std::string stall_place(const Profile& profile, FrameId frame) {
  if (!frame || frame.value > profile.frames().size()) return {};
  const Label label = line_label(profile, frame);
  if (label.file.empty()) return label.name;
  return fmt::format("{} ({}:{})", label.name, base_name(label.file), label.line);
}

std::string stall_words(const Profile& profile, WaitClasses& classes, const Stall& stall) {
  const bool mostly = double(stall.of_kind) < kMostly * double(stall.wall);
  return (mostly ? "mostly " : "") + state_words(profile, classes, stall);
}

std::string stalls_words(const Profile& profile, const LoopStalls& stalls) {
  if (stalls.rows.empty()) return {};
  const std::string least = limit(stalls.shortest);
  const size_t others = stalls.rows.size() - stalls.proved;
  std::string text;
  if (!stalls.exact) {
    text = fmt::format(
        "{} of {} or more without a sample in which it waited for events (samples are {} apart on average)",
        count(others, "time", "times"), least, time(stalls.interval));
  } else {
    const bool brief = std::any_of(stalls.rows.begin(), stalls.rows.end(), [&](const Stall& stall) {
      return stall.least < stalls.shortest && stall.brief > 0;
    });
    if (stalls.proved > 0)
      text = fmt::format("{} of {} or more", count(stalls.proved, "stall", "stalls"), least);
    if (others > 0)
      text += fmt::format(
          "{}{} of {} or more without a wait for events{}, in one turn or several", text.empty() ? "" : "; ",
          text.empty() ? count(others, "time", "times") : count(others, "more time", "more times"), least,
          brief ? " of 2 ms or more" : "");
  }
  const Stall& longest = stalls.rows.front();
  text += fmt::format("; {} {} at {:.2f} s{}", stalls.rows.size() == 1 ? "it took" : "the longest",
                      stall_length(longest), double(longest.start) * 1e-9, rest_words(profile, longest));
  return text;
}

std::string longest_stall_words(const Profile& profile, const LoopStalls& stalls) {
  if (stalls.rows.empty()) return {};
  const Stall& longest = stalls.rows.front();
  const bool proved = longest.least >= stalls.shortest;
  return fmt::format("{}{}{}{}", proved ? "stall of " : "", stall_length(longest),
                     proved         ? ""
                     : stalls.exact ? " without a wait for events"
                                    : " without a sample in a wait for events",
                     rest_words(profile, longest));
}

}  // namespace phlox::view
