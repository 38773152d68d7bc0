# holdfast_target(<target>): the settings every target of ours is compiled with. They are private,
# so neither installed packages nor a parent project see them.

set(holdfast_sanitizers address thread undefined)
if(HOLDFAST_SANITIZE AND NOT HOLDFAST_SANITIZE IN_LIST holdfast_sanitizers)
  message(FATAL_ERROR
    "HOLDFAST_SANITIZE is '${HOLDFAST_SANITIZE}'; it must be address, thread, undefined or empty.")
endif()

function(holdfast_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
    $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>)
  if(HOLDFAST_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${HOLDFAST_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${HOLDFAST_SANITIZE})
  endif()
endfunction()
