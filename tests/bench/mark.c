// SPDX-License-Identifier: GPL-2.0
/* mark: have insn.c write down how many instructions the guest has executed */
#include "mark.h"

#define TEXT(...) #__VA_ARGS__
#define BYTES(...) ".byte " TEXT(__VA_ARGS__)

int main(void)
{
	__asm__ volatile(BYTES(SKUA_MARK));
	return 0;
}
