# FHS installation, pkg-config and find_package.
include(CMakePackageConfigHelpers)
install(TARGETS sodet EXPORT sodet-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sodet_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/sodet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/generated/sodet/ops.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sodet)
foreach(op ${SODET_OPS})
    install(FILES kernels/${op}/${op}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sodet/ops)
endforeach()
install(DIRECTORY conf/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sodet/conf FILES_MATCHING PATTERN "*.ini")
install(EXPORT sodet-targets NAMESPACE sodet:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sodet)
configure_package_config_file(${CMAKE_SOURCE_DIR}/scripts/cmake/sodet-config.cmake.in ${CMAKE_BINARY_DIR}/sodet-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sodet PATH_VARS SODET_PLUGIN_INSTALL)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sodet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sodet-config.cmake ${CMAKE_BINARY_DIR}/sodet-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sodet)
configure_file(${CMAKE_SOURCE_DIR}/scripts/cmake/sodet.pc.in ${CMAKE_BINARY_DIR}/sodet.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sodet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
