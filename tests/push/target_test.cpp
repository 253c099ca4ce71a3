#include "phlox/push/target.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace phlox::push {
namespace {

std::string url(Protocol protocol, std::string_view given) {
  const auto target = target_of(protocol, given);
  return target ? target->url : "(" + target.error().message + ")";
}

TEST(Target, the_path_of_the_request_is_added_where_it_lacks) {
  EXPECT_EQ(url(Protocol::otlp, "http://localhost:4318"), "http://localhost:4318/v1development/profiles");
  EXPECT_EQ(url(Protocol::otlp, "HTTPS://example.com/otlp/"),
            "https://example.com/otlp/v1development/profiles");
  EXPECT_EQ(url(Protocol::otlp, "http://example.org/v1development/profiles"),
            "http://example.org/v1development/profiles");
  EXPECT_EQ(url(Protocol::otlp, "http://example.org/x?tenant=1"),
            "http://example.org/x/v1development/profiles?tenant=1");
  EXPECT_EQ(url(Protocol::pyroscope, "http://[::1]:4040"), "http://[::1]:4040/push.v1.PusherService/Push");
}

TEST(Target, what_follows_a_question_mark_is_not_shown) {
  const auto target = target_of(Protocol::otlp, "http://example.org/?key=secret");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->shown, "http://example.org/v1development/profiles");
  EXPECT_NE(target->url.find("key=secret"), std::string::npos);
}

TEST(Target, of_grpc_is_a_service_and_is_shown_by_its_server) {
  EXPECT_EQ(
      url(Protocol::otlp_grpc, "http://localhost:4317/"),
      "http://localhost:4317/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export");
  EXPECT_EQ(url(Protocol::parca, "https://example.com"),
            "https://example.com/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw");
  EXPECT_EQ(target_of(Protocol::otlp_grpc, "http://localhost:4317")->shown,
            "http://localhost:4317 (otlp-grpc)");
  EXPECT_EQ(target_of(Protocol::parca, "https://example.com/x/")->shown, "https://example.com/x (parca)");
}

TEST(Target, what_is_no_address_is_refused_without_repeating_it) {
  for (const char* given :
       {"", "localhost:4318", "ftp://h", "file:///etc/passwd", "http://", "http:///x",
        "http://example.org/a b", "http://example.org\n/", "http://example.org#x", "http://example.org\\x",
        "http://"
        "user:hunter2@h/",
        "https://"
        "hunter2@h"}) {
    const auto target = target_of(Protocol::otlp, given);
    ASSERT_FALSE(target) << given;
    EXPECT_EQ(target.error().kind, ErrorKind::usage);
    EXPECT_EQ(target.error().message.find("hunter2"), std::string::npos);
  }
}

TEST(Target, which_servers_are_on_this_host) {
  EXPECT_TRUE(target_of(Protocol::otlp, "http://127.0.0.1:1")->loopback);
  EXPECT_TRUE(target_of(Protocol::otlp, "http://localhost")->loopback);
  EXPECT_FALSE(target_of(Protocol::otlp,
                         "http://"
                         "localhost.example.com")
                   ->loopback);
}

TEST(Headers, of_a_file) {
  const auto lines = parse_header_file(
      "# for all\nA: b c \r\n\n[otlp]\nAuthorization:Bearer x\n[http://example.org]\nX-Y:\n");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 3U);
  EXPECT_EQ((*lines)[0].header, (Header{"A", "b c"}));
  EXPECT_EQ((*lines)[1].whom, "otlp");
  EXPECT_EQ((*lines)[1].header, (Header{"Authorization", "Bearer x"}));
  EXPECT_EQ((*lines)[2].header, (Header{"X-Y", ""}));
}

TEST(Headers, a_wrong_line_is_named_by_its_number_and_not_repeated) {
  for (const char* text : {"ok: 1\nhunter2", "ok: 1\nA B: hunter2", "ok: 1\nContent-Type: hunter2",
                           "ok: 1\nA: hunter2\x01", "ok: 1\n: hunter2"}) {
    const auto lines = parse_header_file(text);
    ASSERT_FALSE(lines) << text;
    EXPECT_EQ(lines.error().message.find("hunter2"), std::string::npos) << lines.error().message;
    EXPECT_NE(lines.error().message.find("line 2"), std::string::npos) << lines.error().message;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "A: b\n";
  EXPECT_FALSE(parse_header_file(many));
}

TEST(Headers, of_the_environment) {
  const auto headers = parse_header_list("api-key=a%2Cb, x-tenant = 7 ,");
  ASSERT_TRUE(headers);
  EXPECT_EQ(*headers, (std::vector<Header>{{"api-key", "a,b"}, {"x-tenant", "7"}}));
  EXPECT_FALSE(parse_header_list("hunter2"));
  EXPECT_FALSE(parse_header_list("a=b%0d%0aX: y")) << "a line break would begin another header";
}

TEST(Headers, a_header_goes_only_where_it_is_meant_to) {
  std::vector<Target> two = {*target_of(Protocol::otlp, "https://example.com"),
                             *target_of(Protocol::pyroscope,
                                        "https://"
                                        "example.com.net")};
  EXPECT_FALSE(assign_headers({{"", {"A", "1"}}}, two)) << "for which of them?";
  EXPECT_FALSE(assign_headers({{"https://"
                                "example.co",
                                {"A", "1"}}},
                              two))
      << "not a whole host";
  EXPECT_FALSE(assign_headers({{"https", {"A", "1"}}}, two));
  ASSERT_TRUE(two[0].headers.empty() && two[1].headers.empty());
  ASSERT_TRUE(assign_headers({{"https://example.com", {"A", "1"}}, {"pyroscope", {"B", "2"}}}, two));
  EXPECT_EQ(two[0].headers, (std::vector<Header>{{"A", "1"}}));
  EXPECT_EQ(two[1].headers, (std::vector<Header>{{"B", "2"}}));
}

class SecretFileTest : public testing::Test {
 protected:
  SecretFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "phlox-secret-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    path = folder + "/headers";
    std::ofstream(path) << "A: b\n";
    ::chmod(path.c_str(), 0600);
  }
  ~SecretFileTest() override { std::filesystem::remove_all(folder); }
  std::string folder, path;
};

TEST_F(SecretFileTest, only_a_file_that_nobody_else_reads) {
  EXPECT_EQ(read_secret_file(path).value_or("?"), "A: b\n");
  ::chmod(path.c_str(), 0640);
  EXPECT_FALSE(read_secret_file(path));
  ::chmod(path.c_str(), 0602);
  EXPECT_FALSE(read_secret_file(path));
}

TEST_F(SecretFileTest, no_folder_no_pipe_no_giant) {
  EXPECT_FALSE(read_secret_file(folder));
  EXPECT_FALSE(read_secret_file(folder + "/none"));
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_secret_file(folder + "/pipe"));
  std::filesystem::resize_file(path, 10'000'000);
  EXPECT_FALSE(read_secret_file(path));
}

TEST_F(SecretFileTest, root_follows_no_link) {
  std::filesystem::create_symlink(path, folder + "/link");
  EXPECT_EQ(read_secret_file(folder + "/link").has_value(), ::geteuid() != 0);
}

}  // namespace
}  // namespace phlox::push
