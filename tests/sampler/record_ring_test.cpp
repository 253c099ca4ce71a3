#include "phlox/sampler/kernel/record_ring.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"

namespace phlox::sampler {
namespace {

// A file with the layout of the kernel's ring: our position, its position, the bytes.
class FakeRing {
 public:
  static constexpr size_t kPage = 4096, kSize = 8192;

  FakeRing() : file(::memfd_create("ring", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(file.get(), 2 * kPage + kSize), 0);
    bytes_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * kPage + kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  }
  FakeRing(const FakeRing&) = delete;
  FakeRing& operator=(const FakeRing&) = delete;
  ~FakeRing() { ::munmap(bytes_, 2 * kPage + kSize); }

  void put(const std::string& text, uint32_t flags = 0) {
    const auto length = static_cast<uint32_t>(text.size()) | flags;
    for (size_t i = 0; i < sizeof length; ++i)
      at(written_ + i) = reinterpret_cast<const std::byte*>(&length)[i];
    for (size_t i = 0; i < text.size(); ++i)
      at(written_ + BPF_RINGBUF_HDR_SZ + i) = static_cast<std::byte>(text[i]);
    written_ = (written_ + BPF_RINGBUF_HDR_SZ + text.size() + 7) & ~uint64_t{7};
    std::memcpy(bytes_ + kPage, &written_, sizeof written_);
  }
  uint64_t read() const {
    uint64_t position = 0;
    std::memcpy(&position, bytes_, sizeof position);
    return position;
  }
  uint64_t written() const { return written_; }

  Descriptor file;

 private:
  std::byte& at(uint64_t position) { return bytes_[2 * kPage + position % kSize]; }

  std::byte* bytes_ = nullptr;
  uint64_t written_ = 0;
};

std::vector<std::string> all_of(RecordRing& ring) {
  std::vector<std::string> records;
  ring.consume([&](std::span<const std::byte> record) {
    records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
    return true;
  });
  return records;
}

using Records = std::vector<std::string>;

TEST(RecordRing, gives_records_in_order_across_the_end_of_its_bytes) {
  FakeRing fake;
  RecordRing ring;
  ASSERT_TRUE(ring.map(fake.file.get(), FakeRing::kSize));
  for (int i = 0; i < 100; ++i) {
    const std::string one(301, static_cast<char>('a' + i % 26)), two = "short " + std::to_string(i);
    fake.put(one);
    fake.put(two);
    EXPECT_EQ(all_of(ring), (Records{one, two}));
    EXPECT_EQ(fake.read(), fake.written());
  }
}

TEST(RecordRing, waits_for_a_record_that_is_being_written_and_skips_a_discarded_one) {
  FakeRing fake;
  RecordRing ring;
  ASSERT_TRUE(ring.map(fake.file.get(), FakeRing::kSize));
  fake.put("first");
  fake.put("not this one", BPF_RINGBUF_DISCARD_BIT);
  fake.put("second");
  fake.put("not yet", BPF_RINGBUF_BUSY_BIT);
  fake.put("third");
  EXPECT_EQ(all_of(ring), (Records{"first", "second"}));
  EXPECT_EQ(all_of(ring), Records{});
  EXPECT_LT(fake.read(), fake.written());
}

TEST(RecordRing, keeps_the_rest_when_it_was_told_to_stop) {
  FakeRing fake;
  RecordRing ring;
  ASSERT_TRUE(ring.map(fake.file.get(), FakeRing::kSize));
  fake.put("first");
  fake.put("second");
  EXPECT_TRUE(ring.consume([](std::span<const std::byte>) { return false; }));
  EXPECT_EQ(all_of(ring), Records{"second"});
}

}  // namespace
}  // namespace phlox::sampler
