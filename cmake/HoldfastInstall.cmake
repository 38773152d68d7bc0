# `cmake --install build` and, to undo it, `cmake --build build --target uninstall`.
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
set(generated "${PROJECT_BINARY_DIR}/generated")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/holdfast"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT holdfast
  FILES_MATCHING PATTERN "*.hpp")

# Debugging information is most of what the default build makes: 65 of 67 MB of the command. It
# stays in the build folder.
option(HOLDFAST_INSTALL_DEBUG_INFO "Install with debugging information" OFF)
if(CMAKE_STRIP AND NOT HOLDFAST_INSTALL_DEBUG_INFO)
  foreach(part IN LISTS holdfast_components ITEMS "")
    string(JOIN "_" part holdfast ${part})
    install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)" COMPONENT ${part})
  endforeach()
endif()
# CMake strips programs and shared libraries only: this does it to lib<archive>.a.
function(holdfast_install_stripped archive part)
  if(NOT CMAKE_STRIP OR HOLDFAST_INSTALL_DEBUG_INFO)
    return()
  endif()
  set(folder "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(folder "${CMAKE_INSTALL_LIBDIR}")
  endif()
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"\$ENV{DESTDIR}${folder}/lib${archive}.a\")" COMPONENT ${part})
endfunction()
install(TARGETS holdfast holdfast_static EXPORT holdfast-targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT holdfast
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT holdfast)
holdfast_install_stripped(holdfast holdfast)
install(EXPORT holdfast-targets NAMESPACE holdfast::
  DESTINATION "${package_folder}" COMPONENT holdfast)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/holdfast-config.cmake.in"
  "${generated}/holdfast-config.cmake" INSTALL_DESTINATION "${package_folder}")
# As the SONAME: before 1.0 another minor version is another interface.
write_basic_package_version_file("${generated}/holdfast-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${generated}/holdfast-config.cmake" "${generated}/holdfast-config-version.cmake"
  DESTINATION "${package_folder}" COMPONENT holdfast)

# Relative to the file itself, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE HOLDFAST_PC_PREFIX)
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  set(HOLDFAST_PC_${folder} "${CMAKE_INSTALL_${folder}}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    string(PREPEND HOLDFAST_PC_${folder} "\${prefix}/")
  endif()
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/holdfast.pc.in" "${generated}/holdfast.pc" @ONLY)
install(FILES "${generated}/holdfast.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT holdfast)

# What a resource runs, for those who have no `holdfast fence` at hand.
install(FILES "${PROJECT_SOURCE_DIR}/src/fence/redis.lua" RENAME fence.lua
  DESTINATION "${CMAKE_INSTALL_DATADIR}/holdfast" COMPONENT holdfast)
install(FILES "${PROJECT_SOURCE_DIR}/src/fence/postgresql.sql" RENAME fence.sql
  DESTINATION "${CMAKE_INSTALL_DATADIR}/holdfast" COMPONENT holdfast)

foreach(name IN LISTS holdfast_components)
  holdfast_install_component(${name})
endforeach()

if(TARGET holdfast_cli)
  install(FILES "${PROJECT_BINARY_DIR}/holdfast.1"
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT holdfast)
  install(TARGETS holdfast_cli DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT holdfast)
  if(EXISTS "${PROJECT_SOURCE_DIR}/completions/holdfast.bash")
    install(FILES "${PROJECT_SOURCE_DIR}/completions/holdfast.bash"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME holdfast
      COMPONENT holdfast)
  endif()
endif()

add_custom_target(uninstall
  COMMAND "${CMAKE_COMMAND}" "-DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt"
          -P "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake"
  COMMENT "Removing what `cmake --install` put down"
  VERBATIM)
