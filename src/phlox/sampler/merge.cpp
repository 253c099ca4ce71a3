#include "phlox/sampler/merge.h"

#include <algorithm>

namespace phlox::sampler {
namespace {

constexpr uint32_t kUnplaced = 0xffffffff;

// The frame whose [sp, cfa) holds the anchor, not further in than `from`. Frames of one stack grow outwards;
// a signal on an alternate stack breaks that, so this is a scan and not a search.
uint32_t host_of(std::span<const unwind::NativeFrame> native, RemoteAddress anchor, size_t from) {
  for (size_t i = from; i < native.size(); ++i) {
    if (anchor >= native[i].sp && anchor < native[i].cfa) return static_cast<uint32_t>(i);
  }
  return kUnplaced;
}

// Where each group's native frame is. Groups with an anchor: by address. Then, from the outermost inwards,
// groups without one take the loop frames that are left between their neighbours, one for one.
std::vector<uint32_t> place(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
                            std::span<const uint8_t> is_loop) {
  std::vector<uint32_t> hosts(groups.size(), kUnplaced);
  size_t from = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].anchor) continue;
    hosts[g] = host_of(native, groups[g].anchor, from);
    if (hosts[g] != kUnplaced) from = hosts[g] + size_t{1};
  }
  size_t outer = native.size();  // hosts of groups further in lie below this
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
  return hosts;
}

void append_group(const PythonGroup& group, Merged& out) {
  for (uint32_t i = 0; i < group.count; ++i) out.frames.push_back({true, group.first + i});
}

}  // namespace

void merge(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
           std::span<const uint8_t> is_loop, Merged& out) {
  out.frames.clear();
  out.end = MergeEnd::whole;
  out.unplaced_groups = 0;
  out.prologue = false;
  const std::vector<uint32_t> hosts = place(groups, native, is_loop);

  // Beyond the last native frame lies what the native walk did not reach.
  RemoteAddress reached;
  for (const auto& frame : native) reached = std::max(reached, frame.cfa);

  size_t next = 0;  // native frame to be written next
  bool cut = false, loose = false;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (hosts[g] == kUnplaced) {
      ++out.unplaced_groups;
      const bool beyond = groups[g].anchor && groups[g].anchor >= reached;
      (beyond ? cut : loose) = true;
      // Next to the Python frames of the group around it, so that what is below the innermost Python frame
      // stays there.
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

}  // namespace phlox::sampler
