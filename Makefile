# SPDX-License-Identifier: GPL-2.0
#
# Front door.  Every target is one command that also works by itself; "make help"
# lists them.  Kernel builds read Kbuild, not this file.
#
# Everything is compiled and run in one Debian tree that the first call makes
# (tools/vm/mktree), out of this directory; nothing is written here but with KDIR=.

vm := tools/vm
enter := $(vm)/enter --

# The lines with two hashes are the help text
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

## make setup           the Debian tree with compilers, kernels and QEMU
setup:
	@$(vm)/mktree

## make modules         the driver for kernel 7.2
ifndef KDIR
modules:
	@$(vm)/mkmodules stock
modules_install:
	@echo 'make: error: modules_install needs KDIR=/lib/modules/$$(uname -r)/build' >&2; exit 1
else
## make KDIR=/lib/modules/$(uname -r)/build modules modules_install
##                      the driver for a kernel of this machine, in place
modules modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@
endif

## make modules-6.12    the driver for kernel 6.12
modules-6.12:
	@$(vm)/mkmodules 6.12

## make modules-debug   the debug kernel, and the driver for it
modules-debug:
	@$(vm)/mkmodules debug

## make model           the device model
model:
	@$(enter) make -s -C tools/model O=/build/model LTO=1 -j2

## make provider        the libibverbs plug-in
provider:
	@tools/rdma-core/build

## make patches         the driver, the provider and tests as patches for upstream
##                      make patches PATCHES='--from "NAME <ADDRESS>" -v 2'
patches:
	@tools/patches/patches $(PATCHES)

## make deb             Debian packages: driver (DKMS), model, provider, tools
deb:
	@tools/deb/build

## make demo            boot a VM with two Skua NICs and show what they do
demo: modules model provider
	@tools/demo/demo

## make shell           boot a VM with two Skua NICs and give a shell in it
shell: modules model provider
	@$(vm)/vm shell

## make check           all tests that must pass before a change goes in
check: modules model provider test-progs
	@tests/run

## make check-deep      the long tests too
check-deep: modules model provider test-progs
	@tests/run -t deep

## make test-progs      programs of the tests and the samples, for VMs
# One is linked with the provider
test-progs: provider
	@$(enter) make -s -C tests/vm/progs O=/build/progs -j2
	@$(enter) make -s -C samples O=/build/samples CFLAGS='-O2 -g -Wall -Wextra -Werror' -j2

## make bench           Skua beside soft-RoCE, siw and TCP, in one run: table, CSV, plots
bench:
	@tests/bench/compare

## make sim             many NICs and a network under virtual time: tables, CSV, plots
##                      make sim SIM='loss --qps 1': one scenario (SIM=--help)
sim:
	@$(enter) make -s -C tests/sim O=/build/sim -j2
ifdef SIM
	@$(enter) /build/sim/sim $(SIM)
else
	@$(enter) tests/sim/sweep /build/sim/out
	@echo "CSV and plots: $$($(vm)/enter --where)/sim/out"
endif

## make hwdoc           the device manual from the headers (Documentation/hw)
hwdoc:
	@$(enter) python3 /skua/tools/hwdoc/hwdoc /usr/src/linux-tools/tools/docs/kernel-doc \
		/skua /skua/Documentation/hw

## make htmldocs        the manual as web pages, with search
htmldocs:
	@tools/htmldocs/htmldocs

## make clean           what was built from this checkout (not the Debian tree)
clean:
	rm -rf "$$($(vm)/enter --where)"

.PHONY: help setup deb patches hwdoc htmldocs bench sim modules modules_install modules-6.12 modules-debug model \
	provider demo shell check check-deep test-progs clean
