/* zip.h: signatures and sizes of the records of a zip file, for npz.c, which reads them, and npz_save.c,
 * which writes them. */
#ifndef MC_ZIP_H
#define MC_ZIP_H

#include "value/value.h"

enum { /* signatures at the beginning of records */
    LOCAL     = 0x04034b50,
    CENTRAL   = 0x02014b50,
    END       = 0x06054b50,
    LOCATOR64 = 0x07064b50,
    END64     = 0x06064b50
};
enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, LOCATOR64_SIZE = 20, END64_SIZE = 56 };
enum { LONGEST_COMMENT = 65535, LONGEST_NAME = 65000 };
enum { STORED = 0, DEFLATED = 8 };           /* methods */
enum { ENCRYPTED = 1, UTF8 = 1 << 11 };      /* flags */
/* the extra field of 64-bit sizes, and the version that has it */
enum { EXTRA64 = 1, VERSION64 = 45 };
#define FULL32 UINT32_C(0xffffffff)          /* the value is in the extra field */

#endif
