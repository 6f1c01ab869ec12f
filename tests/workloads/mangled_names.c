/* Functions whose symbols look as other compilers make them: C++ with the suffixes of gcc's optimizer, both
 * Rust manglings, and one that no demangler can read. Each burns the same. */
#include "truth.h"

static void cold_part(void) __asm__("_ZN4shop8checkoutEi.cold");
static void cloned_part(void) __asm__("_ZN4shop6refundEl.isra.0.part.1");
static void rust_v0(void) __asm__("_RNvNtC5store5order5place");
static void rust_legacy(void) __asm__("_ZN5store5order6cancel17h0123456789abcdefE");
static void undecodable(void) __asm__("_ZN4shopNOT_A_NAME");

OWN_FRAME static void cold_part(void)
{
    spin(1000000);
}

OWN_FRAME static void cloned_part(void)
{
    spin(1000000);
}

OWN_FRAME static void rust_v0(void)
{
    spin(1000000);
}

OWN_FRAME static void rust_legacy(void)
{
    spin(1000000);
}

OWN_FRAME static void undecodable(void)
{
    spin(1000000);
}

int main(void)
{
    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;) {
        cold_part();
        cloned_part();
        rust_v0();
        rust_legacy();
        undecodable();
    }
}
