#include "phlox/sampler/kernel/kernel_host.h"

#ifndef PHLOX_KERNEL_CAPTURE_MISSING
#include <bpf/btf.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

namespace phlox::sampler {
namespace {

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};

class CpuVariables {
 public:
  explicit CpuVariables(const btf* types) : types_(types) {
    const int id = btf__find_by_name_kind(types, ".data..percpu", BTF_KIND_DATASEC);
    if (id > 0) section_ = btf__type_by_id(types, static_cast<uint32_t>(id));
  }

  std::optional<int64_t> offset(std::string_view name) const {
    if (section_ == nullptr) return {};
    const btf_var_secinfo* variables = btf_var_secinfos(section_);
    for (uint32_t i = 0; i < btf_vlen(section_); ++i) {
      const btf_type* variable = btf__type_by_id(types_, variables[i].type);
      const char* is = variable != nullptr ? btf__name_by_offset(types_, variable->name_off) : nullptr;
      if (is != nullptr && is == name) return variables[i].offset;
    }
    return {};
  }

 private:
  const btf* types_;
  const btf_type* section_ = nullptr;
};

}  // namespace

kernel_host read_kernel_host() {
  kernel_host host{};
  // arch/x86/include/asm/page_64_types.h and arch/arm64/include/asm/memory.h, THREAD_SIZE: at least a page.
  host.stack_size = std::max<uint64_t>(16384, static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  const std::unique_ptr<btf, FreeBtf> types(btf__load_vmlinux_btf());
  if (!types) return host;
  const CpuVariables variables(types.get());
  const auto queue = variables.offset("runqueues");
  if (!queue) return host;
  // In Linux 6.2 to 6.14 the count is in a struct, and the program knows its place there.
  auto count = variables.offset("__preempt_count");
  if (!count) count = variables.offset("pcpu_hot");
  if (count) host.preempt_count = *count - *queue;
  if (const auto timers = variables.offset("hrtimer_bases")) host.timers = *timers - *queue;
  return host;
}

}  // namespace phlox::sampler
#endif
