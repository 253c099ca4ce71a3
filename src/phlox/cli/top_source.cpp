#include "phlox/cli/top_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/base/folder.h"
#include "phlox/base/temporary_folder.h"
#include "phlox/base/text.h"
#include "phlox/cli/attempts.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/values.h"
#include "phlox/naming/native_names.h"
#include "phlox/process/launch.h"
#include "phlox/process/process_state.h"
#include "phlox/profile/unfinished.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/snapshot.h"
#include "phlox/recording/writer.h"
#include "phlox/selection/attach_error.h"

namespace phlox::cli {
namespace {

std::string save_as(const std::string& from, const std::string& name) {
  const auto saved = recording::snapshot(from, name, recording_owner());
  return saved ? fmt::format("wrote {}", name) : saved.error().message;
}

// A command line may be long: its beginning stays visible.
std::string title_of(pid_t pid, const std::string& command) {
  return fmt::format("pid {}: {}", pid, command);
}

// A recording, read again when it has grown.
class FileSource : public TopSource {
 public:
  explicit FileSource(const Options& options) : options_(options), names_(options.debug_search) {}

  Result<void> refresh() override {
    const Stamp now = stamp();
    if (model_ && now == stamp_) return {};
    auto profile = recording::read_begun(options_.file);
    if (!profile) return fail(profile);
    stamp_ = now;
    if (!profile->processes().empty()) {
      head_.title = title_of(profile->processes().front());
      if (profile->processes().size() > 1)
        head_.title += fmt::format(" and {} more", profile->processes().size() - 1);
    }
    grows_ = profile::grows(*profile);
    model_ = std::make_unique<top::Model>(options_.window);
    profile->emit_all(*model_);
    return {};
  }

  top::Seen seen() override {
    top::Seen seen = model_->seen();
    // A recording in progress is made on this host.
    const auto kernel =
        grows_ ? naming::NamesHere::Kernel::this_host : naming::NamesHere::Kernel::named_already;
    names_.name(seen.lately, kernel);
    names_.name(seen.all, kernel);
    elapsed_ = seen.all_span;
    return seen;
  }

  top::Head head() const override {
    top::Head head = head_;
    head.elapsed = elapsed_;
    head.status = grows_ ? "still being recorded" : "of a recording";
    return head;
  }
  bool has_ended() const override { return !grows_; }
  std::string save() override {
    return save_as(options_.file, snapshot_name(std::string(base_name(options_.file)), std::time(nullptr)));
  }
  void close() override {}
  std::vector<std::string> notes() const override { return {}; }
  std::optional<Error> error() const override { return {}; }

 private:
  // Imported recordings may have no command, and no process id.
  std::string title_of(const profile::Process& process) const {
    const std::string& name = process.command();
    if (!name.empty() && process.pid != 0) return cli::title_of(process.pid, name);
    return name.empty() ? std::string(base_name(options_.file)) : name;
  }

  using Stamp = std::array<int64_t, 6>;
  Stamp stamp() const {
    Stamp stamp{};
    for (size_t i = 0; i < 2; ++i) {
      struct stat there {};
      if (::stat((options_.file + (i == 0 ? "" : "-wal")).c_str(), &there) != 0) continue;
      stamp[3 * i] = there.st_size;
      stamp[3 * i + 1] = there.st_mtim.tv_sec;
      stamp[3 * i + 2] = there.st_mtim.tv_nsec;
    }
    return stamp;
  }

  Options options_;
  naming::NamesHere names_;
  Stamp stamp_{};
  top::Head head_;
  Nanoseconds elapsed_ = 0;
  bool grows_ = false;
  std::unique_ptr<top::Model> model_;
};

// Passes every row to two sinks.
class TeeSink : public profile::Sink {
 public:
  TeeSink(profile::Sink& one, profile::Sink& other) : one_(one), other_(other) {}
  void receive(const profile::AnyRow& row) override {
    one_.receive(row);
    other_.receive(row);
  }
  Result<void> commit() override {
    auto done = one_.commit();
    auto too = other_.commit();
    return done ? too : done;
  }

