# npm ci in FOLDER, and a word on what to do when it fails.
#   cmake -DNPM=.. -DFOLDER=.. -DOTHERWISE="what to do without a package registry" [-DARGUMENTS=..] -P npm_ci.cmake
# --ignore-scripts: nothing that was fetched runs at installation.
execute_process(
  COMMAND ${NPM} ci --no-audit --no-fund --ignore-scripts --loglevel=error ${ARGUMENTS}
  WORKING_DIRECTORY ${FOLDER}
  RESULT_VARIABLE result
  OUTPUT_QUIET)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "npm could not fetch what package-lock.json names (see above). Without a package registry, "
                      "configure with ${OTHERWISE}.")
endif()
