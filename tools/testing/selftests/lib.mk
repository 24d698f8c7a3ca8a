# SPDX-License-Identifier: GPL-2.0
# What the Makefiles here need of the kernel's file of this name: run_tests, and install. The
# kernel has a runner of its own for them.

run_tests:
	@sh $(dir $(lastword $(MAKEFILE_LIST)))run $(CURDIR) $(TEST_PROGS)

# make INSTALL_PATH=DIR install: the same directories below DIR
install:
	@test -n "$(INSTALL_PATH)" || { echo "INSTALL_PATH is not set" >&2; exit 1; }
	@mkdir -p "$(INSTALL_PATH)"
	@cp $(TEST_PROGS) $(TEST_FILES) settings config "$(INSTALL_PATH)/"

.PHONY: run_tests install
