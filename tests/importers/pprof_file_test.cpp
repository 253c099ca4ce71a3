#include "phlox/importers/pprof_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "phlox/exporters/pprof.h"
#include "phlox/importers/event_numbers.h"
#include "phlox/importers/gzip_input.h"
#include "phlox/importers/registry.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/view.h"
#include "support/imported.h"
#include "support/profile_of.h"

namespace phlox::importers {
namespace {

std::string exported(view::Weight weight) {
  profile::Profile before;
  test::ProfileMaker maker(before);
  const auto thread = maker.thread("main", 7);
  maker.add(thread, "main;work:3", 5'000'000);
  maker.add(thread, "main", 2'000'000);
  view::Choices choices;
  choices.weight = weight;
  const auto tree = view::build_call_tree(before, choices);
  exporters::PprofFacts facts;
  facts.weight = weight;
  std::ostringstream out;
  EXPECT_TRUE(exporters::write_pprof(*tree, facts, out).has_value());
  return out.str();
}

TEST(PprofImport, what_was_exported_comes_back) {
  const auto in = test::import_text(import_pprof, exported(view::Weight::wall));
  ASSERT_EQ(in.profile.samples().size(), 2u);
  Nanoseconds wall = 0;
  for (const auto& sample : in.profile.samples()) wall += sample.wall;
  EXPECT_EQ(wall, 7'000'000);
  const bool first = in.stack(0).size() == 2;
  EXPECT_EQ(in.stack(first ? 0 : 1), (std::vector<std::string>{"work", "main"}));
  EXPECT_EQ(in.profile.frames()[0].file, "/app/app.py");
  EXPECT_EQ(in.profile.frames()[0].kind, profile::FrameKind::python);
}

TEST(PprofImport, without_time_samples_are_counted) {
  const auto in = test::import_text(import_pprof, exported(view::Weight::samples));
  EXPECT_EQ(in.outcome.samples, 2u);
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
}

// As Go writes a heap profile.
std::string heap() {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  const std::string_view strings[] = {"",      "alloc_objects", "count",     "alloc_space",
                                      "bytes", "inuse_space",   "kilobytes", "grow"};
  for (const auto& [type, unit] : {std::pair{1, 2}, {3, 4}, {5, 6}}) {
    protozero::pbf_writer value(message, 1);
    value.add_int64(1, type);
    value.add_int64(2, unit);
  }
  for (const auto& values : {std::vector<int64_t>{3, 4096, 0}, {1, 64, 2}}) {
    protozero::pbf_writer sample(message, 2);
    const std::vector<uint64_t> locations = {1};
    sample.add_packed_uint64(1, locations.begin(), locations.end());
    sample.add_packed_int64(2, values.begin(), values.end());
  }
  {
    protozero::pbf_writer location(message, 4);
    location.add_uint64(1, 1);
    protozero::pbf_writer line(location, 4);
    line.add_uint64(1, 1);
  }
  {
    protozero::pbf_writer function(message, 5);
    function.add_uint64(1, 1);
    function.add_int64(2, 7);
  }
  for (const auto text : strings) message.add_string(6, text.data(), text.size());
  message.add_int64(14, 5);
  return bytes;
}

// As austin2pprof writes it: numbers as texts, and a Greek letter.
TEST(PprofImport, labels_name_the_process_and_the_thread_in_any_case) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  const std::string_view strings[] = {"",          "Wall time", "\u03bcs",     "Process ID", "6617",
                                      "Thread ID", "6619",      "thread_name", "io"};
  {
    protozero::pbf_writer value(message, 1);
    value.add_int64(1, 1);
    value.add_int64(2, 2);
  }
  {
    protozero::pbf_writer sample(message, 2);
    const std::vector<int64_t> values = {250};
    sample.add_packed_int64(2, values.begin(), values.end());
    for (const auto& [key, text] : {std::pair{3, 4}, {5, 6}, {7, 8}}) {
      protozero::pbf_writer label(sample, 3);
      label.add_int64(1, key);
      label.add_int64(2, text);
    }
  }
  for (const auto text : strings) message.add_string(6, text.data(), text.size());
  const auto in = test::import_text(import_pprof, bytes);
  ASSERT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.profile.samples()[0].wall, 250'000);
  EXPECT_EQ(in.profile.processes()[0].pid, 6617);
  EXPECT_EQ(in.profile.threads()[0].tid, 6619);
  EXPECT_EQ(in.profile.threads()[0].name, "io");
}

TEST(PprofImport, each_type_of_value_can_be_shown_and_the_default_one_is_first) {
  auto in = test::import_text(import_pprof, heap());
  using profile::SampledEvent, profile::Unit;
  EXPECT_EQ(profile::sampled_events(in.profile),
            (std::vector<SampledEvent>{
                {"inuse_space", Unit::bytes}, {"alloc_objects", Unit::count}, {"alloc_space", Unit::bytes}}));
  const auto shown = [&](std::string_view event) {
    EXPECT_TRUE(view::show_event(in.profile, event));
    std::vector<int64_t> values;
    for (const auto& sample : in.profile.samples()) values.push_back(sample.value);
    return values;
  };
  EXPECT_EQ(shown(""), std::vector<int64_t>{2048});
  EXPECT_EQ(shown("alloc_objects"), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(shown("alloc_space"), (std::vector<int64_t>{4096, 64}));
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"grow"});
  EXPECT_EQ(in.outcome.samples, 2u);  // each with several values
}

