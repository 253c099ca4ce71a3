#include "phlox/cli/record_end.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "phlox/cli/exit_status.h"

namespace phlox::cli {
namespace {

using Kind = Message::Kind;
using sampler::Ended;

// Two seconds of process 7, all well.
RecordEnd good() {
  RecordEnd end;
  end.pid = 7;
  end.outcome.why = Ended::duration;
  end.outcome.processes = 1;
  end.outcome.progress.elapsed = 2 * kSecond;
  end.outcome.progress.samples = end.outcome.progress.ticks = 400;
  end.outcome.progress.sampled_time = 2 * kSecond;
  end.recording = end.where = "a.phlox";
  end.written = "a.phlox (12 KB)";
  end.summary = "hot functions\n";
  return end;
}
RecordEnd empty() {
  RecordEnd end = good();
  end.outcome.progress.samples = 0;
  end.outcome.why_no_python = "it ended before the first sample";
  end.summary = end.written = end.where = "";
  return end;
}
RecordEnd disk_is_full() {
  RecordEnd end = good();
  end.error = Error{ErrorKind::output, "the disk is full", "free some space"};
  return end;
}

// The texts of one kind, without the line about the quality.
std::vector<std::string> texts(const RecordEnd& end, Kind kind) {
  std::vector<std::string> found;
  for (const Message& message : last_messages(end)) {
    if (message.kind == kind && message.text.find(" s: ") == std::string::npos) found.push_back(message.text);
  }
  return found;
}
using Texts = std::vector<std::string>;

TEST(RecordEnd, a_good_one_has_its_quality_its_summary_and_what_was_written) {
  const auto messages = last_messages(good());
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].kind, Kind::note);
  EXPECT_EQ(messages[0].text.rfind("2.0 s: 400 samples", 0), 0U) << messages[0].text;
  EXPECT_EQ(messages[1], (Message{Kind::lines, "hot functions\n"}));
  EXPECT_EQ(messages[2], (Message{Kind::note, "wrote a.phlox (12 KB)"}));
  EXPECT_EQ(messages[3],
            (Message{Kind::note, "more: phlox report a.phlox; in the browser: phlox view a.phlox"}));
}

TEST(RecordEnd, an_export_names_the_recording_for_other_views) {
  RecordEnd end = good();
  end.exports = true;
  EXPECT_EQ(texts(end, Kind::note).back(),
            "other views of it: phlox report a.phlox; phlox export a.phlox --help");
  end.why_view_is_empty = "no thread was running";
  EXPECT_EQ(texts(end, Kind::warning), Texts{"no thread was running"});
}

TEST(RecordEnd, nothing_is_said_of_an_output_that_leaves_no_file) {
  RecordEnd end = good();
  end.written = "";
  EXPECT_TRUE(texts(end, Kind::note).empty());
}

TEST(RecordEnd, several_processes_are_counted) {
  RecordEnd end = good();
  end.outcome.processes = 3;
  EXPECT_EQ(last_messages(end).front().text.rfind("2.0 s of 3 processes: ", 0), 0U);
}

TEST(RecordEnd, how_its_program_ended_is_said_where_it_is_known) {
  for (const auto& [how, words] : std::vector<std::pair<std::string, std::string>>{
           {"exit 3", "process 7 ended: exit 3; the recording is complete"},
           {"ended", "process 7 ended; the recording is complete"},
           {"", "process 7 ended; the recording is complete"}}) {
    RecordEnd end = good();
    end.outcome.why = Ended::target_ended;
    end.outcome.how_target_ended = how;
    EXPECT_EQ(texts(end, Kind::note).front(), words);
  }
}

TEST(RecordEnd, warnings_come_first_and_in_the_order_of_their_sources) {
  RecordEnd end = good();
  end.outcome.warnings = {"of the recorder"};
  end.refused = "of the selection";
  end.remarks = {"of the output"};
  end.notes = {"a note of the output"};
  end.outcome.details = {"a detail"};
  end.outcome.why_no_python = "none of its threads was in Python";
  const auto messages = last_messages(end);
  ASSERT_GE(messages.size(), 5U);
  EXPECT_EQ(messages[0], (Message{Kind::warning, "of the recorder"}));
  EXPECT_EQ(messages[1], (Message{Kind::warning, "of the selection"}));
  EXPECT_EQ(messages[2], (Message{Kind::warning, "of the output"}));
  EXPECT_EQ(messages[3], (Message{Kind::note, "a note of the output"}));
  EXPECT_EQ(messages[4], (Message{Kind::detail, "a detail"}));
  EXPECT_EQ(texts(end, Kind::warning).back(), "no Python was seen: none of its threads was in Python");
}

TEST(RecordEnd, a_rejected_sample_in_ten_is_a_warning) {
  RecordEnd end = good();
  end.outcome.progress.rejected_moved = 40;
  EXPECT_EQ(texts(end, Kind::warning).size(), 1U);
}

