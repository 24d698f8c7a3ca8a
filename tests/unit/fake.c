// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/pci_regs.h>

#include "core.h"
#include "fake.h"
#include "roce/pkt.h"
#include "wire/wire.h"

/* Rounds of the run loop after which a device that never rests is at fault. */
#define ROUNDS_MAX	1000000

static void die(const char *why)
{
	fprintf(stderr, "fake: %s\n", why);
	abort();
}

/* --- for fuzzers --- */

#define POOL	4

static struct {
	bool on, digest;
	struct {
		struct skua_dev *dev;
		uint8_t *mem;
		uint64_t caps;
	} kept[POOL];
	uint64_t sum;
} pool;

void fake_pool(void)
{
	pool.on = true;
	/* What an input made of it, so that two runs can be compared. */
	pool.digest = getenv("FUZZ_DIGEST");
}

static void digest(const void *data, size_t len)
{
	const uint8_t *p = data;

	if (!pool.digest)
		return;
	for (size_t i = 0; i < len; i++)
		pool.sum = (pool.sum ^ p[i]) * 0x100000001b3ull;
}

/* A device and memory of an earlier life, reset. */
static bool take_kept(struct fake *f, const struct skua_dev_cfg *cfg)
{
	for (unsigned int i = 0; i < POOL; i++) {
		struct skua_dev *dev = pool.kept[i].dev;

		/* What a device is made by. */
		if (!dev || dev->cfg.onchip != cfg->onchip || dev->cfg.whole != cfg->whole ||
		    dev->cfg.hot_looks != cfg->hot_looks ||
		    dev->cfg.log_objects != cfg->log_objects)
			continue;
		f->dev = dev;
		f->mem = pool.kept[i].mem;
		pool.kept[i].dev = NULL;
		dev->cfg = *cfg;
		dev->host_priv = f;
		dev->wire_priv = f;
		dev->srq_lives = 0;
		dev->caps = pool.kept[i].caps;
		skua_dev_reset(dev, SKUA_RESET_POWER);
		skua_dev_link(dev, true);
		return true;
	}
	return false;
}

static bool keep(struct fake *f)
{
	for (unsigned int i = 0; pool.on && i < POOL; i++) {
		if (pool.kept[i].dev)
			continue;
		pool.kept[i].dev = f->dev;
		pool.kept[i].mem = f->mem;
		pool.kept[i].caps = f->caps;
		madvise(f->mem, f->mem_size, MADV_DONTNEED);
		return true;
	}
	return false;
}

static bool in_hole(const struct fake *f, uint64_t iova, size_t len)
{
	for (unsigned int i = 0; i < FAKE_HOLES; i++) {
		if (iova < f->hole[i].to && f->hole[i].from < iova + len)
			return true;
	}
	return false;
}

static void *at(const struct fake *f, uint64_t iova, size_t len)
{
	if (iova < FAKE_MEM_BASE || len > f->mem_size ||
	    iova - FAKE_MEM_BASE > f->mem_size - len || in_hole(f, iova, len))
		return NULL;
	return f->mem + (iova - FAKE_MEM_BASE);
}

static int fake_dma_read(void *host, uint64_t iova, void *buf, size_t len)
{
	struct fake *f = host;
	const void *src = at(f, iova, len);

	f->reads++;
	if (!src && f->far_read)
		return f->far_read(f->far_priv, iova, buf, len) ? -EFAULT : 0;
	if (f->on_read && src)
		f->on_read(f->on_priv, iova, len);
	if (!src || (f->fail_read && !--f->fail_read))
		return -EFAULT;
	memcpy(buf, src, len);
	return 0;
}

static int fake_dma_write(void *host, uint64_t iova, const void *buf, size_t len)
{
	struct fake *f = host;
	void *dst = at(f, iova, len);

	f->writes++;
	digest(&iova, sizeof(iova));
	digest(buf, len);
	if (!dst && f->far_write)
		return f->far_write(f->far_priv, iova, buf, len) ? -EFAULT : 0;
	if (!dst || (f->fail_write && !--f->fail_write))
		return -EFAULT;
	if (f->on_write && f->on_write(f->on_priv, iova, buf, len))
		return 0;
	/* Of a train it comes from where the sender has it. */
	memmove(dst, buf, len);
	return 0;
}

