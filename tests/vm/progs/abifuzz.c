// SPDX-License-Identifier: GPL-2.0
/*
 * skua-abifuzz -d DEV [-g GID] [-s SEED] [-t SECONDS]: everything that programs ask of
 * the kernel's verbs, asked wrongly.
 *
 * A child opens the device and makes, uses and ends an object of every kind through
 * libibverbs; whatever that hands to the kernel (ioctl and write, with the provider's
 * own data) is taken down here on its way. Then it makes the objects again, and hands
 * the kernel what was taken down, changed: lengths, handles, flags, attributes and
 * methods, words of the data, pointers. When it has done so a while it ends, with
 * whatever is left, and the next child goes on from the next seed. A child that the
 * kernel keeps, or any that does not come back from a call, is a failure.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "common.h"

#define RECORDS		1024
#define ATTRS		32
#define ARENA		(1 << 20)
#define CALLS		3000	/* of a child */
#define PATIENCE	60	/* seconds for them */

struct attr {
	struct ib_uverbs_attr head;
	size_t at;		/* of its data in the record's, SIZE_MAX: in the head */
};

/* A call as it was made. */
struct record {
	bool is_write;
	struct ib_uverbs_ioctl_hdr head;
	struct attr attr[ATTRS];
	unsigned int num;
	size_t len;
	uint8_t data[4096];
};

struct stats {
	uint64_t calls, ok;
};

static struct record *records;
static unsigned int num_records;
static bool recording;
static int uverbs_fd = -1;
static uint8_t *arena;
static struct stats *stats;

/* --- taking down ---------------------------------------------------------------- */

static void record_ioctl(const struct ib_uverbs_ioctl_hdr *hdr)
{
	struct record *r = &records[num_records];
	unsigned int i;

	if (num_records == RECORDS || hdr->num_attrs > ATTRS)
		return;
	memset(r, 0, sizeof(*r));
	r->head = *hdr;
	r->num = hdr->num_attrs;
	for (i = 0; i < r->num; i++) {
		const struct ib_uverbs_attr *a = &hdr->attrs[i];

		r->attr[i].head = *a;
		r->attr[i].at = SIZE_MAX;
		if (a->len <= sizeof(a->data) || r->len + a->len > sizeof(r->data))
			continue;
		memcpy(r->data + r->len, (void *)(uintptr_t)a->data, a->len);
		r->attr[i].at = r->len;
		r->len += a->len;
	}
	num_records++;
}

/* Before libc's, as this is the program. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (recording && request == RDMA_VERBS_IOCTL) {
		uverbs_fd = fd;
		record_ioctl(arg);
	}
	return syscall(SYS_ioctl, fd, request, arg);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	struct record *r = &records[num_records];

	if (recording && fd == uverbs_fd && num_records < RECORDS && len <= sizeof(r->data)) {
		memset(r, 0, sizeof(*r));
		r->is_write = true;
		r->len = len;
		memcpy(r->data, buf, len);
		num_records++;
	}
	return syscall(SYS_write, fd, buf, len);
}

/* --- one of everything ------------------------------------------------------------ */

struct objects {
	struct ibv_pd *pd;
	struct ibv_mr *mr, *dmr;
	struct ibv_dm *dm;
	struct ibv_mw *mw;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[4];
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_flow *flow;
	struct ibv_ah *ah;
	struct ibv_counters *counters;
	struct ibv_xrcd *xrcd;
};

static void make_queues(struct dev *dev, struct objects *o)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_UC,
						  IBV_QPT_RAW_PACKET };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 3 };
	struct ibv_modify_cq_attr mod = { IBV_CQ_ATTR_MODERATE, { 1, 1 } };
	unsigned int i;

	o->cq = ibv_create_cq(dev->ctx, 32, NULL, NULL, 0);
	if (!o->cq)
		die("create_cq: %m");
	ibv_resize_cq(o->cq, 64);
	ibv_modify_cq(o->cq, &mod);
	o->srq = ibv_create_srq(o->pd, &srq);
	if (o->srq)
		ibv_modify_srq(o->srq, &limit, IBV_SRQ_LIMIT);
	for (i = 0; i < 4; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = o->cq, .recv_cq = o->cq, .cap = { 8, 8, 1, 1, 0 },
			.qp_type = types[i], .srq = i ? NULL : o->srq,
		};
		struct ibv_qp_attr attr;

		o->qp[i] = ibv_create_qp(o->pd, &init);
		if (o->qp[i])
			ibv_query_qp(o->qp[i], &attr, IBV_QP_STATE, &init);
	}
}

