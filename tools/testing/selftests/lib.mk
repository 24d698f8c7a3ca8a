# SPDX-License-Identifier: GPL-2.0
# What the Makefiles here need of the kernel's file of this name: run_tests. The
# kernel has a runner of its own for that.

run_tests:
	@sh $(dir $(lastword $(MAKEFILE_LIST)))run $(CURDIR) $(TEST_PROGS)

.PHONY: run_tests
