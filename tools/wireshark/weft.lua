-- SPDX-License-Identifier: BSD-2-Clause
--
-- A dissector of weft's packets for Wireshark and tshark:
--
--	tshark -X lua_script:weft.lua -r FILE
--
-- It recognizes the packets of FI_WEFT_NIC=udp and tcp by their form, whatever
-- their ports are: use "Decode As" if a capture begins in the middle of a TCP
-- connection. Connections with a key (FI_WEFT_KEY_FILE) are encrypted. The
-- layouts are those of src/nic/udp/engine/packet_defs.h, src/nic/tcp/frame_defs.h
-- and src/wire/packet.c; the test tool_dissector compares the numbers.

local udp = Proto("weft_udp", "weft NIC over UDP")
local tcp = Proto("weft_tcp", "weft NIC over TCP")
local rdm = Proto("weft_rdm", "EFA RDM protocol of weft")

-- Neither a library for bits nor the place of unpack() is the same in all
-- versions of Lua that Wireshark had.
local unpack = table.unpack or unpack

local function has(flags, mask)
	return math.floor(flags / mask) % 2 == 1
end

-- -- numbers ----------------------------------------------------------------

local UDP_MAGIC = 0x77
local UDP_VERSIONS = { [4] = true }
local UDP_TYPES = {
	[1] = "INIT", [2] = "COOKIE", [3] = "OPEN", [4] = "ACCEPT",
	[5] = "RESET", [6] = "CLOSE", [7] = "DATA", [8] = "ACK", [9] = "NACK",
	[10] = "PING", [11] = "PROBE", [12] = "PROBED",
}
local UDP_OPS = {
	[0] = "FILLER", [1] = "SEND", [2] = "WRITE", [3] = "WRITE_IMM",
	[4] = "READ", [5] = "READ_DATA",
}
local UDP_DATA_ACKS = 0x01
local UDP_DATA_IMM = 0x04
local UDP_DATA_PART = 0x10

local TCP_HELLO_MAGIC = 0x50547477
local TCP_VERSIONS = { [3] = true, [4] = true }
local TCP_WORDS = {
	[1] = "HELLO", [2] = "WELCOME", [3] = "YIELD", [4] = "ASTRAY",
}
local TCP_CHANNELS = {
	[0] = "SMALL", [1] = "BULK", [2] = "BULK 2", [3] = "BULK 3",
	[4] = "BULK 4",
}
local TCP_MAGIC = 0xa7
local TCP_KINDS = {
	[1] = "ACK", [2] = "BYE", [3] = "REST", [4] = "NACK", [5] = "SEND",
	[6] = "WRITE", [7] = "READ", [8] = "DATA", [9] = "FAIL",
}
local TCP_HAS_IMM = 0x1
local TCP_USER_KEY = 0x2
local TCP_SPLIT = 0x4
local TCP_SPLIT_ALIGN = 64

local STATUSES = {
	[0] = "OK", [1] = "FLUSHED", [2] = "QP_INTERNAL", [3] = "UNSUPP_OP",
	[4] = "BAD_AH", [5] = "BAD_LKEY", [6] = "LOCAL_LEN", [7] = "REM_ADDR",
	[8] = "ABORT", [9] = "BAD_QPN", [10] = "RNR", [11] = "REM_LEN",
	[12] = "BAD_STATUS", [13] = "UNRESP", [14] = "UNKNOWN_PEER",
	[15] = "UNREACH",
}

local RDM_VERSION = 4
local RDM_RAW_ADDR, RDM_CQ_DATA, RDM_CONNID = 0x0001, 0x0002, 0x8000
local RDM_HANDSHAKE = 9
local RDM_HANDSHAKE_BIAS = 3

-- -- fields -----------------------------------------------------------------

local f = {}

local function fields(proto, list)
	local all = {}
	for _, entry in ipairs(list) do
		local kind, abbr, name, a, b, c = unpack(entry)
		local full = proto.name:lower() .. "." .. abbr
		f[full] = ProtoField[kind](full, name, a, b, c)
		table.insert(all, f[full])
	end
	proto.fields = all
end

