/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: counters, as QUERY_COUNTERS returns them.
 *
 * X(name, group, user's name, text). Groups: RDMA (rdma statistic), ETH (netdev
 * statistics), PCIE (what an analyser on the link would count), DEV (misuse of
 * the device interface). Numbers follow the order here; new ones are appended.
 */
#ifndef SKUA_HW_COUNTERS_H
#define SKUA_HW_COUNTERS_H

#include <linux/types.h>
#include <skua/hw/icm.h>

#define SKUA_COUNTER_TABLE(X)								\
	X(RDMA_TX_PKTS,		RDMA, tx_pkts,		"RoCE packets sent")			\
	X(RDMA_TX_BYTES,	RDMA, tx_bytes,		"bytes of them")			\
	X(RDMA_RX_PKTS,		RDMA, rx_pkts,		"RoCE packets received")		\
	X(RDMA_RX_BYTES,	RDMA, rx_bytes,		"bytes of them")			\
	X(TX_SEND,		RDMA, tx_send_msgs,	"SEND messages started")		\
	X(TX_WRITE,		RDMA, tx_write_msgs,	"WRITE messages started")		\
	X(TX_READ,		RDMA, tx_read_reqs,	"READ requests sent")			\
	X(TX_ATOMIC,		RDMA, tx_atomic_reqs,	"atomic requests sent")			\
	X(RX_WRITE,		RDMA, rx_write_requests, "WRITE messages served")		\
	X(RX_READ,		RDMA, rx_read_requests,	"READ requests served")			\
	X(RX_ATOMIC,		RDMA, rx_atomic_requests, "atomic requests served")		\
	X(RX_SEND,		RDMA, rx_send_msgs,	"SEND messages served")			\
	X(OUT_OF_BUFFER,	RDMA, out_of_buffer,	"no receive WQE: RNR sent or dropped")	\
	X(OUT_OF_SEQUENCE,	RDMA, out_of_sequence,	"request PSN beyond the expected")	\
	X(DUPLICATE_REQUEST,	RDMA, duplicate_request, "request PSN before the expected")	\
	X(PACKET_SEQ_ERR,	RDMA, packet_seq_err,	"sequence NAKs received")		\
	X(RNR_NAK_RETRY_ERR,	RDMA, rnr_nak_retry_err, "RNR NAKs received")			\
	X(IMPLIED_NAK_SEQ_ERR,	RDMA, implied_nak_seq_err, "responses that implied a loss")	\
	X(LOCAL_ACK_TIMEOUT_ERR, RDMA, local_ack_timeout_err, "ack timer expired")		\
	X(RETRY_EXCEEDED,	RDMA, req_transport_retries_exceeded, "retry count exhausted")	\
	X(RNR_RETRY_EXCEEDED,	RDMA, req_rnr_retries_exceeded, "RNR retry count exhausted")	\
	X(REQ_REMOTE_INV,	RDMA, req_remote_invalid_request, "invalid request NAKs received") \
	X(REQ_REMOTE_ACCESS,	RDMA, req_remote_access_errors, "remote access NAKs received")	\
	X(REQ_REMOTE_OP,	RDMA, req_remote_op_errors, "remote operation NAKs received")	\
	X(REQ_CQE_ERROR,	RDMA, req_cqe_error,	"send completions in error")		\
	X(REQ_CQE_FLUSH,	RDMA, req_cqe_flush_error, "send completions flushed")		\
	X(RESP_CQE_ERROR,	RDMA, resp_cqe_error,	"receive completions in error")		\
	X(RESP_CQE_FLUSH,	RDMA, resp_cqe_flush_error, "receive completions flushed")	\
	X(RESP_LOCAL_LEN,	RDMA, resp_local_length_error, "message longer than the receive") \
	X(RESP_REMOTE_ACCESS,	RDMA, resp_remote_access_errors, "access violations met")	\
	X(TX_RETRANS_PKTS,	RDMA, tx_retrans_pkts,	"packets sent again")			\
	X(TX_ACK,		RDMA, tx_ack,		"acknowledgments sent")		\
	X(TX_NAK,		RDMA, tx_nak,		"NAKs sent, RNR among them")		\
	X(TX_RNR,		RDMA, tx_rnr_nak,	"RNR NAKs sent")			\
	X(NP_CNP_SENT,		RDMA, np_cnp_sent,	"CNPs sent")				\
	X(NP_ECN_MARKED,	RDMA, np_ecn_marked_roce_packets, "ECN-marked packets received") \
	X(RP_CNP_HANDLED,	RDMA, rp_cnp_handled,	"CNPs received that slowed a QP down")	\
	X(RX_ICRC,		RDMA, rx_icrc_encapsulated, "packets of wrong ICRC dropped")	\
	X(RX_MALFORMED,		RDMA, rx_malformed,	"malformed RoCE packets dropped")	\
	X(RX_NO_QP,		RDMA, rx_no_qp,		"packets for no QP dropped")		\
	X(RX_BAD_STATE,		RDMA, rx_bad_state,	"packets dropped in the QP's state")	\
	X(RX_BAD_PEER,		RDMA, rx_bad_peer,	"packets from a stranger dropped") \
	X(RX_BAD_PKEY,		RDMA, rx_bad_pkey,	"P_Key violations: dropped")	\
	X(RX_BAD_QKEY,		RDMA, rx_bad_qkey,	"Q_Key violations: dropped")	\
	X(RX_BAD_RESP,		RDMA, rx_bad_resp,	"responses that fit no request dropped") \
	X(LOOPBACK_PKTS,	RDMA, loopback_pkts,	"frames turned round in the device")	\
	X(WQE_FETCH,		RDMA, wqe_fetch,	"send WQE fetches")			\
	X(WQE_REFETCH,		RDMA, wqe_refetch,	"WQEs fetched again") \
	X(INFLIGHT_MISS,	RDMA, inflight_miss,	"in-flight cache misses")		\
	X(ETH_TX_PKTS,		ETH, eth_tx_pkts,	"frames sent")				\
	X(ETH_TX_BYTES,		ETH, eth_tx_bytes,	"bytes of them")			\
	X(ETH_TX_ERR,		ETH, eth_tx_errors,	"frames refused")			\
	X(ETH_RX_PKTS,		ETH, eth_rx_pkts,	"frames received")			\
	X(ETH_RX_BYTES,		ETH, eth_rx_bytes,	"bytes of them")			\
	X(ETH_RX_MCAST,		ETH, eth_rx_multicast,	"multicast frames received")		\
	X(ETH_RX_NO_BUF,	ETH, eth_rx_no_buffer,	"frames dropped: no receive WQE")	\
	X(ETH_RX_TOO_LONG,	ETH, eth_rx_too_long,	"frames dropped: longer than allowed") \
	X(ETH_RX_FILTERED,	ETH, eth_rx_filtered,	"frames nobody wanted")			\
	X(ETH_RX_CSUM_ERR,	ETH, eth_rx_csum_errors, "frames of wrong checksum passed on")	\
	X(TLP_MWR_TX,		PCIE, tlp_mwr_tx,	"memory writes by the device")		\
	X(TLP_MWR_TX_BYTES,	PCIE, tlp_mwr_tx_bytes,	"bytes of them")			\
	X(TLP_MRD_TX,		PCIE, tlp_mrd_tx,	"memory reads by the device")		\
	X(TLP_MRD_TX_BYTES,	PCIE, tlp_mrd_tx_bytes,	"bytes asked for")			\
	X(TLP_CPLD_RX,		PCIE, tlp_cpld_rx,	"completions with data for them")	\
	X(TLP_MWR_RX,		PCIE, tlp_mwr_rx,	"memory writes to the device (MMIO)")	\
	X(TLP_MWR_RX_BYTES,	PCIE, tlp_mwr_rx_bytes,	"bytes of them")			\
	X(TLP_MRD_RX,		PCIE, tlp_mrd_rx,	"memory reads of the device (MMIO)")	\
	X(TLP_MSIX,		PCIE, tlp_msix,		"MSI-X messages (in tlp_mwr_tx too)")	\
	X(DMA_ERR,		PCIE, dma_errors,	"accesses to addresses not mapped")	\
	X(SQ_DB,		DEV, sq_doorbells,	"send doorbells taken")			\
	X(CQ_DB,		DEV, cq_doorbells,	"CQ arms taken")			\
	X(BAD_DB,		DEV, bad_doorbells,	"doorbells ignored: width, offset, latch") \
	X(BAD_DB_QP,		DEV, bad_doorbell_queue, "doorbells ignored: no such queue")	\
	X(BAD_DB_UAR,		DEV, bad_doorbell_uar,	"doorbells ignored: wrong UAR page") \
	X(BAD_DB_INDEX,		DEV, bad_doorbell_index, "doorbells ignored: wrong index") \
	X(BAD_MMIO,		DEV, bad_mmio,		"register accesses ignored")		\
	X(BAD_CMD_DB,		DEV, bad_cmd_doorbells,	"command doorbells ignored")		\
	X(CMDS,			DEV, commands,		"commands executed")			\
	X(CMD_ERRS,		DEV, command_errors,	"commands refused")			\
	X(EQ_FULL,		DEV, eq_full,		"events that had to wait for room")	\
	X(CQ_OVERRUN,		DEV, cq_overrun,	"completion queues overrun")		\
	X(PAGE_FAULTS,		RDMA, page_faults,	"page faults reported")			\
	X(PAGE_FAULT_RESUMED,	RDMA, page_faults_resumed, "page faults settled by software")	\
	X(PAGE_FAULT_ERR,	RDMA, page_faults_failed, "accesses failed for want of a page") \
	X(PAGE_FAULT_RNR,	RDMA, page_faults_rnr,	"RNR NAKs sent for want of a page") \
	X(TX_FLUSH,		RDMA, tx_flush_reqs,	"FLUSH requests sent")			\
	X(TX_ATOMIC_WRITE,	RDMA, tx_atomic_write_reqs, "ATOMIC WRITE requests sent")	\
	X(RX_FLUSH,		RDMA, rx_flush_requests, "FLUSH requests served")		\
	X(RX_ATOMIC_WRITE,	RDMA, rx_atomic_write_requests, "ATOMIC WRITE requests served")	\
	X(WQE_PUSH,		RDMA, wqe_push,		"send WQEs taken from push slots")	\
	X(LOOPBACK_DROP,	RDMA, loopback_drops,	"frames to turn round dropped: no room") \
	X(SQ_RECORD,		DEV, sq_records,	"send indices found in records")	\
	X(SQ_EVENT,		DEV, sq_events,		"event indices of send queues written") \
	X(CQE_SCATTER,		RDMA, cqe_scatter,	"payloads that came in the CQE") \
	X(RX_EARLY,		RDMA, rx_early_pkts,	"packets taken before their turn")	\
	X(RX_EARLY_DROP,	RDMA, rx_early_dropped,	"packets before their turn dropped")	\
	X(TX_SACK,		RDMA, tx_sack,		"acknowledgments with a bitmap sent")	\
	X(RX_SACK,		RDMA, rx_sack,		"acknowledgments with a bitmap received") \
	X(TX_PROBE,		RDMA, tx_probes,	"packets sent again to learn what came") \
	X(RP_CNP_IGNORED,	RDMA, rp_cnp_ignored,	"CNPs received that changed nothing") \
	X(RECOVERY_EVENT,	RDMA, recovery_events,	"loss reports to the driver")	\
	X(RECOVERY_CMD,		RDMA, recovery_commands, "commands against loss executed") \
	X(RECOVERY_STALE,	RDMA, recovery_stale,	"such commands without effect")		\
	X(RECOVERY_FALLBACK,	RDMA, recovery_fallbacks, "times gone back without the driver") \
	X(ETH_RX_GRO_PKTS,	ETH, eth_rx_gro_pkts,	"frames made by merging others")	\
	X(ETH_RX_GRO_SEGS,	ETH, eth_rx_gro_segs,	"frames that these were made of")	\
	X(PI_BLOCKS,		RDMA, pi_blocks,	"blocks of integrity regions checked")	\
	X(PI_ERRORS,		RDMA, pi_errors,	"checks of these that failed")		\
	X(TX_PRIO0_BYTES,	ETH, tx_prio0_bytes,	"bytes sent with priority 0, RoCE too")	\
	X(TX_PRIO1_BYTES,	ETH, tx_prio1_bytes,	"bytes sent with priority 1, RoCE too")	\
	X(TX_PRIO2_BYTES,	ETH, tx_prio2_bytes,	"bytes sent with priority 2, RoCE too")	\
	X(TX_PRIO3_BYTES,	ETH, tx_prio3_bytes,	"bytes sent with priority 3, RoCE too")	\
	X(TX_PRIO4_BYTES,	ETH, tx_prio4_bytes,	"bytes sent with priority 4, RoCE too")	\
	X(TX_PRIO5_BYTES,	ETH, tx_prio5_bytes,	"bytes sent with priority 5, RoCE too")	\
	X(TX_PRIO6_BYTES,	ETH, tx_prio6_bytes,	"bytes sent with priority 6, RoCE too")	\
	X(TX_PRIO7_BYTES,	ETH, tx_prio7_bytes,	"bytes sent with priority 7, RoCE too")

