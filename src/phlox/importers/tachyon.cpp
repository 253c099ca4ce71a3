#include "phlox/importers/tachyon.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "phlox/base/byte_reader.h"
#include "phlox/importers/byte_stream.h"
#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/tachyon_frames.h"

namespace phlox::importers {
namespace {

constexpr uint32_t kTachyonMagic = 0x54414348;  // "TACH", in the byte order of the writer
constexpr size_t kHeader = 64, kFooter = 32;
constexpr uint32_t kVersion = 1;
constexpr size_t kLargestTable = size_t{256} << 20, kLargestPiped = size_t{1} << 30;
constexpr size_t kMostTachyonFrames = 65536;  // of a stack
constexpr size_t kMostHeld = 16'000'000;      // frames of the last stacks of all threads
constexpr size_t kMostTachyonThreads = 1'000'000;
// A hundred years in microseconds.
constexpr uint64_t kLongestTachyonTime = 3'150'000'000'000'000;

enum Compression : uint32_t { compression_none = 0, compression_zstd = 1 };
enum Encoding : uint8_t { repeat_stack = 0, full = 1, suffix = 2, pop_push = 3 };
enum Status : uint8_t { has_gil = 1, on_cpu = 2, cpu_unknown = 4, wants_gil = 8 };
// _remote_debugging.PROFILING_MODE_*, plus one; 0: unknown. In the bits above, 3.15.2 stores what was
// captured.
constexpr uint32_t kModes = 7;
constexpr std::string_view kModeNames[] = {"unknown", "wall", "cpu", "gil", "all", "exception", "6", "7"};

struct Header {
  uint32_t version = 0;
  uint8_t python[3] = {};
  uint64_t start = 0, interval = 0, samples = 0;  // microseconds, microseconds, count
  uint64_t strings_at = 0, frames_at = 0;
  uint32_t compression = 0, mode = 0;
  bool swapped = false;

  // Whether every thread was sampled each time, so that the time between two samples belongs to the thread.
  bool is_timed() const { return mode == 1 || mode == 4; }
};

class Fields {
 public:
  Fields(std::span<const std::byte> bytes, bool swapped) : in_(bytes), swapped_(swapped) {}
  uint32_t u32() { return swapped_ ? __builtin_bswap32(in_.read<uint32_t>()) : in_.read<uint32_t>(); }
  uint64_t u64() { return swapped_ ? __builtin_bswap64(in_.read<uint64_t>()) : in_.read<uint64_t>(); }
  uint8_t byte() { return in_.read<uint8_t>(); }

 private:
  ByteReader in_;
  bool swapped_;
};

std::optional<Header> parse_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeader) return std::nullopt;
  Header out;
  uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  out.swapped = magic == __builtin_bswap32(kTachyonMagic);
  if (magic != kTachyonMagic && !out.swapped) return std::nullopt;
  Fields in(bytes.subspan(sizeof magic), out.swapped);
  out.version = in.u32();
  for (uint8_t& part : out.python) part = in.byte();
  in.byte();
  out.start = in.u64();
  out.interval = in.u64();
  out.samples = in.u64();
  in.u32();  // threads
  out.strings_at = in.u64();
  out.frames_at = in.u64();
  out.compression = in.u32();
  out.mode = in.u32() & kModes;
  return out;
}

int64_t zigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// A thread's last stack, and its samples since the stack changed.
struct ThreadState {
  profile::ThreadId id;
  uint64_t time = 0;  // of the last sample, since the start
  bool seen = false;
  std::vector<profile::StackId> stacks;  // of its frames, root first
  profile::Sample sample;
  uint64_t samples = 0;
};

class TachyonImport {
 public:
  TachyonImport(Input& input, const Header& header, profile::Sink& sink)
      : input_(input),
        header_(header),
        rows_(sink, fmt::format("Tachyon {}.{}.{}", header.python[0], header.python[1], header.python[2])),
        process_(rows_.process(0, "")) {}

  Result<ImportOutcome> run() {
    const uint64_t size = input_.size().value_or(0);
    cut_ = header_.strings_at < kHeader || header_.frames_at < header_.strings_at || !has_footer(size);
    read_strings(size);
    read_frames(size);
    if (header_.compression == compression_zstd) {
      read_packed(std::min(header_.strings_at, size));
    } else {
      ByteStream in(input_, kHeader, header_.strings_at);
      read_samples(in);
    }
    for (auto& [key, thread] : threads_) flush(thread);
    return finish();
  }

 private:
  bool has_footer(uint64_t size) {
    std::byte bytes[kFooter];
    if (size < kHeader + kFooter || input_.read_at(size - kFooter, bytes) < kFooter) return false;
    Fields in(bytes, header_.swapped);
    in.u32();
    frame_count_ = in.u32();
    return in.u64() == size;
  }

