#include "phlox/process/own_attributes.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include <string>
#include <vector>

namespace phlox::process {
namespace {

using namespace std::string_literals;

TEST(OwnAttributes, of_an_environment_only_what_it_says_about_its_service) {
  EXPECT_EQ(environment_attributes("A=1\0SECRET=x\0"s), "");
  EXPECT_EQ(
      environment_attributes("OTEL_RESOURCE_ATTRIBUTES=service.name=a,service.version=3\0PASSWORD=y\0"s),
      "service.name=a,service.version=3");
  EXPECT_EQ(environment_attributes(
                "X_OTEL_SERVICE_NAME=no\0OTEL_RESOURCE_ATTRIBUTES=service.name=a\0OTEL_SERVICE_NAME=b,c"s),
            "service.name=b%2Cc,service.name=a");
}

std::string string_attribute(std::string_view key, std::string_view value) {
  std::string text, any, pair;
  protozero::pbf_writer(any).add_string(1, value.data(), value.size());
  protozero::pbf_writer writer(pair);
  writer.add_string(1, key.data(), key.size());
  writer.add_message(2, any);
  return pair;
}

std::string context_of(const std::vector<std::string>& attributes) {
  std::string resource, context;
  for (const std::string& one : attributes) protozero::pbf_writer(resource).add_message(1, one);
  protozero::pbf_writer(context).add_message(1, resource);
  // What belongs to no resource.
  protozero::pbf_writer(context).add_message(2, string_attribute("threadlocal.schema_version", "tls_v1"));
  return context;
}

TEST(OwnAttributes, of_a_published_context_is_what_the_program_alone_knows) {
  std::string whole_value, whole, real_value, real, truth_value, truth, list_value, list;
  protozero::pbf_writer(whole_value).add_int64(3, -5);
  protozero::pbf_writer(whole).add_string(1, "shard");
  protozero::pbf_writer(whole).add_message(2, whole_value);
  protozero::pbf_writer(real_value).add_double(4, 0.5);
  protozero::pbf_writer(real).add_string(1, "share");
  protozero::pbf_writer(real).add_message(2, real_value);
  protozero::pbf_writer(truth_value).add_bool(2, true);
  protozero::pbf_writer(truth).add_string(1, "canary");
  protozero::pbf_writer(truth).add_message(2, truth_value);
  protozero::pbf_writer(list_value).add_message(5, std::string());
  protozero::pbf_writer(list).add_string(1, "list");
  protozero::pbf_writer(list).add_message(2, list_value);
  EXPECT_EQ(context_attributes(context_of({string_attribute("service.name", "a,b"), whole, real, truth, list,
                                           string_attribute("telemetry.sdk.name", "x"),
                                           string_attribute("process.pid", "7"), string_attribute("", "y")})),
            "service.name=a%2Cb,shard=-5,share=0.5,canary=true");
}

TEST(OwnAttributes, of_a_published_context_that_is_none_is_empty) {
  EXPECT_EQ(context_attributes(""), "");
  const std::string whole = context_of({string_attribute("service.name", "shop")});
  for (size_t size = 1; size + 1 < whole.size(); ++size)
    EXPECT_TRUE(context_attributes(whole.substr(0, size)).size() <= sizeof "service.name=shop") << size;
  EXPECT_EQ(context_attributes("\xff\xff\xff\xff\xff"), "");
  std::vector<std::string> many(10'000, string_attribute("key", std::string(10'000, 'x')));
  EXPECT_LT(context_attributes(context_of(many)).size(), 10'000u);
}

TEST(OwnAttributes, a_published_context_says_whether_threads_publish_traces) {
  EXPECT_TRUE(publishes_traces(context_of({string_attribute("service.name", "shop")})));
  EXPECT_FALSE(publishes_traces(""));
  EXPECT_FALSE(publishes_traces("\xff\xff\xff"));
  std::string other, draft;
  protozero::pbf_writer(other).add_message(
      2, string_attribute("threadlocal.schema_version", "go_pprof_labels_v1"));
  EXPECT_FALSE(publishes_traces(other));
  // In the resource it means nothing.
  std::string resource, elsewhere;
  protozero::pbf_writer(resource).add_message(1, string_attribute("threadlocal.schema_version", "tls_v1"));
  protozero::pbf_writer(elsewhere).add_message(1, resource);
  EXPECT_FALSE(publishes_traces(elsewhere));
  protozero::pbf_writer(draft).add_message(2,
                                           string_attribute("threadlocal.schema_version", "tlsdesc_v1_dev"));
  EXPECT_TRUE(publishes_traces(draft));
}

}  // namespace
}  // namespace phlox::process
