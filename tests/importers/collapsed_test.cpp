#include "phlox/importers/collapsed.h"

#include <gtest/gtest.h>

#include <sstream>

#include "phlox/exporters/collapsed.h"
#include "phlox/profile/view.h"
#include "support/imported.h"
#include "support/profile_of.h"

namespace phlox::importers {
namespace {

using test::import_text;
using test::Imported;

TEST(CollapsedImport, a_line_is_a_stack_with_its_count) {
  const Imported in = import_text(import_collapsed, "main;work 3\nmain 1\n");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"work", "main"}));
  EXPECT_EQ(in.profile.samples()[0].samples, 3u);
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.outcome.samples, 4u);
}

TEST(CollapsedImport, frames_tell_their_file_and_line) {
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

TEST(CollapsedImport, counts_beyond_what_a_row_holds_are_kept) {
  const Imported in = import_text(import_collapsed, "a 10000000000\n");
  EXPECT_EQ(in.outcome.samples, 10'000'000'000u);
  uint64_t sum = 0;
  for (const auto& sample : in.profile.samples()) sum += sample.samples;
  EXPECT_EQ(sum, 10'000'000'000u);
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
  profile::Choices choices;
  choices.weight = profile::Weight::samples;
  const auto text_of = [&](const profile::Profile& profile) {
    const auto tree = profile::build_call_tree(profile, choices);
    std::ostringstream out;
    exporters::write_collapsed(*tree, false, out);
    return out.str();
  };
  const std::string text = text_of(before);
  const Imported in = import_text(import_collapsed, text);
  EXPECT_EQ(text_of(in.profile), text);
}

}  // namespace
}  // namespace phlox::importers