fields(udp, {
	{ "uint8", "magic", "Magic", base.HEX },
	{ "uint8", "type", "Type", base.DEC, UDP_TYPES },
	{ "uint8", "flags", "Flags", base.HEX },
	{ "bool", "flags.acks", "Acknowledges", 8, nil, 0x01 },
	{ "bool", "flags.now", "Wants an ACK now", 8, nil, 0x02 },
	{ "bool", "flags.imm", "Has immediate data", 8, nil, 0x04 },
	{ "bool", "flags.late", "ACK is late", 8, nil, 0x08 },
	{ "bool", "flags.part", "Is a part of a packet", 8, nil, 0x10 },
	{ "bool", "flags.crc", "Payload is covered", 8, nil, 0x01 },
	{ "uint8", "version", "Version", base.DEC },
	{ "uint8", "op", "Operation", base.DEC, UDP_OPS },
	{ "uint8", "status", "Status", base.DEC, STATUSES },
	{ "uint8", "words", "Words of bitmap", base.DEC },
	{ "uint32", "crc", "CRC32C", base.HEX },
	{ "uint64", "dst_cid", "Connection of the receiver", base.HEX },
	{ "uint64", "src_cid", "Connection of the sender", base.HEX },
	{ "uint64", "cookie", "Cookie", base.HEX },
	{ "uint32", "epoch", "Epoch", base.DEC },
	{ "uint32", "mtu", "Largest datagram", base.DEC },
	{ "uint32", "rwnd", "Bytes that may be in flight", base.DEC },
	{ "uint32", "ts", "Time stamp (us)", base.DEC },
	{ "uint64", "instance", "Instance", base.HEX },
	{ "uint32", "seq", "Sequence number", base.DEC },
	{ "uint32", "ack", "All before it are here", base.DEC },
	{ "uint32", "ack_ts", "Echoed time stamp (us)", base.DEC },
	{ "uint16", "ack_tag", "Tag of that connection", base.HEX },
	{ "uint16", "dst_qpn", "Queue pair of the receiver", base.DEC },
	{ "uint16", "src_qpn", "Queue pair of the sender", base.DEC },
	{ "uint16", "len", "Payload length", base.DEC },
	{ "uint32", "qkey", "Qkey", base.HEX },
	{ "uint32", "imm", "Immediate data", base.HEX },
	{ "uint64", "addr", "Address", base.HEX },
	{ "uint32", "key", "Key", base.HEX },
	{ "uint32", "arg", "Argument", base.DEC },
	{ "uint16", "part_off", "Offset of the part", base.DEC },
	{ "uint16", "part_total", "Bytes of the whole", base.DEC },
	{ "uint16", "dups", "Packets received twice", base.DEC },
	{ "bytes", "bitmap", "Later ones that are here", base.NONE },
	{ "bytes", "payload", "Payload", base.NONE },
})

fields(tcp, {
	{ "uint32", "hello.magic", "Magic", base.HEX },
	{ "uint8", "hello.version", "Version", base.DEC },
	{ "uint8", "hello.word", "Word", base.DEC, TCP_WORDS },
	{ "uint8", "hello.channel", "Channel", base.DEC, TCP_CHANNELS },
	{ "uint8", "hello.insists", "Insists", base.DEC },
	{ "uint64", "hello.life", "Life of the sender", base.HEX },
	{ "uint64", "hello.known", "Known life of the receiver", base.HEX },
	{ "uint32", "hello.number", "Number of the connection", base.DEC },
	{ "uint32", "hello.replaces", "Replaces", base.DEC },
	{ "uint32", "hello.taken", "Frames taken", base.DEC },
	{ "uint16", "hello.port", "Listening port", base.DEC },
	{ "uint16", "hello.rails", "Further addresses", base.DEC },
	{ "string", "hello.rail", "Address", base.NONE },
	{ "uint8", "magic", "Magic", base.HEX },
	{ "uint8", "kind", "Kind", base.DEC, TCP_KINDS },
	{ "uint8", "flags", "Flags", base.HEX },
	{ "bool", "flags.imm", "Has immediate data", 8, nil, TCP_HAS_IMM },
	{ "bool", "flags.user_key", "Key of the user", 8, nil, TCP_USER_KEY },
	{ "bool", "flags.split", "In two pieces", 8, nil, TCP_SPLIT },
	{ "uint8", "status", "Status", base.DEC, STATUSES },
	{ "uint8", "tries", "Tries without a receive", base.DEC },
	{ "uint32", "len", "Payload length", base.DEC },
	{ "uint32", "ack_small", "Frames of SMALL taken", base.DEC },
	{ "uint32", "ack_bulk", "Frames of BULK taken", base.DEC },
	{ "uint16", "dst_qpn", "Queue pair of the receiver", base.DEC },
	{ "uint16", "src_qpn", "Queue pair of the sender", base.DEC },
	{ "uint32", "qkey", "Qkey", base.HEX },
	{ "uint32", "imm", "Immediate data", base.HEX },
	{ "uint32", "arg", "Argument", base.DEC },
	{ "uint64", "addr", "Address", base.HEX },
	{ "uint32", "key", "Key", base.HEX },
	{ "uint32", "id", "Id of the read", base.DEC },
	{ "bytes", "payload", "Payload", base.NONE },
})

