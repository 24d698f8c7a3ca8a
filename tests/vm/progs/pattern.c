// SPDX-License-Identifier: GPL-2.0
/*
 * skua-pattern: move data with every opcode, size, MTU, alignment and number of
 * elements, and look at every byte.
 *
 * The payload of a message is a hash of (seed, message, offset); all around it
 * are guard bytes that must stay. Each area is checked whole after each batch.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

#define GUARD	0xa7

/* What the sides say to each other at the end of a batch. */
#define DONE	's'
#define GAVE_UP	'g'

struct side {
	struct dev dev;
	struct ibv_comp_channel *ch;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp[MAX_MTUS];
	struct ibv_mr *mr;
	uint8_t *give, *get;
	uint64_t peer_give, peer_get;
	uint32_t peer_rkey;
	struct opts o;
	struct caps c;
	struct plan *plan;
	bool client;
	bool is_rxe;
	bool no_fence;
	bool gave_up;		/* this batch is soft-RoCE's failure */
	unsigned int excused;	/* batches that were */
	int fd;
};

/* What the sides tell each other before and after they know their QPs. */
struct hello {
	uint32_t magic;
	uint32_t pad;
	struct opts o;
	struct caps c;
};

struct meet {
	struct addr qp[MAX_MTUS];
	uint32_t rkey;
	uint64_t give, get;
};

#define MAGIC	0x534b5031

/* --- data ------------------------------------------------------------------------- */

static uint8_t pattern_byte(uint64_t key, uint32_t at)
{
	return mix(key + at / 8) >> (at % 8 * 8);
}

static uint64_t msg_key(const struct side *s, const struct batch *b, unsigned int i)
{
	return mix(s->o.seed) ^ mix((uint64_t)b->index << 32 | i);
}

/* Walk a list: fill it with the message from its start. */
static void fill(uint8_t *area, const struct piece *p, unsigned int n, uint64_t key)
{
	uint32_t at = 0, i;
	unsigned int k;

	for (k = 0; k < n; k++) {
		uint8_t *d = area + p[k].off;

		for (i = 0; i < p[k].len; ) {
			uint64_t w = mix(key + at / 8) >> (at % 8 * 8);
			uint32_t run = 8 - at % 8;

			if (run > p[k].len - i)
				run = p[k].len - i;
			memcpy(d + i, &w, run);
			i += run;
			at += run;
		}
	}
}

static void describe(const struct side *s, const struct batch *b, unsigned int i)
{
	const struct msg *m = &b->msg[i];

	fprintf(stderr, "  seed %llu batch %u message %u/%u: %s of %u bytes, path MTU %u, %u:%u elements%s%s%s, %s requests, %s\n",
		(unsigned long long)s->o.seed, b->index, i, b->n, op_name[m->op], m->size,
		mtu_bytes(b->mtu), m->n_mine, m->n_theirs, m->use_inline ? ", inline" : "",
		m->signaled ? ", signaled" : "", m->fence ? ", fence" : "",
		b->from_client ? "client" : "server", b->events ? "events" : "polling");
	fprintf(stderr, "  again with: --seed %llu --only %u and the same other options\n",
		(unsigned long long)s->o.seed, b->index);
}

static void bad_byte(const struct side *s, const struct batch *b, unsigned int i,
		     const uint8_t *area, uint32_t off, uint8_t want, const char *what)
{
	fprintf(stderr, "%s: %s wrong at area offset %u: is %02x, should be %02x\n",
		s->client ? "client" : "server", what, off, area[off], want);
	describe(s, b, i);
	exit(1);
}

