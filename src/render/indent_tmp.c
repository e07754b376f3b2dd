/* placeholder until indent.c */
#include "render/kernel.h"
void mc_indent(struct mc_str *out, const char *text)
{
    int depth = 0;
    while (*text) {
        size_t n = strcspn(text, "\n");
        int d = depth - (text[0] == '}');
        for (int i = 0; i < d && n && text[0] != '#'; i++) {
            mc_str_add(out, "    ");
        }
        mc_str_addn(out, text, n);
        mc_str_add(out, "\n");
        for (size_t i = 0; i < n; i++) {
            depth += (text[i] == '{') - (text[i] == '}');
        }
        text += n + (text[n] == '\n');
    }
}
