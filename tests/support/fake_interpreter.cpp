#include "support/fake_interpreter.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace phlox::test {
namespace {

// Start of the fake memory: a plausible heap address.
constexpr uint64_t kStart = 0x7f00'0000'0000;
constexpr size_t kSize = size_t{4} << 30;  // reserved; pages are allocated when written
constexpr size_t kChunk = 16 * 1024;       // DATA_STACK_CHUNK_SIZE of Python/pystate.c
constexpr size_t kCStack = 16 << 20;       // some 30,000 evaluations
constexpr size_t kCFrameDistance = 512;    // of C stack per evaluation, apart from its frame
constexpr uint32_t kStackSlots = 8;        // co_stacksize

// tp_flags from Include/object.h.
constexpr uint64_t kLong = 1UL << 24, kTuple = 1UL << 26, kBytes = 1UL << 27, kUnicode = 1UL << 28;

std::vector<uint32_t> characters(const std::string& utf8) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < utf8.size();) {
    const auto first = static_cast<uint8_t>(utf8[i]);
    const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t c = length == 1 ? first : first & (0xffU >> (length + 1));
    for (size_t k = 1; k < length; ++k) c = c << 6 | (static_cast<uint8_t>(utf8.at(i + k)) & 63U);
    out.push_back(c);
    i += length;
  }
  return out;
}

}  // namespace

FakeMemory::FakeMemory() {
  void* bytes =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) throw std::bad_alloc();
  bytes_ = static_cast<std::byte*>(bytes);
}

FakeMemory::~FakeMemory() {
  ::munmap(bytes_, kSize);
}

bool FakeMemory::readable(uint64_t address, size_t size) const {
  const uint64_t end = kStart + ((used_ + 4095) & ~uint64_t{4095});
  if (address < kStart || address >= end || size > end - address) return false;
  return std::none_of(holes_.begin(), holes_.end(), [&](const Hole& h) {
    return address < h.address + h.size && h.address < address + size;
  });
}

size_t FakeMemory::read(std::span<const memory::Range> ranges) {
  ++calls_;
  ranges_ += ranges.size();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!readable(ranges[i].address.value, ranges[i].into.size())) return i;
    std::memcpy(ranges[i].into.data(), bytes_ + (ranges[i].address.value - kStart), ranges[i].into.size());
  }
  return ranges.size();
}

const std::byte* FakeMemory::find(RemoteAddress address, size_t size) {
  return readable(address.value, size) ? bytes_ + (address.value - kStart) : nullptr;
}

RemoteAddress FakeMemory::allocate(size_t size, size_t alignment) {
  used_ = (used_ + alignment - 1) / alignment * alignment;
  const RemoteAddress address(kStart + used_);
  used_ += size;
  if (used_ > kSize) throw std::bad_alloc();
  return address;
}

void FakeMemory::put(RemoteAddress address, std::span<const std::byte> bytes) {
  if (address.value < kStart || address.value - kStart + bytes.size() > used_) {
    throw std::out_of_range("write beyond what was allocated");
  }
  if (!bytes.empty()) std::memcpy(bytes_ + (address.value - kStart), bytes.data(), bytes.size());
}

void FakeMemory::make_unreadable(RemoteAddress address, size_t size) {
  holes_.push_back({address.value, size});
}

FakeInterpreter::FakeInterpreter(const python::Layout& layout) : layout_(layout) {
  auto size_or = [](python::Offset size, size_t otherwise) {
    return size.present() ? std::max<size_t>(*size, 4096) : otherwise;
  };
  constexpr size_t kRoomy = 2 << 20;
  memory_.allocate(4096);
  runtime_ = memory_.allocate(size_or(layout.runtime.size, kRoomy), 64);
  state_ = memory_.allocate(size_or(layout.interpreter.size, kRoomy), 64);
  if (layout.traits.code_epoch == python::CodeEpoch::global_version) next_func_version_ = memory_.allocate(4);
  const bool has_runtime = layout.runtime.interpreters_head.present();
  if (has_runtime) {
    set(runtime_, layout.runtime.interpreters_head, state_);
    set(runtime_, layout.runtime.interpreters_main, state_);
    head_word_ = runtime_ + *layout.runtime.interpreters_head;
  } else {
    head_word_ = memory_.allocate(8);
    memory_.put_value(head_word_, state_.value);
    runtime_ = {};
  }
  if (has_runtime && layout.runtime.tstate_current.present()) {
    current_word_ = runtime_ + *layout.runtime.tstate_current;
  } else if (!has_runtime) {
    current_word_ = memory_.allocate(8);
  }
  set(state_, layout.interpreter.id, int64_t{0});
  switch (layout.traits.gil) {
    case python::GilOwner::symbols:
      break;
    case python::GilOwner::runtime:
      if (layout.runtime.gil.present()) gil_ = runtime_ + *layout.runtime.gil;
      break;
    case python::GilOwner::interpreter:
      gil_ = layout.interpreter.gil.present() ? state_ + *layout.interpreter.gil : memory_.allocate(256);
      set(state_, layout.interpreter.ceval_gil, gil_);
      break;
  }
  if (gil_) set(gil_, layout.gil_state.locked, int32_t{0});
}

