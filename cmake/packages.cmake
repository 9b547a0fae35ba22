# Debian packages by CPack (tools/package.sh): shoal, shoal-voice, libshoal0, libshoal-dev; of a CUDA build shoal-cuda.
option(SHOAL_PACKAGES "Prepare Debian packages" OFF)
if(NOT SHOAL_PACKAGES)
  return()
endif()
set(deploy ${PROJECT_SOURCE_DIR}/deploy)
set(documents ${PROJECT_BINARY_DIR}/documents)
set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc)

set(debian_version ${PROJECT_VERSION}-1)
set(CPACK_PACKAGE_CONTACT "The Shoal authors <shoal@shoal.invalid>")

# Debian wants its own list of changes beside ours; it is as old as the commit.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  execute_process(COMMAND date -R -r ${PROJECT_SOURCE_DIR}/CHANGELOG.md OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
configure_file(${deploy}/debian/changelog.in ${documents}/changelog.Debian @ONLY)
add_custom_command(
  OUTPUT ${documents}/changelog.gz ${documents}/changelog.Debian.gz
  COMMAND sh -c "gzip -9nc '${PROJECT_SOURCE_DIR}/CHANGELOG.md' > changelog.gz && gzip -9nkf changelog.Debian"
  DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${documents}/changelog.Debian
  WORKING_DIRECTORY ${documents}
  VERBATIM)
add_custom_target(shoal_changelog ALL DEPENDS ${documents}/changelog.gz)

function(shoal_package_documents component package)
  install(FILES ${deploy}/debian/copyright ${documents}/changelog.gz ${documents}/changelog.Debian.gz
          DESTINATION ${doc_dir}/${package} COMPONENT ${component})
endfunction()

if(SHOAL_CUDA)
  install(PROGRAMS $<TARGET_FILE:shoal> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME shoal-cuda COMPONENT cuda)
  # CPack strips only what is installed as a target, under its own name.
  install(CODE "execute_process(COMMAND ${CMAKE_STRIP} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/shoal-cuda\" COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT cuda)
  install(FILES ${deploy}/systemd/cuda.conf DESTINATION /lib/systemd/system/shoal.service.d COMPONENT cuda)
  shoal_package_documents(cuda shoal-cuda)
  set(CPACK_COMPONENTS_ALL cuda)
else()
  add_custom_command(
    OUTPUT ${documents}/done
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${documents}/man ${documents}/licences
    COMMAND ${PROJECT_SOURCE_DIR}/tools/man_pages.sh $<TARGET_FILE:shoal> ${documents}/man
    COMMAND ${PROJECT_SOURCE_DIR}/tools/licences.sh ${PROJECT_BINARY_DIR} ${documents}/licences
    COMMAND sh -c "'$<TARGET_FILE:shoal>' completion bash > '${documents}/bash'"
    COMMAND sh -c "'$<TARGET_FILE:shoal>' completion zsh > '${documents}/zsh'"
    COMMAND sh -c "'$<TARGET_FILE:shoal>' completion fish > '${documents}/fish'"
    COMMAND sh -c "gzip -9nc '${deploy}/man/shoal-phonemizer.1' > '${documents}/shoal-phonemizer.1.gz'"
    COMMAND ${CMAKE_COMMAND} -E touch ${documents}/done
    DEPENDS shoal ${PROJECT_SOURCE_DIR}/tools/man_pages.sh ${PROJECT_SOURCE_DIR}/tools/licences.sh ${deploy}/man/common.h2m
            ${deploy}/man/shoal-phonemizer.1
    COMMENT "Manual pages, completion, licences"
    VERBATIM)
  add_custom_target(shoal_documents ALL DEPENDS ${documents}/done)
  install(FILES ${documents}/shoal-phonemizer.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(DIRECTORY ${documents}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(DIRECTORY ${documents}/licences DESTINATION ${doc_dir}/shoal COMPONENT program)
  install(FILES ${documents}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME shoal COMPONENT program)
  install(FILES ${documents}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _shoal COMPONENT program)
  install(FILES ${documents}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME shoal.fish COMPONENT program)
  install(FILES ${deploy}/systemd/shoal.service DESTINATION /lib/systemd/system COMPONENT program)
  install(FILES ${deploy}/debian/shoal.toml DESTINATION /etc COMPONENT program)
  shoal_package_documents(program shoal)
  shoal_package_documents(voice shoal-voice)
  shoal_package_documents(library libshoal0)
  shoal_package_documents(development libshoal-dev)
  set(CPACK_COMPONENTS_ALL program voice library development)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME shoal)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION sound)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(same "(= ${debian_version})")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME shoal)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "shoal-voice ${same}, espeak-ng-data")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "haproxy, shoal-cuda")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "text to speech for many listeners at once
Speaks with Fish-Speech / OpenAudio S1-mini and Kokoro-82M models, and with a
small English voice of its own (shoal-voice): from the command line, and as an
HTTP server for clients of OpenAI's speech API, Fish-Speech and
Kokoro-FastAPI. Requests are batched frame by frame, and streamed.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
    ${deploy}/debian/postinst ${deploy}/debian/prerm ${deploy}/debian/postrm ${deploy}/debian/conffiles)

set(CPACK_DEBIAN_VOICE_PACKAGE_NAME shoal-voice)
set(CPACK_DEBIAN_VOICE_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_VOICE_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_VOICE_PACKAGE_DEPENDS "")
set(CPACK_COMPONENT_VOICE_DESCRIPTION "English voice for shoal
A text-to-speech model of 9 million parameters with its codec, and eight
named voices.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libshoal0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "shoal-voice ${same}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${deploy}/debian/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "text to speech for many listeners at once: library
The engine of shoal, for programs that speak in their own process.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libshoal-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libshoal0 ${same}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "text to speech for many listeners at once: development files
Headers for C and C++, pkg-config and CMake files.")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME shoal-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "shoal ${same}")
set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${deploy}/debian/cuda/postinst)
set(CPACK_COMPONENT_CUDA_DESCRIPTION "text to speech for many listeners at once: program for NVIDIA GPUs
Adds the program shoal-cuda to shoal, and makes the service use it. It needs
the driver (580 or later) and no other part of CUDA.")
include(CPack)
