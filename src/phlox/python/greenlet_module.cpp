#include "phlox/python/greenlet_module.h"

#include <algorithm>
#include <span>

#include "phlox/base/load.h"

namespace phlox::python {
namespace {

constexpr size_t kMaxGreenletTypes = 1000;
constexpr size_t kMaxSubclasses = 10'000;  // of one type, including dead ones
constexpr size_t kChunkWords = (size_t{1} << 20) / 8;
constexpr size_t kMaxCandidates = 1'000'000;
// Distance from tp_base to tp_subclasses (Include/cpython/object.h, 3.8 to 3.15).
constexpr uint64_t kSubclassesAt = 104;

}  // namespace

// Each type has a dict with weak references to its subclasses.
void GreenletModule::add_subclasses() {
  for (size_t i = 0; i < types_.size(); ++i) {
    const RemoteAddress subclasses =
        memory_.word(RemoteAddress(types_[i]) + *layout_.type.tp_base + kSubclassesAt);
    if (!is_plausible(subclasses) || module_.type_of(subclasses).name != "dict") continue;
    const auto items = module_.objects().dict(subclasses);
    if (!items) continue;
    for (size_t at = 0; at < std::min(items->size(), kMaxSubclasses); ++at) {
      const RemoteAddress type = memory_.word((*items)[at].value + *layout_.weakref.wr_object);
      if (types_.size() >= kMaxGreenletTypes) return;
      if (is_plausible(type) && memory_.word(type + *layout_.type.tp_base).value == types_[i] &&
          std::find(types_.begin(), types_.end(), type.value) == types_.end())
        types_.push_back(type.value);
    }
  }
}

bool GreenletModule::open(RemoteAddress interpreter) {
  if (!layout_.task.coro.present()) return false;  // before 3.8
  auto& objects = module_.objects();
  const auto modules = objects.modules(interpreter);
  if (!modules) return false;
  const auto names = objects.names_of(*modules, "greenlet");
  const auto found = names ? objects.find(*names, "greenlet") : Read<RemoteAddress>(RemoteAddress());
  const RemoteAddress type = found ? *found : RemoteAddress();
  if (!type) return false;
  // After the object's head: weak references, a dict, the C++ object.
  const uint64_t size = memory_.word(type + *layout_.type.tp_basicsize).value;
  if (size != *layout_.object.size + uint64_t{24}) {
    problem_ = "greenlets have a form that Phlox does not know: it knows those of greenlet 2.0 and later";
    return false;
  }
  types_.push_back(type.value);
  add_subclasses();
  for (uint64_t one : types_) hints_[hint(one)] = true;
  return true;
}

bool GreenletModule::is_greenlet(RemoteAddress object) {
  if (!is_plausible(object) || (object.value & 7) != 0) return false;
  const uint64_t type = memory_.word(object + *layout_.object.ob_type).value;
  return std::find(types_.begin(), types_.end(), type) != types_.end();
}

RemoteAddress GreenletModule::state_of(RemoteAddress greenlet) {
  if (!is_greenlet(greenlet)) return {};
  const RemoteAddress state = memory_.word(greenlet + *layout_.object.size + 16);
  return is_plausible(state) && memory_.word(state + 8) == greenlet ? state : RemoteAddress();
}

// Words of the C++ object: vtable, greenlet, the handled exception (_PyErr_StackItem: 2 words since 3.11, 4
// before, and a pointer), arguments of a switch (2), the C stack (start, stop, a copy, size and owner),
// fields that depend on the CPython version, the frame among them, and finally main greenlet, function and
// parent. The main greenlet is its own main, and has no parent.
std::optional<GreenletState> GreenletModule::read(RemoteAddress greenlet) {
  GreenletState out;
  out.address = state_of(greenlet);
  std::array<uint64_t, kWords> words{};
  if (!out.address || !memory_.read(out.address, std::as_writable_bytes(std::span(words)))) return {};
  const size_t stack = layout_.traits.interpreter_frames ? 7 : 9;
  out.active = words[stack] != 0;
  out.started = words[stack + 1] != 0;
  size_t last = stack + 1;
  for (size_t i = stack + 5; i + 2 < kWords; ++i) {
    const RemoteAddress value(words[i]);
    if (!is_plausible(value) || (value.value & 7) != 0) continue;
    if (!out.frame && module_.type_of(value).name == "frame") {
      out.frame = value;
      last = i;
      continue;
    }
    if (!is_greenlet(value)) continue;
    // If it has not started, only the parent is set.
    out.main = out.started ? value : RemoteAddress();
    out.parent = !out.started ? value : value == greenlet ? RemoteAddress() : RemoteAddress(words[i + 2]);
    if (out.started && !out.parent) out.thread = RemoteAddress(words[i + 1]);
    last = out.started ? i + (out.parent ? 2 : 1) : i;
    break;
  }
  out.size = 8 * (last + 1);
  return out;
}

// ThreadState of src/greenlet/TThreadState.hpp begins with its main greenlet and its running one.
RemoteAddress GreenletModule::place_of_current(RemoteAddress main) {
  const auto state = read(main);
  if (!state || !is_plausible(state->thread) || memory_.word(state->thread) != main) return {};
  return is_greenlet(memory_.word(state->thread + 8)) ? state->thread + 8 : RemoteAddress();
}

// False: there are too many candidates.
bool GreenletModule::search(memory::RemoteMemory& source, HeapRange range, std::vector<uint64_t>& chunk,
                            std::vector<RemoteAddress>& candidates) const {
  const uint32_t type_at = *layout_.object.ob_type;
  while (range.start < range.end) {
    const size_t words = std::min<uint64_t>(kChunkWords, (range.end - range.start) / 8);
    if (words == 0) return true;
    if (source.read(range.start, std::as_writable_bytes(std::span(chunk).first(words)))) {
      for (size_t i = 0; i < words; ++i) {
        if (!hints_[hint(chunk[i])]) continue;
        if (std::find(types_.begin(), types_.end(), chunk[i]) == types_.end()) continue;
        if (candidates.size() >= kMaxCandidates) return false;
        candidates.push_back(range.start + 8 * i - type_at);
      }
    }
    range.start = range.start + 8 * words;
  }
  return true;
}

std::vector<AsyncioModule::Found> GreenletModule::find(memory::RemoteMemory& source, const Heap& heap,
                                                       size_t most, size_t& beyond) {
  std::vector<uint64_t> chunk(kChunkWords);
  std::vector<RemoteAddress> candidates;
  for (const HeapRange& range : heap.ranges) {
    if (search(source, range, chunk, candidates)) continue;
    problem_ = "a greenlet's type is in too many places of the program's memory";
    break;
  }
  if (!heap.problem.empty()) problem_ = heap.problem;
  memory_.forget();
  std::vector<AsyncioModule::Found> found;
  for (RemoteAddress candidate : candidates) {
    if (!state_of(candidate)) continue;
    if (found.size() >= most) {
      ++beyond;
      continue;
    }
    found.push_back({candidate, 0});
  }
  return found;
}

}  // namespace phlox::python
