package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tasard/tasard/actors"
)

// A connection begins with a hello in each direction. After that it has messages: a length of four bytes, a byte for
// the kind, and the body. A connection carries messages in one direction only, from the node that dialed, except the
// answers to kindHeartbeat (the other node's heartbeat), kindCall and kindBackupRequest.
const (
	kindHello         = 'h'
	kindRaft          = 'r'
	kindHeartbeat     = 'b'
	kindCall          = 'c' // a request to the leader
	kindAnswer        = 'a' // the answer
	kindBackupRequest = 's' // answered with a backup (package wal) of the node's state
	kindRefused       = 'x' // refuses a hello, because of a claim
)

const (
	messageBytesMax = 8 << 20
	linkQueueMax    = 4096        // messages for a node; more are dropped, and raft sends them again
	dialTimeout     = time.Second // until the other machine answers
	dialInterval    = 50 * time.Millisecond
	dialIntervalMax = 400 * time.Millisecond // after several attempts: a handshake costs a node as much as many messages
	// silenceMax limits each read and each write, from the handshake on; after it a node closes the connection and dials
	// again. Without it a connection would resume late after an interruption, because TCP doubles the time between its
	// attempts.
	silenceMax = 3 * time.Second
	pendingMax = 128 // connections that have not authenticated themselves
)

// hello is the first message of each side.
type hello struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	Process string `json:"process"`      // random ID of the process
	Machine string `json:"machine"`      // host name and process ID; for the log
	To      string `json:"to,omitempty"` // the node that the dialing node wants to reach
}

// errRefused: another node refuses this process because of a claim.
var errRefused = errors.New("the node has accepted another process of this node")

// transport sends messages to other nodes and receives theirs.
type transport struct {
	c        *Cluster
	listener net.Listener
	tls      *tls.Config
	log      *limitedLog

	mu      sync.Mutex
	links   map[string]*link    // by the name of the node
	open    map[*tls.Conn]hello // the process at the other end; zero if it has not authenticated itself
	pending []*tls.Conn         // connections that have not authenticated themselves, the oldest first
}

// link is the connection to another node.
type link struct {
	name    string
	address string
	learned atomic.Pointer[string] // address in the node's heartbeats, for when the other one does not answer
	out     chan []byte
	up      atomic.Bool // connected
	refused atomic.Bool // the node accepts another process of this node
	cancel  context.CancelFunc

	mu      sync.Mutex
	newest  uint64                 // number of the newest call
	waiting map[uint64]chan []byte // calls without an answer, by number; nil while there is no connection
}

// timedConn is the connection below TLS. Its reads and writes each take at most limit.
type timedConn struct {
	net.Conn
	limit time.Duration
}

// Read implements io.Reader.
func (c *timedConn) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.limit)) //nolint:forbidigo // deadlines use real time
	return c.Conn.Read(p)                          // after an error of SetReadDeadline too
}

// Write implements io.Writer.
func (c *timedConn) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.limit)) //nolint:forbidigo // deadlines use real time
	return c.Conn.Write(p)
}

// setLimit changes the limit of a connection. Call it only while nothing else reads or writes.
func setLimit(conn *tls.Conn, limit time.Duration) { conn.NetConn().(*timedConn).limit = limit }

func listen(c *Cluster) (*transport, error) {
	tlsConfig, err := c.config.tlsConfig()
	if err != nil {
		return nil, err
	}
	t := &transport{c: c, tls: tlsConfig, links: map[string]*link{}, open: map[*tls.Conn]hello{},
		log: &limitedLog{logger: c.logger, clock: c.config.Clock}}
	if t.listener, err = net.Listen("tcp", c.config.Listen); err != nil {
		return nil, fmt.Errorf("listen for other nodes: %w", err)
	}
	return t, nil
}

func (t *transport) start() {
	t.c.start(t.accept)
	for _, m := range t.c.config.Members {
		t.learn(m.Name(), m.Address)
	}
}

// learn starts a connection to a node. For a known node it only stores the address, which may have changed.
func (t *transport) learn(name, address string) {
	if name == t.c.config.name() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.links[name]
	if l == nil {
		l = &link{name: name, address: address, out: make(chan []byte, linkQueueMax)}
		var ctx context.Context
		ctx, l.cancel = context.WithCancel(t.c.ctx)
		t.links[name] = l
		t.c.start(func() { t.runLink(ctx, l) })
	}
	l.learned.Store(&address)
}

// unlink ends the connection to a node.
func (t *transport) unlink(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.links[name]; l != nil {
		l.cancel()
		delete(t.links, name)
	}
}

