package account

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	rowsPerSet = 8
	// AnonymousRowsDefault is the default number of addresses in a table.
	AnonymousRowsDefault = 1 << 16
)

// AnonymousTable counts requests without an API key by client address, in memory only. An IPv6 request also counts for
// its /56 and /48, which have larger quotas. The table has a fixed size. It is divided into sets of rows, and an
// address's hash selects its set. A new address replaces the least recently used row of its set.
type AnonymousTable struct {
	rows []anonymousClient
	hash func(key uint64) uint64
}

type anonymousClient struct {
	key    uint64        // an IPv4 address, or the upper half of an IPv6 prefix
	bits   int           // length of the prefix, 32 for an IPv4 address; 0: the row is not used
	last   time.Duration // monotonic time (ClockReading.Monotonic) of the newest request
	day    DayCounter
	minute minuteWindow
}

// NewAnonymousTable returns a table with at least this many rows. hash must have a random seed, so that clients can't
// choose addresses for one set.
func NewAnonymousTable(rows int, hash func(uint64) uint64) *AnonymousTable {
	sets := max(1, (rows+rowsPerSet-1)/rowsPerSet)
	return &AnonymousTable{rows: make([]anonymousClient, sets*rowsPerSet), hash: hash}
}

// Admit admits and charges one request of an address, or denies it.
func (t *AnonymousTable) Admit(addr netip.Addr, now ClockReading, quota Quota) QuotaResult {
	var result QuotaResult
	var rows [len(ipv6Networks)]*anonymousClient
	for i, n := range clientNetworks(addr) {
		if n.clients == 0 {
			continue
		}
		rows[i] = t.row(addr, n.bits)
		rows[i].last = now.Monotonic
		of := rows[i].quotaResult(now, Quota{n.clients * quota.Day, n.clients * quota.Minute})
		if i == 0 {
			result = of
		} else if !of.Admitted {
			result.denyBy(&of)
		}
		if !result.Admitted {
			return result
		}
	}
	for _, row := range rows {
		if row != nil {
			row.day.add(now.today())
			row.minute.add(now)
		}
	}
	result.charge()
	return result
}

// denyBy denies a request that exceeds the quota of the client's network. The exceeded window of the client then has no
// requests remaining until the network's reset.
func (r *QuotaResult) denyBy(network *QuotaResult) {
	r.Admitted, r.DenyCode, r.RetryAfter = false, network.DenyCode, network.RetryAfter
	window, of := &r.Minute, &network.Minute
	if r.DenyCode == engine.CodeQuotaExceeded {
		window, of = &r.Day, &network.Day
	}
	window.Remaining, window.Reset = 0, of.Reset
}

// row returns the row of a prefix of an address. It creates the row if there is none.
func (t *AnonymousTable) row(addr netip.Addr, bits int) *anonymousClient {
	row, free := t.find(addr, bits)
	if row == nil {
		row = free
		*row = anonymousClient{key: prefixKey(addr, bits), bits: bits, minute: minuteWindow{admitted: row.minute.admitted[:0]}}
	}
	return row
}

// Refund takes back one request of an address. admittedAt is the clock reading of its admission.
func (t *AnonymousTable) Refund(addr netip.Addr, admittedAt ClockReading) {
	for _, n := range clientNetworks(addr) {
		row, _ := t.find(addr, n.bits)
		if row == nil {
			continue
		}
		row.minute.refund(admittedAt)
		if row.day.Day == admittedAt.today() && row.day.Count > 0 {
			row.day.Count--
		}
	}
}

func (c *anonymousClient) quotaResult(now ClockReading, quota Quota) QuotaResult {
	c.minute.expire(now)
	today := max(now.today(), c.day.Day)
	day := Window{quota.Day, max(0, quota.Day-c.day.on(today)), endOf(today)}
	return quotaResultOf(day, c.minute.window(quota.Minute, now), now.Wall)
}

// find returns the row of an address's prefix, or else a row to replace.
func (t *AnonymousTable) find(addr netip.Addr, bits int) (row, free *anonymousClient) {
	key := prefixKey(addr, bits)
	sets := uint64(len(t.rows) / rowsPerSet)
	set := t.rows[t.hash(key)%sets*rowsPerSet:][:rowsPerSet]
	free = &set[0]
	for i := range set {
		row := &set[i]
		if row.key == key && row.bits == bits {
			return row, nil
		}
		if free.bits != 0 && (row.bits == 0 || row.last < free.last) {
			free = row
		}
	}
	return nil, free
}

// prefixKey returns an IPv4 address, or the upper half of an IPv6 prefix.
func prefixKey(addr netip.Addr, bits int) uint64 {
	addr = addr.Unmap()
	if addr.Is4() {
		ipv4 := addr.As4()
		return uint64(binary.BigEndian.Uint32(ipv4[:]))
	}
	ipv6 := addr.As16()
	return binary.BigEndian.Uint64(ipv6[:8]) &^ (1<<(64-bits) - 1)
}

// Requester is the client of a request for a login code or of a login attempt.
type Requester struct {
	Address netip.Addr
	// Browser is the digest of a random id known only to the browser. A code requested by a browser works only there,
	// so that other clients can't use up the tries of the code. Zero: the request is not from a browser.
	Browser Digest
}