static void check_guard(const struct side *s, const struct batch *b, unsigned int i,
			const uint8_t *area, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		if (area[from] != GUARD)
			bad_byte(s, b, i, area, from, GUARD, "guard byte");
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Everything in the area up to its used end: payloads and what is between. */
static void check_area(const struct side *s, const struct batch *b, const uint8_t *area, bool mine)
{
	uint32_t pos = 0;
	unsigned int i, k;

	for (i = 0; i < b->n; i++) {
		const struct msg *m = &b->msg[i];
		const struct piece *p = mine ? m->mine : m->theirs;
		unsigned int n = mine ? m->n_mine : m->n_theirs;
		bool filled = mine ? m->op == OP_READ : m->op != OP_READ;
		uint64_t key = msg_key(s, b, i);
		uint32_t at = 0, j;

		for (k = 0; k < n; k++) {
			uint32_t len = filled ? min32(p[k].len, m->size - at) : 0;

			check_guard(s, b, i, area, pos, p[k].off);
			for (j = 0; j < len; j++, at++) {
				uint8_t want = pattern_byte(key, at);

				if (area[p[k].off + j] != want)
					bad_byte(s, b, i, area, p[k].off + j, want, "payload");
			}
			pos = p[k].off + len;
		}
	}
	check_guard(s, b, b->n - 1, area, pos, (mine ? b->used_mine : b->used_theirs) + 64);
}

/* --- work requests ------------------------------------------------------------------ */

static int sges(const struct side *s, struct ibv_sge *sg, const uint8_t *area,
		const struct piece *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		sg[i] = (struct ibv_sge){
			.addr = (uintptr_t)area + p[i].off,
			.length = p[i].len,
			.lkey = s->mr->lkey,
		};
	return n;
}

static void post_recvs(struct side *s, const struct batch *b, struct ibv_qp *qp)
{
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sg[MAX_PIECES];
	unsigned int i;
	int err;

	for (i = 0; i < b->n; i++) {
		const struct msg *m = &b->msg[i];

		if (!op_takes_recv(m->op))
			continue;
		wr = (struct ibv_recv_wr){ .wr_id = i, .sg_list = sg };
		/* WRITE with immediate uses up a receive, and puts nothing in it. */
		if (m->op != OP_WRITE_IMM)
			wr.num_sge = sges(s, sg, s->get, m->theirs, m->n_theirs);
		err = ibv_post_recv(qp, &wr, &bad);
		if (err) {
			describe(s, b, i);
			die("post_recv: %s", strerror(err));
		}
	}
}

static enum ibv_wr_opcode wr_op(enum op op)
{
	static const enum ibv_wr_opcode t[OPS] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
	};

	return t[op];
}

/* Some at a time, as lists: one call may post several. */
static void post_sends(struct side *s, const struct batch *b, struct ibv_qp *qp)
{
	static struct ibv_sge sg[MAX_MSGS][MAX_PIECES];
	static struct ibv_send_wr wr[MAX_MSGS];
	struct rng rng = rng_make(s->o.seed, 0x40000 + b->index);
	struct ibv_send_wr *bad;
	unsigned int i;
	int err;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < b->n; i++) {
		const struct msg *m = &b->msg[i];
		const uint8_t *area = m->op == OP_READ ? s->get : s->give;

		wr[i].wr_id = i;
		wr[i].sg_list = sg[i];
		wr[i].num_sge = sges(s, sg[i], area, m->mine, m->n_mine);
		wr[i].opcode = wr_op(m->op);
		wr[i].imm_data = htonl(m->id);
		wr[i].send_flags = (m->signaled ? IBV_SEND_SIGNALED : 0) |
				   (m->use_inline ? IBV_SEND_INLINE : 0) |
				   (m->fence && !s->no_fence ? IBV_SEND_FENCE : 0);
		wr[i].wr.rdma.rkey = s->peer_rkey;
		wr[i].wr.rdma.remote_addr = (m->op == OP_READ ? s->peer_give : s->peer_get) +
					    (m->n_theirs ? m->theirs[0].off : 0);
		if (i + 1 < b->n && rng_below(&rng, 2))
			wr[i].next = &wr[i + 1];
	}
	for (i = 0; i < b->n; i++) {
		if (i && wr[i - 1].next)
			continue;
		err = ibv_post_send(qp, &wr[i], &bad);
		if (err) {
			describe(s, b, bad->wr_id);
			die("post_send: %s", strerror(err));
		}
	}
}

