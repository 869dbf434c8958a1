package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tasard/tasard/engine"
)

// resident is the state and the work of one actor. Its methods run one at a time.
type resident interface {
	// receive does the work of one letter. It never blocks and asks no other actor.
	receive(letter)
	// vital reports that the actor cannot be trusted any more when this letter's work panics.
	vital(letter) bool
	// abort settles everything that the actor keeps for later: it stops, or the node does.
	abort(*engine.Error)
}

// ref is where letters to an actor go.
type ref struct {
	root    *actor.RootContext
	pid     *actor.PID
	mailbox *mailbox
}

// send is the only way to an actor: straight into its mailbox, which is where the library would bring the
// letter, and which settles it when the actor has stopped. A nil letter is a mistake of the caller's.
func (r *ref) send(l letter) {
	if l == nil {
		panic("actors: send of a nil letter")
	}
	r.mailbox.post(l)
}

// stop ends the actor and waits until all its letters are settled.
func (r *ref) stop() {
	r.end()
	r.ended()
}

// end sends the actor its end.
func (r *ref) end() { r.root.Stop(r.pid) }

// ended waits until the actor has ended and all its letters are settled.
func (r *ref) ended() { <-r.mailbox.finished }

// halt tells every actor that changes something that the node has stopped.
type halt struct {
	fact
	why *engine.Error
}

// host is what the library sees of a resident.
type host struct {
	resident resident
	stage    *stage
}

// Receive is the library's, and hears of the lifecycle alone: the mailbox brings letters to the resident. Of
// the lifecycle only the end matters: residents are complete when they are spawned, and what they keep for
// later must be settled.
func (h *host) Receive(context actor.Context) {
	if _, stopping := context.Message().(*actor.Stopping); stopping {
		h.resident.abort(errStopped)
	}
}

// contain ends a panic. While reading it costs the one question: what was read is immutable, so nothing is
// half changed. While changing it stops the node, which starts again from the log. Either way the actor
// is never started again with empty state.
func (h *host) contain(l letter, reason any) {
	cause := fmt.Errorf("panic over %T: %v\n%s", l, reason, debug.Stack())
	if !h.resident.vital(l) {
		l.settle(&engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause})
		return
	}
	h.stage.fail(cause)
	stopped := readOnly(cause)
	h.resident.abort(stopped)
	l.settle(stopped)
}

// stage is what actors stand on: the library's system, relief, and the way to stop the node.
type stage struct {
	system   *actor.ActorSystem
	root     *actor.RootContext
	relief   *relief
	fail     func(error)
	guardian *failStop // one for all: the library keeps each that it sees for ever
	limit    int       // of each mailbox
	boxes    [kinds]boxCounts

	spawning sync.Mutex // the library's own book of guardians is not made for two at a time
}

// newStage makes an actor system that logs nothing by itself: the library's own logger writes in colour
// to the standard error output.
func newStage(limit, workers int, fail func(error)) *stage {
	quiet := slog.New(slog.DiscardHandler)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	return &stage{
		system: system, root: system.Root, relief: startRelief(workers), fail: fail, guardian: &failStop{fail}, limit: limit,
	}
}

// spawn starts an actor.
func (s *stage) spawn(name string, r resident) (*ref, error) {
	return s.spawnBusy(name, r, factsMax)
}

// spawnBusy starts an actor that keeps places for so many facts.
func (s *stage) spawnBusy(name string, r resident, facts int) (*ref, error) {
	h := &host{resident: r, stage: s}
	box := newMailbox(s.limit, s.relief, s.fail, h)
	box.facts, box.counts = facts, &s.boxes[kindOf(r)]
	props := actor.PropsFromProducer(
		func() actor.Actor { return h },
		actor.WithMailbox(func() actor.Mailbox { return box }),
		actor.WithGuardian(s.guardian),
	)
	s.spawning.Lock()
	defer s.spawning.Unlock()
	pid, err := s.root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("spawn actor %s: %w", name, err)
	}
	return &ref{root: s.root, pid: pid, mailbox: box}, nil
}

// close ends the system after all actors have stopped.
func (s *stage) close() {
	s.relief.stop()
	s.system.Shutdown()
}

// failStop is the supervisor: the library's own one would start a failed actor again with empty state.
type failStop struct{ fail func(error) }

// HandleFailure stops the node and the actor.
func (f *failStop) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	f.fail(fmt.Errorf("actor %s failed over %T: %v", child.Id, message, reason))
	supervisor.StopChildren(child)
}
