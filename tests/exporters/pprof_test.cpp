#include "phlox/exporters/pprof.h"

#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <sstream>

#include "phlox/view/endpoints.h"
#include "support/call_tree_of.h"
#include "support/gunzip.h"

namespace phlox::exporters {
namespace {

using test::call_tree_of;
using test::python_label;

// A profile as text: "samples/count wall/nanoseconds | loads<main 3 40 | ...".
std::string read_back(const std::string& message) {
  std::vector<std::string> strings;
  std::vector<std::pair<int64_t, int64_t>> types;
  std::map<uint64_t, std::pair<uint64_t, int64_t>> locations;  // -> function, line
  std::map<uint64_t, int64_t> functions;
  struct Sample {
    std::vector<uint64_t> locations;
    std::vector<int64_t> values, label;  // of the label: key and text
  };
  std::vector<Sample> samples;
  protozero::pbf_reader profile(message);
  while (profile.next()) {
    // With asserts on, protozero forgets the tag when the field is taken.
    const auto tag = profile.tag();
    if (tag == 6) {
      strings.push_back(profile.get_string());
      continue;
    }
    if (tag > 6) {
      profile.skip();
      continue;
    }
    protozero::pbf_reader part = profile.get_message();
    if (tag == 1) {
      std::pair<int64_t, int64_t> type;
      while (part.next()) {
        int64_t& half = part.tag() == 1 ? type.first : type.second;
        half = part.get_int64();
      }
      types.push_back(type);
    } else if (tag == 2) {
      samples.emplace_back();
      while (part.next()) {
        if (part.tag() == 1) {
          for (uint64_t id : part.get_packed_uint64()) samples.back().locations.push_back(id);
        } else if (part.tag() == 2) {
          for (int64_t value : part.get_packed_int64()) samples.back().values.push_back(value);
        } else {
          protozero::pbf_reader label = part.get_message();
          while (label.next()) samples.back().label.push_back(label.get_int64());
        }
      }
    } else if (tag == 4) {
      uint64_t id = 0;
      std::pair<uint64_t, int64_t> place;
      while (part.next()) {
        if (part.tag() == 1) {
          id = part.get_uint64();
          continue;
        }
        protozero::pbf_reader line = part.get_message();
        while (line.next()) {
          if (line.tag() == 1) {
            place.first = line.get_uint64();
          } else {
            place.second = line.get_int64();
          }
        }
      }
      locations[id] = place;
    } else if (tag == 5) {
      uint64_t id = 0;
      while (part.next()) {
        if (part.tag() == 1) {
          id = part.get_uint64();
        } else if (part.tag() == 2) {
          functions[id] = part.get_int64();
        } else {
          part.skip();
        }
      }
    } else {
      ADD_FAILURE() << "unexpected field " << tag;
    }
  }
  auto text = [&](int64_t index) { return strings.at(static_cast<size_t>(index)); };
  EXPECT_EQ(text(0), "");
  std::string out;
  for (auto [type, unit] : types) out += text(type) + "/" + text(unit) + " ";
  for (const auto& [ids, values, label] : samples) {
    out += "|";
    for (uint64_t id : ids) {
      out += " " + text(functions.at(locations.at(id).first)) + ":" + std::to_string(locations.at(id).second);
    }
    for (int64_t value : values) out += " " + std::to_string(value);
    for (int64_t word : label) out += " " + text(word);
  }
  return out;
}

view::CallTree shop() {
  view::Label line_one = python_label("main");
  view::Label line_two = python_label("main");
  line_two.line = 2;
  return call_tree_of(
      {{{line_one, python_label("loads", "json")}, 40, 3}, {{line_one}, 10, 1}, {{line_two}, 5, 2}});
}

TEST(pprof, counts_of_other_events_are_in_their_own_values) {
  PprofFacts facts;
  facts.others.push_back({{"inuse_space", profile::Unit::bytes},
                          call_tree_of({{{python_label("main"), python_label("grow")}, 64, 2}})});
  facts.others.push_back({{"faults", profile::Unit::count}, call_tree_of({{{python_label("main")}, 3, 1}})});
  EXPECT_EQ(read_back(pprof_message(call_tree_of({{{python_label("main")}, 40, 3}}), facts)),
            "samples/count wall/nanoseconds inuse_space/bytes faults/count "
            "| main:1 3 40 0 0| grow:1 main:1 0 0 64 0| main:1 0 0 0 3");
}

TEST(pprof, the_weight_may_be_what_an_event_counted) {
  PprofFacts facts;
  facts.weight = view::Weight::bytes;
  facts.event = "inuse_space";
  EXPECT_EQ(read_back(pprof_message(call_tree_of({{{python_label("main")}, 40, 3}}), facts)),
            "samples/count inuse_space/bytes | main:1 3 40");
}

TEST(pprof, stacks_are_leaf_first_with_both_values) {
  EXPECT_EQ(read_back(pprof_message(shop(), {})),
            "samples/count wall/nanoseconds | main:1 1 10| main:2 2 5| loads:1 main:1 3 40");
}

TEST(pprof, the_endpoints_at_the_roots_of_stacks_become_labels_of_the_samples) {
  const auto marker = [](std::string_view name) {
    return view::Label{profile::FrameKind::marker, std::string(name)};
  };
  PprofFacts facts;
  facts.endpoint_labels = true;
  const view::Label main = python_label("main"), load = python_label("load");
  facts.others.push_back({{"await", profile::Unit::count}, call_tree_of({{{marker("GET /a"), main}, 7, 1}})});
  EXPECT_EQ(read_back(pprof_message(call_tree_of({{{marker("GET /a"), main, load}, 40, 3},
                                                  {{marker(view::kNoEndpoint), main}, 10, 1},
                                                  {{marker(view::kEndpointNotRead), main}, 5, 1},
                                                  {{}, 2, 1}}),
                                    facts)),
            "samples/count wall/nanoseconds await/count | all:0 1 2 0| main:1 1 10 0| main:1 1 5 0"
            "| load:1 main:1 3 40 0 endpoint GET /a| main:1 0 0 7 endpoint GET /a");
}

TEST(pprof, native_functions_have_their_full_name_and_library) {
  view::Label label{profile::FrameKind::native, "Op::run", "", 0, "bytewax", "<bytewax::Op as Run>::run"};
  const std::string message = pprof_message(call_tree_of({{{python_label("main"), label}, 40, 3}}), {});
  EXPECT_NE(message.find("<bytewax::Op as Run>::run"), std::string::npos);
  // The library is a mapping of its own behind the program's.
  protozero::pbf_reader profile(message);
  int mappings = 0;
  while (profile.next()) {
    mappings += profile.tag() == 3;
    profile.skip();
  }
  EXPECT_EQ(mappings, 2);
  EXPECT_EQ(message.find("\x07Op::run"), std::string::npos);
}

// Path, build-id and the bits has_functions to has_inline_frames of each; then the locations' addresses.
std::string mappings_of(const std::string& message) {
  std::vector<std::string> strings;
  std::vector<std::vector<int64_t>> mappings;
  std::string addresses;
  protozero::pbf_reader profile(message);
  while (profile.next()) {
    const auto tag = profile.tag();
    if (tag == 6) {
      strings.push_back(profile.get_string());
    } else if (tag == 3) {
      mappings.emplace_back(11, 0);
      protozero::pbf_reader part = profile.get_message();
      while (part.next()) {
        const auto field = part.tag();
        mappings.back()[field] = static_cast<int64_t>(part.get_uint64());
      }
    } else if (tag == 4) {
      protozero::pbf_reader part = profile.get_message();
      while (part.next()) {
        if (part.tag() == 3) {
          addresses += " " + std::to_string(part.get_uint64());
        } else {
          part.skip();
        }
      }
    } else {
      profile.skip();
    }
  }
  std::string out;
  for (const auto& m : mappings) {
    out += strings.at(static_cast<size_t>(m[5])) + " " + strings.at(static_cast<size_t>(m[6])) + " ";
    for (size_t field = 7; field <= 10; ++field) out += std::to_string(m[field]);
    out += "|";
  }
  return out + addresses;
}

TEST(pprof, libraries_have_their_build_id_and_native_frames_their_address) {
  const std::vector<profile::Module> modules = {
      {"/lib/libm.so.6", "0102", 0x1000, {}},
      {"/lib/libfoo.so", "", 0, profile::MissingNames{true, true, "stripped", ""}}};
  PprofFacts facts;
  facts.modules = &modules;
  facts.by_line = true;
  view::Label known{profile::FrameKind::native, "hypot", "", 0, "libm"};
  known.module_id = profile::ModuleId(1);
  known.address = 6720;
  view::Label unknown{profile::FrameKind::native, "libfoo+0x10", "", 0, "libfoo"};
  unknown.module_id = profile::ModuleId(2);
  unknown.address = 16;
  // Frames without names keep ours, unless pprof must symbolize them (-symbolize=force).
  EXPECT_EQ(
      mappings_of(pprof_message(call_tree_of({{{python_label("main"), known, unknown}, 40, 3}}), facts)),
      "python  1111|/lib/libm.so.6 0102 1111|/lib/libfoo.so  1111| 6720 16");
}

TEST(pprof, counts_alone_are_one_value) {
  PprofFacts facts;
  facts.weight = view::Weight::samples;
  EXPECT_EQ(read_back(pprof_message(call_tree_of({{{python_label("f")}, 3, 3}}), facts)),
            "samples/count | f:1 3");
}

TEST(pprof, samples_without_a_frame_keep_their_weight) {
  EXPECT_EQ(read_back(pprof_message(call_tree_of({{{}, 7, 1}}), {})),
            "samples/count wall/nanoseconds | all:0 1 7");
}

TEST(pprof, file_is_gzip_of_the_message) {
  std::ostringstream out;
  ASSERT_TRUE(write_pprof(shop(), {}, out));
  EXPECT_EQ(test::gunzip(out.str()), pprof_message(shop(), {}));
}

}  // namespace
}  // namespace phlox::exporters