// link returns the connection to another node, or nil.
func (t *transport) link(name string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.links[name]
}

// send queues a message. It drops the message if the node does not read.
func (l *link) send(kind byte, body []byte) {
	select {
	case l.out <- encodeMessage(kind, body):
	default:
	}
}

func (t *transport) broadcast(kind byte, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		l.send(kind, body)
	}
}

func encodeMessage(kind byte, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 5+len(body)), uint32(len(body))) //nolint:gosec // at most messageBytesMax
	return append(append(b, kind), body...)
}

func (t *transport) runLink(ctx context.Context, l *link) {
	pause := dialInterval
	for attempt := 0; ctx.Err() == nil; attempt++ {
		address := l.address
		if attempt%2 == 1 {
			address = *l.learned.Load()
		}
		conn, err := t.dial(ctx, l.name, address)
		l.refused.Store(errors.Is(err, errRefused))
		pause = min(2*pause, dialIntervalMax)
		if err == nil {
			pause = dialInterval
			l.up.Store(true)
			l.endCalls(map[uint64]chan []byte{})
			err = t.write(ctx, l, conn)
			l.up.Store(false)
			l.endCalls(nil)
			t.end(conn)
		}
		if err != nil && ctx.Err() == nil {
			t.log.write("dial "+l.name, slog.LevelDebug, "no connection to another node", "node", l.name, "cause", err.Error())
		}
		for len(l.out) > 0 {
			<-l.out
		}
		_ = sleep(ctx, pause) // the loop checks ctx
	}
}

// readAnswers reads the heartbeats and answers of a node until the connection ends.
func (t *transport) readAnswers(l *link, conn *tls.Conn) {
	for r := bufio.NewReaderSize(conn, 1<<16); ; {
		kind, body, err := readMessage(r)
		if err != nil {
			return
		}
		switch kind {
		case kindHeartbeat:
			t.c.peers.receive(l.name, body)
		case kindAnswer:
			l.answered(body)
		}
	}
}

// write sends the messages of a link until the connection ends, and closes it. The first is a heartbeat, which tells
// the other node which entries it must have before it votes (heartbeat.Durable).
func (t *transport) write(ctx context.Context, l *link, conn *tls.Conn) error {
	ended := make(chan struct{})
	go func() { // ends with conn, which write closes
		defer close(ended)
		t.readAnswers(l, conn)
	}()
	defer func() { _ = conn.Close(); <-ended }()
	w := bufio.NewWriterSize(conn, 1<<16)
	for b := encodeMessage(kindHeartbeat, t.c.encodeHeartbeat()); ; {
		_, err := w.Write(b)
		if err == nil && len(l.out) == 0 {
			err = w.Flush()
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return io.EOF
		case b = <-l.out:
		}
	}
}

// dial connects to a node and checks its name.
func (t *transport) dial(ctx context.Context, name, address string) (*tls.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(&timedConn{raw, silenceMax}, t.tls)
	if !t.begin(conn) {
		return nil, net.ErrClosed
	}
	err = t.writeHello(conn, name) // after the handshake
	var h hello
	if err == nil {
		h, err = readHello(conn)
	}
	if err == nil && (h.Name != name || h.Cluster != t.c.config.Cluster) {
		err = fmt.Errorf("%s is %s of the cluster %s, not %s", address, h.Name, h.Cluster, name)
	}
	if err == nil {
		err = t.claim(conn, h)
	}
	if err != nil {
		t.end(conn)
		return nil, err
	}
	return conn, nil
}

func (t *transport) writeHello(w io.Writer, to string) error {
	body, err := json.Marshal(hello{t.c.config.Cluster, t.c.config.name(), t.c.process, t.c.machine, to})
	if err == nil {
		_, err = w.Write(encodeMessage(kindHello, body))
	}
	return err
}

func readHello(r io.Reader) (h hello, err error) {
	kind, body, err := readMessage(r)
	switch {
	case err == nil && kind == kindRefused:
		err = errRefused
	case err == nil && kind != kindHello:
		err = errors.New("not a node of a cluster")
	}
	if err == nil {
		err = json.Unmarshal(body, &h)
	}
	return h, err
}

