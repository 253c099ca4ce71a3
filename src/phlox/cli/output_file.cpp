#include "phlox/cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <streambuf>
#include <string_view>

#include "phlox/base/text.h"
#include "phlox/base/write_all.h"
#include "phlox/recording/reader.h"
#include "phlox/report/plain_lines.h"

namespace phlox::cli {

// Unlike std::filebuf, keeps errno.
class OutputFile::Buffer : public std::streambuf {
 public:
  // `text`: for people to read, so control characters in names are escaped.
  Buffer(int descriptor, bool text) : descriptor_(descriptor), text_(text) {
    setp(block_.data(), block_.data() + block_.size());
  }
  int error() const { return error_; }
  bool flush() {
    const std::string_view block(pbase(), static_cast<size_t>(pptr() - pbase()));
    write_all(text_ ? std::string_view(shown_ = plain_.put(block)) : block);
    setp(block_.data(), block_.data() + block_.size());
    return error_ == 0;
  }
  void end() {
    flush();
    if (text_) write_all(plain_.end());
  }

 protected:
  int_type overflow(int_type c) override {
    if (!flush()) return traits_type::eof();
    if (c != traits_type::eof()) {
      *pptr() = static_cast<char>(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }
  int sync() override { return flush() ? 0 : -1; }

 private:
  void write_all(std::string_view bytes) {
    if (error_ == 0 && !phlox::write_all(descriptor_, std::as_bytes(std::span(bytes)))) error_ = errno;
  }

  int descriptor_;
  bool text_;
  int error_ = 0;
  report::PlainStream plain_;
  std::string shown_;
  std::array<char, size_t{1} << 16> block_;
};

namespace {

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  if (error == EPIPE) return fail(ErrorKind::output, "");  // the reader (head) closed the pipe on purpose
  const char* hint = error == ENOENT   ? "is the folder there?"
                     : error == ENOSPC ? "free some room, or choose another place with -o"
                                       : "choose another file with -o FILE";
  return fail(ErrorKind::output,
              fmt::format("cannot write {}: {} (errno {})", path, std::strerror(error), error), hint);
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// The one of `inputs` that this file is, or is a companion file of.
std::optional<std::string> input_that_is(const struct stat& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    for (const char* part : {"", "-wal", "-shm", "-journal"}) {
      struct stat there {};
      if (::stat((input + part).c_str(), &there) == 0 && same_file(there, output)) return input + part;
    }
  }
  return {};
}

Result<void> check_rules(const std::string& path, const struct stat& there, const OutputRules& rules) {
  if (const auto input = input_that_is(there, rules.inputs)) {
    return fail(ErrorKind::usage,
                path == *input ? fmt::format("{} is the recording that is read: it would be destroyed", path)
                               : fmt::format("{} is {}, which is read: it would be destroyed", path, *input),
                "choose another file with -o FILE");
  }
  return {};
}

// Our descriptor that a path such as /dev/stdout or /dev/fd/3 leads to. Opening a plain file by that name
// would write from its start, over what others have written through the same descriptor.
std::optional<int> descriptor_named(std::string path) {
  constexpr int kMostLinks = 8;
  for (int i = 0; i < kMostLinks; ++i) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {};
    char* real = ::realpath(slash == 0 ? "/" : path.substr(0, slash).c_str(), nullptr);
    if (real == nullptr) return {};
    const std::string folder = real;
    std::free(real);
    const std::string name = path.substr(slash + 1);
    if (folder == fmt::format("/proc/{}/fd", ::getpid())) return parse_number<int>(name);
    char link[4096];
    const ssize_t size = ::readlink(path.c_str(), link, sizeof link);
    if (size <= 0) return {};
    path.assign(link, static_cast<size_t>(size));
    if (path[0] != '/') path = folder + "/" + path;
  }
  return {};
}

}  // namespace

OutputFile::OutputFile() = default;

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path, const OutputRules& rules) {
  std::unique_ptr<OutputFile> output(new OutputFile);
  output->path_ = path;
  output->owner_ = rules.owner;
  struct stat there {};
  const auto named = descriptor_named(path);
  if (path.empty() || path == "-" || named) {
    if (!named) output->path_ = "standard output";
    output->descriptor_ = named.value_or(STDOUT_FILENO);
    if (::fstat(output->descriptor_, &there) != 0) {
      if (named) return cannot_write(path, errno);
    } else if (auto fine = check_rules(output->path_, there, rules); !fine) {
      return fail(fine);
    }
  } else {
    const bool exists = ::stat(path.c_str(), &there) == 0;
    if (exists) {
      if (auto fine = check_rules(path, there, rules); !fine) return fail(fine);
    }
    if (exists && S_ISREG(there.st_mode) && !rules.force && recording::is_recording(path)) {
      return fail(ErrorKind::output, fmt::format("{} is a recording, and would be replaced", path),
                  "choose another file with -o FILE, or say --force");
    }
    if (exists && S_ISDIR(there.st_mode)) return cannot_write(path, EISDIR);
    output->secret_ = rules.secret;
    auto opened =
        exists && !S_ISREG(there.st_mode) ? output->open_in_place(path) : output->open_replacement(path);
    if (!opened) return fail(opened);
  }
  output->buffer_ = std::make_unique<Buffer>(output->descriptor_, rules.text);
  output->stream_ = std::make_unique<std::ostream>(output->buffer_.get());
  return output;
}

Result<void> OutputFile::open_in_place(const std::string& path) {
  const ActAs as(owner_);
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file_) return cannot_write(path, errno);
  descriptor_ = file_.get();
  return {};
}

Result<void> OutputFile::open_replacement(const std::string& path) {
  struct stat there {};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) return cannot_write(path, errno);
  // A link's target is replaced, not the link.
  char* real = exists ? ::realpath(path.c_str(), nullptr) : nullptr;
  const std::string final = real != nullptr ? real : path;
  std::free(real);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  mode_ = exists ? there.st_mode & 0777 : 0666 & ~mask;
  if (secret_) mode_ = 0600;
  new_file_.emplace(NewFile::make(final, owner_));
  if (!*new_file_) return cannot_write(path, errno);
  descriptor_ = new_file_->descriptor();
  return {};
}

OutputFile::~OutputFile() = default;

std::ostream& OutputFile::stream() {
  return *stream_;
}

Result<void> OutputFile::commit() {
  buffer_->end();
  if (buffer_->error() != 0) return cannot_write(path_, buffer_->error());
  if (new_file_ && !new_file_->put_in_place(mode_)) return cannot_write(path_, errno);
  return {};
}

std::string with_size(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return path;
  const auto bytes = static_cast<double>(there.st_size);
  return fmt::format("{} ({})", path,
                     bytes < 1e3   ? fmt::format("{:.0f} bytes", bytes)
                     : bytes < 1e6 ? fmt::format("{:.0f} KB", bytes / 1e3)
                                   : fmt::format("{:.1f} MB", bytes / 1e6));
}

}  // namespace phlox::cli
