// Code objects: name, file, lines. Three steps, so that little happens while a thread is held:
//   capture_code  copies the raw bytes from the target (two or three system calls, nothing decoded);
//   decode_code   makes a Code of them, elsewhere, later, reading nothing;
//   CodeIdentity  keeps the proof, for each later sample, that the same code object is still at that address.
// Addresses are reused: a Code is only as good as the last proof. Strings are complete, whatever their
// length, up to the caps below; a longer one is truncated and marked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/layout.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

// Longest string and line table that are copied, in bytes: the profiler must not have to hold everything that
// a target puts into its names. No readable name is that long; a line of code takes 2 to 6 bytes of a table,
// so 4 MiB are a million lines in one function.
inline constexpr size_t kMaxStringBytes = size_t{128} << 10;
inline constexpr size_t kMaxLineTableBytes = size_t{4} << 20;

// A copied object: its head and as much of its content as could be read.
struct CapturedObject {
  RemoteAddress address;  // none: a NULL pointer
  uint32_t offset = 0;    // into CodeCapture::bytes
  uint32_t head = 0;      // bytes of the object copied from its start; content that follows the head included
  RemoteAddress content_address;  // of its content
  uint32_t content_offset = 0;    // into CodeCapture::bytes
  uint32_t content = 0;           // bytes of it that were copied
  bool cut = false;               // there is more than the cap
};

// Raw bytes of one code object and of the objects that it points to. Reuse one to reuse its memory.
struct CodeCapture {
  enum Part : uint8_t { name, qualname, filename, linetable, kParts };

  RemoteAddress address;
  std::vector<std::byte> bytes;  // the code object's struct first
  uint32_t struct_size = 0;
  std::array<CapturedObject, kParts> parts;
  RemoteAddress type;  // ob_type: the same for every code object of a process
  RemoteAddress first_instruction;
  uint32_t code_size = 0;  // bytes of instructions
};

// Copies the code object at `address`. The objects that it points to must not change meanwhile, or the result
// of decode_code() may be a mixture. Allocates only if `into.bytes` must grow.
Read<void> capture_code(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress address,
                        CodeCapture& into);

struct Code {
  // CPython's co_flags (Include/cpython/code.h).
  enum Flag : uint32_t {
    kVarArgs = 0x4,
    kVarKeywords = 0x8,
    kGenerator = 0x20,
    kCoroutine = 0x80,
    kIterableCoroutine = 0x100,
    kAsyncGenerator = 0x200
  };

  std::string name;            // UTF-8; lone surrogates as \udcXX
  std::string qualified_name;  // equal to name where this Python keeps none (before 3.11)
  std::string file;
  int32_t first_line = 0;
  uint32_t flags = 0;
  bool cut = false;  // a string or the line table was longer than its cap
  // The interpreter's own code (3.13+: the frame below a specialised __init__): not a frame to show.
  bool shim = false;
  std::vector<std::byte> line_table;
  LineTable line_table_kind = LineTable::pep657;
  RemoteAddress first_instruction;
  uint32_t code_size = 0;

  // The line of an instruction_offset(); 0: none.
  int32_t line(int32_t offset) const;
};

Read<Code> decode_code(const Layout& layout, const CodeCapture& capture);

// Both at once, for callers that have time.
Read<Code> read_code(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress address);

