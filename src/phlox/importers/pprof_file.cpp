#include "phlox/importers/pprof_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/gzip_input.h"
#include "phlox/importers/pprof_input.h"
#include "phlox/importers/pprof_values.h"

namespace phlox::importers {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr size_t kMostPprofFrames = 8192;
constexpr int64_t kLongestPprofTime = int64_t{3'150'000'000} * kSecond;

struct ValueType {
  uint64_t type = 0, unit = 0;  // numbers of strings
};
struct PprofLine {
  uint64_t function = 0;
  int64_t line = 0;
};
struct Location {
  uint64_t mapping = 0, address = 0;
  std::vector<PprofLine> lines;  // inlined functions first
};
struct Function {
  uint64_t name = 0, system_name = 0, file = 0;
  int64_t start_line = 0;
};
struct Mapping {
  uint64_t start = 0, offset = 0, file = 0, build_id = 0;
};
struct Sample {
  std::vector<uint64_t> locations;  // leaf first
  std::vector<int64_t> values;
  std::vector<protozero::data_view> labels;
};

// A field with another type than in profile.proto: the reader itself only has an assert for that.
struct WrongType : protozero::exception {
  const char* what() const noexcept override { return "a field is of another type"; }
};

pbf_reader& of_type(pbf_reader& in, pbf_wire_type type) {
  if (!in.has_wire_type(type)) throw WrongType();
  return in;
}
uint64_t uint64_of(pbf_reader& in) {
  return of_type(in, pbf_wire_type::varint).get_uint64();
}
int64_t int64_of(pbf_reader& in) {
  return of_type(in, pbf_wire_type::varint).get_int64();
}
protozero::data_view view_of(pbf_reader& in) {
  return of_type(in, pbf_wire_type::length_delimited).get_view();
}
pbf_reader message_of(pbf_reader& in) {
  return of_type(in, pbf_wire_type::length_delimited).get_message();
}

ValueType parse_value_type(pbf_reader in) {
  ValueType out;
  while (in.next()) {
    if (in.tag() == 1) {
      out.type = static_cast<uint64_t>(int64_of(in));
    } else if (in.tag() == 2) {
      out.unit = static_cast<uint64_t>(int64_of(in));
    } else {
      in.skip();
    }
  }
  return out;
}

// A repeated number, packed as proto3 does it or one by one.
template <class Number>
void take_numbers(pbf_reader& in, std::vector<Number>& into) {
  if (!in.has_wire_type(pbf_wire_type::length_delimited)) {
    into.push_back(static_cast<Number>(uint64_of(in)));
    return;
  }
  for (const uint64_t value : in.get_packed_uint64()) into.push_back(static_cast<Number>(value));
}

class PprofImport {
 public:
  explicit PprofImport(profile::Sink& sink) : rows_(sink, ""), values_(sink) {}

  // Throws protozero::exception if the bytes are invalid.
  ImportOutcome run(std::string_view bytes) {
    std::vector<protozero::data_view> samples;
    pbf_reader in(bytes.data(), bytes.size());
    while (in.next()) take_field(in, samples);
    std::vector<PprofType> types;
    for (const ValueType& type : types_) types.push_back({word(type.type), word(type.unit)});
    values_.choose(types, word(default_type_), samples_fit(samples, place_of_samples(types)));
    for (const auto& sample : samples) put(parse_sample(pbf_reader(sample)));
    ImportOutcome out = rows_.finish(
        duration_, fmt::format("pprof: {} stacks; values: {}", samples.size(), names_of_values()));
    warn(out, values_.negative(),
         "value is below zero, as in a difference of two profiles: --event 'NAME (less)' shows what became "
         "less, --event NAME what became more",
         "values are below zero, as in a difference of two profiles: --event 'NAME (less)' shows what became "
         "less, --event NAME what became more");
    warn(out, fewer_,
         "sample has fewer values than there are types: the missing ones count as 0; pprof refuses such a "
         "file",
         "samples have fewer values than there are types: the missing ones count as 0; pprof refuses such a "
         "file");
    warn(
        out, more_,
        "sample has more values than there are types: the others were left out; pprof refuses such a file",
        "samples have more values than there are types: the others were left out; pprof refuses such a file");
    if (const auto left_out = word(drop_frames_); !left_out.empty())
      out.warnings.push_back(fmt::format(
          "pprof leaves out what functions like {:.100} call (drop_frames): it is shown here", left_out));
    if (values_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
    warn(out, deep_, "sample has more than 8192 frames and was left out",
         "samples have more than 8192 frames and were left out");
    warn(out, refused_, "sample is at a place that the file does not describe and was left out",
         "samples are at places that the file does not describe and were left out");
    return out;
  }

 private:
  void take_field(pbf_reader& in, std::vector<protozero::data_view>& samples) {
    switch (in.tag()) {
      case 1:
        types_.push_back(parse_value_type(message_of(in)));
        break;
      case 2:
        samples.push_back(view_of(in));
        break;
      case 3:
        take_mapping(message_of(in));
        break;
      case 4:
        take_location(message_of(in));
        break;
      case 5:
        take_function(message_of(in));
        break;
      case 6:
        strings_.push_back(view_of(in));
        break;
      case 7:
        drop_frames_ = static_cast<uint64_t>(int64_of(in));
        break;
      case 10:
        duration_ = std::clamp<int64_t>(int64_of(in), 0, kLongestPprofTime);
        break;
      case 14:
        default_type_ = static_cast<uint64_t>(int64_of(in));
        break;
      default:
        in.skip();
    }
  }

  void take_mapping(pbf_reader in) {
    uint64_t id = 0;
    Mapping mapping;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          id = uint64_of(in);
          break;
        case 2:
          mapping.start = uint64_of(in);
          break;
        case 4:
          mapping.offset = uint64_of(in);
          break;
        case 5:
          mapping.file = uint64_of(in);
          break;
        case 6:
          mapping.build_id = uint64_of(in);
          break;
        default:
          in.skip();
      }
    }
    // profile.proto: the first mapping is the program's.
    if (mappings_.empty()) program_ = mapping.file;
    mappings_[id] = mapping;
  }

  void take_location(pbf_reader in) {
    uint64_t id = 0;
    Location location;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          id = uint64_of(in);
          break;
        case 2:
          location.mapping = uint64_of(in);
          break;
        case 3:
          location.address = uint64_of(in);
          break;
        case 4: {
          PprofLine line;
          pbf_reader part = message_of(in);
          while (part.next()) {
            if (part.tag() == 1) {
              line.function = uint64_of(part);
            } else if (part.tag() == 2) {
              line.line = int64_of(part);
            } else {
              part.skip();
            }
          }
          location.lines.push_back(line);
          break;
        }
        default:
          in.skip();
      }
    }
    locations_[id] = std::move(location);
  }

  void take_function(pbf_reader in) {
    uint64_t id = 0;
    Function function;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          id = uint64_of(in);
          break;
        case 2:
          function.name = uint64_of(in);
          break;
        case 3:
          function.system_name = uint64_of(in);
          break;
        case 4:
          function.file = uint64_of(in);
          break;
        case 5:
          function.start_line = int64_of(in);
          break;
        default:
          in.skip();
      }
    }
    functions_[id] = function;
  }

  static Sample parse_sample(pbf_reader in) {
    Sample sample;
    while (in.next()) {
      if (in.tag() == 1) {
        take_numbers(in, sample.locations);
      } else if (in.tag() == 2) {
        take_numbers(in, sample.values);
      } else if (in.tag() == 3) {
        sample.labels.push_back(view_of(in));
      } else {
        in.skip();
      }
    }
    return sample;
  }

  // Whether each sample's value at that place fits a row's number of samples.
  static bool samples_fit(const std::vector<protozero::data_view>& samples, std::optional<size_t> place) {
    std::vector<int64_t> values;
    for (size_t i = 0; place && i < samples.size(); ++i) {
      values.clear();
      pbf_reader in(samples[i]);
      while (in.next()) in.tag() == 2 ? take_numbers(in, values) : in.skip();
      if (*place >= values.size()) continue;
      if (values[*place] < 0 || values[*place] > std::numeric_limits<uint32_t>::max()) return false;
    }
    return true;
  }

  std::string names_of_values() const {
    constexpr size_t kNamed = 8;
    std::string all;
    for (size_t i = 0; i < std::min(types_.size(), kNamed); ++i)
      all += (all.empty() ? "" : ", ") + fmt::format("{}/{}", word(types_[i].type), word(types_[i].unit));
    return all.empty() ? "none" : all + (types_.size() > kNamed ? ", ..." : "");
  }

  void put(const Sample& from) {
    profile::Sample sample;
    if (from.locations.size() > kMostPprofFrames) {
      ++deep_;
      return;
    }
    fewer_ += from.values.size() < types_.size();
    more_ += from.values.size() > types_.size();
    for (size_t i = from.locations.size(); i-- > 0;) {
      const auto found = locations_.find(from.locations[i]);
      if (found == locations_.end()) {
        ++refused_;
        return;
      }
      sample.stack = put_location(sample.stack, found->second);
    }
    sample.thread = thread_of(from);
    values_.put(sample, from.values, rows_);
  }

  profile::StackId put_location(profile::StackId stack, const Location& location) {
    const auto mapping = mappings_.find(location.mapping);
    profile::Frame frame;
    frame.kind = profile::FrameKind::native;
    if (mapping != mappings_.end() && !word(mapping->second.file).empty()) {
      frame.module = rows_.module(word(mapping->second.file), word(mapping->second.build_id));
      frame.address = location.address - mapping->second.start + mapping->second.offset;
    } else {
      frame.address = location.address;
    }
    if (location.lines.empty()) return rows_.interner().stack(stack, rows_.interner().frame(frame));
    for (size_t i = location.lines.size(); i-- > 0;) {
      const auto function = functions_.find(location.lines[i].function);
      profile::Frame named = frame;
      if (function != functions_.end()) {
        const auto name = word(function->second.name);
        profile::Frame parsed = frame_of_text(name.empty() ? word(function->second.system_name) : name);
        parsed.module = frame.module;
        parsed.address = frame.address;
        if (const auto file = word(function->second.file); !file.empty()) parsed.file = file;
        if (is_python_source(parsed.file)) {
          parsed.kind = profile::FrameKind::python;
          parsed.module = {};
          parsed.address = 0;
        }
        parsed.first_line = line_of(function->second.start_line);
        named = std::move(parsed);
      }
      if (location.lines[i].line > 0) named.line = line_of(location.lines[i].line);
      stack = rows_.interner().stack(stack, rows_.interner().frame(named));
    }
    return stack;
  }

  static int32_t line_of(int64_t line) {
    return line > 0 && line <= std::numeric_limits<int32_t>::max() ? static_cast<int32_t>(line) : 0;
  }

  struct Label {
    std::string key;  // in small letters, words apart
    std::string_view text;
    int64_t number = 0;
  };
  Label parse_label(const protozero::data_view& bytes) const {
    Label label;
    pbf_reader in(bytes);
    while (in.next()) {
      if (in.tag() == 1) {
        label.key = word(uint64_of(in));
      } else if (in.tag() == 2) {
        label.text = word(uint64_of(in));
      } else if (in.tag() == 3) {
        label.number = int64_of(in);
      } else {
        in.skip();
      }
    }
    for (char& c : label.key) c = c == '_' ? ' ' : 'A' <= c && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    std::from_chars(label.text.data(), label.text.data() + label.text.size(), label.number);
    return label;
  }

  // Labels of Pyroscope, Datadog and austin2pprof, which writes numbers as text.
  profile::ThreadId thread_of(const Sample& sample) {
    std::string_view name;
    int32_t pid = 0, tid = 0;
    for (const auto& bytes : sample.labels) {
      const Label label = parse_label(bytes);
      if (label.key == "thread" || label.key == "thread name") name = label.text;
      if (label.key == "thread id" || label.key == "tid") tid = line_of(label.number);
      if (label.key == "process id" || label.key == "pid") pid = line_of(label.number);
    }
    return rows_.thread(rows_.process(pid, word(program_)), tid, name);
  }

  std::string_view word(uint64_t index) const {
    if (index >= strings_.size()) return {};
    return {strings_[index].data(), strings_[index].size()};
  }

  ForeignRows rows_;
  std::vector<ValueType> types_;
  std::vector<protozero::data_view> strings_;
  std::unordered_map<uint64_t, Mapping> mappings_;
  std::unordered_map<uint64_t, Location> locations_;
  std::unordered_map<uint64_t, Function> functions_;
  PprofValues values_;
  uint64_t default_type_ = 0, program_ = 0, drop_frames_ = 0;
  int64_t duration_ = 0;
  uint64_t refused_ = 0, deep_ = 0, fewer_ = 0, more_ = 0;
};

