# shoal_module(NAME DEPENDS other ... [LIBRARIES external ...])
#
# One folder of src/ = one static library shoal_NAME made of every *.cc in it (and in the sub-folders given by
# SUBFOLDERS), and one test program NAME_test made of every *_test.cc and *_testing.cc.
# A module links only the modules it names,
# which is how the arrows of docs/ARCHITECTURE.md are enforced at link time (tools/check_includes.py does the rest).
# LIGHT: nothing in it computes for long (shoal_light_options).
# ON_DEVICE: with CUDA the tests run a second time on a GPU (ops/device_testing.h), under the label gpu.
# MACHINES: tests named .../cuda (ops/op_testing.h) need a GPU. They are compiled in every build, and listed with CUDA
# alone, under the label gpu.

add_library(shoal_options INTERFACE)
target_include_directories(shoal_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
# Designated initialisers leave the rest at their defaults on purpose (-Wno-missing-field-initializers).
# -ffp-contract=off: a*b+c is rounded twice unless the code says fma, so that every compiler and ISA gives equal bits.
set(shoal_warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlapping copies in std::string concatenation that are not there (GCC bug 105651).
  list(APPEND shoal_warnings -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 uses what it deprecates inside its own stable_sort.
  list(APPEND shoal_warnings -Wno-deprecated-declarations)
endif()
if(SHOAL_WARNINGS_AS_ERRORS)
  list(APPEND shoal_warnings -Werror)
endif()
target_compile_options(shoal_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${shoal_warnings}>")
# nvcc's own passes trip over -Wpedantic. -lineinfo: profilers and compute-sanitizer name source lines.
set(shoal_cuda_options --expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-ffp-contract=off)
if(SHOAL_WARNINGS_AS_ERRORS)
  list(APPEND shoal_cuda_options "SHELL:-Werror all-warnings" -Xcompiler=-Werror)
endif()
# For a machine that only shows that the kernels compile: two fifths of the time, and kernels that nobody should wait for.
option(SHOAL_CUDA_QUICK "Compile CUDA kernels quickly, not to quick code" OFF)
if(SHOAL_CUDA_QUICK)
  list(APPEND shoal_cuda_options -Ofc=max)
endif()
target_compile_options(shoal_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${shoal_cuda_options}>")

# Test sources compile twice as fast with little optimisation, or under a sanitizer with none; these tests compute for
# long themselves.
set(shoal_computing_tests ops dual_ar dac kokoro audio text)

# Fuzzers link these and give them nothing.
set(shoal_not_fuzzed ops dual_ar dac kokoro kv schedule batching text_phonemes runtime)

find_package(Threads REQUIRED)
target_link_libraries(shoal_options INTERFACE Threads::Threads)

# The sources of a module in one translation unit: each header is read once for all of them.
option(SHOAL_UNITY "Compile the sources of a module together: a whole build takes a quarter of the time" ON)
function(shoal_compile_together target)
  if(SHOAL_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    # g++ takes sources that are included for headers, whose unnamed namespaces would differ from one to the next.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# For what reads options, answers requests or tests either: it compiles twice as fast, and nobody waits for it to run.
set(shoal_light_options $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)

function(shoal_module name)
  cmake_parse_arguments(ARG "ON_DEVICE;LIGHT;MACHINES" "" "DEPENDS;LIBRARIES;SUBFOLDERS;TEST_DEPENDS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder ${ARG_SUBFOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|testing|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_(test|testing)\\.cc$")

  if(NOT sources)
    message(STATUS "shoal_${name}: no sources yet")
    return()
  endif()
  add_library(shoal_${name} STATIC ${sources})
  shoal_compile_together(shoal_${name})
  if(ARG_LIGHT)
    target_compile_options(shoal_${name} PRIVATE ${shoal_light_options})
    if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
      target_compile_options(shoal_${name} PRIVATE -O0)
    endif()
  endif()
  if(SHOAL_FUZZ AND name IN_LIST shoal_not_fuzzed)
    target_compile_options(shoal_${name} PRIVATE -O0 -g0 -fno-sanitize=all)
  endif()
  target_link_libraries(shoal_${name} PUBLIC shoal_options ${ARG_LIBRARIES})
  foreach(dependency ${ARG_DEPENDS})
    target_link_libraries(shoal_${name} PUBLIC shoal_${dependency})
  endforeach()

  if(SHOAL_TESTS AND tests)
    add_executable(${name}_test ${tests})
    shoal_compile_together(${name}_test)
    target_link_libraries(${name}_test PRIVATE shoal_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE SHOAL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(NOT ${name} IN_LIST shoal_computing_tests)
      target_compile_options(${name}_test PRIVATE ${shoal_light_options})
      if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
        target_compile_options(${name}_test PRIVATE -O0)
      endif()
    endif()
    foreach(dependency ${ARG_TEST_DEPENDS})
      target_link_libraries(${name}_test PRIVATE shoal_${dependency})
    endforeach()
    if(ARG_MACHINES)
      set(without_gpu TEST_FILTER "-*/cuda*")
    endif()
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." ${without_gpu} DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 600 LABELS module)
    if(SHOAL_CUDA AND ARG_MACHINES)
      gtest_discover_tests(${name}_test TEST_PREFIX "${name}." TEST_FILTER "*/cuda*" TEST_LIST ${name}_cuda_tests
                           DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS gpu)
    endif()
    if(SHOAL_CUDA AND ARG_ON_DEVICE)
      gtest_discover_tests(${name}_test TEST_PREFIX "gpu.${name}." TEST_LIST ${name}_gpu_tests DISCOVERY_TIMEOUT 60
                           PROPERTIES TIMEOUT 600 LABELS gpu ENVIRONMENT SHOAL_TEST_DEVICE=cuda)
    endif()
  endif()
endfunction()
