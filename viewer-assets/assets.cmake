# Builds the files of viewer-assets/ into the export layer: each becomes an array of exporters/viewer_assets.h, named after its
# file. Nothing but CMake is needed for it.
set(viewer_assets flamegraph.css viewer.css flame_tree.js flame_label.js flame_view.js flame_app.js)

set(assets_source ${PROJECT_BINARY_DIR}/viewer_assets.c)
list(TRANSFORM viewer_assets PREPEND ${PROJECT_SOURCE_DIR}/viewer-assets/ OUTPUT_VARIABLE viewer_asset_files)
list(JOIN viewer_asset_files "," viewer_asset_list)
add_custom_command(
  OUTPUT ${assets_source}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${assets_source} -DASSETS=${viewer_asset_list}
          -P ${PROJECT_SOURCE_DIR}/viewer-assets/embed.cmake
  DEPENDS ${viewer_asset_files} ${PROJECT_SOURCE_DIR}/viewer-assets/embed.cmake
  COMMENT "Embedding viewer-assets"
  VERBATIM)
target_sources(export PRIVATE ${assets_source})
