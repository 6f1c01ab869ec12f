# What the golden files mean, read by a parser that shares nothing with the exporters. That they are what the exporters write is
# unit.test_exporters' business.
stallgraph_test(golden.check 60 ${TESTS_DIR}/golden/check_golden.py)
# go tool pprof reads the golden files; skipped without it.
stallgraph_test(golden.go_pprof 120 ${TESTS_DIR}/golden/check_go_pprof.py)
stallgraph_test(golden.check_self_test 60 ${TESTS_DIR}/golden/check_golden.py --self-test)