TEST(RecordEnd, sampling_that_was_limited_says_so_with_its_cost) {
  RecordEnd end = good();
  end.outcome.progress.target_time = kSecond;
  Texts warnings = texts(end, Kind::warning);
  ASSERT_EQ(warnings.size(), 1U);
  const std::string cost = warnings[0];
  end.outcome.progress.rests = 1;
  EXPECT_EQ(texts(end, Kind::warning), Texts{cost + "; sampling was limited to half of its time"});
}

TEST(RecordEnd, an_empty_one_is_an_error_with_a_hint) {
  RecordEnd end = empty();
  end.exports = true;
  end.why_view_is_empty = "the recording has no sample";
  const auto messages = last_messages(end);
  EXPECT_EQ(messages.back(),
            (Message{Kind::error,
                     "no sample was taken of process 7, so the recording is empty: it ended before the first "
                     "sample",
                     "what it does outside of Python: phlox record --native -p 7"}));
  EXPECT_TRUE(texts(end, Kind::warning).empty());
  end.native = true;
  EXPECT_EQ(last_messages(end).back().hint, "a longer recording may see it: -d 60");
}

TEST(RecordEnd, an_empty_one_of_a_program_that_was_never_seen_says_that_it_ended) {
  RecordEnd end = empty();
  end.outcome.why_no_python = "";
  end.outcome.why = sampler::Ended::target_ended;
  EXPECT_EQ(last_messages(end).back(),
            (Message{Kind::error,
                     "no sample was taken of process 7, so the recording is empty: it ended before the first "
                     "sample",
                     "let it do more work, or record it several times with --append"}));
}

TEST(RecordEnd, an_empty_one_of_a_selection_names_what_runs) {
  RecordEnd end = empty();
  end.pid = 0;
  end.none_runs = "no Python named x is running";
  EXPECT_EQ(texts(end, Kind::error), Texts{"the recording is empty: it ended before the first sample"});
  end.outcome.why_no_python = "";
  EXPECT_EQ(texts(end, Kind::error), Texts{"the recording is empty: no Python named x is running"});
}

TEST(RecordEnd, what_happened_to_the_file_follows_an_error) {
  RecordEnd end = disk_is_full();
  auto messages = last_messages(end);
  EXPECT_EQ(messages[messages.size() - 2], (Message{Kind::error, "the disk is full", "free some space"}));
  EXPECT_EQ(messages.back(), (Message{Kind::note, "what was recorded is in a.phlox"}));
  EXPECT_TRUE(texts(end, Kind::lines).empty());
  end.where = "";
  EXPECT_EQ(last_messages(end).back().kind, Kind::error);
  end.stays = true;
  EXPECT_EQ(last_messages(end).back(), (Message{Kind::note, "a.phlox is as it was"}));
  end = empty();
  end.where = "a.phlox";
  end.stays = true;
  EXPECT_EQ(last_messages(end).back(), (Message{Kind::note, "a.phlox is as it was"}));
}

TEST(RecordEnd, five_modules_without_names_are_noted_and_the_rest_is_counted) {
  RecordEnd end = good();
  for (int i = 0; i < 8; ++i) {
    naming::NativeRows::Missing row;
    row.names.module = "lib" + std::to_string(i) + ".so";
    row.names.no_lines = true;
    row.names.why = "no debug information";
    end.missing.push_back(row);
    end.missing.push_back(row);  // of another worker
  }
  end.missing[0].names.complete = end.missing[1].names.complete = true;  // no advice helps
  const auto notes = texts(end, Kind::note);
  EXPECT_EQ(std::count_if(notes.begin(), notes.end(), [](auto& text) { return text.rfind("lib", 0) == 0; }),
            5);
  EXPECT_EQ(std::count(notes.begin(), notes.end(),
                       "and 2 more modules without names or lines (--verbose lists them)"),
            1);
  EXPECT_EQ(texts(end, Kind::detail).size(), 3U);
}

TEST(RecordEnd, has_the_exit_status_of_what_went_wrong_or_of_its_program) {
  const process::ExitStatus three{.code = 3}, killed{.signal = 9};
  struct Case {
    std::string name;
    RecordEnd end;
    std::optional<process::ExitStatus> program;
    int status;
  };
  const Case cases[] = {
      {"good", good(), {}, kSuccess},
      {"its program", good(), three, 3},
      {"its program was killed", good(), killed, 128 + 9},
      {"empty", empty(), {}, kNothingSeen},
      {"empty, with a program", empty(), three, kNothingSeen},
      {"error", disk_is_full(), {}, exit_status(ErrorKind::output)},
      {"error, with a program", disk_is_full(), three, exit_status(ErrorKind::output)},
  };
  for (const Case& one : cases) EXPECT_EQ(exit_status(one.end, one.program), one.status) << one.name;
  RecordEnd both = empty();
  both.error = Error{ErrorKind::system, "cannot wait for processes", ""};
  EXPECT_EQ(exit_status(both, {}), exit_status(ErrorKind::system)) << "why it is empty is known";
}

}  // namespace
}  // namespace phlox::cli
