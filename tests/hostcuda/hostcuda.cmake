# sodet_hostcuda_sources(<target> <file.cu>...): compiles .cu files as C++ over the rig (README.md) and links it. The target is a MODULE
# library or a program; its own C++ sources that include hostcuda.h need the same.
function(sodet_hostcuda_sources target)
    sodet_hostcuda_compile(${target} ${ARGN})
    target_link_libraries(${target} PRIVATE hostcuda)
endfunction()

# The same without the rig itself: with HC_BORROWED defined, the target uses that of an object which it is linked against (backend.cmake).
function(sodet_hostcuda_compile target)
    foreach(source ${ARGN})
        set_source_files_properties(${source} PROPERTIES LANGUAGE CXX)
        # clang counts -Wsign-conversion to -Wconversion in C++; CUDA's own index arithmetic mixes the two.
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS "-xc++;-fdata-sections;-Wno-sign-conversion;-Wno-unknown-pragmas")
    endforeach()
    target_sources(${target} PRIVATE ${ARGN})
    target_link_libraries(${target} PRIVATE hostcuda_language)
endfunction()