/* --- completions ---------------------------------------------------------------------- */

/* Packets that soft-RoCE has sent. */
static long long rxe_sent(struct side *s)
{
	char path[160];
	long long v = -1;
	FILE *f;

	/* A network namespace has a sysfs of its own, without the device: see init's. */
	snprintf(path, sizeof(path),
		 "/proc/1/root/sys/class/infiniband/%s/ports/1/hw_counters/sent_pkts",
		 ibv_get_device_name(s->dev.ctx->device));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lld", &v) != 1)
		die("%s: %m", path);
	fclose(f);
	return v;
}

/*
 * Wait for a completion, in short pieces. What ends the wait before: the peer has
 * given up the batch; or a soft-RoCE with a request outstanding has not sent one
 * packet for so long that its ack timer must have expired many times. Whatever
 * it was told or not told, it has to send again or to fail: that is its fault
 * alone.
 */
#define SILENCE	3

static bool wait_wc(struct side *s, const struct batch *b, struct ibv_cq *cq, struct ibv_wc *wc)
{
	bool watch = s->is_rxe && b->from_client == s->client && s->o.ack_timeout &&
		     s->o.ack_timeout < 17;
	double end = now() + s->o.timeout, quiet = now();
	long long sent = watch ? rxe_sent(s) : 0;

	do {
		long long more;

		if (b->events ? wait_one(s->ch, cq, wc, 1) : poll_one(cq, wc, 1))
			return true;
		if (tcp_peek(s->fd) == GAVE_UP)
			s->gave_up = true;
		more = watch ? rxe_sent(s) : 0;
		if (more != sent)
			quiet = now();
		sent = more;
		if (watch && now() > quiet + SILENCE)
			s->gave_up = true;
	} while (!s->gave_up && now() < end);
	return false;
}

/* False: the batch ends here, by no fault of ours. */
static bool next_wc(struct side *s, const struct batch *b, struct ibv_cq *cq, struct ibv_wc *wc,
		    unsigned int expect)
{
	bool got = wait_wc(s, b, cq, wc);

	if (s->gave_up)
		return false;
	if (!got) {
		describe(s, b, expect);
		die("%s: no completion within %d s", s->client ? "client" : "server",
		    s->o.timeout);
	}
	/*
	 * The first request that fails has a status of its own. soft-RoCE loses
	 * that of errors which it finds itself, when it goes back.
	 */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && s->is_rxe && b->from_client == s->client) {
		s->gave_up = true;
		return false;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		describe(s, b, wc->wr_id < b->n ? wc->wr_id : expect);
		die("%s: completion of message %llu: %s (vendor 0x%x)",
		    s->client ? "client" : "server", (unsigned long long)wc->wr_id,
		    ibv_wc_status_str(wc->status), wc->vendor_err);
	}
	if (wc->wr_id != expect) {
		describe(s, b, expect);
		die("completion of message %llu instead of %u", (unsigned long long)wc->wr_id,
		    expect);
	}
	return true;
}

static void reap_sends(struct side *s, const struct batch *b, struct ibv_qp *qp)
{
	static const enum ibv_wc_opcode want[OPS] = {
		IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
	};
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < b->n; i++) {
		if (!b->msg[i].signaled)
			continue;
		if (!next_wc(s, b, s->scq, &wc, i))
			return;
		if (wc.opcode != want[b->msg[i].op] || wc.qp_num != qp->qp_num) {
			describe(s, b, i);
			die("send completion with opcode %u, QP %06x", wc.opcode, wc.qp_num);
		}
	}
}

