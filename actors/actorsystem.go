package actors

import (
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// kind is what an actor owns.
type kind uint8

const (
	kindCurrency kind = iota
	kindDirectory
	kindJournal
	kindShard
	kindAccount
	kindRegistrar
	kindStrangers
	kinds
)

// kindNames are the names that doc.go gives the actors.
func kindNames() [kinds]string {
	return [kinds]string{"currency", "directory", "journal", "shard", "account", "registrar", "strangers"}
}

// kindOf is the kind of an actor.
func kindOf(r mailbox.Actor) kind {
	switch r.(type) {
	case *currencyActor:
		return kindCurrency
	case *directoryActor:
		return kindDirectory
	case *journalActor:
		return kindJournal
	case *shardActor:
		return kindShard
	case *registrarActor:
		return kindRegistrar
	case *strangersActor:
		return kindStrangers
	}
	return kindAccount
}

// shardReserve is the room of a shard for one-way messages: one for each login that made an account within the hour,
// of which the registry allows 5,000, and the few that are always under way.
const shardReserve = 8192

// actorSystem runs the actors, and counts what waits for those of each kind.
type actorSystem struct {
	*mailbox.System
	kinds [kinds]mailbox.Kind
}

// newActorSystem makes a system; fail stops the node.
func newActorSystem(limit, workers int, fail func(error)) *actorSystem {
	s := &actorSystem{System: mailbox.NewSystem(mailbox.Config{Limit: limit, Workers: workers, Fail: fail, Failed: readOnly})}
	s.kinds[kindShard].Reserve = shardReserve
	return s
}

// halt tells every actor that changes something that the node has stopped.
type halt struct {
	mailbox.OneWay
	why *engine.Error
}

// spawn starts an actor.
func (s *actorSystem) spawn(name string, a mailbox.Actor) (*mailbox.Ref, error) {
	return s.Spawn(name, &s.kinds[kindOf(a)], a)
}
