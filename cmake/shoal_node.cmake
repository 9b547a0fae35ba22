# Node.js and npm: they build the web page and run the tests of the server's clients.
# SHOAL_NODE, SHOAL_NPM: where they are. SHOAL_NODE_FOR_TESTS: new enough for the clients (Node 20; Debian 12 has 18).
find_program(SHOAL_NODE node)
find_program(SHOAL_NPM npm)
mark_as_advanced(SHOAL_NODE SHOAL_NPM)
set(SHOAL_NODE_FOR_TESTS OFF)
if(SHOAL_NODE AND SHOAL_NPM)
  execute_process(COMMAND ${SHOAL_NODE} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "v" "" node_version "${node_version}")
  if(node_version VERSION_GREATER_EQUAL 20)
    set(SHOAL_NODE_FOR_TESTS ON)
  endif()
endif()

# A test that says why it does not run, and is counted as skipped.
function(shoal_skipped_test name label why)
  add_test(NAME ${name} COMMAND sh -c "echo 'skipped: ${why}'; exit 77")
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77)
endfunction()

set(SHOAL_NPM_CI ${CMAKE_CURRENT_LIST_DIR}/npm_ci.cmake)

# Fetches, once, into the folder INTO, what the lock file among FILES names; ${INTO}/installed says that it is there.
# ARGUMENTS are npm's; OTHERWISE tells who has no package registry what to configure.
function(shoal_npm_packages)
  cmake_parse_arguments(npm "" "INTO;COMMENT;OTHERWISE;ARGUMENTS" "FILES" ${ARGN})
  add_custom_command(
    OUTPUT ${npm_INTO}/installed
    COMMAND ${CMAKE_COMMAND} -E make_directory ${npm_INTO}
    COMMAND ${CMAKE_COMMAND} -E copy ${npm_FILES} ${npm_INTO}
    COMMAND ${CMAKE_COMMAND} -DNPM=${SHOAL_NPM} -DFOLDER=${npm_INTO} -DOTHERWISE=${npm_OTHERWISE}
            -DARGUMENTS=${npm_ARGUMENTS} -P ${SHOAL_NPM_CI}
    COMMAND ${CMAKE_COMMAND} -E touch ${npm_INTO}/installed
    DEPENDS ${npm_FILES} ${SHOAL_NPM_CI}
    COMMENT "${npm_COMMENT}"
    VERBATIM)
endfunction()

# Compiles what web/ made into a target.
function(shoal_web_source target source)
  target_sources(${target} PRIVATE ${source})
  # clang's -Wpedantic counts the characters of a literal.
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -Wno-overlength-strings)
  if(source MATCHES "^${PROJECT_BINARY_DIR}")
    set_source_files_properties(${source} PROPERTIES GENERATED ON)
  endif()
  add_dependencies(${target} web_assets)
endfunction()