static void reap_recvs(struct side *s, const struct batch *b, struct ibv_qp *qp)
{
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < b->n; i++) {
		const struct msg *m = &b->msg[i];
		bool imm = m->op == OP_SEND_IMM || m->op == OP_WRITE_IMM;

		if (!op_takes_recv(m->op))
			continue;
		if (!next_wc(s, b, s->rcq, &wc, i))
			return;
		if (wc.opcode != (m->op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
		    wc.qp_num != qp->qp_num || wc.byte_len != m->size ||
		    !!(wc.wc_flags & IBV_WC_WITH_IMM) != imm ||
		    (imm && ntohl(wc.imm_data) != m->id)) {
			describe(s, b, i);
			die("receive completion: opcode %u, QP %06x, %u bytes, flags %x, immediate %08x; sent %08x",
			    wc.opcode, wc.qp_num, wc.byte_len, wc.wc_flags, ntohl(wc.imm_data),
			    m->id);
		}
	}
}

/* --- a batch --------------------------------------------------------------------------- */

/* Payload where it is given, guards everywhere else. */
static void prepare(struct side *s, const struct batch *b, bool requester)
{
	uint32_t used = (requester ? b->used_mine : b->used_theirs) + 64;
	unsigned int i;

	memset(s->give, GUARD, used);
	memset(s->get, GUARD, used);
	for (i = 0; i < b->n; i++) {
		const struct msg *m = &b->msg[i];

		if (requester && m->op != OP_READ)
			fill(s->give, m->mine, m->n_mine, msg_key(s, b, i));
		else if (!requester && m->op == OP_READ)
			fill(s->give, m->theirs, m->n_theirs, msg_key(s, b, i));
	}
}

/* False: it was given up. */
static bool run_batch(struct side *s, const struct batch *b)
{
	bool requester = b->from_client == s->client;
	struct ibv_qp *qp = s->qp[b->mtu - IBV_MTU_256];

	s->gave_up = false;
	prepare(s, b, requester);
	if (!requester)
		post_recvs(s, b, qp);
	tcp_sync(s->fd);
	if (requester) {
		post_sends(s, b, qp);
		reap_sends(s, b, qp);
	} else {
		reap_recvs(s, b, qp);
	}
	/* The last completion says that the responder has it all. */
	if (tcp_meet(s->fd, s->gave_up ? GAVE_UP : DONE) == GAVE_UP || s->gave_up)
		return false;
	if (s->o.spoil == (int32_t)b->index)
		s->get[(requester ? b->used_mine : b->used_theirs) / 2] ^= 0x10;
	check_area(s, b, s->get, requester);
	return true;
}

static void connect_qps(struct side *s);
static void destroy_qps(struct side *s);

/* New QPs for a batch that was given up; what the old ones left is forgotten. */
static void begin_anew(struct side *s, const struct batch *b, unsigned int batches)
{
	struct ibv_wc wc;

	if (++s->excused > 2 + batches / 10) {
		describe(s, b, b->n - 1);
		die("soft-RoCE has failed %u times", s->excused);
	}
	destroy_qps(s);
	while (ibv_poll_cq(s->scq, 1, &wc) > 0 || ibv_poll_cq(s->rcq, 1, &wc) > 0)
		;
	connect_qps(s);
}

static void run_all(struct side *s)
{
	static struct batch b;
	unsigned int i, n = plan_batches(s->plan), msgs = 0;
	uint64_t bytes = 0;
	double start = now();
	unsigned int k;

	for (i = 0; i < n; i++) {
		if (s->o.only >= 0 && (unsigned int)s->o.only != i)
			continue;
		plan_batch(s->plan, i, &b);
		if (s->o.verbose)
			fprintf(stderr, "batch %u/%u: %u messages, first %s %u\n", i, n, b.n,
				op_name[b.msg[0].op], b.msg[0].size);
		while (!run_batch(s, &b))
			begin_anew(s, &b, n);
		msgs += b.n;
		for (k = 0; k < b.n; k++)
			bytes += b.msg[k].size;
	}
	tcp_sync(s->fd);
	if (s->client)
		printf("ok %u messages, %llu bytes verified in %.1f s, %u batches again since soft-RoCE failed (seed %llu, MTU to %u, %u elements, %u inline)\n",
		       msgs, (unsigned long long)bytes, now() - start, s->excused,
		       (unsigned long long)s->o.seed, mtu_bytes(s->c.mtu), s->c.max_sge,
		       s->c.max_inline);
}

