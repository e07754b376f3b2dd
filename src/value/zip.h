/* zip.h: the marks and sizes of a zip file's records, for npz.c, which reads them, and npz_save.c. */
#ifndef MC_ZIP_H
#define MC_ZIP_H

#include "value/value.h"

enum { /* the marks that records begin with */
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
enum { EXTRA64 = 1, VERSION64 = 45 };        /* the extra field of large sizes, and the version that has it */
#define FULL32 UINT32_C(0xffffffff)          /* "it is in the extra field" */

#endif
