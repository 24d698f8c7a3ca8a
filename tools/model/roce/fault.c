// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults. If a page is missing, the side of the QP (requester or responder) records the
 * fault in its context, reports it, and waits for RESUME_PAGE_FAULT. Then the access is repeated
 * from the start, with all checks; the page is there, or the same or another one is missing. If
 * software cannot provide the page it says so in the command, and the repeated access fails, as
 * for any other error.
 *
 * While it waits the requester sends nothing (req.c), and the responder executes no request with
 * a missing page (resp.c) and sends no further responses (rres.c).
 */
#include "../cmd.h"
#include "engine.h"

/* A token: QP, side, and a number that distinguishes it from earlier ones. */
#define TOKEN_INDEX	GENMASK(MODEL_LOG_QP - 1, 0)
#define TOKEN_RESP	BIT(MODEL_LOG_QP)
#define TOKEN_SERIAL	GENMASK(30, MODEL_LOG_QP + 1)
#define SERIALS		(TOKEN_SERIAL >> (MODEL_LOG_QP + 1))

/* 1.28 ms, and 40.96 ms: with each step of two the time doubles. */
#define RNR_CODE_MIN	14
#define RNR_CODE_MAX	24

static uint32_t token_make(struct turn *t, bool responder)
{
	uint32_t serial = t->dev->engine->faults++ % SERIALS + 1;

	return u32_encode_bits(serial, TOKEN_SERIAL) | (responder ? TOKEN_RESP : 0) |
	       qp_index(t->qp->qpn);
}

/* The access was repeated after software could not provide the page. */
static bool in_vain(const struct skua_fault *f, const struct mr_miss *miss)
{
	return le32_to_cpu(f->flags) & SKUA_FAULT_ERROR && le64_to_cpu(f->va) == miss->va &&
	       le32_to_cpu(f->key) == miss->key;
}

/* By the hot words: has this side a fault? */
static void note(struct turn *t, bool responder, bool any)
{
	__le32 *word = responder ? &t->rqc->flags : &t->sqc->valid;
	__le32 bit = cpu_to_le32(responder ? SKUA_RQC_FAULT : SKUA_SQC_FAULT);

	*word = any ? *word | bit : *word & ~bit;
}

static enum skua_vendor missed(struct turn *t, struct skua_fault *f, bool responder)
{
	const struct mr_miss *miss = &t->dev->miss;

	if (!(responder ? turn_need_rq_rest(t) : turn_need_sq_rest(t)))
		return SKUA_VENDOR_KEY_FAULT;
	if (fault_waits(f))
		return SKUA_VENDOR_MISS;
	if (in_vain(f, miss)) {
		t->dev->cnt[SKUA_CNT_PAGE_FAULT_ERR]++;
		/* Unreliable services drop the message, and do not wait for its page again. */
		if (responder && !t->reliable)
			f->flags = 0;
		return SKUA_VENDOR_KEY_FAULT;
	}
	*f = (struct skua_fault){
		.va = cpu_to_le64(miss->va),
		.key = cpu_to_le32(miss->key),
		.len = cpu_to_le32(miss->len),
		.token = cpu_to_le32(token_make(t, responder) |
				     (miss->write ? SKUA_EQE_FAULT_WRITE : 0)),
		.flags = cpu_to_le32(SKUA_FAULT_WAITS | SKUA_FAULT_PENDING),
	};
	note(t, responder, true);
	t->dev->cnt[SKUA_CNT_PAGE_FAULTS]++;
	dev_log(t->dev, 3, "QP %#x: key %#x: no page at %#llx", t->qp->qpn, miss->key,
		(unsigned long long)miss->va);
	fault_event(t->dev, t->qp->qpn, responder);
	return SKUA_VENDOR_MISS;
}

enum skua_vendor fault_req(struct turn *t, enum skua_vendor err)
{
	if (err != SKUA_VENDOR_MISS)
		return err;
	err = missed(t, &t->sqc->fault, false);
	/* Nothing is sent now, so no ACK timer runs. */
	if (err == SKUA_VENDOR_MISS)
		t->sqc->ack_deadline = 0;
	return err;
}

enum skua_vendor fault_resp(struct turn *t, enum skua_vendor err)
{
	return err == SKUA_VENDOR_MISS ? missed(t, &t->rqc->fault, true) : err;
}

void fault_forget_req(struct turn *t)
{
	fault_event_forget(t->dev, t->qp->qpn, false);
	t->sqc->fault = (struct skua_fault){ 0 };
	note(t, false, false);
}

void fault_forget_resp(struct turn *t)
{
	fault_event_forget(t->dev, t->qp->qpn, true);
	t->rqc->fault = (struct skua_fault){ 0 };
	note(t, true, false);
}

/*
 * Choose the time of the RNR NAK so that a peer with few RNR retries does not use them up while
 * the page is fetched, and does not wait long for a page that is there soon.
 */
uint8_t fault_rnr_code(struct turn *t)
{
	uint32_t least = le32_get_bits(t->sqc->attr.retry, SKUA_ATTR_MIN_RNR_TIMER);
	struct skua_fault *f = &t->rqc->fault;
	uint32_t before = le32_get_bits(f->flags, SKUA_FAULT_RNRS);
	uint32_t code = RNR_CODE_MIN + 2 * before;

	if (code < RNR_CODE_MAX)
		le32p_replace_bits(&f->flags, before + 1, SKUA_FAULT_RNRS);
	else
		code = RNR_CODE_MAX;
	/* Code 0 stands for the longest time. */
	return (uint8_t)(!least || least > code ? least : code);
}

/* --- RESUME_PAGE_FAULT --- */

static void settle(struct turn *t, bool responder, bool error)
{
	struct skua_fault *f = responder ? &t->rqc->fault : &t->sqc->fault;

	/* Whoever guesses a token settles a fault that was not reported. */
	fault_event_forget(t->dev, t->qp->qpn, responder);
	f->flags = cpu_to_le32(error ? SKUA_FAULT_ERROR : 0);
	note(t, responder, error);
	t->dev->cnt[SKUA_CNT_PAGE_FAULT_RESUMED]++;
	if (!responder)
		req_unblock(t);
	sched_kick_resp(t->dev, t->qp->qpn);
}

int cmd_resume_page_fault(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_resume_fault_in *in = cmd->in;
	uint32_t token = le32_to_cpu(in->token);
	bool responder = token & TOKEN_RESP;
	const struct skua_fault *f;
	struct turn t;
	struct qp qp;
	bool ours;

	if (token & ~SKUA_EQE_FAULT_TOKEN || le32_to_cpu(in->error) > 1)
		return SKUA_CMD_ST_BAD_PARAM;
	if (qp_get_index(dev, token & TOKEN_INDEX, &qp))
		return SKUA_CMD_ST_BAD_INDEX;
	f = responder ? &qp.rqc->fault : &qp.sqc->fault;
	ours = qp_type(&qp) != SKUA_QP_RAW_ETH && fault_waits(f) &&
	       (le32_to_cpu(f->token) & SKUA_EQE_FAULT_TOKEN) == token;
	if (ours) {
		turn_begin(&t, dev, &qp);
		settle(&t, responder, in->error);
		qp_dirty(dev, &qp);
		turn_end_req(&t);
	}
	qp_put(dev, &qp);
	return ours ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_INDEX;
}
