# backend/cuda_host: the sources of backend/cuda over the rig. It is not installed; tests find it in ${CMAKE_BINARY_DIR}/tests/plugins.
get_property(sources GLOBAL PROPERTY SODET_CUDA_SOURCES)
set(kernels ${sources})
list(FILTER sources INCLUDE REGEX "[.]c$")
list(FILTER kernels INCLUDE REGEX "[.]cu$")
add_library(backend_cuda_host MODULE ${sources})
target_link_libraries(backend_cuda_host PRIVATE sodet m)
sodet_hostcuda_sources(backend_cuda_host ${kernels})
target_link_libraries(backend_cuda_host PRIVATE hostcuda_cudnn)
target_compile_definitions(backend_cuda_host PRIVATE SODET_CUDA_HOST SODET_CUDA_NAME="cuda_host" CUDNN_WARN_DEPRECATED)
set_target_properties(backend_cuda_host PROPERTIES PREFIX "" OUTPUT_NAME cuda_host C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/plugins/backend)
if(NOT SODET_SANITIZE)
    target_link_options(backend_cuda_host PRIVATE -Wl,-z,defs)
endif()

set(SODET_CUDA_HOST_ENV ${SODET_TEST_ENV} "SODET_PLUGIN_PATH=${SODET_PLUGIN_OUTPUT}:${CMAKE_BINARY_DIR}/tests/plugins" "HC_DEVICES=4" "HC_ABORT=1" PARENT_SCOPE)

set(here ${SODET_TEST_ENV} "SODET_PLUGIN_PATH=${SODET_PLUGIN_OUTPUT}:${CMAKE_BINARY_DIR}/tests/plugins" "HC_DEVICES=4")
# The pixels of the loader, made on virtual GPUs.
add_test(NAME cuda_host/data_pixels COMMAND ${CMAKE_BINARY_DIR}/tests/test_data_pixels --on cuda_host)
set_tests_properties(cuda_host/data_pixels PROPERTIES ENVIRONMENT "${here}" TIMEOUT 900)
add_test(NAME cuda_host/replicas COMMAND ${CMAKE_BINARY_DIR}/tests/test_train_replicas --on cuda_host)
set_tests_properties(cuda_host/replicas PROPERTIES ENVIRONMENT "${here}" TIMEOUT 900 LABELS big)
add_test(NAME cuda_host/times COMMAND ${CMAKE_BINARY_DIR}/tests/test_device_times --on cuda_host)
add_test(NAME cuda_host/processes COMMAND ${CMAKE_BINARY_DIR}/tests/test_device_processes --on cuda_host)
set_tests_properties(cuda_host/times cuda_host/processes PROPERTIES ENVIRONMENT "${here}" TIMEOUT 900)
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backend/*.sh)
foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME cuda_host/${name} COMMAND bash ${script})
    set_tests_properties(cuda_host/${name} PROPERTIES ENVIRONMENT "${here}" TIMEOUT 900 LABELS big)
endforeach()
# The rehearsal of the day with a GPU.
add_test(NAME cuda_host/gpu_check COMMAND ${CMAKE_SOURCE_DIR}/scripts/gpu_check --build ${CMAKE_BINARY_DIR} --device cuda_host --toy
    --out ${CMAKE_BINARY_DIR}/gpu_report)
set_tests_properties(cuda_host/gpu_check PROPERTIES ENVIRONMENT "${here}" TIMEOUT 900 LABELS big)
