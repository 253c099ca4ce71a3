// `phlox mcp`: reads messages from standard input, runs the commands that they ask for, each as a process of
// its own (served_command.h), and writes the answers to standard output, which carries nothing else. One
// thread waits for all of it, so the protocol is answered while commands run.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/interrupted.h"
#include "phlox/base/temporary_folder.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/mcp_tools.h"
#include "phlox/cli/served_command.h"
#include "phlox/mcp/message_lines.h"
#include "phlox/mcp/session.h"

namespace phlox::cli {
namespace {

constexpr size_t kMostAtOnce = 8;
// Of answers that the client has not read: beyond this, no more questions are read.
constexpr size_t kMostUnread = size_t{1} << 20;
constexpr Nanoseconds kProgressEvery = kSecond * 9 / 10;
// After the end of input, for commands that answer soon.
constexpr Nanoseconds kLastAnswers = 10 * kSecond;
// From the request to end to the next, stronger one.
constexpr Nanoseconds kRecordPatience = 20 * kSecond, kPatience = 2 * kSecond;
constexpr Nanoseconds kLongestFarewell = 2 * kSecond;  // for a client that takes no more answers

// Where recordings go that were given no place. Made for the first of them; stays if there is one in it.
class RecordingsFolder {
 public:
  ~RecordingsFolder() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  Result<std::string> next() {
    if (path_.empty()) {
      if (auto made = make(); !made) return fail(made);
    }
    return fmt::format("{}/recording-{}.phlox", path_, ++count_);
  }

 private:
  Result<void> make() {
    std::string path = temporary_folder() + "/phlox-mcp-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return fail(ErrorKind::output,
                  fmt::format("cannot make a folder in {}: {}", temporary_folder(), std::strerror(errno)),
                  "give the recording a place: output");
    // Under sudo the calling user owns the recording, and writes it with that user's rights.
    const auto owner = recording_owner();
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat there {};
    const bool ours = folder && ::fstat(folder.get(), &there) == 0 && there.st_uid == ::geteuid();
    if (!ours || (owner && ::fchown(folder.get(), owner->user, owner->group) != 0))
      return fail(ErrorKind::output, fmt::format("cannot make {} the calling user's", path),
                  "give the recording a place: output");
    path_ = std::move(path);
    return {};
  }

  std::string path_;
  int count_ = 0;
};

class McpServer : public mcp::Session::Host {
 public:
  McpServer(const CommandLine& line, Talk& talk)
      : talk_(talk), session_(PHLOX_VERSION, served_instructions(), served_tools(line.mcp.locals), *this) {}

  int run() {
    if (auto ready = prepare(); !ready) {
      talk_.error(ready.error());
      return exit_status(ready.error().kind);
    }
    if (::isatty(STDIN_FILENO) == 1)
      talk_.note(
          "this is a server: a client talks to it over standard input and output (docs/mcp.md); Ctrl-D ends "
          "it");
    while (!is_done()) turn();
    return kSuccess;
  }

  void send(const std::string& message) override {
    if (!output_is_gone_) unread_ += message + "\n";
  }

  void call(uint64_t number, const mcp::Tool& tool, const mcp::Json& arguments) override {
    if (auto begun = begin(number, tool, arguments); !begun)
      session_.answer(number, mcp::refusal(begun.error(), kind_words(exit_status(begun.error().kind))));
  }

  void cancel(uint64_t number) override {
    for (Running& one : running_) {
      if (one.number != number) continue;
      talk_.note(fmt::format("{} was cancelled", one.call.tool));
      ask_to_end(one);
    }
  }

 private:
  struct Running {
    uint64_t number = 0;
    ServedCall call;
    std::unique_ptr<ServedCommand> command;
    Nanoseconds start = 0;
    std::optional<Nanoseconds> asked;  // to end, when
    bool is_late = false;
    Nanoseconds first_progress = 0, last_progress = 0;  // 0: none yet
  };

  Result<void> prepare() {
    sigset_t ours;
    sigemptyset(&ours);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) {
      struct sigaction action {};
      // Under nohup it stays ignored.
      if (number == SIGHUP && ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
        continue;
      sigaddset(&ours, number);
    }
    ::signal(SIGCHLD, SIG_DFL);  // if it were ignored, commands would have no exit status
    ::sigprocmask(SIG_BLOCK, &ours, &mask_before_);
    signals_ = Descriptor(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_)
      return fail(ErrorKind::system, fmt::format("cannot wait for signals: {}", std::strerror(errno)),
                  "raise ulimit -n");
    return {};
  }

  Result<void> begin(uint64_t number, const mcp::Tool& tool, const mcp::Json& arguments) {
    if (running_.size() >= kMostAtOnce)
      return fail(ErrorKind::system, fmt::format("{} commands are running", running_.size()),
                  "wait for one of them, or cancel it");
    ServedPlaces places;
    char folder[PATH_MAX];
    if (::getcwd(folder, sizeof folder) != nullptr) places.folder = folder;
    if (tool.name == "record" && arguments.find("output") == nullptr) {
      auto next = folder_.next();
      if (!next) return fail(next);
      places.new_recording = *std::move(next);
    }
    auto call = served_call(tool, arguments, places);
    if (!call) return fail(call);
    auto command = ServedCommand::start(call->words, mask_before_);
    if (!command) return fail(command);
    talk_.note(command_words(call->words));
    Running one;
    one.number = number;
    one.call = *std::move(call);
    one.command = *std::move(command);
    one.start = clock_now();
    running_.push_back(std::move(one));
    return {};
  }

  bool is_done() {
    if (!is_ending_ || !running_.empty()) return false;
    if (unread_.empty() || output_is_gone_) return true;
    if (farewell_ == 0) farewell_ = clock_now() + kLongestFarewell;
    return clock_now() > farewell_;
  }

