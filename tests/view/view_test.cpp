#include "phlox/view/view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

// "main;work" -> weight, for every node that has weight of its own.
std::map<std::string, int64_t> selves(const CallTree& tree) {
  std::map<std::string, int64_t> out;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].self == 0) continue;
    std::string path;
    for (uint32_t at = static_cast<uint32_t>(i); at != 0; at = tree.nodes[at].parent) {
      const Label& label = tree.labels[tree.nodes[at].label];
      path = label.name + (path.empty() ? "" : ";" + path);
    }
    out[path] += tree.nodes[i].self;
  }
  return out;
}

CallTree tree_of(const Profile& profile, const Choices& choices = {}) {
  auto tree = build_call_tree(profile, choices);
  EXPECT_TRUE(tree) << tree.error().message;
  return tree ? *tree : CallTree{};
}

TEST(View, time_lies_where_the_stacks_end) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  maker.add(thread, "main;work", 3);
  maker.add(thread, "main", 1);
  maker.add(thread, "main;work", 4);
  const CallTree tree = tree_of(profile);
  EXPECT_EQ(selves(tree), (std::map<std::string, int64_t>{{"main", 1}, {"main;work", 7}}));
  EXPECT_EQ(tree.total, 8);
  EXPECT_EQ(tree.samples, 3u);
  ASSERT_EQ(tree.nodes.size(), 3u);
  EXPECT_EQ(tree.labels[tree.nodes[0].label].name, "all");
  EXPECT_EQ(tree.nodes[0].total, 8);
  EXPECT_EQ(tree.nodes[1].total, 8);
  EXPECT_EQ(tree.nodes[1].samples, 3u);
}

TEST(View, lines_of_a_function_are_one_frame_unless_asked_for) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  maker.add(thread, "main:10;work:20", 1);
  maker.add(thread, "main:11;work:21", 2);
  EXPECT_EQ(tree_of(profile).nodes.size(), 3u);
  Choices by_line;
  by_line.by.line = true;
  const CallTree tree = tree_of(profile, by_line);
  EXPECT_EQ(tree.nodes.size(), 5u);
  EXPECT_EQ(tree.labels[tree.nodes[1].label].line, 10);
}

TEST(View, threads_and_processes_are_at_the_root) {
  Profile profile;
  ProfileMaker maker(profile);
  maker.add(maker.thread("a", 12), "main", 1);
  maker.add(maker.thread("", 13), "main", 2);
  Choices choices;
  choices.by.thread = choices.by.process = true;
  EXPECT_EQ(selves(tree_of(profile, choices)),
            (std::map<std::string, int64_t>{{"python3 app.py (pid 4711);Thread a (12);main", 1},
                                            {"python3 app.py (pid 4711);Thread python3 (13);main", 2}}));
}

TEST(View, processes_of_one_command_line_are_one_program) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId threads[] = {maker.thread("a", 12), maker.thread("a", 13), maker.thread("a", 14)};
  for (uint32_t i = 0; i < 3; ++i) {
    Process process = profile.process(ProcessId(1));
    process.pid += static_cast<int32_t>(i);
    if (i == 2) process.command_line = "python3 other.py";
    profile.emit(ProcessId(i + 1), process);
    Thread row = profile.thread(threads[i]);
    row.process = ProcessId(i + 1);
    profile.emit(threads[i], row);
    maker.add(threads[i], "main", 1 + i);
  }
  Choices choices;
  choices.by.program = true;
  EXPECT_EQ(selves(tree_of(profile, choices)),
            (std::map<std::string, int64_t>{{"python3 app.py;main", 3}, {"python3 other.py;main", 3}}));
  choices.by.process = true;
  EXPECT_EQ(selves(tree_of(profile, choices)),
            (std::map<std::string, int64_t>{{"python3 app.py;python3 app.py (pid 4711);main", 1},
                                            {"python3 app.py;python3 app.py (pid 4712);main", 2},
                                            {"python3 other.py;python3 other.py (pid 4713);main", 3}}));
}

TEST(View, rejected_time_lies_beneath_one_marker) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a", 12);
  maker.add(thread, "main", 5);
  for (const char* why : {"(moved)", "(unreadable)"}) {
    Sample sample = maker.sample(thread, why, 2);
    sample.quality = Quality::rejected;
    maker.put(sample);
  }
  Choices choices;
  choices.by.thread = true;
  const CallTree tree = tree_of(profile, choices);
  EXPECT_EQ(tree.rejected, 4);
  EXPECT_EQ(tree.total, 9);
  EXPECT_EQ(selves(tree), (std::map<std::string, int64_t>{{"Thread a (12);main", 5},
                                                          {"(rejected: could not be read)", 4}}));
}

