/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The BTH opcodes: one table that says what a packet of each consists of.
 */
#ifndef SKUA_ROCE_OPCODE_H
#define SKUA_ROCE_OPCODE_H

#include <stddef.h>
#include <stdint.h>

/* Transport: the upper three bits of an opcode. */
#define IB_TRANSPORT_MASK	0xe0
#define IB_TRANSPORT_RC		0x00
#define IB_TRANSPORT_UC		0x20
#define IB_TRANSPORT_UD		0x60
#define IB_TRANSPORT_CNP	0x80
#define IB_TRANSPORT_XRC	0xa0
/*
 * From here on the opcodes are the manufacturers' own: what others drop. Those of
 * Skua are of RC and of XRC, and number operations as the standard ones do.
 */
#define IB_OPCODE_VENDOR_MIN	0xc0
#define IB_TRANSPORT_SKUA_RC	0xc0
#define IB_TRANSPORT_SKUA_XRC	0xe0

/* Operation: the lower five bits. */
enum ib_operation {
	IB_OP_SEND_FIRST		= 0x00,
	IB_OP_SEND_MIDDLE		= 0x01,
	IB_OP_SEND_LAST			= 0x02,
	IB_OP_SEND_LAST_IMM		= 0x03,
	IB_OP_SEND_ONLY			= 0x04,
	IB_OP_SEND_ONLY_IMM		= 0x05,
	IB_OP_WRITE_FIRST		= 0x06,
	IB_OP_WRITE_MIDDLE		= 0x07,
	IB_OP_WRITE_LAST		= 0x08,
	IB_OP_WRITE_LAST_IMM		= 0x09,
	IB_OP_WRITE_ONLY		= 0x0a,
	IB_OP_WRITE_ONLY_IMM		= 0x0b,
	IB_OP_READ_REQUEST		= 0x0c,
	IB_OP_READ_RESP_FIRST		= 0x0d,
	IB_OP_READ_RESP_MIDDLE		= 0x0e,
	IB_OP_READ_RESP_LAST		= 0x0f,
	IB_OP_READ_RESP_ONLY		= 0x10,
	IB_OP_ACK			= 0x11,
	IB_OP_ATOMIC_ACK		= 0x12,
	IB_OP_CMP_SWAP			= 0x13,
	IB_OP_FETCH_ADD			= 0x14,
	IB_OP_SEND_LAST_INV		= 0x16,
	IB_OP_SEND_ONLY_INV		= 0x17,
	/* Two that the standard does not know, in Skua's transports only. */
	IB_OP_MASKED_CMP_SWAP		= 0x18,
	IB_OP_MASKED_FETCH_ADD		= 0x19,
	IB_OP_FLUSH			= 0x1c,
	IB_OP_ATOMIC_WRITE		= 0x1d,
};

#define IB_OPCODE(transport, operation)	(IB_TRANSPORT_##transport | IB_OP_##operation)
#define IB_OPCODE_CNP			0x81

/**
 * enum ib_opcode_flags - what a packet is and which headers follow its BTH
 * @IB_F_REQUEST: from requester to responder
 * @IB_F_RESPONSE: from responder to requester
 * @IB_F_FIRST: the message's first packet
 * @IB_F_MIDDLE: neither first nor last
 * @IB_F_LAST: its last
 * @IB_F_ONLY: first and last at once
 * @IB_F_PAYLOAD: carries payload (perhaps none)
 * @IB_F_SEND: a part of a SEND
 * @IB_F_WRITE: a part of an RDMA WRITE
 * @IB_F_READ: READ request or response
 * @IB_F_ATOMIC: atomic operation or its acknowledge
 * @IB_F_FLUSH: FLUSH
 * @IB_F_ATOMIC_WRITE: ATOMIC WRITE
 * @IB_F_RECV: consumes a receive WQE (whole message: by its last packet's flag)
 * @IB_F_XRCETH: headers, in the order in which they stand in a packet
 * @IB_F_SETH: see @IB_F_XRCETH
 * @IB_F_DETH: see @IB_F_XRCETH
 * @IB_F_FETH: see @IB_F_XRCETH
 * @IB_F_RETH: see @IB_F_XRCETH
 * @IB_F_ATOMICETH: see @IB_F_XRCETH
 * @IB_F_MASKEDETH: see @IB_F_XRCETH
 * @IB_F_AETH: see @IB_F_XRCETH
 * @IB_F_ATOMICACKETH: see @IB_F_XRCETH
 * @IB_F_IMMDT: see @IB_F_XRCETH
 * @IB_F_IETH: see @IB_F_XRCETH
 */
enum ib_opcode_flags {
	IB_F_REQUEST		= 1u << 0,
	IB_F_RESPONSE		= 1u << 1,
	IB_F_FIRST		= 1u << 2,
	IB_F_MIDDLE		= 1u << 3,
	IB_F_LAST		= 1u << 4,
	IB_F_ONLY		= IB_F_FIRST | IB_F_LAST,
	IB_F_PAYLOAD		= 1u << 5,
	IB_F_SEND		= 1u << 6,
	IB_F_WRITE		= 1u << 7,
	IB_F_READ		= 1u << 8,
	IB_F_ATOMIC		= 1u << 9,
	IB_F_RECV		= 1u << 10,
	IB_F_FLUSH		= 1u << 11,
	IB_F_ATOMIC_WRITE	= 1u << 12,
	IB_F_XRCETH		= 1u << 16,
	IB_F_DETH		= 1u << 17,
	IB_F_FETH		= 1u << 18,
	IB_F_RETH		= 1u << 19,
	IB_F_ATOMICETH		= 1u << 20,
	IB_F_AETH		= 1u << 21,
	IB_F_ATOMICACKETH	= 1u << 22,
	IB_F_IMMDT		= 1u << 23,
	IB_F_IETH		= 1u << 24,
	IB_F_MASKEDETH		= 1u << 25,
	IB_F_SETH		= 1u << 26,
};

/**
 * struct ib_opcode_info - one opcode
 * @name: for people, for instance "RC_SEND_FIRST"; NULL: no such opcode
 * @flags: enum ib_opcode_flags
 * @ext_len: bytes of all headers between BTH and payload
 */
struct ib_opcode_info {
	const char *name;
	uint32_t flags;
	uint8_t ext_len;
};

extern const struct ib_opcode_info ib_opcode_table[256];

/* NULL for an opcode which nobody defines, reliable datagram included. */
static inline const struct ib_opcode_info *ib_opcode_info(uint8_t opcode)
{
	const struct ib_opcode_info *info = &ib_opcode_table[opcode];

	return info->name ? info : NULL;
}

/* The transport that an opcode belongs to, be it a standard one or Skua's. */
static inline uint8_t ib_opcode_transport(uint8_t opcode)
{
	switch (opcode & IB_TRANSPORT_MASK) {
	case IB_TRANSPORT_SKUA_RC:
		return IB_TRANSPORT_RC;
	case IB_TRANSPORT_SKUA_XRC:
		return IB_TRANSPORT_XRC;
	default:
		return opcode & IB_TRANSPORT_MASK;
	}
}

#endif /* SKUA_ROCE_OPCODE_H */
