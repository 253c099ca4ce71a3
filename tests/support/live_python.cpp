#include "support/live_python.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace phlox::test {

LivePython::LivePython(const Python& python, const std::string& script,
                       const std::vector<std::string>& arguments) {
  testing::Test::RecordProperty("live", "yes");  // tools/run_tests.py retries such tests once
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) return;
  std::vector<std::string> words = {python.path, script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  FILE* output = ::fdopen(out[0], "r");
  char* line = nullptr;
  size_t capacity = 0;
  for (ssize_t n; !ready_ && (n = ::getline(&line, &capacity, output)) > 0;) {
    std::string text(line, static_cast<size_t>(n));
    if (text.back() == '\n') text.pop_back();
    ready_ = text == "ready";
    if (!ready_) lines_.push_back(std::move(text));
  }
  ::free(line);
  ::fclose(output);
  EXPECT_TRUE(ready_) << python.path << " " << script;
}

LivePython::~LivePython() {
  if (input_ >= 0) ::close(input_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

size_t LivePython::read(std::span<const memory::Range> ranges) {
  std::vector<iovec> local, remote;
  for (const memory::Range& range : ranges) {
    local.push_back({range.into.data(), range.into.size()});
    remote.push_back({reinterpret_cast<void*>(range.address.value), range.into.size()});
  }
  ++calls_;
  const ssize_t got = ::process_vm_readv(pid_, local.data(), local.size(), remote.data(), remote.size(), 0);
  size_t rest = got < 0 ? 0 : static_cast<size_t>(got), whole = 0;
  for (const memory::Range& range : ranges) {
    if (rest < range.into.size()) break;
    rest -= range.into.size();
    ++whole;
  }
  return whole;
}

}  // namespace phlox::test