-- -- RDM --------------------------------------------------------------------

-- Each field: abbreviation, offset, bytes. A tag is the last field.
local RDM_TYPES = {}

local function packet(type, name, header, list, more)
	local entry = more or {}
	entry.name, entry.header, entry.fields = name, header, list
	RDM_TYPES[type] = entry
end

local function request(type, name, header, list)
	packet(type, name, header, list, { request = true })
end

local function message(msg, tagged, name, header, list)
	local with_tag = { unpack(list) }

	table.insert(with_tag, { "tag", header, 8 })
	request(msg, name .. "_MSGRTM", header, list)
	request(tagged, name .. "_TAGRTM", header + 8, with_tag)
end

packet(3, "CTS", 24, { { "send_id", 8, 4 }, { "recv_id", 12, 4 },
	{ "recv_length", 16, 8 } }, { connid = 4 })
packet(4, "CTSDATA", 24, { { "recv_id", 4, 4 }, { "seg_length", 8, 8 },
	{ "seg_offset", 16, 8 } }, { connid_follows = true })
packet(5, "READRSP", 24, { { "recv_id", 8, 4 }, { "send_id", 12, 4 },
	{ "seg_length", 16, 8 } }, { connid = 4 })
packet(7, "EOR", 16, { { "send_id", 4, 4 }, { "recv_id", 8, 4 } },
	{ connid = 12 })
packet(8, "ATOMRSP", 24, { { "recv_id", 12, 4 }, { "seg_length", 16, 8 } },
	{ connid = 4 })
packet(9, "HANDSHAKE", 8, {})
packet(10, "RECEIPT", 16, { { "send_id", 4, 4 }, { "msg_id", 8, 4 } },
	{ connid = 12 })
packet(11, "READ_NACK", 16, { { "send_id", 4, 4 }, { "recv_id", 8, 4 } },
	{ connid = 12 })
packet(12, "PEER_ERROR", 20, { { "op_id", 4, 4 }, { "ref_kind", 8, 4 },
	{ "prov_errno", 12, 4 } }, { connid = 16 })
message(64, 65, "EAGER", 8, { { "msg_id", 4, 4 } })
message(66, 67, "MEDIUM", 24, { { "msg_id", 4, 4 }, { "msg_length", 8, 8 },
	{ "seg_offset", 16, 8 } })
message(68, 69, "LONGCTS", 24, { { "msg_id", 4, 4 }, { "msg_length", 8, 8 },
	{ "send_id", 16, 4 }, { "credit_request", 20, 4 } })
request(70, "EAGER_RTW", 8, { { "rma_iov_count", 4, 4 } })
request(71, "LONGCTS_RTW", 24, { { "rma_iov_count", 4, 4 },
	{ "msg_length", 8, 8 }, { "send_id", 16, 4 },
	{ "credit_request", 20, 4 } })
request(72, "SHORT_RTR", 24, { { "rma_iov_count", 4, 4 },
	{ "msg_length", 8, 8 }, { "recv_id", 16, 4 }, { "recv_length", 20, 4 } })
request(73, "LONGCTS_RTR", 24, { { "rma_iov_count", 4, 4 },
	{ "msg_length", 8, 8 }, { "recv_id", 16, 4 }, { "recv_length", 20, 4 } })
request(74, "WRITE_RTA", 24, { { "msg_id", 4, 4 }, { "rma_iov_count", 8, 4 },
	{ "datatype", 12, 4 }, { "op", 16, 4 } })
request(75, "FETCH_RTA", 24, { { "msg_id", 4, 4 }, { "rma_iov_count", 8, 4 },
	{ "datatype", 12, 4 }, { "op", 16, 4 }, { "recv_id", 20, 4 } })
request(76, "COMPARE_RTA", 24, { { "msg_id", 4, 4 }, { "rma_iov_count", 8, 4 },
	{ "datatype", 12, 4 }, { "op", 16, 4 }, { "recv_id", 20, 4 } })
message(128, 129, "LONGREAD", 24, { { "msg_id", 4, 4 }, { "msg_length", 8, 8 },
	{ "send_id", 16, 4 }, { "read_iov_count", 20, 4 } })
request(130, "LONGREAD_RTW", 24, { { "rma_iov_count", 4, 4 },
	{ "msg_length", 8, 8 }, { "send_id", 16, 4 },
	{ "read_iov_count", 20, 4 } })
