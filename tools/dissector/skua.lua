-- SPDX-License-Identifier: GPL-2.0
--
-- Skua's packets in Wireshark, beside those of the standard: selective repeat and masked
-- atomics (Documentation/wire/selective-repeat.rst and packets.rst).
--
--   wireshark -X lua_script:tools/dissector/skua.lua FILE
--   tshark -X lua_script:tools/dissector/skua.lua -Y skua -r FILE
--
-- All other packets go to Wireshark's own dissector. Of those that offer selective repeat
-- the window is added.

local skua = Proto("skua", "Skua")

local OP = {
	[0x00] = "SEND First", [0x01] = "SEND Middle", [0x02] = "SEND Last",
	[0x03] = "SEND Last with Immediate", [0x04] = "SEND Only",
	[0x05] = "SEND Only with Immediate", [0x06] = "RDMA WRITE First",
	[0x07] = "RDMA WRITE Middle", [0x08] = "RDMA WRITE Last",
	[0x09] = "RDMA WRITE Last with Immediate", [0x0a] = "RDMA WRITE Only",
	[0x0b] = "RDMA WRITE Only with Immediate", [0x0c] = "RDMA READ Request",
	[0x11] = "Acknowledge with Bitmap", [0x16] = "SEND Last with Invalidate",
	[0x17] = "SEND Only with Invalidate", [0x18] = "Masked CmpSwap",
	[0x19] = "Masked FetchAdd",
}
local VENDOR_MIN, XRC = 0xc0, 0x20
local READ_REQUEST, ACK, MASKED_CMP_SWAP = 0x0c, 0x11, 0x18
local IMM = { [0x03] = true, [0x05] = true, [0x09] = true, [0x0b] = true }
local INV = { [0x16] = true, [0x17] = true }
local BTH_LEN, ICRC_LEN = 12, 4

