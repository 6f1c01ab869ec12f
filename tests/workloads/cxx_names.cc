// What real C++ symbols look like: namespaces, templates, virtual calls, an operator, a lambda, and an
// exception in flight while a destructor runs.
#include <cstdint>
#include <stdexcept>

extern "C" {
#include "truth.h"
}

namespace shop
{

struct pricing {
    virtual ~pricing() = default;
    virtual void total(int items) = 0;
};

template <typename T> struct flat_pricing : pricing {
    OWN_FRAME void total(int items) override
    {
        spin(static_cast<uint64_t>(items) * 100000);
    }
};

struct basket {
    OWN_FRAME bool operator()(int items) const
    {
        spin(static_cast<uint64_t>(items) * 100000);
        return items > 0;
    }
};

struct burns_at_unwind {
    OWN_FRAME ~burns_at_unwind()
    {
        spin(1000000);
    }
};

OWN_FRAME static void fails()
{
    burns_at_unwind guard;
    throw std::runtime_error("expected");
}

OWN_FRAME static void checkout(pricing &prices, const basket &goods)
{
    prices.total(10);
    goods(10);
    try {
        fails();
    } catch (const std::runtime_error &) {
        NO_TAIL_CALL();
    }
}

} // namespace shop

int main()
{
    shop::flat_pricing<unsigned long> prices;
    shop::basket goods;

    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;)
        shop::checkout(prices, goods);
}
