# find_package(retrograd) gives the targets
#   retrograd::retrograd   the shared library if BUILD_SHARED_LIBS is on, else the static one
#   retrograd::static, retrograd::shared
# and find_package(retrograd COMPONENTS cuda) also
#   retrograd::cuda        the same library with its CUDA component, to be linked in its place
get_filename_component(_retrograd_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)

include(CMakeFindDependencyMacro)
find_dependency(Threads)

# Targets SCOPE::STATIC_NAME and SCOPE::SHARED_NAME of the libraries in a folder.
function(_retrograd_add_libraries folder static_name shared_name)
  add_library(${static_name} STATIC IMPORTED)
  set_target_properties(${static_name} PROPERTIES IMPORTED_LOCATION "${folder}/libretrograd.a")
  target_link_libraries(${static_name} INTERFACE Threads::Threads ${ARGN})
  # Leave out what a program does not use.
  target_link_options(${static_name} INTERFACE -Wl,--gc-sections)
  # Else a shared library that has the static one inside would never be unloaded.
  target_compile_options(${static_name} INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  add_library(${shared_name} SHARED IMPORTED)
  set_target_properties(${shared_name} PROPERTIES IMPORTED_LOCATION "${folder}/libretrograd.so")
  foreach(library ${static_name} ${shared_name})
    target_include_directories(${library} INTERFACE "${_retrograd_prefix}/include")
    target_compile_features(${library} INTERFACE cxx_std_20)
  endforeach()
endfunction()

# The target NAME: one of two others.
function(_retrograd_add_choice name static_name shared_name)
  add_library(${name} INTERFACE IMPORTED)
  if(BUILD_SHARED_LIBS)
    target_link_libraries(${name} INTERFACE ${shared_name})
  else()
    target_link_libraries(${name} INTERFACE ${static_name})
  endif()
endfunction()

if(NOT TARGET retrograd::retrograd)
  _retrograd_add_libraries("${_retrograd_prefix}/lib" retrograd::static retrograd::shared)
  _retrograd_add_choice(retrograd::retrograd retrograd::static retrograd::shared)
endif()

foreach(_component ${retrograd_FIND_COMPONENTS})
  if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/retrograd-${_component}.cmake")
    include("${CMAKE_CURRENT_LIST_DIR}/retrograd-${_component}.cmake")
    set(retrograd_${_component}_FOUND TRUE)
  elseif(retrograd_FIND_REQUIRED_${_component})
    set(retrograd_FOUND FALSE)
    set(retrograd_NOT_FOUND_MESSAGE "this package has no component ${_component}")
  endif()
endforeach()