enum skua_counter {
#define X(name, group, user, text) SKUA_CNT_##name,
	SKUA_COUNTER_TABLE(X)
#undef X
	SKUA_CNT_COUNT
};

/*
 * What a counter set keeps (SKUA_CAP_COUNTER_SET): X(name), a counter of the table
 * above. A set counts what befalls the QPs bound to it, besides the device, which
 * counts it too; of RAW_ETH QPs the packets are frames. A set that a steering rule
 * names counts the frames and bytes that the rule took as received packets.
 * Numbers follow the order here; new ones are appended.
 */
#define SKUA_COUNTER_SET_TABLE(X)						\
	X(RDMA_TX_PKTS) X(RDMA_TX_BYTES) X(RDMA_RX_PKTS) X(RDMA_RX_BYTES)	\
	X(TX_SEND) X(TX_WRITE) X(TX_READ) X(TX_ATOMIC) X(RX_WRITE) X(RX_READ)	\
	X(RX_ATOMIC) X(RX_SEND) X(OUT_OF_BUFFER) X(OUT_OF_SEQUENCE)		\
	X(DUPLICATE_REQUEST) X(PACKET_SEQ_ERR) X(RNR_NAK_RETRY_ERR)		\
	X(IMPLIED_NAK_SEQ_ERR) X(LOCAL_ACK_TIMEOUT_ERR) X(REQ_REMOTE_INV)	\
	X(REQ_REMOTE_ACCESS) X(REQ_REMOTE_OP) X(REQ_CQE_ERROR) X(REQ_CQE_FLUSH)	\
	X(RESP_CQE_ERROR) X(RESP_CQE_FLUSH) X(RESP_LOCAL_LEN)			\
	X(RESP_REMOTE_ACCESS) X(TX_RETRANS_PKTS) X(NP_ECN_MARKED)		\
	X(RETRY_EXCEEDED) X(RNR_RETRY_EXCEEDED)

enum skua_set_counter {
#define X(name) SKUA_SET_##name,
	SKUA_COUNTER_SET_TABLE(X)
#undef X
	SKUA_SET_COUNT
};

/* Values that a counter set has room for. */
#define SKUA_SET_MAX			32

/**
 * struct skua_counter_set - what some QPs or steering rules have done
 * @value: state: by enum skua_set_counter
 *
 * Sets are numbered from 1: 0 says that there is none, and is the device's own in
 * QUERY_COUNTERS.
 */
struct skua_counter_set {
	__le64 value[SKUA_SET_MAX];
};

_Static_assert(sizeof(struct skua_counter_set) == SKUA_ICM_CNT_SIZE, "skua_counter_set");

enum skua_counter_group {
	SKUA_CNT_GROUP_RDMA,
	SKUA_CNT_GROUP_ETH,
	SKUA_CNT_GROUP_PCIE,
	SKUA_CNT_GROUP_DEV,
};

#endif /* SKUA_HW_COUNTERS_H */
