package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// operator is who does things to accounts.
const operator = "apitest"

// Publish has institutions publish rates now. They are on disk and in force when it returns; what the rules hold back is an
// error.
func (n *Node) Publish(rates ...Rate) error {
	return n.press(func() error { return n.publish(rates) })
}

func (n *Node) publish(rates []Rate) error {
	list, err := refreshes(rates, n.Clock.Now())
	if err != nil || len(list) == 0 {
		return err
	}
	receipt, err := n.life.system.Observe(list)
	return errors.Join(err, refused(&receipt))
}

// Observe hands over what sources say, as a collector does. What the rules hold back is in the receipt, and no error.
func (n *Node) Observe(list ...engine.Refresh) (receipt engine.Receipt, err error) {
	err = n.press(func() error {
		receipt, err = n.life.system.Observe(list)
		return err
	})
	return receipt, err
}

// Refresh has every source say now what it said last, as at an hour of the schedule: everything that was published is
// current again.
func (n *Node) Refresh() error {
	return n.press(func() error {
		return n.sayAgain(time.Time{}, func(string, *engine.Offer) bool { return true })
	})
}

// Expire has the rates of an institution in a currency expire now, whatever their source, channel and kind. "" is all.
func (n *Node) Expire(institution, currency string) error {
	return n.press(func() error {
		found := false
		err := n.sayAgain(n.Clock.Now(), func(code string, offer *engine.Offer) bool {
			matches := (currency == "" || code == currency) && (institution == "" || offer.Key.Institution == institution)
			found = found || matches
			return matches
		})
		if err == nil && !found {
			return fmt.Errorf("expire: nothing is published of institution %q in currency %q", institution, currency)
		}
		return err
	})
}

func (n *Node) sayAgain(expires time.Time, match func(string, *engine.Offer) bool) error {
	states, err := n.life.system.States()
	if err != nil {
		return err
	}
	return n.publish(again(states, expires, match))
}

// Fault spoils requests from now on.
func (n *Node) Fault(fault Fault) error { return n.faults.add(fault) }

// ClearFaults ends all faults.
func (n *Node) ClearFaults() { n.faults.clear() }

// Requests are those that the node was sent, the newest 5,000 at least.
func (n *Node) Requests() []Request { return n.requests.all() }

// ClearRequests forgets them.
func (n *Node) ClearRequests() { n.requests.clear() }

// ClientFrom reaches the node as a caller with another address, who is counted apart. A node on a port sees the addresses of
// its callers, and gives an error.
func (n *Node) ClientFrom(address string) (*http.Client, error) {
	from, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if n.memory == nil {
		return nil, errors.New("client: a node on a port sees the addresses that its callers have")
	}
	client := n.memory.client(from)
	return client, n.press(func() error {
		n.clients = append(n.clients, client)
		return nil
	})
}

// Restart stops the node in order and starts it again. Requests under way get their answers.
func (n *Node) Restart() error {
	return n.press(func() error {
		n.leave(false)
		old := n.life
		n.life = nil
		if err := old.system.Close(); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		return n.arrive(old.dir)
	})
}

// Crash ends the node as a kill does, and starts it on what was written by then. Connections break off, and what was answered
// before is kept.
func (n *Node) Crash() error {
	return n.press(func() error {
		n.leave(true) // first: an answer after the copy would be one that the copy does not know
		files, err := imageOf(n.life.dir)
		if err != nil {
			n.hall.resume(n.life.server)
			return err
		}
		return n.replace(files)
	})
}

// Snapshot keeps what is on disk now, and the time.
func (n *Node) Snapshot() (state *State, err error) {
	err = n.press(func() error {
		if _, err := n.life.system.States(); err != nil { // behind everything that is under way
			return err
		}
		files, err := imageOf(n.life.dir)
		state = &State{files, n.Clock.Now(), copied(n.accounts), n.random.place()}
		return err
	})
	return state, err
}

// Restore goes back to a state: the node starts on it, at its time.
func (n *Node) Restore(state *State) error {
	return n.press(func() error {
		n.Clock.Set(state.at)
		n.leave(false)
		if err := n.replace(state.files); err != nil {
			return err
		}
		return n.recall(state) // behind the start, which draws as well
	})
}

// recall takes over what of a state lies beside the log.
func (n *Node) recall(state *State) error {
	n.accounts = copied(state.accounts)
	return n.random.goTo(state.chance)
}

func copied(accounts map[string]*holder) map[string]*holder {
	own := map[string]*holder{}
	for email, h := range accounts {
		own[email] = &holder{h.email, h.account, slices.Clone(h.keys)}
	}
	return own
}

