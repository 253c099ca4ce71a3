#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "phlox/base/descriptor.h"
#include "phlox/cli/commands.h"
#include "phlox/process/text_file.h"
#include "phlox/recording/labels.h"
#include "phlox/recording/reader.h"
#include "phlox/view/time_labels.h"

namespace phlox::cli {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;

Result<void> run_label(const LabelArguments& a, Talk& talk) {
  if (a.recording.empty() || a.file.empty())
    return fail(ErrorKind::usage, "label which recording, with which labels?",
                "phlox label app.phlox ranges.tsv");
  const Descriptor file(::open(a.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail(ErrorKind::input, fmt::format("cannot open {}: {}", a.file, std::strerror(errno)));
  const auto text = process::read_regular(file, kLargestFile);
  if (!text)
    return fail(ErrorKind::input,
                fmt::format("cannot read {}: it is not a regular file of at most 256 MiB", a.file));
  auto labels = view::parse_time_labels(*text);
  if (!labels)
    return fail(labels.error().kind, fmt::format("{}: {}", a.file, labels.error().message),
                labels.error().hint);
  const auto profile = recording::read_begun(a.recording);
  if (!profile) return fail(profile);
  if (auto added = recording::add_labels(a.recording, *labels); !added) return added;
  talk.note(fmt::format("{} labels: phlox report --label REGEX {}; phlox export --by label {} -o labels.svg",
                        labels->size() + profile->time_labels().size(), a.recording, a.recording));
  return {};
}

}  // namespace

int label(const CommandLine& line, Talk& talk) {
  return status_of(run_label(line.label, talk), talk);
}

}  // namespace phlox::cli
