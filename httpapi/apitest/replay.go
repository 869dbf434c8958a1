package apitest

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// loggedState is the part of a node's state that a replay of its log must reproduce.
type loggedState struct {
	currencies []engine.SavedCurrency
	accounts   []account.Summary
	records    []account.Record
	keyPolicy  account.KeyPolicy
}

func readLoggedState(system *actors.System) (*loggedState, error) {
	state := &loggedState{keyPolicy: system.KeyPolicy()}
	var err error
	if state.currencies, err = system.States(); err != nil {
		return nil, fmt.Errorf("read the rates: %w", err)
	}
	if state.accounts, err = system.ListAccounts(); err != nil {
		return nil, fmt.Errorf("read the accounts: %w", err)
	}
	for _, account := range state.accounts {
		record, _, err := system.ShowAccount(account.ID)
		if err != nil {
			return nil, fmt.Errorf("read account %d: %w", account.ID, err)
		}
		for i := range record.Keys {
			record.Keys[i].LastUsed = time.Time{} // a replay may give an older time: only quota leases and snapshots save it
		}
		state.records = append(state.records, record)
	}
	return state, nil
}

// errReplay is wrapped by the error of Node.Close if the replay of the log gives another state than that of the node.
var errReplay = errors.New("a second node that replays the log has another state than the node")

// checkReplay compares the state of a node with the state after the replay of its log. A quota lease is a part of an
// account's daily quota that is written to the log before the account uses it. Its size is lease requests. In the
// replayed state an account may therefore have used up to 2*lease requests more.
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
		// The account may have used a part of one lease and have taken the next lease in advance.
		if spent := replayed.accounts[i].SpentToday; spent < account.SpentToday || spent > account.SpentToday+2*lease {
			return fmt.Errorf("%w: account %d: it has spent %d requests, in the replayed state %d", errReplay, account.ID, account.SpentToday, spent)
		}
	}
	return nil
}

const differenceContextBytes = 200 // size of the text that firstDifference shows before and after a difference

// firstDifference returns a text that shows where two values differ first, or "" if they are equal.
func firstDifference(want, have any) string {
	if reflect.DeepEqual(want, have) {
		return ""
	}
	wantText, haveText := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", have)
	if wantText == haveText {
		return ""
	}
	offset := 0
	for offset < min(len(wantText), len(haveText)) && wantText[offset] == haveText[offset] {
		offset++
	}
	excerpt := func(text string) string {
		return text[min(len(text), max(0, offset-differenceContextBytes)):min(len(text), offset+differenceContextBytes)]
	}
	return fmt.Sprintf("live ...%s... replayed ...%s...", excerpt(wantText), excerpt(haveText))
}

// replay replays what a journal has stored, and returns the state.
func (n *Node) replay(data journalData) (*loggedState, error) {
	c := n.systemConfig(&memoryJournal{data: data})
	system, err := openSystem(&c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReplay, err)
	}
	replayed, err := readLoggedState(system)
	return replayed, errors.Join(err, system.Close())
}

// checkLog replays the log and returns an error if the replayed state is not that of the node.
func (n *Node) checkLog() error {
	if err := n.instance.system.Err(); err != nil {
		return fmt.Errorf("the node stopped by itself: %w", err)
	}
	live, err := readLoggedState(n.instance.system)
	if err != nil {
		return err
	}
	replayed, err := n.replay(n.instance.journal.stored())
	if err != nil {
		return err
	}
	return checkReplay(live, replayed, account.LeaseSizeDefault)
}
