# The loops of the forward pass and of the scorers are compiled once per instruction set; which one runs is decided at
# start (cpu_dispatch.cc).
set(hopscope_isas baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND hopscope_isas avx2 avx512)
endif()
set(hopscope_isa_flags_baseline "")
set(hopscope_isa_flags_avx2 -mavx2 -mfma)
set(hopscope_isa_flags_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mprefer-vector-width=512)

# hopscope_isa_objects(NAME SRCS ...)  compiles the sources once per instruction set, as object libraries
# hopscope_NAME_ISA; their names go into hopscope_NAME_objects.
function(hopscope_isa_objects name)
  cmake_parse_arguments(ARG "" "" "SRCS" ${ARGN})
  set(objects)
  foreach(isa IN LISTS hopscope_isas)
    set(target hopscope_${name}_${isa})
    add_library(${target} OBJECT ${ARG_SRCS})
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
    target_compile_definitions(${target} PRIVATE HOPSCOPE_ISA=isa_${isa})
    # psabi: vectors are passed between functions of the same file alone.
    target_compile_options(${target} PRIVATE -O3 -ffp-contract=fast -fno-math-errno -Wno-psabi
      ${hopscope_isa_flags_${isa}})
    target_link_libraries(${target} PRIVATE hopscope_warnings)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(hopscope_${name}_objects ${objects} PARENT_SCOPE)
endfunction()