message(133, 134, "DC_EAGER", 16, { { "msg_id", 4, 4 }, { "send_id", 8, 4 } })
message(135, 136, "DC_MEDIUM", 32, { { "msg_id", 4, 4 }, { "send_id", 8, 4 },
	{ "msg_length", 16, 8 }, { "seg_offset", 24, 8 } })
message(137, 138, "DC_LONGCTS", 24, { { "msg_id", 4, 4 },
	{ "msg_length", 8, 8 }, { "send_id", 16, 4 },
	{ "credit_request", 20, 4 } })
request(139, "DC_EAGER_RTW", 16, { { "rma_iov_count", 4, 4 },
	{ "send_id", 8, 4 } })
request(140, "DC_LONGCTS_RTW", 24, { { "rma_iov_count", 4, 4 },
	{ "msg_length", 8, 8 }, { "send_id", 16, 4 },
	{ "credit_request", 20, 4 } })
request(141, "DC_WRITE_RTA", 24, { { "msg_id", 4, 4 },
	{ "rma_iov_count", 8, 4 }, { "datatype", 12, 4 }, { "op", 16, 4 },
	{ "send_id", 20, 4 } })
message(145, 146, "RUNTREAD", 40, { { "msg_id", 4, 4 }, { "msg_length", 8, 8 },
	{ "send_id", 16, 4 }, { "read_iov_count", 20, 4 },
	{ "seg_offset", 24, 8 }, { "runt_length", 32, 8 } })

local RDM_NAMES = {}
for type, entry in pairs(RDM_TYPES) do
	RDM_NAMES[type] = entry.name
end

fields(rdm, {
	{ "uint8", "type", "Type", base.DEC, RDM_NAMES },
	{ "uint8", "version", "Version", base.DEC },
	{ "uint16", "flags", "Flags", base.HEX },
	{ "uint32", "msg_id", "Number of the message", base.DEC },
	{ "uint32", "send_id", "Id of the sender", base.DEC },
	{ "uint32", "recv_id", "Id of the receiver", base.DEC },
	{ "uint32", "connid", "Connection id", base.HEX },
	{ "uint64", "tag", "Tag", base.HEX },
	{ "uint64", "cq_data", "Data for the completion", base.HEX },
	{ "uint64", "msg_length", "Length of the message", base.DEC },
	{ "uint64", "seg_offset", "Offset in the message", base.DEC },
	{ "uint64", "seg_length", "Length of this piece", base.DEC },
	{ "uint64", "recv_length", "Bytes that may come", base.DEC },
	{ "uint64", "runt_length", "Bytes that come by packets", base.DEC },
	{ "uint32", "credit_request", "Credit that is asked for", base.DEC },
	{ "uint32", "datatype", "Type of data", base.DEC },
	{ "uint32", "op", "Atomic operation", base.DEC },
	{ "uint32", "op_id", "Id of the operation", base.DEC },
	{ "uint32", "ref_kind", "Kind of the id", base.DEC },
	{ "int32", "prov_errno", "Error", base.DEC },
	{ "uint32", "rma_iov_count", "Pieces of remote memory", base.DEC },
	{ "uint32", "read_iov_count", "Pieces to read", base.DEC },
	{ "uint64", "iov.addr", "Address", base.HEX },
	{ "uint64", "iov.len", "Length", base.DEC },
	{ "uint64", "iov.key", "Key", base.HEX },
	{ "bytes", "raw_addr", "Address of the sender", base.NONE },
	{ "uint32", "extra_count", "Words of features", base.DEC },
	{ "uint64", "extra", "Features", base.HEX },
	{ "uint64", "host_id", "Host", base.HEX },
	{ "uint32", "device_version", "Version of the device", base.DEC },
	{ "uint32", "qpn", "Queue pair", base.DEC },
	{ "uint32", "qkey", "Qkey", base.HEX },
	{ "uint32", "p2p", "Peer to peer", base.DEC },
	{ "bytes", "data", "Data", base.NONE },
})

local truncated = ProtoExpert.new("weft_rdm.truncated",
	"The headers are cut off", expert.group.MALFORMED, expert.severity.ERROR)
rdm.experts = { truncated }

