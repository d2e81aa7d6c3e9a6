# LibTorch from the PyPI wheel that scripts/setup unpacks. Only libtorch_cpu and libc10 are linked; CUDA is loaded at run
# time (dlopen) where it is there. HOPSCOPE_TORCH_DIR may name another folder that holds include/ and lib/.
if(NOT HOPSCOPE_WITH_TORCH)
  return()
endif()

set(HOPSCOPE_TORCH_DIR "" CACHE PATH "LibTorch: the folder with include/ and lib/; empty: the one of scripts/setup")
if(HOPSCOPE_TORCH_DIR)
  set(hopscope_torch_dir "${HOPSCOPE_TORCH_DIR}")
else()
  set(hopscope_torch_dir "${HOPSCOPE_CACHE_DIR}/libtorch-2.11.0/torch")
endif()
if(NOT EXISTS "${hopscope_torch_dir}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch is not at ${hopscope_torch_dir}. Run scripts/setup, or pass -DHOPSCOPE_TORCH_DIR=DIR, "
    "or build without it: -DHOPSCOPE_WITH_TORCH=OFF.")
endif()

add_library(hopscope_c10 SHARED IMPORTED)
set_target_properties(hopscope_c10 PROPERTIES
  IMPORTED_LOCATION "${hopscope_torch_dir}/lib/libc10.so" IMPORTED_NO_SONAME TRUE)
add_library(hopscope_torch_cpu SHARED IMPORTED)
set_target_properties(hopscope_torch_cpu PROPERTIES
  IMPORTED_LOCATION "${hopscope_torch_dir}/lib/libtorch_cpu.so" IMPORTED_NO_SONAME TRUE)

# The wheel's include folder also holds old copies of fmt and protobuf: -idirafter puts it behind the system's.
add_library(hopscope_torch INTERFACE)
add_library(hopscope::torch ALIAS hopscope_torch)
target_compile_options(hopscope_torch INTERFACE
  "SHELL:-idirafter ${hopscope_torch_dir}/include"
  "SHELL:-idirafter ${hopscope_torch_dir}/include/torch/csrc/api/include")
target_link_libraries(hopscope_torch INTERFACE hopscope_torch_cpu hopscope_c10)
target_link_options(hopscope_torch INTERFACE "-Wl,-rpath,${hopscope_torch_dir}/lib")
