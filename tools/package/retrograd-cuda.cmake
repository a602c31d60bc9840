# The component `cuda` of find_package(retrograd): see retrograd-config.cmake.
if(NOT TARGET retrograd::cuda)
  set(_cudart "${_retrograd_prefix}/lib/retrograd-cuda/libcudart_static.a")
  if(NOT EXISTS "${_cudart}")
    set(_cudart)
  endif()
  _retrograd_add_libraries("${_retrograd_prefix}/lib/retrograd-cuda" retrograd::cuda_static retrograd::cuda_shared
                           ${_cudart} ${CMAKE_DL_LIBS} rt)
  _retrograd_add_choice(retrograd::cuda retrograd::cuda_static retrograd::cuda_shared)
endif()
