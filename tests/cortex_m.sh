#!/usr/bin/env bash
# cortex_m.sh [MONOCHORD]: the LeNet of the demo on a microcontroller: exported, compiled for a Cortex-M4 without an
# operating system, and run under qemu.  Its parameters are read where they lie, in ROM.  A hundred pictures must give
# the bits that the same file gives on this machine without vector extensions.  Prints sizes.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$PWD/${1:-build/monochord}
for program in arm-none-eabi-gcc qemu-system-arm cc; do
    command -v $program >/dev/null || { echo "cortex_m: left out, there is no $program"; exit 0; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >parameters.S <<'END'
    .section .rodata
    .global parameters
    .balign 8
parameters:
    .incbin "lenet.bin"
END
cat >main.c <<'END'
#include "lenet.h"
#include <stdio.h>
#include <string.h>
extern const struct lenet parameters; /* the file's bytes are those of the structure */
static float x[784], p[10];
int main(void)
{
    unsigned state = 1, bits[10];
    for (int k = 0; k < 100; k++) {
        for (int i = 0; i < 784; i++) {
            state = state * 1664525u + 1013904223u;
            x[i] = (float)(state >> 8) * 0x1p-24f * ((i / 28 + i * k) % 3 == 0);
        }
        if (lenet_predict(&parameters, NULL, x, p)) {
            return 1;
        }
        memcpy(bits, p, sizeof bits);
        for (int i = 0; i < 10; i++) {
            printf(i < 9 ? "%08x " : "%08x\n", bits[i]);
        }
    }
    return 0;
}
END
cat >start.c <<'END'
#include <stdlib.h>
#include <string.h>
extern char data[], data_from[], data_end[], __bss_start__[], __bss_end__[];
extern int main(void);
extern void initialise_monitor_handles(void);
void _init(void) {}
void _fini(void) {}
void Reset(void)
{
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit */
    memcpy(data, data_from, (size_t)(data_end - data));
    memset(__bss_start__, 0, (size_t)(__bss_end__ - __bss_start__));
    initialise_monitor_handles();
    exit(main());
}
__attribute__((section(".vectors"), used)) const struct { void *stack; void (*reset)(void); } vectors = {
    (void *)0x21FFFFF0, Reset
};
END
cat >link.ld <<'END'
ENTRY(Reset)
MEMORY { ROM (rx): ORIGIN = 0, LENGTH = 4M  RAM (rwx): ORIGIN = 0x21000000, LENGTH = 16M }
SECTIONS {
  .vectors : { KEEP(*(.vectors)) } > ROM
  .text : { *(.text*) *(.rodata*) } > ROM
  .ARM.exidx : { *(.ARM.exidx*) } > ROM
  .data : { data = .; *(.data*) } > RAM AT> ROM
  data_from = LOADADDR(.data); data_end = ADDR(.data) + SIZEOF(.data);
  .bss (NOLOAD) : { __bss_start__ = .; *(.bss*) *(COMMON) __bss_end__ = .; } > RAM AT> RAM
  end = .; PROVIDE(__end__ = .);
}
END
"$tool" export lenet --c lenet.c --parameters lenet.bin --freestanding >/dev/null
arm="arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Wall -Wextra -Wpedantic -Werror"
cc -O2 main.c lenet.c parameters.S -o here 2>/dev/null
$arm -Os -ffreestanding -c lenet.c -o lenet.o
$arm -O2 --specs=rdimon.specs -nostartfiles -T link.ld start.c main.c lenet.c parameters.S -o there.elf
./here >here.txt
timeout 300 qemu-system-arm -M mps2-an386 -cpu cortex-m4 -kernel there.elf -semihosting -nographic >there.txt </dev/null
needs=$(arm-none-eabi-nm -u lenet.o | awk '{ print $2 }' | tr '\n' ' ')
code=$(arm-none-eabi-size lenet.o | awk 'NR == 2 { print $1 }')
memory=$(sed -n 's/^#define LENET_MEMORY //p' lenet.h)
[ "$(wc -l <here.txt)" = 100 ] && cmp here.txt there.txt ||
    { echo "cortex_m: the bits differ"; paste here.txt there.txt | head -n 4; exit 1; }
[ "$needs" = "__aeabi_ldivmod memcpy memset " ] || { echo "cortex_m: the file needs $needs"; exit 1; }
echo "cortex_m: 100 pictures alike; code $code bytes, memory $memory bytes, parameters $(wc -c <lenet.bin) bytes in ROM; needs $needs"