python::Interpreter FakeInterpreter::interpreter() const {
  python::Interpreter out;
  out.layout = layout_;
  out.major = layout_.major;
  out.minor = layout_.minor;
  out.version = std::to_string(out.major) + "." + std::to_string(out.minor) + ".0";
  out.build = layout_.traits.free_threaded ? "free-threaded" : "default";
  out.found_by = "fake";
  out.runtime = runtime_;
  out.interpreters_head = head_word_;
  out.tstate_current = current_word_;
  if (layout_.traits.gil == python::GilOwner::runtime) out.gil = gil_;
  out.next_func_version = next_func_version_;
  return out;
}

FakeThread& FakeInterpreter::thread() {
  return threads_.empty() ? new_thread() : threads_.front();
}

FakeThread& FakeInterpreter::new_thread() {
  threads_.push_back(FakeThread(*this, threads_.size()));
  return threads_.back();
}

void FakeInterpreter::hold_gil(const FakeThread* thread) {
  const uint64_t state = thread != nullptr ? thread->state().value : 0;
  if (current_word_) memory_.put_value(current_word_, state);
  if (gil_) {
    if (thread != nullptr) set(gil_, layout_.gil_state.last_holder, state);
    set(gil_, layout_.gil_state.locked, static_cast<int32_t>(thread != nullptr));
  }
  for (const FakeThread& one : threads_) {
    set(one.state(), layout_.thread.holds_gil, static_cast<int32_t>(&one == thread));
  }
}

void FakeInterpreter::set_collecting(bool collecting) {
  set(state_, layout_.interpreter.gc_collecting, static_cast<int32_t>(collecting));
}

uint32_t FakeInterpreter::end_of(std::initializer_list<python::Offset> fields) const {
  uint32_t end = 0;
  for (python::Offset field : fields) {
    if (field.present()) end = std::max(end, *field + 8);
  }
  return end;
}

RemoteAddress FakeInterpreter::type(const std::string& name, uint64_t flags) {
  auto found = types_.find(name);
  if (found != types_.end()) return found->second;
  const RemoteAddress address = memory_.allocate(1024);
  const RemoteAddress text = memory_.allocate(name.size() + 1);
  memory_.put(text, std::as_bytes(std::span(name)));
  set(address, layout_.type.tp_name, text);
  set(address, layout_.type.tp_flags, flags);
  return types_[name] = address;
}

RemoteAddress FakeInterpreter::object(const std::string& type_name, uint64_t flags, size_t size) {
  const RemoteAddress address = memory_.allocate(std::max<size_t>(size, 16));
  set(address, layout_.object.ob_refcnt, int64_t{1});
  set(address, layout_.object.ob_type, type(type_name, flags));
  return address;
}

RemoteAddress FakeInterpreter::none() {
  if (!none_) none_ = object("NoneType", 0, 16);
  return none_;
}

RemoteAddress FakeInterpreter::real(double value) {
  const RemoteAddress address = object("float", 0, 32);
  set(address, layout_.real.ob_fval, value);
  return address;
}

RemoteAddress FakeInterpreter::integer(int64_t value) {
  const auto& fields = layout_.integer;
  if (layout_.traits.python2 && fields.ob_ival.present()) {
    const RemoteAddress address = object("int", 1UL << 23, 32);
    set(address, fields.ob_ival, value);
    return address;
  }
  const RemoteAddress address = object("int", kLong, 64);
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  uint32_t digits = 0;
  for (; rest != 0; rest >>= 30, ++digits) {
    memory_.put_value(address + *fields.ob_digit + digits * 4, static_cast<uint32_t>(rest & 0x3fffffff));
  }
  if (fields.lv_tag.present()) {
    set(address, fields.lv_tag, uint64_t{digits} << 3 | (value < 0 ? 2U : value == 0 ? 1U : 0U));
  } else {
    set(address, fields.ob_size, value < 0 ? -int64_t{digits} : int64_t{digits});
  }
  return address;
}

