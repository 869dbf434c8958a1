package apitest

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine/account"
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
		journal := s.instance.journal
		if err := s.stop(); err != nil {
			return err
		}
		created, err := s.createAccounts(journal, count)
		if err = errors.Join(err, s.reopen(journal.stored())); err == nil {
			keys = created
		}
		return err
	})
	return keys
}

// createAccounts creates accounts in a journal that no node uses.
func (n *Node) createAccounts(journal *memoryJournal, count int) ([]string, error) {
	var elapsed atomic.Int64
	mailer := &codeMailer{}
	config := n.systemConfig(journal)
	config.Mailer = mailer
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
