/* What crt1.o, crtbegin.o and libc_nonshared.a would bring, so that an
 * executable links without gcc and libc6-dev. From an archive: with the
 * system's linker driver the usual files win. `main` is libflow_runtime's.
 * x86-64, glibc. */
__asm__(".globl _start\n"
        ".type _start,@function\n"
        "_start:\n"
        "  xor %ebp,%ebp\n"
        "  mov %rdx,%r9\n"        /* rtld_fini */
        "  mov (%rsp),%rsi\n"     /* argc */
        "  lea 8(%rsp),%rdx\n"    /* argv */
        "  and $-16,%rsp\n"
        "  push %rax\n"
        "  push %rsp\n"           /* stack_end */
        "  xor %r8d,%r8d\n"       /* no fini */
        "  xor %ecx,%ecx\n"       /* no init: the dynamic loader runs the arrays */
        "  lea main(%rip),%rdi\n"
        "  call *__libc_start_main@GOTPCREL(%rip)\n"
        "  hlt\n");

__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;

int __cxa_atexit(void (*function)(void *), void *argument, void *handle);

__attribute__((visibility("hidden"))) int atexit(void (*function)(void)) {
  return __cxa_atexit((void (*)(void *))function, 0, __dso_handle);
}
