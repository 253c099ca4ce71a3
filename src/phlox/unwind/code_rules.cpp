#include "phlox/unwind/code_rules.h"

#include <elf.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "phlox/base/byte_reader.h"

namespace phlox::unwind {
namespace {

// musl's C library has half of it; larger regions are analysed in parts.
constexpr uint64_t kLargestRegion = 1 << 20;
// For one module, in all regions.
constexpr uint64_t kMostBytes = 64 << 20;
constexpr size_t kMostStarts = 1 << 16;
// Analysed instructions, some more than once: musl's C library takes a twentieth of it.
constexpr uint64_t kBudget = 40'000'000;
// For one instruction outside every function found.
constexpr uint64_t kSmallBudget = 30'000;
// Rounds until what one function reveals of another (where it starts, that it does not return) settles.
constexpr int kMostRounds = 6;
constexpr size_t kMostRules = 65535;
// How far a function that counts from its frame pointer is followed, in bytes and in rows of its table.
constexpr uint64_t kLongestRuleFunction = 65536;
constexpr size_t kMostRows = 256;
constexpr std::byte kPushRbp{0x55};

bool counts_from_sp(const Rule& rule, int32_t offset) {
  return rule.kind == RuleKind::plain && rule.base == CfaBase::sp && rule.cfa_offset == offset;
}

// The code segment that contains an address.
const elf::Segment* segment_of(const elf::ElfFile& file, uint64_t pc) {
  const auto found =
      std::find_if(file.segments().begin(), file.segments().end(), [pc](const elf::Segment& s) {
        return s.type == PT_LOAD && (s.flags & PF_X) != 0 && pc >= s.address.value &&
               pc - s.address.value < s.file_size;
      });
  return found == file.segments().end() ? nullptr : &*found;
}

bool holds(const std::vector<uint32_t>& sorted, uint32_t one) {
  return std::binary_search(sorted.begin(), sorted.end(), one);
}

// Finds the functions of a region, in rounds: what is learnt of one (where another starts, that it does not
// return) may change others, which are then analysed again.
class RegionAnalysis {
 public:
  RegionAnalysis(std::span<const std::byte> bytes, std::span<const uint32_t> functions,
                 std::span<const uint32_t> maybe);

  // Sorted, each byte once.
  std::vector<CodeFlow::Row> take_rows();
  std::vector<uint32_t> starts() const { return {starts_.begin(), starts_.end()}; }
  std::vector<uint32_t> never_return() const { return {never_.begin(), never_.end()}; }

 private:
  void follow(std::vector<uint32_t> todo, bool doubted);
  void follow_points(std::span<const uint32_t> maybe);
  bool compare_functions(int round);
  void drop_affected(int round, const std::vector<uint32_t>& news, const std::vector<uint32_t>& endless);

