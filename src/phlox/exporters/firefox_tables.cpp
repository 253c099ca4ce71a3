#include "phlox/exporters/firefox_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/exporters/firefox.h"
#include "phlox/view/markers.h"

namespace phlox::exporters {
namespace {

struct Category {
  std::string_view name, colour;
};
// By FrameKind, except markers, which take the default category: it must be grey.
enum : size_t { kOther, kPython, kNative, kKernel };
constexpr Category kCategories[] = {
    {"Other", "grey"}, {"Python", "yellow"}, {"Native", "blue"}, {"Kernel", "orange"}};

constexpr uint32_t kDeepestInlining = 1000;

// A column that is null in every row.
void put_nulls(JsonWriter& json, std::string_view name, size_t length) {
  put_key(json, name);
  json.StartArray();
  for (size_t i = 0; i < length; ++i) json.Null();
  json.EndArray();
}

void put_number_or_null(JsonWriter& json, int64_t value, bool known) {
  if (known) {
    json.Int64(value);
  } else {
    json.Null();
  }
}

}  // namespace

std::string breakpad_id(std::string_view build_id) {
  constexpr size_t kDigits = 32;
  if (build_id.size() < kDigits) return {};
  std::string id;
  // The first three fields of a GUID are little-endian numbers.
  for (const size_t byte : {3, 2, 1, 0, 5, 4, 7, 6}) id += build_id.substr(byte * 2, 2);
  id += build_id.substr(16, 16);
  std::transform(id.begin(), id.end(), id.begin(),
                 [](char c) { return c >= 'a' && c <= 'f' ? char(c - 32) : c; });
  return id + "0";
}

FirefoxTables::FirefoxTables(const profile::Profile& profile, const view::Choices& choices,
                             const SamplesByThread& threads)
    : profile_(profile) {
  subcategories_.assign(std::size(kCategories), {"Other"});
  const auto& stacks = profile.stacks();
  std::vector<bool> used(stacks.size() + 1, false);
  bool no_frames = false;
  for (const auto& samples : threads) {
    for (const ThreadSample& sample : samples) {
      const profile::StackId id = sample.sample->stack;
      const bool known = id && id.value <= stacks.size();
      no_frames |= !known;
      if (known) used[id.value] = true;
    }
  }
  for (size_t id = stacks.size(); id > 0; --id) {
    const uint32_t parent = stacks[id - 1].parent.value;
    if (used[id] && parent < id) used[parent] = true;
  }
  stack_rows_.assign(stacks.size() + 1, -1);
  frame_rows_.assign(profile.frames().size() + 1, -1);
  if (no_frames) {
    stack_rows_[0] = 0;
    functions_.push_back({text(view::no_frames_label().name), -1, -1, 0});
    frames_.push_back({0, kOther, 0, 0, -1, 0});
    stacks_.push_back({0, -1});
  }
  for (uint32_t id = 1; id <= stacks.size(); ++id) {
    if (!used[id]) continue;
    const profile::Stack& stack = stacks[id - 1];
    const bool has_parent = stack.parent && stack.parent.value < id;
    stack_rows_[id] = static_cast<int64_t>(stacks_.size());
    stacks_.push_back({add_frame(stack.frame, choices), has_parent ? stack_rows_[stack.parent.value] : -1});
  }
}

int64_t FirefoxTables::stack(profile::StackId id) const {
  return stack_rows_[id.value < stack_rows_.size() ? id.value : 0];
}

size_t FirefoxTables::text(std::string_view text) {
  const auto found = text_rows_.find(text);
  if (found != text_rows_.end()) return found->second;
  texts_.emplace_back(text);
  return text_rows_.emplace(text, texts_.size() - 1).first->second;
}

size_t FirefoxTables::category(const view::Label& label) const {
  switch (label.kind) {
    case profile::FrameKind::python:
      return kPython;
    case profile::FrameKind::native:
      return kNative;
    case profile::FrameKind::kernel:
      return kKernel;
    case profile::FrameKind::marker:
      return kOther;
  }
  return kOther;
}

size_t FirefoxTables::subcategory(size_t category, const std::string& module) {
  if (module.empty() || category == kOther || category == kKernel) return 0;
  auto& names = subcategories_[category];
  const auto [at, added] = subcategory_rows_.try_emplace({category, module}, names.size());
  if (added) names.push_back(module);
  return at->second;
}

uint32_t FirefoxTables::inline_depth(const profile::Frame& frame) const {
  uint32_t depth = 0;
  const profile::Frame* at = &frame;
  while (at->inlined_in && at->inlined_in->value >= 1 && at->inlined_in->value <= profile_.frames().size() &&
         depth < kDeepestInlining) {
    at = &profile_.frame(*at->inlined_in);
    ++depth;
  }
  return depth;
}

size_t FirefoxTables::add_function(const view::Label& label, const profile::Frame& frame) {
  Function function;
  function.name = text(label.whole_name());
  function.line = frame.first_line;
  if (label.module_id && label.module_id.value <= profile_.modules().size()) {
    const auto [at, added] = library_rows_.try_emplace(label.module_id.value, libraries_.size());
    if (added) {
      libraries_.push_back(label.module_id.value);
      text(base_name(profile_.modules()[label.module_id.value - 1].path));
    }
    function.resource = static_cast<int64_t>(at->second);
  }
  if (!label.file.empty()) {
    const auto [at, added] = source_rows_.try_emplace(text(label.file), sources_.size());
    if (added) sources_.push_back(at->first);
    function.source = static_cast<int64_t>(at->second);
  }
  const auto [at, added] = function_rows_.try_emplace(
      {function.name, function.resource, function.source, function.line}, functions_.size());
  if (added) functions_.push_back(function);
  return at->second;
}

size_t FirefoxTables::add_frame(profile::FrameId id, const view::Choices& choices) {
  if (!id || id.value > profile_.frames().size()) id = profile::FrameId();
  int64_t& known = frame_rows_[id.value];
  if (known >= 0) return static_cast<size_t>(known);
  known = static_cast<int64_t>(frames_.size());
  if (!id) {
    functions_.push_back({text(view::unknown_frame_label().name), -1, -1, 0});
    frames_.push_back({functions_.size() - 1, kOther, 0, 0, -1, 0});
    return frames_.size() - 1;
  }
  view::Choices wanted = choices;
  wanted.by.line = wanted.by.place = true;
  const profile::Frame& frame = profile_.frame(id);
  const view::Label label = frame_label(profile_, id, wanted);
  FrameRow row;
  row.function = add_function(label, frame);
  row.category = category(label);
  row.subcategory = subcategory(row.category, label.module);
  row.line = label.line;
  row.inline_depth = inline_depth(frame);
  // A kernel address belongs to no file, and exceeds the integers of JavaScript.
  constexpr uint64_t kMost = uint64_t{1} << 53;
  if (label.kind == profile::FrameKind::native && label.module_id && label.address < kMost)
    row.address = static_cast<int64_t>(label.address);
  frames_.push_back(row);
  return frames_.size() - 1;
}

void FirefoxTables::put_categories(JsonWriter& json) const {
  put_key(json, "categories");
  json.StartArray();
  for (size_t i = 0; i < std::size(kCategories); ++i) {
    json.StartObject();
    put(json, "name", kCategories[i].name);
    put(json, "color", kCategories[i].colour);
    put_column(json, "subcategories", subcategories_[i],
               [&](const std::string& name) { put_text(json, name); });
    json.EndObject();
  }
  json.EndArray();
}

void FirefoxTables::put_libraries(JsonWriter& json) const {
  const auto machine = profile_.meta().find("machine");
  put_key(json, "libs");
  json.StartArray();
  for (const uint32_t id : libraries_) {
    const profile::Module& module = profile_.modules()[id - 1];
    const std::string_view name = base_name(module.path);
    json.StartObject();
    put(json, "arch",
        machine == profile_.meta().end() ? std::string_view() : std::string_view(machine->second));
    put(json, "name", name);
    put(json, "path", std::string_view(module.path));
    put(json, "debugName", name);
    put(json, "debugPath", std::string_view(module.path));
    put(json, "breakpadId", std::string_view(breakpad_id(module.build_id)));
    put_key(json, "codeId");
    if (module.build_id.empty()) {
      json.Null();
    } else {
      put_text(json, module.build_id);
    }
    json.EndObject();
  }
  json.EndArray();
}

void FirefoxTables::put_frames(JsonWriter& json) const {
  put_key(json, "frameTable");
  json.StartObject();
  put_column(json, "address", frames_, [&](const FrameRow& row) { json.Int64(row.address); });
  put_column(json, "inlineDepth", frames_, [&](const FrameRow& row) { json.Uint(row.inline_depth); });
  put_column(json, "category", frames_, [&](const FrameRow& row) { json.Uint64(row.category); });
  put_column(json, "subcategory", frames_, [&](const FrameRow& row) { json.Uint64(row.subcategory); });
  put_column(json, "func", frames_, [&](const FrameRow& row) { json.Uint64(row.function); });
  put_column(json, "line", frames_,
             [&](const FrameRow& row) { put_number_or_null(json, row.line, row.line > 0); });
  for (const char* column : {"nativeSymbol", "innerWindowID", "column"})
    put_nulls(json, column, frames_.size());
  put(json, "length", static_cast<int64_t>(frames_.size()));
  json.EndObject();
}

void FirefoxTables::put_functions(JsonWriter& json) const {
  put_key(json, "funcTable");
  json.StartObject();
  put_column(json, "name", functions_, [&](const Function& row) { json.Uint64(row.name); });
  for (const char* column : {"isJS", "relevantForJS"})
    put_column(json, column, functions_, [&](const Function&) { json.Bool(false); });
  put_column(json, "resource", functions_, [&](const Function& row) { json.Int64(row.resource); });
  put_column(json, "source", functions_,
             [&](const Function& row) { put_number_or_null(json, row.source, row.source >= 0); });
  put_column(json, "lineNumber", functions_,
             [&](const Function& row) { put_number_or_null(json, row.line, row.line > 0); });
  put_nulls(json, "columnNumber", functions_.size());
  put(json, "length", static_cast<int64_t>(functions_.size()));
  json.EndObject();
}

// One for each library, in the libraries' order.
void FirefoxTables::put_resources(JsonWriter& json) const {
  constexpr int kLibrary = 1;
  put_key(json, "resourceTable");
  json.StartObject();
  size_t row = 0;
  put_column(json, "lib", libraries_, [&](uint32_t) { json.Uint64(row++); });
  put_column(json, "name", libraries_, [&](uint32_t id) {
    json.Uint64(text_rows_.find(base_name(profile_.modules()[id - 1].path))->second);
  });
  put_nulls(json, "host", libraries_.size());
  put_column(json, "type", libraries_, [&](uint32_t) { json.Int(kLibrary); });
  put(json, "length", static_cast<int64_t>(libraries_.size()));
  json.EndObject();
}

void FirefoxTables::put_sources(JsonWriter& json) const {
  put_key(json, "sources");
  json.StartObject();
  put_nulls(json, "uuid", sources_.size());
  put_column(json, "filename", sources_, [&](size_t text) { json.Uint64(text); });
  put(json, "length", static_cast<int64_t>(sources_.size()));
  json.EndObject();
}

void FirefoxTables::put_shared(JsonWriter& json) const {
  put_key(json, "shared");
  json.StartObject();
  put_key(json, "stackTable");
  json.StartObject();
  put_column(json, "frame", stacks_, [&](const StackRow& row) { json.Uint64(row.frame); });
  put_column(json, "prefix", stacks_,
             [&](const StackRow& row) { put_number_or_null(json, row.prefix, row.prefix >= 0); });
  put(json, "length", static_cast<int64_t>(stacks_.size()));
  json.EndObject();
  put_frames(json);
  put_functions(json);
  put_resources(json);
  put_key(json, "nativeSymbols");
  json.StartObject();
  for (const char* column : {"libIndex", "address", "name", "functionSize"}) put_nulls(json, column, 0);
  put(json, "length", int64_t{0});
  json.EndObject();
  put_sources(json);
  put_column(json, "stringArray", texts_, [&](const std::string& text) { put_text(json, text); });
  json.EndObject();
}

}  // namespace phlox::exporters
