#include "phlox/exporters/svg.h"
#include "phlox/base/utf8.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <vector>

#include "phlox/exporters/flame_colours.h"
#include "phlox/exporters/web_bundle.h"
#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

constexpr double kPageWidth = 1200;
constexpr double kMargin = 10;
constexpr double kRowHeight = 18;  // as in web/src/svg/flame_svg.ts
constexpr double kTextMargin = 4;
// The widest monospaced font in flame.css needs 0.602 em for a column: 7.23 px at 12 px.
constexpr double kColumnWidth = 7.25;
// Small text has a proportional font of 11.5 px; 6.4 px for a character is above its average for all text
// except capitals.
constexpr double kSmallColumnWidth = 6.4;

// Each box has its name in a title for browsers without scripts; the embedded tree has each name once, and
// these repeat it.
constexpr size_t kTitleColumns = 300;

// The text above the boxes, written from the top down.
class Heading {
 public:
  explicit Heading(std::string& out) : out_(out) {}

  void line(std::string_view css, double height, std::string_view text) {
    y_ += height;
    fmt::format_to(std::back_inserter(out_), "<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", css, kMargin,
                   y_, xml_escaped(text));
  }
  void small_print(std::string_view text) {
    auto columns = static_cast<size_t>((kPageWidth - 2 * kMargin) / kSmallColumnWidth);
    for (const std::string& part : wrap_columns(text, columns)) line("small", 16, part);
  }
  void warning(std::string_view text) {
    fmt::format_to(std::back_inserter(out_),
                   "<g class=\"warn\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"24\" rx=\"6\"/>"
                   "<text x=\"{}\" y=\"{}\">⚠ {}</text></g>\n",
                   kMargin, y_ + 8, kPageWidth - 2 * kMargin, kMargin + 10, y_ + 24, xml_escaped(text));
    y_ += 34;
  }
  double end() const { return y_ + 12; }

 private:
  std::string& out_;
  double y_ = 10;
};

std::string left_out_words(const FlamePicture& picture, const FlameLayout& layout) {
  auto total = static_cast<double>(picture.tree.total);
  auto frames = [](uint64_t count) { return count_words(count) + (count == 1 ? " frame" : " frames"); };
  std::string text;
  if (layout.narrow.frames > 0) {
    text += fmt::format("{} narrower than {} px ({})", frames(layout.narrow.frames), layout.min_width,
                        share_words(static_cast<double>(layout.narrow.weight), total));
  }
  if (layout.deep.frames > 0) {
    text +=
        fmt::format("{}{} deeper than {} rows ({})", text.empty() ? "" : " and ", frames(layout.deep.frames),
                    LayoutOptions{}.max_depth, share_words(static_cast<double>(layout.deep.weight), total));
  }
  if (!text.empty())
    text = "Left out of the picture: " + text + ". Open the file in a browser and zoom in to see them.";
  if (picture.pruned.frames > 0) {
    text += fmt::format(" Not in this file: the {} smallest frames ({}).", count_words(picture.pruned.frames),
                        share_words(static_cast<double>(picture.pruned.weight), total));
  }
  return text;
}

std::string class_of(const FlamePicture& picture, uint32_t node) {
  if (node == 0) return "m";
  if (!picture.changes.empty()) return difference_class(picture.changes[node]);
  const view::Label& label = picture.tree.labels[picture.tree.nodes[node].label];
  return colour_class(label.kind, label.module, label.name);
}

void write_box(const FlamePicture& picture, const FlameBox& box, double y, std::string& out) {
  const view::CallNode& node = picture.tree.nodes[box.node];
  const view::Label& label = picture.tree.labels[node.label];
  std::string location = label.file;
  if (!location.empty() && label.line > 0) location += fmt::format(":{}", label.line);
  double x = round_pixels(kMargin + box.x);
  double width = round_pixels(box.width >= 2 ? box.width - 0.5 : box.width);
  fmt::format_to(std::back_inserter(out),
                 "<g class=\"b\" data-n=\"{}\"><title>{}{}{}{}&#10;{} of all, {}, {}</title>"
                 "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>",
                 box.node, xml_escaped(fit_columns(label.whole_name(), kTitleColumns)),
                 location.empty() ? "" : " (", xml_escaped(fit_columns(location, kTitleColumns)),
                 location.empty() ? "" : ")",
                 share_words(static_cast<double>(node.total), static_cast<double>(picture.tree.total)),
                 weight_words(node.total, picture.weight),
                 weight_words(static_cast<int64_t>(node.samples), view::Weight::samples),
                 class_of(picture, box.node), x, y, width, kRowHeight - 1, box.width >= 8 ? " rx=\"2\"" : "");
  double room = box.width - 2 * kTextMargin;
  const auto columns = room > 0 ? static_cast<size_t>(room / kColumnWidth) : 0;
  const bool has_room = !label.full.empty() && columns_of(label.full) <= columns;
  std::string text = fit_name(has_room ? label.full : label.name, columns);
  if (!text.empty()) {
    fmt::format_to(std::back_inserter(out), "<text x=\"{}\" y=\"{}\">{}</text>",
                   round_pixels(x + kTextMargin), y + 12.5, xml_escaped(text));
  }
  out += "</g>\n";
}

// CDATA can contain anything except its end.
void write_cdata(std::string_view text, std::ostream& out) {
  constexpr std::string_view kEnd = "]]>";
  out << "<![CDATA[";
  for (size_t at = text.find(kEnd); at != std::string_view::npos; at = text.find(kEnd)) {
    out << text.substr(0, at) << "]]]]><![CDATA[>";
    text.remove_prefix(at + kEnd.size());
  }
  out << text << "]]>";
}

}  // namespace

void write_flame_svg(const FlamePicture& picture, std::ostream& out) {
  FlameLayout layout = lay_out_flame(picture.tree.nodes);

  std::string heading;
  Heading lines(heading);
  auto title_columns = static_cast<size_t>((kPageWidth - 2 * kMargin) / 9.5);
  lines.line("title", 20, fit_columns(picture.title, title_columns));
  lines.line("sub", 19, fit_columns(picture.subtitle, static_cast<size_t>((kPageWidth - 2 * kMargin) / 6.9)));
  for (const std::string& line : picture.quality) lines.small_print(line);
  if (!picture.left_out.empty()) lines.small_print("Not shown: " + picture.left_out + ".");
  lines.small_print(left_out_words(picture, layout));
  if (!picture.warning.empty()) lines.warning(picture.warning);

  double top = lines.end();
  double height = top + layout.rows * kRowHeight + kMargin;
  out << fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<title>{2}</title>\n<style>",
      kPageWidth, height, xml_escaped(picture.title));
  write_cdata(web::flame_style(), out);
  out << "</style>\n<g id=\"static\">\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" << heading;
  std::string boxes;
  for (const FlameBox& box : layout.boxes) {
    write_box(picture, box, top + (layout.rows - 1 - box.row) * kRowHeight, boxes);
  }
  out << boxes << "</g>\n<script type=\"application/json\" id=\"phlox-data\">";
  write_picture_json(picture, out);
  out << "</script>\n<script>";
  write_cdata(web::flame_svg_script(), out);
  out << "</script>\n</svg>\n";
}

}  // namespace phlox::exporters
