// An interpreter that never ran: the memory of a process with runtime, threads, GIL, data stack, frames, code
// objects and strings, laid out by a Layout of any version. Fields that the row does not have are skipped.
//
//   FakeInterpreter fake(layout);
//   fake.thread().calls("main").calls("work", 12);
//   walk(layout, fake.thread().state(), fake.memory());   // finds fake.thread().stack()
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/layout.h"

namespace phlox::test {

// Memory of a process that does not exist. Also a Memory as walk_frames() takes it (find).
class FakeMemory : public memory::RemoteMemory {
 public:
  FakeMemory();
  ~FakeMemory() override;

  size_t read(std::span<const memory::Range> ranges) override;
  using RemoteMemory::read;
  const std::byte* find(RemoteAddress address, size_t size);

  // Unused, zeroed bytes.
  RemoteAddress allocate(size_t size, size_t alignment = 16);
  void put(RemoteAddress address, std::span<const std::byte> bytes);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put_value(RemoteAddress address, T value) { put(address, std::as_bytes(std::span<T>(&value, 1))); }
  template <class T>
  T get(RemoteAddress address) {
    T value{};
    const std::byte* bytes = find(address, sizeof value);
    if (bytes != nullptr) std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  // Makes reads in this range fail.
  void make_unreadable(RemoteAddress address, size_t size);
  void make_readable() { holes_.clear(); }

  size_t calls() const { return calls_; }    // to read()
  size_t ranges() const { return ranges_; }  // in those calls

 private:
  struct Hole {
    uint64_t address, size;
  };
  bool readable(uint64_t address, size_t size) const;

  std::byte* bytes_;
  uint64_t used_ = 0;
  std::vector<Hole> holes_;
  size_t calls_ = 0, ranges_ = 0;
};

// Contents of a fake code object. Instruction k (two bytes each) is on line first_line + k.
struct FakeCode {
  std::string name = "f";     // UTF-8
  std::string qualname = {};  // empty: the name
  std::string file = "/app/main.py";
  int32_t first_line = 1;
  uint32_t instructions = 100;
  uint32_t flags = 0;
  std::vector<std::string> variables = {};  // arguments first
  uint32_t arguments = 0;
};

// A frame in the fake memory, as a walk should find it.
struct FakeFrame {
  RemoteAddress address;
  RemoteAddress code;        // none: an entry frame (3.12+)
  uint64_t instruction = 0;  // as in RawFrame
  int32_t offset = 0;        // of the instruction, in bytes from the first one
  int32_t line = 0;
  bool entry = false;  // as in RawFrame
  std::string name;    // empty: an entry frame
};

class FakeInterpreter;

class FakeThread {
 public:
  // Python calls Python: a frame in the same evaluation of the interpreter loop. `line`: 0 is the first one.
  FakeThread& calls(const std::string& function, int32_t line = 0);
  FakeThread& calls(RemoteAddress code, int32_t line = 0);
  // C calls Python: a new evaluation of the loop, with its entry frame or cframe on the C stack if the
  // version has one. A thread's first call is always one.
  FakeThread& enters(const std::string& function, int32_t line = 0);
  FakeThread& enters(RemoteAddress code, int32_t line = 0);
  // Python resumes a generator, whose frame is in its heap object.
  FakeThread& resumes(const std::string& generator, int32_t line = 0);
  // The innermost call ends.
  FakeThread& returns();
  // The innermost frame moves on.
  FakeThread& at_line(int32_t line);
  // From now on its frames run copy number `index` of their instructions (free-threaded 3.14+).
  FakeThread& with_bytecode_copy(int32_t index);
  // Sets the innermost frame's variables.
  FakeThread& locals(std::initializer_list<RemoteAddress> values);

  RemoteAddress state() const { return state_; }
  uint64_t python_id() const { return python_id_; }
  int32_t native_id() const { return native_id_; }
  // Every frame, leaf first, including entry frames: the expected result of walk_frames().
  std::vector<FakeFrame> stack() const;
  // Function names, root first.
  std::vector<std::string> names() const;

