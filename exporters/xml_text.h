/* Text into XML 1.0 content or a quoted attribute. */
#ifndef STALLGRAPH_EXPORTERS_XML_TEXT_H
#define STALLGRAPH_EXPORTERS_XML_TEXT_H

#include <stdio.h>

/* text must come from text_safe(.., TEXT_XML), which removed what XML forbids; here "&", "<", ">" and quotes
 * become entities. Shorten before, never after: an entity that is cut breaks the file. */
void xml_text(FILE *out, const char *text);

/* The same for text straight from a target. */
void xml_raw_text(FILE *out, const char *raw);

/* The same for a text made by a format, of at most 511 bytes. */
void xml_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
