# Uses ccache where it is installed. The precompiled header needs clang's
# timestamp-free form and these sloppiness settings to be cached.
find_program(FLOW_CCACHE ccache)
if(FLOW_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(_launch ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${FLOW_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${_launch})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_launch})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Xclang$<SEMICOLON>-fno-pch-timestamp>)
endif()