// Writers begin with different fields: Go up to 1.25 with the first one, since 1.26 with the ninth, a time.
bool begins_a_profile(std::string_view bytes) {
  try {
    pbf_reader in(bytes.data(), bytes.size());
    while (in.next()) {
      const bool is_number = in.tag() == 9 || in.tag() == 10 || in.tag() == 12 || in.tag() == 14;
      if (in.tag() == 1) {
        const auto type = view_of(in);
        return type.size() > 0 && type.size() <= 12 && (type.data()[0] == '\x08' || type.data()[0] == '\x10');
      }
      if (in.tag() == 0 || in.tag() > 14) return false;
      of_type(in, is_number ? pbf_wire_type::varint : pbf_wire_type::length_delimited).skip();
    }
  } catch (const protozero::exception&) {
  }
  return false;
}

}  // namespace

bool recognise_pprof(std::span<const std::byte> head) {
  std::string bytes(reinterpret_cast<const char*>(head.data()), head.size());
  if (bytes.starts_with("\x1f\x8b")) {
    z_stream stream{};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return false;
    std::string out(4096, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream, Z_SYNC_FLUSH);
    out.resize(out.size() - stream.avail_out);
    inflateEnd(&stream);
    if (result != Z_OK && result != Z_STREAM_END) return false;
    bytes = std::move(out);
  }
  return begins_a_profile(bytes);
}

Result<ImportOutcome> import_pprof(Input& file, const ImportOptions&, profile::Sink& sink) {
  const std::unique_ptr<GzipInput> unpacked = GzipInput::of(file);
  const auto bytes = read_pprof(unpacked ? *unpacked : file);
  if (!bytes) return fail(bytes);
  if (unpacked && unpacked->damaged())
    return fail(ErrorKind::input, "its compression ends early or is damaged");
  try {
    return PprofImport(sink).run(*bytes);
  } catch (const protozero::end_of_buffer_exception&) {
    return fail(ErrorKind::input, "it ends in the middle of a field: it was cut, or is no profile.proto",
                "without its end the names of functions are not there: copy the file again");
  } catch (const protozero::exception& error) {
    return fail(ErrorKind::input, fmt::format("no profile.proto: {}", error.what()));
  }
}

}  // namespace phlox::importers
