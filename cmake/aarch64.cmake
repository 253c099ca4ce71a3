# The toolchain of the preset aarch64: Debian's cross compiler, and the root of libraries that tools/aarch64-root.sh unpacks.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

if(DEFINED ENV{PHLOX_AARCH64_ROOT})
  set(CMAKE_SYSROOT $ENV{PHLOX_AARCH64_ROOT})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(CMAKE_SYSROOT $ENV{XDG_CACHE_HOME}/phlox/aarch64/root)
else()
  set(CMAKE_SYSROOT $ENV{HOME}/.cache/phlox/aarch64/root)
endif()
if(NOT EXISTS ${CMAKE_SYSROOT}.made)
  message(FATAL_ERROR "there are no libraries for aarch64 in ${CMAKE_SYSROOT}: tools/aarch64-root.sh")
endif()

# Libraries and headers are the root's, programs (esbuild, ccache) this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})