-- What follows the mandatory header; reads on only as far as there are bytes.
local function reader(buf, tree, at)
	local r = { at = at }

	function r:has(len)
		if self.at + len > buf:len() then
			self.bad = true
		end
		return not self.bad
	end
	function r:take(abbr, len, skip)
		if self:has(len + (skip or 0)) then
			tree:add_le(f["weft_rdm." .. abbr], buf(self.at, len))
			self.at = self.at + len + (skip or 0)
		end
	end
	function r:iovs(count, name)
		for i = 1, math.min(count, 4) do
			if not self:has(24) then
				return
			end
			local sub = tree:add(rdm, buf(self.at, 24), name .. " " .. i)
			sub:add_le(f["weft_rdm.iov.addr"], buf(self.at, 8))
			sub:add_le(f["weft_rdm.iov.len"], buf(self.at + 8, 8))
			sub:add_le(f["weft_rdm.iov.key"], buf(self.at + 16, 8))
			self.at = self.at + 24
		end
	end
	return r
end

local function handshake(r, buf, flags)
	local count = math.max(0, buf(4, 4):le_uint() - RDM_HANDSHAKE_BIAS)

	for _ = 1, math.min(count, 16) do
		r:take("extra", 8)
	end
	if has(flags, RDM_CONNID) then
		r:take("connid", 4, 4)
	end
	if has(flags, 0x1) then
		r:take("host_id", 8)
	end
	if has(flags, 0x2) then
		r:take("device_version", 4, 4)
	end
	if has(flags, 0x4) then
		r:take("qpn", 4)
		r:take("qkey", 4)
	end
	if has(flags, 0x8) then
		r:take("p2p", 4, 4)
	end
end

local function optionals(r, buf, flags)
	if has(flags, RDM_RAW_ADDR) and r:has(4) then
		local len = math.min(buf(r.at, 4):le_uint(), 36)
		r.at = r.at + 4
		if len > 0 then
			r:take("raw_addr", len)
		end
	end
	if has(flags, RDM_CQ_DATA) then
		r:take("cq_data", 8)
	end
	if has(flags, RDM_CONNID) then
		r:take("connid", 4)
	end
end

-- The counts of a packet, by the name of their field.
local function count_of(buf, entry, name)
	for _, field in ipairs(entry.fields) do
		if field[1] == name then
			return buf(field[2], 4):le_uint()
		end
	end
	return 0
end

local function is_rdm(buf)
	if buf:len() < 8 or buf(1, 1):uint() ~= RDM_VERSION then
		return false
	end
	return RDM_TYPES[buf(0, 1):uint()] ~= nil
end

function rdm.dissector(buf, pinfo, root)
	local entry = RDM_TYPES[buf(0, 1):uint()]
	local flags = buf(2, 2):le_uint()
	local tree = root:add(rdm, buf(), "EFA RDM " .. entry.name)
	local r = reader(buf, tree, entry.header)
	local info = { entry.name }

	pinfo.cols.protocol = "weft"
	tree:add(f["weft_rdm.type"], buf(0, 1))
	tree:add(f["weft_rdm.version"], buf(1, 1))
	tree:add_le(f["weft_rdm.flags"], buf(2, 2))
	if buf:len() < entry.header then
		tree:add_proto_expert_info(truncated)
		return
	end
	for _, field in ipairs(entry.fields) do
		local range = buf(field[2], field[3])
		local value = field[3] == 8 and range:le_uint64() or range:le_uint()

		tree:add_le(f["weft_rdm." .. field[1]], range)
		if field[1] == "tag" then
			table.insert(info, "tag=0x" .. value:tohex():gsub("^0+(.)", "%1"))
		else
			table.insert(info, field[1] .. "=" .. tostring(value))
		end
	end
	if entry.connid and has(flags, RDM_CONNID) then
		tree:add_le(f["weft_rdm.connid"], buf(entry.connid, 4))
	end
	r:iovs(count_of(buf, entry, "rma_iov_count"), "Remote memory")
	if buf(0, 1):uint() == RDM_HANDSHAKE then
		handshake(r, buf, flags)
	elseif entry.request then
		optionals(r, buf, flags)
	elseif entry.connid_follows and has(flags, RDM_CONNID) then
		r:take("connid", 4, 4)
	end
	r:iovs(count_of(buf, entry, "read_iov_count"), "To be read")
	if r.bad then
		tree:add_proto_expert_info(truncated)
	elseif r.at < buf:len() then
		tree:add(f["weft_rdm.data"], buf(r.at))
		table.insert(info, (buf:len() - r.at) .. " bytes")
	end
	pinfo.cols.info:append(" | " .. table.concat(info, " "))
end

-- The payload of a send: a packet of the provider, or bytes of another program.
local function sent(buf, pinfo, tree, abbr)
	if is_rdm(buf) then
		rdm.dissector:call(buf:tvb(), pinfo, tree)
	elseif buf:len() > 0 then
		tree:add(f[abbr], buf)
	end
end

-- -- UDP --------------------------------------------------------------------

