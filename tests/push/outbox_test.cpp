#include "phlox/push/outbox.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace phlox::push {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRoomy = 1'000'000;

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() {
    std::string name = (fs::temp_directory_path() / "phlox-outbox-XXXXXX").string();
    root = ::mkdtemp(name.data());
    folder = root + "/agent/otlp";
  }
  ~OutboxTest() override { fs::remove_all(root); }

  std::unique_ptr<Outbox> open(uint64_t most = kRoomy) {
    auto opened = Outbox::open(folder, most);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  static std::string first_body(Outbox& outbox) {
    const auto item = outbox.first();
    return item ? item->body : "(none)";
  }
  // All, in the order in which they would be sent; empties it.
  static std::string all(Outbox& outbox) {
    std::string text;
    while (const auto item = outbox.first()) {
      text += (text.empty() ? "" : " ") + item->body;
      outbox.remove(item->number);
    }
    return text;
  }
  std::vector<fs::path> files(const std::string& end) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == end) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::string root, folder;
};

TEST_F(OutboxTest, the_oldest_is_first_until_it_is_removed) {
  auto outbox = open();
  EXPECT_EQ(first_body(*outbox), "(none)");
  EXPECT_TRUE(outbox->put("a"));
  EXPECT_TRUE(outbox->put(std::string("b\0c", 3)));
  EXPECT_EQ(first_body(*outbox), "a");
  EXPECT_EQ(first_body(*outbox), "a");
  outbox->remove(outbox->first()->number);
  EXPECT_EQ(first_body(*outbox), std::string("b\0c", 3));
  outbox->drop(outbox->first()->number);
  EXPECT_EQ(outbox->counts().items, 0U);
  EXPECT_EQ(outbox->counts().bytes, 0U);
  EXPECT_EQ(outbox->counts().refused, 1U);
}

TEST_F(OutboxTest, a_restart_goes_on_in_order) {
  open()->put("a");
  {
    auto outbox = open();
    outbox->put("b");
    EXPECT_EQ(outbox->counts().items, 2U);
    outbox->remove(outbox->first()->number);  // was sent
  }
  auto outbox = open();
  outbox->put("c");
  EXPECT_EQ(all(*outbox), "b c");
  EXPECT_TRUE(files(".push").empty());
}

TEST_F(OutboxTest, when_it_is_full_the_oldest_are_dropped_and_counted) {
  auto outbox = open(1000);
  const std::string body(200, 'x');
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(outbox->put(body + std::to_string(i)));
  EXPECT_EQ(outbox->counts().items, 4U);
  EXPECT_EQ(outbox->counts().no_room, 5U);
  EXPECT_LE(outbox->counts().bytes, 1000U);
  EXPECT_EQ(first_body(*outbox).back(), '5');
  EXPECT_FALSE(outbox->put(std::string(1000, 'y')));
  EXPECT_EQ(errno, EFBIG);
  EXPECT_EQ(outbox->counts().no_room, 6U);
  EXPECT_EQ(outbox->counts().items, 4U);
}

TEST_F(OutboxTest, the_one_that_is_being_sent_is_not_dropped_to_make_room) {
  auto outbox = open(700);
  const std::string body(200, 'x');
  outbox->put(body + "0");
  const auto in_hand = outbox->first();
  for (int i = 1; i < 5; ++i) outbox->put(body + std::to_string(i));
  outbox->remove(in_hand->number);
  EXPECT_EQ(outbox->counts().no_room, 3U);
  EXPECT_EQ(first_body(*outbox).back(), '4');
}

TEST_F(OutboxTest, a_smaller_buffer_drops_what_an_earlier_run_left_too_much) {
  {
    auto outbox = open();
    for (int i = 0; i < 9; ++i) outbox->put(std::string(200, 'x') + std::to_string(i));
  }
  auto outbox = open(600);
  EXPECT_EQ(outbox->counts().no_room, 7U);
  EXPECT_EQ(first_body(*outbox).back(), '7');
}

