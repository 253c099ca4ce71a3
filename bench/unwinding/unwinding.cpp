// Compares frames with libdwfl's on the same captured bytes, for one process
// (tests/support/frame_comparison.h).
//
//   unwinding PID SAMPLES      one JSON object on standard output, examples of what differs on standard error
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/frame_comparison.h"

namespace {

std::string json(const phlox::test::FrameComparison::Numbers& n) {
  std::string text = fmt::format(
      R"({{"samples": {}, "equal": {}, "whole": {}, "said": {}, "frames": {}, "ours_ns": {}, "theirs_ns": {}, "libraries": {{)",
      n.samples, n.equal, n.whole, n.said, n.frames, n.ours_ns, n.theirs_ns);
  const char* comma = "";
  for (const auto& [path, library] : n.libraries) {
    text += fmt::format(R"({}"{}": [{}, {}])", comma, path, library.samples, library.equal);
    comma = ", ";
  }
  return text + "}}\n";
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("unwinding PID SAMPLES\n", stderr);
    return 2;
  }
  phlox::test::FrameComparison comparison(static_cast<pid_t>(std::strtol(words[1], nullptr, 10)));
  const size_t wanted = std::strtoul(words[2], nullptr, 10);
  if (!comparison.ok()) {
    std::fputs("unwinding: no such process, or no right to look at it\n", stderr);
    return 1;
  }
  while (comparison.numbers().samples < wanted && comparison.take()) {
  }
  for (const std::string& example : comparison.examples()) std::fputs(example.c_str(), stderr);
  std::fputs(json(comparison.numbers()).c_str(), stdout);
  return comparison.numbers().samples == wanted ? 0 : 1;
}
