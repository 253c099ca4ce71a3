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
#include <streambuf>

namespace phlox::cli {

// Unlike std::filebuf it keeps errno.
class OutputFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(int descriptor) : descriptor_(descriptor) {
    setp(block_.data(), block_.data() + block_.size());
  }
  int error() const { return error_; }
  bool flush() {
    const char* at = pbase();
    while (error_ == 0 && at < pptr()) {
      const ssize_t written = ::write(descriptor_, at, static_cast<size_t>(pptr() - at));
      if (written >= 0) {
        at += written;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    setp(block_.data(), block_.data() + block_.size());
    return error_ == 0;
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
  int descriptor_;
  int error_ = 0;
  std::array<char, size_t{1} << 16> block_;
};

namespace {

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  const char* hint = error == ENOENT   ? "is the folder there?"
                     : error == ENOSPC ? "free some room, or choose another place with -o"
                                       : "choose another file with -o FILE";
  return fail(ErrorKind::output,
              fmt::format("cannot write {}: {} (errno {})", path, std::strerror(error), error), hint);
}

}  // namespace

OutputFile::OutputFile() = default;

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path,
                                                     const std::optional<target::CallingUser>& owner) {
  std::unique_ptr<OutputFile> output(new OutputFile);
  output->path_ = path;
  if (path.empty() || path == "-") {
    output->path_ = "standard output";
    output->descriptor_ = STDOUT_FILENO;
  } else {
    struct stat there {};
    const bool exists = ::stat(path.c_str(), &there) == 0;
    if (exists && S_ISDIR(there.st_mode)) return cannot_write(path, EISDIR);
    if (exists && !S_ISREG(there.st_mode)) {
      output->file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!output->file_) return cannot_write(path, errno);
    } else {
      // Behind a link its target is replaced, not the link.
      char* real = exists ? ::realpath(path.c_str(), nullptr) : nullptr;
      output->final_ = real != nullptr ? real : path;
      std::free(real);
      if (exists && ::access(path.c_str(), W_OK) != 0) return cannot_write(path, errno);
      std::string name = output->final_ + ".XXXXXX";
      output->file_ = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
      if (!output->file_) return cannot_write(path, errno);
      output->temporary_ = name;
      const mode_t mask = ::umask(0);
      ::umask(mask);
      ::fchmod(output->file_.get(), exists ? there.st_mode & 07777 : 0666 & ~mask);
      if (owner && ::fchown(output->file_.get(), owner->uid, owner->gid) != 0)
        return cannot_write(path, errno);
    }
    output->descriptor_ = output->file_.get();
  }
  output->buffer_ = std::make_unique<Buffer>(output->descriptor_);
  output->stream_ = std::make_unique<std::ostream>(output->buffer_.get());
  return output;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::ostream& OutputFile::stream() {
  return *stream_;
}

Result<void> OutputFile::commit() {
  stream_->flush();
  if (buffer_->error() != 0) return cannot_write(path_, buffer_->error());
  if (!temporary_.empty()) {
    if (::rename(temporary_.c_str(), final_.c_str()) != 0) return cannot_write(path_, errno);
    temporary_.clear();
  }
  return {};
}

}  // namespace phlox::cli
