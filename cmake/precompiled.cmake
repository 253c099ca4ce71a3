# What nearly every source includes, compiled once for all rooms of a release: a quarter of what building it takes. OFF in the other
# presets, where each source must include what it uses.
option(PHLOX_PRECOMPILED "Compile common headers once" OFF)

if(PHLOX_PRECOMPILED)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(phlox_options INTERFACE -fpch-preprocess)  # else ccache keeps nothing
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp "")
  add_library(phlox_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(phlox_precompiled PRIVATE phlox_options)
  target_precompile_headers(phlox_precompiled PRIVATE
    <algorithm> <array> <charconv> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span> <sstream>
    <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <tl/expected.hpp> <tsl/robin_map.h>)
endif()

function(phlox_use_precompiled target)
  if(PHLOX_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM phlox_precompiled)
  endif()
endfunction()
