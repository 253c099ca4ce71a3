#include "phlox/exporters/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <streambuf>

namespace phlox::exporters {

class GzipStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::ostream& out) : out_(out) {
    constexpr int kGzip = 16;  // added to the window bits: a gzip header without a time
    ready_ = deflateInit2(&deflate_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK;
    setp(plain_.data(), plain_.data() + plain_.size());
  }
  ~Buffer() override {
    if (ready_) deflateEnd(&deflate_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool finish() { return take(Z_FINISH); }

 protected:
  int_type overflow(int_type byte) override {
    if (!take(Z_NO_FLUSH)) return traits_type::eof();
    if (!traits_type::eq_int_type(byte, traits_type::eof())) sputc(traits_type::to_char_type(byte));
    return traits_type::not_eof(byte);
  }

 private:
  // Compresses the buffered text.
  bool take(int flush) {
    if (!ready_) return false;
    deflate_.next_in = reinterpret_cast<Bytef*>(pbase());
    deflate_.avail_in = static_cast<uInt>(pptr() - pbase());
    int status = Z_OK;
    do {
      deflate_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      deflate_.avail_out = static_cast<uInt>(packed_.size());
      status = deflate(&deflate_, flush);
      out_.write(packed_.data(), static_cast<std::streamsize>(packed_.size() - deflate_.avail_out));
    } while (deflate_.avail_out == 0 && status == Z_OK);
    setp(plain_.data(), plain_.data() + plain_.size());
    // Z_BUF_ERROR: nothing to do.
    return flush == Z_FINISH ? status == Z_STREAM_END : status == Z_OK || status == Z_BUF_ERROR;
  }

  std::ostream& out_;
  z_stream deflate_ = {};
  bool ready_ = false;
  std::array<char, 1 << 16> plain_;
  std::array<char, 1 << 16> packed_;
};

GzipStream::GzipStream(std::ostream& out) : buffer_(std::make_unique<Buffer>(out)), stream_(buffer_.get()) {}
GzipStream::~GzipStream() = default;

std::ostream& GzipStream::stream() {
  return stream_;
}

Result<void> GzipStream::finish() {
  if (stream_.good() && buffer_->finish()) return {};
  return fail(ErrorKind::system, "cannot compress the output: zlib gave up");
}

}  // namespace phlox::exporters
