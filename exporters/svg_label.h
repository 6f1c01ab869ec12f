/* The text inside a rectangle: a name cut down to so many columns, so that what tells it from its neighbours
 * stays.
 *
 *   svg_label_fit("std::vector<std::pair<int, long>>::push_back(std::pair<int, long> const&)", 24)   //
 * "…::push_back(…)" svg_label_fit("[wait: tcp 10.0.0.5:5432 postgresql]", 28) // "tcp 10.0.0.5:5432
 * postgres…"
 */
#ifndef STALLGRAPH_EXPORTERS_SVG_LABEL_H
#define STALLGRAPH_EXPORTERS_SVG_LABEL_H

#include <stddef.h>

enum { SVG_LABEL_MIN_COLUMNS = 3 }; /* with fewer there is no label */

/* name: UTF-8, as text_safe gives it. Characters count one column, those of CJK scripts and emoji two. Caller
 * frees; NULL where nothing useful fits. */
char *svg_label_fit(const char *name, size_t columns);

/* Columns that a text takes. */
size_t svg_label_columns(const char *text);

#endif
