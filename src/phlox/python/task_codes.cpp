#include "phlox/python/task_codes.h"

#include <utility>

#include "phlox/base/load.h"

namespace phlox::python {
namespace {

// Of one reading.
constexpr size_t kMaxFunctions = 20'000;
constexpr size_t kMaxCodeBytes = size_t{64} << 20;

}  // namespace

void TaskCodes::begin(const Layout& layout, PageMemory& memory, std::vector<TaskFunction>& functions) {
  std::erase_if(kept_, [this](const auto& one) { return one.second.reading != reading_; });
  ++reading_;
  bytes_ = 0;
  layout_ = &layout;
  memory_ = &memory;
  functions_ = &functions;
}

std::optional<TaskCodes::Known> TaskCodes::read(RemoteAddress address, CodeIdentity& identity) {
  CodeCapture capture;
  if (!capture_code(*layout_, *memory_, address, capture)) return {};
  auto code = decode_code(*layout_, capture);
  if (!code) return {};
  identity = CodeIdentity(*layout_, capture);
  Known known{*std::move(code)};
  if (layout_->code.nlocalsplus.present()) {
    const std::byte* count = memory_->find(address + *layout_->code.nlocalsplus, 4);
    if (count != nullptr) known.variables = load<uint32_t>(count);
  }
  return known;
}

const TaskCodes::Known* TaskCodes::find(RemoteAddress address) {
  const auto before = kept_.find(address.value);
  if (before != kept_.end() && before->second.reading == reading_)
    return before->second.known ? &*before->second.known : nullptr;
  if (functions_->size() >= kMaxFunctions || bytes_ >= kMaxCodeBytes) return nullptr;
  Kept& kept = before != kept_.end() ? before->second : kept_[address.value];
  kept.reading = reading_;
  if (!kept.known || !kept.identity.holds(*memory_)) kept.known = read(address, kept.identity);
  if (!kept.known) return nullptr;
  const Code& code = kept.known->code;
  kept.known->function = static_cast<uint32_t>(functions_->size());
  functions_->push_back({code.name, code.qualified_name, code.file, code.first_line});
  bytes_ += 2 * (code.name.size() + code.qualified_name.size() + code.file.size()) + code.line_table.size();
  return &*kept.known;
}

}  // namespace phlox::python
