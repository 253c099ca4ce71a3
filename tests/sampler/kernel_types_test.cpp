#include "phlox/sampler/kernel/kernel_types.h"

#include <gtest/gtest.h>
#include <linux/btf.h>

#include <cstring>
#include <string>
#include <vector>

namespace phlox::sampler {
namespace {

// Writes BTF, one type after another.
class BtfBuilder {
 public:
  uint32_t add(uint32_t kind, const std::string& name, uint32_t size_or_type,
               const std::vector<uint32_t>& after = {}, uint32_t length = 0) {
    for (const uint32_t word : {text(name), kind << 24 | length, size_or_type}) words_.push_back(word);
    words_.insert(words_.end(), after.begin(), after.end());
    return ++last_;
  }
  uint32_t integer(const std::string& name) { return add(BTF_KIND_INT, name, 4, {32}); }
  uint32_t pointer(uint32_t to) { return add(BTF_KIND_PTR, "", to); }
  uint32_t one_member(const std::string& name, const std::string& member, uint32_t type) {
    return add(BTF_KIND_STRUCT, name, 8, {text(member), type, 0}, 1);
  }
  std::vector<std::byte> bytes() const {
    btf_header header{};
    header.magic = BTF_MAGIC;
    header.version = BTF_VERSION;
    header.hdr_len = sizeof header;
    header.type_len = header.str_off = static_cast<uint32_t>(words_.size() * 4);
    header.str_len = static_cast<uint32_t>(strings_.size());
    std::string all(reinterpret_cast<const char*>(&header), sizeof header);
    all.append(reinterpret_cast<const char*>(words_.data()), words_.size() * 4).append(strings_);
    const auto* bytes = reinterpret_cast<const std::byte*>(all.data());
    return {bytes, bytes + all.size()};
  }
  uint32_t text(const std::string& text) {
    if (text.empty()) return 0;
    const auto at = static_cast<uint32_t>(strings_.size());
    strings_.append(text).push_back('\0');
    return at;
  }

 private:
  std::vector<uint32_t> words_;
  std::string strings_ = std::string(1, '\0');
  uint32_t last_ = 0;
};

using Names = std::set<std::string, std::less<>>;

TEST(KernelTypes, a_struct_comes_with_what_it_is_made_of_but_not_with_what_it_points_to) {
  BtfBuilder kernel;
  kernel.one_member("unwanted", "field", kernel.integer("int"));
  const uint32_t inner = kernel.one_member("inner", "number", 1);
  kernel.one_member("task_struct", "se", inner);
  kernel.one_member("rq", "next", kernel.pointer(inner));
  const auto picked = pick_kernel_types(kernel.bytes(), {"task_struct", "rq"}, {});
  EXPECT_EQ(names_of_structs(picked.structs), (Names{"task_struct", "inner", "rq"}));
  const auto no_inner = pick_kernel_types(kernel.bytes(), {"rq"}, {});
  EXPECT_EQ(names_of_structs(no_inner.structs), Names{"rq"});
}

TEST(KernelTypes, a_struct_that_contains_itself_through_typedefs_is_copied_once) {
  BtfBuilder kernel;
  kernel.add(BTF_KIND_TYPEDEF, "list", 2);
  kernel.one_member("list", "next", 1);
  const auto picked = pick_kernel_types(kernel.bytes(), {"list"}, {});
  EXPECT_EQ(names_of_structs(picked.structs), Names{"list"});
  EXPECT_LT(picked.structs.size(), 100U);
}

TEST(KernelTypes, tracepoints_have_the_ids_of_the_kernel) {
  BtfBuilder kernel;
  kernel.integer("int");
  kernel.add(BTF_KIND_TYPEDEF, "btf_trace_sched_switch", 1);
  kernel.add(BTF_KIND_TYPEDEF, "btf_trace_other", 1);
  const auto picked = pick_kernel_types(kernel.bytes(), {}, {"sched_switch", "missing"});
  EXPECT_EQ(picked.tracepoints, (std::map<std::string, uint32_t, std::less<>>{{"sched_switch", 2}}));
}

TEST(KernelTypes, variables_of_a_cpu_are_given_by_their_distance) {
  BtfBuilder kernel;
  const uint32_t number = kernel.integer("int");
  const auto variable = [&](const std::string& name) { return kernel.add(BTF_KIND_VAR, name, number, {0}); };
  const uint32_t count = variable("__preempt_count"), queues = variable("runqueues"),
                 timers = variable("hrtimer_bases");
  kernel.add(BTF_KIND_DATASEC, ".data..percpu", 0, {count, 16, 4, queues, 4096, 4, timers, 8192, 4}, 3);
  const auto picked = pick_kernel_types(kernel.bytes(), {}, {});
  EXPECT_EQ(picked.host.preempt_count, 16 - 4096);
  EXPECT_EQ(picked.host.timers, 8192 - 4096);
}

TEST(KernelTypes, names_lack_what_distinguishes_versions) {
  BtfBuilder program;
  program.one_member("pt_regs___kernel", "ip", program.integer("int"));
  EXPECT_EQ(names_of_structs(program.bytes()), Names{"pt_regs"});
}

TEST(KernelTypes, nothing_is_found_in_damaged_bytes) {
  BtfBuilder kernel;
  kernel.one_member("rq", "clock", kernel.integer("int"));
  const auto whole = kernel.bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto picked = pick_kernel_types(std::span(whole).first(size), {"rq"}, {"sched_switch"});
    EXPECT_EQ(names_of_structs(picked.structs), Names{});
  }
  BtfBuilder unknown;
  unknown.add(31, "kind of a later kernel", 0);
  EXPECT_EQ(names_of_structs(unknown.bytes()), Names{});
}

}  // namespace
}  // namespace phlox::sampler
