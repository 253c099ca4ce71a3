#include "phlox/view/frame_labels.h"

#include <fmt/format.h>

#include <string_view>

#include "phlox/base/text.h"
#include "phlox/profile/declarations.h"
#include "phlox/view/module_of_file.h"

namespace phlox::view {

using namespace profile;

namespace {

struct LabelRules {
  bool line = false;
  bool place = false;
  NativeNames native_names = NativeNames::by_format;
};

Label label_of(const Profile& profile, FrameId id, const LabelRules& rules) {
  const Frame& frame = profile.frame(id);
  Label label;
  label.kind = frame.kind;
  // C++ and Rust names are short: a full one, with every template argument, fills a screen.
  const bool whole = frame.kind == FrameKind::python && !frame.qualified_name.empty();
  label.name = whole || frame.function.empty() ? frame.qualified_name : frame.function;
  if (!whole && frame.qualified_name != label.name) label.full = frame.qualified_name;
  label.file = rules.line ? frame.file : declared_in(profile, frame);
  if (frame.kind == FrameKind::marker) return label;
  label.line = rules.line ? frame.line : frame.first_line;
  if (rules.place && rules.line) label.first_line = frame.first_line;
  if (frame.kind == FrameKind::python) {
    label.module = module_of_file(frame.file);
  } else {
    if (frame.kind == FrameKind::kernel) {
      label.module = "kernel";
    } else if (frame.module && frame.module->value <= profile.modules().size()) {
      label.module = without_extension(base_name(profile.modules()[frame.module->value - 1].path));
    }
    if (label.name.empty())
      label.name = fmt::format("{}+0x{:x}", label.module.empty() ? "?" : label.module, frame.address);
    if (rules.place) label.module_id = frame.module.value_or(ModuleId());
    if (rules.place && rules.line) label.address = frame.address;
    if (rules.native_names == NativeNames::full && !label.full.empty()) label.name = label.full;
    if (rules.native_names != NativeNames::by_format) label.full.clear();
  }
  return label;
}

}  // namespace

Label frame_label(const Profile& profile, FrameId frame, const Choices& choices) {
  return label_of(profile, frame, {choices.by.line, choices.by.place, choices.native_names});
}
Label function_label(const Profile& profile, FrameId frame) {
  return label_of(profile, frame, {});
}
Label line_label(const Profile& profile, FrameId frame) {
  return label_of(profile, frame, {.line = true});
}

std::string thread_label(const Thread& thread) {
  std::string name = thread.name.empty() ? thread.kernel_name : thread.name;
  if (thread.interpreter > 0)
    name += fmt::format("{}interpreter {}", name.empty() ? "" : ", ", thread.interpreter);
  if (thread.tid == 0 && thread.python_id == 0 && name.empty()) return "(thread not known)";
  if (thread.tid == 0)
    return name.empty() ? fmt::format("Thread 0x{:x}", thread.python_id) : "Thread " + name;
  return name.empty() ? fmt::format("Thread {}", thread.tid)
                      : fmt::format("Thread {} ({})", name, thread.tid);
}

std::string process_label(const Process& process) {
  const std::string& name = process.command();
  if (process.pid == 0) return name.empty() ? "(process not known)" : name;
  return name.empty() ? fmt::format("pid {}", process.pid) : fmt::format("{} (pid {})", name, process.pid);
}

}  // namespace phlox::view
