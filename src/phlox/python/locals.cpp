#include "phlox/python/locals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "phlox/python/code_object.h"
#include "phlox/python/objects.h"

namespace phlox::python {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr const char* kUnreadable = "<unreadable>";

// Include/internal/pycore_code.h, 3.11+.
enum : uint8_t { kHidden = 0x10, kCell = 0x40, kFree = 0x80 };
constexpr uint32_t kOptimized = 0x1;  // CO_OPTIMIZED: variables are in the frame

// Like repr(float): the shortest digits that round-trip, an exponent below 1e-4 and from 1e16 on.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto scientific = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

// Escapes control characters, so that a value stays on one line.
std::string quoted(std::string_view text) {
  std::string out = "'";
  constexpr char kHex[] = "0123456789abcdef";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'') {
      out += "\\'";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "'";
}

class Describer {
 public:
  Describer(const Layout& layout, memory::RemoteMemory& memory, const LocalsLimits& limits)
      : layout_(layout), memory_(memory), objects_(layout, memory), limits_(limits) {}

  // Shows the contents of a container, but only counts those of a container within it.
  std::string describe(RemoteAddress object) {
    contents_ = true;
    return describe_as_is(object);
  }

 private:
  std::string describe_as_is(RemoteAddress object) {
    const auto type = objects_.type_of(object);
    if (!type) return kUnreadable;
    if (type->name == "NoneType") return "None";
    if (type->name == "bool") return truth(object);
    if (type->name == "set") return set(object, "set()", "{", "}");
    if (type->name == "frozenset") return set(object, "frozenset()", "frozenset({", "})");
    const auto kind = kind_of(type->flags);
    if (kind == nullptr) return type->name == "float" ? number(object) : "<" + type->name + " object>";
    const std::string text = (this->*kind->text)(object);
    if (text == kUnreadable) return text;
    const bool exact = type->name == kind->name || (layout_.traits.python2 && type->name == kind->name2);
    return exact ? text : type->name + "(" + text + ")";
  }

  struct Kind {
    uint64_t flag;
    const char* name;
    const char* name2;  // in 2.7
    std::string (Describer::*text)(RemoteAddress);
  };

  const Kind* kind_of(uint64_t flags) const {
    static constexpr Kind kKinds[] = {{TypeFlag::kInteger2, "int", "int", &Describer::integer},
                                      {TypeFlag::kLong, "int", "long", &Describer::integer},
                                      {TypeFlag::kUnicode, "str", "unicode", &Describer::text},
                                      {TypeFlag::kBytes, "bytes", "str", &Describer::bytes},
                                      {TypeFlag::kList, "list", "list", &Describer::list},
                                      {TypeFlag::kTuple, "tuple", "tuple", &Describer::tuple},
                                      {TypeFlag::kDict, "dict", "dict", &Describer::dict},
                                      {TypeFlag::kType, "type", "type", &Describer::type}};
    for (const Kind& kind : kKinds) {
      // Later versions use the flag of 2.7's int for something else (3.10: Py_TPFLAGS_DISALLOW_INSTANTIATION
      // and neighbours).
      if (kind.flag == TypeFlag::kInteger2 && !layout_.traits.python2) continue;
      if ((flags & kind.flag) != 0) return &kind;
    }
    return nullptr;
  }

  template <class T>
  bool load(RemoteAddress at, T& value) {
    return memory_.read_value(at, value);
  }

