package apitest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// Keys creates accounts with one API key each, and returns the keys in the order of the accounts. A hundred thousand
// accounts take seconds. The same RandomSeed gives the same keys.
//
// Keys restarts the node twice, so that state in memory is lost. Server.Clock, the wall clock, does not move. The
// node's monotonic clock advances one second for each account, because a node sends at most 5,000 login codes an hour.
// Sessions and the windows of minute quotas may therefore expire.
func (s *Server) Keys(count int) (keys []string) {
	s.t.Helper()
	s.run(func() error {
		if count < 0 {
			return fmt.Errorf("keys: the number of accounts is %d, want at least 0", count)
		}
		s.disconnect(false)
		old := s.instance
		s.instance = nil
		if err := old.system.Close(); err != nil {
			return errors.Join(fmt.Errorf("stop: %w", err), os.RemoveAll(old.dir))
		}
		created, err := s.createAccounts(old.dir, count)
		if err = errors.Join(err, s.reopen(old.dir)); err == nil {
			keys = created
		}
		return err
	})
	return keys
}

// createAccounts creates accounts in a data directory that no node uses.
func (n *Node) createAccounts(dir string, count int) ([]string, error) {
	log, err := wal.Open(dir, wal.Options{ReserveBytes: diskReserveOff, Clock: n.Clock.Now, Logger: n.config.logger})
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	var elapsed atomic.Int64
	mailer := &codeMailer{}
	config := n.systemConfig(dir)
	config.Journal, config.Mailer = &batchingJournal{Log: log}, mailer
	config.Monotonic = func() time.Duration { return time.Duration(elapsed.Load()) }
	config.SnapshotRecords, config.SnapshotBytes = math.MaxInt, math.MaxInt64 // no snapshot before Close
	system, err := openSystem(&config)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	list, err := system.ListAccounts()
	var keys []string
	for index := len(list); index < len(list)+count && err == nil; index++ {
		elapsed.Add(int64(time.Second))
		var key string
		key, err = signUp(system, mailer, generatedEmail(index), index)
		keys = append(keys, key)
	}
	return keys, errors.Join(err, system.Close())
}

// generatedEmail returns the e-mail address that Key or Keys uses for the account with an index. Indexes begin with 0.
func generatedEmail(index int) string { return fmt.Sprintf("key-%d@apitest.example", index+1) }

// signUp logs in with an e-mail address and creates a key. The first login creates the account. Each index has its own
// client address, because logins from one address are limited.
func signUp(system *actors.System, mailer *codeMailer, email string, index int) (string, error) {
	address, err := account.ParseEmail(email)
	if err != nil {
		return "", err
	}
	from := account.Requester{Address: netip.AddrFrom4([4]byte{198, 18, byte(index >> 8), byte(index)})}
	if err := system.RequestCode(address, from); err != nil {
		return "", fmt.Errorf("key of %s: %w", email, err)
	}
	code, _ := mailer.code(address)
	session, _, err := system.OpenSession(address, code, from)
	if err != nil {
		return "", fmt.Errorf("key of %s: %w", email, err)
	}
	_, secret, err := system.CreateKey(session.Digest(), operator)
	if err != nil {
		return "", fmt.Errorf("key of %s: %w", email, err)
	}
	return secret.Reveal(), nil
}

const pendingRecordsMax = 1 << 12 // records in the buffer of a batchingJournal

// batchingJournal buffers records, and appends them to the log in large batches. Danger: Append returns before the
// records are on disk.
type batchingJournal struct {
	*wal.Log

	mu      sync.Mutex
	pending [][]byte
}

// Last implements actors.Journal.
func (j *batchingJournal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last()
}

func (j *batchingJournal) last() uint64 { return j.Log.Last() + uint64(len(j.pending)) }

// Append implements actors.Journal.
func (j *batchingJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if last := j.last(); last != expected {
		return 0, fmt.Errorf("append after record %d: %w: the last record is %d", expected, actors.ErrPosition, last)
	}
	if len(j.pending)+len(records) > pendingRecordsMax {
		if err := j.flush(); err != nil {
			return 0, err
		}
	}
	j.pending = append(j.pending, records...)
	return j.last(), nil
}

// flush appends the buffered records to the log. The caller must hold mu.
func (j *batchingJournal) flush() error {
	if len(j.pending) == 0 {
		return nil
	}
	_, err := j.Log.Append(j.pending)
	j.pending = nil
	return err
}

// WriteSnapshot implements actors.Journal.
func (j *batchingJournal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.flush(); err != nil {
		return err
	}
	return j.Log.WriteSnapshot(sequence, write)
}

// Close implements actors.Journal.
func (j *batchingJournal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.flush(), j.Log.Close())
}
