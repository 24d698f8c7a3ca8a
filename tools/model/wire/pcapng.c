// SPDX-License-Identifier: GPL-2.0
/*
 * Capture files in pcapng format.
 *
 * Section header, one interface description per port, an enhanced packet per
 * frame, all in the machine's byte order, which the format allows. Blocks are
 * collected in memory and written out whole.
 *
 * Several threads may write to one file: a lock is held for each block, and times never go
 * back in the file.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../host/path.h"
#include "pcapng.h"

#define BLOCK_SHB		0x0a0d0d0a
#define BLOCK_IDB		1
#define BLOCK_EPB		6
#define BYTE_ORDER_MAGIC	0x1a2b3c4d
#define LINKTYPE_ETHERNET	1

#define OPT_END			0
#define OPT_COMMENT		1
#define OPT_SHB_USERAPPL	4
#define OPT_IF_NAME		2
#define OPT_IF_TSRESOL		9
#define OPT_EPB_FLAGS		2
#define EPB_FLAG_INBOUND	1

/* Size of the buffer: many blocks. A block has the longest frame and some options. */
#define BUF_SIZE		(1u << 18)
#define BLOCK_MAX		(1u << 17)
#define FRAME_MAX		(1u << 16)

struct wire_pcap {
	pthread_mutex_t lock;	/* of all below that changes */
	int fd;
	int error;
	uint64_t epoch;		/* from the monotonic clock to the time of day */
	uint64_t last;		/* time of the latest frame */
	size_t len;
	size_t block;		/* offset of the block that is being written */
	uint8_t buf[BUF_SIZE];
};

static void put(struct wire_pcap *p, const void *data, size_t len)
{
	static const uint8_t zero[4];
	size_t pad = -len & 3;

	memcpy(p->buf + p->len, data, len);
	memcpy(p->buf + p->len + len, zero, pad);
	p->len += len + pad;
}

static void put32(struct wire_pcap *p, uint32_t v)
{
	put(p, &v, sizeof(v));
}

static void put_option(struct wire_pcap *p, uint16_t code, const void *data, size_t len)
{
	uint16_t head[2] = { code, (uint16_t)len };

	put(p, head, sizeof(head));
	if (len)
		put(p, data, len);
}

/* With the lock held. */
static int flush(struct wire_pcap *p)
{
	const uint8_t *data = p->buf;
	size_t len = p->len;

	p->len = 0;
	while (len && !p->error) {
		ssize_t n = write(p->fd, data, len);

		if (n < 0 && errno != EINTR)
			p->error = errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return p->error;
}

static void block_begin(struct wire_pcap *p, uint32_t type)
{
	if (p->len + BLOCK_MAX > BUF_SIZE)
		flush(p);
	p->block = p->len;
	put32(p, type);
	put32(p, 0);		/* length, filled in by block_end() */
}

static void block_end(struct wire_pcap *p)
{
	uint32_t len = (uint32_t)(p->len - p->block + 4);

	put32(p, len);
	memcpy(p->buf + p->block + 4, &len, sizeof(len));
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct wire_pcap *wire_pcap_open(const char *path)
{
	static const char app[] = "skua-model";
	struct wire_pcap *p = malloc(sizeof(*p));
	uint16_t version[2] = { 1, 0 };
	int saved;

	if (!p)
		return NULL;
	p->fd = path_create(path);
	if (p->fd < 0) {
		errno = -p->fd;
		goto err_free;
	}
	pthread_mutex_init(&p->lock, NULL);
	p->error = 0;
	p->last = 0;
	p->len = 0;
	p->epoch = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

	block_begin(p, BLOCK_SHB);
	put32(p, BYTE_ORDER_MAGIC);
	put(p, version, sizeof(version));
	put32(p, UINT32_MAX);	/* section length, 64 bits: unknown */
	put32(p, UINT32_MAX);
	put_option(p, OPT_SHB_USERAPPL, app, sizeof(app) - 1);
	put_option(p, OPT_END, NULL, 0);
	block_end(p);

	errno = flush(p);
	if (!errno)
		return p;
	saved = errno;
	close(p->fd);
	errno = saved;
err_free:
	saved = errno;
	free(p);
	errno = saved;
	return NULL;
}

void wire_pcap_close(struct wire_pcap *p)
{
	if (!p)
		return;
	flush(p);
	close(p->fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void wire_pcap_add_interface(struct wire_pcap *p, const char *name)
{
	uint16_t link[2] = { LINKTYPE_ETHERNET, 0 };
	uint8_t nanoseconds = 9;

	pthread_mutex_lock(&p->lock);
	block_begin(p, BLOCK_IDB);
	put(p, link, sizeof(link));
	put32(p, 0);		/* no snapshot length */
	put_option(p, OPT_IF_NAME, name, strlen(name));
	put_option(p, OPT_IF_TSRESOL, &nanoseconds, 1);
	put_option(p, OPT_END, NULL, 0);
	block_end(p);
	pthread_mutex_unlock(&p->lock);
}

/* With the lock held. */
static void put_packet(struct wire_pcap *p, uint32_t interface, uint64_t now_ns,
		       const void *frame, size_t len, const char *comment)
{
	uint32_t flags = EPB_FLAG_INBOUND;
	uint64_t time;

	/* Another thread may have read the clock later, but taken the lock earlier. */
	if (now_ns < p->last)
		now_ns = p->last;
	p->last = now_ns;
	time = now_ns + p->epoch;
	block_begin(p, BLOCK_EPB);
	put32(p, interface);
	put32(p, (uint32_t)(time >> 32));
	put32(p, (uint32_t)time);
	put32(p, (uint32_t)len);
	put32(p, (uint32_t)len);
	put(p, frame, len);
	if (comment)
		put_option(p, OPT_COMMENT, comment, strlen(comment));
	put_option(p, OPT_EPB_FLAGS, &flags, sizeof(flags));
	put_option(p, OPT_END, NULL, 0);
	block_end(p);
}

void wire_pcap_packet(struct wire_pcap *p, uint32_t interface, uint64_t now_ns,
		      const void *frame, size_t len, const char *comment)
{
	if (len > FRAME_MAX)
		return;
	pthread_mutex_lock(&p->lock);
	if (!p->error)
		put_packet(p, interface, now_ns, frame, len, comment);
	pthread_mutex_unlock(&p->lock);
}

int wire_pcap_flush(struct wire_pcap *p)
{
	int error;

	pthread_mutex_lock(&p->lock);
	error = flush(p);
	pthread_mutex_unlock(&p->lock);
	return error;
}