 private:
  profile::Sink &one_, &other_;
};

constexpr std::string_view kScratchName = "phlox-top-";
constexpr const char* kInUse = "in-use";  // locked while its top runs

void empty_scratch(int folder, bool with_output) {
  for (const char* name : {"top.phlox", "top.phlox-wal", "top.phlox-shm", "top.phlox-journal", kInUse})
    ::unlinkat(folder, name, 0);
  if (with_output) ::unlinkat(folder, "output.txt", 0);
}

// Removes what a killed top left behind. Only our own folders: others may write to $TMPDIR, too. A folder
// without a recording was kept for the output in it, or is just being made.
void remove_leftovers() {
  const Folder all =
      list_folder(Descriptor(::open(temporary_folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!all) return;
  while (const dirent* entry = ::readdir(all.get())) {
    if (!std::string_view(entry->d_name).starts_with(kScratchName)) continue;
    const Descriptor folder(
        ::openat(::dirfd(all.get()), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat there {};
    if (!folder || ::fstat(folder.get(), &there) != 0 || there.st_uid != ::geteuid()) continue;
    if (::faccessat(folder.get(), "top.phlox", F_OK, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const Descriptor in_use(::openat(folder.get(), kInUse, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!in_use || ::flock(in_use.get(), LOCK_EX | LOCK_NB) != 0) continue;
    empty_scratch(folder.get(), true);
    ::unlinkat(::dirfd(all.get()), entry->d_name, AT_REMOVEDIR);
  }
}

// A temporary folder for the recording and the program's output; the destructor removes it.
class ScratchFolder {
 public:
  ScratchFolder() {
    remove_leftovers();
    path_ = fmt::format("{}/{}XXXXXX", temporary_folder(), kScratchName);
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
    folder_ = Descriptor(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    in_use_ = Descriptor(::openat(folder_.get(), kInUse, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (in_use_) ::flock(in_use_.get(), LOCK_EX | LOCK_NB);
  }
  ~ScratchFolder() {
    if (path_.empty()) return;
    empty_scratch(folder_.get(), !keeps_output_);
    ::rmdir(path_.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  bool made() const { return !path_.empty(); }
  std::string recording() const { return path_ + "/top.phlox"; }
  std::string output() const { return path_ + "/output.txt"; }
  void keep_output(bool keeps) { keeps_output_ = keeps; }

 private:
  std::string path_;
  Descriptor folder_, in_use_;
  bool keeps_output_ = false;
};

// Keeps a program's output off the screen: during this object's life our standard output and error are the
// file, and standard input is empty, and the program inherits them.
class Aside {
 public:
  explicit Aside(const std::string& path) {
    const Descriptor output(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int with[] = {nothing.get(), output.get(), output.get()};
    for (int i = 0; i < 3; ++i) {
      before_[i] = Descriptor(::fcntl(i, F_DUPFD_CLOEXEC, 3));
      if (with[i] >= 0) ::dup2(with[i], i);
    }
  }
  ~Aside() {
    for (int i = 0; i < 3; ++i) {
      if (before_[i]) ::dup2(before_[i].get(), i);
    }
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  Descriptor before_[3];
};

// Processes, recorded while top runs.
class LiveSource : public TopSource {
 public:
  LiveSource(const Options& options, std::atomic<bool>& stop)
      : options_(options), stop_(stop), names_(options.debug_search), model_(options.window) {}
  ~LiveSource() override { close(); }

  Result<void> begin(const sigset_t& mask, Talk& talk) {
    if (!scratch_.made())
      return fail(ErrorKind::output, fmt::format("cannot make a folder in $TMPDIR: {}", std::strerror(errno)),
                  "is there room? df -h /tmp");
    std::vector<pid_t> pids = options_.pids;
    if (options_.selection) {
      choose(pids, talk);
    } else if (pids.empty()) {
      if (auto started = start_program(mask, pids); !started) return started;
    }
    if (auto described = describe(pids, talk); !described) return described;
    std::vector<python::Attempt> attempts;
    auto recorder = sampler::Recorder::attach(pids, options_.recorder, stop_, &attempts);
    say_attempts(attempts, talk);
    if (!recorder)
      return tl::unexpected<Error>(
          selection::explain_attach_error(recorder.error(), pids.empty() ? 0 : pids.front(), "top"));
    recorder_ = *std::move(recorder);
    auto writer = recording::Writer::create(scratch_.recording());
    if (!writer) return fail(writer);
    writer_ = *std::move(writer);
    writer_->keep_only({uint64_t{200'000'000}, 3600 * kSecond});
    started_ = clock_now();
    thread_ = std::thread([this] {
      TeeSink sink(*writer_, model_);
      outcome_ = recorder_->run(sink, stop_, [](const sampler::Progress&) {});
      ended_at_ = clock_now();
      ended_ = true;
    });
    return {};
  }

  Result<void> refresh() override { return {}; }

  top::Seen seen() override {
    top::Seen seen = model_.seen();
    names_.name(seen.lately, naming::NamesHere::Kernel::this_host);
    names_.name(seen.all, naming::NamesHere::Kernel::this_host);
    return seen;
  }

  top::Head head() const override {
    top::Head head = head_;
    head.elapsed = (ended_ ? ended_at_.load() : clock_now()) - started_;
    head.status = !ended_ ? "" : "ended" + (known_end().empty() ? "" : ": " + known_end());
    return head;
  }

  bool has_ended() const override { return ended_; }
  std::string save() override { return save_as(scratch_.recording(), name_); }

  void close() override {
    if (!thread_.joinable()) return;
    stop_ = true;
    thread_.join();
    recorder_.reset();
    writer_.reset();
    runs_on();
  }

  bool runs_on() override {
    if (!program_) return false;
    runs_on_ = !program_->try_wait();
    struct stat printed {};
    has_printed_ = ::stat(scratch_.output().c_str(), &printed) == 0 && printed.st_size > 0;
    scratch_.keep_output(has_printed_ || runs_on_);
    return runs_on_;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = outcome_.warnings;
    if (options_.selection) {
      if (std::string refused = options_.selection->refused(); !refused.empty())
        notes.push_back(std::move(refused));
    }
    if (runs_on_) {
      notes.push_back(fmt::format("the program runs on as process {}, and prints to {}", program_->pid(),
                                  scratch_.output()));
    } else if (has_printed_) {
      notes.push_back(fmt::format("what the program printed is in {}", scratch_.output()));
    }
    return notes;
  }

  std::optional<Error> error() const override { return outcome_.error; }

 private:
  void choose(const std::vector<pid_t>& pids, Talk& talk) {
    options_.recorder.chosen = [selection = options_.selection](pid_t pid) { return selection->takes(pid); };
    const std::string& words = options_.selection->words();
    if (pids.empty()) options_.recorder.command = "Pythons " + words;
    if (pids.empty() && !options_.selection->takes_any())
      talk.note(fmt::format("no Python {}is running: waiting for one", words + (words.empty() ? "" : " ")));
  }

  Result<void> start_program(const sigset_t& mask, std::vector<pid_t>& pids) {
    process::LaunchOptions launch;
    launch.user = process::calling_user();
    launch.signal_mask = mask;
    const Aside aside(scratch_.output());
    auto program = process::LaunchedProgram::start(options_.program, launch);
    if (!program) return fail(program);
    program_.emplace(*std::move(program));
    options_.recorder.release = [this] { return program_->release(); };
    pids = {program_->pid()};
    options_.recorder.command = fmt::format("{}", fmt::join(options_.program, " "));
    return {};
  }

  // The title, and the name of a recording that the user asks for.
  Result<void> describe(const std::vector<pid_t>& pids, Talk& talk) {
    for (const pid_t pid : pids) {
      if (program_) break;  // it is no Python yet
      const auto state = process::read_process_state(pid);
      if (!state) return fail(state);
      if (auto possible = process::check_recordable(*state); !possible) return possible;
      for (const std::string& remark : process::remarks_on(*state)) talk.warn(remark);
      if (pid == pids.front()) {
        head_.title = title_of(pid, state->title());
        if (pids.size() > 1) head_.title += fmt::format(" and {} more", pids.size() - 1);
        if (options_.recorder.command.empty()) options_.recorder.command = state->command_line;
      }
    }
    if (program_) head_.title = title_of(pids.front(), options_.recorder.command);
    if (pids.empty())
      head_.title =
          options_.selection->words().empty() ? "all Pythons of this host" : options_.recorder.command;
    name_ = default_recording_name(
        pids.empty() ? std::vector<std::string>{"pythons"} : words_of(options_.recorder.command),
        pids.empty() ? ::getpid() : pids.front(), std::time(nullptr));
    return {};
  }

  std::string known_end() const {
    return outcome_.how_target_ended == "ended" ? "" : outcome_.how_target_ended;
  }

  Options options_;
  std::atomic<bool>& stop_;
  naming::NamesHere names_;
  top::Model model_;
  top::Head head_;
  ScratchFolder scratch_;
  std::string name_;
  std::optional<process::LaunchedProgram> program_;
  bool runs_on_ = false, has_printed_ = false;  // valid once closed
  std::unique_ptr<sampler::Recorder> recorder_;
  std::unique_ptr<recording::Writer> writer_;
  sampler::Outcome outcome_;  // valid once ended
  Nanoseconds started_ = 0;
  std::atomic<Nanoseconds> ended_at_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<TopSource>> TopSource::open(const Options& options, const sigset_t& mask,
                                                   std::atomic<bool>& stop, Talk& talk) {
  if (!options.file.empty()) {
    auto source = std::make_unique<FileSource>(options);
    if (auto refreshed = source->refresh(); !refreshed) return fail(refreshed);
    return source;
  }
  auto source = std::make_unique<LiveSource>(options, stop);
  if (auto begun = source->begin(mask, talk); !begun) return fail(begun);
  return source;
}

}  // namespace phlox::cli
