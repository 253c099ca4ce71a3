# Warnings, sanitizers, ccache: one interface library that every room and test links.
add_library(phlox_options INTERFACE)
target_compile_options(phlox_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                               -fno-strict-aliasing)
target_compile_definitions(phlox_options INTERFACE PHLOX_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Fires on plain `"(" + std::string`: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651, fixed in 13.
  target_compile_options(phlox_options INTERFACE -Wno-restrict)
endif()
if(PHLOX_WERROR)
  target_compile_options(phlox_options INTERFACE -Werror)
endif()
if(PHLOX_SANITIZE)
  string(REPLACE ";" "," _san "${PHLOX_SANITIZE}")
  # A finding ends the program: one that is printed and passed over is seen by no test.
  target_compile_options(phlox_options INTERFACE -fsanitize=${_san} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_definitions(phlox_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(phlox_options INTERFACE -fsanitize=${_san})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  # What is handed to others needs no libfmt there.
  target_compile_definitions(phlox_options INTERFACE FMT_HEADER_ONLY)
else()
  # Compiled in every file, fmt is a third of what compiling takes, instrumented two thirds.
  find_library(LIBFMT fmt REQUIRED)
  target_link_libraries(phlox_options INTERFACE ${LIBFMT})
endif()
if(PHLOX_FUZZ)
  target_compile_options(phlox_options INTERFACE -fsanitize=fuzzer-no-link
    -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/tests/fuzz/ignored.txt)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(phlox_options INTERFACE Threads::Threads)
