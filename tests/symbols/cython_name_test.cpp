#include "phlox/symbols/cython_name.h"

#include <gtest/gtest.h>

namespace phlox::symbols {
namespace {

std::string name_of(std::string_view symbol, std::string_view stem = {}) {
  return cython_name(symbol, stem).name;
}

TEST(CythonName, the_functions_that_one_becomes_have_one_name) {
  const CythonName wrapper = cython_name("__pyx_pw_4fast_5inner_1compute");
  const CythonName body = cython_name("__pyx_pf_4fast_5inner_compute");
  const CythonName function = cython_name("__pyx_f_4fast_5inner_compute");
  EXPECT_EQ(wrapper.name, "fast.inner.compute");
  EXPECT_EQ(body.name, "fast.inner.compute");
  EXPECT_EQ(function.name, "fast.inner.compute");
  EXPECT_EQ(wrapper.part, CythonPart::wrapper);
  EXPECT_EQ(body.part, CythonPart::body);
  EXPECT_EQ(function.part, CythonPart::function);
}

TEST(CythonName, methods_properties_and_what_a_type_points_to) {
  EXPECT_EQ(name_of("__pyx_pw_7sklearn_4tree_5_tree_21DepthFirstTreeBuilder_3build"),
            "sklearn.tree._tree.DepthFirstTreeBuilder.build");
  EXPECT_EQ(name_of("__pyx_pf_7sklearn_4tree_5_tree_21DepthFirstTreeBuilder_2build"),
            "sklearn.tree._tree.DepthFirstTreeBuilder.build");
  EXPECT_EQ(name_of("__pyx_pw_4fast_1C_6weight_1__get__"), "fast.C.weight.__get__");
  EXPECT_EQ(name_of("__pyx_pf_4fast_1C_6weight___get__"), "fast.C.weight.__get__");
  EXPECT_EQ(name_of("__pyx_getprop_4fast_1C_weight"), "fast.C.weight.__get__");
  EXPECT_EQ(cython_name("__pyx_getprop_4fast_1C_weight").part, CythonPart::slot);
  EXPECT_EQ(name_of("__pyx_tp_dealloc_4fast_C"), "fast.C.tp_dealloc");
  EXPECT_EQ(name_of("__pyx_specialmethod___pyx_pw_4fast_1C_3__next__"), "fast.C.__next__");
  EXPECT_EQ(name_of("__pyx_fuse_0__pyx_pw_4fast_3total"), "fast.total");
  EXPECT_EQ(name_of("__pyx_pymod_exec_fast"), "fast.<module>");
}

TEST(CythonName, counter_that_is_as_long_as_the_first_word_is_no_scope) {
  EXPECT_EQ(name_of("__pyx_pw_4fast_3get_value"), "fast.get_value");
  EXPECT_EQ(name_of("__pyx_pf_4fast_6update_rows"), "fast.update_rows");
  EXPECT_EQ(name_of("__pyx_pw_4fast_6update_1rows"), "fast.update.rows");  // of a closure in update()
  EXPECT_EQ(name_of("__pyx_pf_4fast_5outer_inner"), "fast.outer.inner");
  EXPECT_EQ(name_of("__pyx_pf_4fast_4Tree_grow"), "fast.Tree.grow");
  EXPECT_EQ(name_of("__pyx_pf_7package_4core_start", "core"), "package.core.start");
}

TEST(CythonName, dot_in_a_scope_is_counted_as_one) {
  EXPECT_EQ(name_of("__pyx_array___pyx_pf_15View_dot_MemoryView_5array_2__getbuffer__"),
            "View.MemoryView.array.__getbuffer__");
  EXPECT_EQ(name_of("__pyx_f_10sparse_dot_add"), "sparse_dot.add");
}

TEST(CythonName, in_cpp_and_with_what_compilers_add) {
  EXPECT_EQ(name_of("_ZL23__pyx_pw_4fast_1computeP7_objectS0_"), "fast.compute");
  EXPECT_EQ(cython_name("_ZL23__pyx_pw_4fast_1computeP7_objectS0_.isra.0").part, CythonPart::wrapper);
  EXPECT_EQ(name_of("__pyx_pw_4fast_1compute.constprop.0"), "fast.compute");
  EXPECT_EQ(name_of("__pyx_pf_4fast_compute.isra.0.cold"), "fast.compute");
}

TEST(CythonName, what_is_none_has_none) {
  for (const std::string_view symbol :
       {"", "__pyx_", "__pyx_pw_", "__pyx_pw_4fast", "__pyx_pw_4fast_", "__pyx_pw_9fast_1f",
        "__pyx_module_cleanup", "__pyx_pw_0_1f", "_Z", "_ZL", "_ZL99__pyx_pw_4fast_1f", "PyObject_Call",
        "__Pyx_PyObject_Call", "__pyx_pw_99999999999999999999_1f", "_ZL9999999999f"})
    EXPECT_EQ(name_of(symbol), "") << symbol;
  EXPECT_EQ(name_of("__pyx_pw_" + std::string(10'000, '1')), "");
  std::string deep = "__pyx_pw_";
  for (int i = 0; i < 1000; ++i) deep += "1a_";
  EXPECT_LT(name_of(deep + "1f").size(), deep.size());
}

}  // namespace
}  // namespace phlox::symbols
