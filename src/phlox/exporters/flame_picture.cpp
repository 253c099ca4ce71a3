#include "phlox/exporters/flame_picture.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "phlox/exporters/words.h"
#include "phlox/view/shown_event.h"

namespace phlox::exporters {
namespace {

using PictureJson = rapidjson::Writer<rapidjson::StringBuffer>;

void put_picture_text(PictureJson& json, std::string_view text) {
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void put_picture_key(PictureJson& json, std::string_view key) {
  json.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
}

// Gives equal strings the same number, in the order of first use.
class StringTable {
 public:
  uint32_t index(const std::string& text) {
    auto [at, added] = indices_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (added) strings_.push_back(&at->first);
    return at->second;
  }
  void put_all(PictureJson& json) const {
    json.StartArray();
    for (const std::string* text : strings_) put_picture_text(json, *text);
    json.EndArray();
  }

 private:
  std::map<std::string, uint32_t> indices_;
  std::vector<const std::string*> strings_;
};

template <class Value>
void put_column(PictureJson& json, std::string_view key, const std::vector<view::CallNode>& nodes,
                Value value) {
  put_picture_key(json, key);
  json.StartArray();
  for (const view::CallNode& node : nodes) json.Int64(static_cast<int64_t>(value(node)));
  json.EndArray();
}

using Parts = std::vector<std::array<view::NodePart, view::kDoings>>;

void put_parts(PictureJson& json, const Parts& parts) {
  constexpr std::string_view kNames[] = {"computing", "waiting", "waiting_for_work", "waiting_for_others",
                                         "waiting_unknown"};
  static_assert(std::size(kNames) == view::kDoings);
  put_picture_key(json, "parts");
  json.StartObject();
  for (size_t doing = 0; doing < view::kDoings; ++doing) {
    put_picture_key(json, kNames[doing]);
    json.StartObject();
    put_picture_key(json, "self");
    json.StartArray();
    for (const auto& part : parts) json.Int64(part[doing].self);
    json.EndArray();
    put_picture_key(json, "samples");
    json.StartArray();
    for (const auto& part : parts) json.Uint64(part[doing].samples);
    json.EndArray();
    json.EndObject();
  }
  json.EndObject();
}

void put_tree(PictureJson& json, const FlamePicture& picture) {
  const view::CallTree& tree = picture.tree;
  StringTable files;
  StringTable modules;
  for (const view::Label& label : tree.labels) {
    files.index(label.file);
    modules.index(label.module);
  }
  json.StartObject();
  put_picture_key(json, "files");
  files.put_all(json);
  put_picture_key(json, "modules");
  modules.put_all(json);
  put_picture_key(json, "labels");
  json.StartArray();
  for (const view::Label& label : tree.labels) {
    json.StartArray();
    put_picture_text(json, label.name);
    json.Uint(files.index(label.file));
    json.Int(label.line);
    json.Uint(modules.index(label.module));
    json.Uint(static_cast<unsigned>(label.kind));
    if (!label.full.empty()) put_picture_text(json, label.full);
    json.EndArray();
  }
  json.EndArray();
  put_column(json, "parent", tree.nodes, [](const view::CallNode& node) { return node.parent; });
  put_column(json, "label", tree.nodes, [](const view::CallNode& node) { return node.label; });
  put_column(json, "self", tree.nodes, [](const view::CallNode& node) { return node.self; });
  put_column(json, "samples", tree.nodes, [](const view::CallNode& node) { return node.samples; });
  if (!tree.parts.empty()) put_parts(json, tree.parts);
  if (!picture.before.empty()) {
    put_picture_key(json, "before");
    json.StartObject();
    put_column(json, "self", picture.before, [](const view::CallNode& node) { return node.self; });
    put_column(json, "samples", picture.before, [](const view::CallNode& node) { return node.samples; });
    put_picture_key(json, "changes");
    json.StartArray();
    for (int8_t step : picture.changes) json.Int(step);
    json.EndArray();
    json.EndObject();
  }
  json.EndObject();
}

double share_of(const std::vector<view::CallNode>& nodes, size_t node) {
  return nodes[0].total > 0 ? static_cast<double>(nodes[node].total) / static_cast<double>(nodes[0].total)
                            : 0;
}

}  // namespace

void make_displayable(view::CallTree& tree, bool by_line) {
  for (view::Label& label : tree.labels) {
    label.name = displayable(label.name);
    if (label.name.empty()) label.name = "(no name)";
    label.full = displayable(label.full);
    if (by_line && label.line > 0) {
      label.name += fmt::format(":{}", label.line);
      if (!label.full.empty()) label.full += fmt::format(":{}", label.line);
    }
    label.file = displayable(label.file);
    label.module = displayable(label.module);
  }
}

// The sizes of the nodes, as parts of the whole: in the tree, before, or in the time that another choice of
// the picture shows. A child is never larger than its parent.
std::vector<double> sizes_of(const view::CallTree& tree, const std::vector<view::CallNode>& before,
                             const Parts& totals) {
  const auto everything = [&](size_t node) {
    int64_t sum = 0;
    for (const view::NodePart& part : totals[node]) sum += part.self;
    return static_cast<double>(sum);
  };
  std::vector<double> sizes;
  sizes.reserve(tree.nodes.size());
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    sizes.push_back(share_of(tree.nodes, i));
    if (!before.empty()) sizes.back() = std::max(sizes.back(), share_of(before, i));
    if (!totals.empty() && everything(0) > 0)
      sizes.back() = std::max(sizes.back(), everything(i) / everything(0));
  }
  return sizes;
}

Parts totals_of(const view::CallTree& tree) {
  Parts totals = tree.parts;
  for (size_t i = totals.size(); i-- > 1;) {
    for (size_t doing = 0; doing < view::kDoings; ++doing)
      totals[tree.nodes[i].parent][doing].self += totals[i][doing].self;
  }
  return totals;
}

// Keeps the largest nodes of a tree, and one marker below each of them for those that it lost.
class Pruning {
 public:
  Pruning(view::CallTree& tree, std::vector<view::CallNode>& before)
      : tree_(tree),
        totals_(totals_of(tree)),
        sizes_(sizes_of(tree, before, totals_)),
        columns_{&tree.nodes} {
    if (!before.empty()) columns_.push_back(&before);
    kept_.resize(columns_.size());
  }

