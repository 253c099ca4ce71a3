#include "phlox/symbols/demangle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace phlox::symbols {
namespace {

TEST(Demangle, every_scheme_and_what_is_none) {
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)");
  EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(demangle("_PyEval_EvalFrameDefault"), "_PyEval_EvalFrameDefault");
  EXPECT_EQ(demangle("read@plt"), "read@plt");
  EXPECT_EQ(demangle(""), "");
  EXPECT_EQ(demangle("_Z"), "_Z");
}

TEST(Demangle, what_linkers_and_compilers_add_stays_behind_the_name) {
  EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE@plt"), "core::fmt::write@plt");
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi@plt"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)@plt");
  EXPECT_EQ(demangle("_Z1fi@@V_2.1"), "f(int)@@V_2.1");
  EXPECT_EQ(demangle("_Z1fi.cold"), "f(int) [clone .cold]");
  EXPECT_EQ(demangle("_Z1fi.part.0.constprop.1"), "f(int) [clone .part.0] [clone .constprop.1]");
  EXPECT_EQ(demangle("_Z1fi.llvm.1234567890"), "f(int) [clone .llvm.1234567890]");
  EXPECT_EQ(demangle("_Z1fi.__uniq.12345.llvm.77"), "f(int) [clone .__uniq.12345] [clone .llvm.77]");
  EXPECT_EQ(demangle("_Z1fi.arch_x86_64_v3"), "f(int) [clone .arch_x86_64_v3]");
  EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123"), "core::fmt::write");
  EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE.cold"), "core::fmt::write [clone .cold]");
  EXPECT_EQ(demangle("_ZN4core3ptr13drop_in_place17h0123456789abcdefE.isra.0@plt"),
            "core::ptr::drop_in_place [clone .isra.0]@plt");
  EXPECT_EQ(demangle("_RNvCs1234_7mycrate3foo@plt"), "mycrate::foo@plt");
  EXPECT_EQ(demangle("memcpy.cold"), "memcpy.cold");
  EXPECT_EQ(demangle("_Znot.mangled@plt"), "_Znot.mangled@plt");
  EXPECT_EQ(short_name(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi@plt")), "vector::push_back@plt");
  EXPECT_EQ(short_name("core::fmt::write@plt"), "fmt::write@plt");
}

TEST(Demangle, cython_s_functions_are_named_by_module) {
  EXPECT_EQ(demangle("__pyx_pw_4fast_5inner_1compute"), "fast.inner.compute");
  EXPECT_EQ(demangle("__pyx_pf_4fast_compute"), "fast.compute");
  EXPECT_EQ(demangle("__pyx_f_4fast_helper"), "fast.helper");
  EXPECT_EQ(demangle("__pyx_module_cleanup"), "__pyx_module_cleanup");
}

TEST(Demangle, name_of_any_length_and_depth_ends) {
  std::string deep = "_Z1f";
  for (int i = 0; i < 20'000; ++i) deep += "P";
  EXPECT_FALSE(demangle(deep + "i").empty());
  const std::string cut = demangle("_Z" + std::string(100'000, 'N'));
  EXPECT_TRUE(cut.size() < 40'000 && cut.ends_with("N...")) << cut.size();
  EXPECT_LT(short_name(std::string(100'000, 'N')).size(), 40'000u);
}

// Each level names the one before twice.
TEST(Demangle, a_name_that_would_expand_to_terabytes_stays_as_it_is) {
  const auto nested = [](int levels) {
    std::string cpp = "_Z1fP1P";
    for (int i = 1; i < levels; ++i) cpp += "IS_";
    cpp += "IiiE";
    for (int i = 0; i + 1 < levels; ++i)
      cpp += fmt::format("S{}_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
    return cpp;
  };
  EXPECT_EQ(demangle(nested(2)), "f(P<P<int, int>, P<int, int> >*)");
  EXPECT_EQ(demangle(nested(36)), nested(36));
  EXPECT_EQ(demangle(nested(36) + ".cold"), nested(36) + ".cold");
  EXPECT_EQ(demangle("_RINvC1a1bTyyETB7_B7_EE"), "a::b::<(u64, u64), ((u64, u64), (u64, u64))>");
  const std::string rust =
      "_RINvC1a1bTyyETB7_B7_ETBb_Bb_ETBj_Bj_ETBr_Br_ETBz_Bz_ETBH_BH_ETBP_BP_ETBX_BX_ETB"
      "15_B15_ETB1d_B1d_ETB1n_B1n_ETB1x_B1x_ETB1H_B1H_ETB1R_B1R_ETB21_B21_ETB2b_B2b_EE";
  EXPECT_EQ(demangle(rust), rust);
}

TEST(ShortName, keeps_the_last_two_parts) {
  EXPECT_EQ(short_name("std::vector<int, std::allocator<int> >::push_back(int const&)"), "vector::push_back");
  EXPECT_EQ(short_name("void sort<It, (anonymous namespace)::Less>(It, It)"), "sort");
  EXPECT_EQ(short_name("a::b::c::operator()(int)"), "c::operator()");
  EXPECT_EQ(short_name("std::ostream& std::operator<< <char>(std::ostream&, char)"), "std::operator<<");
  EXPECT_EQ(short_name("(anonymous namespace)::run(int)"), "(anonymous namespace)::run");
  EXPECT_EQ(short_name("polars_core::frame::DataFrame::filter"), "DataFrame::filter");
  EXPECT_EQ(short_name("rayon::join::join_context::{{closure}}"), "join_context::{{closure}}");
  EXPECT_EQ(short_name("PyObject_Call"), "PyObject_Call");
  EXPECT_EQ(short_name("read@plt"), "read@plt");
  EXPECT_EQ(short_name("((((("), "(((((");
  EXPECT_EQ(short_name(""), "");
}

TEST(ShortName, of_rust_is_never_broken) {
  EXPECT_EQ(short_name("core::slice::sort::stable::merge_sort::<u64, fn(&u64) -> bool>"),
            "stable::merge_sort");
  EXPECT_EQ(short_name("core::slice::sort::merge_sort::<T, F>::{closure#0}"), "merge_sort::{closure#0}");
  EXPECT_EQ(short_name("<bytewax::outputs::DynamicOp<T> as timely::scheduling::Schedule>::schedule"),
            "DynamicOp::schedule");
  EXPECT_EQ(short_name("<&mut F as core::ops::function::FnMut<(A,)>>::call_mut"), "F::call_mut");
  EXPECT_EQ(short_name("<<a::Outer as b::Has>::Inner as c::Trait>::run"), "Inner::run");
  EXPECT_EQ(short_name("<[u8] as core::fmt::Debug>::fmt"), "[u8]::fmt");
  EXPECT_EQ(short_name("alloc::slice::<impl [T]>::to_vec"), "[T]::to_vec");
  EXPECT_EQ(short_name("rayon_core::registry::<impl core::fmt::Debug for rayon_core::Pool>::fmt"),
            "Pool::fmt");
  EXPECT_EQ(short_name("bytewax::worker::build::{{closure}}::{{closure}}"),
            "build::{{closure}}::{{closure}}");
  EXPECT_EQ(short_name("core::ptr::drop_in_place<alloc::string::String>"), "ptr::drop_in_place");
  EXPECT_EQ(short_name("mycrate::{impl#3}::go"), "mycrate::go");
  EXPECT_EQ(short_name("{closure#0}"), "{closure#0}");
}

TEST(ShortName, of_cpp_keeps_operators_and_lambdas) {
  EXPECT_EQ(short_name("ns::run(int)::{lambda(int, char)#2}::operator()(int, char) const"),
            "run::{lambda#2}");
  EXPECT_EQ(short_name("ns::Type::operator bool() const"), "Type::operator bool");
  EXPECT_EQ(short_name("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(short_name("std::vector<int> ns::make<int>(int (*)(char)) [clone .cold]"), "ns::make");
  EXPECT_EQ(short_name("ns::Pointer<T>::operator->() const"), "Pointer::operator->");
  EXPECT_EQ(short_name("decltype (f({parm#1})) ns::call<int>(int)"), "ns::call");
  EXPECT_EQ(short_name("non-virtual thunk to ns::Type::close()"), "Type::close");
  EXPECT_EQ(short_name("std::string ns::name[abi:cxx11](int)"), "ns::name");
}

TEST(ShortName, of_any_nesting_ends) {
  EXPECT_FALSE(short_name(std::string(30'000, '<')).empty());
  EXPECT_FALSE(short_name(std::string(30'000, '{') + "::" + std::string(3'000, '>')).empty());
}

}  // namespace
}  // namespace phlox::symbols
