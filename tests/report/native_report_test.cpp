// What a report says of a recording with native frames: the Python function and line stay the answer to
// "where".
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "phlox/profile/declarations.h"
#include "phlox/profile/interner.h"
#include "phlox/report/diff.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/stack_places.h"
#include "report/schema.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

class NativeReport : public testing::Test {
 protected:
  NativeReport() {
    profile_.emit_meta("machine", "x86_64");
    profile_.emit(ProcessId(1), {});
    for (const char* path : {"/usr/bin/python3.12", "/usr/lib/libblas.so.3", "/usr/lib/libc.so.6"})
      profile_.emit(ModuleId(++modules_), {path, "", 0});
    main_ = thread("MainThread");
  }
  ThreadId thread(const std::string& name) {
    Thread row;
    row.process = ProcessId(1);
    row.name = name;
    row.tid = static_cast<int32_t>(++threads_);
    profile_.emit(ThreadId(threads_), row);
    return ThreadId(threads_);
  }
  FrameId python(const std::string& name, int32_t line) {
    Frame frame;
    frame.function = frame.qualified_name = name;
    frame.file = "/app/app.py";
    frame.first_line = 1;
    frame.line = line;
    return interner_.frame(frame);
  }
  FrameId native(uint32_t module, const std::string& name, const std::string& file = "", int32_t line = 0,
                 int32_t first_line = 0) {
    Frame frame;
    frame.kind = FrameKind::native;
    frame.function = frame.qualified_name = name;
    frame.module = ModuleId(module);
    frame.address = ++address_;
    frame.file = file;
    frame.line = line;
    frame.first_line = first_line;
    frame.role = name == "_PyEval_EvalFrameDefault" ? FrameRole::interpreter_loop : FrameRole::none;
    return interner_.frame(frame);
  }
  FrameId loop() { return native(1, "_PyEval_EvalFrameDefault"); }
  Sample sample(ThreadId thread, const std::vector<FrameId>& root_first, Nanoseconds wall) {
    Sample row;
    row.thread = thread;
    row.start = at_;
    row.wall = row.cpu = wall;
    at_ += wall;
    row.cpu_state = CpuState::running;
    row.stack = interner_.stack(root_first);
    return row;
  }
  void add(const std::vector<FrameId>& root_first, Nanoseconds wall) { put(sample(main_, root_first, wall)); }
  void put(const Sample& row) { profile_.emit(SampleId(++samples_), row); }
  Report report() {
    show_native_frames(profile_, {});
    auto made = make_report(profile_, {});
    EXPECT_TRUE(made);
    return made ? *made : Report{};
  }

  static constexpr Nanoseconds kMs = 1'000'000;
  static constexpr uint32_t kPython = 1, kBlas = 2, kLibc = 3;
  Profile profile_;
  Interner interner_{profile_};
  ThreadId main_;
  Nanoseconds at_ = kSecond;
  uint32_t modules_ = 0, threads_ = 0, samples_ = 0;
  uint64_t address_ = 0;
};

TEST_F(NativeReport, the_hot_function_and_line_of_pure_python_are_those_without_native_frames) {
  const FrameId work = python("work", 6),
                dict = native(kPython, "dict_subscript", "Objects/dictobject.c", 12),
                memcpy = native(kLibc, "__memmove_avx");
  for (int i = 0; i < 20; ++i) {
    add({loop(), work}, 10 * kMs);
    add({loop(), work, dict}, 20 * kMs);
    add({loop(), work, dict, memcpy}, 10 * kMs);
  }
  const Report made = report();
  ASSERT_EQ(made.functions.size(), 1u);
  EXPECT_EQ(made.functions[0].name, "work");
  EXPECT_DOUBLE_EQ(made.functions[0].self.share, 1);
  EXPECT_EQ(made.functions[0].native.name, "dict_subscript");
  EXPECT_DOUBLE_EQ(made.functions[0].native.share, 0.5);
  ASSERT_EQ(made.lines.size(), 1u);
  EXPECT_EQ(made.lines[0].file, "/app/app.py");
  EXPECT_EQ(made.lines[0].line, 6);
  ASSERT_FALSE(made.findings.empty());
  EXPECT_EQ(made.findings[0].kind, "hot_function");
  EXPECT_NE(made.findings[0].text.find("spent in work itself"), std::string::npos) << made.findings[0].text;
  EXPECT_EQ(made.findings[0].text.find("native"), std::string::npos) << made.findings[0].text;
  EXPECT_EQ(made.threads[0].busiest, "work");
  for (const FunctionRow& row : made.totals) EXPECT_NE(row.name, "dict_subscript");
}

