# The real speedscope, and our SVG, in the system's Chromium. What npm installs stays in the build folder.
set(BROWSER_DIR ${CMAKE_BINARY_DIR}/browser)
set(golden ${TESTS_DIR}/golden)
stallgraph_test(browser.speedscope 600 ${TESTS_DIR}/browser/run.sh ${BROWSER_DIR} speedscope_opens.mjs
                ${golden}/server.speedscope.json ${golden}/hostile.speedscope.json ${golden}/quarter.speedscope.json
                ${golden}/empty.speedscope.json)
stallgraph_test(browser.speedscope_refuses 600 ${TESTS_DIR}/browser/run.sh ${BROWSER_DIR} speedscope_opens.mjs --self-test
                ${golden}/server.speedscope.json)
stallgraph_test(browser.svg 300 ${TESTS_DIR}/browser/run.sh ${BROWSER_DIR} svg_draws.mjs ${golden}/server.svg
                ${golden}/hostile.svg ${golden}/quarter.svg ${golden}/empty.svg)
stallgraph_test(browser.svg_interacts 300 ${TESTS_DIR}/browser/run.sh ${BROWSER_DIR} svg_interacts.mjs ${golden}/server.svg
                ${golden}/hostile.svg ${golden}/quarter.svg ${golden}/empty.svg)