static const void *fake_dma_map(void *host, uint64_t iova, size_t len)
{
	struct fake *f = host;

	return f->on_read || f->fail_read ? NULL : at(f, iova, len);
}

static uint64_t fake_dma_broken(void *host)
{
	return ((struct fake *)host)->broken;
}

static void fake_msix(void *host, unsigned int vector)
{
	struct fake *f = host;

	if (vector >= SKUA_MSIX_VECTORS_MAX)
		die("interrupt vector out of range");
	f->msix[vector]++;
}

static uint64_t fake_now(void *host)
{
	struct fake *f = host;

	if (f->clock)
		f->now = *f->clock;
	f->now += f->step;
	return f->now;
}

static void fake_timer(void *host, uint64_t deadline)
{
	((struct fake *)host)->deadline = deadline;
}

static void fake_order(void *host)
{
	struct fake *f = host;

	if (f->on_order)
		f->on_order(f->on_priv);
}

static const struct skua_host_ops host_ops = {
	.order = fake_order,
	.dma_read = fake_dma_read,
	.dma_write = fake_dma_write,
	.msix = fake_msix,
	.now = fake_now,
	.timer = fake_timer,
	.dma_map = fake_dma_map,
	.dma_broken = fake_dma_broken,
};

static void look(struct fake *f, const void *frame, size_t len)
{
	const char *fault;

	if (f->raw)
		return;
	if (f->on_sent)
		f->on_sent(f->on_priv, frame, len);
	if (len < 14 || len > MODEL_MAX_FRAME)
		die("frame of bad length sent");
	fault = f->unjudged ? NULL : judge_sent(&f->judge, frame, len, f->now);
	if (fault)
		die(fault);
	digest(frame, len);
}

