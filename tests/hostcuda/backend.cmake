# backend/cuda_host: the sources of backend/cuda over the rig. It is not installed; tests find it in ${CMAKE_BINARY_DIR}/tests/plugins.
get_property(sources GLOBAL PROPERTY SODET_CUDA_SOURCES)
set(kernels ${sources})
list(FILTER sources INCLUDE REGEX "[.]c$")
list(FILTER kernels INCLUDE REGEX "[.]cu$")
add_library(backend_cuda_host MODULE ${sources})
target_link_libraries(backend_cuda_host PRIVATE sodet m)
sodet_hostcuda_sources(backend_cuda_host ${kernels})
target_link_libraries(backend_cuda_host PRIVATE hostcuda_cudnn hostcuda_nvjpeg)
target_compile_definitions(backend_cuda_host PRIVATE SODET_CUDA_HOST SODET_CUDA_NAME="cuda_host" CUDNN_WARN_DEPRECATED)
set_target_properties(backend_cuda_host PROPERTIES PREFIX "" OUTPUT_NAME cuda_host C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/plugins/backend)
if(NOT SODET_SANITIZE)
    target_link_options(backend_cuda_host PRIVATE -Wl,-z,defs)
endif()

# Plugins' own operators (sodet_make_plugin): <name>.cuda_host.so beside the plugin, over the rig that is in the backend. The backend is found
# by its soname, as it is loaded when a part is asked for.
target_link_options(backend_cuda_host PRIVATE -Wl,-soname,cuda_host.so)
add_library(backend_cuda_host_rig SHARED IMPORTED) # CMake links nothing against a MODULE
set_target_properties(backend_cuda_host_rig PROPERTIES IMPORTED_LOCATION ${CMAKE_BINARY_DIR}/tests/plugins/backend/cuda_host.so
    IMPORTED_SONAME cuda_host.so)
get_property(plugins GLOBAL PROPERTY SODET_CUDA_PLUGINS)
foreach(plugin ${plugins})
    get_property(sources GLOBAL PROPERTY SODET_CUDA_SOURCES_OF_${plugin})
    get_target_property(folder ${plugin} LIBRARY_OUTPUT_DIRECTORY)
    get_target_property(name ${plugin} OUTPUT_NAME)
    add_library(${plugin}_cuda_host MODULE)
    sodet_hostcuda_compile(${plugin}_cuda_host ${sources})
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS "-includehostcuda.h;-DHC_BORROWED")
    add_dependencies(${plugin}_cuda_host backend_cuda_host)
    set_target_properties(${plugin}_cuda_host PROPERTIES PREFIX "" OUTPUT_NAME ${name}.cuda_host LIBRARY_OUTPUT_DIRECTORY ${folder} CXX_VISIBILITY_PRESET hidden
        LINK_DEPENDS $<TARGET_FILE:backend_cuda_host>)
    target_link_libraries(${plugin}_cuda_host PRIVATE backend_cuda_host_rig)
    if(NOT SODET_SANITIZE)
        target_link_options(${plugin}_cuda_host PRIVATE -Wl,-z,defs)
    endif()
endforeach()

set(SODET_CUDA_HOST_ENV ${SODET_TEST_ENV} "SODET_PLUGIN_PATH=${SODET_PLUGIN_OUTPUT}:${CMAKE_BINARY_DIR}/tests/plugins" "HC_DEVICES=4" "HC_ABORT=1" PARENT_SCOPE)

# A line "labels: ..." counts as it does for other tests (tests/CMakeLists.txt).
function(sodet_add_cuda_host_test name source)
    add_test(NAME cuda_host/${name} COMMAND ${ARGN})
    sodet_set_test(cuda_host/${name} ${source})
    set_tests_properties(cuda_host/${name} PROPERTIES ENVIRONMENT
        "${SODET_TEST_ENV};SODET_PLUGIN_PATH=${SODET_PLUGIN_OUTPUT}:${CMAKE_BINARY_DIR}/tests/plugins;HC_DEVICES=4")
endfunction()
set(replicas ${CMAKE_SOURCE_DIR}/tests/train/replicas.c)
sodet_add_cuda_host_test(replicas ${replicas} ${CMAKE_BINARY_DIR}/tests/test_train_replicas --on cuda_host)
sodet_add_cuda_host_test(o_38_rank_fails ${replicas} ${CMAKE_BINARY_DIR}/tests/test_train_replicas --on cuda_host --failing)
sodet_add_cuda_host_test(times ${CMAKE_SOURCE_DIR}/tests/device/times.c ${CMAKE_BINARY_DIR}/tests/test_device_times --on cuda_host)
sodet_add_cuda_host_test(processes ${CMAKE_SOURCE_DIR}/tests/device/processes.c ${CMAKE_BINARY_DIR}/tests/test_device_processes --on cuda_host)
sodet_add_cuda_host_test(two_steps ${CMAKE_SOURCE_DIR}/tests/train/ahead.c ${CMAKE_BINARY_DIR}/tests/test_train_ahead --on cuda_host)
sodet_add_cuda_host_test(data_pixels ${CMAKE_SOURCE_DIR}/tests/data/pixels.c ${CMAKE_BINARY_DIR}/tests/test_data_pixels --on cuda_host)
foreach(order 0 1 2)
    sodet_add_cuda_host_test(own_operator_${order} ${CMAKE_SOURCE_DIR}/tests/backend/own_operator.c
        ${CMAKE_BINARY_DIR}/tests/test_backend_own_operator --on cuda_host)
    set_property(TEST cuda_host/own_operator_${order} APPEND PROPERTY ENVIRONMENT HC_SCHED=${order} HC_ABORT=1)
endforeach()
set_tests_properties(cuda_host/own_operator_0 PROPERTIES LABELS threads)
set_target_properties(test_backend_own_operator PROPERTIES EXCLUDE_FROM_ALL OFF) # run under the thread sanitizer after all
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backend/*.sh)
foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    sodet_add_cuda_host_test(${name} ${script} bash ${script})
endforeach()
sodet_add_cuda_host_test(learns ${CMAKE_SOURCE_DIR}/scripts/check_virtual_gpus ${CMAKE_SOURCE_DIR}/scripts/check_virtual_gpus
    --build ${CMAKE_BINARY_DIR} --short cpu cuda_host:0,1)
# The rehearsal of the day with a GPU.
sodet_add_cuda_host_test(gpu_check ${CMAKE_SOURCE_DIR}/scripts/gpu_check ${CMAKE_SOURCE_DIR}/scripts/gpu_check
    --build ${CMAKE_BINARY_DIR} --device cuda_host --toy --out ${CMAKE_BINARY_DIR}/gpu_report)
