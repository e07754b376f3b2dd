/* address_sanitizer.c: what the address sanitizer is told, in every program that is built with it.
 *
 * Up to GCC 13 and LLVM 16 it looks at what __tls_get_addr returns, and takes a block of an opened library's thread-local
 * variables that lies 16 bytes behind the start of a page for one of glibc 2.19, which had a header there.  The size that it
 * then reads is any number, and the leak check crashes at exit; oneDNN and OpenBLAS, with their threads, have such blocks.
 * Since glibc 2.25 these come from malloc, so the leak check finds them, and what they hold, without it: t_asan.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0";
}
