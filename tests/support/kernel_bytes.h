// Records as the BPF program sends them, built in a test.
#pragma once

#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/load.h"
#include "phlox/python/layout_table.h"
#include "phlox/sampler/kernel/kernel_records.h"
#include "support/fake_interpreter.h"

namespace phlox::test {

inline kernel_sample kernel_sample_of(uint32_t thread, const kernel_stack& stack) {
  kernel_sample sample{};
  sample.head = {KERNEL_SAMPLE, 1};
  sample.thread = thread;
  sample.system_call = -1;
  sample.stack = stack;
  return sample;
}

// `frames`: leaf first; empty: they were sent before.
inline std::vector<std::byte> kernel_bytes(kernel_sample sample,
                                           std::span<const sampler::KernelFrame> frames) {
  if (!frames.empty()) {
    sample.stack.flags |= KERNEL_FRAMES;
    sample.stack.count = static_cast<uint32_t>(frames.size());
  }
  std::vector<std::byte> bytes(sizeof sample + frames.size() * 8);
  std::memcpy(bytes.data(), &sample, sizeof sample);
  for (size_t i = 0; i < frames.size(); ++i) {
    const uint64_t word = uint64_t{frames[i].serial} << 32 | frames[i].instruction;
    std::memcpy(bytes.data() + sizeof sample + i * 8, &word, sizeof word);
  }
  return bytes;
}

// `starts`: of evaluations, leaf first, as (address, number of frames further in).
inline std::vector<std::byte> kernel_native_bytes(kernel_native half, std::span<const uint64_t> kernel,
                                                  std::span<const std::pair<uint64_t, uint64_t>> starts,
                                                  std::span<const uint64_t> stack) {
  half.head = {KERNEL_NATIVE, 1};
  half.kernel = static_cast<uint16_t>(kernel.size());
  half.starts = static_cast<uint16_t>(starts.size());
  half.stack = static_cast<uint32_t>(stack.size() * sizeof(uint64_t));
  std::vector<uint64_t> words(kernel.begin(), kernel.end());
  for (const auto& [address, inside] : starts) words.push_back(address << 16 | inside);
  words.insert(words.end(), stack.begin(), stack.end());
  std::vector<std::byte> bytes(sizeof half + words.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), &half, sizeof half);
  if (!words.empty()) std::memcpy(bytes.data() + sizeof half, words.data(), bytes.size() - sizeof half);
  return bytes;
}

inline std::vector<std::byte> kernel_wait_target_bytes(kernel_wait_target wait_target,
                                                       std::string_view name) {
  wait_target.head = {KERNEL_WAIT_TARGET, 1};
  wait_target.size = static_cast<uint16_t>(name.size());
  std::vector<std::byte> bytes(sizeof wait_target + name.size());
  std::memcpy(bytes.data(), &wait_target, sizeof wait_target);
  std::memcpy(bytes.data() + sizeof wait_target, name.data(), name.size());
  return bytes;
}

// The part of a fake code object that the kernel copies: at most KERNEL_NAME_BYTES of a string.
inline std::vector<std::byte> kernel_code_bytes(FakeInterpreter& fake, RemoteAddress address,
                                                uint32_t serial) {
  const python::Layout& layout = fake.layout();
  kernel_code code{};
  code.head = {KERNEL_CODE, 1};
  code.address = address.value;
  code.serial = serial;
  std::vector<std::byte> bytes(KERNEL_STRUCT_BYTES);
  (void)fake.memory().read(address, bytes);
  const python::Offset fields[] = {layout.code.name, layout.code.qualname, layout.code.filename,
                                   layout.code.linetable,
                                   layout.code.code_adaptive.present() ? python::Offset() : layout.code.code};
  const uint32_t sizes[] = {KERNEL_NAME_BYTES, KERNEL_NAME_BYTES, KERNEL_FILE_BYTES, KERNEL_LINES_BYTES,
                            KERNEL_HEAD_BYTES};
  for (size_t part = 0; part < std::size(fields); ++part) {
    if (!fields[part].present()) continue;
    const auto object = load<uint64_t>(std::span(bytes), *fields[part]);
    uint32_t size = sizes[part];
    std::vector<std::byte> content(size);
    while (size > 0 && !fake.memory().read(RemoteAddress(object), std::span(content).first(size))) size /= 2;
    code.part[part] = {object, static_cast<uint32_t>(bytes.size()), size};
    bytes.insert(bytes.end(), content.begin(), content.begin() + size);
  }
  code.size = static_cast<uint32_t>(bytes.size());
  const auto* head = reinterpret_cast<const std::byte*>(&code);
  bytes.insert(bytes.begin(), head, head + sizeof code);
  return bytes;
}

}  // namespace phlox::test