func readMessage(r io.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > messageBytesMax {
		return 0, nil, fmt.Errorf("a message of %d bytes: at most %d are allowed", size, messageBytesMax)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return head[4], body, err
}

// begin registers a connection. It returns false and closes the connection if the transport is closed. It limits the
// number of connections that have not authenticated themselves: beyond the limit it closes the oldest, so that a node
// can connect even during a flood.
func (t *transport) begin(conn *tls.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.c.ctx.Err() != nil {
		_ = conn.Close()
		return false
	}
	if len(t.pending) >= pendingMax {
		oldest := t.pending[0]
		_ = oldest.Close()
		t.pending = t.pending[1:]
		t.log.write("flood", slog.LevelWarn, "too many connections that are not from nodes", "address", oldest.RemoteAddr().String())
	}
	t.open[conn], t.pending = hello{}, append(t.pending, conn)
	return true
}

// claim records the process at the other end of a connection. It returns an error if another process with this name has
// a connection. So if two processes use one name, each node accepts the first that it reaches.
func (t *transport) claim(conn *tls.Conn, h hello) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.open {
		if other.Name == h.Name && other.Process != h.Process {
			return fmt.Errorf("another process of this node is connected: %s is %s, refused is %s", h.Name, other.Machine, h.Machine)
		}
	}
	t.open[conn] = h
	t.authenticated(conn)
	return nil
}

// acceptance counts the nodes that have accepted this process, and those that have accepted another process with this
// node's name.
func (t *transport) acceptance() (accepting, refusing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		if l.up.Load() {
			accepting++
		} else if l.refused.Load() {
			refusing++
		}
	}
	return accepting, refusing
}

func (t *transport) end(conn *tls.Conn) {
	_ = conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, conn)
	t.authenticated(conn)
}

// authenticated removes a connection from pending. The caller must hold mu.
func (t *transport) authenticated(conn *tls.Conn) {
	t.pending = slices.DeleteFunc(t.pending, func(c *tls.Conn) bool { return c == conn })
}

func (t *transport) accept() {
	for {
		raw, err := t.listener.Accept()
		if err != nil {
			if t.c.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			t.log.write("accept", slog.LevelWarn, "connection of another node not accepted", "cause", err.Error())
			_ = sleep(t.c.ctx, dialInterval)
			continue
		}
		if conn := tls.Server(&timedConn{raw, silenceMax}, t.tls); t.begin(conn) {
			t.c.start(func() { t.serve(conn) })
		}
	}
}

// serve reads the messages of another node.
func (t *transport) serve(conn *tls.Conn) {
	defer t.end(conn)
	h, err := t.greet(conn)
	if err != nil {
		if !errors.Is(err, io.EOF) && t.c.ctx.Err() == nil {
			t.log.write("refused "+err.Error(), slog.LevelWarn, "another node refused", "address", conn.RemoteAddr().String(), "cause", err.Error())
		}
		return
	}
	r, stream := bufio.NewReaderSize(conn, 1<<16), false
	for err == nil {
		var kind byte
		var body []byte
		if kind, body, err = readMessage(r); err == nil {
			stream = stream || kind == kindRaft || kind == kindHeartbeat
			err = t.receive(conn, h.Name, kind, body)
		}
	}
	if stream {
		t.c.replica.connectionLost(h.Name)
	}
}

// greet authenticates the node at the other end of a connection.
func (t *transport) greet(conn *tls.Conn) (h hello, err error) {
	if err = conn.HandshakeContext(t.c.ctx); err != nil {
		return h, fmt.Errorf("handshake error: %w", err)
	}
	if h, err = readHello(conn); err != nil {
		return h, err
	}
	switch {
	case h.Cluster != t.c.config.Cluster:
		return h, fmt.Errorf("it belongs to the cluster %q", h.Cluster)
	case h.To != t.c.config.name():
		return h, fmt.Errorf("it looks for %q, this node is %s", h.To, t.c.config.name())
	}
	if err = t.claim(conn, h); err != nil {
		_, _ = conn.Write(encodeMessage(kindRefused, nil)) // else it sees the end of the connection
		return h, err
	}
	return h, t.writeHello(conn, h.Name)
}

func (t *transport) receive(conn *tls.Conn, from string, kind byte, body []byte) error {
	switch kind {
	case kindRaft:
		m := new(pb.Message)
		if err := proto.Unmarshal(body, m); err != nil {
			return err
		}
		if m.GetType() == pb.MsgApp && slices.ContainsFunc(m.Entries, func(e *pb.Entry) bool { return !validEntry(e) }) {
			return errFrame
		}
		t.c.replica.step(m)
	case kindHeartbeat:
		t.c.peers.receive(from, body)
		_, err := conn.Write(encodeMessage(kindHeartbeat, t.c.encodeHeartbeat()))
		return err
	case kindCall:
		return t.answerCall(conn, body)
	case kindBackupRequest:
		t.c.sendBackup(conn)
		return io.EOF
	default:
		return fmt.Errorf("a message of kind %q", kind)
	}
	return nil
}

