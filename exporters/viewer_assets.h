/* Files of viewer-assets/, built into the program (viewer-assets/assets.cmake makes the array): text,
 * NUL-terminated. */
#ifndef STALLGRAPH_EXPORTERS_VIEWER_ASSETS_H
#define STALLGRAPH_EXPORTERS_VIEWER_ASSETS_H

extern const char viewer_asset_flamegraph_css[];

#endif