static void use_queues(struct dev *dev, struct objects *o)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct addr self;

	if (o->qp[0]) {
		self = qp_addr(dev, o->qp[0], 1);
		qp_connect(dev, o->qp[0], 1, &self, &link_default);
	}
	if (o->qp[3])
		ibv_modify_qp(o->qp[3], &attr, IBV_QP_STATE | IBV_QP_PORT);
	if (o->qp[1]) {
		attr.qkey = 7;
		ibv_modify_qp(o->qp[1], &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY |
			      IBV_QP_PKEY_INDEX);
		ibv_attach_mcast(o->qp[1], &(union ibv_gid){ .raw = { 0xff, 0x0e, 9 } }, 0);
	}
}

static void make_steering(struct dev *dev, struct objects *o)
{
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1,
				       .pd = o->pd, .cq = o->cq };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &o->wq };
	struct ibv_counters_init_attr counters = { 0 };
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} __attribute__((packed, aligned(8))) f = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(f), .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth),
			 .val.ether_type = 0xb588, .mask.ether_type = 0xffff },
	};

	o->wq = ibv_create_wq(dev->ctx, &wq);
	if (o->wq)
		o->table = ibv_create_rwq_ind_table(dev->ctx, &table);
	if (o->qp[3])
		o->flow = ibv_create_flow(o->qp[3], (void *)&f);
	o->counters = ibv_create_counters(dev->ctx, &counters);
}

static void make(struct dev *dev, struct objects *o)
{
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
					   IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100 };
	struct ibv_alloc_dm_attr dm = { .length = 4096 };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1,
				  .grh = { .dgid = dev->gid, .sgid_index = dev->gid_index } };
	struct ibv_device_attr_ex ex;
	struct ibv_port_attr port;
	union ibv_gid gid;

	memset(o, 0, sizeof(*o));
	ibv_query_device_ex(dev->ctx, NULL, &ex);
	ibv_query_port(dev->ctx, 1, &port);
	ibv_query_gid(dev->ctx, 1, dev->gid_index, &gid);
	o->pd = ibv_alloc_pd(dev->ctx);
	if (!o->pd)
		die("alloc_pd: %m");
	o->mr = ibv_reg_mr(o->pd, arena, 65536, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_MW_BIND);
	if (o->mr)
		ibv_rereg_mr(o->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1);
	ibv_reg_dmabuf_mr(o->pd, 0, 4096, 0, -1, 1);
	o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_2);
	o->dm = ibv_alloc_dm(dev->ctx, &dm);
	if (o->dm)
		o->dmr = ibv_reg_dm_mr(o->pd, o->dm, 0, 4096, IBV_ACCESS_ZERO_BASED |
				       IBV_ACCESS_LOCAL_WRITE);
	o->xrcd = ibv_open_xrcd(dev->ctx, &xrcd);
	make_queues(dev, o);
	use_queues(dev, o);
	make_steering(dev, o);
	o->ah = ibv_create_ah(o->pd, &ah);
}

#define END(how, what)	do { if (what) how(what); } while (0)

static void end(struct objects *o)
{
	unsigned int i;

	END(ibv_destroy_ah, o->ah);
	END(ibv_destroy_flow, o->flow);
	END(ibv_destroy_counters, o->counters);
	END(ibv_destroy_rwq_ind_table, o->table);
	END(ibv_destroy_wq, o->wq);
	if (o->qp[1])
		ibv_detach_mcast(o->qp[1], &(union ibv_gid){ .raw = { 0xff, 0x0e, 9 } }, 0);
	for (i = 0; i < 4; i++)
		END(ibv_destroy_qp, o->qp[i]);
	END(ibv_destroy_srq, o->srq);
	END(ibv_destroy_cq, o->cq);
	END(ibv_close_xrcd, o->xrcd);
	END(ibv_dereg_mr, o->dmr);
	END(ibv_free_dm, o->dm);
	END(ibv_dealloc_mw, o->mw);
	END(ibv_dereg_mr, o->mr);
	ibv_dealloc_pd(o->pd);
}

/* --- changing ------------------------------------------------------------------------ */

static uint64_t strange(struct rng *g)
{
	static const uint64_t values[] = { 0, 1, 2, 7, 0x7f, 0x80, 0xff, 0xfff, 0x1000, 0xffff,
		0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, ~0ull, 1ull << 63 };

	switch (rng_below(g, 4)) {
	case 0:
		return rng_below(g, 24);	/* a handle, likely */
	case 1:
		return values[rng_below(g, sizeof(values) / sizeof(values[0]))];
	case 2:
		return (uintptr_t)arena + rng_below(g, ARENA + 4096);
	default:
		return rng_next(g);
	}
}

/* A field of 1, 2, 4 or 8 bytes, or a bit. */
static void change_data(struct rng *g, uint8_t *data, size_t len)
{
	size_t size = 1u << rng_below(g, 4), at;
	uint64_t v = strange(g);

	if (len < size)
		return;
	at = rng_below(g, (len - size) / size + 1) * size;
	if (rng_below(g, 3))
		memcpy(data + at, &v, size);
	else
		data[at] ^= 1u << rng_below(g, 8);
}