  size_t size_;
  Code code_;
  std::set<uint32_t> starts_, none_, never_;  // of functions; of none; of those that never return
  // The contents of the sets, a byte each: they are needed at every instruction.
  std::vector<uint8_t> is_start_, is_never_, is_proven_;
  uint64_t budget_ = kBudget;
  Surroundings around_;
  CodeFlow flow_;
  std::map<uint32_t, CodeFlow::Function> done_;
};

RegionAnalysis::RegionAnalysis(std::span<const std::byte> bytes, std::span<const uint32_t> functions,
                               std::span<const uint32_t> maybe)
    : size_(bytes.size()),
      code_(bytes),
      starts_(functions.begin(), functions.end()),
      is_start_(bytes.size()),
      is_never_(bytes.size()),
      is_proven_(bytes.size()),
      flow_(code_, around_) {
  std::erase_if(starts_, [&](uint32_t at) { return at >= size_; });
  for (const uint32_t at : starts_) is_start_[at] = 1;
  around_.end = static_cast<uint32_t>(size_);
  around_.budget = &budget_;
  around_.starts_function = [this](uint32_t at) { return is_start_[at] != 0; };
  around_.never_returns = [this](uint32_t at) { return is_never_[at] != 0; };
  around_.returns = [this](uint32_t at) { return is_proven_[at] != 0; };
  for (int round = 0; round < kMostRounds; ++round) {
    const std::set<uint32_t> starts_before = starts_, never_before = never_;
    follow({starts_.begin(), starts_.end()}, false);
    follow_points(maybe);
    const bool again = compare_functions(round);
    std::vector<uint32_t> news, endless;
    std::set_symmetric_difference(starts_.begin(), starts_.end(), starts_before.begin(), starts_before.end(),
                                  std::back_inserter(news));
    std::set_difference(never_.begin(), never_.end(), never_before.begin(), never_before.end(),
                        std::back_inserter(endless));
    if (news.empty() && endless.empty() && !again) break;
    drop_affected(round, news, endless);
  }
}

// A called function is a function.
void RegionAnalysis::follow(std::vector<uint32_t> todo, bool doubted) {
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    if (done_.count(at) != 0 || done_.size() == kMostStarts || budget_ == 0) continue;
    CodeFlow::Function& f = done_[at] = flow_.from_start(at);
    if (!f.finished || !f.sound || (doubted && !f.evidence)) {
      f.rows.clear();
      f.sound = false;
      continue;
    }
    for (const uint32_t called : f.calls) {
      if (none_.count(called) != 0 || !starts_.insert(called).second) continue;
      is_start_[called] = 1;
      todo.push_back(called);
    }
  }
}

// Computed addresses, and labels, that nothing else led to.
void RegionAnalysis::follow_points(std::span<const uint32_t> maybe) {
  std::unordered_set<uint32_t> covered;
  std::vector<uint32_t> points(maybe.begin(), maybe.end());
  for (const auto& [at, f] : done_) {
    for (const auto& row : f.rows) covered.insert(row.offset);
    if (f.sound) points.insert(points.end(), f.points.begin(), f.points.end());
  }
  for (const uint32_t at : points) {
    if (at >= size_ || covered.count(at) != 0 || starts_.count(at) != 0) continue;
    follow({at}, true);
  }
}

// What each function says of the others. True: one of them may say more in the next round.
bool RegionAnalysis::compare_functions(int round) {
  bool again = false;
  for (const auto& [at, f] : done_) {
    if (!f.sound) continue;
    is_proven_[at] = f.proven ? 1 : 0;
    again |= f.unsure && round < 2;
    if (!f.returns && never_.insert(at).second) is_never_[at] = 1;
    for (const uint32_t into : f.into) {
      if (starts_.erase(into) == 0) continue;
      is_start_[into] = 0;
      none_.insert(into);
    }
  }
  return again;
}

// Functions that this affects are analysed again. `news`: starts that came or went; `endless`: functions that
// turned out never to return. Both sorted.
void RegionAnalysis::drop_affected(int round, const std::vector<uint32_t>& news,
                                   const std::vector<uint32_t>& endless) {
  std::erase_if(done_, [&](const auto& one) {
    const CodeFlow::Function& f = one.second;
    if (none_.count(one.first) != 0 || f.rows.empty() || (f.unsure && round < 2)) return true;
    for (const uint32_t called : f.calls) {
      if (std::binary_search(endless.begin(), endless.end(), called)) return true;
    }
    const auto [low, high] = std::minmax_element(
        f.rows.begin(), f.rows.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    const auto next = std::upper_bound(news.begin(), news.end(), low->offset);
    return next != news.end() && *next <= high->offset + high->length;
  });
}

std::vector<CodeFlow::Row> RegionAnalysis::take_rows() {
  std::vector<CodeFlow::Row> rows;
  for (auto& [at, f] : done_) {
    if (none_.count(at) != 0 || !f.sound) continue;
    rows.insert(rows.end(), f.rows.begin(), f.rows.end());
    f.rows = {};
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.offset < b.offset; });
  // Two rows for the same bytes must agree.
  std::vector<CodeFlow::Row> out;
  for (const CodeFlow::Row& row : rows) {
    if (!out.empty() && row.offset == out.back().offset) {
      if (!(row.rule == out.back().rule)) out.back().rule = {};
      continue;
    }
    if (!out.empty() && row.offset < out.back().offset + out.back().length) {
      out.back().rule = {};
      continue;
    }
    out.push_back(row);
  }
  return out;
}

}  // namespace

std::vector<CodeFlow::Row> CodeRegion::rows(std::span<const std::byte> code,
                                            std::span<const uint32_t> functions,
                                            std::span<const uint32_t> maybe) {
  return RegionAnalysis(code, functions, maybe).take_rows();
}