// replace starts the node, which everybody has left, on other files.
func (n *Node) replace(files map[string][]byte) error {
	dir, err := directory(files)
	if err != nil {
		n.hall.resume(n.life.server)
		return err
	}
	if err := n.abandon(); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return n.arrive(dir)
}

// leave shows callers out. Their idle connections are closed first, so that nobody asks over one that is dead.
func (n *Node) leave(abrupt bool) {
	if !abrupt {
		for _, client := range append(slices.Clone(n.clients), n.Client) {
			client.CloseIdleConnections()
		}
	}
	n.hall.pause(abrupt)
}

func (n *Node) arrive(dir string) error {
	if err := n.live(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	n.hall.resume(n.life.server)
	return nil
}

// Announce says from when on keys are required, at least 14 days ahead (K7).
func (n *Node) Announce(requiredAt time.Time) error {
	return n.press(func() error {
		_, err := n.life.system.Announce(requiredAt, operator)
		return err
	})
}

// Code is the newest login code that was sent to an address.
func (n *Node) Code(email string) (string, error) {
	address, err := account.ParseEmail(email)
	if err != nil {
		return "", err
	}
	code, found := n.letters.code(address)
	if !found {
		return "", fmt.Errorf("no login code was sent to %s", email)
	}
	return code, nil
}

// holder is an account that the harness made.
type holder struct {
	email   account.Email
	account uint64
	keys    []string
}

// Key is a new key of a new account: the secret text that goes behind "Bearer ".
func (n *Node) Key() (key string, err error) {
	err = n.press(func() error {
		key, err = n.newKey(nameless(len(n.accounts)))
		return err
	})
	return key, err
}

// nameless is the address of the account behind so many others.
func nameless(number int) string { return fmt.Sprintf("key-%d@apitest.example", number+1) }

// KeyOf is a new key of the account of an address, which is made at the first one. An account has at most two (K5), and a
// session is opened for each: one minute of the clock must lie between them (K3).
func (n *Node) KeyOf(email string) (key string, err error) {
	err = n.press(func() error {
		key, err = n.newKey(email)
		return err
	})
	return key, err
}

// newKey goes the way of a new user.
func (n *Node) newKey(email string) (string, error) {
	made, err := signUp(n.life.system, &n.letters, email, len(n.accounts))
	if err != nil {
		return "", err
	}
	owner, err := n.holderOf(made.email)
	if err != nil {
		return "", err
	}
	owner.keys = append(owner.keys, made.keys...)
	return made.keys[0], nil
}

// visitor is an address of its own for each account: the brake on logins is by address (K2).
func visitor(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(number >> 8), byte(number)})
}

// holderOf is the account of an address.
func (n *Node) holderOf(address account.Email) (*holder, error) {
	if owner := n.accounts[address.String()]; owner != nil {
		return owner, nil
	}
	list, err := n.life.system.ListAccounts()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(a account.Summary) bool { return a.Email == address.ID() })
	if at < 0 {
		return nil, fmt.Errorf("nobody has an account as %s", address)
	}
	owner := &holder{email: address, account: list[at].ID}
	n.accounts[address.String()] = owner
	return owner, nil
}

// SetQuota gives the account of an address, or of a key that Key or KeyOf gave, quotas of its own; 0 is the node's. It has
// an effect where limits are on.
func (n *Node) SetQuota(who string, day, minute int) error {
	return n.operate(who, func(id uint64) error {
		return n.life.system.LimitAccount(id, account.Allowance{Day: day, Minute: minute}, operator)
	})
}

// Suspend refuses the keys of an account; see SetQuota for who.
func (n *Node) Suspend(who string) error {
	return n.operate(who, func(account uint64) error { return n.life.system.SuspendAccount(account, "by the test", operator) })
}

// Unsuspend takes that back.
func (n *Node) Unsuspend(who string) error {
	return n.operate(who, func(account uint64) error { return n.life.system.RestoreAccount(account, operator) })
}

func (n *Node) operate(who string, do func(account uint64) error) error {
	return n.press(func() error {
		for _, owner := range n.accounts {
			if slices.Contains(owner.keys, who) {
				return do(owner.account)
			}
		}
		if !strings.Contains(who, "@") {
			return errors.New("this is neither an address nor a key that Key or KeyOf gave")
		}
		address, err := account.ParseEmail(who)
		if err != nil {
			return err
		}
		owner, err := n.holderOf(address)
		if err != nil {
			return err
		}
		return do(owner.account)
	})
}