  LeftOut run(size_t maximum) {
    std::vector<double> sorted = sizes_;
    const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(maximum);
    std::nth_element(sorted.begin(), nth, sorted.end(), std::greater<>());
    const double too_small = *nth;
    constexpr uint32_t kGone = std::numeric_limits<uint32_t>::max();
    std::vector<uint32_t> index(tree_.nodes.size(), kGone);
    LeftOut out;
    for (size_t i = 0; i < tree_.nodes.size(); ++i) {
      const uint32_t parent = i == 0 ? 0 : index[tree_.nodes[i].parent];
      if (i == 0 || (parent != kGone && sizes_[i] > too_small)) {
        index[i] = keep(i, parent);
        continue;
      }
      ++out.frames;
      if (parent == kGone) continue;
      out.weight += tree_.nodes[i].total;
      add_to_marker(i, parent);
    }
    put_markers();
    tree_.parts = std::move(kept_parts_);
    for (size_t c = 0; c < columns_.size(); ++c) *columns_[c] = std::move(kept_[c]);
    return out;
  }

 private:
  uint32_t keep(size_t node, uint32_t parent) {
    const auto index = static_cast<uint32_t>(kept_[0].size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      kept_[c].push_back((*columns_[c])[node]);
      kept_[c].back().parent = parent;
    }
    if (!totals_.empty()) kept_parts_.push_back(tree_.parts[node]);
    return index;
  }

  void add_to_marker(size_t lost, uint32_t parent) {
    std::vector<view::CallNode>& marker = markers_.try_emplace(parent, columns_.size()).first->second;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const view::CallNode& node = (*columns_[c])[lost];
      marker[c].self += node.total;
      marker[c].total += node.total;
      marker[c].samples += node.samples;
    }
    for (size_t doing = 0; doing < view::kDoings && !totals_.empty(); ++doing) {
      marker_parts_[parent][doing].self += totals_[lost][doing].self;
      marker_parts_[parent][doing].samples += totals_[lost][doing].samples;
    }
  }

  void put_markers() {
    const auto label = static_cast<uint32_t>(tree_.labels.size());
    tree_.labels.push_back({profile::FrameKind::marker, "(frames too small for this file)", "", 0, "", ""});
    for (const auto& [parent, marker] : markers_) {
      for (size_t c = 0; c < columns_.size(); ++c) {
        kept_[c].push_back(marker[c]);
        kept_[c].back().parent = parent;
        kept_[c].back().label = label;
      }
      if (!totals_.empty()) kept_parts_.push_back(marker_parts_[parent]);
    }
  }

  view::CallTree& tree_;
  const Parts totals_;
  const std::vector<double> sizes_;
  std::vector<std::vector<view::CallNode>*> columns_;  // pruned in the same way
  std::vector<std::vector<view::CallNode>> kept_;
  Parts kept_parts_;
  // By the kept parent's index: one node for each column, and its parts.
  std::map<uint32_t, std::vector<view::CallNode>> markers_;
  std::map<uint32_t, std::array<view::NodePart, view::kDoings>> marker_parts_;
};

LeftOut prune(view::CallTree& tree, std::vector<view::CallNode>& before, size_t maximum) {
  if (tree.nodes.size() <= maximum) return {};
  return Pruning(tree, before).run(maximum);
}

void fill_difference(FlamePicture& picture, Difference difference, bool by_line, const Scales& scales) {
  make_displayable(difference.after, by_line);
  picture.pruned = prune(difference.after, difference.before, kMaximumNodes);
  picture.changes = change_steps(difference, scales);
  picture.tree = std::move(difference.after);
  picture.before = std::move(difference.before);
}

void write_picture_json(const FlamePicture& picture, std::ostream& out) {
  rapidjson::StringBuffer buffer;
  PictureJson json(buffer);
  json.StartObject();
  put_picture_key(json, "title");
  put_picture_text(json, picture.title);
  put_picture_key(json, "subtitle");
  put_picture_text(json, picture.subtitle);
  put_picture_key(json, "quality");
  json.StartArray();
  for (const std::string& line : picture.quality) put_picture_text(json, line);
  json.EndArray();
  put_picture_key(json, "warning");
  put_picture_text(json, picture.warning);
  put_picture_key(json, "unit");
  put_picture_text(json, view::unit_key(picture.weight));
  if (!picture.tree.parts.empty()) {
    put_picture_key(json, "show");
    put_picture_text(json, view::show_name(picture.show));
    put_picture_key(json, "leftOut");
    put_picture_text(json, picture.left_out);
  }
  put_picture_key(json, "pruned");
  json.StartObject();
  put_picture_key(json, "frames");
  json.Uint64(picture.pruned.frames);
  put_picture_key(json, "weight");
  json.Int64(picture.pruned.weight);
  json.EndObject();
  put_picture_key(json, "tree");
  put_tree(json, picture);
  json.EndObject();
  out << safe_in_markup({buffer.GetString(), buffer.GetSize()});
}

}  // namespace phlox::exporters
