// A target's memory, read by pages and kept until forget(). For readers of many small objects that are close
// together. For readers that come back, it reads only the blocks of a page that they ask for: to copy a whole
// page takes several times as long where the target's memory is not in the CPU's caches. Its data is as old
// as the last forget(): compare it with the source before you trust it. Bounded: beyond kMaxPages it drops
// the pages by itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"

namespace phlox::python {

class PageMemory : public memory::RemoteMemory {
 public:
  static constexpr uint64_t kPage = 4096, kBlock = 256;
  // Blocks of a page, one bit each, the first one in the lowest bit.
  using Blocks = uint16_t;
  static_assert(kPage / kBlock == 8 * sizeof(Blocks));
  struct Part {
    uint64_t page = 0;  // its address divided by kPage
    Blocks blocks = 0;
  };
  // The blocks with the bytes from `first` to `last` of a page.
  static constexpr Blocks blocks_of(uint64_t first, uint64_t last) {
    return static_cast<Blocks>((2u << last / kBlock) - (1u << first / kBlock));
  }

  explicit PageMemory(memory::RemoteMemory& source) : source_(source) {}

  size_t read(std::span<const memory::Range> ranges) override;
  using RemoteMemory::read;
  // A Memory as in walk_frames(). The bytes stay until the next call; nullptr: they cannot be read.
  const std::byte* find(RemoteAddress address, size_t size);
  // The pointer at `at`; zero: it cannot be read, or `at` is no address of a program.
  RemoteAddress word(RemoteAddress at);
  void forget();
  // For readers that come back: also reads, in few calls, what was asked for after the last forget() with
  // this number, which is not 0. One call for each page takes more than twice as long.
  void forget(uint64_t purpose);
  // Reads these parts, each of another page, in few calls. Those that cannot be read now are tried again when
  // they are asked for.
  void read_ahead(std::span<const Part> parts);

 private:
  static constexpr size_t kMaxPages = 8192;
  static constexpr size_t kMaxPurposes = 64, kMostAhead = 1024;
  static constexpr size_t kMaxSize = size_t{16} << 20;  // of one range
  using Page = std::array<std::byte, kPage>;
  // A place of the index; it is empty if its generation is not the current one.
  struct Place {
    uint64_t number = 0;  // of the page
    uint32_t generation = 0;
    Blocks known = 0, asked_for = 0;
    Page* page = nullptr;  // nullptr: it cannot be read
  };
  static Blocks with_next(Blocks blocks);
  static memory::Range range_of(uint64_t number, Page& page, Blocks blocks);
  Place& place_of(uint64_t number);
  void grow();
  void remember();
  const std::byte* page(uint64_t number, Blocks blocks);
  bool read_blocks(uint64_t number, Page& page, Blocks blocks);
  const std::byte* load_page(Place& place, uint64_t number, Blocks blocks);
  Page* unused_page();
  bool copy(RemoteAddress address, std::span<std::byte> into);

  memory::RemoteMemory& source_;
  // Pages and their index outlive forget(): 10,000 tasks are read with some 10,000 pages, and to clear and
  // return each took a third of that time.
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<Place> index_;  // open addressing, never more than half full
  uint32_t generation_ = 1;
  size_t used_ = 0;    // of pages_
  size_t places_ = 0;  // of index_, in this generation
  std::vector<std::byte> scratch_;
  uint64_t purpose_ = 0;                                       // of what is read now; 0: none
  bool comes_back_ = false;                                    // what was asked for last time is known
  std::unordered_map<uint64_t, std::vector<Part>> asked_for_;  // by purpose
};

}  // namespace phlox::python
