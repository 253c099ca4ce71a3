#include "phlox/sampler/assemble/merge.h"

#include <algorithm>

namespace phlox::sampler {
namespace {

constexpr uint32_t kUnplaced = 0xffffffff;
// A loop frame that has just been entered, or is about to return, has no Python frame in the chain, and calls
// nothing deeper than this (3.9, Python/ceval.c: _Py_CheckFunctionResult, in debug builds).
constexpr uint32_t kDeepestWithoutPython = 2;

// The frame whose [sp, cfa) contains the anchor, no further in than `from`. Frames of one stack grow
// outwards; a signal on an alternate stack breaks that, so this is a scan and not a search.
uint32_t host_of(std::span<const unwind::NativeFrame> native, RemoteAddress anchor, size_t from) {
  for (size_t i = from; i < native.size(); ++i) {
    if (anchor >= native[i].sp && anchor < native[i].cfa) return static_cast<uint32_t>(i);
  }
  return kUnplaced;
}

// Without anchors, each loop frame has one group. They are matched from the outermost, because an innermost
// loop frame may have no Python frames. If there are more loop frames than that explains, they are matched
// from the innermost; returns false if it is not known whether the innermost one has its Python frames.
bool host_by_count(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
                   std::span<const uint8_t> is_loop, NativeEnd native_end, std::vector<uint32_t>& hosts) {
  std::vector<uint32_t> loops;
  for (uint32_t i = 0; i < native.size() && i < is_loop.size(); ++i) {
    if (is_loop[i] != 0) loops.push_back(i);
  }
  if (loops.empty()) return true;
  const size_t placed = std::min(loops.size(), groups.size());
  const bool maybe_without = loops.front() <= kDeepestWithoutPython;
  const bool too_many = loops.size() > groups.size() + (maybe_without ? 1 : 0);
  if (native_end == NativeEnd::cut || too_many) {
    std::copy_n(loops.begin(), placed, hosts.begin());
    return native_end == NativeEnd::cut || !maybe_without;
  }
  std::copy_n(loops.rbegin(), placed, hosts.rbegin());
  return true;
}

// Finds each group's native frame. Groups with an anchor: by address. Then, from the outermost inwards,
// groups without one take the remaining loop frames between their neighbours, one each.
void host_by_anchor(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
                    std::span<const uint8_t> is_loop, std::vector<uint32_t>& hosts) {
  size_t from = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].anchor) continue;
    hosts[g] = host_of(native, groups[g].anchor, from);
    if (hosts[g] != kUnplaced) from = hosts[g] + size_t{1};
  }
  size_t outer = native.size();  // hosts of groups further in are below this
  for (size_t g = groups.size(); g-- > 0;) {
    if (hosts[g] != kUnplaced) {
      outer = hosts[g];
      continue;
    }
    if (groups[g].anchor) continue;
    size_t inner = 0;  // not further in than the next placed group's host
    for (size_t k = g; k-- > 0;) {
      if (hosts[k] != kUnplaced) {
        inner = hosts[k] + size_t{1};
        break;
      }
    }
    for (size_t i = outer; i-- > inner;) {
      if (i < is_loop.size() && is_loop[i] != 0) {
        hosts[g] = static_cast<uint32_t>(i);
        outer = i;
        break;
      }
    }
  }
}

void append_group(const PythonGroup& group, Merged& out) {
  for (uint32_t i = 0; i < group.count; ++i) out.frames.push_back({true, group.first + i});
}

}  // namespace

void merge(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
           std::span<const uint8_t> is_loop, NativeEnd native_end, Merged& out) {
  out.frames.clear();
  out.end = MergeEnd::whole;
  out.unplaced_groups = 0;
  out.prologue = false;
  std::vector<uint32_t> hosts(groups.size(), kUnplaced);
  const bool anchors = std::any_of(groups.begin(), groups.end(), [](const auto& g) { return !!g.anchor; });
  bool sure = true;
  if (anchors) {
    host_by_anchor(groups, native, is_loop, hosts);
  } else {
    sure = host_by_count(groups, native, is_loop, native_end, hosts);
  }
  // Groups further out than this one have no place.
  const auto outermost =
      std::find_if(hosts.rbegin(), hosts.rend(), [](uint32_t h) { return h != kUnplaced; });
  const auto first_beyond = static_cast<size_t>(hosts.rend() - outermost);

  // The native walk did not reach what is beyond the last native frame.
  RemoteAddress reached;
  for (const auto& frame : native) reached = std::max(reached, frame.cfa);

  size_t next = 0;  // the next native frame to write
  bool cut = false, loose = !sure;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (hosts[g] == kUnplaced) {
      ++out.unplaced_groups;
      const bool beyond =
          groups[g].anchor ? groups[g].anchor >= reached : native_end == NativeEnd::cut && g >= first_beyond;
      (beyond ? cut : loose) = true;
      // Placed next to the Python frames of the surrounding group, so that what is below the innermost Python
      // frame stays there.
      const auto around = std::find_if(hosts.begin() + static_cast<ptrdiff_t>(g), hosts.end(),
                                       [](uint32_t h) { return h != kUnplaced; });
      const size_t until = around == hosts.end() ? native.size() : *around;
      for (; next < until; ++next) out.frames.push_back({false, static_cast<uint32_t>(next)});
      append_group(groups[g], out);
      continue;
    }
    for (; next < hosts[g]; ++next) out.frames.push_back({false, static_cast<uint32_t>(next)});
    append_group(groups[g], out);
  }
  for (; next < native.size(); ++next) out.frames.push_back({false, static_cast<uint32_t>(next)});

  const auto innermost = std::find_if(hosts.begin(), hosts.end(), [](uint32_t h) { return h != kUnplaced; });
  const size_t inside = innermost == hosts.end() ? native.size() : *innermost;
  for (size_t i = 0; i < inside && i < is_loop.size(); ++i) out.prologue = out.prologue || is_loop[i] != 0;

  if (native.empty()) {
    out.end = MergeEnd::python_only;
    out.unplaced_groups = 0;
  } else if (groups.empty()) {
    out.end = MergeEnd::native_only;
  } else if (loose) {
    out.end = MergeEnd::partial;
  } else if (cut) {
    out.end = MergeEnd::native_cut;
  }
}

size_t frames_of_greenlet(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
                          const std::function<bool(const unwind::NativeFrame&)>& of_greenlet) {
  // Further in, calls of the library look the same: those of a greenlet that switches to another.
  if (groups.empty() || !groups.back().anchor) return 0;
  const uint32_t host = host_of(native, groups.back().anchor, 0);
  if (host == kUnplaced) return 0;
  // Searches from there on: 3.10's outermost evaluation is the library's own.
  const auto first = std::find_if(native.begin() + host, native.end(), of_greenlet);
  return first == native.end() ? 0 : static_cast<size_t>(first - native.begin()) + 1;
}

}  // namespace phlox::sampler
