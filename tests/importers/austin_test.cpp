#include <gtest/gtest.h>

#include <limits>

#include "phlox/importers/austin_mojo.h"
#include "phlox/importers/austin_text.h"
#include "phlox/importers/registry.h"
#include "support/imported.h"

namespace phlox::importers {
namespace {

using test::import_bytes;
using test::import_text;
using test::Imported;

TEST(AustinText, samples_are_sequential_and_threads_of_a_turn_are_parallel) {
  const Imported in = import_text(import_austin_text,
                                  "# austin: 3.7.0\n# interval: 1000\n# mode: wall\n\n"
                                  "P12;T0:12;/app.py:<module>:9;/app.py:Order.total:3 1000\n"
                                  "P12;T0:13;/usr/bin/pip:main:3 1000\n"
                                  "P12;T0:12;/app.py:<module>:10 1100\n\n# duration: 2100\n");
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.profile.samples()[0].start, 0);
  EXPECT_EQ(in.profile.samples()[1].start, 0);
  EXPECT_EQ(in.profile.samples()[2].start, 1'000'000);
  EXPECT_EQ(in.profile.samples()[2].wall, 1'100'000);
  EXPECT_EQ(in.profile.samples()[2].cpu, 0);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"Order.total", "<module>"}));
  EXPECT_EQ(in.profile.frames()[1].function, "total");
  EXPECT_EQ(in.profile.frames()[1].line, 3);
  EXPECT_EQ(in.profile.frames()[2].kind, profile::FrameKind::python);
  EXPECT_EQ(in.profile.processes()[0].pid, 12);
  EXPECT_EQ(in.profile.threads()[1].tid, 13);
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(AustinText, full_metrics_say_which_threads_were_idle) {
  const Imported in = import_text(
      import_austin_text,
      "# mode: full\nP1;T0:1;a.py:f:1 10,0,4096\nP1;T0:1;a.py:f:1;:GC: 20,1,-4096\n# duration: 30\n");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[0].cpu_state, profile::CpuState::running);
  EXPECT_EQ(in.profile.samples()[1].cpu_state, profile::CpuState::blocked);
  EXPECT_EQ(in.profile.samples()[1].wall, 20'000);
  EXPECT_TRUE(in.profile.samples()[1].collecting);
  EXPECT_EQ(in.stack(1).size(), 1u);
}

TEST(AustinText, bytes_of_memory_are_no_time) {
  const Imported in =
      import_text(import_austin_text, "# mode: memory\nP1;T0:1;a.py:f:1 -4096\n# duration: 30\n");
  ASSERT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.profile.samples()[0].samples, 1u);
}

TEST(AustinText, lines_behind_the_function_are_its_lines) {
  const Imported in = import_text(import_austin_text, "P1;T7f12ab;a.py:f;L12;a.py:g;L3 5\n");
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"g", "f"}));
  EXPECT_EQ(in.profile.frames()[0].line, 12);
  EXPECT_EQ(in.profile.threads()[0].name, "7f12ab");
}

TEST(AustinText, a_file_without_its_end_says_so) {
  const Imported in =
      import_text(import_austin_text, "# mode: wall\nP1;T0:1;a.py:f:1 10\nP1;T0:1;a.py:f:1;:INVALID:");
  EXPECT_EQ(in.outcome.samples, 1u);
  EXPECT_EQ(in.outcome.warnings.size(), 2u);
}

TEST(AustinText, a_start_beyond_a_hundred_years_stays_there_and_is_refused) {
  std::string text = "# mode: wall\n";
  for (int i = 0; i < 6; ++i) text += "P1;T0:1;a.py:f:1 3000000000000000\n";
  const Imported in = import_text(import_austin_text, text + "# duration: 1\n");
  EXPECT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[0].wall, std::numeric_limits<Nanoseconds>::max() / 4);
  EXPECT_EQ(in.outcome.warnings,
            (std::vector<std::string>{"the times add up to more than 73 years; what is beyond was left out",
                                      "1 sample is more than 18 years before or after time 0 and shown "
                                      "there: lengths are right",
                                      "4 samples made no sense and were left out"}));
}

