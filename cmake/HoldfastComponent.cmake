# Stores that need packages of their own, each a library beside the main one:
#
#   holdfast_component(etcd NEEDS CURL::libcurl [BUILD_NEEDS …] [PACKAGE CURL] PC libcurl
#                      [LIBRARY …] DEBIAN libcurl4-openssl-dev)
#
# builds src/stores/etcd as libholdfast_etcd.so, which a client loads when it is given such a URL
# (holdfast::etcd, for who wants it found with the program), and as libholdfast_etcd.a for static
# programs (holdfast::etcd_static). HOLDFAST_WITH_ETCD: ON, OFF, or AUTO, that is if what it NEEDS
# is there. BUILD_NEEDS: libraries of headers only. PACKAGE: the CMake package that users of the
# static library need; PC: the same for pkg-config. LIBRARY: where there is no such package, what
# the linker is told.
#
# Sets holdfast_components, the list of those that are built, in the caller's scope.

set(holdfast_component_template "${CMAKE_CURRENT_LIST_DIR}/holdfast-component.pc.in")
set(holdfast_component_exports "${CMAKE_CURRENT_LIST_DIR}/component_exports.map.in")

function(holdfast_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE;PC;LIBRARY;DEBIAN" "NEEDS;BUILD_NEEDS")
  string(TOUPPER "HOLDFAST_WITH_${name}" option)
  set(${option} AUTO CACHE STRING "Build the ${name} store: ON, OFF, or AUTO, if it can be")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  set(missing "")
  foreach(target IN LISTS arg_NEEDS arg_BUILD_NEEDS)
    if(NOT TARGET ${target})
      list(APPEND missing ${target})
    endif()
  endforeach()
  if(${option} STREQUAL "AUTO")
    if(missing)
      message(STATUS "Without ${name}://: there is no ${missing} (Debian: ${arg_DEBIAN})")
      return()
    endif()
  elseif(NOT ${option})
    return()
  elseif(missing)
    message(FATAL_ERROR
      "${option} is on, and there is no ${missing}: install it (Debian: ${arg_DEBIAN}).")
  endif()

  set(objects holdfast_${name}_objects)
  set(shared holdfast_${name})
  set(static holdfast_${name}_static)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/stores/${name}/*.cpp")
  add_library(${objects} OBJECT ${sources})
  holdfast_target(${objects})
  set_target_properties(${objects} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${objects} PRIVATE
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${objects} PRIVATE
    tl::expected Threads::Threads OpenSSL::SSL ${arg_NEEDS} ${arg_BUILD_NEEDS})

  # Asks for the symbol by which the client knows the component: the linker takes nothing out of an
  # archive that nobody asks for.
  set(ask_for "LINKER:--undefined=holdfast_component_${name}")

  # With a copy of what it uses of the main library, whose internals are not exported.
  set(map "${PROJECT_BINARY_DIR}/generated/${name}_exports.map")
  configure_file("${holdfast_component_exports}" "${map}" @ONLY)
  add_library(${shared} SHARED $<TARGET_OBJECTS:${objects}>)
  set_target_properties(${shared} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    EXPORT_NAME ${name}
    LINK_DEPENDS "${map}")
  target_link_options(${shared} PRIVATE "LINKER:--version-script=${map}" INTERFACE "${ask_for}")
  if(NOT HOLDFAST_SANITIZE)
    target_link_options(${shared} PRIVATE LINKER:--no-undefined)
  endif()
  target_link_libraries(${shared}
    PRIVATE "$<BUILD_INTERFACE:holdfast_static>" ${arg_NEEDS}
    INTERFACE holdfast)

  add_library(${static} STATIC $<TARGET_OBJECTS:${objects}>)
  set_target_properties(${static} PROPERTIES
    OUTPUT_NAME holdfast_${name} EXPORT_NAME ${name}_static)
  target_link_options(${static} INTERFACE "${ask_for}")
  if(arg_LIBRARY)
    set(arg_NEEDS "$<BUILD_INTERFACE:${arg_NEEDS}>" "$<INSTALL_INTERFACE:${arg_LIBRARY}>")
  endif()
  target_link_libraries(${static} PUBLIC holdfast_static PRIVATE ${arg_NEEDS})

  foreach(library IN ITEMS ${shared} ${static})
    holdfast_target(${library})
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  endforeach()
  add_library(holdfast::${name} ALIAS ${shared})
  add_library(holdfast::${name}_static ALIAS ${static})

  set(holdfast_components ${holdfast_components} ${name} PARENT_SCOPE)
  set_property(TARGET ${shared} PROPERTY holdfast_package "${arg_PACKAGE}")
  set_property(TARGET ${shared} PROPERTY holdfast_pc "${arg_PC}")
endfunction()

# A part of an install of its own, called holdfast_NAME: packages and headers as the main one's.
function(holdfast_install_component name)
  set(into holdfast_${name})
  install(TARGETS holdfast_${name} EXPORT holdfast-${name}-targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${into})
  install(TARGETS holdfast_${name}_static EXPORT holdfast-${name}-static-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${into})
  holdfast_install_stripped(holdfast_${name} ${into})
  foreach(set IN ITEMS ${name} ${name}-static)
    install(EXPORT holdfast-${set}-targets NAMESPACE holdfast::
      DESTINATION "${package_folder}" COMPONENT ${into})
  endforeach()

  get_target_property(package holdfast_${name} holdfast_package)
  set(text "include(\"\${CMAKE_CURRENT_LIST_DIR}/holdfast-${name}-targets.cmake\")\n")
  if(package)
    string(APPEND text "# Who links statically needs its library, too.\n"
      "find_package(${package} QUIET)\nif(${package}_FOUND)\n"
      "  include(\"\${CMAKE_CURRENT_LIST_DIR}/holdfast-${name}-static-targets.cmake\")\nendif()\n")
  else()
    string(APPEND text
      "include(\"\${CMAKE_CURRENT_LIST_DIR}/holdfast-${name}-static-targets.cmake\")\n")
  endif()
  set(file "${PROJECT_BINARY_DIR}/generated/holdfast-${name}.cmake")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
  install(FILES "${file}" DESTINATION "${package_folder}" COMPONENT ${into})

  get_target_property(HOLDFAST_PC_REQUIRES holdfast_${name} holdfast_pc)
  set(HOLDFAST_PC_NAME ${name})
  set(file "${PROJECT_BINARY_DIR}/generated/holdfast-${name}.pc")
  configure_file("${holdfast_component_template}" "${file}" @ONLY)
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ${into})
endfunction()