RemoteAddress FakeInterpreter::bytes(std::span<const std::byte> content) {
  const RemoteAddress address = object(layout_.traits.python2 ? "str" : "bytes", kBytes,
                                       end_of({layout_.bytes.ob_sval}) + content.size());
  set(address, layout_.bytes.ob_size, static_cast<uint64_t>(content.size()));
  memory_.put(address + *layout_.bytes.ob_sval, content);
  return address;
}

RemoteAddress FakeInterpreter::tuple(std::span<const RemoteAddress> items) {
  const RemoteAddress address = object("tuple", kTuple, end_of({layout_.tuple.ob_item}) + 8 * items.size());
  set(address, layout_.tuple.ob_size, static_cast<uint64_t>(items.size()));
  for (size_t i = 0; i < items.size(); ++i)
    memory_.put_value(address + *layout_.tuple.ob_item + 8 * i, items[i].value);
  return address;
}

RemoteAddress FakeInterpreter::string(const std::string& utf8) {
  return make_string(utf8, true);
}
RemoteAddress FakeInterpreter::legacy_string(const std::string& utf8) {
  return make_string(utf8, false);
}

RemoteAddress FakeInterpreter::make_string(const std::string& utf8, bool compact) {
  if (layout_.traits.python2) return bytes(std::as_bytes(std::span(utf8)));
  const std::vector<uint32_t> text = characters(utf8);
  const uint32_t highest = text.empty() ? 0 : *std::max_element(text.begin(), text.end());
  const uint32_t width = highest < 0x100 ? 1 : highest < 0x10000 ? 2 : 4;
  const bool ascii = highest < 0x80;
  std::vector<std::byte> content;
  for (uint32_t c : text) {
    for (uint32_t i = 0; i < width; ++i) content.push_back(static_cast<std::byte>(c >> (8 * i)));
  }
  const auto& fields = layout_.unicode;
  const uint32_t head = ascii ? *fields.asciiobject_size : *fields.compactobject_size;
  const RemoteAddress address =
      object(compact ? "str" : "MyStr", kUnicode,
             end_of({fields.data, fields.length, fields.state}) + head + content.size() + 4);
  set(address, fields.length, static_cast<uint64_t>(text.size()));
  const uint32_t state = width | (compact ? 8U : 0U) | (ascii ? 16U : 0U);
  set(address, fields.state, state << layout_.traits.unicode_kind_shift);
  RemoteAddress place = address + head;
  if (!compact) {
    place = memory_.allocate(content.size() + 4);
    set(address, fields.data, place);
  }
  memory_.put(place, content);
  return address;
}

std::vector<std::byte> FakeInterpreter::line_table(const FakeCode& code) const {
  std::vector<std::byte> table;
  auto add = [&table](uint32_t byte) { table.push_back(static_cast<std::byte>(byte)); };
  for (uint32_t i = 0; i < code.instructions; ++i) {
    switch (layout_.traits.lines) {
      case python::LineTable::lnotab_unsigned:
      case python::LineTable::lnotab:
        if (i != 0) add(2), add(1);
        break;
      case python::LineTable::pep626:
        add(2), add(i != 0);
        break;
      case python::LineTable::pep657:
        add(0x80 | 13 << 3), add(i != 0 ? 2 : 0);
        break;
    }
  }
  return table;
}

void FakeInterpreter::fill_code(RemoteAddress address, const FakeCode& code) {
  const auto& fields = layout_.code;
  set(address, fields.name, string(code.name));
  set(address, fields.qualname, string(code.qualname.empty() ? code.name : code.qualname));
  set(address, fields.filename, string(code.file));
  set(address, fields.firstlineno, code.first_line);
  set(address, fields.flags, code.flags);
  set(address, fields.argcount, code.arguments);
  set(address, fields.nlocals, static_cast<uint32_t>(code.variables.size()));
  set(address, fields.nlocalsplus, static_cast<uint32_t>(code.variables.size()));
  set(address, fields.linetable, bytes(line_table(code)));
  set(address, fields.version, next_version_++);
  set_epoch(next_version_);
  std::vector<RemoteAddress> names;
  for (const std::string& name : code.variables) names.push_back(string(name));
  const RemoteAddress variables = tuple(names);
  set(address, fields.varnames, variables);
  set(address, fields.localsplusnames, variables);
  constexpr std::byte kFastLocal{0x20};
  set(address, fields.localspluskinds, bytes(std::vector(code.variables.size(), kFastLocal)));
  const RemoteAddress empty = tuple({});
  set(address, fields.cellvars, empty);
  set(address, fields.freevars, empty);
  if (fields.code_adaptive.present()) {
    set(address, layout_.bytes.ob_size, uint64_t{code.instructions});
  } else {
    set(address, fields.code, bytes(std::vector(size_t{code.instructions} * 2, std::byte{9})));
  }
  codes_[address] = code;
}