// Numbers of MOJO, one byte each.
std::vector<std::byte> mojo(std::string_view events, char version = 3) {
  std::string text = std::string("MOJ") + version + std::string(events);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

using namespace std::string_literals;
using namespace std::string_view_literals;
constexpr std::string_view kMetadata = "\1austin\0004.0.0\0\1mode\0wall\0"sv;
constexpr std::string_view kTexts = "\x0b\1/a.py\0\x0b\2f\0\x0b\3g\0"sv;
constexpr std::string_view kEnd = "\1duration\00042\0"sv;

// What a frame is comes before the stack that refers to it, what was called first before what it called.
TEST(AustinMojo, a_stack_refers_to_its_frames) {
  const auto bytes = mojo(std::string(kMetadata) + std::string("\2\x07\0001f\0"sv) + std::string(kTexts) +
                          "\3\5\1\2\x09\x09\1\2" + "\3\6\1\3\x0c\x0c\1\2" + "\5\6\5\5\x09\x90\1" +
                          std::string("\2\x07\0001f\0"sv) + "\5\6\x09\5" + std::string(kEnd));
  const Imported in = import_bytes(import_austin_mojo, bytes);
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"f", "g"}));
  EXPECT_EQ(in.profile.samples()[0].wall, (0x10 + (1 << 6)) * 1000);
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"g"});
  EXPECT_EQ(in.profile.samples()[1].start, in.profile.samples()[0].wall);
  EXPECT_EQ(in.profile.threads()[0].tid, 0x1f);
  EXPECT_EQ(in.profile.processes()[0].pid, 7);
  EXPECT_EQ(in.profile.frames()[1].line, 12);
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(AustinMojo, a_file_that_was_cut_gives_what_is_whole) {
  const auto whole = mojo(std::string(kMetadata) + std::string("\2\x07\0001f\0"sv) + std::string(kTexts) +
                          "\3\5\1\2\x09\x09\1\2\5\5\x09\5" + std::string("\2\x07\0001f\0"sv) + "\5\5\x09\5");
  for (size_t size = 4; size < whole.size(); ++size) {
    const Imported in = import_bytes(import_austin_mojo, std::span(whole).first(size));
    EXPECT_LE(in.profile.samples().size(), 2u);
    for (size_t i = 0; i < in.profile.samples().size(); ++i) {
      EXPECT_EQ(in.profile.samples()[i].wall, 5000);
      EXPECT_EQ(in.stack(i), std::vector<std::string>{"f"});
    }
    if (!in.profile.samples().empty()) {
      EXPECT_EQ(in.outcome.warnings.size(), 1u) << size;
    }
  }
}

TEST(AustinMojo, references_to_nothing_and_unknown_events_are_reported) {
  const auto bytes = mojo(std::string(kMetadata) + std::string("\2\x07\0001f\0"sv) + "\5\x09\x09\5" +
                          std::string(kEnd) + "\x70");
  const Imported in = import_bytes(import_austin_mojo, bytes);
  EXPECT_TRUE(in.profile.samples().empty());
  EXPECT_EQ(in.outcome.warnings.size(), 2u);
  const auto later = mojo("", 5);
  MemoryInput input(later);
  profile::Profile profile;
  EXPECT_EQ(import_austin_mojo(input, {}, profile).error().kind, ErrorKind::input);
}

// Of two processes that forked, austin gives the same numbers to different functions, turn by turn.
TEST(AustinMojo, a_number_means_what_its_own_process_said) {
  const auto in_process = [](char pid) { return std::string("\2") + pid + "\0001f\0"s; };
  const auto bytes =
      mojo(std::string(kMetadata) + in_process(7) + "\x0b\1/a.py\0\x0b\2f\0"s +
           "\3\5\1\2\x09\x09\1\2\5\5\x09\5" + in_process(8) + "\x0b\1/b.py\0\x0b\2g\0"s +
           "\3\5\1\2\x09\x09\1\2\5\5\x09\5" + in_process(7) + "\5\5\x09\5" + std::string(kEnd));
  const Imported in = import_bytes(import_austin_mojo, bytes);
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"f"});
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"g"});
  EXPECT_EQ(in.stack(2), std::vector<std::string>{"f"});
}

// /a.py:f calls g of libx.so; then the thread is still in f, and h of libx.so runs.
std::vector<std::byte> repeating(std::string_view second, char version = 4) {
  const auto sample = "\2\x07\0001f\0"s;
  return mojo(std::string(kMetadata) + sample + "\x0b\1/a.py\0\x0b\2f\0\x0b\3g\0\x0b\4libx.so\0\x0b\7h\0"s +
                  "\3\5\1\2\x09\x09\1\2" + "\3\6\4\3\0\0\0\0"s + "\3\x08\4\7\0\0\0\0"s + "\5\5\5\6\x09\5" +
                  sample + std::string(second) + "\x09\6" + sample + "\x0d\x09\7" + std::string(kEnd),
              version);
}

