#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "phlox/base/place.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/recordings.h"
#include "phlox/recording/writer.h"
#include "phlox/recording/writer_thread.h"

namespace phlox::cli {
namespace {

// Writes to a partial file: an existing file stays until the import is complete.
class ImportDestination {
 public:
  explicit ImportDestination(std::string path)
      : path_(std::move(path)), partial_(path_ + ".partial"), place_(Place::find(path_, recording_owner())) {}
  ~ImportDestination() {
    thread_.reset();
    writer_.reset();
    for (const char* end : {"", "-wal", "-shm", "-journal"}) {
      if (place_) place_->remove(place_->name() + ".partial" + end);
    }
  }
  ImportDestination(const ImportDestination&) = delete;
  ImportDestination& operator=(const ImportDestination&) = delete;

  Result<profile::Sink*> open() {
    auto writer = recording::Writer::create(partial_, recording_owner(), recording::Safe::at_finish);
    if (!writer) return fail(writer);
    writer_ = *std::move(writer);
    return &thread_.emplace(*writer_);
  }
  Result<void> finish() {
    auto finished = thread_->commit();
    thread_.reset();
    if (finished) finished = writer_->finish();
    writer_.reset();
    if (!finished) return finished;
    if (place_ && place_->rename(place_->name() + ".partial", place_->name())) return {};
    return fail(ErrorKind::output, fmt::format("cannot write {}: {}", path_, std::strerror(errno)),
                "choose another file with -o FILE");
  }

 private:
  std::string path_, partial_;
  std::optional<Place> place_;
  std::unique_ptr<recording::Writer> writer_;
  std::optional<recording::WriterThread> thread_;  // SQLite takes a third of an import's time
};

Result<void> run_import(const ImportArguments& arguments, Talk& talk) {
  if (arguments.file.empty())
    return fail(ErrorKind::usage, "import which file?", "phlox import perf.data -o app.phlox");
  if (arguments.output.empty() && arguments.file == "-")
    return fail(ErrorKind::usage, "import standard input into which file?", "phlox import - -o app.phlox");
  const std::string output = arguments.output.empty() ? arguments.file + ".phlox" : arguments.output;
  ImportDestination destination(output);
  const auto sink = destination.open();
  if (!sink) return fail(sink);
  if (auto imported = import_recording(arguments.file, arguments.input, **sink, talk); !imported)
    return imported;
  if (auto finished = destination.finish(); !finished) return finished;
  talk.note(
      fmt::format("wrote {0}; more: phlox report {0}; flame graph: phlox export {0} -o flame.svg", output));
  return {};
}

}  // namespace

int import_recording(const CommandLine& line, Talk& talk) {
  return status_of(run_import(line.import_, talk), talk);
}

}  // namespace phlox::cli
