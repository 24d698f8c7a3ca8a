/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Capture files in pcapng format. Several threads may use one.
 */
#ifndef SKUA_WIRE_PCAPNG_H
#define SKUA_WIRE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_pcap;

/* Create the file @path, or truncate it. NULL and errno on failure. */
struct wire_pcap *wire_pcap_open(const char *path);
void wire_pcap_close(struct wire_pcap *p);

/* Add an interface; they are numbered from 0 on. */
void wire_pcap_add_interface(struct wire_pcap *p, const char *name);

/*
 * Add a frame sent by the station at interface @interface. @now_ns is the time of a monotonic
 * clock; @comment may be NULL.
 */
void wire_pcap_packet(struct wire_pcap *p, uint32_t interface, uint64_t now_ns,
		      const void *frame, size_t len, const char *comment);

/*
 * Write out the buffered blocks. Only whole blocks are written, so that the file can be read
 * however the process ends. Returns 0, or the error number that has ended the capture.
 */
int wire_pcap_flush(struct wire_pcap *p);

#endif /* SKUA_WIRE_PCAPNG_H */
