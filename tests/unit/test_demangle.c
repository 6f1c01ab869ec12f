#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/symbolize/demangle.h"

struct example {
    const char *mangled;
    const char *wanted; /* NULL: as it is */
};

static void assert_examples(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *name = demangle_name(examples[i].mangled);

        assert_string_equal(name, examples[i].wanted != NULL ? examples[i].wanted : examples[i].mangled);
        free(name);
    }
}

static void cxx(void **state)
{
    static const struct example examples[] = {
        {"_Z3foov", "foo()"},
        {"_ZN4shop8checkoutEi", "shop::checkout(int)"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()"},
        {"_ZTV3foo", "vtable for foo"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
        {"_ZN3fooC2Ev", "foo::foo()"},
        {"_Z1fILi3EEvv", "void f<3>()"},
    };

    (void)state;
    assert_examples(examples, sizeof examples / sizeof examples[0]);
}

static void suffixes_stay_behind(void **state)
{
    static const struct example examples[] = {
        {"_Z3foov.cold", "foo().cold"},
        {"_Z3foov.isra.0", "foo().isra.0"},
        {"_Z3foov.part.1", "foo().part.1"},
        {"_Z3foov.constprop.0", "foo().constprop.0"},
        {"_Z3foov.lto_priv.0", "foo().lto_priv.0"},
        {"_ZN4shop6refundEl.isra.0.part.1", "shop::refund(long).isra.0.part.1"},
        {"_Z3foov.constprop.0.isra.0.cold", "foo().constprop.0.isra.0.cold"},
        {"_Z3foov.llvm.4993935153816233978", "foo().llvm.4993935153816233978"},
        {"_Z3foov.localalias", "foo().localalias"},
        {"_Z3foov.__uniq.12.LTHUNK0", "foo().__uniq.12.LTHUNK0"},
        {"_Z3foov@plt", "foo()@plt"},
        {"main.cold", NULL},
        {"puts@plt", NULL},
    };

    (void)state;
    assert_examples(examples, sizeof examples / sizeof examples[0]);
}

static void rust(void **state)
{
    static const struct example examples[] = {
        /* legacy: the hash goes */
        {"_ZN5store5order6cancel17h0123456789abcdefE", "store::order::cancel"},
        {"_ZN3std2io5Write9write_fmt17h0123456789abcdefE.llvm.123", "std::io::Write::write_fmt.llvm.123"},
        {"_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$closure$u7d$$u7d$$GT$"
         "17h0123456789abcdefE",
         "core::ptr::drop_in_place<std::rt::lang_start<()>::{{closure}}>"},
        {"_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
         "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"},
        /* v0 */
        {"_RNvNtC5store5order5place", "store::order::place"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
        {"_RNvMNtC5store5orderNtB2_5Order6cancel", "<store::order::Order>::cancel"},
        {"_RNvCs1234_7mycrate3foo.llvm.9D1C9369", "mycrate::foo.llvm.9D1C9369"},
        {"_RNvNtC5store5order5place.cold", "store::order::place.cold"},
    };

    (void)state;
    assert_examples(examples, sizeof examples / sizeof examples[0]);
}

static void d(void **state)
{
    static const struct example examples[] = {
        {"_D3foo3barFZv", "foo.bar()"},
        {"_D3std5stdio4File5closeMFNeZv", "std.stdio.File.close()"},
        {"_D3foo3barFZv.cold", "foo.bar().cold"},
        {"_Dmain", "D main"},
    };

    (void)state;
    assert_examples(examples, sizeof examples / sizeof examples[0]);
}

static void undecodable_names_stay(void **state)
{
    static const struct example examples[] = {
        {"", NULL},
        {"_", NULL},
        {"_Z", NULL},
        {"_R", NULL},
        {"_D", NULL},
        {"_ZZZ", NULL},
        {"main", NULL},
        {"_start", NULL},
        {"_DYNAMIC", NULL},
        {"_Restart", NULL},
        {"_Data.cold", NULL},
        {"_ZN4shopNOT_A_NAME", NULL},
        {"a\xff\x01;<\"", NULL},
        {"_Z999foo", NULL},
        {"__Z3foov", NULL},
        {"Z3foov", NULL},
    };

    (void)state;
    assert_examples(examples, sizeof examples / sizeof examples[0]);
}

static char *repeat(const char *head, const char *part, size_t count, const char *tail)
{
    char *name = memory_zeroed(strlen(head) + strlen(part) * count + strlen(tail) + 1, 1);
    size_t at = (size_t)sprintf(name, "%s", head);

    for (size_t i = 0; i < count; i++)
        at += (size_t)sprintf(name + at, "%s", part);
    sprintf(name + at, "%s", tail);
    return name;
}

/* Each of these asks a demangler for too much depth, time or memory. */
static void pathological_names_end(void **state)
{
    char *names[] = {
        repeat("_Z1f", "P", 60000, "i"),    repeat("_Z1f", "N", 60000, ""),
        repeat("_Z1fI", "1AI", 300, ""),    repeat("_Z", "", 0, ""),
        repeat("_D1aF", "P", 60000, "iZv"), repeat("_D1aF", "P", 1000, "iZv"),
        repeat("_R", "N", 60000, ""),       repeat("_RIC1a", "T", 60000, ""),
        repeat("_Z3foov", ".", 60000, ""),  repeat("_Z3foo", ".a", 30000, ""),
        repeat("_ZN", "1a", 60000, "E"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *name = demangle_name(names[i]);

        assert_true(strlen(name) <= 200000);
        free(name);
        free(names[i]);
    }
}

static void output_that_explodes_is_cut_off(void **state)
{
    /* f(pair<A,A>, pair<S0,S0>, ...): every argument doubles the one before by substitutions. */
    char mangled[1000];
    size_t at = (size_t)sprintf(mangled, "_Z1f1AIiiE");
    const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    (void)state;
    /* Substitutions: S_ = A, S0_ = A<int,int>; then A<S0_,S0_> is S1_, and so on. */
    for (int i = 0; i < 33; i++)
        at += (size_t)sprintf(mangled + at, "S_IS%c_S%c_E", digits[i], digits[i]);
    {
        char *name = demangle_name(mangled);

        assert_string_equal(name, mangled);
        free(name);
    }
    /* The same with few steps is decoded: the one above failed for its length and not for its form. */
    at = (size_t)sprintf(mangled, "_Z1f1AIiiE");
    for (int i = 0; i < 3; i++)
        at += (size_t)sprintf(mangled + at, "S_IS%c_S%c_E", digits[i], digits[i]);
    {
        char *name = demangle_name(mangled);

        assert_memory_equal(name, "f(A<int, int>, A<A<int, int>, A<int, int> >,", 44);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cxx),
        cmocka_unit_test(suffixes_stay_behind),
        cmocka_unit_test(rust),
        cmocka_unit_test(d),
        cmocka_unit_test(undecodable_names_stay),
        cmocka_unit_test(pathological_names_end),
        cmocka_unit_test(output_that_explodes_is_cut_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