 private:
  friend class FakeInterpreter;
  struct Evaluation {
    RemoteAddress cframe;
    size_t first_frame = 0;
  };
  struct Chunk {
    RemoteAddress address;
    RemoteAddress top, limit;
  };

  FakeThread(FakeInterpreter& interpreter, size_t index);
  FakeThread& push(RemoteAddress code, int32_t line, bool new_evaluation, bool generator);
  RemoteAddress place(size_t size);
  void begin_evaluation();
  void publish();
  void set_instruction(FakeFrame& frame, int32_t line);

  FakeInterpreter& fake_;
  RemoteAddress state_;
  RemoteAddress base_;     // 3.15's sentinel
  RemoteAddress c_stack_;  // grows down
  uint64_t python_id_ = 0;
  int32_t native_id_ = 0;
  std::vector<FakeFrame> frames_;  // root first
  std::vector<Evaluation> evaluations_;
  std::vector<Chunk> chunks_;
  RemoteAddress last_cframe_;
  int32_t bytecode_copy_ = 0;
};

class FakeInterpreter {
 public:
  // The layout must outlive it.
  explicit FakeInterpreter(const python::Layout& layout);

  const python::Layout& layout() const { return layout_; }
  FakeMemory& memory() { return memory_; }
  // As locate() would return it.
  python::Interpreter interpreter() const;
  RemoteAddress state() const { return state_; }  // PyInterpreterState

  // The main thread; created on first use.
  FakeThread& thread();
  FakeThread& new_thread();
  // nullptr: no thread holds it.
  void hold_gil(const FakeThread* thread);
  void set_collecting(bool collecting);

  // A function's code object, created on first use of the name.
  RemoteAddress code(const std::string& name);
  RemoteAddress make_code(const FakeCode& code);
  // Another code object at the same address, as after one was freed. The new one must not be larger.
  void replace_code(RemoteAddress address, const FakeCode& code);
  // The word that changes with every code object (Traits::code_epoch), if this Python has one.
  void set_epoch(uint32_t value);
  const FakeCode& code_at(RemoteAddress address) const { return codes_.at(address); }

  RemoteAddress string(const std::string& utf8);
  // A str whose characters are stored elsewhere, as in a subclass of str.
  RemoteAddress legacy_string(const std::string& utf8);
  RemoteAddress bytes(std::span<const std::byte> content);
  RemoteAddress tuple(std::span<const RemoteAddress> items);
  RemoteAddress none();
  RemoteAddress integer(int64_t value);
  RemoteAddress real(double value);
  // A class; `flags` are tp_flags.
  RemoteAddress type(const std::string& name, uint64_t flags = 0);

  // Writes a field if the row has it.
  template <class T>
  void set(RemoteAddress object, python::Offset field, T value) {
    if (field.present()) memory_.put_value(object + *field, value);
  }
  void set(RemoteAddress object, python::Offset field, RemoteAddress value) {
    set(object, field, value.value);
  }

 private:
  friend class FakeThread;
  RemoteAddress object(const std::string& type_name, uint64_t flags, size_t size);
  void fill_code(RemoteAddress address, const FakeCode& code);
  RemoteAddress make_string(const std::string& utf8, bool compact);
  std::vector<std::byte> line_table(const FakeCode& code) const;
  // Start of copy number `index` of its instructions; created on first use.
  RemoteAddress bytecode(RemoteAddress code, int32_t index);
  uint32_t end_of(std::initializer_list<python::Offset> fields) const;

  const python::Layout& layout_;
  FakeMemory memory_;
  RemoteAddress runtime_, state_, head_word_, current_word_, gil_, none_, next_func_version_;
  uint32_t next_version_ = 1;
  std::deque<FakeThread> threads_;
  std::map<std::string, RemoteAddress> named_codes_;
  std::map<std::string, RemoteAddress> types_;
  std::map<RemoteAddress, FakeCode> codes_;
};

}  // namespace phlox::test