/* --- set-up ----------------------------------------------------------------------------- */

static struct ibv_qp *make_qp(struct side *s, uint32_t sge, uint32_t inl)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = MAX_MSGS,
			.max_recv_wr = MAX_MSGS,
			.max_send_sge = sge,
			.max_recv_sge = sge,
			.max_inline_data = inl,
		},
	};

	return ibv_create_qp(s->dev.pd, &attr);
}

/* The most inline data that a QP may have, by trial. */
static uint32_t probe_inline(struct side *s, uint32_t sge)
{
	uint32_t n;

	for (n = 512; n; n /= 2) {
		struct ibv_qp *qp = make_qp(s, sge, n);

		if (qp) {
			ibv_destroy_qp(qp);
			return n;
		}
	}
	return 0;
}

static void open_side(struct side *s, const char *dev, int gid_index)
{
	size_t len = 2 * AREA_SIZE;

	dev_open(&s->dev, dev, gid_index);
	s->is_rxe = !strncmp(ibv_get_device_name(s->dev.ctx->device), "rxe", 3);
	s->ch = ibv_create_comp_channel(s->dev.ctx);
	if (!s->ch)
		die("create_comp_channel: %m");
	s->scq = ibv_create_cq(s->dev.ctx, MAX_MSGS, NULL, s->ch, 0);
	s->rcq = ibv_create_cq(s->dev.ctx, MAX_MSGS, NULL, s->ch, 0);
	if (!s->scq || !s->rcq)
		die("create_cq: %m");
	s->give = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->give == MAP_FAILED)
		die("mmap: %m");
	s->get = s->give + AREA_SIZE;
	s->mr = ibv_reg_mr(s->dev.pd, s->give, len, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!s->mr)
		die("reg_mr of %zu bytes: %m", len);

	s->c.mtu = s->dev.port.active_mtu;
	s->c.max_sge = min32(min32(s->dev.attr.max_sge, s->dev.attr.max_sge_rd), MAX_PIECES);
	s->c.max_inline = probe_inline(s, s->c.max_sge);
	s->c.min_read = s->is_rxe;
}

static void agree(struct side *s, const struct opts *o)
{
	struct hello me = { .magic = MAGIC, .o = *o, .c = s->c }, peer;

	tcp_send(s->fd, &me, sizeof(me));
	tcp_recv(s->fd, &peer, sizeof(peer));
	if (peer.magic != MAGIC)
		die("the other side is another program");
	s->o = s->client ? *o : peer.o;
	if (!s->client)
		s->o.verbose = o->verbose;
	s->c.mtu = min32(s->c.mtu, peer.c.mtu);
	s->c.max_sge = min32(s->c.max_sge, peer.c.max_sge);
	s->c.max_inline = min32(s->c.max_inline, peer.c.max_inline);
	s->c.min_read = s->c.min_read > peer.c.min_read ? s->c.min_read : peer.c.min_read;
	/*
	 * What soft-RoCE cannot do a second time, when packets were lost or late:
	 * - It goes back to a fenced request and makes it wait for all READs that
	 *   are outstanding, those behind it too, and they wait for it: it stands
	 *   still for ever.
	 * - It remembers no rkey of a READ of 0 bytes, finds that the same request
	 *   has another one when it comes again, and drops it.
	 */
	s->no_fence = s->is_rxe && !s->o.all;
	if (s->o.all)
		s->c.min_read = 0;
	s->plan = plan_make(&s->o, &s->c);
}

