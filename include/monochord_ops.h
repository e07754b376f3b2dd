/* monochord_ops.h: one function an op, made from the table of ops. */
#ifndef MONOCHORD_OPS_H
#define MONOCHORD_OPS_H

#include <monochord.h>

#endif
