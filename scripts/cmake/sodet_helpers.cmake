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

# sodet_add_plugin(<kind> <name> <sources>...): one component, <kind>/<name>.so, and of .cu files among the sources <kind>/<name>.cuda.so.
function(sodet_add_plugin kind name)
    sodet_make_plugin(${SODET_PLUGIN_OUTPUT} ${kind} ${name} ${ARGN})
    foreach(target ${kind}_${name} ${kind}_${name}_cuda)
        if(TARGET ${target})
            install(TARGETS ${target} LIBRARY DESTINATION ${SODET_PLUGIN_INSTALL}/${kind})
        endif()
    endforeach()
endfunction()

# sodet_make_plugin(<folder> <kind> <name> <sources>...): the same, not installed, in <folder>/<kind>. The .cu files, kernels of the plugin's
# own operators (sodet/cuda.h), are compiled where CUDA is, and over tests/hostcuda, as <name>.cuda_host.so.
function(sodet_make_plugin folder kind name)
    set(target ${kind}_${name})
    set(cuda ${ARGN})
    list(FILTER cuda INCLUDE REGEX "[.]cu$")
    set(sources ${ARGN})
    list(FILTER sources EXCLUDE REGEX "[.]cu$")
    add_library(${target} MODULE ${sources})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${folder}/${kind}
        C_VISIBILITY_PRESET hidden INSTALL_RPATH "$ORIGIN/../..")
    target_link_libraries(${target} PRIVATE sodet m)
    if(NOT SODET_SANITIZE)
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
    if(NOT cuda)
        return()
    endif()
    if(SODET_CUDA_BUILD)
        add_library(${target}_cuda MODULE ${cuda})
        set_target_properties(${target}_cuda PROPERTIES PREFIX "" OUTPUT_NAME ${name}.cuda LIBRARY_OUTPUT_DIRECTORY ${folder}/${kind})
        target_include_directories(${target}_cuda PRIVATE $<TARGET_PROPERTY:sodet,INTERFACE_INCLUDE_DIRECTORIES>)
        sodet_compile_cuda(${target}_cuda)
        target_link_options(${target}_cuda PRIVATE -Wl,-z,defs)
    endif()
    set_property(GLOBAL APPEND PROPERTY SODET_CUDA_PLUGINS ${target})
    set_property(GLOBAL PROPERTY SODET_CUDA_SOURCES_OF_${target} ${cuda})
endfunction()

# What every shared object with .cu files is compiled and linked with: spills and the like are errors; a CUDA runtime of its own, whose symbols
# are hidden.
function(sodet_compile_cuda target)
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
    target_include_directories(${target} SYSTEM PRIVATE ${SODET_CUDA_INCLUDES})
    target_compile_options(${target} PRIVATE -fvisibility=hidden $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>
        "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xptxas --warn-on-spills,--warn-on-local-memory-usage>") # and so errors
    set_target_properties(${target} PROPERTIES CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY None)
    target_link_libraries(${target} PRIVATE ${SODET_CUDART_LIBRARY} rt ${CMAKE_DL_LIBS} Threads::Threads)
endfunction()