TEST(View, time_without_python_frames_has_a_name) {
  Profile profile;
  ProfileMaker maker(profile);
  maker.add(maker.thread("a"), "", 5);
  EXPECT_EQ(selves(tree_of(profile)), (std::map<std::string, int64_t>{{"(no Python frames)", 5}}));
}

TEST(View, a_span_counts_by_its_overlap_with_the_range) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a");
  Sample sample = maker.sample(thread, "first", 10 * kSecond);
  sample.cpu = 4 * kSecond;
  sample.samples = 100;
  maker.put(sample);
  maker.add(thread, "second", 10 * kSecond);
  Choices choices;
  choices.from = 5 * kSecond;
  choices.to = 12 * kSecond;
  EXPECT_EQ(selves(tree_of(profile, choices)),
            (std::map<std::string, int64_t>{{"first", 5 * kSecond}, {"second", 2 * kSecond}}));
  choices.weight = Weight::cpu;
  EXPECT_EQ(selves(tree_of(profile, choices)),
            (std::map<std::string, int64_t>{{"first", 2 * kSecond}, {"second", 2 * kSecond}}));
  choices.weight = Weight::samples;
  EXPECT_EQ(selves(tree_of(profile, choices)),
            (std::map<std::string, int64_t>{{"first", 50}, {"second", 1}}));
  choices.to = 6 * kSecond;
  choices.from = 6 * kSecond - 1;
  EXPECT_EQ(tree_of(profile, choices).samples, 1u);
}

TEST(View, any_chosen_state_lets_a_sample_pass) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a");
  auto put = [&](const char* name, CpuState cpu, GilState gil) {
    Sample sample = maker.sample(thread, name, 1);
    sample.cpu_state = cpu;
    sample.gil_state = gil;
    maker.put(sample);
  };
  put("runs", CpuState::running, GilState::holds);
  put("queues", CpuState::runnable, GilState::holds);
  put("sleeps", CpuState::blocked, GilState::none);
  put("waits", CpuState::blocked, GilState::waits);
  put("hoards", CpuState::blocked, GilState::holds);
  auto names = [&](std::initializer_list<StateChoice> states) {
    Choices choices;
    for (const StateChoice state : states)
      choices.states = static_cast<uint8_t>(choices.states | static_cast<uint8_t>(state));
    std::string out;
    for (const auto& [name, weight] : selves(tree_of(profile, choices))) out += name + " ";
    return out;
  };
  EXPECT_EQ(names({StateChoice::running}), "runs ");
  EXPECT_EQ(names({StateChoice::running, StateChoice::runnable}), "queues runs ");
  EXPECT_EQ(names({StateChoice::blocked}), "hoards sleeps waits ");
  EXPECT_EQ(names({StateChoice::idle}), "hoards sleeps ");
  EXPECT_EQ(names({StateChoice::gil_waits}), "waits ");
  EXPECT_EQ(names({StateChoice::gil_holds}), "hoards queues runs ");
}

TEST(View, threads_are_chosen_by_name_or_number) {
  Profile profile;
  ProfileMaker maker(profile);
  maker.add(maker.thread("worker-1", 100), "a", 1);
  maker.add(maker.thread("main", 200), "b", 2);
  auto total = [&](const char* regex) {
    Choices choices;
    choices.thread_regex = regex;
    return tree_of(profile, choices).total;
  };
  EXPECT_EQ(total("^worker-\\d$"), 1);
  EXPECT_EQ(total("200"), 2);
  EXPECT_EQ(total("python3"), 3);  // the kernel's name
  EXPECT_EQ(total("nobody"), 0);
  Choices choices;
  choices.thread_regex = "(";
  const auto wrong = build_call_tree(profile, choices);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::usage);
  choices = {};
  choices.pid = 4711;
  EXPECT_EQ(tree_of(profile, choices).total, 3);
  choices.pid = 1;
  EXPECT_EQ(tree_of(profile, choices).total, 0);
}

