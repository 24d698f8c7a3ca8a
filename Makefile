# SPDX-License-Identifier: GPL-2.0
#
# Front door.  Every target is one command that also works by itself; "make help"
# lists them.  Kernel builds read Kbuild, not this file.
#
# Everything is compiled and run in one Debian tree that the first call makes
# (tools/vm/mktree), out of this directory; nothing is written here.

vm := tools/vm
enter := $(vm)/enter --

help: ## this list
	@sed -n 's/^\([a-z0-9.-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 28

setup: ## the Debian tree with compilers, kernels and QEMU
	@$(vm)/mktree

modules: setup ## the driver for kernel 7.2
modules-6.12: setup ## the driver for kernel 6.12
modules-debug: setup ## the driver for the debug kernel, and that kernel
model: setup ## the device model

ifdef KDIR
# For a kernel of this machine: make KDIR=/lib/modules/$(uname -r)/build modules
modules modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@
else
modules:
	@$(vm)/mkmodules stock
endif

modules-6.12:
	@$(vm)/mkmodules 6.12

modules-debug:
	@$(vm)/mkmodules debug

model:
	@$(enter) make -s -C tools/model O=/build/model -j2

shell: modules model ## boot a VM with two Skua NICs and give a shell in it
	@$(vm)/vm shell

check: modules model ## all tests that must pass before a change goes in
	@tests/run

check-deep: modules model ## the long tests too
	@tests/run -t deep

clean: ## what was built from this checkout (not the Debian tree)
	rm -rf "$$($(vm)/enter --where)"

.PHONY: help setup modules modules_install modules-6.12 modules-debug model shell \
	check check-deep clean