void FakeInterpreter::set_epoch(uint32_t value) {
  switch (layout_.traits.code_epoch) {
    case python::CodeEpoch::none:
      break;
    case python::CodeEpoch::global_version:
      memory_.put_value(next_func_version_, value);
      break;
    case python::CodeEpoch::interpreter_version:
      set(state_, layout_.interpreter.func_state_next_version, value);
      break;
    case python::CodeEpoch::generation:
      set(state_, layout_.interpreter.code_object_generation, uint64_t{value});
      break;
  }
}

RemoteAddress FakeInterpreter::make_code(const FakeCode& code) {
  const auto& fields = layout_.code;
  const size_t head =
      std::max(fields.size.present() ? *fields.size : 0U,
               end_of({fields.name, fields.filename, fields.linetable, fields.qualname, fields.flags,
                       fields.version, fields.firstlineno, fields.code, fields.code_adaptive}));
  const RemoteAddress address = object("code", 0, head + 2 * size_t{code.instructions});
  fill_code(address, code);
  return address;
}

void FakeInterpreter::replace_code(RemoteAddress address, const FakeCode& code) {
  fill_code(address, code);
}

RemoteAddress FakeInterpreter::bytecode(RemoteAddress code, int32_t index) {
  constexpr uint32_t kCopies = 16;
  const auto& fields = layout_.code;
  const RemoteAddress own = code + *fields.code_adaptive;
  if (index == 0 || !fields.tlbc.present() || !layout_.frame.tlbc_index.present()) return own;
  RemoteAddress copies(memory_.get<uint64_t>(code + *fields.tlbc));
  if (!copies) {
    copies = memory_.allocate(8 + 8 * kCopies);
    memory_.put_value(copies, uint64_t{kCopies});
    memory_.put_value(copies + *layout_.tlbc_array.entries, own.value);
    set(code, fields.tlbc, copies);
  }
  const RemoteAddress entry = copies + *layout_.tlbc_array.entries + 8 * static_cast<uint64_t>(index);
  if (memory_.get<uint64_t>(entry) == 0) {
    memory_.put_value(entry, memory_.allocate(2 * size_t{codes_.at(code).instructions}).value);
  }
  return RemoteAddress(memory_.get<uint64_t>(entry));
}

RemoteAddress FakeInterpreter::code(const std::string& name) {
  auto found = named_codes_.find(name);
  if (found != named_codes_.end()) return found->second;
  FakeCode code;
  code.name = name;
  code.first_line = static_cast<int32_t>(10 * (named_codes_.size() + 1));
  return named_codes_[name] = make_code(code);
}

FakeThread::FakeThread(FakeInterpreter& interpreter, size_t index) : fake_(interpreter) {
  const auto& layout = fake_.layout_;
  FakeMemory& memory = fake_.memory_;
  state_ =
      memory.allocate(layout.thread.size.present() ? std::max<size_t>(*layout.thread.size, 1024) : 65536, 64);
  c_stack_ = memory.allocate(kCStack, 4096) + kCStack;
  native_id_ = static_cast<int32_t>(1000 + index);
  python_id_ = (c_stack_ - 64).value;  // glibc: the address of the thread's control block
  fake_.set(state_, layout.thread.interp, fake_.state_);
  fake_.set(state_, layout.thread.thread_id, python_id_);
  fake_.set(state_, layout.thread.native_thread_id, uint64_t{static_cast<uint32_t>(native_id_)});
  fake_.set(state_, layout.thread.id, static_cast<uint64_t>(index + 1));
  // The newest thread is first (Python/pystate.c).
  const RemoteAddress head = fake_.state_ + *layout.interpreter.threads_head;
  const auto old = memory.get<uint64_t>(head);
  fake_.set(state_, layout.thread.next, old);
  if (old != 0) fake_.set(RemoteAddress(old), layout.thread.prev, state_);
  memory.put_value(head, state_.value);
  if (layout.thread.base_frame.present()) {
    base_ = memory.allocate(256);
    fake_.set(base_, layout.frame.owner, layout.traits.owner.entry);
    fake_.set(state_, layout.thread.base_frame, base_);
    FakeFrame sentinel;
    sentinel.address = base_;
    sentinel.entry = true;
    frames_.push_back(sentinel);
  }
  if (layout.thread.cframe.present()) {
    last_cframe_ = memory.allocate(64);  // root_cframe
    fake_.set(state_, layout.thread.cframe, last_cframe_);
  }
  publish();
}

