#include "phlox/process/jit_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "phlox/base/regular_file.h"
#include "phlox/process/process_state.h"
#include "phlox/process/reading_user.h"
#include "phlox/process/root_folder.h"

namespace phlox::process {
namespace {

Descriptor when_its_own(Descriptor file, const JitWriter& writer) {
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return status.st_uid == writer.user || status.st_uid == 0 ? std::move(file) : Descriptor();
}

}  // namespace

std::optional<JitWriter> jit_writer(pid_t pid) {
  const auto status = read_status(pid);
  if (!status) return {};
  return JitWriter{status->uid.effective,
                   status->namespace_pids.empty() ? pid : status->namespace_pids.back(),
                   reading_user(file_user_of(*status))};
}

Descriptor open_perf_map(const Descriptor& root, const JitWriter& writer) {
  const ActAs as(writer.reader);
  if (!as) return {};
  const auto path = fmt::format("/tmp/perf-{}.map", writer.own_pid);
  return when_its_own(open_regular_beneath(root, path, O_NOFOLLOW), writer);
}

Descriptor open_jitdump(pid_t pid, const Module& module, const Descriptor& root, const JitWriter& writer) {
  const Descriptor file = when_its_own(open_own_file(pid, module, root), writer);
  const ActAs as(writer.reader);
  return as ? open_if_regular(file) : Descriptor();
}

}  // namespace phlox::process
