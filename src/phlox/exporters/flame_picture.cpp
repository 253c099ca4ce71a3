#include "phlox/exporters/flame_picture.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

using Json = rapidjson::Writer<rapidjson::StringBuffer>;

void put(Json& json, std::string_view text) {
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void put_key(Json& json, std::string_view key) {
  json.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
}

// Gives equal strings one number, in the order of their first appearance.
class StringTable {
 public:
  uint32_t index(const std::string& text) {
    auto [at, added] = indices_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (added) strings_.push_back(&at->first);
    return at->second;
  }
  void put_all(Json& json) const {
    json.StartArray();
    for (const std::string* text : strings_) put(json, *text);
    json.EndArray();
  }

 private:
  std::map<std::string, uint32_t> indices_;
  std::vector<const std::string*> strings_;
};

template <class Value>
void put_column(Json& json, std::string_view key, const std::vector<profile::CallNode>& nodes, Value value) {
  put_key(json, key);
  json.StartArray();
  for (const profile::CallNode& node : nodes) json.Int64(static_cast<int64_t>(value(node)));
  json.EndArray();
}

void put_tree(Json& json, const profile::CallTree& tree) {
  StringTable files;
  StringTable modules;
  for (const profile::Label& label : tree.labels) {
    files.index(label.file);
    modules.index(label.module);
  }
  json.StartObject();
  put_key(json, "files");
  files.put_all(json);
  put_key(json, "modules");
  modules.put_all(json);
  put_key(json, "labels");
  json.StartArray();
  for (const profile::Label& label : tree.labels) {
    json.StartArray();
    put(json, label.name);
    json.Uint(files.index(label.file));
    json.Int(label.line);
    json.Uint(modules.index(label.module));
    json.Uint(static_cast<unsigned>(label.kind));
    json.EndArray();
  }
  json.EndArray();
  put_column(json, "parent", tree.nodes, [](const profile::CallNode& node) { return node.parent; });
  put_column(json, "label", tree.nodes, [](const profile::CallNode& node) { return node.label; });
  put_column(json, "self", tree.nodes, [](const profile::CallNode& node) { return node.self; });
  put_column(json, "samples", tree.nodes, [](const profile::CallNode& node) { return node.samples; });
  json.EndObject();
}

// These characters occur in JSON only inside strings, where \u escapes mean the same.
std::string safe_in_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void make_displayable(profile::CallTree& tree) {
  for (profile::Label& label : tree.labels) {
    label.name = displayable(label.name);
    if (label.name.empty()) label.name = "(no name)";
    label.file = displayable(label.file);
    label.module = displayable(label.module);
  }
}

LeftOut prune(profile::CallTree& tree, size_t maximum) {
  if (tree.nodes.size() <= maximum) return {};
  // The smallest total that is kept. A child's total is never above its parent's: whatever stays has its
  // parents.
  std::vector<int64_t> totals;
  totals.reserve(tree.nodes.size());
  for (const profile::CallNode& node : tree.nodes) totals.push_back(node.total);
  auto nth = totals.begin() + static_cast<std::ptrdiff_t>(maximum);
  std::nth_element(totals.begin(), nth, totals.end(), std::greater<>());
  int64_t least = *nth + 1;

  LeftOut out;
  constexpr uint32_t kGone = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> place(tree.nodes.size(), kGone);
  std::map<uint32_t, profile::CallNode> markers;  // by the parent's place
  std::vector<profile::CallNode> kept;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    profile::CallNode node = tree.nodes[i];
    uint32_t parent = i == 0 ? 0 : place[node.parent];
    if (i != 0 && (parent == kGone || node.total < least)) {
      ++out.frames;
      if (parent == kGone) continue;
      out.weight += node.total;
      profile::CallNode& marker = markers[parent];
      marker.parent = parent;
      marker.self += node.total;
      marker.total += node.total;
      marker.samples += node.samples;
      continue;
    }
    node.parent = parent;
    place[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(node);
  }
  auto label = static_cast<uint32_t>(tree.labels.size());
  tree.labels.push_back({profile::FrameKind::marker, "(frames too small for this file)", "", 0, ""});
  for (auto& [parent, marker] : markers) {
    marker.label = label;
    kept.push_back(marker);
  }
  tree.nodes = std::move(kept);
  return out;
}

void write_picture_json(const FlamePicture& picture, std::ostream& out) {
  rapidjson::StringBuffer buffer;
  Json json(buffer);
  json.StartObject();
  put_key(json, "title");
  put(json, picture.title);
  put_key(json, "subtitle");
  put(json, picture.subtitle);
  put_key(json, "quality");
  json.StartArray();
  for (const std::string& line : picture.quality) put(json, line);
  json.EndArray();
  put_key(json, "warning");
  put(json, picture.warning);
  put_key(json, "unit");
  put(json, picture.weight == profile::Weight::samples ? "samples" : "ns");
  put_key(json, "pruned");
  json.StartObject();
  put_key(json, "frames");
  json.Uint64(picture.pruned.frames);
  put_key(json, "weight");
  json.Int64(picture.pruned.weight);
  json.EndObject();
  put_key(json, "tree");
  put_tree(json, picture.tree);
  json.EndObject();
  out << safe_in_markup({buffer.GetString(), buffer.GetSize()});
}

}  // namespace phlox::exporters
