# What batches are, and what they ask of names: rooms.cmake.
set(_unity OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(_unity ON)
endif()
option(PHLOX_UNITY "Compile the sources of a room in batches" ${_unity})

# Warnings, sanitizers, ccache: one interface library that every room and test links.
add_library(phlox_options INTERFACE)
target_compile_options(phlox_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion
                                               -fno-strict-aliasing)
# In a batch, GCC would also warn of names and types of two files that never meet otherwise.
if(PHLOX_UNITY)
  target_compile_options(phlox_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local$<SEMICOLON>-Wno-subobject-linkage>)
else()
  target_compile_options(phlox_options INTERFACE -Wshadow)
endif()
if(PHLOX_CANDIDATE)
  set(_candidate -${PHLOX_CANDIDATE})
endif()
target_compile_definitions(phlox_options INTERFACE PHLOX_VERSION="${PROJECT_VERSION}${_candidate}" _FILE_OFFSET_BITS=64)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Fires on plain `"(" + std::string`: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651, fixed in 13.
  target_compile_options(phlox_options INTERFACE -Wno-restrict)
endif()
# Errors where CI builds too (GCC 12). Each version has warnings of its own, some of what is not there, and whoever runs the tests
# on another system is to see them run: GCC 11 sees a read of 2^64 bytes in string_view::find.
if(PHLOX_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  target_compile_options(phlox_options INTERFACE -Werror)
endif()
# With -O3 the recorder costs what it costs with -O2, and compiling takes longer. With a larger heap, GCC collects less garbage.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(phlox_options INTERFACE "SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=262144")
endif()
if(PHLOX_SANITIZE)
  string(REPLACE ";" "," _san "${PHLOX_SANITIZE}")
  # A finding ends the program: one that is printed and passed over is seen by no test.
  target_compile_options(phlox_options INTERFACE -fsanitize=${_san}
    $<IF:$<BOOL:${PHLOX_FUZZ_BULK}>,-fsanitize-trap=all,-fno-sanitize-recover=all$<SEMICOLON>-fno-omit-frame-pointer>)
  target_compile_definitions(phlox_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(phlox_options INTERFACE -fsanitize=${_san})
endif()
if(PHLOX_FUZZ)
  # In bulk, comparisons do not tell what they compare: that is a quarter of an execution.
  target_compile_options(phlox_options INTERFACE
    -fsanitize$<IF:$<BOOL:${PHLOX_FUZZ_BULK}>,-coverage=inline-8bit-counters$<COMMA>pc-table,=fuzzer-no-link>
    -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/tests/fuzz/ignored.txt)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  # What one clone or worktree compiled serves the others (the source files' directory in the debug information is the first one's).
  # The sloppiness is what precompiled headers need, and no source uses __TIME__.
  set(_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${_launcher})
endif()
find_package(Threads REQUIRED)
target_link_libraries(phlox_options INTERFACE Threads::Threads)

# fmt, compiled once (src/fmt): compiled in every file it is half of what the build takes.
add_library(phlox_fmt STATIC ${PROJECT_SOURCE_DIR}/src/fmt/fmt.cpp)
target_compile_options(phlox_fmt PRIVATE $<TARGET_PROPERTY:phlox_options,INTERFACE_COMPILE_OPTIONS> -w)
target_link_libraries(phlox_options INTERFACE phlox_fmt)
