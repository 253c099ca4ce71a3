#include "phlox/importers/tachyon.h"

#include <gtest/gtest.h>

#include <cstring>

#include "phlox/importers/collapsed.h"
#include "phlox/importers/registry.h"
#include "support/imported.h"

namespace phlox::importers {
namespace {

using test::import_bytes;
using test::Imported;

// A file of two frames, "f" at line 3 of a.py and "g" at line 7, and the records given.
class TachyonFile {
 public:
  explicit TachyonFile(uint32_t mode = 1) : mode_(mode) {}

  TachyonFile& full(uint64_t thread, unsigned delta, uint8_t status, std::vector<uint8_t> frames) {
    head(thread, 1);
    number(delta);
    samples_ += static_cast<char>(status);
    number(static_cast<unsigned>(frames.size()));
    for (const uint8_t frame : frames) samples_ += static_cast<char>(frame);
    return *this;
  }
  TachyonFile& change(uint64_t thread, uint8_t encoding, unsigned delta, unsigned count,
                      std::vector<uint8_t> frames) {
    head(thread, encoding);
    number(delta);
    samples_ += '\3';
    number(count);
    number(static_cast<unsigned>(frames.size()));
    for (const uint8_t frame : frames) samples_ += static_cast<char>(frame);
    return *this;
  }
  TachyonFile& repeat(uint64_t thread, std::vector<unsigned> deltas) {
    head(thread, 0);
    number(static_cast<unsigned>(deltas.size()));
    for (const unsigned delta : deltas) {
      number(delta);
      samples_ += '\3';
    }
    return *this;
  }

  std::string bytes() const {
    const std::string strings = "\4a.py\1f\1g";
    // file, function, line 3 (zigzag), end, columns, instruction
    const std::string frames = {0, 1, 6, 0, 0, 0, '\xff', 0, 2, 14, 0, 0, 0, '\xff'};
    std::string out;
    put(out, uint32_t{0x54414348});
    put(out, uint32_t{1});
    out += std::string("\3\x0f\2\0", 4);
    put(out, uint64_t{1'000'000});
    put(out, uint64_t{1000});
    put(out, uint64_t{9});
    put(out, uint32_t{1});
    put(out, uint64_t{64 + samples_.size()});
    put(out, uint64_t{64 + samples_.size() + strings.size()});
    put(out, uint32_t{0});
    put(out, mode_);
    out += samples_ + strings + frames;
    put(out, uint32_t{3});
    put(out, uint32_t{2});
    put(out, uint64_t{out.size() + 24});
    return out + std::string(16, '\0');
  }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void head(uint64_t thread, uint8_t encoding) {
    put(samples_, thread);
    put(samples_, uint32_t{0});
    samples_ += static_cast<char>(encoding);
  }
  void number(unsigned value) {
    for (; value >= 128; value >>= 7) samples_ += static_cast<char>(value | 128);
    samples_ += static_cast<char>(value);
  }

  uint32_t mode_;
  std::string samples_;
};

Imported import_file(const std::string& bytes) {
  return import_bytes(import_tachyon, std::as_bytes(std::span(bytes)));
}

TEST(Tachyon, a_sample_has_the_time_since_the_one_before) {
  const Imported in = import_file(TachyonFile()
                                      .full(7, 5000, 3, {1, 0})
                                      .repeat(7, {1000, 1200})
                                      .change(7, 3, 900, 1, {})
                                      .change(7, 2, 800, 1, {1})
                                      .bytes());
  ASSERT_EQ(in.profile.samples().size(), 3u);
  // The thread may have begun within the first delta.
  EXPECT_EQ(in.profile.samples()[0].start, 4'000'000);
  EXPECT_EQ(in.profile.samples()[0].wall, 3'200'000);
  EXPECT_EQ(in.profile.samples()[0].samples, 3u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"g", "f"}));
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"f"});
  EXPECT_EQ(in.profile.samples()[1].start, 7'200'000);
  EXPECT_EQ(in.stack(2), (std::vector<std::string>{"g", "f"}));
  EXPECT_EQ(in.profile.frames()[0].line, 3);
  EXPECT_EQ(in.profile.samples()[0].gil_state, profile::GilState::holds);
  EXPECT_EQ(in.profile.samples()[0].cpu_state, profile::CpuState::running);
  EXPECT_EQ(in.profile.threads()[0].tid, 7);
  EXPECT_EQ(in.outcome.samples, 5u);
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(Tachyon, where_samples_were_left_out_their_time_is_not_known) {
  const Imported in = import_file(TachyonFile(2).full(7, 5000, 2, {0}).repeat(7, {400'000}).bytes());
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[1].start, 405'000'000);
  EXPECT_EQ(in.profile.samples()[1].wall, 0);
}

TEST(Tachyon, a_file_that_was_cut_gives_what_is_there) {
  const std::string whole =
      TachyonFile().full(7, 5000, 3, {1, 0}).repeat(7, {1000, 1200}).change(7, 3, 900, 1, {}).bytes();
  for (size_t size = 64; size < whole.size(); ++size) {
    const Imported in = import_file(whole.substr(0, size));
    EXPECT_EQ(in.outcome.warnings.size(), 1u) << size;
    EXPECT_LE(in.outcome.samples, 4u);
  }
  // Samples are all there; strings, frames and what follows them are not.
  const Imported nameless = import_file(whole.substr(0, whole.size() - 54));
  EXPECT_EQ(nameless.outcome.samples, 4u);
  EXPECT_EQ(nameless.profile.frames()[0].kind, profile::FrameKind::marker);
}

TEST(Tachyon, what_makes_no_sense_ends_it) {
  // More frames taken away than there are; an encoding that is none.
  EXPECT_EQ(
      import_file(TachyonFile().full(7, 5, 3, {0}).change(7, 3, 5, 2, {}).bytes()).outcome.warnings.size(),
      1u);
  EXPECT_EQ(import_file(TachyonFile().change(7, 9, 5, 2, {}).bytes()).outcome.samples, 0u);
}

// A table without a byte: nothing is asked for, into nowhere. What holds is the sanitizers' to say.
TEST(Tachyon, tables_may_be_empty) {
  std::string bytes = TachyonFile().full(7, 5, 3, {0}).bytes();
  std::memcpy(bytes.data() + 40, bytes.data() + 48, 8);  // strings begin where frames do
  EXPECT_EQ(import_file(bytes).outcome.samples, 1u);
}

TEST(Tachyon, it_is_recognised_and_its_text_is_too) {
  const std::string bytes = TachyonFile().full(7, 5, 3, {0}).bytes();
  MemoryInput input(std::as_bytes(std::span(bytes)));
  ASSERT_NE(recognise(input), nullptr);
  EXPECT_EQ(recognise(input)->name, "tachyon");
  const Imported in =
      test::import_text(import_collapsed, "tid:4711;app.py:<module>:9;<native>;pip:Order.total:3 12\n");
  EXPECT_EQ(in.profile.threads()[0].tid, 4711);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"Order.total", "<native>", "<module>"}));
  EXPECT_EQ(in.profile.frames()[0].kind, profile::FrameKind::python);
  EXPECT_EQ(in.profile.frames()[1].kind, profile::FrameKind::marker);
  EXPECT_EQ(in.profile.frames()[2].file, "pip");
  EXPECT_EQ(in.profile.frames()[2].line, 3);
  EXPECT_EQ(in.profile.samples()[0].samples, 12u);
}

}  // namespace
}  // namespace phlox::importers