-- Bytes of the packet that begins here, nil if there is none. Where the kernel
-- cuts or joins datagrams (GSO, GRO), one of a capture holds several packets.
local function udp_length(buf)
	local len = buf:len()

	if len < 24 or buf(0, 1):uint() ~= UDP_MAGIC then
		return nil
	end
	local type, kind = buf(1, 1):uint(), buf(3, 1):uint()
	local need = 24
	if not UDP_TYPES[type] then
		return nil
	elseif type <= 4 then
		need = UDP_VERSIONS[kind] and 64
	elseif type == 7 then
		need = UDP_OPS[kind] and len >= 64 and
			64 + buf(36, 2):le_uint() +
			(has(buf(2, 1):uint(), UDP_DATA_PART) and 8 or 0)
	elseif type == 8 then
		need = 32 + 8 * kind
	elseif type == 11 then
		need = math.max(24, buf(16, 4):le_uint())
	end
	return need and need <= len and need or nil
end

local function add_all(buf, tree, proto, list)
	for _, entry in ipairs(list) do
		tree:add_le(f[proto .. entry[1]], buf(entry[2], entry[3]))
	end
end

local function udp_hello(buf, tree)
	tree:add(f["weft_udp.flags.crc"], buf(2, 1))
	tree:add(f["weft_udp.version"], buf(3, 1))
	add_all(buf, tree, "weft_udp.", {
		{ "src_cid", 16, 8 }, { "cookie", 24, 8 }, { "epoch", 32, 4 },
		{ "mtu", 36, 4 }, { "rwnd", 40, 4 }, { "ts", 44, 4 },
		{ "instance", 48, 8 },
	})
	return "version " .. buf(3, 1):uint()
end

local function udp_ack(buf, tree)
	tree:add(f["weft_udp.words"], buf(3, 1))
	add_all(buf, tree, "weft_udp.", {
		{ "ack", 16, 4 }, { "ack_ts", 20, 4 }, { "rwnd", 24, 4 },
		{ "dups", 28, 2 },
	})
	if buf:len() > 32 then
		tree:add(f["weft_udp.bitmap"], buf(32))
	end
	return "ack=" .. buf(16, 4):le_uint()
end

local function udp_note(buf, tree, type)
	if type == 9 then
		tree:add(f["weft_udp.status"], buf(3, 1))
	end
	add_all(buf, tree, "weft_udp.", { { "seq", 16, 4 }, { "ts", 20, 4 } })
	return "seq=" .. buf(16, 4):le_uint() .. (type == 9 and " " ..
		(STATUSES[buf(3, 1):uint()] or "?") or "")
end

local function udp_data(buf, pinfo, tree, root)
	local flags, op = buf(2, 1):uint(), buf(3, 1):uint()
	local at, part = 64, nil

	for _, name in ipairs({ "acks", "now", "imm", "late", "part" }) do
		tree:add(f["weft_udp.flags." .. name], buf(2, 1))
	end
	tree:add(f["weft_udp.op"], buf(3, 1))
	add_all(buf, tree, "weft_udp.", { { "seq", 16, 4 }, { "ts", 20, 4 } })
	if has(flags, UDP_DATA_ACKS) then
		add_all(buf, tree, "weft_udp.", {
			{ "ack", 24, 4 }, { "ack_ts", 28, 4 }, { "ack_tag", 38, 2 },
		})
	end
	add_all(buf, tree, "weft_udp.", {
		{ "dst_qpn", 32, 2 }, { "src_qpn", 34, 2 }, { "len", 36, 2 },
		{ "qkey", 40, 4 },
	})
	if has(flags, UDP_DATA_IMM) or op == 3 or op == 4 then
		tree:add_le(f["weft_udp.imm"], buf(44, 4))
	end
	if op >= 2 then
		add_all(buf, tree, "weft_udp.", {
			{ "addr", 48, 8 }, { "key", 56, 4 }, { "arg", 60, 4 },
		})
	end
	if has(flags, UDP_DATA_PART) and buf:len() >= 72 then
		add_all(buf, tree, "weft_udp.", {
			{ "part_off", 64, 2 }, { "part_total", 66, 2 },
		})
		part = buf(64, 2):le_uint()
		at = 72
	end
	pinfo.cols.info:append(string.format(" seq=%u %s %u bytes%s",
		buf(16, 4):le_uint(), UDP_OPS[op], buf(36, 2):le_uint(),
		part and string.format(" (part at %u of %u)", part,
			buf(66, 2):le_uint()) or ""))
	if at >= buf:len() then
		return
	elseif op == 1 and (part or 0) == 0 then
		sent(buf(at), pinfo, root, "weft_udp.payload")
	else
		tree:add(f["weft_udp.payload"], buf(at))
	end
