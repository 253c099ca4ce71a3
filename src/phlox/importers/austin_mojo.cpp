#include "phlox/importers/austin_mojo.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/importers/austin_rows.h"
#include "phlox/importers/byte_stream.h"

namespace phlox::importers {
namespace {

constexpr std::string_view kMojoMagic = "MOJ";
constexpr int64_t kNewest = 4;
constexpr size_t kLongestText = 65536;
constexpr size_t kMostKeys = 4'000'000;
constexpr size_t kMostTextBytes = size_t{256} << 20;
// Python's own limit can be raised; frames beyond this one are dropped.
constexpr size_t kMostMojoFrames = 65536;

enum Event : uint8_t {
  metadata = 1,
  stack = 2,
  frame = 3,
  invalid_frame = 4,
  frame_reference = 5,
  kernel_frame = 6,
  collecting = 7,
  idle = 8,
  time_metric = 9,
  memory_metric = 10,
  text_event = 11,
  text_reference = 12,
  repeat = 13,
};

// What austin numbers. The numbers are valid within one process only.
struct Key {
  int64_t pid = 0, number = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const noexcept {
    return Spread()(static_cast<uint64_t>(key.number) ^ static_cast<uint64_t>(key.pid) << 40);
  }
};

// The first byte holds a sign and six bits, each further one seven.
int64_t read_number(ByteStream& in) {
  uint8_t next = in.byte();
  const bool negative = (next & 0x40U) != 0;
  uint64_t value = next & 0x3fU;
  for (unsigned shift = 6; (next & 0x80U) != 0 && shift < 63; shift += 7) {
    next = in.byte();
    value |= uint64_t{next & 0x7fU} << shift;
  }
  const auto number = static_cast<int64_t>(value & std::numeric_limits<int64_t>::max());
  return negative ? -number : number;
}

int32_t line_of(int64_t number) {
  return number > 0 && number <= std::numeric_limits<int32_t>::max() ? static_cast<int32_t>(number) : 0;
}

class MojoImport {
 public:
  MojoImport(Input& input, profile::Sink& sink) : in_(input, kMojoMagic.size()), rows_(sink, true) {}

  Result<ImportOutcome> run() {
    version_ = read_number(in_);
    if (version_ < 1 || version_ > kNewest) {
      return fail(ErrorKind::input, fmt::format("MOJO of version {} is not known", version_),
                  "mojo2austin of the same austin makes text of it, which is read");
    }
    while (!in_.at_end() && !strange_) take_event();
    // The stack at the file's end is complete if its metric was read.
    if (measured_) end_stack();
    ImportOutcome out = rows_.finish("MOJO", refused_, in_.failed());
    if (strange_)
      out.warnings.push_back(fmt::format("event {} is not known: what follows was not read", *strange_));
    return out;
  }

 private:
  void take_event() {
    const auto event = static_cast<Event>(in_.byte());
    switch (event) {
      case metadata: {
        const std::string key = in_.c_string(kLongestText);
        return rows_.metadata(key, in_.c_string(kLongestText));
      }
      case stack:
        return begin_stack();
      case frame:
        return take_frame();
      case invalid_frame:
        sample_.invalid = true;
        return push({rows_.invalid_frame(), false});
      case frame_reference:
        return take_reference();
      case kernel_frame:
        return push({rows_.kernel_frame(in_.c_string(kLongestText)), false});
      case collecting:
        sample_.collecting = true;
        return;
      case idle:
        sample_.idle = true;
        return;
      case time_metric:
        sample_.microseconds = read_number(in_);
        measured_ = !in_.failed();
        return;
      case memory_metric:
        read_number(in_);
        measured_ = !in_.failed();
        return;
      case text_event:
        return take_text();
      case text_reference:
        read_number(in_);
        return;
      case repeat:
        if (version_ < 4) break;
        return take_repeat();
    }
    strange_ = event;
  }

  void begin_stack() {
    end_stack();
    open_ = true;
    pid_ = read_number(in_);
    const int64_t interpreter = version_ >= 3 ? read_number(in_) : 0;
    sensible_ = pid_ >= 0 && pid_ <= std::numeric_limits<int32_t>::max();
    sample_.pid = sensible_ ? static_cast<int32_t>(pid_) : 0;
    sample_.thread = fmt::format("{}:{}", interpreter, in_.c_string(kLongestText));
  }