TEST_F(OutboxTest, what_a_killed_run_had_not_finished_is_removed) {
  open()->put("a");
  std::ofstream(folder + "/0000000000200000.part") << "phlox push 1 half";
  auto outbox = open();
  EXPECT_TRUE(files(".part").empty());
  EXPECT_EQ(all(*outbox), "a");
  EXPECT_EQ(outbox->counts().damaged, 0U);
}

TEST_F(OutboxTest, damaged_files_are_passed_over_and_counted) {
  {
    auto outbox = open();
    for (const char* body : {"aaaa", "bbbb", "cccc", "dddd"}) outbox->put(body);
  }
  const auto paths = files(".push");
  ASSERT_EQ(paths.size(), 4U);
  fs::resize_file(paths[0], fs::file_size(paths[0]) - 1);                                // cut off
  std::ofstream(paths[1], std::ios::in | std::ios::ate) << "more";                       // longer
  std::fstream(paths[2], std::ios::in | std::ios::out).seekp(-1, std::ios::end) << 'X';  // one byte
  std::ofstream(folder + "/0000000000000001.push") << "";
  std::ofstream(folder + "/zzzz.push") << "not ours";
  auto outbox = open();
  EXPECT_EQ(all(*outbox), "dddd");
  EXPECT_EQ(outbox->counts().damaged, 4U);
  EXPECT_TRUE(fs::exists(folder + "/zzzz.push"));
}

TEST_F(OutboxTest, a_link_in_the_place_of_a_file_is_not_followed) {
  open()->put("a");
  const auto path = files(".push").at(0);
  std::ofstream(root + "/other") << "secret";
  fs::remove(path);
  fs::create_symlink(root + "/other", path);
  auto outbox = open();
  EXPECT_EQ(first_body(*outbox), "(none)");
  EXPECT_TRUE(fs::exists(root + "/other"));
}

TEST_F(OutboxTest, halves_take_the_place_of_a_whole) {
  auto outbox = open();
  for (const char* body : {"ab", "c", "d"}) outbox->put(body);
  EXPECT_TRUE(outbox->replace(outbox->first()->number, "a", "b"));
  EXPECT_EQ(outbox->counts().items, 4U);
  EXPECT_EQ(all(*outbox), "a b c d");
  // Of the last one too, and again and again until there is no room between two numbers.
  outbox->put("end");
  int times = 0;
  while (outbox->replace(outbox->first()->number, "end", "x")) ++times;
  EXPECT_GE(times, 8);
  EXPECT_TRUE(outbox->put("next"));
  const std::string order = all(*outbox);
  EXPECT_TRUE(order.starts_with("end x x")) << order;
  EXPECT_TRUE(order.ends_with("x next")) << order;
  EXPECT_FALSE(outbox->replace(12345, "a", "b"));
}

TEST_F(OutboxTest, a_folder_that_others_can_write_to_is_refused) {
  fs::create_directories(folder);
  ::chmod(folder.c_str(), 0777);
  auto opened = Outbox::open(folder, kRoomy);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::output);
  ::chmod(folder.c_str(), 0700);
  EXPECT_TRUE(Outbox::open(folder, kRoomy));
}

TEST_F(OutboxTest, a_link_to_a_folder_is_refused) {
  fs::create_directories(root + "/elsewhere");
  fs::create_directories(root + "/agent");
  fs::create_directory_symlink(root + "/elsewhere", folder);
  EXPECT_FALSE(Outbox::open(folder, kRoomy));
}

TEST_F(OutboxTest, two_agents_do_not_share_a_folder) {
  auto outbox = open();
  EXPECT_FALSE(Outbox::open(folder, kRoomy));
  outbox.reset();
  EXPECT_TRUE(Outbox::open(folder, kRoomy));
}

TEST_F(OutboxTest, files_are_for_this_user_alone) {
  auto outbox = open();
  outbox->put("a");
  struct stat status {};
  ASSERT_EQ(::stat(files(".push").at(0).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

}  // namespace
}  // namespace phlox::push