// close closes all connections. The context of the Cluster must have ended, so that begin accepts no more.
func (t *transport) close() {
	_ = t.listener.Close() // after an error the listener is closed too
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn := range t.open {
		_ = conn.Close()
	}
}

const (
	leaderPoll     = 100 * time.Millisecond // how often a call checks that the leader is the same
	leaderPollsMax = 3                      // a former leader has this many polls to answer
	callHeader     = 8                      // the number of the call, before the request or the answer
)

// endCalls ends all calls without an answer. waiting is for the next ones, or nil without a connection.
func (l *link) endCalls(waiting map[uint64]chan []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, answer := range l.waiting {
		close(answer)
	}
	l.waiting = waiting
}

// answered passes an answer to its call.
func (l *link) answered(body []byte) {
	if len(body) < callHeader {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	number := binary.LittleEndian.Uint64(body)
	if answer := l.waiting[number]; answer != nil {
		answer <- body[callHeader:]
		delete(l.waiting, number)
	}
}

// call queues a request. It returns nil if there is no connection, or no room.
func (l *link) call(request []byte) <-chan []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil || len(request)+callHeader > messageBytesMax {
		return nil
	}
	l.newest++
	body := append(binary.LittleEndian.AppendUint64(make([]byte, 0, callHeader+len(request)), l.newest), request...)
	select {
	case l.out <- encodeMessage(kindCall, body):
	default:
		return nil
	}
	answer := make(chan []byte, 1)
	l.waiting[l.newest] = answer
	return answer
}

// Serve implements actors.Shared.
func (j *Journal) Serve(answer func(request []byte) []byte, backup func(io.Writer) error) {
	j.cluster.serve.Store(&answer)
	j.cluster.backup.Store(&backup)
	j.cluster.sendHeartbeat()
}

// Ask implements actors.Shared.
func (j *Journal) Ask(ctx context.Context, request []byte) ([]byte, error) {
	r := j.cluster.replica
	leader := r.leaderName()
	var answered <-chan []byte
	if l := j.cluster.transport.link(leader); l != nil {
		answered = l.call(request)
	}
	if answered == nil {
		return nil, actors.ErrNotLeader
	}
	ticker := time.NewTicker(leaderPoll)
	defer ticker.Stop()
	for polls := 0; polls < leaderPollsMax; {
		select {
		case answer, ok := <-answered:
			switch {
			case !ok:
				return nil, actors.ErrOutcomeUnknown
			case len(answer) == 0:
				return nil, actors.ErrNotLeader
			}
			return answer, nil
		case <-ticker.C:
			if r.leaderName() != leader {
				polls++
			}
		case <-ctx.Done():
			return nil, actors.ErrOutcomeUnknown
		}
	}
	return nil, actors.ErrOutcomeUnknown
}

// answerCall answers the request of another node.
func (t *transport) answerCall(conn *tls.Conn, body []byte) error {
	if len(body) < callHeader {
		return errors.New("a call without a number")
	}
	t.c.start(func() {
		answer := body[:callHeader:callHeader]
		if serve := t.c.serve.Load(); serve != nil {
			answer = append(answer, (*serve)(body[callHeader:])...)
		}
		_, _ = conn.Write(encodeMessage(kindAnswer, answer)) // without it the other node sees the end of the connection
	})
	return nil
}

const (
	repeatInterval = time.Minute
	repeatedMax    = 256 // number of different messages that limitedLog remembers
)

// limitedLog logs a kind of message once a minute, however often it occurs. Otherwise a node that is down, or programs
// that connect to this node's port, could fill the log. Kinds that differ only in digits, such as ports and numbers of
// connections, count as the same.
type limitedLog struct {
	logger *slog.Logger
	clock  func() time.Time

	mu     sync.Mutex
	logged map[string]time.Time // when each kind was logged last
}

func (l *limitedLog) write(kind string, level slog.Level, message string, attributes ...any) {
	kind = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, kind)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if at, ok := l.logged[kind]; ok && now.Sub(at) < repeatInterval {
		return
	}
	if l.logged == nil || len(l.logged) >= repeatedMax {
		l.logged = map[string]time.Time{}
	}
	l.logged[kind] = now
	l.logger.Log(context.Background(), level, message, attributes...)
}
