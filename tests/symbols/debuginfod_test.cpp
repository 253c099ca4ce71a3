#include "phlox/symbols/debuginfod.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace phlox::symbols {
namespace {

namespace fs = std::filesystem;
using http::Failure;

struct Server {
  std::map<std::string, std::string> files;  // by URL
  Failure failure = Failure::none;           // none: it answers
  size_t cut_at = std::string::npos;
  std::vector<std::string> asked;
};

class FakeClient : public http::Client {
 public:
  explicit FakeClient(Server& server) : server_(server) {}
  http::Answer send(const http::Request& request) override {
    server_.asked.push_back(request.url);
    http::Answer answer;
    answer.failure = server_.failure;
    if (server_.failure != Failure::none && server_.cut_at == std::string::npos) return answer;
    const auto file = server_.files.find(request.url);
    if (file == server_.files.end()) {
      answer.status = 404;
      return answer;
    }
    const bool taken = request.take(std::string_view(file->second).substr(0, server_.cut_at));
    if (!taken) answer.failure = Failure::other;
    if (answer.failure == Failure::none) answer.status = 200;
    return answer;
  }

 private:
  Server& server_;
};

class DebuginfodTest : public testing::Test {
 protected:
  DebuginfodTest() {
    std::string name = (fs::temp_directory_path() / "phlox-debuginfod-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    settings.servers = {"http://example.org"};
    settings.cache = folder + "/cache";
    server.files["http://example.org/buildid/abcd/debuginfo"] = "contents";
  }
  ~DebuginfodTest() override { fs::remove_all(folder); }

  std::unique_ptr<Debuginfod> begun() {
    return std::make_unique<Debuginfod>(settings, [this] { return std::make_unique<FakeClient>(server); });
  }
  std::string kept(const std::string& build_id) const {
    return settings.cache + "/" + build_id + "/debuginfo";
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(settings.cache + "/" + name) << text;
  }

  std::string folder;
  Debuginfod::Settings settings;
  Server server;
};

TEST_F(DebuginfodTest, a_file_is_fetched_once_and_kept_for_every_client_of_the_cache) {
  EXPECT_EQ(begun()->find("abcd"), kept("abcd"));
  EXPECT_EQ(text_of(kept("abcd")), "contents");
  struct stat status {};
  ASSERT_EQ(::stat(kept("abcd").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0400u);
  EXPECT_EQ(begun()->find("abcd"), kept("abcd"));
  EXPECT_EQ(server.asked.size(), 1u);
}

TEST_F(DebuginfodTest, what_no_server_has_is_not_asked_for_again_for_a_while) {
  settings.servers = {"http://example.org", "http://example.com"};
  EXPECT_EQ(begun()->find("ef01"), "");
  EXPECT_EQ(begun()->find("ef01"), "");
  EXPECT_EQ(server.asked.size(), 2u);
  put("cache_miss_s", "0\n");
  EXPECT_EQ(begun()->find("ef01"), "");
  EXPECT_EQ(server.asked.size(), 4u);
}

TEST_F(DebuginfodTest, the_second_server_is_asked_for_what_the_first_has_not) {
  settings.servers = {"http://example.com", "http://example.org"};
  EXPECT_EQ(begun()->find("abcd"), kept("abcd"));
  EXPECT_EQ(server.asked, (std::vector<std::string>{"http://example.com/buildid/abcd/debuginfo",
                                                    "http://example.org/buildid/abcd/debuginfo"}));
}

TEST_F(DebuginfodTest, a_server_that_does_not_answer_is_not_asked_for_the_next_file) {
  server.failure = Failure::no_connection;
  const auto client = begun();
  EXPECT_EQ(client->find("abcd"), "");
  EXPECT_EQ(client->find("ef01"), "");
  EXPECT_EQ(server.asked.size(), 1u);
  // And nothing says that nobody has it.
  server.failure = Failure::none;
  EXPECT_EQ(begun()->find("abcd"), kept("abcd"));
}

TEST_F(DebuginfodTest, an_answer_that_breaks_off_leaves_nothing) {
  server.failure = Failure::cut_off;
  server.cut_at = 3;
  EXPECT_EQ(begun()->find("abcd"), "");
  EXPECT_FALSE(fs::exists(kept("abcd")));
}

TEST_F(DebuginfodTest, a_file_larger_than_asked_for_is_not_kept) {
  settings.largest = 7;
  EXPECT_EQ(begun()->find("abcd"), "");
  EXPECT_FALSE(fs::exists(kept("abcd")));
}

TEST_F(DebuginfodTest, what_is_no_build_id_reaches_neither_server_nor_cache) {
  for (const char* id : {"", "abc", "../abcd", "ABCD", "abcd/../ef", "abcd "})
    EXPECT_EQ(begun()->find(id), "");
  EXPECT_TRUE(server.asked.empty());
  EXPECT_FALSE(fs::exists(settings.cache));
}

TEST_F(DebuginfodTest, a_cache_that_others_may_write_to_is_not_used) {
  fs::create_directory(settings.cache);
  ASSERT_EQ(::chmod(settings.cache.c_str(), 0777), 0);
  EXPECT_EQ(begun()->find("abcd"), "");
  EXPECT_TRUE(server.asked.empty());
}

TEST_F(DebuginfodTest, files_that_nobody_used_for_a_week_are_removed_once_a_day) {
  EXPECT_EQ(begun()->find("abcd"), kept("abcd"));
  const std::string mark = settings.cache + "/cache_clean_interval_s";
  const auto set_age = [](const std::string& path, time_t days) {
    const timespec then{::time(nullptr) - days * 24 * 60 * 60 - 60, 0};
    const timespec times[] = {then, then};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  set_age(kept("abcd"), 7);
  begun()->find("ef01");
  EXPECT_TRUE(fs::exists(kept("abcd"))) << "the day is not over";
  set_age(mark, 1);
  begun()->find("ef01");
  EXPECT_FALSE(fs::exists(settings.cache + "/abcd"));
  EXPECT_TRUE(fs::exists(kept("ef01"))) << "that nobody has it is younger";
}

TEST_F(DebuginfodTest, a_path_is_its_own_only_within_the_cache) {
  const auto client = begun();
  EXPECT_TRUE(client->owns(kept("abcd")));
  EXPECT_FALSE(client->owns(kept("../x")));
  EXPECT_FALSE(client->owns(settings.cache + "/abcd/executable"));
  EXPECT_FALSE(client->owns(settings.cache + "x/abcd/debuginfo"));
  EXPECT_FALSE(client->owns("/abcd/debuginfo"));
}

TEST(DebuginfodSettings, are_those_of_the_environment) {
  const std::map<std::string, std::string> environment = {
      {"DEBUGINFOD_URLS",
       "http://example.org/ https://example.com/x// file:///srv ima:enforcing  http://localhost"},
      {"DEBUGINFOD_TIMEOUT", "5"},
      {"DEBUGINFOD_MAXTIME", "60"},
      {"DEBUGINFOD_MAXSIZE", "1000"}};
  const auto settings = Debuginfod::settings_of(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      "/cache");
  EXPECT_EQ(settings.servers,
            (std::vector<std::string>{"http://example.org", "https://example.com/x", "http://localhost"}));
  EXPECT_EQ(settings.slow, 5 * kSecond);
  EXPECT_EQ(settings.patience, 60 * kSecond);
  EXPECT_EQ(settings.largest, 1000u);
  const auto without = Debuginfod::settings_of([](const char*) { return nullptr; }, "/cache");
  EXPECT_TRUE(without.servers.empty());
  EXPECT_EQ(without.slow, 90 * kSecond);
}

}  // namespace
}  // namespace phlox::symbols