  std::vector<std::byte> table(uint64_t from, uint64_t to) {
    std::vector<std::byte> bytes(from < to ? std::min<uint64_t>(to - from, kLargestTable) : 0);
    bytes.resize(input_.read_at(from, bytes));
    return bytes;
  }

  void read_strings(uint64_t size) {
    const auto bytes = table(header_.strings_at, std::min(header_.frames_at, size));
    ByteReader in(bytes);
    while (!in.at_end()) {
      const auto text = in.bytes(in.uleb128());
      if (in.failed()) return;
      strings_.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
  }

  void read_frames(uint64_t size) {
    const auto bytes = table(header_.frames_at, size);
    ByteReader in(bytes);
    while (!in.at_end() && (cut_ || frames_.size() < frame_count_)) {
      const uint64_t file = in.uleb128(), function = in.uleb128();
      const int64_t line = zigzag(in.uleb128());
      for (int i = 0; i < 3; ++i) in.uleb128();  // end line, and columns
      in.read<uint8_t>();                        // the instruction
      if (in.failed()) return;
      const bool known = file < strings_.size() && function < strings_.size();
      frames_.push_back(known
                            ? rows_.interner().frame(tachyon_frame(strings_[file], strings_[function], line))
                            : unnamed_frame());
    }
  }

  profile::FrameId unnamed_frame() {
    profile::Frame frame;
    frame.kind = profile::FrameKind::marker;
    frame.function = frame.qualified_name = "(a function whose name is not in the file)";
    return rows_.interner().frame(frame);
  }

  void read_packed(uint64_t end) {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> unpacker(ZSTD_createDStream(),
                                                                              ZSTD_freeDStream);
    uint64_t at = kHeader;
    std::vector<std::byte> piece(std::min<uint64_t>(ZSTD_DStreamInSize(), end > at ? end - at : 0));
    ZSTD_inBuffer packed{piece.data(), 0, 0};
    ByteStream in([&](std::span<std::byte> into) {
      ZSTD_outBuffer out{into.data(), into.size(), 0};
      while (out.pos == 0) {
        if (packed.pos == packed.size) {
          const auto wanted = std::min<uint64_t>(piece.size(), end > at ? end - at : 0);
          packed = {piece.data(), input_.read_at(at, std::span(piece).first(wanted)), 0};
          at += packed.size;
          if (packed.size == 0) return size_t{0};
        }
        if (ZSTD_isError(ZSTD_decompressStream(unpacker.get(), &out, &packed))) {
          damaged_ = true;
          return out.pos;
        }
      }
      return out.pos;
    });
    read_samples(in);
  }

  void read_samples(ByteStream& in) {
    while (!in.at_end() && !damaged_ && read_record(in)) {
    }
    cut_ |= in.failed();
  }

  // False: invalid or incomplete.
  bool read_record(ByteStream& in) {
    uint64_t number = in.u64();
    uint32_t interpreter = in.u32();
    const uint8_t encoding = in.byte();
    if (in.failed()) return false;
    if (header_.swapped) {
      number = __builtin_bswap64(number);
      interpreter = __builtin_bswap32(interpreter);
    }
    ThreadState* thread = thread_of(number, interpreter);
    if (thread == nullptr || encoding > pop_push) return senseless();
    if (encoding == repeat_stack) {
      for (uint64_t left = in.uleb128(); left > 0; --left) {
        const uint64_t delta = in.uleb128();
        const uint8_t status = in.byte();
        if (in.failed()) return false;
        add_sample(*thread, delta, status);
      }
      return !in.failed();
    }
    const uint64_t delta = in.uleb128();
    const uint8_t status = in.byte();
    const uint64_t first = encoding == full ? 0 : in.uleb128();
    const uint64_t depth = thread->stacks.size();
    if (encoding != full && first > depth) return senseless();
    const uint64_t kept = encoding == full ? 0 : encoding == suffix ? first : depth - first;
    const uint64_t fresh = in.uleb128();
    if (fresh > kMostTachyonFrames || kept + fresh > kMostTachyonFrames ||
        held_ - depth + kept + fresh > kMostHeld)
      return senseless();
    fresh_.clear();
    for (uint64_t i = 0; i < fresh && !in.failed(); ++i) fresh_.push_back(in.uleb128());
    if (in.failed()) return false;
    held_ = held_ - depth + kept + fresh;
    thread->stacks.resize(kept);
    // They are stored leaf first.
    for (size_t i = fresh_.size(); i-- > 0;) {
      const auto frame = fresh_[i] < frames_.size() ? frames_[fresh_[i]] : unnamed_frame();
      thread->stacks.push_back(
          rows_.interner().stack(thread->stacks.empty() ? profile::StackId() : thread->stacks.back(), frame));
    }
    add_sample(*thread, delta, status);
    return true;
  }

  bool senseless() {
    damaged_ = true;
    return false;
  }

  ThreadState* thread_of(uint64_t number, uint32_t interpreter) {
    const auto [at, fresh] = threads_.try_emplace({number, interpreter});
    if (threads_.size() > kMostTachyonThreads) return nullptr;
    if (fresh) {
      const std::string name = interpreter == 0 ? "" : fmt::format("interpreter {}", interpreter);
      const bool is_kernels = number <= static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
      at->second.id = rows_.thread(process_, is_kernels ? static_cast<int32_t>(number) : 0,
                                   is_kernels ? name : fmt::format("{:#x} {}", number, name));
    }
    return &at->second;
  }

  // Adds one sample of a thread, with its current stack.
  void add_sample(ThreadState& thread, uint64_t delta, uint8_t status) {
    // The delta of a thread's first sample began when Tachyon did, perhaps before the thread.
    uint64_t weight = thread.seen ? delta : std::min(delta, header_.interval);
    if (delta > kLongestTachyonTime || thread.time > kLongestTachyonTime - delta) {
      ++refused_;
      return;
    }
    thread.seen = true;
    thread.time += delta;
    profile::Sample sample;
    sample.thread = thread.id;
    sample.stack = thread.stacks.empty() ? profile::StackId() : thread.stacks.back();
    if ((status & on_cpu) != 0 && (status & cpu_unknown) == 0) sample.cpu_state = profile::CpuState::running;
    sample.gil_state = (status & has_gil) != 0     ? profile::GilState::holds
                       : (status & wants_gil) != 0 ? profile::GilState::waits
                                                   : profile::GilState::none;
    if (!header_.is_timed()) weight = 0;
    sample.wall = static_cast<Nanoseconds>(weight * 1000);
    sample.start = static_cast<Nanoseconds>((thread.time - weight) * 1000);
    longest_ = std::max(longest_, static_cast<Nanoseconds>(thread.time * 1000));
    const profile::Sample& before = thread.sample;
    const bool same = thread.samples > 0 && header_.is_timed() && before.stack == sample.stack &&
                      before.cpu_state == sample.cpu_state && before.gil_state == sample.gil_state &&
                      before.start + before.wall == sample.start;
    if (same) {
      thread.sample.wall += sample.wall;
    } else {
      flush(thread);
      thread.sample = sample;
    }
    ++thread.samples;
  }

  void flush(ThreadState& thread) {
    if (thread.samples > 0) rows_.sample(thread.sample, thread.samples);
    thread.samples = 0;
  }

  ImportOutcome finish() {
    ImportOutcome out = rows_.finish(
        longest_,
        fmt::format("Tachyon of Python {}.{}.{}: {} samples of {} threads, mode {}{}", header_.python[0],
                    header_.python[1], header_.python[2], rows_.samples(), threads_.size(),
                    kModeNames[header_.mode],
                    header_.is_timed() ? "" : "; they are counted, since it tells of no time between them"));
    if (cut_ || damaged_) {
      out.warnings.push_back(fmt::format("the file is cut or damaged: {} of {} samples were read",
                                         rows_.samples(), header_.samples));
    }
    if (refused_ > 0)
      out.warnings.push_back(fmt::format("{} samples have a senseless time and were left out", refused_));
    return out;
  }

  Input& input_;
  Header header_;
  ForeignRows rows_;
  profile::ProcessId process_;
  uint32_t frame_count_ = 0;
  std::vector<std::string> strings_;
  std::vector<profile::FrameId> frames_;
  std::map<std::pair<uint64_t, uint32_t>, ThreadState> threads_;
  std::vector<uint64_t> fresh_;
  size_t held_ = 0;
  Nanoseconds longest_ = 0;
  uint64_t refused_ = 0;
  bool cut_ = false, damaged_ = false;
};

}  // namespace

bool recognise_tachyon(std::span<const std::byte> head) {
  const auto header = parse_header(head);
  return header && header->version > 0 && header->version < 65536;
}

Result<ImportOutcome> import_tachyon(Input& input, const ImportOptions&, profile::Sink& sink) {
  // Names are at the end: input without random access is read whole.
  if (!input.size()) {
    const auto all = read_all(input, kLargestPiped);
    if (!all) return fail(ErrorKind::input, "more than 1 GiB of a pipe is not read");
    MemoryInput whole(std::as_bytes(std::span(*all)));
    return import_tachyon(whole, {}, sink);
  }
  std::vector<std::byte> head(kHeader);
  head.resize(input.read_at(0, head));
  const auto header = parse_header(head);
  if (!header) return fail(ErrorKind::input, "no file of Tachyon");
  if (header->version != kVersion || header->compression > compression_zstd) {
    return fail(ErrorKind::input,
                fmt::format("Tachyon's format of version {}, compression {} is not known", header->version,
                            header->compression),
                "python3.15 -m profiling.sampling replay --collapsed makes text of it, which is read");
  }
  return TachyonImport(input, *header, sink).run();
}

}  // namespace phlox::importers