  // Waits for whatever is next, and does it.
  void turn() {
    std::vector<pollfd> all;
    all.push_back({signals_.get(), POLLIN, 0});
    all.push_back({!is_ending_ && unread_.size() < kMostUnread ? STDIN_FILENO : -1, POLLIN, 0});
    all.push_back({unread_.empty() || output_is_gone_ ? -1 : STDOUT_FILENO, POLLOUT, 0});
    for (const Running& one : running_) {
      all.push_back({one.command->output(), POLLIN, 0});
      all.push_back({one.command->messages(), POLLIN, 0});
    }
    constexpr int kTick = 200;  // ms; while something runs, or has to end
    const int tick = running_.empty() && !is_ending_ ? -1 : kTick;
    if (::poll(all.data(), all.size(), tick) < 0 && errno != EINTR) {
      talk_.error({ErrorKind::system, fmt::format("cannot wait for messages: {}", std::strerror(errno)), ""});
      end(false);
      ::usleep(kTick * 1000);  // never in a circle
    }
    if (all[0].revents != 0) take_signals();
    if (all[1].revents != 0) take_input();
    if (all[2].revents != 0) write_some();
    check_commands();
  }

  void take_signals() {
    signalfd_siginfo seen;
    while (::read(signals_.get(), &seen, sizeof seen) == sizeof seen) {
      if (seen.ssi_signo != SIGCHLD) end(false);
    }
  }

  void take_input() {
    char block[1 << 16];
    const ssize_t size = retried([&] { return ::read(STDIN_FILENO, block, sizeof block); });
    const auto line = [this](std::string_view text) { session_.take(text); };
    const auto too_long = [this] { session_.take_too_long(mcp::kLongestMessage); };
    if (size > 0) {
      lines_.put(std::string_view(block, static_cast<size_t>(size)), line, too_long);
    } else if (size == 0 || errno != EAGAIN) {
      lines_.end(line, too_long);
      end(true);
    }
  }

  // As much as can be written without waiting: a pipe that is ready takes PIPE_BUF bytes at once.
  void write_some() {
    const size_t size = std::min<size_t>(unread_.size() - written_, PIPE_BUF);
    const char* const from = unread_.data() + written_;
    ssize_t done = ::send(STDOUT_FILENO, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno == ENOTSOCK) done = ::write(STDOUT_FILENO, from, size);
    if (done < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      output_is_gone_ = true;  // the client has gone, and wants nothing more
      return end(false);
    }
    written_ += static_cast<size_t>(done);
    if (written_ == unread_.size() || written_ > kMostUnread) {
      unread_.erase(0, written_);
      written_ = 0;
    }
  }

  void check_commands() {
    const Nanoseconds now = clock_now();
    for (auto one = running_.begin(); one != running_.end();) {
      if (one->command->read() && !one->asked && now - one->last_progress >= kProgressEvery)
        report_progress(*one, now);
      if (one->command->has_ended()) {
        answer(*one, now);
        one = running_.erase(one);
        continue;
      }
      if (!one->asked && now - one->start > one->call.longest) {
        one->is_late = true;
        ask_to_end(*one);
      }
      if (one->asked) insist(*one, now);
      ++one;
    }
    if (is_ending_ && ends_by_ != 0 && now > ends_by_) {
      ends_by_ = 0;
      for (Running& one : running_) ask_to_end(one);
    }
  }

  void answer(Running& one, Nanoseconds now) {
    const ServedEnd end{now - one.start, one.asked.has_value(), one.is_late};
    session_.answer(one.number, served_answer(one.call, one.command->take_outcome(), end));
  }

  // Finding the interpreters comes before what is counted here.
  void report_progress(Running& one, Nanoseconds now) {
    one.last_progress = now;
    if (one.first_progress == 0) {
      one.first_progress = now;
      return;
    }
    const Nanoseconds recorded = now - one.first_progress;
    if (recorded > one.call.duration) return;
    session_.report_progress(
        one.number, static_cast<double>(recorded / 1'000'000) / 1e3,
        static_cast<double>(one.call.duration) / 1e9,
        fmt::format("recorded {} of {} s", recorded / kSecond, one.call.duration / kSecond));
  }

  // A recording is then written to its end; another command has nothing to lose.
  void ask_to_end(Running& one) {
    if (one.asked) return;
    one.asked = clock_now();
    one.command->send_signal(one.call.tool == "record" ? SIGINT : SIGTERM);
  }

  void insist(Running& one, Nanoseconds now) {
    const Nanoseconds patience = one.call.tool == "record" ? kRecordPatience : kPatience;
    if (now - *one.asked > patience) one.command->send_signal(SIGKILL);
  }

  // `is_input`: no more questions come, and the answers to those that came may still be wanted.
  void end(bool is_input) {
    is_ending_ = true;
    if (is_input) ends_by_ = clock_now() + kLastAnswers;
    for (Running& one : running_) {
      if (!is_input || one.call.tool == "record") ask_to_end(one);
    }
  }

  Talk& talk_;
  RecordingsFolder folder_;
  mcp::MessageLines lines_;
  mcp::Session session_;
  std::list<Running> running_;
  Descriptor signals_;
  sigset_t mask_before_{};
  std::string unread_;  // what is to be written, of which the first
  size_t written_ = 0;  // bytes are
  bool output_is_gone_ = false;
  bool is_ending_ = false;
  Nanoseconds ends_by_ = 0;   // of the commands that still run at the end of input; 0: not yet, or done
  Nanoseconds farewell_ = 0;  // until when answers are offered at the end; 0: not yet
};

}  // namespace

int mcp(const CommandLine& line, Talk& talk) {
  return McpServer(line, talk).run();
}

}  // namespace phlox::cli