CodeRegion::CodeRegion(std::span<const std::byte> code, std::span<const uint32_t> functions,
                       std::span<const uint32_t> maybe)
    : code_(code), rules_{Rule{}} {
  RegionAnalysis analysis(code, functions, maybe);
  starts_ = analysis.starts();
  never_return_ = analysis.never_return();
  uint64_t end = 0;
  const auto put = [this](uint64_t offset, uint16_t id) {
    if (!ids_.empty() && ids_.back() == id) return;
    offsets_.push_back(static_cast<uint32_t>(offset));
    ids_.push_back(id);
  };
  for (const CodeFlow::Row& row : analysis.take_rows()) {
    if (row.offset != end) put(end, 0);
    end = uint64_t{row.offset} + row.length;
    size_t id = ids_.empty() || !(rules_[ids_.back()] == row.rule)
                    ? static_cast<size_t>(std::find(rules_.begin(), rules_.end(), row.rule) - rules_.begin())
                    : ids_.back();
    if (id == rules_.size()) {
      if (id == kMostRules) {
        id = 0;
      } else {
        rules_.push_back(row.rule);
      }
    }
    put(row.offset, static_cast<uint16_t>(id));
  }
  put(end, 0);
  offsets_.shrink_to_fit();
  ids_.shrink_to_fit();
}

Rule CodeRegion::find(uint32_t offset) const {
  const auto next = std::upper_bound(offsets_.begin(), offsets_.end(), offset);
  if (next == offsets_.begin()) return {};
  return rules_[ids_[static_cast<size_t>(next - offsets_.begin()) - 1]];
}

Rule CodeRegion::until_return(uint32_t offset) const {
  Code code(code_);
  uint64_t budget = kSmallBudget;
  Surroundings around;
  around.end = static_cast<uint32_t>(code_.size());
  around.budget = &budget;
  around.starts_function = [this](uint32_t at) { return holds(starts_, at); };
  around.never_returns = [this](uint32_t at) { return holds(never_return_, at); };
  around.returns = [](uint32_t) { return false; };
  return CodeFlow(code, around).until_return(offset);
}

CodeRules::CodeRules(const elf::ElfFile& file, const UnwindTable* table) : file_(file), table_(table) {}

void CodeRules::starts(const elf::ElfFile& file, std::vector<ImageAddress>& functions,
                       std::vector<ImageAddress>& maybe) {
  size_t most = 8'000'000;
  file.for_each_symbol([&](const elf::Symbol& s) {
    if (s.type == STT_FUNC || s.type == STT_GNU_IFUNC) functions.push_back(s.address);
    if (s.type == STT_NOTYPE) maybe.push_back(s.address);
    return --most > 1;
  });
  if (file.entry()) maybe.push_back(file.entry());
  // The linker's tables of functions.
  for (const elf::Section& section : file.sections()) {
    if (section.type != SHT_RELA) continue;
    ByteReader in(file.contents(section));
    while (in.remaining() >= sizeof(Elf64_Rela) && --most != 0) {
      const auto relocation = in.read<Elf64_Rela>();
      const uint32_t type = ELF64_R_TYPE(relocation.r_info);
      if (type == R_X86_64_RELATIVE || type == R_X86_64_IRELATIVE)
        maybe.emplace_back(static_cast<uint64_t>(relocation.r_addend));
    }
  }
  for (auto* all : {&functions, &maybe}) {
    std::sort(all->begin(), all->end());
    all->erase(std::unique(all->begin(), all->end()), all->end());
  }
}

const CodeRules::Region* CodeRules::region_of(uint64_t pc) {
  for (const Region& s : regions_) {
    if (pc >= s.start && pc < s.end) return &s;
  }
  const elf::Segment* segment = segment_of(file_, pc);
  if (segment == nullptr) return nullptr;
  if (!asked_) starts(file_, functions_, maybe_);
  asked_ = true;
  uint64_t start = segment->address.value, end = start + segment->file_size;
  if (table_ != nullptr) {
    const auto gap = table_->gap(ImageAddress(pc));
    start = std::max(start, gap.first.value);
    end = std::min(end, gap.second.value);
  }
  // For a large one, whole functions around the place.
  if (end - start > kLargestRegion) {
    const auto whole = [this](uint64_t at, bool up, uint64_t otherwise) {
      auto next = std::lower_bound(functions_.begin(), functions_.end(), ImageAddress(at));
      if (!up && (next == functions_.end() || next->value != at)) {
        if (next == functions_.begin()) return otherwise;
        --next;
      }
      return next == functions_.end() ? otherwise : next->value;
    };
    const uint64_t low = pc - start > kLargestRegion / 2 ? whole(pc - kLargestRegion / 2, true, pc) : start;
    if (low > pc) {
      start = std::max(start, whole(pc, false, pc));
    } else {
      start = low;
    }
    if (end - start > kLargestRegion) end = std::max(whole(start + kLargestRegion, false, pc), pc + 1);
    if (end - start > kLargestRegion || end <= pc) end = std::min(end, start + kLargestRegion);
  }
  if (pc < start || pc >= end || visited_ + (end - start) > kMostBytes) return nullptr;
  visited_ += end - start;
  const auto within = [start, end](const std::vector<ImageAddress>& all) {
    std::vector<uint32_t> out;
    for (auto at = std::lower_bound(all.begin(), all.end(), ImageAddress(start));
         at != all.end() && at->value < end && out.size() < kMostStarts; ++at)
      out.push_back(static_cast<uint32_t>(at->value - start));
    return out;
  };
  const auto bytes = file_.at(ImageAddress(start), end - start);
  regions_.push_back({start, end, std::make_unique<CodeRegion>(bytes, within(functions_), within(maybe_))});
  return &regions_.back();
}

