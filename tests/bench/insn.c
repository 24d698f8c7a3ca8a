// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's TCG that counts the guest's instructions, of all its processors. Each
 * time the guest executes SKUA_MARK (a NOP with an address that no compiler makes), one line
 * with the count goes to the file of the argument out=FILE.
 *
 * Debian has no package with qemu-plugin.h: what of QEMU's interface is used here is
 * declared below, for version 7 of it (QEMU 11).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mark.h"

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct tb;
struct insn;
struct scoreboard;

struct counter {
	struct scoreboard *score;
	size_t offset;
};

struct scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
uint64_t qemu_plugin_u64_sum(struct counter entry);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*cb)(struct tb *tb, void *data),
					   void *data);
size_t qemu_plugin_tb_n_insns(const struct tb *tb);
struct insn *qemu_plugin_tb_get_insn(const struct tb *tb, size_t idx);
size_t qemu_plugin_insn_data(const struct insn *insn, void *dest, size_t len);
/* op 0: add an immediate; flags 0: registers are not looked at */
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct insn *insn, int op,
							 struct counter entry, uint64_t imm);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn,
					    void (*cb)(unsigned int vcpu, void *data), int flags,
					    void *data);

EXPORT int qemu_plugin_version = 7;

static const uint8_t mark[] = { SKUA_MARK };
static struct counter executed;
static FILE *out;

static void marked(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	fprintf(out, "%llu\n", (unsigned long long)qemu_plugin_u64_sum(executed));
	fflush(out);
}

static void translated(struct tb *tb, void *data)
{
	uint8_t bytes[sizeof(mark)];
	struct insn *insn;

	(void)data;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, 0, executed, 1);
		if (qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) == sizeof(bytes) &&
		    !memcmp(bytes, mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, 0, NULL);
	}
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "insn: the one argument is out=FILE\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	executed.score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated, NULL);
	return 0;
}
