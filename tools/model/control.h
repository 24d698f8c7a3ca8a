/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control socket of a running model, for commands: one datagram
 * with a line of text, one datagram with the answer.
 */
#ifndef SKUA_MODEL_CONTROL_H
#define SKUA_MODEL_CONTROL_H

#include <stddef.h>

struct control;

/* Maximum number of file descriptors at one time: its own, and received ones to be closed. */
#define CONTROL_FDS_MAX	512

/* @line may be changed; the answer is a string of less than @room bytes. */
typedef void (*control_fn)(void *priv, char *line, char *answer, size_t room);

/* Bind a socket to @path and add it to the epoll set. NULL and errno on failure. */
struct control *control_create(const char *path, int epfd, control_fn fn, void *priv);
void control_destroy(struct control *c);

#endif /* SKUA_MODEL_CONTROL_H */