// As `go tool pprof -proto -diff_base` writes it.
TEST(PprofImport, what_became_less_is_an_event_of_its_own) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  for (const auto& [type, unit] : {std::pair{1, 2}, {3, 4}}) {
    protozero::pbf_writer value(message, 1);
    value.add_int64(1, type);
    value.add_int64(2, unit);
  }
  for (const auto& values : {std::vector<int64_t>{2, -500}, {-3, 200}, {1, 100}}) {
    protozero::pbf_writer sample(message, 2);
    sample.add_packed_int64(2, values.begin(), values.end());
  }
  for (const std::string text : {"", "samples", "count", "cpu", "nanoseconds"}) message.add_string(6, text);
  auto in = test::import_text(import_pprof, bytes);
  using profile::Unit;
  EXPECT_EQ(profile::sampled_events(in.profile),
            (std::vector<profile::SampledEvent>{{"cpu", Unit::nanoseconds},
                                                {"samples", Unit::count},
                                                {"cpu (less)", Unit::nanoseconds},
                                                {"samples (less)", Unit::count}}));
  Nanoseconds more = 0, less = 0;
  for (const auto& sample : in.profile.samples())
    (profile::event_number(sample) == 1 ? more : less) += sample.wall;
  EXPECT_EQ(more, 300);
  EXPECT_EQ(less, 500);
  ASSERT_EQ(in.outcome.warnings.size(), 1u);
}

// Samples without a stack, with these values of these types.
std::string with_values(const std::vector<std::string>& types, const std::vector<std::vector<int64_t>>& all) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  for (int64_t i = 0; i < static_cast<int64_t>(types.size()); i += 2) {
    protozero::pbf_writer value(message, 1);
    value.add_int64(1, i + 1);
    value.add_int64(2, i + 2);
  }
  for (const auto& values : all) {
    protozero::pbf_writer sample(message, 2);
    sample.add_packed_int64(2, values.begin(), values.end());
  }
  message.add_string(6, "");
  for (const std::string& text : types) message.add_string(6, text);
  return bytes;
}

TEST(PprofImport, where_everything_became_less_that_is_shown) {
  auto in =
      test::import_text(import_pprof, with_values({"n", "count", "space", "bytes"}, {{-3, -100}, {0, -20}}));
  ASSERT_TRUE(view::show_event(in.profile, ""));
  EXPECT_EQ(view::shown_event(in.profile).name, "space (less)");
  int64_t sum = 0;
  for (const auto& sample : in.profile.samples()) sum += sample.value;
  EXPECT_EQ(sum, 120);
  // Numbers of samples too.
  auto samples = test::import_text(import_pprof, with_values({"samples", "count"}, {{-3}, {4}}));
  ASSERT_TRUE(view::show_event(samples.profile, ""));
  ASSERT_EQ(samples.profile.samples().size(), 1u);
  EXPECT_EQ(samples.profile.samples()[0].value, 4);
}

