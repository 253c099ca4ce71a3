#include "phlox/symbols/demangle.h"

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
  EXPECT_EQ(demangle("_Z" + std::string(100'000, 'N')), "_Z" + std::string(100'000, 'N'));
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

}  // namespace
}  // namespace phlox::symbols
