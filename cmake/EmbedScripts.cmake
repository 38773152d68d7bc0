# Turns Lua scripts into C++ constants, so that the library is one file and every script is still
# a readable file with its contract in a header comment.
#
#   holdfast_embed_scripts(<target> STORE <store> FOLDER <folder>)
#
# adds the generated <store>_scripts.cpp to <target> and <store>_scripts.hpp to its private include
# path; for the redis store, whose type of a script the others use, they are just scripts.*:
# `#include "scripts.hpp"`, then holdfast::stores::redis::scripts::NAME for each NAME.lua, or
# NAME_ where NAME is a keyword (break.lua is scripts::break_).
#
# Full-line comments and blank lines are left out before the text is embedded: a script is sent
# whole to every server that has not seen it. `sha1` is that of the embedded text, which is the
# text the server hashes, so it is what EVALSHA takes.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(holdfast_embed_scripts_file "${CMAKE_CURRENT_LIST_FILE}")

  function(holdfast_embed_scripts target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;STORE" "")
    set(name "${arg_STORE}_scripts")
    if(arg_STORE STREQUAL "redis")
      set(name "scripts")
    endif()
    file(GLOB scripts CONFIGURE_DEPENDS "${arg_FOLDER}/*.lua")
    file(GLOB parts CONFIGURE_DEPENDS "${arg_FOLDER}/parts/*.lua")
    set(generated "${PROJECT_BINARY_DIR}/generated")
    # The list of scripts is a file so that removing a script regenerates, too.
    set(listing "${generated}/${name}.list")
    file(CONFIGURE OUTPUT "${listing}" CONTENT "${scripts}" @ONLY)
    add_custom_command(
      OUTPUT "${generated}/${name}.hpp" "${generated}/${name}.cpp"
      COMMAND "${CMAKE_COMMAND}" "-DLISTING=${listing}" "-DOUTPUT=${generated}/${name}"
              "-DSTORE=${arg_STORE}" -P "${holdfast_embed_scripts_file}"
      DEPENDS ${scripts} ${parts} "${listing}" "${holdfast_embed_scripts_file}"
      COMMENT "Embedding Lua scripts of the ${arg_STORE} store"
      VERBATIM)
    # To have the files without compiling them, as clang-tidy wants them.
    add_custom_target(holdfast_${name} DEPENDS "${generated}/${name}.hpp")
    add_dependencies(${target} holdfast_${name})
    target_sources(${target} PRIVATE "${generated}/${name}.cpp" "${generated}/${name}.hpp")
    target_include_directories(${target} PRIVATE "${generated}")
  endfunction()
  return()
endif()

cmake_policy(VERSION 3.25)

# A C++ compiler need not accept a longer string literal ([implimits]); -Wpedantic warns of it.
set(script_bytes_max 65535)

# Those that are verbs, as scripts' names are.
set(keywords break case catch continue default delete export goto new register return switch throw
  try)

# A line `-- include parts/NAME.lua` stands for that file: what several scripts do alike is
# written once, and each script is still sent as one.
function(with_parts file result)
  file(READ "${file}" text)
  get_filename_component(folder "${file}" DIRECTORY)
  while(text MATCHES "(^|\n *)-- include ([a-z_/]+\\.lua)\n")
    set(line "-- include ${CMAKE_MATCH_2}\n")
    file(READ "${folder}/${CMAKE_MATCH_2}" part)
    string(REPLACE "${line}" "${part}" text "${text}")
  endwhile()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(stripped_script file result)
  with_parts("${file}" text)
  string(REPLACE "\r\n" "\n" text "${text}")
  if(text MATCHES "--\\[=*\\[")
    message(FATAL_ERROR "${file}: write line comments; block comments are not stripped.")
  endif()
  set(text "\n${text}\n")
  string(REGEX REPLACE "\n[ \t]*--[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n[ \t\n]*\n" "\n" text "${text}")
  string(SUBSTRING "${text}" 1 -1 text)

  string(LENGTH "${text}" bytes)
  if(bytes EQUAL 0)
    message(FATAL_ERROR "${file}: there is nothing in it but comments.")
  endif()
  if(bytes GREATER script_bytes_max)
    message(FATAL_ERROR "${file}: ${bytes} bytes; at most ${script_bytes_max} can be embedded.")
  endif()
  string(FIND "${text}" ")lua\"" delimiter)
  if(NOT delimiter EQUAL -1)
    message(FATAL_ERROR "${file}: must not contain )lua\", which ends the C++ literal.")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(write_if_different file text)
  set(old "")
  if(EXISTS "${file}")
    file(READ "${file}" old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE "${file}" "${text}")
  endif()
endfunction()

file(READ "${LISTING}" scripts)
set(declarations "")
set(definitions "")
foreach(file IN LISTS scripts)
  get_filename_component(name "${file}" NAME_WE)
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$" OR name STREQUAL "script")
    message(FATAL_ERROR "${file}: a script's name becomes a C++ name; use snake_case.")
  endif()
  set(constant "${name}")
  if(name IN_LIST keywords)
    string(APPEND constant "_")
  endif()
  stripped_script("${file}" text)
  string(SHA1 sha1 "${text}")
  string(APPEND declarations "extern const script ${constant};\n")
  string(APPEND definitions
    "\nconstinit const script ${constant}{\"${name}\", R\"lua(${text})lua\",\n"
    "                              \"${sha1}\"};\n")
endforeach()

set(origin "// Generated from the .lua files by cmake/EmbedScripts.cmake.")
if(STORE STREQUAL "redis")
  set(prologue "#include <string_view>")
  set(type "struct script {
  std::string_view name;
  std::string_view source;
  std::string_view sha1;  // of `source`, in lower-case hex, as EVALSHA takes it
};")
else()
  set(prologue "#include \"scripts.hpp\"")
  set(type "using redis::scripts::script;")
endif()
get_filename_component(header "${OUTPUT}" NAME)
write_if_different("${OUTPUT}.hpp" "${origin}
#pragma once

${prologue}

namespace holdfast::stores::${STORE}::scripts {

${type}

${declarations}
}  // namespace holdfast::stores::${STORE}::scripts
")
write_if_different("${OUTPUT}.cpp" "${origin}
#include \"${header}.hpp\"

namespace holdfast::stores::${STORE}::scripts {
${definitions}
}  // namespace holdfast::stores::${STORE}::scripts
")