  // A bool has the flag of int in 2.7, and that of long in 3.
  std::string truth(RemoteAddress object) {
    const auto value = objects_.integer(object);
    return !value ? kUnreadable : *value != 0 ? "True" : "False";
  }
  std::string integer(RemoteAddress object) {
    const auto value = objects_.integer(object);
    if (value) return std::to_string(*value);
    return value.error().kind == FaultKind::too_large ? "<int beyond 64 bits>" : kUnreadable;
  }
  std::string number(RemoteAddress object) {
    double value = 0;
    if (!layout_.real.ob_fval.present() || !load(object + *layout_.real.ob_fval, value)) return kUnreadable;
    return float_text(value);
  }
  std::string text(RemoteAddress object) {
    // 2.7's unicode has one of two widths, by build; the layout row does not say which.
    if (layout_.traits.python2) return "<unicode object>";
    const auto value = objects_.string(object, limits_.characters);
    return value ? quoted(*value) : kUnreadable;
  }
  std::string bytes(RemoteAddress object) {
    uint64_t size = 0;
    if (!load(object + *layout_.bytes.ob_size, size)) return kUnreadable;
    std::vector<char> content(std::min<uint64_t>(size, limits_.characters));
    if (!content.empty() &&
        !memory_.read(object + *layout_.bytes.ob_sval, std::as_writable_bytes(std::span(content)))) {
      return kUnreadable;
    }
    std::string out;
    constexpr char kHex[] = "0123456789abcdef";
    for (char c : content) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80) {
        out += c;
      } else {
        out += "\\x";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
      }
    }
    if (size > content.size()) out += "…";
    return (layout_.traits.python2 ? "" : "b") + quoted(out);
  }
  static constexpr uint64_t kMostSize = uint64_t{1} << 48;
  // The first items of a larger table are not read.
  static constexpr uint64_t kMostTable = 4096;

  static std::string counted(std::string_view open, uint64_t size, std::string_view close) {
    return fmt::format("{}{} item{}{}", open, size, size == 1 ? "" : "s", close);
  }
  // `item(i)` is the text of the i-th of `count` items; `size` is that of the container.
  template <class Item>
  std::string listed(std::string_view open, uint64_t size, std::string_view close, size_t count,
                     Item&& item) {
    contents_ = false;
    std::string out(open);
    size_t shown = 0;
    for (; shown < count && out.size() < open.size() + limits_.contents; ++shown)
      out += (shown == 0 ? "" : ", ") + item(shown);
    contents_ = true;
    if (shown < size) out += fmt::format("{}… {} more", shown == 0 ? "" : ", ", size - shown);
    return out.append(close);
  }
  std::string sequence(RemoteAddress size_at, RemoteAddress items, std::string_view open,
                       std::string_view close) {
    uint64_t size = 0;
    if (!load(size_at, size) || size > kMostSize) return kUnreadable;
    if (!contents_) return counted(open, size, close);
    std::vector<RemoteAddress> first(std::min<uint64_t>(size, limits_.items));
    if (!first.empty() &&
        (!is_plausible(items) || !memory_.read(items, std::as_writable_bytes(std::span(first))))) {
      return counted(open, size, close);
    }
    if (size == 1 && open == "(") close = ",)";
    return listed(open, size, close, first.size(), [&](size_t i) { return describe_as_is(first[i]); });
  }
  std::string list(RemoteAddress object) {
    const auto items = objects_.pointer(object + *layout_.list.ob_item);
    return sequence(object + *layout_.list.ob_size, items ? *items : RemoteAddress{}, "[", "]");
  }
  std::string tuple(RemoteAddress object) {
    return sequence(object + *layout_.tuple.ob_size, object + *layout_.tuple.ob_item, "(", ")");
  }
  std::string dict(RemoteAddress object) {
    uint64_t size = 0;
    if (!load(object + *layout_.dict.ma_used, size) || size > kMostSize) return kUnreadable;
    if (!contents_ || size > kMostTable) return counted("{", size, "}");
    const auto table = objects_.dict(object);
    if (!table) return counted("{", size, "}");
    return listed("{", size, "}", std::min(table->size(), limits_.items), [&](size_t i) {
      return describe_as_is((*table)[i].key) + ": " + describe_as_is((*table)[i].value);
    });
  }
  // Include/cpython/setobject.h (2.7: Include/setobject.h): fill, used, mask and the table follow the head.
  // Its entries are key and hash; in 2.7, hash and key. A removed entry has the hash -1, in 2.7 a special
  // key.
  std::string set(RemoteAddress object, std::string_view empty, std::string_view open,
                  std::string_view close) {
    struct {
      int64_t fill, used;
      uint64_t mask, table;
    } head{};
    if (!load(object + *layout_.object.size, head) || head.used < 0 || head.used > int64_t{1} << 48)
      return kUnreadable;
    const auto size = static_cast<uint64_t>(head.used);
    if (size == 0) return std::string(empty);
    const RemoteAddress table(head.table);
    if (!contents_ || head.mask >= kMostTable || (head.mask & (head.mask + 1)) != 0 || !is_plausible(table))
      return counted(open, size, close);
    std::vector<std::array<uint64_t, 2>> entries(head.mask + 1);
    if (!memory_.read(table, std::as_writable_bytes(std::span(entries)))) return counted(open, size, close);
    std::vector<std::string> items;
    contents_ = false;
    for (const auto& entry : entries) {
      if (items.size() == std::min<uint64_t>(size, limits_.items)) break;
      const RemoteAddress key(entry[layout_.traits.python2 ? 1 : 0]);
      if (!key || (!layout_.traits.python2 && entry[1] == ~uint64_t{0})) continue;
      std::string text = describe_as_is(key);
      if (!layout_.traits.python2 || text != "'<dummy key>'") items.push_back(std::move(text));
    }
    return listed(open, size, close, items.size(), [&](size_t i) { return items[i]; });
  }
  std::string type(RemoteAddress object) {
    const auto name = objects_.pointer(object + *layout_.type.tp_name);
    char text[128] = {};
    if (!name || !is_plausible(*name)) return kUnreadable;
    const uint64_t size = std::min<uint64_t>(sizeof text - 1, 4096 - name->value % 4096);
    if (!memory_.read(*name, std::as_writable_bytes(std::span(text)).first(size))) return kUnreadable;
    return "<class " + quoted(text) + ">";
  }

  const Layout& layout_;
  memory::RemoteMemory& memory_;
  ObjectReader objects_;
  const LocalsLimits& limits_;
  bool contents_ = true;
};

// The variables of a code object, in the order of its frames' slots.
struct Variables {
  std::vector<RemoteAddress> names;
  std::vector<uint8_t> kinds;
  size_t arguments = 0;
};

