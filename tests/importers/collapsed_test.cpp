#include "phlox/importers/collapsed.h"

#include <gtest/gtest.h>

#include <sstream>

#include "phlox/exporters/collapsed.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/view.h"
#include "support/imported.h"
#include "support/profile_of.h"

namespace phlox::importers {
namespace {

using test::import_text;
using test::Imported;

// The name of the first event, and the sum of what they counted.
std::pair<std::string, int64_t> weighed(const Imported& in) {
  int64_t sum = 0;
  for (const auto& sample : in.profile.samples()) sum += sample.value;
  const auto events = profile::sampled_events(in.profile);
  return {events.empty() ? "" : events.front().name, sum};
}

TEST(CollapsedImport, a_line_is_a_stack_with_its_count) {
  const Imported in = import_text(import_collapsed, "main;work 3\nmain 1\n");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"work", "main"}));
  EXPECT_EQ(in.profile.samples()[0].samples, 3u);
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.outcome.samples, 4u);
}

TEST(CollapsedImport, frames_have_their_file_and_line) {
  const Imported in =
      import_text(import_collapsed, "run (/srv/app.py:12);f() (inlined);read_[k];x (a.c:3) 1\n");
  const auto& frames = in.profile.frames();
  EXPECT_EQ(frames[0].kind, profile::FrameKind::python);
  EXPECT_EQ(frames[0].qualified_name, "run");
  EXPECT_EQ(frames[0].file, "/srv/app.py");
  EXPECT_EQ(frames[0].line, 12);
  EXPECT_EQ(frames[1].qualified_name, "f() (inlined)");
  EXPECT_EQ(frames[2].kind, profile::FrameKind::kernel);
  EXPECT_EQ(frames[2].qualified_name, "read");
  EXPECT_EQ(frames[3].kind, profile::FrameKind::native);
  EXPECT_EQ(frames[3].file, "a.c");
}

TEST(CollapsedImport, threads_at_the_root_are_threads) {
  const Imported in =
      import_text(import_collapsed, "Thread worker (12);a 1\nThread 13;a 2\na 4\nThread pool;a 8\n");
  ASSERT_EQ(in.profile.threads().size(), 3u);
  EXPECT_EQ(in.profile.threads()[0].name, "worker");
  EXPECT_EQ(in.profile.threads()[0].tid, 12);
  EXPECT_EQ(in.profile.threads()[1].tid, 13);
  EXPECT_EQ(in.stack(3), (std::vector<std::string>{"a", "Thread pool"}));
  const Imported spied = import_text(import_collapsed, "thread (12): Main;a 1\nthread (13);a 2\n");
  ASSERT_EQ(spied.profile.threads().size(), 2u);
  EXPECT_EQ(spied.profile.threads()[0].name, "Main");
  EXPECT_EQ(spied.profile.threads()[1].tid, 13);
}