TEST_F(NativeReport, totals_name_native_code_only_where_no_python_calls_it) {
  for (int i = 0; i < 20; ++i) {
    add({loop(), python("work", 6), native(kLibc, "__futex_wait")}, 30 * kMs);
    add({native(kBlas, "pool_worker"), native(kLibc, "__futex_wait")}, 10 * kMs);
    add({loop(), python("work", 6), native(kBlas, "gemm"), native(kBlas, "kernel")}, 10 * kMs);
  }
  std::vector<std::string> names;
  for (const FunctionRow& row : report().totals) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"work", "__futex_wait"}));
}

TEST_F(NativeReport, without_native_frames_the_library_that_most_samples_found_is_named) {
  const auto samples = [&](const FrameId line, uint32_t module, int count) {
    for (int i = 0; i < count; ++i) {
      Sample row = sample(main_, {python("main", 3), line}, 10 * kMs);
      row.code_file = ModuleId(module);
      put(row);
    }
  };
  const FrameId dot = python("features", 30), half = python("half", 40), few = python("few", 50);
  samples(dot, kBlas, 95);
  samples(dot, kLibc, 2);
  samples(dot, 0, 3);
  samples(half, kBlas, 26);
  samples(half, 0, 24);
  samples(few, kBlas, 4);
  const Report made = report();
  ASSERT_EQ(made.functions.size(), 3u);
  EXPECT_EQ(made.functions[0].native.module, "libblas");
  EXPECT_DOUBLE_EQ(made.functions[0].native.share, 0.95);
  EXPECT_TRUE(made.functions[0].native.is_library());
  EXPECT_EQ(made.lines[0].native.module, "libblas");
  EXPECT_EQ(made.functions[1].native.module, "") << "26 of 50 may be less than half of the time";
  EXPECT_EQ(made.functions[2].native.module, "") << "four looks say nothing";
  ASSERT_FALSE(made.findings.empty());
  EXPECT_NE(made.findings[0].text.find(
                "in line 30; 95.0 % of the CPU time on this line is in C code of libblas: --native shows it"),
            std::string::npos)
      << made.findings[0].text;
  const std::string text = report_text(made);
  EXPECT_NE(text.find("in C code of (--native shows it)"), std::string::npos) << text;
  EXPECT_NE(text.find("libblas 95.0 % of CPU"), std::string::npos) << text;
  EXPECT_TRUE(made.native_functions.empty());
}

TEST_F(NativeReport, of_the_time_that_a_filter_leaves_alone_the_library_is_named) {
  for (int i = 0; i < 80; ++i) {
    Sample row = sample(main_, {python("work", 5)}, 10 * kMs);
    row.code_file = ModuleId(i < 40 ? kBlas : 0);
    put(row);
  }
  show_native_frames(profile_, {});
  const auto of = [&](Nanoseconds from, Nanoseconds to) {
    ReportOptions options;
    options.choices.from = from;
    options.choices.to = to;
    auto made = make_report(profile_, options);
    EXPECT_TRUE(made);
    return made->functions.at(0).native.module;
  };
  EXPECT_EQ(of(0, 400 * kMs), "libblas");
  EXPECT_EQ(of(400 * kMs, 800 * kMs), "");
}

