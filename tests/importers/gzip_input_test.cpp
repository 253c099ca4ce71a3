#include "phlox/importers/gzip_input.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace phlox::importers {
namespace {

std::string packed(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Longer than what is kept of the start, and than one piece.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 700'000; ++i) text += std::to_string(i * 7919) + ";";
  return text;
}

struct Unpacked {
  std::string bytes;
  MemoryInput file{std::as_bytes(std::span(bytes))};
  std::unique_ptr<GzipInput> input = GzipInput::of(file);
  explicit Unpacked(std::string packed) : bytes(std::move(packed)) {}
};

TEST(GzipInput, what_was_packed_comes_out_and_the_start_again_and_again) {
  const std::string text = long_text();
  Unpacked gzip(packed(text));
  ASSERT_NE(gzip.input, nullptr);
  std::byte head[100];
  EXPECT_EQ(gzip.input->read_at(0, head), sizeof head);
  EXPECT_EQ(read_all(*gzip.input, 1 << 20), text);
  EXPECT_FALSE(gzip.input->damaged());
}

TEST(GzipInput, several_parts_are_one) {
  Unpacked gzip(packed("one ") + packed("two"));
  EXPECT_EQ(read_all(*gzip.input, 100), "one two");
  EXPECT_FALSE(gzip.input->damaged());
}

TEST(GzipInput, a_cut_file_gives_what_is_there) {
  const std::string text = long_text(), all = packed(text);
  Unpacked gzip(all.substr(0, all.size() / 2));
  const auto out = read_all(*gzip.input, 1 << 20);
  ASSERT_TRUE(out);
  EXPECT_GT(out->size(), 100'000u);
  EXPECT_TRUE(text.starts_with(*out));
  EXPECT_TRUE(gzip.input->damaged());
}

TEST(GzipInput, what_is_not_packed_is_none) {
  Unpacked plain("plain");
  EXPECT_EQ(plain.input, nullptr);
}

}  // namespace
}  // namespace phlox::importers