static void fake_send(void *wire, const void *frame, size_t len)
{
	struct fake *f = wire;
	struct fake_frame *copy;

	if (f->net) {
		if (f->judged)
			look(f, frame, len);
		f->net->send(f->net_priv, frame, len);
		f->sent++;
		return;
	}
	look(f, frame, len);
	if (f->port) {
		wire_port_send(f->port, frame, len);
		f->sent++;
		return;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		die("no memory");
	copy->len = len;
	memcpy(copy->data, frame, len);
	if (f->tx_tail - f->tx_head == FAKE_FRAMES)
		free(fake_tx(f));
	f->tx[f->tx_tail++ % FAKE_FRAMES] = copy;
	f->sent++;
}

/* Frames that Ethernet fills up have the ICRC before that. */
static void spoil_icrc(uint8_t *frame, size_t len)
{
	struct skua_pkt pkt;

	if (skua_pkt_parse_ip(frame, len, &pkt))
		die("not a RoCE packet whose ICRC is pending");
	frame[pkt.l3 + pkt.len - frame - 1] ^= 0xa5;
}

/*
 * What the device leaves out is wrong here: nobody may look at it. The judge sees the packet
 * as it is to be.
 */
static void fake_send_pending(void *wire, void *frame, size_t len)
{
	struct fake *f = wire;

	if (f->net && !f->judged) {
		f->net->send_pending(f->net_priv, frame, len);
		f->sent++;
		return;
	}
	if (f->raw && f->pending) {
		wire_port_send_pending(f->port, frame, len);
		f->sent++;
		return;
	}
	skua_pkt_icrc_fill(frame, len);
	if (!f->port || !f->pending) {
		fake_send(wire, frame, len);
		return;
	}
	look(f, frame, len);
	spoil_icrc(frame, len);
	wire_port_send_pending(f->port, frame, len);
	f->sent++;
}

static void *fake_frame(void *wire, size_t size)
{
	struct fake *f = wire;

	if (f->net)
		return f->net->frame(f->net_priv, size);
	return f->port && f->pending ? wire_port_frame(f->port, size) : NULL;
}

static bool fake_full(void *wire, const uint8_t dmac[6])
{
	struct fake *f = wire;

	if (f->net)
		return f->net->full(f->net_priv, dmac);
	if (f->full && !memcmp(f->full, dmac, 6))
		return true;
	return f->port && wire_port_full(f->port, dmac);
}

static bool fake_direct(void *wire, const uint8_t dmac[6])
{
	struct fake *f = wire;

	return f->port && f->pending && !f->no_trains && wire_port_direct(f->port, dmac);
}

/* The packets of a train, as a judge or the peer sees them. */
static void judge_train(struct fake *f, const void *head, size_t len,
			const struct skua_train *train, bool sent)
{
	uint8_t frame[MODEL_MAX_FRAME];

	for (uint32_t i = 0; i < train->packets && !f->raw; i++) {
		size_t n = skua_train_packet(head, len, train, i, frame, sizeof(frame));

		if (!n)
			die("a packet of a train does not fit");
		skua_pkt_icrc_fill(frame, n);
		if (sent)
			look(f, frame, n);
		else
			judge_received(&f->judge, frame, n, f->now);
	}
}

static void fake_send_train(void *wire, void *head, size_t len, const struct skua_train *train)
{
	struct fake *f = wire;

	judge_train(f, head, len, train, true);
	f->sent += train->packets;
	f->trains++;
	wire_port_send_train(f->port, head, len, train);
}

static void fake_settle(void *wire)
{
	struct fake *f = wire;

	f->settled++;
	wire_settle(f->wire, f->port);
}

static const struct skua_wire_ops wire_ops = {
	.send = fake_send,
	.send_pending = fake_send_pending,
	.frame = fake_frame,
	.full = fake_full,
	.direct = fake_direct,
	.send_train = fake_send_train,
	.settle = fake_settle,
};

void fake_init(struct fake *f, const struct skua_dev_cfg *cfg)
{
	fake_init_sized(f, cfg, FAKE_MEM_SIZE);
}

void fake_init_sized(struct fake *f, const struct skua_dev_cfg *cfg, uint64_t size)
{
	static const struct skua_dev_cfg plain = {
		.mac = { 0x02, 0, 0, 0, 0, 0x01 },
		.serial = 0x0200000000000001ull,
	};

	memset(f, 0, sizeof(*f));
	f->mem_size = size;
	f->tx = calloc(FAKE_FRAMES, sizeof(*f->tx));
	f->next = FAKE_MEM_BASE;
	f->used = FAKE_MEM_BASE;
	f->now = 1000000000;
	f->deadline = SKUA_TIME_NEVER;
	cfg = cfg ? cfg : &plain;
	if (size != FAKE_MEM_SIZE || !take_kept(f, cfg)) {
		f->mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (f->mem == MAP_FAILED || !f->tx)
			die("no memory");
		f->dev = skua_dev_create(cfg, &host_ops, f, &wire_ops, f);
		if (!f->dev)
			die("no device");
	}
	f->caps = f->dev->caps;
	fake_bus(f, true, true);
}

/* What is sent is sent by a QP, which has a priority. */
static void check_prios(const struct fake *f)
{
	const uint64_t *cnt = f->dev->cnt;
	uint64_t sum = 0;

	for (unsigned int prio = 0; prio < SKUA_PRIO_NUM; prio++)
		sum += cnt[SKUA_CNT_TX_PRIO0_BYTES + prio];
	if (sum != cnt[SKUA_CNT_RDMA_TX_BYTES] + cnt[SKUA_CNT_ETH_TX_BYTES])
		die("the counters of priorities do not add up to what was sent");
}

void fake_exit(struct fake *f)
{
	struct fake_frame *frame;

	if (f->owns_wire)
		wire_destroy(f->wire);
	check_prios(f);
	judge_reset(&f->judge);
	while ((frame = fake_tx(f)))
		free(frame);
	free(f->tx);
	/* Of all devices of the input, with the first one that goes. */
	if (pool.digest && pool.sum)
		fprintf(stderr, "digest %016llx\n", (unsigned long long)pool.sum);
	pool.sum = 0;
	if (f->mem_size == FAKE_MEM_SIZE && keep(f))
		return;
	skua_dev_destroy(f->dev);
	munmap(f->mem, f->mem_size);
}

void fake_bus(struct fake *f, bool memory, bool master)
{
	uint16_t cmd = (memory ? PCI_COMMAND_MEMORY : 0) | (master ? PCI_COMMAND_MASTER : 0);
	__le16 val = cpu_to_le16(cmd);

	skua_dev_cfg_write(f->dev, PCI_COMMAND, &val, sizeof(val));
}

uint64_t fake_alloc(struct fake *f, size_t size, size_t align)
{
	uint64_t iova = (f->next + align - 1) & ~(uint64_t)(align - 1);

	if (iova + size > FAKE_MEM_BASE + f->mem_size)
		die("guest memory is used up");
	f->next = iova + size;
	/* What was never handed out is zero, and no page of it is touched for that. */
	if (iova < f->used)
		memset(fake_ptr(f, iova), 0, f->used - iova < size ? f->used - iova : size);
	if (f->next > f->used)
		f->used = f->next;
	return iova;
}

void *fake_ptr(struct fake *f, uint64_t iova)
{
	if (iova < FAKE_MEM_BASE || iova - FAKE_MEM_BASE >= f->mem_size)
		die("no guest memory there");
	return f->mem + (iova - FAKE_MEM_BASE);
}

void fake_hole(struct fake *f, uint64_t iova, uint64_t len)
{
	for (unsigned int i = 0; i < FAKE_HOLES; i++) {
		if (f->hole[i].to)
			continue;
		f->hole[i].from = iova;
		f->hole[i].to = iova + len;
		return;
	}
	die("too many holes");
}

void fake_no_holes(struct fake *f)
{
	memset(f->hole, 0, sizeof(f->hole));
}

uint32_t fake_rd32(struct fake *f, unsigned int reg)
{
	__le32 val;

	skua_dev_bar_read(f->dev, SKUA_BAR_REGS, reg, &val, sizeof(val));
	return le32_to_cpu(val);
}

void fake_wr32(struct fake *f, unsigned int reg, uint32_t val)
{
	__le32 le = cpu_to_le32(val);

	skua_dev_bar_write(f->dev, SKUA_BAR_REGS, reg, &le, sizeof(le));
}

void fake_wr64(struct fake *f, unsigned int reg, uint64_t val)
{
	__le64 le = cpu_to_le64(val);

	skua_dev_bar_write(f->dev, SKUA_BAR_REGS, reg, &le, sizeof(le));
}

void fake_db(struct fake *f, unsigned int page, unsigned int reg, uint32_t lo, uint32_t hi)
{
	__le32 val[2] = { cpu_to_le32(lo), cpu_to_le32(hi) };

	skua_dev_bar_write(f->dev, SKUA_BAR_UAR, ((uint64_t)page << f->dev->uar_shift) + reg, val,
			   sizeof(val));
}

void fake_run(struct fake *f)
{
	for (unsigned int i = 0; skua_dev_run(f->dev); i++) {
		if (i == ROUNDS_MAX)
			die("the device never rests");
	}
}

/* Ring the timer if it is due. */
static bool ring(struct fake *f)
{
	if (f->deadline > f->now)
		return false;
	f->deadline = SKUA_TIME_NEVER;
	skua_dev_tick(f->dev);
	return true;
}

void fake_advance(struct fake *f, uint64_t ns)
{
	uint64_t end = f->now + ns;

	fake_run(f);
	for (unsigned int i = 0; f->deadline <= end; i++) {
		if (i == ROUNDS_MAX)
			die("the timer never rests");
		if (f->deadline > f->now)
			f->now = f->deadline;
		ring(f);
		fake_run(f);
	}
	f->now = end;
}

static void receive(struct fake *f, const void *frame, size_t len, bool icrc_pending)
{
	/* A buffer of just this size, so that a sanitizer sees what is read behind it. */
	void *copy = malloc(len ? len : 1);

	memcpy(copy, frame, len);
	if (icrc_pending)
		skua_pkt_icrc_fill(copy, len);
	judge_received(&f->judge, copy, len, f->now);
	if (icrc_pending)
		spoil_icrc(copy, len);
	while (skua_dev_rx(f->dev, copy, len, icrc_pending))
		f->rx_again++;
	free(copy);
}

void fake_rx(struct fake *f, const void *frame, size_t len)
{
	receive(f, frame, len, false);
}

static void take(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct fake *f = priv;

	if (!f->raw)
		receive(f, frame, len, icrc_pending);
	else if (skua_dev_rx(f->dev, frame, len, icrc_pending))
		wire_port_again(f->port);
}

static void take_soon(void *priv, const void *frame, size_t len)
{
	skua_dev_rx_soon(((struct fake *)priv)->dev, frame, len);
}

static bool take_train(void *priv, void *head, size_t len, const struct skua_train *train)
{
	struct fake *f = priv;

	if (!skua_dev_rx_train(f->dev, head, len, train))
		return false;
	judge_train(f, head, len, train, false);
	f->trains_taken++;
	return true;
}

static void train_done(void *priv, const struct skua_train *train)
{
	skua_dev_train_done(((struct fake *)priv)->dev, train);
}

static const struct wire_trains trains = { .rx = take_train, .done = train_done };

struct fake_frame *fake_tx(struct fake *f)
{
	return f->tx_head == f->tx_tail ? NULL : f->tx[f->tx_head++ % FAKE_FRAMES];
}

void fake_cable(struct fake *a, struct fake *b)
{
	a->peer = b;
	b->peer = a;
	b->now = a->now;
}

static void room(void *priv)
{
	skua_dev_room(((struct fake *)priv)->dev);
}

static uint64_t wire_clock(void *priv)
{
	return ((struct fake *)priv)->now;
}

void fake_join(struct fake *f, struct wire *w, const char *name)
{
	f->wire = w;
	f->pending = true;
	f->port = wire_add_dev(w, name, take, f);
	if (!f->port)
		die("no port");
	wire_port_on_room(f->port, room);
	wire_port_trains(f->port, &trains);
	wire_port_on_next(f->port, take_soon);
}

struct wire *fake_wire(struct fake *f, uint64_t seed)
{
	struct wire *w = wire_create(seed);

	if (!w)
		die("no memory");
	f->owns_wire = true;
	wire_set_clock(w, wire_clock, f);
	return w;
}

struct wire *fake_switch(struct fake *a, struct fake *b)
{
	struct wire *w = fake_wire(a, 1);

	fake_join(a, w, "nic0");
	fake_join(b, w, "nic1");
	return w;
}

/* Carry the frames that are on the wire now; false: there were none. */
static bool carry(struct fake *f)
{
	unsigned int end = f->tx_tail;
	bool any = false;

	while (f->tx_head != end) {
		struct fake_frame *frame = fake_tx(f);

		any = true;
		if (!f->filter || f->filter(f->filter_priv, frame))
			fake_rx(f->peer, frame->data, frame->len);
		free(frame);
	}
	return any;
}

void fake_pump(struct fake *a, struct fake *b)
{
	bool more = true;

	for (unsigned int i = 0; more; i++) {
		if (i == ROUNDS_MAX)
			die("the devices never rest");
		more = skua_dev_run(a->dev);
		more |= carry(a);
		more |= skua_dev_run(b->dev);
		more |= carry(b);
		if (a->wire && wire_deadline(a->wire) <= a->now) {
			wire_poll(a->wire, a->now);
			more = true;
		}
	}
}

/* When something happens next by itself. */
static uint64_t next_deadline(const struct fake *a, const struct fake *b)
{
	uint64_t next = a->deadline < b->deadline ? a->deadline : b->deadline;
	uint64_t wire = a->wire ? wire_deadline(a->wire) : SKUA_TIME_NEVER;

	return wire < next ? wire : next;
}

void fake_pump_for(struct fake *a, struct fake *b, uint64_t ns)
{
	uint64_t end = a->now + ns;

	fake_pump(a, b);
	for (unsigned int i = 0; next_deadline(a, b) <= end; i++) {
		uint64_t next = next_deadline(a, b);

		if (i == ROUNDS_MAX)
			die("the timers never rest");
		if (next > a->now)
			a->now = next;
		b->now = a->now;
		ring(a);
		ring(b);
		fake_pump(a, b);
	}
	a->now = end;
	b->now = end;
}