TEST_F(NativeReport, native_code_beneath_python_is_a_column_and_a_table_of_its_own) {
  const FrameId features = python("features", 30), dot = native(kBlas, "dgemm_kernel");
  for (int i = 0; i < 20; ++i) {
    add({loop(), python("main", 3), loop(), features, dot}, 30 * kMs);
    add({loop(), python("main", 3), loop(), features}, 10 * kMs);
  }
  const Report made = report();
  ASSERT_EQ(made.functions.size(), 1u);
  EXPECT_EQ(made.functions[0].name, "features");
  EXPECT_DOUBLE_EQ(made.functions[0].self.share, 1);
  ASSERT_EQ(made.native_functions.size(), 1u);
  EXPECT_EQ(made.native_functions[0].name, "dgemm_kernel");
  EXPECT_EQ(made.native_functions[0].module, "libblas");
  EXPECT_DOUBLE_EQ(made.native_functions[0].self.share, 0.75);
  EXPECT_NE(made.findings[0].text.find("features itself"), std::string::npos) << made.findings[0].text;
  EXPECT_NE(
      made.findings[0].text.find("75.0 % of its time is in native code, 75.0 % in dgemm_kernel (libblas)"),
      std::string::npos)
      << made.findings[0].text;
  const std::string text = report_text(made);
  EXPECT_NE(text.find("dgemm_kernel (libblas) 75.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("Native functions beneath Python"), std::string::npos) << text;
  EXPECT_EQ(test::schema_violation(report_json(made), "report.schema.json"), "");
}

TEST_F(NativeReport, a_thread_without_python_is_where_its_native_code_is) {
  const ThreadId pool = thread("blas");
  for (int i = 0; i < 20; ++i) {
    put(sample(pool, {native(kBlas, "worker_main"), native(kBlas, "spin")}, 10 * kMs));
    add({loop(), python("main", 3), native(kBlas, "spin")}, 10 * kMs);
  }
  const Report made = report();
  ASSERT_EQ(made.functions.size(), 2u);
  for (const FunctionRow& row : made.functions) EXPECT_DOUBLE_EQ(row.self.share, 0.5) << row.name;
  EXPECT_EQ(made.native_functions.size(), 1u);
  EXPECT_DOUBLE_EQ(made.native_functions[0].self.share, 1);  // all of spin
  for (const ThreadRow& row : made.threads) EXPECT_EQ(row.busiest, row.id == pool ? "spin" : "main");
}

TEST_F(NativeReport, a_wait_is_at_the_python_line_and_names_the_native_function) {
  const FrameId wait = python("wait", 355);
  for (int i = 0; i < 20; ++i) {
    Sample blocked =
        sample(main_, {loop(), wait, native(kPython, "take_gil"), native(kLibc, "__futex_wait")}, 10 * kMs);
    blocked.cpu = 0;
    blocked.cpu_state = CpuState::blocked;
    blocked.system_call = 202;
    put(blocked);
  }
  const Report made = report();
  ASSERT_EQ(made.waits.size(), 1u);
  EXPECT_EQ(made.waits[0].name, "wait");
  EXPECT_EQ(made.waits[0].line, 355);
  EXPECT_EQ(made.waits[0].native.name, "__futex_wait");
  ASSERT_FALSE(made.findings.empty());
  EXPECT_EQ(made.findings[0].kind, "mostly_waiting");
  EXPECT_NE(made.findings[0].text.find("called by wait (/app/app.py:355)"), std::string::npos)
      << made.findings[0].text;
}

TEST_F(NativeReport, a_function_is_one_row_whatever_file_its_lines_come_from) {
  const FrameId main = python("main", 3);
  const auto kernel = [&](const std::string& file, int32_t line) {
    return native(kBlas, "kernel", file, line, 40);
  };
  profile_.emit_meta(declaration_key("kernel", 40, "generated.c.h"), "kernel.c");
  for (int i = 0; i < 20; ++i) {
    add({loop(), main, kernel("kernel.c", 44)}, 10 * kMs);
    add({loop(), main, kernel("generated.c.h", 7000)}, 30 * kMs);
    // The same name is another function in another place, or of another library.
    add({loop(), main, native(kBlas, "kernel", "other.c", 9, 8)}, 10 * kMs);
    add({loop(), main, native(kLibc, "kernel", "kernel.c", 44, 40)}, 10 * kMs);
  }
  const Report made = report();
  ASSERT_EQ(made.native_functions.size(), 3u);
  EXPECT_EQ(made.native_functions[0].file, "kernel.c");
  EXPECT_EQ(made.native_functions[0].line, 40);
  EXPECT_NEAR(made.native_functions[0].self.share, 4. / 6, 1e-9);
  // Its lines have files of their own.
  const FrameId generated = kernel("generated.c.h", 7000);
  EXPECT_EQ(line_label(profile_, generated).file, "generated.c.h");
  EXPECT_EQ(function_label(profile_, generated).file, "kernel.c");
}

TEST_F(NativeReport, a_function_that_calls_into_native_code_only_is_not_what_all_stacks_have_in_common) {
  for (int i = 0; i < 20; ++i) {
    add({loop(), python("main", 3), loop(), python("solve", 9), native(kBlas, "dgemm_kernel")}, 10 * kMs);
  }
  const Report made = report();
  ASSERT_EQ(made.common.size(), 1u);
  EXPECT_EQ(made.common[0].name, "main");
  ASSERT_FALSE(made.totals.empty());
  EXPECT_EQ(made.totals[0].name, "solve");
}

TEST_F(NativeReport, the_c_library_belongs_to_its_caller) {
  add({loop(), python("f", 1), native(kPython, "list_resize"), native(kLibc, "realloc")}, kMs);
  add({loop(), python("f", 1), native(kBlas, "dgemm"), native(kLibc, "memcpy")}, kMs);
  add({native(kLibc, "start_here"), native(kLibc, "read")}, kMs);
  add({loop(), python("f", 1), native(kBlas, "callback"), native(kPython, "PyLong_FromLong")}, kMs);
  Choices all;
  all.all_frames = true;
  show_native_frames(profile_, all);
  const auto places = stack_places(profile_);
  const auto foreign = [&](size_t sample) { return places[profile_.samples()[sample].stack.value].foreign; };
  EXPECT_FALSE(foreign(0));
  EXPECT_TRUE(foreign(1));
  EXPECT_TRUE(foreign(2));
  EXPECT_FALSE(foreign(3));
}

TEST_F(NativeReport, the_time_of_functions_that_were_not_read_is_not_their_callers) {
  const auto marker = [&](const std::string& name) {
    Frame frame;
    frame.kind = FrameKind::marker;
    frame.function = frame.qualified_name = name;
    return interner_.frame(frame);
  };
  add({loop(), python("main", 1)}, 10 * kMs);
  add({loop(), python("main", 1), marker("(a code object that cannot be read)")}, 60 * kMs);
  add({loop(), python("main", 1), marker("(a function not read: too many new ones at once)"),
       python("inner", 2)},
      30 * kMs);
  const Report made = report();
  ASSERT_EQ(made.functions.size(), 2u);
  EXPECT_EQ(made.functions[0].name, "inner");
  EXPECT_EQ(made.functions[1].name, "main");
  EXPECT_EQ(made.functions[1].self.weight, 10 * kMs);
}

TEST(FittedName, brackets_go_first_and_the_end_stays) {
  EXPECT_EQ(fitted_name("malloc", 10), "malloc");
  EXPECT_EQ(
      fitted_name("std::vector<std::basic_string<char>, std::allocator<int>>::push_back(int const&)", 40),
      "std::vector<…>::push_back(int const&)");
  EXPECT_EQ(
      fitted_name("std::vector<std::basic_string<char>, std::allocator<int>>::push_back(int const&)", 30),
      "std::vector<…>::push_back(…)");
  const std::string mangled = "_ZN9hashbrown3raw21RawTable" + std::string(300, 'x') + "13reserve_rehash";
  const std::string fitted = fitted_name(mangled, 60);
  EXPECT_EQ(fitted.size(), 62u);  // of them one is three bytes long
  EXPECT_TRUE(fitted.starts_with("_ZN9hashbrown3raw"));
  EXPECT_TRUE(fitted.ends_with("13reserve_rehash"));
  EXPECT_EQ(fitted_name("ääääääää", 5), "ä…äää");
  EXPECT_EQ(fitted_name("a child process, /opt/venv/bin/python /srv/app/rank.py worker (wait4)", 40),
            "a child proce…app/rank.py worker (wait4)");
  EXPECT_EQ(fitted_name("operator->(", 5).size(), 7u);
  for (size_t width = 0; width < 8; ++width) fitted_name("a<b<c>(d)>>>::e((", width);
}

TEST(FittedPlace, the_end_of_a_path_stays) {
  EXPECT_EQ(fitted_place("/app/app.py:7", 20), "/app/app.py:7");
  EXPECT_EQ(fitted_place("/usr/lib/python3/dist-packages/numpy/core/fromnumeric.py:59", 30),
            "…/numpy/core/fromnumeric.py:59");
  EXPECT_EQ(fitted_place(std::string(100, 'a'), 10), "…" + std::string(9, 'a'));
}

TEST(TableText, no_name_makes_a_table_wider_than_a_screen) {
  Table table;
  table.title = "T";
  table.columns = {{"share", true}, {"function", false, Fit::name}, {"where", false, Fit::place}};
  table.rows = {{"1 %", std::string(387, 'n'), "/" + std::string(400, 'p') + "/f.cc:12"},
                {"2 %", "f", "g.cc"}};
  const std::string text = table_text(table);
  size_t widest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  EXPECT_LE(widest, 2 + 5 + 2 + kWidestName + 2 + kWidestPlace + 4);
  EXPECT_NE(text.find("/f.cc:12"), std::string::npos);
}

// Nobody makes the interpreter's own C faster: what differs is the Python that it runs.
TEST_F(NativeReport, a_difference_names_no_function_of_the_interpreter) {
  FrameId inside = native(1, "PyImport_ImportModuleLevelObject");
  for (int i = 0; i < 100; ++i) add({python("main", 3), loop(), inside, python("load", 7), loop()}, 10 * kMs);
  show_native_frames(profile_, {});
  Profile empty;
  empty.emit(ProcessId(1), {});
  for (const bool all : {false, true}) {
    DiffOptions options;
    options.choices.all_frames = all;
    const Diff diff = *make_diff({&profile_}, {&empty}, options);
    bool named = false;
    for (const DiffRow& row : diff.functions) named = named || row.name == "PyImport_ImportModuleLevelObject";
    EXPECT_EQ(named, all);
  }
}

}  // namespace
}  // namespace phlox::report