// Limits on the logins of one client address.
const (
	clientCodesHourMax = 30 // requests for a login code
	clientTriesHourMax = 60 // login attempts
	// A network with more than frequentUses code requests and login attempts on a day may use only a smaller part of
	// the limits shared by all clients; see Registry.share.
	frequentUses = 4
	clientsMax   = 1 << 16
	clientsKept  = clientsMax * 3 / 4 // number of clients kept by evict
)

// loginClient counts the login requests of one client address or network.
type loginClient struct {
	prefix       netip.Prefix
	codes, tries HourCounter
	// Set only for the widest network of a client:
	uses  DayCounter            // code requests and login attempts
	mails map[Digest]DayCounter // requested mails, by the digest of the e-mail address
}

func (c *loginClient) newest() int64 { return max(c.codes.Newest, c.tries.Newest) }

// loginClients is a table of at most clientsMax clients and networks, in memory only.
type loginClients map[netip.Prefix]*loginClient

// clientNetwork is a prefix of an address: its length in bits, and its limit in limits of one client (0 = no limit).
type clientNetwork struct{ bits, clients int }

// clientNetworks returns the prefixes of an address for which requests are counted: first the client itself (see
// ClientPrefix), then wider networks. The holder of an IPv6 /48 could use 65,536 /64s as different clients.
func clientNetworks(addr netip.Addr) []clientNetwork {
	if addr.Unmap().Is4() {
		return ipv4Networks[:]
	}
	return ipv6Networks[:]
}

var (
	ipv4Networks = [...]clientNetwork{{32, 1}, {24, 0}}
	// Providers of mobile networks give each phone a /64, so a wider network may have many clients.
	ipv6Networks = [...]clientNetwork{{64, 1}, {56, 16}, {48, 64}}
)

// WidestPrefix returns the widest prefix of an address that has a limit.
func WidestPrefix(addr netip.Addr) netip.Prefix {
	widest := clientNetworks(addr)[0]
	for _, n := range clientNetworks(addr) {
		if n.clients > 0 {
			widest = n
		}
	}
	return networkPrefix(addr, widest.bits)
}

func networkPrefix(addr netip.Addr, bits int) netip.Prefix {
	prefix, _ := addr.Unmap().WithZone("").Prefix(bits)
	return prefix
}

// ClientPrefix returns the prefix of one client: the /32 of an IPv4 address, or the /64 of an IPv6 address.
func ClientPrefix(addr netip.Addr) netip.Prefix {
	return networkPrefix(addr, clientNetworks(addr)[0].bits)
}

// charge counts a request of an address in the counter selected by of. It returns an error if the client or one of its
// networks is at the limit.
func (t loginClients) charge(addr netip.Addr, of func(*loginClient) *HourCounter, limit int, now ClockReading) error {
	for _, n := range clientNetworks(addr) {
		if c := t[networkPrefix(addr, n.bits)]; c != nil && n.clients > 0 {
			if wait := of(c).wait(now.Monotonic, n.clients*limit); wait > 0 {
				return errTooManyAttempts(wait)
			}
		}
	}
	var widest *loginClient
	for _, n := range clientNetworks(addr) {
		widest = t.get(networkPrefix(addr, n.bits))
		of(widest).add(now.Monotonic)
	}
	widest.uses.add(now.today())
	return nil
}

// uses returns the number of today's code requests and login attempts from the widest network of an address.
func (t loginClients) uses(addr netip.Addr, now ClockReading) int {
	return t.network(addr).uses.on(now.today())
}

// network returns the counters of the widest network of an address, or empty ones.
func (t loginClients) network(addr netip.Addr) *loginClient {
	networks := clientNetworks(addr)
	return cmp.Or(t[networkPrefix(addr, networks[len(networks)-1].bits)], &loginClient{})
}

// addMail counts a mail for the network of a client. It forgets the mails of earlier days.
func (t loginClients) addMail(addr netip.Addr, email EmailID, today engine.Date) {
	c := t.network(addr)
	if c.mails == nil {
		c.mails = map[Digest]DayCounter{}
	}
	maps.DeleteFunc(c.mails, func(_ Digest, n DayCounter) bool { return n.Day < today })
	n := c.mails[email.digest]
	n.add(today)
	c.mails[email.digest] = n
}

// forgetMails lets every network request codes for an address again.
func (t loginClients) forgetMails(email EmailID) {
	for _, c := range t {
		delete(c.mails, email.digest)
	}
}

func (t loginClients) get(prefix netip.Prefix) *loginClient {
	c := t[prefix]
	if c == nil {
		t.evict()
		c = &loginClient{prefix: prefix}
		t[prefix] = c
	}
	return c
}

// evict removes the least recently used quarter of a full table. To remove only one client would need a slow search for
// each new client.
func (t loginClients) evict() {
	if len(t) < clientsMax {
		return
	}
	clients := slices.SortedFunc(maps.Values(t), func(a, b *loginClient) int {
		return cmp.Or(cmp.Compare(a.newest(), b.newest()), a.prefix.Addr().Compare(b.prefix.Addr()))
	})
	for _, c := range clients[:len(clients)-clientsKept] {
		delete(t, c.prefix)
	}
}

// errTooManyAttempts does not depend on the e-mail address, so that it does not reveal whether the address is known.
func errTooManyAttempts(wait time.Duration) error {
	return &engine.Error{Code: engine.CodeRateLimited, Message: "too many attempts from your network; try again later", RetryAfter: wait}
}
