// SPDX-License-Identifier: GPL-2.0
/*
 * The BTH opcode table.
 *
 * RC, UC and XRC share their operations, so each operation is described once
 * and entered for each transport that has it. XRC requests carry an XRCETH in
 * front of what RC would carry; XRC responses are those of RC. Reliable
 * datagram, which no RoCE device has, is unknown on purpose.
 */
#include "hdr.h"
#include "opcode.h"

/* Bytes of the headers which a set of flags names. A constant expression. */
#define HAS(flags, bit, type)	(((flags) & (bit)) ? sizeof(struct type) : 0)
#define EXT_LEN(flags)							\
	(HAS(flags, IB_F_XRCETH, ib_xrceth) +				\
	 HAS(flags, IB_F_SETH, ib_seth) +				\
	 HAS(flags, IB_F_DETH, ib_deth) +				\
	 HAS(flags, IB_F_FETH, ib_feth) +				\
	 HAS(flags, IB_F_RETH, ib_reth) +				\
	 HAS(flags, IB_F_ATOMICETH, ib_atomiceth) +			\
	 HAS(flags, IB_F_MASKEDETH, ib_maskedeth) +			\
	 HAS(flags, IB_F_AETH, ib_aeth) +				\
	 HAS(flags, IB_F_ATOMICACKETH, ib_atomicacketh) +		\
	 HAS(flags, IB_F_IMMDT, ib_immdt) +				\
	 HAS(flags, IB_F_IETH, ib_ieth))

#define ENTRY(transport, operation, bits)				\
	[IB_OPCODE(transport, operation)] = {				\
		.name = #transport "_" #operation,			\
		.flags = (bits),					\
		.ext_len = EXT_LEN(bits),				\
	}

#define SEND(pos)	(IB_F_REQUEST | IB_F_PAYLOAD | IB_F_SEND | (pos))
#define WRITE(pos)	(IB_F_REQUEST | IB_F_PAYLOAD | IB_F_WRITE | (pos))
#define READ_RESP(pos)	(IB_F_RESPONSE | IB_F_PAYLOAD | IB_F_READ | (pos))
#define ATOMIC		(IB_F_REQUEST | IB_F_ATOMIC | IB_F_ONLY | IB_F_ATOMICETH)
#define MASKED		(IB_F_REQUEST | IB_F_ATOMIC | IB_F_ONLY | IB_F_MASKEDETH)

/* What UC has: @add is XRCETH for XRC. */
#define SEND_WRITE(t, add)								\
	ENTRY(t, SEND_FIRST, SEND(IB_F_FIRST) | (add)),					\
	ENTRY(t, SEND_MIDDLE, SEND(IB_F_MIDDLE) | (add)),				\
	ENTRY(t, SEND_LAST, SEND(IB_F_LAST | IB_F_RECV) | (add)),			\
	ENTRY(t, SEND_LAST_IMM, SEND(IB_F_LAST | IB_F_RECV | IB_F_IMMDT) | (add)),	\
	ENTRY(t, SEND_ONLY, SEND(IB_F_ONLY | IB_F_RECV) | (add)),			\
	ENTRY(t, SEND_ONLY_IMM, SEND(IB_F_ONLY | IB_F_RECV | IB_F_IMMDT) | (add)),	\
	ENTRY(t, WRITE_FIRST, WRITE(IB_F_FIRST | IB_F_RETH) | (add)),			\
	ENTRY(t, WRITE_MIDDLE, WRITE(IB_F_MIDDLE) | (add)),				\
	ENTRY(t, WRITE_LAST, WRITE(IB_F_LAST) | (add)),					\
	ENTRY(t, WRITE_LAST_IMM, WRITE(IB_F_LAST | IB_F_RECV | IB_F_IMMDT) | (add)),	\
	ENTRY(t, WRITE_ONLY, WRITE(IB_F_ONLY | IB_F_RETH) | (add)),			\
	ENTRY(t, WRITE_ONLY_IMM,							\
	      WRITE(IB_F_ONLY | IB_F_RECV | IB_F_RETH | IB_F_IMMDT) | (add))

/* What reliable transports have on top. */
#define RELIABLE(t, add)								\
	SEND_WRITE(t, add),								\
	ENTRY(t, READ_REQUEST,								\
	      IB_F_REQUEST | IB_F_READ | IB_F_ONLY | IB_F_RETH | (add)),		\
	ENTRY(t, READ_RESP_FIRST, READ_RESP(IB_F_FIRST | IB_F_AETH)),			\
	ENTRY(t, READ_RESP_MIDDLE, READ_RESP(IB_F_MIDDLE)),				\
	ENTRY(t, READ_RESP_LAST, READ_RESP(IB_F_LAST | IB_F_AETH)),			\
	ENTRY(t, READ_RESP_ONLY, READ_RESP(IB_F_ONLY | IB_F_AETH)),			\
	ENTRY(t, ACK, IB_F_RESPONSE | IB_F_ONLY | IB_F_AETH),				\
	ENTRY(t, ATOMIC_ACK, IB_F_RESPONSE | IB_F_ATOMIC | IB_F_ONLY |			\
	      IB_F_AETH | IB_F_ATOMICACKETH),						\
	ENTRY(t, CMP_SWAP, ATOMIC | (add)),						\
	ENTRY(t, FETCH_ADD, ATOMIC | (add)),						\
	ENTRY(t, SEND_LAST_INV, SEND(IB_F_LAST | IB_F_RECV | IB_F_IETH) | (add)),	\
	ENTRY(t, SEND_ONLY_INV, SEND(IB_F_ONLY | IB_F_RECV | IB_F_IETH) | (add))

