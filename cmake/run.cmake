# run.cmake: libmonochord-run, which loads compiled functions and calls them on the CPU.
#
# It is made of the library's own files, less those that only compile functions, or that serve GPUs.
# src/run/absent.c defines what the rest still names of these.  A file that comes to name more of them does not
# link: it needs a definition there, or the file that it names is added here.
#
# abi/monochord_run.txt lists what the library exports.  All that these functions do not reach is discarded.
set(run ${sources})
list(FILTER run EXCLUDE REGEX "/src/(nn|export|inspect|grad|rewrite|lower|render|compile)/|/cuda/|/gen/op/")
list(FILTER run EXCLUDE REGEX "/src/graph/(lex|parse[a-z_]*|primary|statement|svg|picture|layout|replace)[.]c")
list(FILTER run EXCLUDE REGEX "/src/op/(call|prototype)[.]c|/src/exec/(kernels|remote|tolerance)[.]c")
list(FILTER run EXCLUDE REGEX "/src/exec/cpu/(compile_kernels|custom|describe)[.]c")
list(FILTER run EXCLUDE REGEX "/src/device/cpu/(cc|compile_job|process)[.]c")
list(FILTER run EXCLUDE REGEX "/src/heavy/portable/|/portable[.]c|/src/heavy/pool/print[a-z_]*[.]c")
foreach(file lower/values render/kernel compile/function inspect/step_info run/absent)
    list(APPEND run ${PROJECT_SOURCE_DIR}/src/${file}.c)
endforeach()
set_source_files_properties(src/run/absent.c PROPERTIES COMPILE_DEFINITIONS _POSIX_C_SOURCE=200809L)

add_library(run_objects OBJECT ${run})
target_link_libraries(run_objects PRIVATE house Threads::Threads)
target_include_directories(run_objects PRIVATE src ${CMAKE_CURRENT_BINARY_DIR}/gen)
target_compile_definitions(run_objects PRIVATE MC_BUILD)
target_compile_options(run_objects PRIVATE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables)

add_library(monochord_run SHARED $<TARGET_OBJECTS:run_objects>)
set_target_properties(monochord_run PROPERTIES VERSION ${version} SOVERSION 0)
exports(monochord_run abi/monochord_run.txt)
target_link_options(monochord_run PRIVATE -Wl,--gc-sections -Wl,-Bsymbolic -Wl,-z,defs)
add_library(monochord_run_static STATIC $<TARGET_OBJECTS:run_objects>)
foreach(lib monochord_run monochord_run_static)
    target_link_libraries(${lib} PRIVATE ${system})
    target_include_directories(${lib} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${lib} PROPERTIES OUTPUT_NAME monochord-run LINKER_LANGUAGE C)
endforeach()