RemoteAddress FakeThread::place(size_t size) {
  const auto& layout = fake_.layout_;
  FakeMemory& memory = fake_.memory_;
  size = (size + 7) & ~size_t{7};
  if (!layout.traits.has_data_stack) return memory.allocate(size);
  if (chunks_.empty() || chunks_.back().limit - chunks_.back().top < size) {
    const uint32_t data = layout.chunk.data.present() ? *layout.chunk.data : 24;
    const size_t whole = std::max(kChunk, (size + data + 4095) & ~size_t{4095});
    const RemoteAddress chunk = memory.allocate(whole, 4096);
    fake_.set(chunk, layout.chunk.size, uint64_t{whole});
    if (!chunks_.empty()) {
      const Chunk& old = chunks_.back();
      fake_.set(chunk, layout.chunk.previous, old.address);
      fake_.set(old.address, layout.chunk.top, (old.top - (old.address + data)) / 8);
    }
    // The first word of the first chunk stays unused (push_chunk in Python/pystate.c).
    chunks_.push_back({chunk, chunk + data + (chunks_.empty() ? 8 : 0), chunk + whole});
  }
  const RemoteAddress address = chunks_.back().top;
  chunks_.back().top = address + size;
  return address;
}

void FakeThread::begin_evaluation() {
  const auto& layout = fake_.layout_;
  Evaluation evaluation;
  evaluation.first_frame = frames_.size();
  c_stack_ = c_stack_ - kCFrameDistance;
  if (layout.thread.cframe.present()) {
    evaluation.cframe = c_stack_ + 64;
    fake_.set(evaluation.cframe, layout.cframe.previous, last_cframe_);
    last_cframe_ = evaluation.cframe;
    fake_.set(state_, layout.thread.cframe, last_cframe_);
  }
  evaluations_.push_back(evaluation);
  if (layout.traits.owner.entry == 255) return;
  FakeFrame entry;
  entry.address = c_stack_ + 128;
  entry.entry = true;
  fake_.set(entry.address, layout.frame.previous, frames_.empty() ? RemoteAddress() : frames_.back().address);
  fake_.set(entry.address, layout.frame.owner, layout.traits.owner.entry);
  frames_.push_back(entry);
}

void FakeThread::set_instruction(FakeFrame& frame, int32_t line) {
  const auto& layout = fake_.layout_;
  const FakeCode& code = fake_.code_at(frame.code);
  if (line == 0) line = code.first_line;
  frame.line = line;
  frame.offset = 2 * (line - code.first_line);
  if (frame.offset < 0 || frame.offset >= static_cast<int32_t>(2 * code.instructions)) {
    throw std::out_of_range("a line outside the fake code");
  }
  switch (layout.traits.instruction) {
    case python::InstructionUnit::lasti_bytes:
    case python::InstructionUnit::lasti_code_units: {
      const bool units = layout.traits.instruction == python::InstructionUnit::lasti_code_units;
      frame.instruction = static_cast<uint64_t>(units ? frame.offset / 2 : frame.offset);
      fake_.set(frame.address, layout.frame.instr, static_cast<int32_t>(frame.instruction));
      break;
    }
    case python::InstructionUnit::prev_instr:
    case python::InstructionUnit::instr_ptr:
      frame.instruction =
          (frame.code + *layout.code.code_adaptive + static_cast<uint64_t>(frame.offset)).value;
      fake_.set(frame.address, layout.frame.instr, frame.instruction);
      break;
  }
}

