# The capture inside the kernel (src/phlox/sampler/kernel): clang compiles one program for BPF, libbpf loads it. Without either,
# or on a machine other than x86-64, phlox is built without --way kernel, and says so in one line.
set(PHLOX_KERNEL_CAPTURE AUTO CACHE STRING "--way kernel: ON, OFF, or AUTO (if clang and libbpf 1.0 or newer are there)")

# missing: why it cannot be built; empty: it can.
function(phlox_find_kernel_capture missing)
  set(${missing} "" PARENT_SCOPE)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(${missing} "it is written for x86-64" PARENT_SCOPE)
    return()
  endif()
  find_program(PHLOX_BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
  find_path(LIBBPF_INCLUDE bpf/libbpf_version.h)
  # As an archive, so that the program needs no library more where it runs.
  find_library(LIBBPF NAMES libbpf.a bpf)
  mark_as_advanced(PHLOX_BPF_CLANG LIBBPF_INCLUDE LIBBPF)
  if(NOT PHLOX_BPF_CLANG)
    set(${missing} "clang was not found" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${PHLOX_BPF_CLANG} -target bpf -x c -c /dev/null -o ${PROJECT_BINARY_DIR}/bpf_probe.o
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(NOT result EQUAL 0)
    set(${missing} "${PHLOX_BPF_CLANG} does not compile for BPF" PARENT_SCOPE)
    return()
  endif()
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

# Compiles the program into the target, as bytes: src/phlox/sampler/kernel/program.h.
function(phlox_add_kernel_capture target)
  set(missing "turned off")
  if(NOT PHLOX_KERNEL_CAPTURE STREQUAL "OFF")
    phlox_find_kernel_capture(missing)
  endif()
  if(missing)
    if(PHLOX_KERNEL_CAPTURE STREQUAL "ON")
      message(FATAL_ERROR "PHLOX_KERNEL_CAPTURE: ${missing}")
    endif()
    # Not by message(), which make silences below a warning.
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo "built without --way kernel: ${missing}")
    return()
  endif()
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/sampler/kernel)
  set(out ${PROJECT_BINARY_DIR}/kernel)
  file(MAKE_DIRECTORY ${out})
  file(GLOB headers CONFIGURE_DEPENDS ${source}/*.bpf.h)
  set(include)
  if(CMAKE_LIBRARY_ARCHITECTURE)
    set(include -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  # -g makes the types (BTF) by which fields of the kernel's structs are found when it is loaded.
  add_custom_command(
    OUTPUT ${out}/capture.bpf.o
    COMMAND ${PHLOX_BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Werror -D__TARGET_ARCH_x86 -I${LIBBPF_INCLUDE} ${include}
            -c ${source}/capture.bpf.c -o ${out}/capture.bpf.o
    DEPENDS ${source}/capture.bpf.c ${source}/wire.h ${headers}
    COMMENT "Compiling the capture inside the kernel"
    VERBATIM)
  add_custom_command(
    OUTPUT ${out}/program.cpp
    COMMAND ${CMAKE_COMMAND} -D OUT=${out}/program.cpp -D FILES=program=${out}/capture.bpf.o
            -D HEADER=phlox/sampler/kernel/program.h -D NAMESPACE=phlox::sampler::kernel
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${out}/capture.bpf.o ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the capture inside the kernel"
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/program.cpp)
  target_compile_definitions(${target} PRIVATE PHLOX_KERNEL_CAPTURE)
  target_include_directories(${target} SYSTEM PRIVATE ${LIBBPF_INCLUDE})
  target_link_libraries(${target} PRIVATE ${LIBBPF} ${LIBELF} ZLIB::ZLIB)
endfunction()
