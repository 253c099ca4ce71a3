#include "phlox/cli/incident_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/folder.h"
#include "phlox/base/text.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/served_command.h"
#include "phlox/cli/values.h"
#include "phlox/recording/snapshot.h"
#include "phlox/view/incident_causes.h"

namespace phlox::cli {
namespace {

constexpr std::string_view kPrefix = "incident-";
// For a page or a text of the largest recording on a busy machine.
constexpr Nanoseconds kChildPatience = 300 * kSecond;
constexpr size_t kMostStems = 100;

// By CLOCK_REALTIME now.
std::string clock_words(Nanoseconds monotonic) {
  const Nanoseconds unix_time = clock_now(CLOCK_REALTIME) - (clock_now() - monotonic);
  const std::time_t seconds = unix_time / kSecond;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  constexpr Nanoseconds kMillisecond = 1'000'000;
  char words[32];
  std::strftime(words, sizeof words, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{}.{:03}", words, unix_time % kSecond / kMillisecond);
}

std::string folder_hint(int error) {
  if (error == ENOENT) return "the folder above it does not exist: make it with mkdir -p";
  if (error == EACCES || error == EPERM) return "choose a folder in which you may write";
  if (error == EROFS)
    return "a systemd unit with ProtectSystem=strict may write only where StateDirectory= or "
           "ReadWritePaths= say";
  return "";
}

}  // namespace

Result<void> make_incident_folder(const std::string& folder, const std::optional<FileUser>& owner) {
  const ActAs as(owner);
  struct stat there {};
  if (!as || (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(folder.c_str(), &there) != 0)
    return fail(ErrorKind::output, fmt::format("cannot make the folder {}: {}", folder, std::strerror(errno)),
                folder_hint(errno));
  const uid_t user = owner ? owner->user : ::geteuid();
  if (!S_ISDIR(there.st_mode))
    return fail(ErrorKind::output, fmt::format("{} is no folder", folder),
                "with --on, -o names a folder; phlox makes it");
  if (there.st_uid != user)
    return fail(ErrorKind::output, fmt::format("the folder {} belongs to another user", folder),
                "choose a new folder: phlox makes it");
  if ((there.st_mode & 022) != 0)
    return fail(ErrorKind::output, fmt::format("other users may write into the folder {}", folder),
                fmt::format("chmod go-w {}, or choose a new folder: phlox makes it", folder));
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return fail(ErrorKind::output,
                fmt::format("cannot write into the folder {}: {}", folder, std::strerror(errno)),
                folder_hint(errno));
  return {};
}

IncidentFiles::IncidentFiles(Options options, Talk& talk)
    : options_(std::move(options)), owner_(recording_owner()), talk_(talk) {}

Result<void> IncidentFiles::check_room() const {
  if (auto possible = make_incident_folder(options_.folder, owner_); !possible) return possible;
  const ActAs as(owner_);
  const Folder folder = list_folder(
      Descriptor(::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)));
  uint64_t sum = 0;
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    struct stat there {};
    if (std::string_view(entry->d_name).starts_with(kPrefix) &&
        ::fstatat(::dirfd(folder.get()), entry->d_name, &there, AT_SYMLINK_NOFOLLOW) == 0)
      sum += static_cast<uint64_t>(there.st_size);
  }
  if (sum < options_.most_bytes) return {};
  return fail(ErrorKind::output,
              fmt::format("{} holds {} of incidents: no more are written there until some are removed",
                          options_.folder, byte_words(sum)),
              "a larger --incident-space keeps more");
}

// "FOLDER/incident-20261129-031200-stall", which no file has.
std::string IncidentFiles::new_stem(const incidents::Incident& incident) const {
  const ActAs as(owner_);
  const auto& cause = incident.causes.front();
  const Nanoseconds unix_time = clock_now(CLOCK_REALTIME) - (clock_now() - cause.time);
  const std::string stem = fmt::format("{}/{}{}-{}", options_.folder, kPrefix,
                                       time_stamp(unix_time / kSecond), kind_name(cause.kind));
  for (size_t i = 1; i <= kMostStems; ++i) {
    const std::string name = i == 1 ? stem : fmt::format("{}-{}", stem, i);
    struct stat there {};
    if (::lstat((name + ".phlox").c_str(), &there) != 0) return name;
  }
  return fmt::format("{}-{:x}", stem, clock_now());
}

Result<std::string> IncidentFiles::output_of(const std::vector<std::string>& words) const {
  auto started = ServedCommand::start(words, options_.mask);
  if (!started) return fail(started);
  ServedCommand& command = **started;
  const Nanoseconds until = clock_now() + kChildPatience;
  while (!command.has_ended()) {
    if (clock_now() > until)
      return fail(ErrorKind::system, fmt::format("phlox {} takes too long", words.front()), "");
    std::array<pollfd, 2> both = {{{command.output(), POLLIN, 0}, {command.messages(), POLLIN, 0}}};
    constexpr int kPollMs = 100;
    ::poll(both.data(), both.size(), kPollMs);
    command.read();
  }
  CommandOutcome outcome = command.take_outcome();
  if (outcome.status == 0 && !outcome.too_much) return std::move(outcome.output);
  std::string why = outcome.last_words;
  for (const mcp::Json& message : outcome.messages) {
    if (const mcp::Json* error = message.find("error")) why = error->text();
  }
  return fail(ErrorKind::system, fmt::format("phlox {} failed: {}", words.front(), why), "");
}

Result<void> IncidentFiles::write_page(const std::string& stem) const {
  const auto page = output_of({"export", stem + ".phlox", "-f", "html", "-o", "-"});
  if (!page) return fail(page);
  auto file = OutputFile::open(stem + ".html", {.owner = owner_, .secret = true});
  if (!file) return fail(file);
  (*file)->stream() << *page;
  return (*file)->commit();
}

Result<void> IncidentFiles::write_text(const std::string& stem, const incidents::Incident& incident) const {
  std::vector<std::string> words = {"report", stem + ".phlox"};
  if (options_.shortest_stall > 0) {
    words.emplace_back("--stall");
    words.push_back(fmt::format("{}ns", options_.shortest_stall));
  }
  const auto report = output_of(words);
  if (!report) return fail(report);
  auto file = OutputFile::open(stem + ".txt", {.owner = owner_, .text = true, .secret = true});
  if (!file) return fail(file);
  std::ostream& text = (*file)->stream();
  text << "Incident (local time)\n";
  for (const incidents::Cause& cause : incident.causes)
    text << fmt::format("  {}  {}: {}\n", clock_words(cause.time), kind_name(cause.kind), cause.words);
  if (incident.more_causes > 0) text << fmt::format("  and {} more\n", incident.more_causes);
  text << "\n" << *report;
  return (*file)->commit();
}

void IncidentFiles::write(const incidents::Incident& incident, const std::string& recording) {
  if (const auto room = check_room(); !room) {
    if (!std::exchange(said_full_, true)) talk_.error(room.error());
    return;
  }
  said_full_ = false;
  recording::Part part{incident.from, incident.to, {}};
  for (size_t i = 0; i < incident.causes.size(); ++i) {
    const incidents::Cause& cause = incident.causes[i];
    part.meta.push_back(
        view::meta_of({cause.time, std::string(kind_name(cause.kind)), cause.words, cause.in_short}, i + 1));
  }
  const std::string stem = new_stem(incident);
  if (const auto copied = recording::snapshot(recording, stem + ".phlox", owner_, part); !copied)
    return talk_.error(copied.error());
  std::string written = with_size(stem + ".phlox");
  if (const auto page = write_page(stem); !page) {
    talk_.error(page.error());
  } else {
    written += ", .html";
  }
  if (const auto text = write_text(stem, incident); !text) {
    talk_.error(text.error());
  } else {
    written += ", .txt";
  }
  talk_.note(fmt::format("incident: wrote {}", written));
}

}  // namespace phlox::cli