end

local function udp_packet(buf, pinfo, root)
	local type = buf(1, 1):uint()
	local head = type == 7 and 64 or type == 8 and 32 or type <= 4 and 64 or 24
	local tree = root:add(udp, buf(0, head), "weft over UDP, " ..
		UDP_TYPES[type])

	pinfo.cols.info:append(UDP_TYPES[type])
	tree:add(f["weft_udp.magic"], buf(0, 1))
	tree:add(f["weft_udp.type"], buf(1, 1))
	tree:add(f["weft_udp.flags"], buf(2, 1))
	add_all(buf, tree, "weft_udp.", { { "crc", 4, 4 }, { "dst_cid", 8, 8 } })
	if type == 7 then
		udp_data(buf, pinfo, tree, root)
	elseif type == 8 then
		pinfo.cols.info:append(" " .. udp_ack(buf, tree))
	elseif type <= 4 then
		pinfo.cols.info:append(" " .. udp_hello(buf, tree))
	else
		pinfo.cols.info:append(" " .. udp_note(buf, tree, type))
	end
end

function udp.dissector(buf, pinfo, root)
	local at, len = 0, udp_length(buf(0))

	if not len then
		return 0
	end
	pinfo.cols.protocol = "weft"
	pinfo.cols.info = ""
	while len do
		if at > 0 then
			pinfo.cols.info:append("; ")
		end
		udp_packet(buf(at, len), pinfo, root)
		at = at + len
		len = at < buf:len() and udp_length(buf(at)) or nil
	end
	return at
end

udp:register_heuristic("udp", function(buf, pinfo, root)
	local len = udp_length(buf(0))

	if not len or (len < buf:len() and not udp_length(buf(len))) then
		return false
	end
	udp.dissector(buf, pinfo, root)
	pinfo.conversation = udp
	return true
end)

-- -- TCP --------------------------------------------------------------------

local HELLO_BYTES, HEAD_BYTES, RDMA_BYTES = 144, 32, 16

local function add_rail(buf, tree, at, name)
	local family, port = buf(at, 2):le_uint(), buf(at + 2, 2):le_uint()
	local text

	if family == 4 then
		text = tostring(buf(at + 4, 4):ipv4()) .. ":" .. port
	elseif family == 6 then
		text = "[" .. tostring(buf(at + 4, 16):ipv6()) .. "]:" .. port
	else
		return
	end
	tree:add(f["weft_tcp.hello.rail"], buf(at, 20), text,
		name .. ": " .. text)
end

local function tcp_hello(buf, pinfo, root)
	local word = TCP_WORDS[buf(5, 1):uint()] or "?"
	local channel = TCP_CHANNELS[buf(6, 1):uint()] or "?"
	local tree = root:add(tcp, buf(0, HELLO_BYTES), "weft over TCP, " .. word)

	add_all(buf, tree, "weft_tcp.hello.", {
		{ "magic", 0, 4 }, { "version", 4, 1 }, { "word", 5, 1 },
		{ "channel", 6, 1 }, { "insists", 7, 1 }, { "life", 8, 8 },
		{ "known", 16, 8 }, { "number", 24, 4 }, { "replaces", 28, 4 },
		{ "taken", 32, 4 }, { "port", 36, 2 }, { "rails", 38, 2 },
	})
	for i = 0, 2 do
		add_rail(buf, tree, 40 + 20 * i, "Address " .. (i + 2))
	end
	add_rail(buf, tree, 100, "From")
	add_rail(buf, tree, 120, "To")
	pinfo.cols.info:append(string.format("%s version %u, channel %s", word,
		buf(4, 1):uint(), channel))
end

