# public.cmake: the body of every function that include/monochord_ops.h declares.
#   cmake -D HEADER=include/monochord_ops.h -D OUT=gen/op/public.c -P cmake/public.cmake
#
# A body passes its arguments on to src/op/call.h.  The type of a parameter says what it is:
#
#     mc_graph *g                     the graph, where no tensor tells it
#     mc_node *x                      a tensor
#     int n, mc_node *const *xs       a list of tensors, one at most
#     const char *how, ...            attributes as text, always last
#
# The op has the function's name, unless the comment in front begins with a signature: after
# "var(x, axis=None:axes): " it is var.  Each function with attributes has a signature, and each whose op has
# another name.
# What returns nothing has its body elsewhere.  A declaration in another form is an error: no function is left
# without a body.
# tests/t_generated.c compares the header, and what is written here, with the table of ops.
cmake_minimum_required(VERSION 3.16)

# Each comment and each declaration becomes one line, without the characters that lists of CMake's split at.
file(READ "${HEADER}" text)
string(REGEX REPLACE "[][;\\]" "" text "${text}")
string(REGEX REPLACE "\n( [*]|   ) +" " " text "${text}")
string(REGEX MATCHALL "[^\n]+" lines "${text}")

set(name "[A-Za-z0-9_]+")
set(bodies "")
set(signature "")
foreach(line IN LISTS lines)
    if(line MATCHES "^/[*] ")
        set(signature "")
        if(line MATCHES "^/[*] (${name})[(][^()]*[)]: ")
            set(signature ${CMAKE_MATCH_1})
        endif()
        continue()
    elseif(NOT line MATCHES "^MC_API " OR line MATCHES "^MC_API void ")
        set(signature "")
        continue()
    elseif(NOT line MATCHES "^MC_API (mc_node [*]mc_(${name})[(]([^()]*)[)])")
        message(FATAL_ERROR "${HEADER}: not a function that makes a node: ${line}")
    endif()
    set(prototype "${CMAKE_MATCH_1}")
    set(op ${CMAKE_MATCH_2})
    string(REPLACE ", " ";" parameters "${CMAKE_MATCH_3}")
    if(signature)
        set(op ${signature})
    endif()

    set(graph NULL)
    set(tensors "")
    set(list "0, NULL")
    set(how "")
    foreach(parameter IN LISTS parameters)
        if(parameter MATCHES "^mc_graph [*](${name})$")
            set(graph ${CMAKE_MATCH_1})
        elseif(parameter MATCHES "^mc_node [*](${name})$")
            list(APPEND tensors ${CMAKE_MATCH_1})
        elseif(parameter MATCHES "^mc_node [*]const [*](${name})$")
            set(list "n, ${CMAKE_MATCH_1}")
        elseif(parameter STREQUAL "const char *how")
            set(how how)
        elseif(NOT parameter MATCHES "^(int n|[.][.][.])$")
            message(FATAL_ERROR "${HEADER}: ${op} has a parameter of no known kind: ${parameter}")
        endif()
    endforeach()
    if(how AND NOT signature)
        message(FATAL_ERROR "${HEADER}: ${op} has attributes and no signature in front")
    endif()

    list(LENGTH tensors count)
    list(JOIN tensors ", " tensors)
    set(first NULL)
    if(count)
        set(first "(mc_node *[]){ ${tensors} }")
    endif()
    set(arguments "\"${op}\", ${graph}, ${count}, ${first}, ${list}")
    string(APPEND bodies "\n${prototype}\n{\n")
    if(how)
        string(APPEND bodies
            "    va_list ap_;\n    va_start(ap_, how);\n"
            "    mc_node *made_ = mc_call_how(${arguments}, how, ap_);\n"
            "    va_end(ap_);\n    return made_;\n}\n")
    else()
        string(APPEND bodies "    return mc_call_plain(${arguments});\n}\n")
    endif()
    set(signature "")
endforeach()
if(NOT bodies)
    message(FATAL_ERROR "${HEADER} declares no function")
endif()
file(WRITE "${OUT}" "/* public.c: one function an op.  Made by cmake/public.cmake from monochord_ops.h. */\n"
    "#include \"op/call.h\"\n${bodies}")
