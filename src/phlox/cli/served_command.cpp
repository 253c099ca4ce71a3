#include "phlox/cli/served_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "phlox/base/interrupted.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/talk.h"

namespace phlox::cli {
namespace {

constexpr size_t kMostLastWords = 2000;

struct Pipe {
  Descriptor from, into;
  static Pipe make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// In the child of a fork; the server has no other thread, but what is called here is async-signal-safe all
// the same.
[[noreturn]] void become(char* const* words, char* const* environment, const int (&streams)[3], pid_t server,
                         const sigset_t& mask) {
  for (int i = 0; i < 3; ++i) {
    if (::dup2(streams[i], i) < 0) ::_exit(kCommandNotStarted);
  }
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  // Also of a server that is killed: record ends as it does with SIGTERM.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != server) ::_exit(kCommandNotStarted);
  ::execve("/proc/self/exe", words, environment);
  ::_exit(kCommandNotStarted);
}

// Closes the descriptor at the end of what it gives.
bool read_some(Descriptor& from, std::string& into) {
  char block[1 << 16];
  const ssize_t size = retried([&] { return ::read(from.get(), block, sizeof block); });
  if (size > 0) {
    into.append(block, static_cast<size_t>(size));
    return true;
  }
  if (size == 0 || errno != EAGAIN) from.close();
  return false;
}

}  // namespace

Result<std::unique_ptr<ServedCommand>> ServedCommand::start(const std::vector<std::string>& words,
                                                            const sigset_t& mask) {
  Pipe output = Pipe::make(), messages = Pipe::make();
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!output.from || !messages.from || !nothing)
    return fail(ErrorKind::system,
                fmt::format("cannot run phlox {}: {}", words.front(), std::strerror(errno)),
                "raise ulimit -n");
  std::vector<std::string> arguments = {"phlox"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<std::string> variables = {fmt::format("{}={}", Talk::kMessages, Talk::kJson)};
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(std::string(Talk::kMessages) + "=")) variables.emplace_back(*one);
  }
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const int streams[3] = {nothing.get(), output.into.get(), messages.into.get()};
  const pid_t server = ::getpid();
  std::unique_ptr<ServedCommand> command(new ServedCommand);
  command->pid_ = ::fork();
  if (command->pid_ < 0) {
    command->pid_ = 0;
    return fail(ErrorKind::system,
                fmt::format("cannot run phlox {}: {}", words.front(), std::strerror(errno)),
                "raise ulimit -u, or the container's limit on processes");
  }
  if (command->pid_ == 0) become(argv.data(), envp.data(), streams, server, mask);
  command->output_ = std::move(output.from);
  command->messages_ = std::move(messages.from);
  ::fcntl(command->output_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(command->messages_.get(), F_SETFL, O_NONBLOCK);
  return command;
}

ServedCommand::~ServedCommand() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool ServedCommand::read() {
  bool goes_on = false;
  std::string fresh;
  while (output_ && read_some(output_, fresh)) {
    if (outcome_.output.size() + fresh.size() > kMostOutput) {
      outcome_.too_much = true;
    } else {
      outcome_.output += fresh;
    }
    fresh.clear();
  }
  while (messages_ && read_some(messages_, fresh)) {
    for (size_t end = 0; (end = fresh.find('\n')) != std::string::npos; fresh.erase(0, end + 1)) {
      goes_on |= take_line(line_ + fresh.substr(0, end));
      line_.clear();
    }
    line_ += std::exchange(fresh, {});
    if (line_.size() > kMostOutput) {
      outcome_.too_much = true;
      line_.clear();
    }
  }
  return goes_on;
}

bool ServedCommand::take_line(std::string_view line) {
  auto message = mcp::parse_json(line);
  if (message && message->is(mcp::Json::Kind::object)) {
    if (message->find("progress") != nullptr) return true;
    outcome_.messages.push_back(*std::move(message));
  } else if (outcome_.last_words.size() < kMostLastWords) {
    outcome_.last_words += std::string(line.substr(0, kMostLastWords)) + "\n";
  }
  return false;
}

bool ServedCommand::has_ended() {
  if (pid_ == 0) return true;
  int how = 0;
  const pid_t seen = ::waitpid(pid_, &how, WNOHANG);
  if (seen == 0 || (seen < 0 && errno == EINTR)) return false;
  pid_ = 0;
  outcome_.status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  read();  // what it started may still hold the other end: that is not waited for
  return true;
}

void ServedCommand::send_signal(int number) const {
  if (pid_ != 0) ::kill(pid_, number);
}

}  // namespace phlox::cli