/* Selective repeat: each packet of a SEND or WRITE says where it belongs. */
#define SELECTIVE(t, add)								\
	ENTRY(t, SEND_FIRST, SEND(IB_F_FIRST) | IB_F_SETH | (add)),			\
	ENTRY(t, SEND_MIDDLE, SEND(IB_F_MIDDLE) | IB_F_SETH | (add)),			\
	ENTRY(t, SEND_LAST, SEND(IB_F_LAST | IB_F_RECV) | IB_F_SETH | (add)),		\
	ENTRY(t, SEND_LAST_IMM,								\
	      SEND(IB_F_LAST | IB_F_RECV | IB_F_IMMDT) | IB_F_SETH | (add)),		\
	ENTRY(t, SEND_ONLY, SEND(IB_F_ONLY | IB_F_RECV) | IB_F_SETH | (add)),		\
	ENTRY(t, SEND_ONLY_IMM,								\
	      SEND(IB_F_ONLY | IB_F_RECV | IB_F_IMMDT) | IB_F_SETH | (add)),		\
	ENTRY(t, SEND_LAST_INV,								\
	      SEND(IB_F_LAST | IB_F_RECV | IB_F_IETH) | IB_F_SETH | (add)),		\
	ENTRY(t, SEND_ONLY_INV,								\
	      SEND(IB_F_ONLY | IB_F_RECV | IB_F_IETH) | IB_F_SETH | (add)),		\
	ENTRY(t, WRITE_FIRST, WRITE(IB_F_FIRST | IB_F_RETH) | IB_F_SETH | (add)),	\
	ENTRY(t, WRITE_MIDDLE, WRITE(IB_F_MIDDLE | IB_F_RETH) | IB_F_SETH | (add)),	\
	ENTRY(t, WRITE_LAST, WRITE(IB_F_LAST | IB_F_RETH) | IB_F_SETH | (add)),		\
	ENTRY(t, WRITE_LAST_IMM,							\
	      WRITE(IB_F_LAST | IB_F_RECV | IB_F_RETH | IB_F_IMMDT) | IB_F_SETH | (add)), \
	ENTRY(t, WRITE_ONLY, WRITE(IB_F_ONLY | IB_F_RETH) | IB_F_SETH | (add)),		\
	ENTRY(t, WRITE_ONLY_IMM,							\
	      WRITE(IB_F_ONLY | IB_F_RECV | IB_F_RETH | IB_F_IMMDT) | IB_F_SETH | (add)), \
	ENTRY(t, READ_REQUEST,								\
	      IB_F_REQUEST | IB_F_READ | IB_F_ONLY | IB_F_RETH | IB_F_SETH | (add)),	\
	ENTRY(t, ACK, IB_F_RESPONSE | IB_F_ONLY | IB_F_AETH | IB_F_PAYLOAD)

const struct ib_opcode_info ib_opcode_table[256] = {
	RELIABLE(RC, 0),
	ENTRY(RC, FLUSH, IB_F_REQUEST | IB_F_FLUSH | IB_F_ONLY | IB_F_FETH | IB_F_RETH),
	ENTRY(RC, ATOMIC_WRITE,
	      IB_F_REQUEST | IB_F_PAYLOAD | IB_F_ATOMIC_WRITE | IB_F_ONLY | IB_F_RETH),
	SEND_WRITE(UC, 0),
	ENTRY(UD, SEND_ONLY, SEND(IB_F_ONLY | IB_F_RECV | IB_F_DETH)),
	ENTRY(UD, SEND_ONLY_IMM, SEND(IB_F_ONLY | IB_F_RECV | IB_F_DETH | IB_F_IMMDT)),
	[IB_OPCODE_CNP] = { .name = "CNP", .flags = IB_F_ONLY | IB_F_PAYLOAD },
	RELIABLE(XRC, IB_F_XRCETH),
	ENTRY(SKUA_RC, MASKED_CMP_SWAP, MASKED),
	ENTRY(SKUA_RC, MASKED_FETCH_ADD, MASKED),
	ENTRY(SKUA_XRC, MASKED_CMP_SWAP, MASKED | IB_F_XRCETH),
	ENTRY(SKUA_XRC, MASKED_FETCH_ADD, MASKED | IB_F_XRCETH),
	SELECTIVE(SKUA_RC, 0),
	SELECTIVE(SKUA_XRC, IB_F_XRCETH),
};
