#include "phlox/python/code_object.h"

#include <algorithm>

#include "phlox/base/load.h"
#include "phlox/python/line_table.h"
#include "phlox/python/unicode.h"

namespace phlox::python {
namespace {

constexpr uint64_t kPage = 4096;

// Bytes read beyond the head of an object, so that one read completes most objects: qualified names, paths
// and the line table of a function of some 200 lines. Extra bytes are almost free; a further call costs 1.5
// us.
constexpr std::array<uint32_t, CodeCapture::kParts> kForesight = {128, 192, 256, 768};

// Struct, heads and the bytes read ahead: one allocation for an ordinary code object.
constexpr size_t kUsualSize = 2048;

Offset field_of(const Layout& layout, size_t part) {
  switch (part) {
    case CodeCapture::name:
      return layout.code.name;
    case CodeCapture::qualname:
      return layout.code.qualname;
    case CodeCapture::filename:
      return layout.code.filename;
    default:
      return layout.code.linetable;
  }
}

size_t head_size(const Layout& layout, size_t part) {
  return part == CodeCapture::linetable ? *layout.bytes.ob_sval : string_head_size(layout);
}

bool is_known(const Layout& layout) {
  const auto& code = layout.code;
  if (!code.name.present() || !code.filename.present() || !code.firstlineno.present() ||
      !code.linetable.present()) {
    return false;
  }
  if (!code.code_adaptive.present() && !code.code.present()) return false;
  if (!layout.bytes.ob_size.present() || !layout.bytes.ob_sval.present()) return false;
  return layout.traits.python2 ||
         (layout.unicode.length.present() && layout.unicode.state.present() &&
          layout.unicode.asciiobject_size.present() && layout.unicode.compactobject_size.present());
}

uint32_t struct_size(const Layout& layout) {
  uint32_t end = 0;
  auto reach = [&end](Offset offset, uint32_t size) {
    if (offset.present()) end = std::max(end, *offset + size);
  };
  for (size_t part = 0; part < CodeCapture::kParts; ++part) reach(field_of(layout, part), 8);
  reach(layout.object.ob_type, 8);
  reach(layout.code.firstlineno, 4);
  reach(layout.code.flags, 4);
  reach(layout.code.version, 4);
  reach(layout.code.code, 8);
  if (layout.code.code_adaptive.present()) reach(layout.bytes.ob_size, 8);
  return end;
}

struct Content {
  RemoteAddress address;
  uint64_t size = 0;
};

Read<Content> content_of(const Layout& layout, const CodeCapture& capture, size_t part) {
  const CapturedObject& object = capture.parts[part];
  if (part == CodeCapture::linetable) {
    const auto size = load<uint64_t>(capture.bytes, object.offset + *layout.bytes.ob_size);
    if (size > uint64_t{1} << 40) return fault(FaultKind::implausible, object.address);
    return Content{object.address + *layout.bytes.ob_sval, size};
  }
  const auto head = std::span(capture.bytes).subspan(object.offset, object.head);
  const auto string = parse_string_head(layout, object.address, head);
  if (!string) return tl::unexpected(string.error());
  return Content{string->content, string->content_bytes()};
}

// Until 3.10 the instructions are an object of their own.
bool has_code_apart(const Layout& layout) {
  return !layout.code.code_adaptive.present();
}

// The second call: head and beginning of every object that the struct points to, and the head of the
// instructions, if they are apart, at the end. Returns where that is.
Read<size_t> read_heads(const Layout& layout, memory::RemoteMemory& memory, CodeCapture& into) {
  size_t size = into.struct_size;
  for (size_t part = 0; part < CodeCapture::kParts; ++part) {
    const Offset field = field_of(layout, part);
    if (!field.present()) continue;
    CapturedObject& object = into.parts[part];
    object.address = RemoteAddress(load<uint64_t>(into.bytes, *field));
    if (!object.address) continue;
    if (!is_plausible(object.address)) return fault(FaultKind::implausible, into.address + *field);
    const uint64_t needed = head_size(layout, part);
    // Beyond the head, read only to the end of its page: the next page may not exist.
    const uint64_t page_end = (object.address.value + needed + kPage - 1) & ~(kPage - 1);
    const uint64_t foreseen = needed + kForesight[part];
    object.head = static_cast<uint32_t>(std::min(foreseen, page_end - object.address.value));
    object.offset = static_cast<uint32_t>(size);
    size += object.head;
  }
  const size_t code_head_offset = size;
  RemoteAddress code;
  if (has_code_apart(layout)) {
    code = RemoteAddress(load<uint64_t>(into.bytes, *layout.code.code));
    if (!is_plausible(code)) return fault(FaultKind::implausible, into.address + *layout.code.code);
    size += *layout.bytes.ob_sval;
  }
  into.bytes.resize(size);
  std::array<memory::Range, CodeCapture::kParts + 1> ranges;
  size_t count = 0;
  for (const CapturedObject& object : into.parts) {
    if (object.address)
      ranges[count++] = {object.address, std::span(into.bytes).subspan(object.offset, object.head)};
  }
  if (code) ranges[count++] = {code, std::span(into.bytes).subspan(code_head_offset)};
  const size_t whole = memory.read(std::span(ranges).first(count));
  if (whole < count) return fault(FaultKind::unreadable, ranges[whole].address);
  return code_head_offset;
}

// The third call, rarely: contents that were longer or are elsewhere.
Read<void> read_contents(const Layout& layout, memory::RemoteMemory& memory, CodeCapture& into) {
  const size_t before = into.bytes.size();
  size_t size = before;
  for (size_t part = 0; part < CodeCapture::kParts; ++part) {
    CapturedObject& object = into.parts[part];
    if (!object.address) continue;
    const auto content = content_of(layout, into, part);
    if (!content) return tl::unexpected(content.error());
    const uint64_t cap = part == CodeCapture::linetable ? kMaxLineTableBytes : kMaxStringBytes;
    object.cut = content->size > cap;
    object.content = static_cast<uint32_t>(std::min(content->size, cap));
    object.content_address = content->address;
    const uint64_t from = content->address - object.address;
    if (from <= object.head && object.content <= object.head - from) {
      object.content_offset = static_cast<uint32_t>(object.offset + from);
    } else {
      object.content_offset = static_cast<uint32_t>(size);
      size += object.content;
    }
  }
  if (size == before) return {};
  into.bytes.resize(size);
  std::array<memory::Range, CodeCapture::kParts> ranges;
  size_t count = 0;
  for (const CapturedObject& object : into.parts) {
    if (object.content != 0 && object.content_offset >= before) {
      ranges[count++] = {object.content_address,
                         std::span(into.bytes).subspan(object.content_offset, object.content)};
    }
  }
  const size_t got = memory.read(std::span(ranges).first(count));
  if (got < count) return fault(FaultKind::unreadable, ranges[got].address);
  return {};
}

}  // namespace

Read<void> capture_code(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress address,
                        CodeCapture& into) {
  if (!is_known(layout)) return fault(FaultKind::unsupported, address);
  if (!is_plausible(address)) return fault(FaultKind::implausible, address);
  into.address = address;
  into.struct_size = struct_size(layout);
  into.parts = {};
  into.bytes.reserve(kUsualSize);
  into.bytes.resize(into.struct_size);
  if (!memory.read(address, std::span(into.bytes))) return fault(FaultKind::unreadable, address);
  const auto code_head_offset = read_heads(layout, memory, into);
  if (!code_head_offset) return tl::unexpected(code_head_offset.error());
  if (auto read = read_contents(layout, memory, into); !read) return read;

  into.type = RemoteAddress(load<uint64_t>(into.bytes, *layout.object.ob_type));
  const bool apart = has_code_apart(layout);
  const size_t head = apart ? *code_head_offset : 0;
  const auto units = load<uint64_t>(into.bytes, head + *layout.bytes.ob_size);
  if (units > uint64_t{1} << 31) return fault(FaultKind::implausible, address);
  into.code_size = static_cast<uint32_t>(apart ? units : units * 2);
  into.first_instruction =
      apart ? RemoteAddress(load<uint64_t>(into.bytes, *layout.code.code)) + *layout.bytes.ob_sval
            : address + *layout.code.code_adaptive;
  return {};
}

int32_t Code::line(int32_t offset) const {
  return line_of(line_table_kind, line_table, first_line, offset);
}

Read<Code> decode_code(const Layout& layout, const CodeCapture& capture) {
  if (capture.bytes.size() < capture.struct_size || capture.struct_size < struct_size(layout)) {
    return fault(FaultKind::unsupported, capture.address);
  }
  Code code;
  for (size_t part = 0; part < CodeCapture::kParts; ++part) {
    const CapturedObject& object = capture.parts[part];
    if (!object.address) continue;
    code.cut = code.cut || object.cut;
    const auto content = std::span(capture.bytes).subspan(object.content_offset, object.content);
    if (part == CodeCapture::linetable) {
      code.line_table.assign(content.begin(), content.end());
      continue;
    }
    const auto head = std::span(capture.bytes).subspan(object.offset, object.head);
    const auto string = parse_string_head(layout, object.address, head);
    if (!string) return tl::unexpected(string.error());
    std::string& text = part == CodeCapture::name       ? code.name
                        : part == CodeCapture::qualname ? code.qualified_name
                                                        : code.file;
    append_utf8(text, string->kind, content);
    if (object.cut) text += "…";
  }
  const bool has_qualname = static_cast<bool>(capture.parts[CodeCapture::qualname].address);
  if (!has_qualname) code.qualified_name = code.name;
  code.first_line = load<int32_t>(capture.bytes, *layout.code.firstlineno);
  if (layout.code.flags.present()) code.flags = load<uint32_t>(capture.bytes, *layout.code.flags);
  code.line_table_kind = layout.traits.lines;
  code.first_instruction = capture.first_instruction;
  code.code_size = capture.code_size;
  // _Py_InitCleanup (Python/specialize.c, 3.13+) is a static code object that has its name as its file, and
  // no line.
  code.shim = layout.code.qualname.present() && code.first_line <= 0 &&
              (!has_qualname ||
               capture.parts[CodeCapture::filename].address == capture.parts[CodeCapture::name].address);
  return code;
}

Read<Code> read_code(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress address) {
  CodeCapture capture;
  const auto captured = capture_code(layout, memory, address, capture);
  if (!captured) return tl::unexpected(captured.error());
  return decode_code(layout, capture);
}

bool epoch_follows(const Layout& layout, const CodeCapture& capture, uint64_t epoch) {
  if (layout.traits.code_epoch == CodeEpoch::generation) return true;
  uint32_t version = 0;
  if (capture.bytes.size() < *layout.code.version + sizeof version) return false;
  std::memcpy(&version, capture.bytes.data() + *layout.code.version, sizeof version);
  return version < epoch;
}

CodeIdentity::CodeIdentity(const Layout& layout, const CodeCapture& capture) {
  auto add = [this](RemoteAddress address, uint32_t size) {
    items_[count_++] = Item{address, size, static_cast<uint32_t>(bytes_.size())};
  };
  auto remember = [this](std::span<const std::byte> part) {
    bytes_.insert(bytes_.end(), part.begin(), part.end());
  };
  const auto all = std::span(capture.bytes);

  uint32_t from = *layout.code.firstlineno, to = from + 4;
  auto cover = [&](Offset offset, uint32_t size) {
    if (!offset.present()) return;
    from = std::min(from, *offset);
    to = std::max(to, *offset + size);
  };
  for (size_t part = 0; part < CodeCapture::kParts; ++part) cover(field_of(layout, part), 8);
  if (layout.traits.code_proof == CodeProof::co_version) cover(layout.code.version, 4);
  add(capture.address + from, to - from);
  remember(all.subspan(from, to - from));
  if (layout.traits.code_proof == CodeProof::co_version) return;

  for (size_t part = 0; part < CodeCapture::kParts; ++part) {
    const CapturedObject& object = capture.parts[part];
    const auto same = [&](const CapturedObject& other) { return other.address == object.address; };
    const auto before = std::span(capture.parts).first(part);
    // The qualified name of a module-level function is its name.
    if (!object.address || std::any_of(before.begin(), before.end(), same)) continue;
    // From the length on: the reference count before it proves nothing. Caches in the head (hash, UTF-8) may
    // be filled in later, which looks like another object once.
    const uint32_t start =
        part == CodeCapture::linetable ? *layout.bytes.ob_size : string_length_offset(layout);
    const auto head_end = static_cast<uint32_t>(head_size(layout, part));
    const uint64_t content_at = object.content_address - object.address;
    const bool whole = object.content <= kContentBytes;
    const uint32_t content = whole ? object.content : kContentBytes / 2;
    // A string may name any address for its characters, even one within its own head.
    if (content_at >= start && content_at <= head_end) {
      const auto end = static_cast<uint32_t>(content_at) + content;
      const uint32_t near = std::min(end, object.head);
      add(object.address + start, end - start);
      remember(all.subspan(object.offset + start, near - start));
      remember(all.subspan(object.content_offset + (near - content_at), end - near));
    } else {
      add(object.address + start, head_end - start);
      remember(all.subspan(object.offset + start, head_end - start));
      if (content != 0) {
        add(object.content_address, content);
        remember(all.subspan(object.content_offset, content));
      }
    }
    if (!whole) {
      add(object.content_address + (object.content - content), content);
      remember(all.subspan(object.content_offset + object.content - content, content));
    }
  }
}

}  // namespace phlox::python