static void change_attr(struct rng *g, struct ib_uverbs_attr *a)
{
	switch (rng_below(g, 6)) {
	case 0:
		a->len = rng_below(g, 3) ? a->len + rng_below(g, 17) - 8 : strange(g);
		break;
	case 1:
		a->attr_id = rng_below(g, 2) ? a->attr_id ^ 1u << rng_below(g, 16) :
					       strange(g);
		break;
	case 2:
		a->flags ^= 1u << rng_below(g, 16);
		break;
	case 3:
		a->attr_data.reserved = strange(g);
		break;
	default:
		a->data = strange(g);
	}
}

static void change_head(struct rng *g, struct ib_uverbs_ioctl_hdr *h)
{
	switch (rng_below(g, 6)) {
	case 0:
		h->object_id = rng_below(g, 2) ? rng_below(g, 24) : 0x1000 | rng_below(g, 8);
		break;
	case 1:
		h->method_id = rng_below(g, 2) ? rng_below(g, 16) : 0x1000 | rng_below(g, 8);
		break;
	case 2:
		h->num_attrs = rng_below(g, ATTRS);
		break;
	case 3:
		h->length += rng_below(g, 33) - 16;
		break;
	case 4:
		h->driver_id = strange(g);
		break;
	default:
		h->reserved1 = strange(g);
	}
}

static long play(struct rng *g, const struct record *from)
{
	static struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attr[ATTRS];
	} call;
	unsigned int i, changes = 1 + rng_below(g, 4);
	uint8_t *data = arena + ARENA / 2;

	memcpy(data, from->data, from->len);
	if (from->is_write) {
		while (changes--)
			change_data(g, data, from->len);
		return syscall(SYS_write, uverbs_fd, data,
			       rng_below(g, 4) ? from->len : rng_below(g, 2 * from->len));
	}
	memset(&call, 0, sizeof(call));
	call.head = from->head;
	for (i = 0; i < from->num; i++) {
		call.attr[i] = from->attr[i].head;
		if (from->attr[i].at != SIZE_MAX)
			call.attr[i].data = (uintptr_t)data + from->attr[i].at;
	}
	while (changes--) {
		uint32_t what = rng_below(g, 8);

		if (what < 4 && from->len)
			change_data(g, data, from->len);
		else if (what < 7 && from->num)
			change_attr(g, &call.attr[rng_below(g, from->num)]);
		else
			change_head(g, &call.head);
	}
	return syscall(SYS_ioctl, uverbs_fd, RDMA_VERBS_IOCTL, &call);
}

static void child(const char *name, int gid, uint64_t seed, double until)
{
	struct rng g = rng_make(seed, 0);
	struct objects o;
	struct dev dev;
	unsigned int i;

	recording = true;
	dev_open(&dev, name, gid);
	make(&dev, &o);
	end(&o);
	recording = false;
	make(&dev, &o);
	if (num_records < 30)
		die("only %u calls were seen", num_records);
	for (i = 0; i < CALLS && now() < until; i++) {
		__atomic_add_fetch(&stats->calls, 1, __ATOMIC_RELAXED);
		if (play(&g, &records[rng_below(&g, num_records)]) >= 0)
			__atomic_add_fetch(&stats->ok, 1, __ATOMIC_RELAXED);
	}
	_exit(0);
}

/* --- all of them ------------------------------------------------------------------------ */

/* False: it did not end, or said why it could not begin. */
static bool reap(pid_t pid)
{
	double end = now() + PATIENCE;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() > end) {
			printf("# child %d does not come back\n", pid);
			kill(pid, SIGKILL);
			return false;
		}
		usleep(10000);
	}
	/* The kernel was told to write where the program's own data are: it may die. */
	return WIFSIGNALED(status) || !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	double seconds = 20, until;
	uint64_t seed = 1, first;
	const char *name = NULL;
	int opt, gid = 0;
	bool ok = true;

	while ((opt = getopt(argc, argv, "d:g:s:t:")) != -1) {
		if (opt == 'd')
			name = optarg;
		else if (opt == 'g')
			gid = atoi(optarg);
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (opt == 't')
			seconds = atof(optarg);
		else
			die("usage: -d DEV [-g GID] [-s SEED] [-t SECONDS]");
	}
	stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	records = calloc(RECORDS, sizeof(*records));
	if (stats == MAP_FAILED || arena == MAP_FAILED || !records)
		die("memory");
	until = now() + seconds;
	for (first = seed; ok && now() < until; seed++) {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid < 0)
			die("fork: %m");
		if (!pid)
			child(name, gid, seed, until);
		ok = reap(pid);
	}
	printf("# seeds %lu to %lu: %lu calls, %lu of them taken\n", first, seed - 1,
	       stats->calls, stats->ok);
	if (ok && (!stats->ok || stats->calls < 100)) {
		printf("# that was not much\n");
		ok = false;
	}
	printf("%sok 1 - calls of all kinds, changed\n1..1\n", ok ? "" : "not ");
	return !ok;
}