TEST(PprofImport, units_are_those_of_pprof) {
  const std::pair<std::string, int64_t> times[] = {{"nanosecond", 1},       {"NS", 1},
                                                   {"Microseconds", 1'000}, {"sec", 1'000'000'000},
                                                   {"ms", 1'000'000},       {"seconds", kSecond},
                                                   {"hr", 3'600 * kSecond}, {"s", kSecond}};
  for (const auto& [unit, scale] : times) {
    const auto in = test::import_text(import_pprof, with_values({"delay", unit}, {{3}}));
    EXPECT_EQ(in.profile.samples()[0].wall, 3 * scale) << unit;
  }
  const std::pair<std::string, int64_t> sizes[] = {
      {"Byte", 1}, {"MiB", 1 << 20}, {"GB", 1 << 30}, {"gigabytes", 1 << 30}};
  for (const auto& [unit, scale] : sizes) {
    const auto in = test::import_text(import_pprof, with_values({"space", unit}, {{3}}));
    EXPECT_EQ(profile::sampled_events(in.profile)[0].unit, profile::Unit::bytes) << unit;
    EXPECT_EQ(in.profile.samples()[0].value, 3 * scale) << unit;
  }
}

// pprof refuses it.
TEST(PprofImport, values_that_are_missing_or_too_many_are_said) {
  const auto in = test::import_text(
      import_pprof, with_values({"n", "count", "space", "bytes"}, {{3}, {4, 40}, {5, 50, 500}}));
  EXPECT_EQ(in.outcome.warnings.size(), 2u);
}

TEST(PprofImport, values_of_64_bits_are_exact) {
  constexpr int64_t kOdd = 9'007'199'254'740'993;  // 2^53 + 1
  using profile::SampledEvent, profile::Unit;
  const auto samples = test::import_text(import_pprof, with_values({"samples", "count"}, {{kOdd}, {1}}));
  EXPECT_EQ(profile::sampled_events(samples.profile), (std::vector<SampledEvent>{{"samples", Unit::count}}));
  EXPECT_EQ(samples.profile.samples()[0].value, kOdd);
  EXPECT_TRUE(samples.outcome.warnings.empty());
  const auto cpu = test::import_text(import_pprof, with_values({"cpu", "nanoseconds"}, {{kOdd}, {-kOdd}}));
  EXPECT_EQ(cpu.profile.samples()[0].cpu, kOdd);
  EXPECT_EQ(cpu.profile.samples()[1].cpu, kOdd);
}

TEST(PprofImport, values_that_no_sum_holds_are_cut_and_said) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const auto in = test::import_text(
      import_pprof, with_values({"bytes", "megabytes", "n", "things"}, {{1, 2}, {kMost, 3}, {kLeast, 4}}));
  ASSERT_EQ(in.profile.samples().size(), 6u) << "no sample is left out";
  // The last type is the first event.
  EXPECT_EQ(in.profile.samples()[1].value, 1 << 20);
  EXPECT_EQ(in.profile.samples()[2].value, 3);
  EXPECT_EQ(in.profile.samples()[3].value, kMost - (1 << 20) - 5);
  EXPECT_NE(std::find(in.outcome.warnings.begin(), in.outcome.warnings.end(), EventNumbers::kLeftOut),
            in.outcome.warnings.end());
}

TEST(PprofImport, a_field_that_is_far_too_long_is_refused) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  message.add_string(6, std::string(17 << 20, 'x'));
  std::string packed(1 << 20, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  MemoryInput input(std::as_bytes(std::span(packed)));
  profile::Profile profile;
  EXPECT_FALSE(import_pprof(input, {}, profile).has_value());
  // As the commands give it: unpacked piece by piece.
  const auto unpacked = GzipInput::of(input);
  const auto refused = import_pprof(*unpacked, {}, profile);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("16 MiB"), std::string::npos);
  EXPECT_FALSE(refused.error().hint.empty());
}

TEST(PprofImport, it_is_recognised_whatever_field_comes_first) {
  const auto is_pprof = [](std::string_view bytes) {
    return recognise_pprof(std::as_bytes(std::span(bytes)));
  };
  EXPECT_TRUE(is_pprof(std::string_view("\x0a\x04\x08\x01\x10\x02", 6)));
  // As Go 1.26 writes it: its time, then the types.
  EXPECT_TRUE(is_pprof("\x48\x8f\x97\xf8\xd9\xba\x8b\xc7\xf5\x18\x0a\x04\x08\x01\x10\x02"));
  EXPECT_FALSE(is_pprof("\x48\x8f\x97\xf8\xd9\xba\x8b\xc7\xf5\x18"));
  EXPECT_FALSE(is_pprof("\x0a\x04main\x10\x02"));
  for (const char* text :
       {"", "Hello;world 12\n", "main;f 1\n", "{\"nodes\":[]}", "P12;T1;a.py:f:1 10\n", "bcdefghij 3\n"})
    EXPECT_FALSE(is_pprof(text)) << text;
}

TEST(PprofImport, it_is_recognised_gzipped_and_damage_is_refused) {
  std::string bytes = exported(view::Weight::wall);
  MemoryInput input(std::as_bytes(std::span(bytes)));
  ASSERT_NE(recognise(input), nullptr);
  EXPECT_EQ(recognise(input)->name, "pprof");
  profile::Profile profile;
  bytes.resize(bytes.size() / 2);
  MemoryInput cut(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(import_pprof(cut, {}, profile).error().kind, ErrorKind::input);
  const std::string_view nonsense = "\x0a\x7f\x08 no";
  MemoryInput other(std::as_bytes(std::span(nonsense)));
  EXPECT_EQ(import_pprof(other, {}, profile).error().kind, ErrorKind::input);
}

TEST(PprofImport, a_field_of_another_type_is_refused) {
  using namespace std::string_view_literals;
  for (const std::string_view bytes : {
           "\x0a\x02\x08\x00\x52\x02\x50\x00"sv,              // a duration that is bytes
           "\x0a\x02\x08\x00\x32\x00\x30\x01\x00"sv,          // a string that is a number
           "\x0a\x02\x08\x00\x25\x00\x00\x00\x00"sv,          // a location that is 4 bytes
           "\x0a\x02\x08\x00\x12\x05\x0d\x00\x00\x00\x00"sv,  // a sample's location likewise
       }) {
    MemoryInput input(std::as_bytes(std::span(bytes)));
    profile::Profile profile;
    const auto done = import_pprof(input, {}, profile);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().kind, ErrorKind::input);
  }
}

}  // namespace
}  // namespace phlox::importers