  void end_stack() {
    if (open_ && sensible_ && measured_) {
      // Full metrics say for each sample whether it was idle.
      if (rows_.mode() == "full" && !sample_.idle) sample_.idle = false;
      if (version_ >= 4 && !sample_.invalid) remember();
      sample_.stack = rows_.interner().stack(frames_, repeated_);
      rows_.put(sample_);
    } else if (open_) {
      ++refused_;
    }
    open_ = measured_ = false;
    sample_ = {};
    repeated_ = {};
    frames_.clear();
    python_frames_ = 0;
  }

  void push(AustinFrame frame) {
    if (frames_.size() >= kMostMojoFrames) return;
    frames_.push_back(frame.id);
    if (frame.is_python) python_frames_ = frames_.size();
  }

  // Remembers what the thread's next sample may repeat: the stack down to the innermost Python function.
  void remember() {
    const auto python = std::span(std::as_const(frames_)).first(python_frames_);
    std::string thread = fmt::format("{}:{}", sample_.pid, sample_.thread);
    if (const auto found = last_.find(thread); found != last_.end()) {
      found->second = rows_.interner().stack(python, repeated_);
    } else if (last_.size() < kMostKeys && text_bytes_ <= kMostTextBytes) {
      text_bytes_ += thread.size();
      last_.emplace(std::move(thread), rows_.interner().stack(python, repeated_));
    }
  }

  // The thread has the Python frames of its previous sample again; C frames of the current one may come
  // before or after the event.
  void take_repeat() {
    const auto found = last_.find(fmt::format("{}:{}", sample_.pid, sample_.thread));
    if (!open_ || found == last_.end()) {
      sensible_ = false;
    } else {
      repeated_ = found->second;
    }
  }

  // Defines a frame; stacks refer to it, outermost frame first.
  void take_frame() {
    const int64_t key = read_number(in_);
    const int64_t file = read_number(in_), function = read_number(in_), line = read_number(in_);
    if (version_ >= 2) {
      for (int i = 0; i < 3; ++i) read_number(in_);  // end line, columns
    }
    if (in_.failed()) return;
    const AustinFrame made = rows_.frame(text_of(file), text_of(function), line_of(line));
    if (known_.size() < kMostKeys || known_.contains({pid_, key})) known_[{pid_, key}] = made;
  }

  void take_reference() {
    const auto found = known_.find({pid_, read_number(in_)});
    if (found != known_.end()) return push(found->second);
    sensible_ = false;
  }

  void take_text() {
    const int64_t key = read_number(in_);
    std::string words = in_.c_string(kLongestText);
    if (texts_.size() >= kMostKeys || text_bytes_ > kMostTextBytes) return;
    text_bytes_ += words.size();
    texts_[{pid_, key}] = std::move(words);
  }

  std::string_view text_of(int64_t key) const {
    const auto found = texts_.find({pid_, key});
    return found == texts_.end() ? std::string_view("<unknown>") : std::string_view(found->second);
  }

  ByteStream in_;
  AustinRows rows_;
  int64_t version_ = 0;
  std::unordered_map<Key, std::string, KeyHash> texts_;
  std::unordered_map<Key, AustinFrame, KeyHash> known_;
  std::unordered_map<std::string, profile::StackId> last_;  // by process and thread
  size_t text_bytes_ = 0;
  int64_t pid_ = 0;
  AustinSample sample_;
  profile::StackId repeated_;  // the stack below frames_
  std::vector<profile::FrameId> frames_;
  size_t python_frames_ = 0;  // up to the innermost Python frame
  bool open_ = false, measured_ = false, sensible_ = true;
  std::optional<int> strange_;
  uint64_t refused_ = 0;
};

}  // namespace

bool recognise_austin_mojo(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.size() > kMojoMagic.size() && text.starts_with(kMojoMagic) && text[kMojoMagic.size()] > 0 &&
         text[kMojoMagic.size()] < 32;
}

Result<ImportOutcome> import_austin_mojo(Input& input, const ImportOptions&, profile::Sink& sink) {
  return MojoImport(input, sink).run();
}

}  // namespace phlox::importers
