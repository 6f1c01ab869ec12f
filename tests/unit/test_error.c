#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "profiler/base/error.h"

static void test_set_adds_the_system_text(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(error_set(&err, -EACCES, "open %s", "/x"), -EACCES);
    assert_int_equal(err.code, -EACCES);
    assert_string_equal(err.message, "open /x: Permission denied");
    assert_int_equal(error_hint(&err, "run as %s", "root"), -EACCES);
    assert_string_equal(err.message, "open /x: Permission denied; run as root");
}

static void test_the_last_one_counts(void **state)
{
    struct error err = {0};

    (void)state;
    error_set(&err, -EACCES, "open /x");
    assert_int_equal(error_say(&err, -ENOENT, "no process is named %s", "y"), -ENOENT);
    assert_string_equal(err.message, "no process is named y");
    assert_int_equal(error_set(&err, 0, "nothing"), 0);
    assert_string_equal(err.message, "nothing");
}

static void test_null_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, -EIO, "x"), -EIO);
    assert_int_equal(error_say(NULL, -EIO, "x"), -EIO);
    assert_int_equal(error_hint(NULL, "x"), 0);
}

static void test_long_texts_are_cut(void **state)
{
    struct error err = {0};
    char text[2 * sizeof err.message];

    (void)state;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    error_set(&err, -EIO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    error_hint(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_adds_the_system_text),
        cmocka_unit_test(test_the_last_one_counts),
        cmocka_unit_test(test_null_is_allowed),
        cmocka_unit_test(test_long_texts_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