FakeThread& FakeThread::push(RemoteAddress code, int32_t line, bool new_evaluation, bool generator) {
  const auto& layout = fake_.layout_;
  const bool first = evaluations_.empty() || new_evaluation;
  if (first) begin_evaluation();
  const FakeCode& what = fake_.code_at(code);
  const uint32_t head = layout.frame.localsplus.present() ? *layout.frame.localsplus : 96;
  const size_t size = head + 8 * (what.variables.size() + kStackSlots);
  FakeFrame frame;
  frame.address = generator ? fake_.memory_.allocate(size + 128) + 72 : place(size);
  const std::vector<std::byte> blank(size);
  fake_.memory_.put(frame.address, blank);
  frame.code = code;
  frame.name = what.name;
  const RemoteAddress back = frames_.empty() ? RemoteAddress() : frames_.back().address;
  fake_.set(frame.address, layout.frame.previous, back);
  fake_.set(frame.address, layout.frame.executable, code.value | (layout.traits.tagged_executable ? 1U : 0U));
  fake_.set(frame.address, layout.frame.owner,
            generator ? layout.traits.owner.generator : layout.traits.owner.thread);
  fake_.set(frame.address, layout.frame.is_entry, static_cast<uint8_t>(first));
  frame.entry = first && layout.frame.is_entry.present() && layout.traits.owner.entry == 255;
  set_instruction(frame, line);
  frames_.push_back(frame);
  publish();
  return *this;
}

void FakeThread::publish() {
  const auto& layout = fake_.layout_;
  const RemoteAddress top = frames_.empty() ? RemoteAddress() : frames_.back().address;
  fake_.set(state_, layout.thread.frame, top);
  fake_.set(state_, layout.thread.current_frame, top);
  if (last_cframe_) fake_.set(last_cframe_, layout.cframe.current_frame, top);
  if (!chunks_.empty()) {
    fake_.set(state_, layout.thread.datastack_chunk, chunks_.back().address);
    fake_.set(state_, layout.thread.datastack_top, chunks_.back().top);
    fake_.set(state_, layout.thread.datastack_limit, chunks_.back().limit);
  }
}

FakeThread& FakeThread::calls(const std::string& function, int32_t line) {
  return calls(fake_.code(function), line);
}
FakeThread& FakeThread::calls(RemoteAddress code, int32_t line) {
  return push(code, line, false, false);
}
FakeThread& FakeThread::enters(const std::string& function, int32_t line) {
  return enters(fake_.code(function), line);
}
FakeThread& FakeThread::enters(RemoteAddress code, int32_t line) {
  return push(code, line, true, false);
}
FakeThread& FakeThread::resumes(const std::string& generator, int32_t line) {
  return push(fake_.code(generator), line, false, true);
}

FakeThread& FakeThread::returns() {
  const auto& layout = fake_.layout_;
  const RemoteAddress gone = frames_.back().address;
  frames_.pop_back();
  if (!chunks_.empty() && gone >= chunks_.back().address && gone < chunks_.back().limit) {
    chunks_.back().top = gone;
    const uint32_t data = layout.chunk.data.present() ? *layout.chunk.data : 24;
    if (chunks_.size() > 1 && gone == chunks_.back().address + data) chunks_.pop_back();
  }
  const size_t first_frame = evaluations_.back().first_frame;
  const bool has_entry_frame = layout.traits.owner.entry != 255;
  if (frames_.size() == first_frame + (has_entry_frame ? 1 : 0)) {
    if (has_entry_frame) frames_.pop_back();
    if (evaluations_.back().cframe) {
      last_cframe_ =
          RemoteAddress(fake_.memory_.get<uint64_t>(evaluations_.back().cframe + *layout.cframe.previous));
      fake_.set(state_, layout.thread.cframe, last_cframe_);
    }
    evaluations_.pop_back();
    c_stack_ = c_stack_ + kCFrameDistance;
  }
  publish();
  return *this;
}

FakeThread& FakeThread::at_line(int32_t line) {
  set_instruction(frames_.back(), line);
  return *this;
}

FakeThread& FakeThread::with_bytecode_copy(int32_t index) {
  bytecode_copy_ = index;
  return *this;
}

FakeThread& FakeThread::locals(std::initializer_list<RemoteAddress> values) {
  RemoteAddress slot = frames_.back().address + *fake_.layout_.frame.localsplus;
  for (RemoteAddress value : values) {
    fake_.memory_.put_value(slot, value.value);
    slot = slot + 8;
  }
  return *this;
}

std::vector<FakeFrame> FakeThread::stack() const {
  return {frames_.rbegin(), frames_.rend()};
}

std::vector<std::string> FakeThread::names() const {
  std::vector<std::string> names;
  for (const FakeFrame& frame : frames_) {
    if (frame.code) names.push_back(frame.name);
  }
  return names;
}

}  // namespace phlox::test
