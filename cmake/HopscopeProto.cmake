# Generates C++ from the .proto files: messages and gRPC stubs are separate targets, so that what must not see gRPC
# can use the messages.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_program(HOPSCOPE_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# hopscope_proto_library(NAME GRPC_NAME NAME2 PROTOS ... IMPORT_DIRS ... ): paths in PROTOS are relative to the first
# import dir.
function(hopscope_proto_library name)
  cmake_parse_arguments(ARG "" "GRPC_NAME" "PROTOS;IMPORT_DIRS;DEPS" ${ARGN})
  set(out "${CMAKE_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${out}")
  list(GET ARG_IMPORT_DIRS 0 root)
  set(includes)
  foreach(dir IN LISTS ARG_IMPORT_DIRS)
    list(APPEND includes "-I${dir}")
  endforeach()
  set(message_sources)
  set(grpc_sources)
  foreach(proto IN LISTS ARG_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    add_custom_command(
      OUTPUT "${out}/${stem}.pb.cc" "${out}/${stem}.pb.h"
      COMMAND protobuf::protoc ${includes} "--cpp_out=${out}" "${root}/${proto}"
      DEPENDS "${root}/${proto}" VERBATIM)
    list(APPEND message_sources "${out}/${stem}.pb.cc")
    if(ARG_GRPC_NAME)
      add_custom_command(
        OUTPUT "${out}/${stem}.grpc.pb.cc" "${out}/${stem}.grpc.pb.h"
        COMMAND protobuf::protoc ${includes} "--grpc_out=generate_mock_code=true:${out}"
          "--plugin=protoc-gen-grpc=${HOPSCOPE_GRPC_CPP_PLUGIN}" "${root}/${proto}"
        DEPENDS "${root}/${proto}" VERBATIM)
      list(APPEND grpc_sources "${out}/${stem}.grpc.pb.cc")
    endif()
  endforeach()
  add_library(hopscope_${name} STATIC ${message_sources})
  add_library(hopscope::${name} ALIAS hopscope_${name})
  target_include_directories(hopscope_${name} SYSTEM PUBLIC "${out}")
  target_link_libraries(hopscope_${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_GRPC_NAME)
    add_library(hopscope_${ARG_GRPC_NAME} STATIC ${grpc_sources})
    add_library(hopscope::${ARG_GRPC_NAME} ALIAS hopscope_${ARG_GRPC_NAME})
    target_link_libraries(hopscope_${ARG_GRPC_NAME} PUBLIC hopscope_${name} gRPC::grpc++)
  endif()
endfunction()
