// An input that is packed with gzip, unpacked as it is read: forwards only, like a pipe (input.h). So every
// format may be packed, and none has to know.
#pragma once

#include <memory>
#include <vector>

#include "phlox/importers/input.h"

namespace phlox::importers {

class GzipInput : public Input {
 public:
  // Null: not packed. `packed` must outlive it.
  static std::unique_ptr<GzipInput> of(Input& packed);
  ~GzipInput() override;

  size_t read_at(uint64_t offset, std::span<std::byte> into) override;
  std::optional<uint64_t> size() const override { return std::nullopt; }
  bool lost() const override { return unpacked_.lost(); }
  // Its compression ended early, or is invalid: the data is incomplete.
  bool damaged() const { return damaged_; }

 private:
  struct Unpacker;
  explicit GzipInput(Input& packed);
  size_t unpack(std::span<std::byte> into);

  Input& packed_;
  std::unique_ptr<Unpacker> unpacker_;
  std::vector<std::byte> piece_;  // of the packed data
  uint64_t taken_ = 0;
  bool damaged_ = false, ended_ = false;
  Forwards unpacked_;
};

}  // namespace phlox::importers