// The start of the instructions that a frame runs: in the code object or, in free-threaded builds of 3.14+,
// in the copy of its thread (co_tlbc's entry number tlbc_index; _PyFrame_GetBytecode in
// Include/internal/pycore_interpframe.h). None: not known. Memory as in walk_frames().
template <class Memory>
RemoteAddress bytecode_of_frame(const Layout& layout, RemoteAddress frame, RemoteAddress code,
                                RemoteAddress first_instruction, Memory& memory) {
  if (!layout.frame.tlbc_index.present() || !layout.code.tlbc.present() ||
      !layout.tlbc_array.entries.present()) {
    return first_instruction;
  }
  auto word = [&memory](RemoteAddress at, auto& value) {
    const std::byte* bytes = is_plausible(at) ? memory.find(at, sizeof value) : nullptr;
    if (bytes != nullptr) std::memcpy(&value, bytes, sizeof value);
    return bytes != nullptr;
  };
  int32_t index = 0;
  uint64_t copies = 0, count = 0, copy = 0;
  if (!word(frame + *layout.frame.tlbc_index, index)) return {};
  if (index == 0) return first_instruction;  // the first entry is the code object's own
  if (!word(code + *layout.code.tlbc, copies)) return {};
  const RemoteAddress entries = RemoteAddress(copies) + *layout.tlbc_array.entries;
  if (!word(entries - sizeof count, count)) return {};  // Py_ssize_t size comes before them
  if (index < 0 || static_cast<uint64_t>(index) >= count) return {};
  if (!word(entries + static_cast<uint64_t>(index) * 8, copy)) return {};
  return RemoteAddress(copy);
}

// The bytes that must be unchanged if a cached Code is still the code object at its address. 3.12+: one range
// of the struct, with co_version in it, unique in the life of an interpreter. Before, strings are recycled
// too (38 % of recycled code objects had equal pointers on 3.11), so the range of the struct plus head and
// content of each string and of the line table.
class CodeIdentity {
 public:
  struct Item {
    RemoteAddress address;
    uint32_t size = 0;
    uint32_t offset = 0;  // of the kept bytes
  };
  // The compared part of a string's or table's content: usually all of it (a page costs 0.1 us to copy), of a
  // longer one the first and the last half of this. Its length, and for names mostly its hash, are in the
  // head.
  static constexpr uint32_t kContentBytes = 4096;

  CodeIdentity() = default;
  CodeIdentity(const Layout& layout, const CodeCapture& capture);

  std::span<const Item> items() const { return {items_.data(), count_}; }
  bool empty() const { return count_ == 0; }
  bool matches(const Item& item, const std::byte* now) const {
    return std::memcmp(bytes_.data() + item.offset, now, item.size) == 0;
  }
  // Memory as in walk_frames(): find(address, size) returns bytes or nullptr.
  template <class Memory>
  bool holds(Memory& memory) const {
    for (const Item& item : items()) {
      const std::byte* now = memory.find(item.address, item.size);
      if (now == nullptr || !matches(item, now)) return false;
    }
    return count_ != 0;
  }

 private:
  std::array<Item, 1 + 3 * CodeCapture::kParts> items_;
  uint32_t count_ = 0;
  std::vector<std::byte> bytes_;
};

// The word of Traits::code_epoch for this interpreter state. None: there is no such word, its place is not
// known, or it has run out (a version of 0); then each code object has to be proved by itself. Memory as in
// walk_frames(). A frame keeps its code object alive: while the word has the value that it had when a sample
// proved a code object, a frame with that address has that code object.
template <class Memory>
std::optional<uint64_t> code_epoch(const Interpreter& interpreter, RemoteAddress state, Memory& memory) {
  auto word = [&](RemoteAddress at, auto value) -> std::optional<uint64_t> {
    const std::byte* bytes = at ? memory.find(at, sizeof value) : nullptr;
    if (bytes == nullptr) return {};
    std::memcpy(&value, bytes, sizeof value);
    return value != 0 ? std::optional<uint64_t>(value) : std::nullopt;
  };
  const auto& fields = interpreter.layout.interpreter;
  switch (interpreter.layout.traits.code_epoch) {
    case CodeEpoch::none:
      break;
    case CodeEpoch::global_version:
      return word(interpreter.next_func_version, uint32_t{});
    case CodeEpoch::interpreter_version:
      return word(state + *fields.func_state_next_version, uint32_t{});
    case CodeEpoch::generation:
      return word(state + *fields.code_object_generation, uint64_t{});
  }
  return {};
}

// Whether such a word can be right, given a code object that was made before it was read: if the word numbers
// code objects, their co_version is below it.
bool epoch_follows(const Layout& layout, const CodeCapture& capture, uint64_t epoch);

}  // namespace phlox::python
