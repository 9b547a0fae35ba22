# Writes FILE, the source of commit(), which names the commit that SOURCE is at, unless it says so already:
# with each build, because a commit needs no new configuration.   cmake -DSOURCE=... -DFILE=... [-DCOMMIT=...] -P commit.cmake
if(NOT COMMIT)
  execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=10 --dirty=-changed
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT unknown)
  endif()
endif()
set(text "#include \"base/version.h\"

namespace shoal {

std::string commit() { return \"${COMMIT}\"; }

}  // namespace shoal
")
if(EXISTS ${FILE})
  file(READ ${FILE} before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE ${FILE} "${text}")
endif()
