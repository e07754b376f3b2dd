/* address_sanitizer.c: what the address sanitizer is told, in every program that is built with it.
 *
 * The leak check of GCC up to 13 and LLVM up to 16 mistakes some thread-local blocks of opened libraries,
 * those 16 bytes behind the start of a page, for blocks of glibc 2.19.  It reads a size where there is none
 * and crashes at exit.  oneDNN and OpenBLAS, with their threads, have such blocks.
 * Since glibc 2.25 the blocks come from malloc: the leak check finds them, and what they hold, without this
 * interceptor (t_asan.c). */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0";
}