TEST(View, a_name_as_long_as_a_target_likes_is_searched_with_the_stack_there_is) {
  Profile profile;
  ProfileMaker maker(profile);
  maker.add(maker.thread(std::string(2'000'000, 'x'), 100), "a", 1);
  maker.add(maker.thread(std::string(2'000'000, 'x') + "\xff!", 200), "b", 2);  // nor need it be UTF-8
  Choices choices;
  choices.thread_regex = "^(x|y)+.?!$";
  EXPECT_EQ(tree_of(profile, choices).total, 0);
  choices.thread_regex = "(x|y)*z";
  EXPECT_EQ(tree_of(profile, choices).total, 0);
  choices.thread_regex = "!$";
  EXPECT_EQ(tree_of(profile, choices).total, 2);
}

TEST(View, children_are_ordered_by_name_after_their_parents) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a");
  for (const char* stack : {"m;c;x", "m;a", "m;b;z", "m;b;y", "k"}) maker.add(thread, stack, 1);
  const CallTree tree = tree_of(profile);
  std::string last_name;
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    EXPECT_LT(tree.nodes[i].parent, i);
    const std::string& name = tree.labels[tree.nodes[i].label].name;
    if (i > 1 && tree.nodes[i].parent == tree.nodes[i - 1].parent) {
      EXPECT_LT(last_name, name);
    }
    last_name = name;
  }
}

TEST(View, twenty_thousand_frames_deep_is_no_problem) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a");
  std::string deep = "main";
  for (int i = 0; i < 20'000; ++i) deep += ";recurse";
  maker.add(thread, deep, 1);
  maker.add(thread, deep + ";leaf", 1);
  EXPECT_EQ(tree_of(profile).nodes.size(), 20'003u);
}

TEST(View, a_million_spans_take_well_under_a_second) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a");
  std::vector<StackId> stacks;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = "main";
    for (int d = 0; d < 20; ++d) text += ";f" + std::to_string(i >> (d / 2));
    stacks.push_back(maker.stack(text));
  }
  Sample sample = maker.sample(thread, "main", 1000);
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    sample.stack = stacks[i * 7919 % stacks.size()];
    sample.start += 1000;
    profile.emit(SampleId(i + 1), sample);
  }
  // The thread's own time: other tests may be running at the same time.
  const Nanoseconds start = clock_now(CLOCK_THREAD_CPUTIME_ID);
  EXPECT_EQ(tree_of(profile).total, 1'000'000'000);
  const Nanoseconds took = clock_now(CLOCK_THREAD_CPUTIME_ID) - start;
  RecordProperty("milliseconds", std::to_string(took / 1'000'000));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(took, kSecond);
#endif
}

TEST(View, stacks_that_contradict_the_order_are_cut_not_followed) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("a");
  maker.add(thread, "a;b", 1);
  profile.emit(StackId(1), {StackId(2), FrameId(1)});  // a cycle
  EXPECT_EQ(tree_of(profile).total, 1);
  profile.emit(StackId(2), {StackId(99), FrameId(99)});
  EXPECT_EQ(tree_of(profile).total, 1);
}

TEST(View, modules_are_the_top_package) {
  const std::pair<const char*, const char*> cases[] = {
      {"/usr/lib/python3/dist-packages/yaml/loader.py", "yaml"},
      {"/venv/lib/python3.12/site-packages/numpy/core/x.py", "numpy"},
      {"/venv/lib/python3.12/site-packages/six.py", "six"},
      {"/usr/lib/python3.12/json/decoder.py", "json"},
      {"/opt/py/lib/python3.13t/threading.py", "threading"},
      {"/usr/lib64/python3.11/asyncio/base_events.py", "asyncio"},
      {"/opt/python3.12/lib/python3.12/json/__init__.py", "json"},
      {"/usr/lib/python3.12/lib-dynload/_json.cpython-312.so", "_json"},
      {"/opt/lib/python311.zip/csv.py", "csv"},
      {"/srv/app/main.py", "main"},
      {"/srv/shop/__init__.py", "shop"},
      {"/srv/shop/__main__.py", "shop"},
      {"/home/me/python3.12/app.py", "app"},
      {"app.py", "app"},
      {"<string>", "<string>"},
      {"<frozen importlib._bootstrap>", "importlib"},
      {"", ""}};
  for (const auto& [file, module] : cases) EXPECT_EQ(module_of_file(file), module) << file;
}

}  // namespace
}  // namespace phlox::view