static void agree_ece(const struct side *s, struct ibv_qp *qp)
{
	struct ibv_ece ece = {};

	if (s->o.ece < 0)
		return;
	if (ibv_query_ece(qp, &ece))
		die("query_ece: %m");
	ece.options = s->o.ece;
	if (ibv_set_ece(qp, &ece))
		die("set_ece: %m");
	if (ece.options != (uint32_t)s->o.ece)
		die("ECE options %#x are not there, %#x are", s->o.ece, ece.options);
}

static void connect_qps(struct side *s)
{
	unsigned int i, n = s->c.mtu - IBV_MTU_256 + 1;
	struct link_attr l = link_default;
	struct meet me = {}, peer;

	l.timeout = s->o.ack_timeout;
	for (i = 0; i < n; i++) {
		s->qp[i] = make_qp(s, s->c.max_sge, s->c.max_inline);
		if (!s->qp[i])
			die("create_qp: %m");
		agree_ece(s, s->qp[i]);
		/* Near the end of the 24 bits: PSNs wrap in the course of the run. */
		me.qp[i] = qp_addr(&s->dev, s->qp[i], 0xffff00 + i);
	}
	me.rkey = s->mr->rkey;
	me.give = (uintptr_t)s->give;
	me.get = (uintptr_t)s->get;
	tcp_send(s->fd, &me, sizeof(me));
	tcp_recv(s->fd, &peer, sizeof(peer));
	s->peer_rkey = peer.rkey;
	s->peer_give = peer.give;
	s->peer_get = peer.get;

	l.rd_atomic = min32(min32(s->dev.attr.max_qp_rd_atom, s->dev.attr.max_qp_init_rd_atom), 4);
	for (i = 0; i < n; i++) {
		l.mtu = IBV_MTU_256 + i;
		qp_connect(&s->dev, s->qp[i], me.qp[i].psn, &peer.qp[i], &l);
	}
	tcp_sync(s->fd);
}

static void destroy_qps(struct side *s)
{
	unsigned int i;

	for (i = 0; i < MAX_MTUS; i++) {
		if (s->qp[i] && ibv_destroy_qp(s->qp[i]))
			die("destroy_qp: %m");
		s->qp[i] = NULL;
	}
}

static void close_side(struct side *s)
{
	destroy_qps(s);
	if (ibv_dereg_mr(s->mr) || ibv_destroy_cq(s->scq) || ibv_destroy_cq(s->rcq) ||
	    ibv_destroy_comp_channel(s->ch))
		die("cannot destroy: %m");
	dev_close(&s->dev);
	plan_free(s->plan);
	close(s->fd);
}

static void run_side(const char *dev, int gid_index, const char *host, int port, int listen_fd,
		     const struct opts *o)
{
	struct side *s = calloc(1, sizeof(*s));

	if (!s)
		die("out of memory");
	s->client = host;
	open_side(s, dev, gid_index);
	if (host) {
		s->fd = tcp_connect(host, port);
	} else {
		if (listen_fd < 0)
			listen_fd = tcp_listen(port);
		s->fd = tcp_accept(listen_fd);
	}
	agree(s, o);
	connect_qps(s);
	run_all(s);
	close_side(s);
	free(s);
}

/* Both sides on this host: the server is a child. */
static int run_both(const char *dev, int gid, const char *dev2, int gid2, int port,
		    const struct opts *o)
{
	int fd = tcp_listen(port), status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %m");
	if (!pid) {
		run_side(dev2, gid2, NULL, port, fd, o);
		exit(0);
	}
	close(fd);
	run_side(dev, gid, "127.0.0.1", port, -1, o);
	if (waitpid(pid, &status, 0) != pid || status)
		die("the server ended with status 0x%x", status);
	return 0;
}

