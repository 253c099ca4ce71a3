// The bodies that wait to be sent: a queue of files, so that neither an outage of the server nor the end of
// this program loses them. A file is complete or absent; damaged ones are skipped and counted. When the queue
// is full, the oldest bodies are dropped and counted. The folder must be private: one that others can write
// to is refused. Any thread may call this.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"

namespace phlox::push {

class Outbox {
 public:
  // Creates the folder, and takes over what an earlier run left in it. `most_bytes` limits all bodies
  // together. ErrorKind::output: it cannot be created, is not private, or another process uses it.
  static Result<std::unique_ptr<Outbox>> open(const std::string& folder, uint64_t most_bytes);

  // Appends a body. False if it could not be stored: then it is counted, and errno says why.
  bool put(std::string_view body);

  struct Item {
    uint64_t number = 0;
    std::string body;
  };
  // The first body. It stays in the queue, and is not dropped to make room, until remove(), drop(),
  // replace() or the next call.
  std::optional<Item> first();
  // After it was sent.
  void remove(uint64_t number);
  // If it will never be sent.
  void drop(uint64_t number);
  // Puts two halves in its place. False if they could not be written: then the item stays.
  bool replace(uint64_t number, std::string_view first_half, std::string_view second_half);

  struct Counts {
    uint64_t items = 0, bytes = 0;  // in the queue
    uint64_t no_room = 0;           // dropped to make room, or larger than the whole buffer
    uint64_t unwritten = 0;         // the disk refused them
    uint64_t refused = 0;           // by drop()
    uint64_t damaged = 0;
    uint64_t lost() const { return no_room + unwritten + refused + damaged; }
  };
  Counts counts() const;
  const std::string& folder() const { return path_; }

  // Between two numbers that put() gives, so that halves of halves have room between them.
  static constexpr uint64_t kStep = uint64_t{1} << 20;

 private:
  Outbox(std::string path, Descriptor folder, Descriptor lock, uint64_t most_bytes)
      : path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)), most_bytes_(most_bytes) {}

  Result<void> take_over();
  bool write(uint64_t number, std::string_view body);
  std::optional<std::string> read(uint64_t number, uint64_t size) const;
  bool forget(uint64_t number);
  void make_room(uint64_t size);

  const std::string path_;
  const Descriptor folder_, lock_;
  const uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> queue_;  // size of the file, by number
  uint64_t last_ = 0;
  uint64_t in_hand_ = 0;  // 0: none
  Counts counts_;
};

}  // namespace phlox::push