CodeRules::Found CodeRules::find(ImageAddress pc, bool exact) {
  if (file_.machine() != EM_X86_64) return {};
  const uint64_t inside = exact ? pc.value : pc.value - 1;
  const Region* region = region_of(inside);
  if (region == nullptr) return {};
  Found found;
  found.rule = region->code->find(static_cast<uint32_t>(inside - region->start));
  if (found.rule.kind != RuleKind::none || pc.value >= region->end) return found;
  const auto known = until_return_.find(pc.value);
  found.rule = known != until_return_.end()
                   ? known->second
                   : region->code->until_return(static_cast<uint32_t>(pc.value - region->start));
  if (until_return_.size() < kMostRules) until_return_.try_emplace(pc.value, found.rule);
  found.until_return = true;
  return found;
}

// The table's rows show where the frame pointer was pushed and set; from the push on, the function is run.
Rule CodeRules::follow_stack_pointer(uint64_t pc) {
  const UnwindTable& table = *table_;
  size_t here = 0;
  for (size_t step = table.row_count(); step > 0;) {
    const size_t half = step / 2;
    const bool before = table.row_start(here + half).value <= pc;
    if (before) here += half;
    step = half == 0 ? 0 : before ? step - half : half;
  }
  if (table.row_count() == 0 || table.row_start(here).value > pc) return {};
  Rule rule = table.row_rule(here);
  if (rule.kind != RuleKind::plain || rule.base != CfaBase::fp) return {};
  size_t set = here;  // the row in which it was pushed, but not set yet
  for (size_t i = here;
       i-- > 1 && here - i < kMostRows && pc - table.row_start(i).value < kLongestRuleFunction;) {
    if (table.row_rule(i).kind == RuleKind::none) break;
    if (!counts_from_sp(table.row_rule(i), 16) || !counts_from_sp(table.row_rule(i - 1), 8)) continue;
    set = i;
    break;
  }
  if (set == here) return {};
  const uint64_t start = table.row_start(set).value - 1;
  const elf::Segment* segment = segment_of(file_, pc);
  if (segment == nullptr || start < segment->address.value) return {};
  uint64_t end = std::min(start + kLongestRuleFunction, segment->address.value + segment->file_size);
  for (size_t i = here + 1; i < table.row_count() && table.row_start(i).value < end; ++i) {
    if (table.row_rule(i).kind == RuleKind::none) end = table.row_start(i).value;
  }
  const auto bytes = file_.at(ImageAddress(start), end - start);
  if (bytes.empty() || bytes.front() != kPushRbp) return {};
  Code code(bytes);
  uint64_t budget = kSmallBudget;
  Surroundings around;
  around.end = static_cast<uint32_t>(bytes.size());
  around.budget = &budget;
  around.starts_function = around.never_returns = around.returns = [](uint32_t) { return false; };
  const CodeFlow::Function function = CodeFlow(code, around).from_start(0);
  if (!function.finished || !function.sound) return {};
  for (const CodeFlow::Row& row : function.rows) {
    if (pc - start < row.offset || pc - start >= uint64_t{row.offset} + row.length) continue;
    if (row.from_sp == CodeFlow::kUnknown) return {};
    rule.base = CfaBase::sp;
    rule.cfa_offset = row.from_sp;
    return rule;
  }
  return {};
}

Rule CodeRules::by_stack_pointer(ImageAddress pc, bool exact) {
  if (file_.machine() != EM_X86_64 || table_ == nullptr) return {};
  const uint64_t inside = exact ? pc.value : pc.value - 1;
  if (const auto known = by_stack_pointer_.find(inside); known != by_stack_pointer_.end())
    return known->second;
  const Rule rule = follow_stack_pointer(inside);
  if (by_stack_pointer_.size() < kMostRules) by_stack_pointer_.try_emplace(inside, rule);
  return rule;
}

}  // namespace phlox::unwind
