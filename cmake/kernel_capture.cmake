# Sampling inside the kernel (src/phlox/sampler/kernel): a BPF program, which libbpf loads. The compiled program is kept in the tree
# (bpf_object.cmake); clang compiles it again if its sources have changed. Without libbpf, or on a machine other than x86-64 and
# aarch64, phlox is built without --way kernel. The last line of the build and `phlox --version` say so.
set(PHLOX_KERNEL_CAPTURE AUTO CACHE STRING "--way kernel: ON, OFF, or AUTO (if libbpf 1.0 or newer is there)")
include(${CMAKE_CURRENT_LIST_DIR}/bpf_object.cmake)

# The machine that phlox is built for, if there is a program for it; or empty.
function(phlox_bpf_machine out)
  set(${out} "" PARENT_SCOPE)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(${out} x86_64 PARENT_SCOPE)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(${out} aarch64 PARENT_SCOPE)
  endif()
endfunction()

# missing: why it cannot be built; empty: it can.
function(phlox_find_kernel_capture missing)
  set(${missing} "" PARENT_SCOPE)
  phlox_bpf_machine(machine)
  if(NOT machine)
    set(${missing} "it supports only x86-64 and aarch64" PARENT_SCOPE)
    return()
  endif()
  # tools/libbpf.sh downloads one where the distribution's is too old.
  set(made $ENV{XDG_CACHE_HOME})
  if(NOT made)
    set(made $ENV{HOME}/.cache)
  endif()
  find_path(LIBBPF_INCLUDE bpf/libbpf_version.h HINTS ${made}/phlox/libbpf/include)
  # The archive, so that the program does not need the library where it runs.
  if(LIBBPF_INCLUDE STREQUAL "${made}/phlox/libbpf/include")
    set(LIBBPF ${made}/phlox/libbpf/lib/libbpf.a CACHE FILEPATH "" FORCE)
  else()
    find_library(LIBBPF NAMES libbpf.a bpf)
  endif()
  mark_as_advanced(LIBBPF_INCLUDE LIBBPF)
  if(NOT LIBBPF_INCLUDE OR NOT LIBBPF)
    set(${missing} "libbpf 1.0 or newer was not found (libbpf-dev)" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${LIBBPF_INCLUDE}/bpf/libbpf_version.h line REGEX "define LIBBPF_MAJOR_VERSION")
  string(REGEX MATCH "[0-9]+" version "${line}")
  if(NOT version OR version LESS 1)
    set(${missing} "libbpf is older than 1.0" PARENT_SCOPE)
  endif()
endfunction()

# The compiled program: the kept one or, if the sources have changed since, what clang makes of them.
function(phlox_bpf_program object)
  phlox_bpf_sources(sources)
  phlox_bpf_machine(machine)
  phlox_bpf_kept(kept ${machine})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${kept} ${PHLOX_BPF_NOTE})
  phlox_bpf_kept_is_stale(stale ${machine})
  if(NOT stale)
    set(${object} ${kept} PARENT_SCOPE)
    return()
  endif()
  find_program(PHLOX_BPF_CLANG NAMES clang-14 clang clang-19 clang-18 clang-17 clang-16 clang-15)
  mark_as_advanced(PHLOX_BPF_CLANG)
  if(NOT PHLOX_BPF_CLANG)
    message(FATAL_ERROR "${stale}, and there is no clang to compile them: apt-get install clang (and run `make bpf` before you commit). "
                        "Or build without --way kernel: -DPHLOX_KERNEL_CAPTURE=OFF")
  endif()
  set(fresh ${PROJECT_BINARY_DIR}/kernel/capture.bpf.o)
  phlox_bpf_command(command ${PHLOX_BPF_CLANG} ${machine} ${fresh})
  add_custom_command(OUTPUT ${fresh} COMMAND ${command} DEPENDS ${sources} COMMENT "Compiling the BPF program" VERBATIM)
  set(${object} ${fresh} PARENT_SCOPE)
endfunction()

# Embeds the program in the target, as bytes: src/phlox/sampler/kernel/program.h. Sets PHLOX_KERNEL_CAPTURE_MISSING in the caller to
# the reason if it cannot.
function(phlox_add_kernel_capture target)
  set(missing "PHLOX_KERNEL_CAPTURE was OFF when it was built")
  if(NOT PHLOX_KERNEL_CAPTURE STREQUAL "OFF")
    phlox_find_kernel_capture(missing)
  endif()
  set(PHLOX_KERNEL_CAPTURE_MISSING "${missing}" PARENT_SCOPE)
  if(missing)
    if(PHLOX_KERNEL_CAPTURE STREQUAL "ON")
      message(FATAL_ERROR "PHLOX_KERNEL_CAPTURE: ${missing}")
    endif()
    set_property(SOURCE sampler/kernel/kernel_capture.cpp APPEND PROPERTY COMPILE_DEFINITIONS
                 "PHLOX_KERNEL_CAPTURE_MISSING=\"${missing}\"")
    return()
  endif()
  set(out ${PROJECT_BINARY_DIR}/kernel)
  file(MAKE_DIRECTORY ${out})
  phlox_bpf_program(object)
  add_custom_command(
    OUTPUT ${out}/program.cpp
    COMMAND ${CMAKE_COMMAND} -D OUT=${out}/program.cpp -D FILES=program=${object}
            -D HEADER=phlox/sampler/kernel/program.h -D NAMESPACE=phlox::sampler::kernel
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${object} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the BPF program"
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/program.cpp)
  target_include_directories(${target} SYSTEM PRIVATE ${LIBBPF_INCLUDE})
  target_link_libraries(${target} PRIVATE ${LIBBPF} ${LIBELF} ZLIB::ZLIB)
endfunction()
