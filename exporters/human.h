/* Numbers for people: short, and the same on every machine. Written into a caller's buffer. */
#ifndef STALLGRAPH_EXPORTERS_HUMAN_H
#define STALLGRAPH_EXPORTERS_HUMAN_H

#include <stdint.h>

enum { HUMAN_TEXT_SIZE = 48 };

struct human_text {
    char text[HUMAN_TEXT_SIZE];
};

struct human_text human_time_us(uint64_t time_us);              /* "63.2 s", "4.05 ms", "12 µs", "2,041 s" */
struct human_text human_percent(uint64_t part, uint64_t whole); /* "62.1 %", "0.04 %", "< 0.01 %", "0 %" */
struct human_text human_count(uint64_t count);                  /* "14,212" */
struct human_text human_ratio(uint64_t part, uint64_t whole);   /* "7.93", "0.05": two decimals */
struct human_text human_utc(int64_t unix_ns);                   /* "2026-03-01 12:00:05 UTC" */

#endif