TEST(AustinMojo, a_repeated_stack_is_what_the_thread_had_of_python_before) {
  for (const std::string_view second : {"\5\x08\x0d"sv, "\x0d\5\x08"sv}) {
    const Imported in = import_bytes(import_austin_mojo, repeating(second));
    ASSERT_EQ(in.profile.samples().size(), 3u);
    EXPECT_EQ(in.stack(0), (std::vector<std::string>{"g", "f"}));
    EXPECT_EQ(in.stack(1), (std::vector<std::string>{"h", "f"}));
    EXPECT_EQ(in.stack(2), std::vector<std::string>{"f"});
    EXPECT_EQ(in.profile.samples()[2].start, 11'000);
    EXPECT_TRUE(in.outcome.warnings.empty());
  }
}

TEST(AustinMojo, what_could_not_be_read_is_not_repeated) {
  const Imported in = import_bytes(import_austin_mojo, repeating("\4"));
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.profile.samples()[1].quality, profile::Quality::cut);
  EXPECT_EQ(in.stack(2), std::vector<std::string>{"f"});
}

TEST(AustinMojo, a_repetition_of_nothing_and_one_in_an_older_version_are_reported) {
  const auto bytes = mojo(std::string(kMetadata) + "\2\x07\0001f\0\x0d\x09\5"s + std::string(kEnd), 4);
  const Imported in = import_bytes(import_austin_mojo, bytes);
  EXPECT_TRUE(in.profile.samples().empty());
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
  const Imported older = import_bytes(import_austin_mojo, repeating("\x0d", 3));
  EXPECT_EQ(older.profile.samples().size(), 1u);
  EXPECT_EQ(older.outcome.warnings.size(), 2u);
}

TEST(Austin, it_is_recognised_by_its_content) {
  const auto name_of = [](std::string_view text) {
    MemoryInput input(std::as_bytes(std::span(text)));
    const Format* format = recognise(input);
    return format == nullptr ? std::string_view() : format->name;
  };
  EXPECT_EQ(name_of("# austin: 3.7.0\n# mode: wall\n\nP1;T0:1;a.py:f:1 10\n"), "austin");
  EXPECT_EQ(name_of("P1;T0:1;a.py:f:1 10,0,1\n"), "austin");
  EXPECT_EQ(name_of("MOJ\3\1austin"), "austin-mojo");
  EXPECT_EQ(name_of("P1;f 10\n"), "collapsed");
  EXPECT_EQ(name_of("Listening on port 8000\n\n# austin: 3.7.0\n# mode: wall\n\nP1;T0:1;a.py:f:1 10\n"),
            "austin");
  EXPECT_EQ(name_of("starting\nP1;T0:1;a.py:f:1 10\n"), "austin");
  // A pthread_t may have digits only.
  EXPECT_EQ(name_of("Thread 140123456789;main (app.py);L7 1200\n"), "austin");
  EXPECT_EQ(name_of("Thread 140123456789;main (app.py) 1200\n"), "collapsed");
  EXPECT_EQ(name_of("Process 42;Thread 43;main (app.py);L7;work (app.py);L9 1200\n"), "austin");
  EXPECT_EQ(name_of("Thread 43;main (app.py);Lock 1200\n"), "collapsed");
}

TEST(AustinText, numbers_follow_tabs_or_blanks_and_names_may_be_missing) {
  const Imported in =
      import_text(import_austin_text,
                  "hello\n# mode: wall\nP1;T0:1;a.py:f:1\t10\nP1;T0:1;a.py::1  20 \n# duration: 30\n");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[0].wall + in.profile.samples()[1].wall, 30'000);
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"[no name]"});
  EXPECT_EQ(in.outcome.warnings.size(), 2u);  // "hello", and the name
}

TEST(AustinText, what_it_says_of_itself_is_short) {
  const Imported in = import_text(
      import_austin_text, "# austin: " + std::string(10'000, 'x') + "\nP1;T0:1;a.py:f:1 10\n# duration: 1\n");
  EXPECT_LT(in.outcome.summary.size(), 300u);
}

// As austin 1.0.1 writes it.
TEST(AustinText, version_1_is_read) {
  const Imported in = import_text(import_austin_text,
                                  "Process 12;Thread 55d2a2e1be40;main (/app.py);L3;work (/app.py);L7 1500\n"
                                  "Process 12;Thread 55d2a2e1be40 20\n");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"work", "main"}));
  EXPECT_EQ(in.profile.samples()[0].wall, 1'500'000);
  EXPECT_EQ(in.profile.frames()[1].line, 7);
  EXPECT_EQ(in.profile.frames()[1].file, "/app.py");
  EXPECT_EQ(in.profile.processes()[0].pid, 12);
  EXPECT_EQ(in.profile.threads()[0].name, "55d2a2e1be40");
  EXPECT_EQ(in.outcome.warnings.size(), 1u);  // time or memory is not known
  const Imported full =
      import_text(import_austin_text, "Thread 55905f6e8e40;f (<frozen x>:9) 21742 544 -3\n");
  EXPECT_EQ(full.profile.samples()[0].wall, 21'742'000);
  EXPECT_EQ(full.profile.frames()[0].line, 9);
  EXPECT_TRUE(full.outcome.warnings.empty());
}

}  // namespace
}  // namespace phlox::importers
