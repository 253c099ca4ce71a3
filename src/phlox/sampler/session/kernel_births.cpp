#include "phlox/sampler/session/kernel_births.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace phlox::sampler {
namespace {

// Two rings full.
constexpr size_t kMostBirthsKept = size_t{32} << 20;

}  // namespace

void KernelBirths::add(const kernel_birth& birth, const kernel_process& place, const Program& program) {
  Newborn& newborn = newborn_[birth.id];
  newborn.place = place;
  newborn.place.id = birth.id;
  newborn.place.continues = 0;
  newborn.birth.parent = static_cast<pid_t>(birth.parent);
  auto child = std::make_unique<Program>(static_cast<pid_t>(birth.process), program.interpreter);
  child->image = program.image;
  child->rseq_cpu_offset = program.rseq_cpu_offset;
  child->birth = static_cast<Nanoseconds>(birth.time);
  child->known_as = program.known_as;
  child->kernel_id = birth.id;
  child->kernel_name.assign(birth.name, ::strnlen(birth.name, sizeof birth.name));
  newborn.birth.program = std::move(child);
}

void KernelBirths::add_ended(std::unique_ptr<Program> program, pid_t parent, const kernel_exit& said) {
  const uint32_t id = said.head.id;
  program->kernel_id = id;
  Newborn& newborn = newborn_[id];
  newborn.place.id = id;
  newborn.birth = {std::move(program), parent};
  keep(id, std::as_bytes(std::span(&said, 1)));
}

const KernelBirths::Newborn* KernelBirths::find(uint32_t id) const {
  const auto found = newborn_.find(id);
  return found == newborn_.end() ? nullptr : &found->second;
}

bool KernelBirths::has(pid_t pid) const {
  return std::any_of(newborn_.begin(), newborn_.end(), [pid](const auto& row) {
    return row.second.birth.program && row.second.birth.program->pid == pid;
  });
}

bool KernelBirths::keep(uint32_t id, std::span<const std::byte> record) {
  const auto found = newborn_.find(id);
  if (found == newborn_.end()) return false;
  if (kept_ + record.size() > kMostBirthsKept) {
    ++lost_;
    return true;
  }
  kept_ += record.size();
  kernel_head head{};
  std::memcpy(&head, record.data(), sizeof head);
  found->second.ended |= head.type == KERNEL_EXIT;
  found->second.said.emplace_back(record.begin(), record.end());
  return true;
}

std::vector<Birth> KernelBirths::give(Nanoseconds until) {
  std::vector<Birth> all;
  for (auto& [id, newborn] : newborn_) {
    const auto& program = newborn.birth.program;
    if (program && (newborn.ended || program->begin(until) < until)) all.push_back(std::move(newborn.birth));
  }
  return all;
}

KernelBirths::Newborn KernelBirths::take(uint32_t id) {
  const auto found = newborn_.find(id);
  if (found == newborn_.end()) return {};
  Newborn newborn = std::move(found->second);
  newborn_.erase(found);
  for (const auto& record : newborn.said) kept_ -= record.size();
  return newborn;
}

}  // namespace phlox::sampler
