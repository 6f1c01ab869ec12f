/* Files of viewer-assets/, built into the program (viewer-assets/assets.cmake makes the array): text,
 * NUL-terminated. */
#ifndef STALLGRAPH_EXPORTERS_VIEWER_ASSETS_H
#define STALLGRAPH_EXPORTERS_VIEWER_ASSETS_H

extern const char viewer_asset_flamegraph_css[];
extern const char viewer_asset_viewer_css[];
extern const char viewer_asset_flame_tree_js[];
extern const char viewer_asset_flame_label_js[];
extern const char viewer_asset_flame_view_js[];
extern const char viewer_asset_flame_app_js[];

#endif
