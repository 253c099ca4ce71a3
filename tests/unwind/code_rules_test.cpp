// What a function's instructions tell of its stack: by hand, and over libraries whose call frame information
// says the same in another way.
#include "phlox/unwind/code_rules.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/elf/elf_file.h"
#include "phlox/unwind/table_builder.h"

namespace phlox::unwind {
namespace {

#if defined(__x86_64__)

using Bytes = std::vector<uint8_t>;

class Assembled {
 public:
  explicit Assembled(const Bytes& bytes, std::vector<uint32_t> functions = {0},
                     std::vector<uint32_t> maybe = {})
      : bytes_(bytes), region_(std::as_bytes(std::span(bytes_)), functions, maybe) {}
  Rule at(uint32_t offset) const { return region_.find(offset); }
  Rule back(uint32_t offset) const { return region_.until_return(offset); }

 private:
  Bytes bytes_;
  CodeRegion region_;
};

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

const Bytes kPushRbp = {0x55}, kPopRbp = {0x5d}, kPushRbx = {0x53}, kPopRbx = {0x5b}, kRet = {0xc3},
            kNop = {0x90}, kSub24 = {0x48, 0x83, 0xec, 24}, kAdd24 = {0x48, 0x83, 0xc4, 24},
            kMovRbpRsp = {0x48, 0x89, 0xe5}, kLeave = {0xc9}, kCallRax = {0xff, 0xd0};

TEST(CodeRules, pushes_and_locals_are_counted_at_every_instruction) {
  const Assembled code(joined({kPushRbp, kPushRbx, kSub24, kNop, kAdd24, kPopRbx, kPopRbp, kRet}));
  const int offsets[][2] = {{0, 8}, {1, 16}, {2, 24}, {6, 48}, {7, 48}, {11, 24}, {12, 16}, {13, 8}};
  for (const auto& [at, cfa] : offsets) {
    const Rule rule = code.at(static_cast<uint32_t>(at));
    EXPECT_EQ(rule.kind, RuleKind::plain) << at;
    EXPECT_EQ(rule.base, CfaBase::sp) << at;
    EXPECT_EQ(rule.cfa_offset, cfa) << at;
    EXPECT_EQ(rule.ra_offset, -8);
  }
  EXPECT_EQ(code.at(6).fp, FpRule::same);  // pushed, and still there
  EXPECT_EQ(code.at(6).bx, BxRule::same);
  EXPECT_EQ(code.at(14).kind, RuleKind::none);  // behind the end
}

TEST(CodeRules, registers_that_the_function_uses_come_back_from_where_they_were_pushed) {
  // xor %ebp, %ebp; xor %ebx, %ebx between the pushes and the pops
  const Assembled code(
      joined({kPushRbp, kPushRbx, {0x31, 0xed}, {0x31, 0xdb}, kCallRax, kNop, kPopRbx, kPopRbp, kRet}));
  // Called with a stack that is not aligned: no compiler's function. Aligned it is one.
  const Assembled aligned(joined({kPushRbp,
                                  kPushRbx,
                                  {0x48, 0x83, 0xec, 8},
                                  {0x31, 0xed},
                                  {0x31, 0xdb},
                                  kCallRax,
                                  {0x48, 0x83, 0xc4, 8},
                                  kPopRbx,
                                  kPopRbp,
                                  kRet}));
  const Rule rule = aligned.at(10);
  EXPECT_EQ(rule.cfa_offset, 32);
  EXPECT_EQ(rule.fp, FpRule::at_cfa);
  EXPECT_EQ(rule.fp_offset, -16);
  EXPECT_EQ(rule.bx, BxRule::at_cfa);
  EXPECT_EQ(rule.bx_offset, -24);
  EXPECT_EQ(code.at(6).cfa_offset, 24);  // it does return as it should
}

TEST(CodeRules, frame_pointer_carries_where_the_stack_pointer_is_not_known) {
  // push %rbp; mov %rsp, %rbp; sub %rax, %rsp; nop; leave; ret
  const Assembled code(joined({kPushRbp, kMovRbpRsp, {0x48, 0x29, 0xc4}, kNop, kLeave, kRet}));
  const Rule rule = code.at(7);
  EXPECT_EQ(rule.base, CfaBase::fp);
  EXPECT_EQ(rule.cfa_offset, 16);
  EXPECT_EQ(rule.fp, FpRule::at_cfa);
  EXPECT_EQ(rule.fp_offset, -16);
}

TEST(CodeRules, stack_that_is_aligned_is_left_by_rbx) {
  // OpenBLAS: push %rbx; mov %rsp, %rbx; sub $4096, %rsp; and $-4096, %rsp; nop; mov %rbx, %rsp; pop %rbx;
  // ret
  const Assembled code(joined({kPushRbx,
                               {0x48, 0x89, 0xe3},
                               {0x48, 0x81, 0xec, 0, 16, 0, 0},
                               {0x48, 0x81, 0xe4, 0, 0xf0, 0xff, 0xff},
                               kNop,
                               {0x48, 0x89, 0xdc},
                               kPopRbx,
                               kRet}));
  const Rule rule = code.at(18);
  EXPECT_EQ(rule.kind, RuleKind::plain);
  EXPECT_EQ(rule.base, CfaBase::bx);
  EXPECT_EQ(rule.cfa_offset, 16);
  EXPECT_EQ(rule.bx, BxRule::at_cfa);
  EXPECT_EQ(rule.bx_offset, -16);
}

TEST(CodeRules, stack_pointer_that_was_kept_in_memory_is_found_there) {
  // mov %rsp, %rax; sub $64, %rsp; and $-64, %rsp; mov %rax, 8(%rsp); nop; mov 8(%rsp), %rsp; ret
  const Assembled code(joined({{0x48, 0x89, 0xe0},
                               {0x48, 0x83, 0xec, 64},
                               {0x48, 0x83, 0xe4, 0xc0},
                               {0x48, 0x89, 0x44, 0x24, 8},
                               {0x31, 0xc0},
                               kNop,
                               {0x48, 0x8b, 0x64, 0x24, 8},
                               kRet}));
  const Rule rule = code.at(18);
  EXPECT_EQ(rule.base, CfaBase::deref_sp);
  EXPECT_EQ(rule.inner, 8);
  EXPECT_EQ(rule.cfa_offset, 8);
  EXPECT_EQ(code.back(18).base, CfaBase::deref_sp);  // and by the way on
  EXPECT_EQ(code.back(18).inner, 8);
  EXPECT_EQ(code.back(18).cfa_offset, 8);
}

TEST(CodeRules, ways_that_do_not_agree_make_no_rule) {
  // je over; push %rbp; over: nop; pop %rbp; ret: one way or the other is wrong.
  const Assembled code(joined({{0x74, 1}, kPushRbp, kNop, kPopRbp, kRet}));
  for (uint32_t at = 0; at < 6; ++at) EXPECT_EQ(code.at(at).kind, RuleKind::none) << at;
}

TEST(CodeRules, call_that_never_returns_does_not_lead_into_the_next_function) {
  // f: sub $24, %rsp; call g, with h behind it;  g: hlt;  h: ret
  const Bytes bytes = joined({kSub24, {0xe8, 0, 0, 0, 0}, {0x66, 0x90}, kPushRbx, kPopRbx, kRet, {0xf4}});
  Bytes calls = bytes;
  calls[5] = 14 - 9;  // to the hlt
  const Assembled code(calls);
  EXPECT_EQ(code.at(4).cfa_offset, 32);
  // Nothing says that a function starts there, and the stack is not as it was at the call.
  EXPECT_EQ(code.at(11).kind, RuleKind::none);
  EXPECT_EQ(code.back(11).cfa_offset, 8);
  EXPECT_EQ(code.back(12).cfa_offset, 16);
}

TEST(CodeRules, unreachable_code_is_known_by_its_path_to_the_return) {
  // jmp *%rax (a table) with the stack in use; behind it: nop; add $24, %rsp; pop %rbp; ret
  const Assembled code(joined({kPushRbp, kSub24, {0xff, 0xe0}, kNop, kAdd24, kPopRbp, kRet}));
  EXPECT_EQ(code.at(7).kind, RuleKind::none);
  const Rule rule = code.back(7);
  EXPECT_EQ(rule.base, CfaBase::sp);
  EXPECT_EQ(rule.cfa_offset, 40);
  EXPECT_EQ(rule.fp, FpRule::at_cfa);
  EXPECT_EQ(rule.fp_offset, -16);
}

TEST(CodeRules, return_address_that_was_written_over_is_none) {
  const Assembled code(joined({{0x48, 0x89, 0x04, 0x24}, kNop, kRet}));  // mov %rax, (%rsp): a thunk
  EXPECT_EQ(code.at(4).kind, RuleKind::none);
}

TEST(CodeRules, zeroed_frame_pointer_without_a_return_address_marks_the_end) {
  // musl's _start: xor %rbp, %rbp; mov %rsp, %rdi; and $-16, %rsp; call
  const Bytes start = joined(
      {{0x48, 0x31, 0xed}, {0x48, 0x89, 0xe7}, {0x48, 0x83, 0xe4, 0xf0}, {0xe8, 1, 0, 0, 0}, {0xf4}, kRet});
  EXPECT_EQ(Assembled(start, {}, {0}).at(10).kind, RuleKind::end);
  // The same of who keeps the caller's.
  const Bytes kept =
      joined({kPushRbp, {0x48, 0x31, 0xed}, kPushRbx, kPushRbx, kCallRax, kPopRbx, kPopRbx, kPopRbp, kRet});
  EXPECT_EQ(Assembled(kept).at(6).kind, RuleKind::plain);
}

TEST(CodeRules, any_bytes_end) {
  Bytes bytes(5000);
  uint32_t seed = 1;
  for (int round = 0; round < 40; ++round) {
    for (uint8_t& b : bytes) b = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
    std::vector<uint32_t> starts;
    for (uint32_t at = 0; at < bytes.size(); at += 7) starts.push_back(at);
    const Assembled code(bytes, starts, {1, 2, 3});
    for (uint32_t at = 0; at < 100; ++at) code.back(at);
  }
}

// Against call frame information.

struct Count {
  size_t places = 0, answered = 0, compared = 0, wrong = 0, back = 0, back_compared = 0, back_wrong = 0;
  size_t fp_known = 0, fp_wrong = 0, both = 0, both_differ = 0, unsaid = 0;
};

bool same_fp(const Rule& ours, const Rule& theirs) {
  if (ours.fp == FpRule::unknown || theirs.fp == FpRule::unknown) return true;
  if (ours.fp == FpRule::same && theirs.fp == FpRule::same) return true;
  // gcc's epilogues leave "fp at cfa-16" standing after the pop, and a register that is pushed is still
  // there.
  if (ours.fp == FpRule::same && theirs.fp == FpRule::at_cfa) return true;
  return ours.fp == theirs.fp && ours.fp_offset == theirs.fp_offset;
}

// CFA less a register, as call frame information says; kUnknown: by something else.
int32_t distance(const Rule& rule, CfaBase base) {
  return rule.kind == RuleKind::plain && rule.base == base ? rule.cfa_offset : CodeFlow::kUnknown;
}

void compare_file(const std::string& path, Count& count, bool until_return) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto bytes = elf::FileBytes::read(fd.get(), path);
  ASSERT_TRUE(bytes) << path;
  const auto file = elf::ElfFile::parse(bytes->bytes());
  ASSERT_TRUE(file) << path;
  const UnwindTable table = build_table(*file);
  std::vector<ImageAddress> functions, maybe;
  CodeRules::starts(*file, functions, maybe);
  int shown = 0;
  for (const elf::Segment& segment : file->segments()) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    const auto code = file->at(segment.address, segment.file_size);
    for (uint64_t from = 0; from < code.size();) {
      // As CodeRules does: whole functions, a million bytes.
      uint64_t to = std::min<uint64_t>(from + (1 << 20), code.size());
      const auto cut = std::upper_bound(functions.begin(), functions.end(), segment.address + to);
      if (to < code.size() && cut != functions.begin() && *(cut - 1) > segment.address + from)
        to = *(cut - 1) - segment.address;
      const ImageAddress base = segment.address + from;
      const auto within = [&](const std::vector<ImageAddress>& all) {
        std::vector<uint32_t> out;
        for (const ImageAddress a : all) {
          if (a >= base && a - base < to - from) out.push_back(static_cast<uint32_t>(a - base));
        }
        return out;
      };
      const auto part = code.subspan(from, to - from);
      const auto rows = CodeRegion::rows(part, within(functions), within(maybe));
      std::optional<CodeRegion> region;
      if (until_return) region.emplace(part, within(functions), within(maybe));
      size_t next = 0;
      for (uint32_t at = 0; at < part.size();) {
        const Instruction i = decode_x86_64(part.subspan(at));
        const Rule theirs = table.find(base + at);
        while (next < rows.size() && rows[next].offset < at) ++next;
        const bool here = next < rows.size() && rows[next].offset == at;
        const uint32_t place = at;
        at += i.kind == Instruction::invalid ? 1 : i.length;
        if (theirs.kind != RuleKind::plain || i.kind == Instruction::invalid) continue;
        ++count.places;
        const auto tell = [&](const char* what, const Rule& ours) {
          if (shown++ < 12)
            std::printf("  %s at %lx: ours base %d cfa %d fp %d %d, CFI base %d cfa %d fp %d %d\n", what,
                        (base + place).value, static_cast<int>(ours.base), ours.cfa_offset,
                        static_cast<int>(ours.fp), ours.fp_offset, static_cast<int>(theirs.base),
                        theirs.cfa_offset, static_cast<int>(theirs.fp), theirs.fp_offset);
        };
        Rule ours;
        if (here) ours = rows[next].rule;
        if (ours.kind == RuleKind::end) {
          ++count.wrong;
          tell("END", ours);
        }
        if (ours.kind == RuleKind::plain) {
          ++count.answered;
          const auto& row = rows[next];
          const int32_t mine = theirs.base == CfaBase::sp   ? row.from_sp
                               : theirs.base == CfaBase::fp ? row.from_fp
                               : theirs.base == CfaBase::bx ? row.from_bx
                                                            : CodeFlow::kUnknown;
          if (mine != CodeFlow::kUnknown) {
            ++count.compared;
            // glibc's __mpn_mul_1 and its like push without a word in their call frame information.
            if (theirs.base == CfaBase::sp && theirs.cfa_offset == 8 && mine > 8 && row.proven) {
              ++count.unsaid;
            } else if (mine != theirs.cfa_offset) {
              ++count.wrong;
              tell("CFA", ours);
            } else if (ours.fp != FpRule::unknown) {
              ++count.fp_known;
              if (!same_fp(ours, theirs)) {
                ++count.fp_wrong;
                tell("rbp", ours);
              }
            }
          }
        }
        // Here and there, where no way led to and where one did.
        if (!region || place % 16 != 0) continue;
        const Rule back = region->until_return(place);
        if (back.kind != RuleKind::plain) continue;
        if (ours.kind == RuleKind::plain) {
          const int32_t mine = back.base == CfaBase::sp   ? rows[next].from_sp
                               : back.base == CfaBase::fp ? rows[next].from_fp
                                                          : CodeFlow::kUnknown;
          if (mine == CodeFlow::kUnknown) continue;
          ++count.both;
          count.both_differ += mine != back.cfa_offset;
          continue;
        }
        ++count.back;
        if (distance(theirs, back.base) == CodeFlow::kUnknown) continue;
        ++count.back_compared;
        if (back.cfa_offset != theirs.cfa_offset) {
          ++count.back_wrong;
          tell("back", back);
        }
      }
      from = to;
    }
  }
}