local f = {
	op = ProtoField.string("skua.op", "Operation"),
	xrc = ProtoField.bool("skua.xrc", "XRC"),
	window = ProtoField.uint32("skua.window", "Window offered (packets)"),
	psn = ProtoField.uint24("skua.psn", "PSN"),
	dqpn = ProtoField.uint24("skua.dqpn", "Destination QP", base.HEX),
	ackreq = ProtoField.bool("skua.ackreq", "Acknowledge request"),
	srqn = ProtoField.uint24("skua.xrceth.srqn", "SRQ", base.HEX),
	rtx = ProtoField.bool("skua.seth.rtx", "Sent before", 8, nil, 0x80),
	seq = ProtoField.uint24("skua.seth.seq", "Message sequence"),
	run = ProtoField.uint8("skua.seth.run", "Messages before it to the same SRQ"),
	off = ProtoField.uint24("skua.seth.off", "Packet of the message"),
	va = ProtoField.uint64("skua.reth.va", "Virtual address", base.HEX),
	rkey = ProtoField.uint32("skua.reth.rkey", "R_Key", base.HEX),
	len = ProtoField.uint32("skua.reth.len", "Length of the message"),
	imm = ProtoField.uint32("skua.immdt", "Immediate data", base.HEX),
	inv = ProtoField.uint32("skua.ieth.rkey", "R_Key to invalidate", base.HEX),
	syndrome = ProtoField.uint8("skua.aeth.syndrome", "Syndrome", base.HEX),
	msn = ProtoField.uint24("skua.aeth.msn", "MSN"),
	bitmap = ProtoField.bytes("skua.bitmap", "Bitmap"),
	taken = ProtoField.string("skua.taken", "PSNs taken"),
	ntaken = ProtoField.uint32("skua.taken.count", "Number of PSNs taken"),
	ava = ProtoField.uint64("skua.atomic.va", "Virtual address", base.HEX),
	arkey = ProtoField.uint32("skua.atomic.rkey", "R_Key", base.HEX),
	swap = ProtoField.uint64("skua.atomic.swap_add", "Swap or add data", base.HEX),
	compare = ProtoField.uint64("skua.atomic.compare", "Compare data", base.HEX),
	swap_mask = ProtoField.uint64("skua.atomic.swap_add_mask", "Swap or add mask", base.HEX),
	compare_mask = ProtoField.uint64("skua.atomic.compare_mask", "Compare mask", base.HEX),
	payload = ProtoField.bytes("skua.payload", "Payload"),
	payload_len = ProtoField.uint32("skua.payload.len", "Bytes of payload"),
	icrc = ProtoField.uint32("skua.icrc", "ICRC", base.HEX),
}
local order = {}
for _, field in pairs(f) do
	order[#order + 1] = field
end
skua.fields = order

local short = ProtoExpert.new("skua.short", "Too short for the headers of its opcode",
			      expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new("skua.unknown", "Opcode of another manufacturer",
				expert.group.UNDECODED, expert.severity.NOTE)
local bad_bitmap = ProtoExpert.new("skua.bitmap.bad", "Bit 0 must be 0, the length 4 to 64 by 4",
				   expert.group.PROTOCOL, expert.severity.WARN)
skua.experts = { short, unknown, bad_bitmap }

-- Headers: bytes, and what is added to the tree at an offset
local function xrceth(t, b)
	t:add(f.srqn, b(1, 3))
end

local function seth(t, b)
	t:add(f.rtx, b(0, 1))
	t:add(f.seq, b(1, 3))
	t:add(f.run, b(4, 1))
	t:add(f.off, b(5, 3))
end

local function reth(t, b)
	t:add(f.va, b(0, 8))
	t:add(f.rkey, b(8, 4))
	t:add(f.len, b(12, 4))
end

local function immdt(t, b)
	t:add(f.imm, b(0, 4))
end

local function ieth(t, b)
	t:add(f.inv, b(0, 4))
end

local function aeth(t, b)
	t:add(f.syndrome, b(0, 1))
	t:add(f.msn, b(1, 3))
end

local function masked(t, b)
	t:add(f.ava, b(0, 8))
	t:add(f.arkey, b(8, 4))
	t:add(f.swap, b(12, 8))
	t:add(f.compare, b(20, 8))
	t:add(f.swap_mask, b(28, 8))
	t:add(f.compare_mask, b(36, 8))
end

local H = {
	xrceth = { 4, "XRCETH", xrceth }, seth = { 8, "SETH", seth }, reth = { 16, "RETH", reth },
	immdt = { 4, "ImmDt", immdt }, ieth = { 4, "IETH", ieth }, aeth = { 4, "AETH", aeth },
	masked = { 44, "MaskedAtomicETH", masked },
}

-- Headers of an operation, in their order
local function headers(op, xrc)
	local list = {}

	if xrc and op ~= ACK then
		list[1] = H.xrceth
	end
	if op == ACK then
		list[#list + 1] = H.aeth
		return list
	elseif op >= MASKED_CMP_SWAP then
		list[#list + 1] = H.masked
		return list
	end
	list[#list + 1] = H.seth
	if op >= 0x06 and op <= READ_REQUEST then
		list[#list + 1] = H.reth
	end
	if IMM[op] then
		list[#list + 1] = H.immdt
	elseif INV[op] then
		list[#list + 1] = H.ieth
	end
	return list
end

-- Bit i is of the PSN that the responder expects plus i, that is the packet's plus 1 plus i
local function sack(tree, b, psn)
	local runs, count, first = {}, 0, nil
	local bits = b:len() * 8

	tree:add(f.bitmap, b)
	for i = 0, bits do
		local set = i < bits and bit.band(b(math.floor(i / 8), 1):uint(),
						  bit.lshift(1, i % 8)) ~= 0

		if set then
			count = count + 1
			first = first or i
		elseif first then
			local from = (psn + 1 + first) % 0x1000000
			local to = (psn + i) % 0x1000000

			runs[#runs + 1] = from == to and tostring(from) or from .. "-" .. to
			first = nil
		end
	end
	tree:add(f.taken, table.concat(runs, " ")):set_generated()
	tree:add(f.ntaken, count):set_generated()
	if b:len() < 4 or b:len() > 64 or b:len() % 4 ~= 0 or bit.band(b(0, 1):uint(), 1) ~= 0 then
		tree:add_proto_expert_info(bad_bitmap)
	end
end

local function window(tree, tvb)
	local log = bit.band(tvb(8, 1):uint(), 0x0f)

	if log >= 5 then
		tree:add(f.window, tvb(8, 1), bit.lshift(1, math.min(log, 9)))
	end
	return log >= 5
end

local function extension(tvb, pinfo, root, opcode)
	local tree = root:add(skua, tvb())
	local op = opcode % XRC
	local xrc = opcode >= VENDOR_MIN + XRC
	local at, last = BTH_LEN, tvb:len() - ICRC_LEN
	local psn = tvb(9, 3):uint()
	local pad = bit.rshift(bit.band(tvb(1, 1):uint(), 0x30), 4)

	if not OP[op] then
		tree:add_proto_expert_info(unknown)
		return
	end
	pinfo.cols.protocol = "Skua"
	pinfo.cols.info = (xrc and "XRC " or "RC ") .. OP[op] ..
			  string.format(" QP=0x%06x PSN=%u", tvb(5, 3):uint(), psn)
	tree:append_text(", " .. OP[op])
	tree:add(f.op, tvb(0, 1), OP[op])
	tree:add(f.xrc, tvb(0, 1), xrc)
	tree:add(f.dqpn, tvb(5, 3))
	tree:add(f.ackreq, tvb(8, 1), tvb(8, 1):uint() >= 0x80)
	tree:add(f.psn, tvb(9, 3))
	window(tree, tvb)
	for _, h in ipairs(headers(op, xrc)) do
		if at + h[1] > last then
			tree:add_proto_expert_info(short)
			return
		end
		h[3](tree:add(skua, tvb(at, h[1]), h[2]), tvb(at, h[1]):tvb())
		at = at + h[1]
	end
	if at > last - pad then
		tree:add_proto_expert_info(short)
		return
	elseif op == ACK then
		if at < last - pad then
			sack(tree, tvb(at, last - pad - at), psn)
		else
			tree:add_proto_expert_info(bad_bitmap)
		end
	else
		tree:add(f.payload_len, last - pad - at):set_generated()
		if at < last - pad then
			tree:add(f.payload, tvb(at, last - pad - at))
		end
	end
	tree:add(f.icrc, tvb(last, ICRC_LEN))
end

local ports = DissectorTable.get("udp.port")
local standard = ports:get_dissector(4791)

-- What guesses at the payload may find it malformed, and has said so then
local function others(tvb, pinfo, root)
	local ok, err = pcall(standard.call, standard, tvb, pinfo, root)

	if not ok and not tostring(err):find("Malformed frame", 1, true) then
		error(err, 0)
	end
end

function skua.dissector(tvb, pinfo, root)
	local opcode = tvb:len() >= BTH_LEN + ICRC_LEN and tvb(0, 1):uint()

	if opcode and opcode >= VENDOR_MIN then
		extension(tvb, pinfo, root, opcode)
	else
		if opcode and bit.band(tvb(8, 1):uint(), 0x0f) >= 5 then
			window(root:add(skua, tvb(8, 1)), tvb)
		end
		others(tvb, pinfo, root)
	end
end

ports:add(4791, skua)
