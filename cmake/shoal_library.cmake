# What programs link as shoal::shoal: in this tree and in trees that hold it the engine's own static libraries,
# where it is installed libshoal.so, which needs nothing else to be compiled against.
add_library(shoal_api INTERFACE)
target_include_directories(shoal_api INTERFACE ${PROJECT_SOURCE_DIR}/include)
# Only the code: neither our warnings nor our other headers reach those who link it.
target_link_libraries(shoal_api INTERFACE $<LINK_ONLY:shoal_capi> $<LINK_ONLY:shoal_runtime>)
target_compile_features(shoal_api INTERFACE cxx_std_20)
add_library(shoal::shoal ALIAS shoal_api)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
# The whole of those that define what include/shoal declares; of the others what these need.
add_library(shoal_shared SHARED $<TARGET_OBJECTS:shoal_capi> $<TARGET_OBJECTS:shoal_runtime> $<TARGET_OBJECTS:shoal_settings>
            $<TARGET_OBJECTS:shoal_base>)
# SOVERSION rises when a program that links what is installed would no longer run.
set_target_properties(shoal_shared PROPERTIES OUTPUT_NAME shoal EXPORT_NAME shoal LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_libraries(shoal_shared PRIVATE shoal_capi shoal_runtime)
# Once loaded it stays: threads of ours may outlive what a program holds of it.
target_link_options(shoal_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/shoal.map -Wl,-z,nodelete)
set_target_properties(shoal_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/shoal.map)
target_include_directories(shoal_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(shoal_shared INTERFACE cxx_std_20)
install(TARGETS shoal_shared EXPORT shoal LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT development)
install(EXPORT shoal NAMESPACE shoal:: FILE shoalConfig.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/shoal
        COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/shoal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
# From shoal.pc to the prefix, wherever that lies: the library's folder may be lib or lib/x86_64-linux-gnu.
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/shoal.pc.in ${PROJECT_BINARY_DIR}/shoal.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shoal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
