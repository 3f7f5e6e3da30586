# What the CMakeLists of the tree share.

# Finds a header and a library, or ends with one line that names the Debian package.
function(sodet_require var header library package)
    find_path(${var}_INCLUDE ${header} PATH_SUFFIXES iniparser)
    find_library(${var}_LIBRARY ${library})
    if(NOT ${var}_INCLUDE OR NOT ${var}_LIBRARY)
        message(FATAL_ERROR "${header} or lib${library} not found: apt-get install ${package}")
    endif()
    mark_as_advanced(${var}_INCLUDE ${var}_LIBRARY)
endfunction()

# sodet_add_plugin(<kind> <name> <sources>...): one component, <kind>/<name>.so.
function(sodet_add_plugin kind name)
    set(target ${kind}_${name})
    add_library(${target} MODULE ${ARGN})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${SODET_PLUGIN_OUTPUT}/${kind}
        C_VISIBILITY_PRESET hidden INSTALL_RPATH "$ORIGIN/../..")
    target_link_libraries(${target} PRIVATE sodet m)
    if(NOT SODET_SANITIZE)
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION ${SODET_PLUGIN_INSTALL}/${kind})
endfunction()