static const char usage[] =
"usage: skua-pattern [OPTION]... [SERVER]\n"
"Without SERVER: be the server. What is run is said by the client's options.\n"
"  -d, --dev DEV      RDMA device\n"
"  -g, --gid N        index of the GID\n"
"  -D, --dev2 DEV     be both sides: the server on this device ...\n"
"  -G, --gid2 N       ... with this GID\n"
"  -p, --port N       TCP port (18600)\n"
"  -s, --seed N       of data, lengths, lists and flags\n"
"  -q, --quick        fewer sizes, nothing beyond 1 MiB\n"
"  -f, --full         every size with every opcode\n"
"  -m, --mode M       poll, events or mix (default)\n"
"  -M, --max-size N   longest message\n"
"  -o, --only N       only this batch\n"
"  -X, --spoil N      change a bit in batch N before the check, which must see it\n"
"  -T, --timeout S    seconds for a completion (30)\n"
"  -a, --ack-timeout N  of the QPs: 4.096 us << N (14)\n"
"  -E, --ece OPTIONS  that both ends are told to have agreed on\n"
"  -A, --all          with soft-RoCE also what it cannot do a second time, after a loss\n"
"  -v, --verbose\n";

static const struct option longopts[] = {
	{ "dev", 1, NULL, 'd' }, { "gid", 1, NULL, 'g' }, { "dev2", 1, NULL, 'D' },
	{ "gid2", 1, NULL, 'G' }, { "port", 1, NULL, 'p' }, { "seed", 1, NULL, 's' },
	{ "quick", 0, NULL, 'q' }, { "full", 0, NULL, 'f' }, { "mode", 1, NULL, 'm' },
	{ "max-size", 1, NULL, 'M' }, { "only", 1, NULL, 'o' }, { "timeout", 1, NULL, 'T' },
	{ "spoil", 1, NULL, 'X' }, { "ack-timeout", 1, NULL, 'a' },
	{ "ece", 1, NULL, 'E' },
	{ "all", 0, NULL, 'A' }, { "verbose", 0, NULL, 'v' }, { "help", 0, NULL, 'h' }, {}
};

int main(int argc, char **argv)
{
	struct opts o = {
		.seed = 1, .max_size = 16 << 20, .sizes = 8192, .step = 1, .passes = 1,
		.rows = 1, .only = -1, .spoil = -1, .timeout = 30, .mode = 'm',
		.ece = -1, .ack_timeout = link_default.timeout,
	};
	const char *dev = NULL, *dev2 = NULL;
	int gid = 0, gid2 = 0, port = 18600, c;

	while ((c = getopt_long(argc, argv, "d:g:D:G:p:s:qfm:M:o:T:X:a:E:Avh", longopts, NULL)) != -1) {
		switch (c) {
		case 'd': dev = optarg; break;
		case 'g': gid = atoi(optarg); break;
		case 'D': dev2 = optarg; break;
		case 'G': gid2 = atoi(optarg); break;
		case 'p': port = atoi(optarg); break;
		case 's': o.seed = strtoull(optarg, NULL, 0); break;
		case 'q': o.step = 13; o.max_size = min32(o.max_size, 1 << 20); break;
		case 'f': o.passes = OPS; break;
		case 'm': o.mode = optarg[0]; break;
		case 'M': o.max_size = min32(strtoul(optarg, NULL, 0), 16 << 20); break;
		case 'o': o.only = atoi(optarg); break;
		case 'T': o.timeout = atoi(optarg); break;
		case 'X': o.spoil = atoi(optarg); break;
		case 'a': o.ack_timeout = atoi(optarg) & 31; break;
		case 'E': o.ece = strtol(optarg, NULL, 0); break;
		case 'A': o.all = 1; break;
		case 'v': o.verbose = 1; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (o.mode != 'p' && o.mode != 'e' && o.mode != 'm')
		die("--mode is poll, events or mix");
	setlinebuf(stdout);
	if (dev2)
		return run_both(dev, gid, dev2, gid2, port, &o);
	run_side(dev, gid, argv[optind], port, -1, &o);
	return 0;
}
