# run.cmake: libmonochord-run, which loads compiled functions and calls them on the CPU, without the compiler.
#
# It is made of the library's own files, less those that only compile functions, that serve GPUs, that call
# oneDNN and BLAS, or that time solvers.
# src/run/absent.c defines what the rest still names of these.  A file that comes to name more of them does not
# link: it needs a definition there, or the file that it names is taken out of `without`.
#
# abi/monochord_run.txt lists what the library exports.  All that these functions do not reach is discarded.
set(run ${sources})
foreach(without
        nn/ comm/ export/ inspect/ grad/ rewrite/ lower/ render/ compile/ .*cuda/ heavy/portable/ .*/portable[a-z_]*[.]c
        "graph/(lex|parse[a-z_]*|primary|statement|svg|picture|layout|replace)[.]c"
        "op/(collective|einsum|pad|families|formula|scan_make|scan_grad|call|prototype|conv_names|conv_convnet|pool_names|norm_batch|image|linalg_names)[.]c"
        "exec/(kernels|remote|tolerance|heavy/conv_chain|cpu/(bands|joint|repeat|compile_kernels|copied_view|custom|describe|factor|lines))[.]c" "schedule/(in_place|joint|bands|row_axes)[.]c"
        "device/cpu/(cc|compile_job|evict|process)[.]c" "heavy/pool/print[a-z_]*[.]c"
        "heavy/(factor|lines)/" "heavy/(conv/cpu/((onednn|implicit|grouped)/|depthwise/(planes|rows|channels)[.]c)|gemm/cpu/(onednn|blas|tall|library[a-z_]*)[.]c)" "plan/(contest|trial|timer)[.]c")
    list(FILTER run EXCLUDE REGEX "/src/${without}")
endforeach()
list(REMOVE_ITEM run ${public})
foreach(file lower/values render/kernel compile/function inspect/step_info run/absent run/families)
    list(APPEND run ${PROJECT_SOURCE_DIR}/src/${file}.c)
endforeach()
set_source_files_properties(src/run/absent.c src/run/families.c PROPERTIES
    COMPILE_DEFINITIONS _POSIX_C_SOURCE=200809L)

# Kernels for AVX2 and AVX-512, and loops over elements, are compiled as in the library: the same bits, and the
# same speed, but for skinny products and poolings in float64, which have one form.  Plans, the rest, and kernels
# for processors without AVX2 (src/base/small.h) are compiled for size.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i[3-6]86") # elsewhere, they are the kernels of products
    set(small_products gemm/cpu/kernel_generic)
endif()
set(fast ${run})
list(FILTER fast INCLUDE REGEX "/src/heavy/")
foreach(planning
        "(problem|table|geometry|operands|algo_flag|blocking|reference)"
        "(fft|direct|depthwise|im2col|splitk|exchange|window_grad|image_blocks|pointwise|relayout|gemm/cpu/packed|gemm/cpu/skinny)"
        "((fft|direct|depthwise)/generic|(norm|pool)/cpu/kernel_generic|window_grad_generic)" "${small_products}")
    list(FILTER fast EXCLUDE REGEX "/${planning}[.]c")
endforeach()
set(small ${run})
list(REMOVE_ITEM small ${fast})
# What divides work among threads before kernels run, and copies that memory bounds, are compiled for size too.
set(drivers ${fast})
list(FILTER drivers INCLUDE REGEX "/(run|window_grad_run|copy|scatter|gather|row_spectra|norm/print)[.]c|/(pool|norm)/cpu/(rows|global|lanes|lines|stride_one|packed|ties)[.]c")
list(REMOVE_ITEM fast ${drivers})
foreach(part fast drivers small)
    add_library(run_${part} OBJECT ${${part}})
    target_link_libraries(run_${part} PRIVATE house Threads::Threads)
    target_include_directories(run_${part} PRIVATE src ${CMAKE_CURRENT_BINARY_DIR}/gen)
    target_compile_definitions(run_${part} PRIVATE MC_BUILD MC_RUNTIME)
    target_compile_options(run_${part} PRIVATE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables)
endforeach()
include(CheckCCompilerFlag)
check_c_compiler_flag(-Oz smallest)
check_c_compiler_flag(-fno-tree-ch heads)
check_c_compiler_flag(-fno-align-jumps jumps)
# Loops have their heads once, and jumps no padding: a twentieth less code, and the same steps.
target_compile_options(run_fast PRIVATE $<$<BOOL:${heads}>:-fno-tree-ch> $<$<BOOL:${jumps}>:-fno-align-jumps$<SEMICOLON>-fno-align-labels>)
target_compile_options(run_drivers PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Os>)
target_compile_options(run_small PRIVATE $<$<NOT:$<CONFIG:Debug>>:$<IF:$<BOOL:${smallest}>,-Oz,-Os>>)
# Rows of ops name several columns of one union, and some rows are left out (src/graph/graph.h).  The options
# must follow those of `house`.
add_library(run_rows INTERFACE)
target_compile_options(run_rows INTERFACE -Wno-unused-function
    -Wno-$<IF:$<C_COMPILER_ID:GNU>,override-init,initializer-overrides>)
target_link_libraries(run_small PRIVATE run_rows)
set(run_objects $<TARGET_OBJECTS:run_fast> $<TARGET_OBJECTS:run_drivers> $<TARGET_OBJECTS:run_small>)

add_library(monochord_run SHARED ${run_objects})
set_target_properties(monochord_run PROPERTIES VERSION ${version} SOVERSION 0)
exports(monochord_run abi/monochord_run.txt)
# Relocations take a tenth of their bytes where the linker and the loader can (glibc 2.36, musl 1.2.4).
include(CheckLinkerFlag)
check_linker_flag(C -Wl,-z,pack-relative-relocs packed_relocations)
target_link_options(monochord_run PRIVATE $<$<BOOL:${packed_relocations}>:-Wl,-z,pack-relative-relocs>
    -Wl,--gc-sections -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,noseparate-code)
add_library(monochord_run_static STATIC ${run_objects})
foreach(lib monochord_run monochord_run_static)
    target_link_libraries(${lib} PRIVATE ${system})
    target_include_directories(${lib} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${lib} PROPERTIES OUTPUT_NAME monochord-run LINKER_LANGUAGE C)
endforeach()
