#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <system_error>

#include "phlox/base/text.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/values.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/snapshot.h"

namespace phlox::cli {
namespace {

// The recording that a process has open.
Result<std::string> recording_of(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  std::error_code error;
  const std::filesystem::directory_iterator files(folder + "/fd", error);
  if (error) {
    const bool gone = ::access(folder.c_str(), F_OK) != 0;
    return fail(gone ? ErrorKind::no_such_process : ErrorKind::permission,
                gone ? fmt::format("no process with id {}", pid)
                     : fmt::format("cannot read which files process {} has open: {}", pid, error.message()),
                "which recorders run: pgrep -a phlox");
  }
  for (const auto& file : files) {
    const auto path = std::filesystem::read_symlink(file, error);
    if (error || !path.is_absolute()) continue;
    // The path as the recorder sees it, in its container.
    const std::string here = folder + "/root" + path.string();
    if (!recording::is_recording(here)) continue;
    return recording::is_recording(path.string()) && std::filesystem::equivalent(path, here, error) && !error
               ? path.string()
               : here;
  }
  return fail(ErrorKind::input, fmt::format("process {} writes no recording", pid),
              "the process id of a `phlox record` that runs: pgrep -a phlox");
}

Result<void> run_snapshot(const CommandLine& line, Talk& talk) {
  const SnapshotArguments& a = line.snapshot;
  if (a.pid.empty() == a.file.empty())
    return fail(ErrorKind::usage, "of which recording? A recorder's process id, or its file",
                "phlox snapshot -p RECORDER, or: phlox snapshot app.phlox");
  std::string file = a.file;
  if (!a.pid.empty()) {
    const auto pid = named(line, "--pid", parse_pid(a.pid));
    if (!pid) return fail(pid);
    auto found = recording_of(*pid);
    if (!found) return fail(found);
    file = *std::move(found);
  } else if (!recording::is_recording(file)) {
    // Reports what is wrong with it.
    if (auto read = recording::read_begun(file); !read) return fail(read);
  }
  const std::string output =
      a.output.empty() ? snapshot_name(std::string(base_name(file)), std::time(nullptr)) : a.output;
  std::error_code error;
  if (std::filesystem::equivalent(file, output, error))
    return fail(ErrorKind::output, fmt::format("{} is the recording itself", output),
                "choose another file with -o FILE");
  if (auto written = recording::snapshot(file, output, recording_owner()); !written) return written;
  talk.note(fmt::format("wrote {}: phlox report {}", with_size(output), output));
  return {};
}

}  // namespace

int snapshot(const CommandLine& line, Talk& talk) {
  return status_of(run_snapshot(line, talk), talk);
}

}  // namespace phlox::cli