TEST(CollapsedImport, a_hash_may_begin_a_name) {
  const Imported in = import_text(import_collapsed,
                                  "# mode: wall\n# interval: 100\n#\n#!1 2\n#<Class:0x1>#run;f 3\n# a;b 4\n"
                                  "#main 5\n");
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"f", "#<Class:0x1>#run"}));
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"b", "# a"}));
  EXPECT_EQ(in.stack(2), (std::vector<std::string>{"#main"}));
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(CollapsedImport, counts_beyond_what_a_row_holds_are_kept) {
  const Imported in = import_text(import_collapsed, "a 10000000000\n");
  EXPECT_EQ(weighed(in), std::pair(std::string("weight"), int64_t{10'000'000'000}));
}

TEST(CollapsedImport, what_is_no_stack_is_left_out_and_said) {
  const Imported in = import_text(import_collapsed, "a;b 3\nnonsense\n# words\n\nc 2.00\r\nlast 7");
  EXPECT_EQ(in.outcome.samples, 12u);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

// Our own export comes back with every stack and every number.
TEST(CollapsedImport, what_was_exported_comes_back) {
  profile::Profile before;
  test::ProfileMaker maker(before);
  const auto thread = maker.thread("Main;Thread \\n", 7);
  maker.add(thread, "main;a\\;b:3;c 12", 5);
  maker.add(thread, "main", 3);
  view::Choices choices;
  choices.weight = view::Weight::samples;
  const auto text_of = [&](const profile::Profile& profile) {
    const auto tree = view::build_call_tree(profile, choices);
    std::ostringstream out;
    exporters::write_collapsed(*tree, false, out);
    return out.str();
  };
  const std::string text = text_of(before);
  const Imported in = import_text(import_collapsed, text);
  EXPECT_EQ(text_of(in.profile), text);
}

TEST(CollapsedImport, lines_end_and_are_parted_as_on_any_system) {
  const Imported in = import_text(import_collapsed,
                                  "\xef\xbb\xbf"
                                  "a;b 3\r\na;c\t4\r\n a 5 \t\r\n\r\n");
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(in.outcome.samples, 12u);
  EXPECT_TRUE(in.outcome.warnings.empty());
}

// flamegraph.pl adds it to the whole.
TEST(CollapsedImport, a_line_without_a_stack_counts_and_one_without_a_weight_is_said) {
  const Imported in = import_text(import_collapsed, "a;b 3\n 4\n5\n");
  EXPECT_EQ(in.outcome.samples, 7u);
  ASSERT_EQ(in.outcome.warnings.size(), 1u);
  EXPECT_NE(in.outcome.warnings[0].find("1 line is"), std::string::npos);
}

TEST(CollapsedImport, fractions_keep_their_sum) {
  const Imported in = import_text(import_collapsed, "a;b 0.5\na;c 2.25\na 3\n");
  EXPECT_EQ(weighed(in), std::pair(std::string("hundredths of weight"), int64_t{575}));
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

// Each weight is cut to what is shown, and what is cut is carried on.
TEST(CollapsedImport, fractions_that_are_too_fine_keep_the_sum) {
  std::string text = "a;b 0.3333333333333333\na;c 0.3333333333333333\na 0.3333333333333334\n";
  EXPECT_EQ(weighed(import_text(import_collapsed, text)),
            std::pair(std::string("millionths of weight"), int64_t{1'000'000}));
  text.clear();
  for (int i = 0; i < 1000; ++i) text += "a;b 0.0000001\n";
  const Imported small = import_text(import_collapsed, text);
  EXPECT_EQ(weighed(small).second, 100);
  EXPECT_EQ(small.outcome.warnings.size(), 2u);
  // Fewer digits where the sum would be too large with all of them.
  const Imported large = import_text(import_collapsed, "a;b 200000000000000000.25\na;c 1.5\na;d 0.25\n");
  EXPECT_EQ(weighed(large), std::pair(std::string("tenths of weight"), int64_t{2'000'000'000'000'000'020}));
}

TEST(CollapsedImport, weights_of_days_in_nanoseconds_keep_their_sum) {
  const Imported in = import_text(import_collapsed, "a;b 864000000000000\na 4294967296\nc 1\n");
  EXPECT_EQ(weighed(in), std::pair(std::string("weight"), int64_t{864'004'294'967'297}));
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(CollapsedImport, a_sum_of_63_bits_is_exact) {
  const Imported in = import_text(import_collapsed, "a;b 9223372036854775800\na 6\nc 1\n");
  EXPECT_EQ(weighed(in), std::pair(std::string("weight"), std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(CollapsedImport, weights_that_no_sum_holds_are_said) {
  const Imported in = import_text(import_collapsed, "a 9223372036854775807\nb 5\nc 99999999999999999999\n");
  EXPECT_EQ(in.outcome.warnings.size(), 2u);
}

// As difffolded.pl writes it.
TEST(CollapsedImport, of_two_numbers_the_second_is_shown) {
  const Imported in = import_text(import_collapsed, "a;b 3 5\na;c 0 2\n");
  EXPECT_EQ(in.outcome.samples, 7u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
  // A name may end in a number too.
  EXPECT_EQ(import_text(import_collapsed, "a;b 3 5\na 2\na 3\n").stack(0)[0], "b 3");
  EXPECT_TRUE(import_text(import_collapsed, "a;b 3 5\na 2\na 3\n").outcome.warnings.empty());
  // flamegraph.pl decides line by line: if most lines have two, that is said.
  EXPECT_EQ(import_text(import_collapsed, "a;b 3 5\na;c 1 4\na 2\n").outcome.warnings.size(), 1u);
}

TEST(CollapsedImport, notes_behind_a_name_are_no_part_of_it) {
  const Imported in = import_text(import_collapsed, "py::run:/srv/app.py_[j];f_[i];g_[w];h_[k];x[j] 1\n");
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"x[j]", "h", "g", "f", "run"}));
  EXPECT_EQ(in.profile.frames()[0].kind, profile::FrameKind::python);
  EXPECT_EQ(in.profile.frames()[0].file, "/srv/app.py");
  EXPECT_EQ(in.profile.frames()[3].kind, profile::FrameKind::kernel);
}

TEST(CollapsedImport, a_frame_without_a_name_is_said) {
  const Imported in = import_text(import_collapsed, "a;;b 3\n");
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"b", "[no name]", "a"}));
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

TEST(CollapsedImport, what_a_recording_does_not_hold_is_said) {
  std::string text;
  for (int i = 0; i < 1'000'002; ++i) text += fmt::format("Thread {} \"\";f{} 1\n", i + 1, i);
  const Imported in = import_text(import_collapsed, text);
  EXPECT_EQ(in.outcome.samples, 1'000'002u);
  EXPECT_EQ(in.profile.threads().size(), 1'000'000u);
  ASSERT_EQ(in.outcome.warnings.size(), 2u);
  EXPECT_TRUE(in.outcome.warnings[0].starts_with("there are more than 1000000 different processes, threads"));
  EXPECT_TRUE(in.outcome.warnings[1].starts_with("there are more different functions or stacks"));
}

// As of a pipe, where the disk has no room for what is to be read twice.
TEST(CollapsedImport, what_cannot_be_read_again_is_an_error) {
  struct Forgetful : MemoryInput {
    using MemoryInput::MemoryInput;
    bool lost() const override { return true; }
  };
  const std::string_view text = "a;b 3\n";
  Forgetful input(std::as_bytes(std::span(text)));
  profile::Profile profile;
  const auto refused = import_collapsed(input, {}, profile);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().hint.find("TMPDIR"), std::string::npos);
}

// Lines that begin alike share what they begin with.
TEST(CollapsedImport, each_line_has_its_own_stack_whatever_came_before) {
  const Imported in = import_text(import_collapsed,
                                  "a;b;c 1\na;b 1\na;bc 1\na;b;c 1\na 1\n 1\na;;c 1\na;;c 1\n"
                                  "Thread 7 \"w\";a;b 1\n"
                                  "y 1\ny;z;q 1\nyz;;k 1\n");
  const std::vector<std::vector<std::string>> expected = {{"c", "b", "a"},
                                                          {"b", "a"},
                                                          {"bc", "a"},
                                                          {"c", "b", "a"},
                                                          {"a"},
                                                          {},
                                                          {"c", "[no name]", "a"},
                                                          {"c", "[no name]", "a"},
                                                          {"b", "a"},
                                                          {"y"},
                                                          {"q", "z", "y"},
                                                          {"k", "[no name]", "yz"}};
  ASSERT_EQ(in.profile.samples().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(in.stack(i), expected[i]) << i;
  EXPECT_EQ(in.profile.samples()[3].stack, in.profile.samples()[0].stack);
  EXPECT_EQ(in.outcome.warnings,
            std::vector<std::string>{"3 frames have no name and are shown as [no name]"});
}

TEST(CollapsedImport, py_spy_s_processes_have_their_threads) {
  const Imported in = import_text(import_collapsed,
                                  "process 12:\"python3 a.py\";thread (12): MainThread;main (a.py:1) 2\n"
                                  "process 12:\"python3 a.py\";process 34:\"python3 -c a;b\";thread "
                                  "(0x7F0011223344): w;run (b.py:2) 5\n");
  ASSERT_EQ(in.profile.processes().size(), 2u);
  EXPECT_EQ(in.profile.processes()[1].pid, 34);
  EXPECT_EQ(in.profile.processes()[1].executable, "python3 -c a;b");
  EXPECT_EQ(in.profile.processes()[1].parent, profile::ProcessId(1));
  ASSERT_EQ(in.profile.threads().size(), 2u);
  EXPECT_EQ(in.profile.threads()[1].name, "w");
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"run"});
}

TEST(CollapsedImport, a_log_before_the_first_stack_or_between_stacks_is_no_obstacle) {
  const auto is_collapsed = [](std::string_view text) {
    return recognise_collapsed(std::as_bytes(std::span(text)));
  };
  EXPECT_TRUE(is_collapsed("Sampling process 100 times a second. Press Control-C to exit.\na;b 3\n"));
  EXPECT_TRUE(is_collapsed("a;b 3\nWARNING: late\na;c 4\na;d 4\na;e 4\n"));
  EXPECT_TRUE(is_collapsed("a;b 3\n 7\n9\n"));
  EXPECT_FALSE(is_collapsed("9\n12\n"));
  EXPECT_TRUE(is_collapsed("a;b 3\r\na;c 4\r\n"));
  EXPECT_FALSE(is_collapsed("Starting server\nListening on port 8000\nworkers: 4\n"));
  EXPECT_FALSE(is_collapsed("some words;\nof a text\n"));
  std::string log;
  for (int i = 0; i < 200; ++i) log += "installing a package ...\n";
  EXPECT_TRUE(is_collapsed(log + "a;b 3\n"));
  EXPECT_FALSE(is_collapsed(log));
}

TEST(CollapsedImport, lines_and_blanks_are_those_of_other_readers_too) {
  const Imported in = import_text(import_collapsed, "a;b 3\ra;c\v4\ra;d\f\t5\r");
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.outcome.samples, 12u);
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"c", "a"}));
  EXPECT_TRUE(recognise_collapsed(std::as_bytes(std::span(std::string_view("# x\ra;b 3\ra;c 4\r")))));
}

}  // namespace
}  // namespace phlox::importers
