# Bundles web/ with esbuild (one binary of Debian's, no node, no package) and compiles the result into a target as bytes:
# src/phlox/exporters/web_bundle.h says how to get at them.
find_program(ESBUILD esbuild REQUIRED)

# bundle(OUT ENTRY): one script of ENTRY (below web/src) and all that it imports.
function(phlox_bundle_script out entry)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${ESBUILD} ${PROJECT_SOURCE_DIR}/web/src/${entry} --bundle --minify --format=iife --target=es2019 --charset=utf8
            --log-level=warning --outfile=${out}
    DEPENDS ${ARGN}
    COMMENT "Bundling ${entry}"
    VERBATIM)
endfunction()

function(phlox_embed_web target)
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(out ${PROJECT_BINARY_DIR}/web)
  file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${web}/src/*.ts)
  file(GLOB_RECURSE styles CONFIGURE_DEPENDS ${web}/src/*.css)
  phlox_bundle_script(${out}/flame_svg.js svg/flame_svg.ts ${scripts})
  phlox_bundle_script(${out}/page.js page/main.ts ${scripts})
  add_custom_command(
    OUTPUT ${out}/page.css
    COMMAND ${ESBUILD} ${web}/src/page/page.css --bundle --minify --charset=utf8 --log-level=warning --outfile=${out}/page.css
    DEPENDS ${styles}
    COMMENT "Bundling page.css"
    VERBATIM)
  add_custom_command(
    OUTPUT ${out}/web_bundle.cpp
    COMMAND ${CMAKE_COMMAND} -D OUT=${out}/web_bundle.cpp
            -D "FILES=flame_svg_script=${out}/flame_svg.js,flame_style=${web}/src/flame.css,page_script=${out}/page.js,page_style=${out}/page.css"
            -D HEADER=phlox/exporters/web_bundle.h -D NAMESPACE=phlox::exporters::web
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${out}/flame_svg.js ${web}/src/flame.css ${out}/page.js ${out}/page.css ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the web bundle"
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/web_bundle.cpp)
endfunction()
