package actors

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	crashChildDir  = "TASARD_ACTORS_CRASH_CHILD"
	crashChildTime = "TASARD_ACTORS_CRASH_TIME" // since noon
	crashChildLies = "TASARD_ACTORS_CRASH_LIES" // the planted bug
)

const (
	crashAccounts = 6
	crashClients  = 3 // of each account
	crashLimit    = 250
)

func crashChildConfig(dir string, start time.Duration) Config {
	began := time.Now() //nolint:forbidigo // a node that is killed runs on real time
	return Config{
		Dir: dir, Clock: func() time.Time { return noon.Add(start + time.Since(began)) }, //nolint:forbidigo // the same
		Log: LogConfig{SegmentBytes: 16 << 10}, SnapshotRecords: 200, Mailer: newFakeMailer(), AnonymousClientsMax: 64, AccountShards: 3,
		QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: crashLimit, Minute: accounts.QuotaMinuteMax}},
	}
}

// lateJournal acknowledges at once and keeps a batch only together with the next one.
type lateJournal struct {
	commitlog.Journal
	last  uint64
	later [][]byte
}

func (l *lateJournal) Last() uint64 { return l.last }

func (l *lateJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	if len(l.later) > 0 {
		if _, err := l.Journal.Append(expected-uint64(len(l.later)), l.later); err != nil {
			return 0, err
		}
	}
	l.later = nil
	for _, record := range records {
		l.later = append(l.later, bytes.Clone(record))
	}
	l.last = expected + uint64(len(records))
	return l.last, nil
}

func (l *lateJournal) WriteSnapshot(uint64, func(io.Writer) error) error { return nil }

func (l *lateJournal) DropBefore(uint64) error { return nil }

// child is the node that is killed. It says, one line each:
//
//	found ACCOUNT SPENT          at the start
//	key ACCOUNT ID ACTIVE        at the start, for each key
//	shown RATE                   at the start
//	ready                        the load begins
//	g ACCOUNT                    a request was admitted
//	q ACCOUNT                    a request was refused: the day is used up
//	k ACCOUNT ID                 a key was made
//	r ACCOUNT ID                 a key is about to be revoked
//	R ACCOUNT ID                 it was
//	o RATE                       a rate was acknowledged
//	s RATE                       a rate was served
//	bad WORDS                    what must never happen did
type child struct {
	*System
	mu      sync.Mutex
	revoked map[string]bool
}

// say is one write, so that lines stay whole.
func (c *child) say(format string, values ...any) {
	_, _ = fmt.Fprintf(os.Stdout, format+"\n", values...)
}

func crashChild(dir string) int {
	start, _ := time.ParseDuration(os.Getenv(crashChildTime))
	config := crashChildConfig(dir, start)
	if os.Getenv(crashChildLies) != "" {
		honest, err := openLocal(config)
		if err != nil {
			return 1
		}
		config.Journal = &lateJournal{Journal: honest, last: honest.Last()}
	}
	c := &child{revoked: map[string]bool{}}
	var err error
	if c.System, err = Open(config); err != nil {
		c.say("bad %v", err)
		return 1
	}
	select {
	case <-c.Ready():
	case <-c.Done():
		c.say("bad %v", c.Err())
		return 1
	}
	if err := c.settleIn(); err != nil {
		c.say("bad %v", err)
		return 1
	}
	shown := c.shown()
	c.say("shown %d", shown)
	c.say("ready")
	var clients sync.WaitGroup
	clients.Go(func() { c.publish(shown) })
	clients.Go(func() { c.watch(shown) })
	for number := range crashAccounts * crashClients {
		random := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(number)))
		clients.Go(func() { c.client(uint64(number%crashAccounts+1), random) })
	}
	clients.Wait()
	return 0
}

// settleIn makes the accounts at the first start, and says what there is.
func (c *child) settleIn() error {
	list, err := c.ListAccounts()
	if err != nil {
		return err
	}
	mail := c.config.Mailer.(*fakeMailer)
	for number := len(list) + 1; number <= crashAccounts; number++ {
		email, err := account.ParseEmail(fmt.Sprintf("user%d@example.com", number))
		if err != nil {
			return err
		}
		if err := c.RequestCode(email, requester(number)); err != nil {
			return err
		}
		if _, _, err := c.OpenSession(email, mail.code(email), requester(number)); err != nil {
			return err
		}
	}
	for _, one := range list {
		c.say("found %d %d", one.ID, one.SpentToday)
		record, _, err := c.ShowAccount(one.ID)
		if err != nil {
			return err
		}
		for _, key := range record.Keys {
			c.say("key %d %s %t", one.ID, key.ID, key.Active())
			c.revoked[key.ID] = !key.Active()
		}
	}
	return nil
}

func (c *child) client(account uint64, random *rand.Rand) {
	for {
		record, _, err := c.ShowAccount(account)
		if err != nil {
			c.say("bad %v", err)
			return
		}
		switch roll := random.IntN(40); {
		case len(record.Keys) == 0 || roll == 0:
			c.make(account)
		case roll == 1:
			c.revoke(account, record.Keys[len(record.Keys)-1-random.IntN(min(2, len(record.Keys)))].ID)
		default:
			for range 10 {
				c.ask(account, record.Keys[random.IntN(len(record.Keys))])
			}
		}
	}
}

// shown is the number of the newest rate that a caller can see.
func (c *child) shown() int {
	page, err := c.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: "USD"}, PageRequest: engine.PageRequest{Limit: 1}})
	if err != nil || len(page.Items) == 0 {
		return 0
	}
	return numberOf(page.Items[0].Sell.String())
}

func (c *child) publish(number int) {
	for {
		number++
		at, side := c.config.Clock(), sideOf(number)
		if _, err := c.Observe([]engine.Refresh{saying("a", at, "USD", "58", side, "popular"), saying("a", at, "EUR", "58", side, "popular")}); err != nil {
			c.say("bad %v", err)
			return
		}
		c.say("o %d", number)
	}
}

func (c *child) watch(number int) {
	for {
		if now := c.shown(); now > number {
			number = now
			c.say("s %d", now)
		}
	}
}

func (c *child) make(account uint64) {
	switch key, _, err := c.accounts.CreateKeyFor(account, ""); {
	case err == nil:
		c.say("k %d %s", account, key.ID)
	case !isCode(err, engine.CodeKeyLimitReached):
		c.say("bad %v", err)
	}
}

func (c *child) revoke(account uint64, id string) {
	c.say("r %d %s", account, id)
	if err := c.accounts.RevokeKeyOf(account, id); err != nil {
		c.say("bad %v", err)
		return
	}
	c.mu.Lock()
	c.revoked[id] = true
	c.mu.Unlock()
	c.say("R %d %s", account, id)
}

func (c *child) ask(id uint64, key account.KeyRecord) {
	c.mu.Lock()
	revoked := c.revoked[key.ID]
	c.mu.Unlock()
	grant, err := c.Admit(account.Caller{Key: key.Digest, HasKey: true, Address: client(int(id))})
	switch {
	case err != nil:
		c.say("bad %v", err)
	case grant.Account == 0: // anonymous: the key is revoked
	case revoked:
		c.say("bad key %s was let in after its revocation", key.ID)
	case grant.Admitted:
		c.say("g %d", id)
	case grant.DenyCode == engine.CodeQuotaExceeded:
		c.say("q %d", id)
	default:
		c.say("bad %+v", grant)
	}
}
