#include "phlox/exporters/collapsed.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "support/call_tree_of.h"

namespace phlox::exporters {
namespace {

using test::call_tree_of;
using test::call_tree_of_text;
using test::python_label;

std::string collapsed(const view::CallTree& tree, bool by_line = false) {
  std::ostringstream out;
  write_collapsed(tree, by_line, out);
  return out.str();
}

TEST(collapsed, writes_one_line_a_stack_root_first) {
  EXPECT_EQ(collapsed(call_tree_of_text({"main;work;parse 30", "main;work 5", "main;idle 7"})),
            "main (/app/app.py);idle (/app/app.py) 7\n"
            "main (/app/app.py);work (/app/app.py) 5\n"
            "main (/app/app.py);work (/app/app.py);parse (/app/app.py) 30\n");
}

TEST(collapsed, by_line_names_the_line) {
  view::Label label{profile::FrameKind::python, "work", "/app/a.py", 12, "a"};
  EXPECT_EQ(collapsed(call_tree_of({{{label}, 3}}), true), "work (/app/a.py:12) 3\n");
  EXPECT_EQ(collapsed(call_tree_of({{{label}, 3}}), false), "work (/app/a.py) 3\n");
}

// What searches, and other tools, read: `bytewax::` found nothing.
TEST(collapsed, native_functions_have_their_full_name_and_library) {
  view::Label label{profile::FrameKind::native, "Op::run", "src/run.rs", 7, "bytewax",
                    "<bytewax::Op as Run>::run"};
  EXPECT_EQ(collapsed(call_tree_of({{{label}, 3}})), "<bytewax::Op as Run>::run (bytewax: src/run.rs) 3\n");
  label.file.clear();
  EXPECT_EQ(collapsed(call_tree_of({{{label}, 3}}), true), "<bytewax::Op as Run>::run (bytewax) 3\n");
  view::Label c{profile::FrameKind::native, "hypot", "", 0, "libm"};
  EXPECT_EQ(collapsed(call_tree_of({{{c}, 3}})), "hypot (libm) 3\n");
}

TEST(collapsed, weight_without_a_frame_is_kept_under_the_root) {
  EXPECT_EQ(collapsed(call_tree_of({{{}, 4}})), "all 4\n");
}

TEST(collapsed, separators_in_names_are_escaped_and_come_back) {
  std::string name = "a;b\\x3b\nc\r\t\\n \x01 é; 名前 \\";
  std::string escaped = escape_collapsed(name);
  EXPECT_EQ(escaped.find(';'), std::string::npos);
  EXPECT_EQ(escaped.find('\n'), std::string::npos);
  EXPECT_EQ(unescape_collapsed(escaped), name);
}

// The export's default output is a terminal.
TEST(collapsed, names_steer_no_terminal) {
  EXPECT_EQ(escape_collapsed("a\xc2\x9b"
                             "31m\xe2\x80\xae"
                             "b\x7f\xff\xc3"),
            "a\\xc2\\x9b31m\\xe2\\x80\\xae"
            "b\\x7f\\xff\\xc3");
  EXPECT_EQ(escape_collapsed("\xef\xbb\xbf"
                             "f\xef\xbf\xbd"),
            "\\xef\\xbb\\xbf"
            "f\xef\xbf\xbd");
}

TEST(collapsed, no_stack_is_a_comment) {
  view::Label block{profile::FrameKind::marker, "#<Class:0x1>#run", "", 0, ""};
  EXPECT_EQ(collapsed(call_tree_of({{{block, block}, 3}})), "\\x23<Class:0x1>#run;#<Class:0x1>#run 3\n");
  EXPECT_EQ(unescape_collapsed("\\x23<Class:0x1>#run"), "#<Class:0x1>#run");
}

TEST(collapsed, any_bytes_survive_escaping) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string name;
    for (size_t length = random() % 12; name.size() < length;) {
      // Half of the bytes are those that the escaping is about.
      name += random() % 2 ? "\\;\nxn3b"[random() % 7] : static_cast<char>(random() % 256);
    }
    ASSERT_EQ(unescape_collapsed(escape_collapsed(name)), name);
  }
}

// inferno and difffolded.pl split a second number off the end of the line.
TEST(collapsed, leaf_that_ends_in_a_number_is_not_taken_for_a_second_count) {
  view::Label thread{profile::FrameKind::marker, "Thread 4711", "", 0, ""};
  EXPECT_EQ(collapsed(call_tree_of({{{thread}, 3}})), "Thread\\x204711 3\n");
  EXPECT_EQ(collapsed(call_tree_of({{{thread, python_label("f")}, 3}})), "Thread 4711;f (/app/app.py) 3\n");
  EXPECT_EQ(unescape_collapsed("Thread\\x204711"), "Thread 4711");
}

TEST(collapsed, weights_add_up_to_the_total) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<test::StackLine> lines;
    for (size_t count = random() % 30; lines.size() < count;) {
      test::StackLine line;
      for (size_t depth = random() % 8; line.frames.size() < depth;) {
        line.frames.push_back(python_label("f" + std::to_string(random() % 5)));
      }
      line.weight = static_cast<int64_t>(random() % 1'000'000'007);
      lines.push_back(line);
    }
    view::CallTree tree = call_tree_of(lines);
    std::istringstream text(collapsed(tree));
    int64_t sum = 0;
    for (std::string line; std::getline(text, line);) sum += std::stoll(line.substr(line.rfind(' ') + 1));
    ASSERT_EQ(sum, tree.total);
  }
}

}  // namespace
}  // namespace phlox::exporters
