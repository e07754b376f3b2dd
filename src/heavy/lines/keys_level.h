/* keys_level.h: keys of both widths at one level of instructions.  The includer names LEVEL and TARGET. */
#include "heavy/lines/lines.h"

enum { CHUNK = 256 };

#define W 32
#define U uint32_t
#define FLOAT_DTYPE MC_FLOAT32
#define INT_DTYPE MC_INT32
#define UINT_DTYPE MC_UINT32
#include "heavy/lines/keys.h"
#undef W
#undef U
#undef FLOAT_DTYPE
#undef INT_DTYPE
#undef UINT_DTYPE
#define W 64
#define U uint64_t
#define FLOAT_DTYPE MC_FLOAT64
#define INT_DTYPE MC_INT64
#define UINT_DTYPE MC_UINT64
#include "heavy/lines/keys.h"

#define LEVEL_ROW__(level) { keys_32_##level, keys_64_##level, values_32_##level, values_64_##level }
#define LEVEL_ROW_(level) LEVEL_ROW__(level)
#define LEVEL_ROW LEVEL_ROW_(LEVEL)