local function tcp_frame(buf, pinfo, root, head)
	local kind, flags = buf(1, 1):uint(), buf(2, 1):uint()
	local len = buf(4, 4):le_uint()
	local tree = root:add(tcp, buf(0, head),
		"weft over TCP, " .. TCP_KINDS[kind])
	local info = TCP_KINDS[kind]

	tree:add(f["weft_tcp.magic"], buf(0, 1))
	tree:add(f["weft_tcp.kind"], buf(1, 1))
	local sub = tree:add(f["weft_tcp.flags"], buf(2, 1))
	for _, name in ipairs({ "imm", "user_key", "split" }) do
		sub:add(f["weft_tcp.flags." .. name], buf(2, 1))
	end
	if kind == 4 or kind == 9 then
		tree:add(f["weft_tcp.status"], buf(3, 1))
		info = info .. " " .. (STATUSES[buf(3, 1):uint()] or "?")
	elseif kind == 5 or kind == 6 then
		tree:add(f["weft_tcp.tries"], buf(3, 1))
	end
	add_all(buf, tree, "weft_tcp.", {
		{ "len", 4, 4 }, { "ack_small", 8, 4 }, { "ack_bulk", 12, 4 },
	})
	if kind >= 4 then
		add_all(buf, tree, "weft_tcp.", {
			{ "dst_qpn", 16, 2 }, { "src_qpn", 18, 2 }, { "qkey", 20, 4 },
			{ "imm", 24, 4 }, { "arg", 28, 4 },
		})
	end
	if head > HEAD_BYTES then
		add_all(buf, tree, "weft_tcp.", {
			{ "addr", 32, 8 }, { "key", 40, 4 }, { "id", 44, 4 },
		})
	end
	if kind == 7 then
		info = info .. " " .. buf(28, 4):le_uint() .. " bytes"
	elseif len > 0 then
		info = info .. " " .. len .. " bytes"
	end
	pinfo.cols.info:append(info)
	if len == 0 then
		return
	elseif kind ~= 5 then
		tree:add(f["weft_tcp.payload"], buf(head, len))
	elseif has(flags, TCP_SPLIT) then
		-- Headers, some bytes that mean nothing, and the message.
		local first = math.min(buf(28, 4):le_uint(), len)
		local at = math.ceil((head + first) / TCP_SPLIT_ALIGN) *
			TCP_SPLIT_ALIGN
		sent(buf(head, first), pinfo, root, "weft_tcp.payload")
		if at < head + len then
			tree:add(f["weft_tcp.payload"], buf(at, head + len - at))
			pinfo.cols.info:append(" " .. (head + len - at) .. " bytes")
		end
	else
		sent(buf(head, len), pinfo, root, "weft_tcp.payload")
	end
end

-- Bytes of the hello or frame that begins here: nil if there is none, 0 if more
-- bytes are needed to tell.
local function tcp_length(buf)
	if buf:len() < 4 then
		return 0
	end
	if buf(0, 4):le_uint() == TCP_HELLO_MAGIC then
		return HELLO_BYTES, HELLO_BYTES
	end
	if buf(0, 1):uint() ~= TCP_MAGIC or not TCP_KINDS[buf(1, 1):uint()] then
		return nil
	end
	local head = buf(1, 1):uint() >= 6 and HEAD_BYTES + RDMA_BYTES or HEAD_BYTES
	if buf:len() < 8 then
		return 0
	end
	return head + buf(4, 4):le_uint(), head
end

function tcp.dissector(buf, pinfo, root)
	local at, total = 0, buf:len()

	pinfo.cols.protocol = "weft"
	pinfo.cols.info = ""
	while at < total do
		local rest = buf(at)
		local len, head = tcp_length(rest)

		if len ~= 0 and (len or 0) <= rest:len() then
			-- Also after one that began in an earlier segment.
			if pinfo.private["weft_tcp"] then
				pinfo.cols.info:append("; ")
			end
			pinfo.private["weft_tcp"] = "1"
		end
		if not len then
			-- In the middle of something.
			pinfo.cols.info:append("continuation")
			root:add(tcp, rest, "weft over TCP, continuation")
			return total
		elseif len == 0 or len > rest:len() then
			pinfo.desegment_offset = at
			pinfo.desegment_len = len == 0 and
				DESEGMENT_ONE_MORE_SEGMENT or len - rest:len()
			return total
		elseif len == HELLO_BYTES and rest(0, 1):uint() ~= TCP_MAGIC then
			tcp_hello(rest, pinfo, root)
		else
			tcp_frame(rest, pinfo, root, head)
		end
		at = at + len
	end
	return total
end

-- A stream begins with a hello. In the middle of one, a frame is recognized by
-- its first bytes.
tcp:register_heuristic("tcp", function(buf, pinfo, root)
	local hello = buf:len() >= 8 and buf(0, 4):le_uint() == TCP_HELLO_MAGIC and
		TCP_VERSIONS[buf(4, 1):uint()]
	local frame = buf:len() >= HEAD_BYTES and buf(0, 1):uint() == TCP_MAGIC and
		TCP_KINDS[buf(1, 1):uint()] and buf(2, 1):uint() < 8 and
		buf(4, 4):le_uint() < 0x40000000

	if not hello and not frame then
		return false
	end
	tcp.dissector(buf, pinfo, root)
	pinfo.conversation = tcp
	return true
end)

DissectorTable.get("udp.port"):add_for_decode_as(udp)
DissectorTable.get("tcp.port"):add_for_decode_as(tcp)