std::string library_of(const char* part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find(part) != std::string::npos) return line.substr(path);
  }
  return {};
}

// PHLOX_CODE_FILES=a.so:b.so holds the analysis against more.
TEST(CodeRules, no_rule_differs_from_call_frame_information) {
  std::vector<std::string> files = {library_of("/libc.so"), "/usr/bin/python3"};
  if (const char* more = std::getenv("PHLOX_CODE_FILES")) {
    files.clear();
    std::string all = more;
    for (size_t at = 0; at != std::string::npos;) {
      const size_t end = all.find(':', at);
      files.push_back(all.substr(at, end - at));
      at = end == std::string::npos ? end : end + 1;
    }
  }
  for (const std::string& path : files) {
    if (!std::filesystem::exists(path)) continue;
    Count count;
    const auto start = std::chrono::steady_clock::now();
    compare_file(path, count, std::getenv("PHLOX_CODE_BACK") != nullptr);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const auto percent = [](size_t part, size_t whole) {
      return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    };
    std::printf(
        "%s: %zu instructions, %.1f %% answered, %zu compared, %zu wrong, rbp %zu wrong of %zu; by the way "
        "on %zu more, "
        "%zu compared, %zu wrong; both %zu, %zu differ; %.1f s\n",
        path.c_str(), count.places, percent(count.answered, count.places), count.compared, count.wrong,
        count.fp_wrong, count.fp_known, count.back, count.back_compared, count.back_wrong, count.both,
        count.both_differ, took.count());
    // Of Ubuntu 22.04's C library it is the entry that is wrong (539aa, behind a `sub` that nobody wrote
    // down); of its Python two instructions of a function's cold part (8151b), to which only code that was
    // given up jumps, are taken for a function.
    EXPECT_LE(count.wrong * 200'000, count.compared) << path;
    EXPECT_EQ(count.fp_wrong, 0u) << path;
    EXPECT_LT(count.unsaid, count.places / 500) << path;
    EXPECT_GT(count.places, 1000u);
  }
}

#endif

}  // namespace
}  // namespace phlox::unwind
