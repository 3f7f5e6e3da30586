# FHS installation, pkg-config and find_package.
include(CMakePackageConfigHelpers)

# Completion and manual pages: what the program prints of its own tables.
set(made)
function(sodet_made file)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/${file}
        COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_BINARY_DIR}/${file} -P ${CMAKE_SOURCE_DIR}/scripts/cmake/sodet_write.cmake
            -- $<TARGET_FILE:sodet_program> help ${ARGN}
        DEPENDS sodet_program ${CMAKE_SOURCE_DIR}/scripts/cmake/sodet_write.cmake VERBATIM)
    set(made ${made} ${CMAKE_BINARY_DIR}/${file} PARENT_SCOPE)
endfunction()
sodet_made(completions/sodet --completion bash)
sodet_made(completions/_sodet --completion zsh)
sodet_made(completions/sodet.fish --completion fish)
sodet_made(man/sodet.1 --man)
file(GLOB commands CONFIGURE_DEPENDS core/cli/cmd_*.c)
foreach(command ${commands})
    get_filename_component(name ${command} NAME_WE)
    string(REGEX REPLACE "^cmd_" "" name ${name})
    sodet_made(man/sodet-${name}.1 --man ${name})
endforeach()
add_custom_target(sodet_made ALL DEPENDS ${made})
install(FILES ${CMAKE_BINARY_DIR}/completions/sodet DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completions/_sodet DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_BINARY_DIR}/completions/sodet.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")

install(TARGETS sodet EXPORT sodet-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sodet_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/sodet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/generated/sodet/ops.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sodet)
foreach(op ${SODET_OPS})
    install(FILES kernels/${op}/${op}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sodet/ops)
endforeach()
install(DIRECTORY conf/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sodet/conf
    FILES_MATCHING PATTERN "*.ini" PATTERN "*.map" PATTERN "*.names")
install(FILES tests/api/example/embed.c tests/api/example/embed.py DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY tests/api/example/swish DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT sodet-targets NAMESPACE sodet:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sodet)
configure_package_config_file(${CMAKE_SOURCE_DIR}/scripts/cmake/sodet-config.cmake.in ${CMAKE_BINARY_DIR}/sodet-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sodet PATH_VARS SODET_PLUGIN_INSTALL)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sodet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sodet-config.cmake ${CMAKE_BINARY_DIR}/sodet-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sodet)
file(RELATIVE_PATH SODET_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_SOURCE_DIR}/scripts/cmake/sodet.pc.in ${CMAKE_BINARY_DIR}/sodet.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sodet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
