package apitest

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// loggedState is the state of a node that its log must reproduce.
type loggedState struct {
	currencies []engine.SavedCurrency
	accounts   []account.Summary
	records    []account.Record
	keyPolicy  account.KeyPolicy
}

func readLoggedState(system *actors.System) (*loggedState, error) {
	k := &loggedState{keyPolicy: system.KeyPolicy()}
	var err error
	if k.currencies, err = system.States(); err != nil {
		return nil, fmt.Errorf("read the rates: %w", err)
	}
	if k.accounts, err = system.ListAccounts(); err != nil {
		return nil, fmt.Errorf("read the accounts: %w", err)
	}
	for _, account := range k.accounts {
		record, _, err := system.ShowAccount(account.ID)
		if err != nil {
			return nil, fmt.Errorf("read account %d: %w", account.ID, err)
		}
		for i := range record.Keys {
			record.Keys[i].LastUsed = time.Time{} // written only with leases and snapshots
		}
		k.records = append(k.records, record)
	}
	return k, nil
}

// errReplay is the result of the comparison in Node.Close.
var errReplay = errors.New("the log, replayed into a fresh node, does not give what the node knows")

// checkReplay compares a node with the replay of its log. After a crash an account may have lost up to two leases.
func checkReplay(live, replayed *loggedState, lease int) error {
	for _, part := range []struct {
		name       string
		want, have any
	}{
		{"rates", live.currencies, replayed.currencies},
		{"accounts", live.records, replayed.records},
		{"announcement", live.keyPolicy, replayed.keyPolicy},
	} {
		if difference := firstDifference(part.want, part.have); difference != "" {
			return fmt.Errorf("%w: %s: %s", errReplay, part.name, difference)
		}
	}
	for i, account := range live.accounts {
		// One lease is being spent, and the next may have been taken.
		if spent := replayed.accounts[i].SpentToday; spent < account.SpentToday || spent > account.SpentToday+2*lease {
			return fmt.Errorf("%w: account %d: it has spent %d requests, replayed %d", errReplay, account.ID, account.SpentToday, spent)
		}
	}
	return nil
}

// differenceContext is how much text around a difference is shown.
const differenceContext = 200

// firstDifference shows where two values differ, "" if they don't.
func firstDifference(want, have any) string {
	wanted, found := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", have)
	if wanted == found {
		return ""
	}
	at := 0
	for at < min(len(wanted), len(found)) && wanted[at] == found[at] {
		at++
	}
	show := func(text string) string {
		return text[min(len(text), max(0, at-differenceContext)):min(len(text), at+differenceContext)]
	}
	return fmt.Sprintf("live ...%s... replayed ...%s...", show(wanted), show(found))
}

// replay reads the log of a data directory in a copy of it.
func (n *Node) replay(dir string) (*loggedState, error) {
	files, err := copyLog(dir)
	if err != nil {
		return nil, err
	}
	scratch, err := newLogDir(files)
	if err != nil {
		return nil, err
	}
	c := n.systemConfig(scratch)
	system, err := openSystem(&c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errReplay, err), os.RemoveAll(scratch))
	}
	replayed, err := readLoggedState(system)
	return replayed, errors.Join(err, system.Close(), os.RemoveAll(scratch))
}

// checkLog replays the log and compares the result with the node.
func (n *Node) checkLog() error {
	if err := n.instance.system.Err(); err != nil {
		return fmt.Errorf("the node stopped by itself: %w", err)
	}
	live, err := readLoggedState(n.instance.system)
	if err != nil {
		return err
	}
	replayed, err := n.replay(n.instance.dir)
	if err != nil {
		return err
	}
	return checkReplay(live, replayed, account.LeaseSizeDefault)
}
