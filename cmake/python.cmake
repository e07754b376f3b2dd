# python.cmake: the extension module _monochord, in python/monochord under the build folder, beside links to the Python
# files.  It has the whole library in it, and takes CPython's limited API: one file serves every version from 3.11 on.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
file(GLOB binding CONFIGURE_DEPENDS python/binding/*.c)
add_library(python_module MODULE ${binding})
set_target_properties(python_module PROPERTIES PREFIX "" OUTPUT_NAME _monochord SUFFIX .abi3.so LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/monochord)
target_include_directories(python_module SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_link_libraries(python_module PRIVATE house monochord_static)
target_compile_options(python_module PRIVATE -Wno-pedantic)
target_link_options(python_module PRIVATE -Wl,--exclude-libs,ALL)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/monochord)
file(GLOB files CONFIGURE_DEPENDS python/monochord/*.py)
foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${PROJECT_BINARY_DIR}/python/monochord/${name} SYMBOLIC)
endforeach()