Read<void> append_names(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress tuple, size_t most,
                        uint8_t kind, Variables& into) {
  uint64_t size = 0;
  if (!is_plausible(tuple)) return fault(FaultKind::implausible, tuple);
  if (!memory.read_value(tuple + *layout.tuple.ob_size, size)) return fault(FaultKind::unreadable, tuple);
  // No code object has more variables than fit into the compiler's int; names beyond the limit are not read.
  if (size > uint64_t{1} << 31) return fault(FaultKind::implausible, tuple);
  std::vector<RemoteAddress> names(std::min<uint64_t>(size, most));
  if (!names.empty() &&
      !memory.read(tuple + *layout.tuple.ob_item, std::as_writable_bytes(std::span(names)))) {
    return fault(FaultKind::unreadable, tuple);
  }
  into.names.insert(into.names.end(), names.begin(), names.end());
  into.kinds.resize(into.names.size(), kind);
  return {};
}

Read<Variables> read_variables(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress code,
                               size_t most) {
  const auto& fields = layout.code;
  ObjectReader objects(layout, memory);
  Variables out;
  uint32_t flags = 0, argcount = 0, keyword_only = 0;
  if (!memory.read_value(code + *fields.flags, flags) ||
      !memory.read_value(code + *fields.argcount, argcount) ||
      (fields.kwonlyargcount.present() && !memory.read_value(code + *fields.kwonlyargcount, keyword_only))) {
    return fault(FaultKind::unreadable, code);
  }
  if ((flags & kOptimized) == 0) return out;
  out.arguments =
      size_t{argcount} + keyword_only + ((flags & Code::kVarArgs) != 0) + ((flags & Code::kVarKeywords) != 0);
  if (fields.localsplusnames.present()) {
    const auto names = objects.pointer(code + *fields.localsplusnames);
    const auto kinds = objects.pointer(code + *fields.localspluskinds);
    if (!names) return tl::unexpected(names.error());
    if (!kinds) return tl::unexpected(kinds.error());
    if (const auto done = append_names(layout, memory, *names, most, 0, out); !done)
      return tl::unexpected(done.error());
    if (!out.kinds.empty() &&
        !memory.read(*kinds + *layout.bytes.ob_sval, std::as_writable_bytes(std::span(out.kinds)))) {
      return fault(FaultKind::unreadable, *kinds);
    }
    return out;
  }
  uint8_t kind = 0;
  for (Offset field : {fields.varnames, fields.cellvars, fields.freevars}) {
    if (!field.present()) return fault(FaultKind::unsupported, code);
    const auto names = objects.pointer(code + *field);
    if (!names) return tl::unexpected(names.error());
    const auto done = append_names(layout, memory, *names, most - out.names.size(), kind, out);
    if (!done) return tl::unexpected(done.error());
    kind = kCell;
  }
  return out;
}

}  // namespace

std::string describe_object(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress object,
                            const LocalsLimits& limits) {
  return Describer(layout, memory, limits).describe(object);
}

Read<std::vector<Local>> read_locals(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress frame,
                                     RemoteAddress code, const LocalsLimits& limits) {
  if (!is_plausible(frame) || !is_plausible(code)) return fault(FaultKind::implausible, frame);
  if (!layout.frame.localsplus.present()) return fault(FaultKind::unsupported, frame);
  const auto variables = read_variables(layout, memory, code, limits.variables);
  if (!variables) return tl::unexpected(variables.error());
  std::vector<uint64_t> words(variables->names.size());
  const RemoteAddress slots = frame + *layout.frame.localsplus;
  if (!words.empty() && !memory.read(slots, std::as_writable_bytes(std::span(words)))) {
    return fault(FaultKind::unreadable, slots);
  }
  ObjectReader objects(layout, memory);
  Describer describer(layout, memory, limits);
  std::vector<Local> locals;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint8_t kind = variables->kinds[i];
    if ((kind & kHidden) != 0) continue;
    Local local;
    local.argument = i < variables->arguments;
    const auto name = objects.string(variables->names[i], kMaxNameBytes);
    local.name = name ? *name : "?";
    uint64_t word = words[i];
    if (layout.traits.tagged_executable) {
      // _PyStackRef (3.14+): the two low bits are a tag; with 3, the word itself is an integer.
      if ((word & 3) == 3) {
        local.value = std::to_string(static_cast<int64_t>(word) >> 2);
        locals.push_back(std::move(local));
        continue;
      }
      word &= ~uint64_t{3};
    }
    if (word == 0) continue;
    if ((kind & (kCell | kFree)) != 0) {
      // A variable shared with an inner function is in a cell; an argument only after the function has made
      // that cell.
      const auto type = objects.type_of(RemoteAddress(word));
      if (type && type->name == "cell") {
        const auto content = objects.pointer(RemoteAddress(word) + *layout.object.size);
        word = content ? content->value : 0;
        if (word == 0) continue;
      }
    }
    local.value = describer.describe(RemoteAddress(word));
    locals.push_back(std::move(local));
  }
  std::stable_sort(locals.begin(), locals.end(),
                   [](const Local& a, const Local& b) { return a.argument && !b.argument; });
  return locals;
}

}  // namespace phlox::python
