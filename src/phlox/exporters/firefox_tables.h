// The tables that all threads of a Firefox profile share: strings, libraries, functions, frames, stacks. They
// hold only rows that samples lead to. Written by firefox.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/exporters/json.h"
#include "phlox/exporters/timeline.h"
#include "phlox/profile/profile.h"

namespace phlox::exporters {

class FirefoxTables {
 public:
  FirefoxTables(const profile::Profile& profile, const view::Choices& choices,
                const SamplesByThread& threads);

  // Row of the stack table.
  int64_t stack(profile::StackId id) const;
  // Row of the string table.
  size_t text(std::string_view text);

  void put_categories(JsonWriter& json) const;
  void put_libraries(JsonWriter& json) const;
  void put_shared(JsonWriter& json) const;  // call after everything that uses text()

 private:
  struct Function {
    size_t name = 0;
    int64_t resource = -1, source = -1;
    int32_t line = 0;
  };
  struct FrameRow {
    size_t function = 0;
    size_t category = 0, subcategory = 0;
    int32_t line = 0;
    int64_t address = -1;
    uint32_t inline_depth = 0;
  };
  struct StackRow {
    size_t frame = 0;
    int64_t prefix = -1;
  };

  size_t add_frame(profile::FrameId id, const view::Choices& choices);
  size_t add_function(const view::Label& label, const profile::Frame& frame);
  size_t category(const view::Label& label) const;
  size_t subcategory(size_t category, const std::string& module);
  uint32_t inline_depth(const profile::Frame& frame) const;
  void put_frames(JsonWriter& json) const;
  void put_functions(JsonWriter& json) const;
  void put_resources(JsonWriter& json) const;
  void put_sources(JsonWriter& json) const;

  const profile::Profile& profile_;
  std::map<std::string, size_t, std::less<>> text_rows_;
  std::vector<std::string> texts_;
  std::vector<std::vector<std::string>> subcategories_;  // by category
  std::map<std::pair<size_t, std::string>, size_t> subcategory_rows_;
  std::map<std::tuple<size_t, int64_t, int64_t, int32_t>, size_t> function_rows_;
  std::vector<Function> functions_;
  std::vector<int64_t> frame_rows_;  // by frame id
  std::vector<FrameRow> frames_;
  std::vector<int64_t> stack_rows_;  // by stack id; 0: samples without a frame
  std::vector<StackRow> stacks_;
  std::map<uint32_t, size_t> library_rows_;  // by module id
  std::vector<uint32_t> libraries_;          // module ids
  std::map<size_t, size_t> source_rows_;     // by string
  std::vector<size_t> sources_;              // strings
};

}  // namespace phlox::exporters
