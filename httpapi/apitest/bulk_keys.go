package apitest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// Keys makes so many accounts with one key each, and is Key for crowds: a hundred thousand take seconds. The keys come in the
// order of their accounts, and are the same for the same seed.
//
// It restarts the node twice, so what is only in memory is lost. Between the two nobody can ask, and therefore no account waits
// for the disk. Windows of a minute and sessions run out meanwhile, although Clock stands: the brake on logins lets 5,000 an
// hour pass, so the clock that measures spans moves on a second for each account.
func (s *Server) Keys(count int) (keys []string) {
	s.t.Helper()
	s.run(func() error {
		if count < 0 {
			return fmt.Errorf("keys: %d accounts can't be made", count)
		}
		s.disconnect(false)
		old := s.instance
		s.instance = nil
		if err := old.system.Close(); err != nil {
			return errors.Join(fmt.Errorf("stop: %w", err), os.RemoveAll(old.dir))
		}
		made, err := s.createAccounts(old.dir, count)
		if err = errors.Join(err, s.reopen(old.dir)); err == nil {
			keys = made
		}
		return err
	})
	return keys
}

// createAccounts makes accounts in a directory on which no node runs.
func (n *Node) createAccounts(dir string, count int) ([]string, error) {
	log, err := wal.Open(dir, wal.Options{ReserveBytes: diskReserveOff, Clock: n.Clock.Now, Logger: n.config.logger})
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	var spans atomic.Int64
	post := &codeMailer{}
	c := n.systemConfig(dir)
	c.Journal, c.Mailer = &batchingJournal{Log: log}, post
	c.Steady = func() time.Duration { return time.Duration(spans.Load()) }
	c.SnapshotRecords, c.SnapshotBytes = math.MaxInt, math.MaxInt64 // one at the end
	system, err := openSystem(&c)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	var made []*testAccount
	for range count {
		spans.Add(int64(time.Second))
		number := len(n.accounts) + len(made)
		var one *testAccount
		if one, err = signUp(system, post, generatedEmail(number), number); err != nil {
			break
		}
		made = append(made, one)
	}
	keys, known := n.registerAccounts(system, made)
	return keys, errors.Join(err, known, system.Close())
}

// signUp makes an account and its key. The number of the account is not known yet.
func signUp(system *actors.System, post *codeMailer, email string, number int) (*testAccount, error) {
	address, err := account.ParseEmail(email)
	if err != nil {
		return nil, err
	}
	from := loginAddress(number)
	if err := system.RequestCode(address, from); err != nil {
		return nil, fmt.Errorf("key of %s: %w", email, err)
	}
	code, _ := post.code(address)
	session, _, err := system.OpenSession(address, code, from)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", email, err)
	}
	_, secret, err := system.CreateKey(session.Digest(), "apitest")
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", email, err)
	}
	return &testAccount{email: address, keys: []string{secret.Reveal()}}, nil
}

// registerAccounts notes accounts that were made, and gives their keys.
func (n *Node) registerAccounts(system *actors.System, made []*testAccount) (keys []string, err error) {
	list, err := system.ListAccounts()
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	numbers := map[account.EmailID]uint64{}
	for i := range list {
		numbers[list[i].Email] = list[i].ID
	}
	for _, one := range made {
		one.id = numbers[one.email.ID()]
		n.accounts[one.email.String()] = one
		keys = append(keys, one.keys...)
	}
	return keys, nil
}

// pendingRecordsMax is how many records wait at most.
const pendingRecordsMax = 1 << 12

// batchingJournal is a journal that gathers records and writes them in large batches. Danger: what waits is lost in a crash, although it
// was said to be kept.
type batchingJournal struct {
	*wal.Log

	mu      sync.Mutex
	pending [][]byte
}

// Last is actors.Journal.
func (h *batchingJournal) Last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last()
}

func (h *batchingJournal) last() uint64 { return h.Log.Last() + uint64(len(h.pending)) }

// Append is actors.Journal.
func (h *batchingJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.last(); last != expected {
		return 0, fmt.Errorf("append behind record %d: %w: it ends with %d", expected, actors.ErrPosition, last)
	}
	if len(h.pending)+len(records) > pendingRecordsMax {
		if err := h.flush(); err != nil {
			return 0, err
		}
	}
	h.pending = append(h.pending, records...)
	return h.last(), nil
}

// flush writes what waits. The caller holds the lock.
func (h *batchingJournal) flush() error {
	if len(h.pending) == 0 {
		return nil
	}
	_, err := h.Log.Append(h.pending)
	h.pending = nil
	return err
}

// WriteSnapshot is actors.Journal. What it covers is in the log.
func (h *batchingJournal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.flush(); err != nil {
		return err
	}
	return h.Log.WriteSnapshot(sequence, write)
}

// Close is actors.Journal.
func (h *batchingJournal) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.flush(), h.Log.Close())
}
