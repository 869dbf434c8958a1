package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// quietConn is what connections in memory share: they have addresses and know no deadline.
type quietConn struct{}

func (quietConn) Close() error                     { return nil }
func (quietConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (quietConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (quietConn) SetDeadline(time.Time) error      { return nil }
func (quietConn) SetReadDeadline(time.Time) error  { return nil }
func (quietConn) SetWriteDeadline(time.Time) error { return nil }

// steadyConn is a client in memory: it hands out the same request count times, one for each Read, and drops the answers.
type steadyConn struct {
	quietConn
	request []byte
	count   int
	written int
	remote  net.Addr
}

func newSteadyConn(request []byte, count int) *steadyConn {
	return &steadyConn{request: request, count: count, remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}}
}

func (c *steadyConn) RemoteAddr() net.Addr { return c.remote }

func (c *steadyConn) Read(b []byte) (int, error) {
	if c.count == 0 {
		return 0, io.EOF
	}
	c.count--
	return copy(b, c.request), nil
}

func (c *steadyConn) Write(b []byte) (int, error) {
	c.written += len(b)
	return len(b), nil
}

// stillService gives the same pages for ever, at no cost: what is measured is httpapi.
type stillService struct {
	rates, ranking, full *engine.Page[*engine.Rate]
	history              *engine.Page[engine.HistoryEntry]
	currencies           *engine.Page[engine.CurrencyItem]
	institutions         *engine.Page[engine.InstitutionItem]
	detail               *engine.InstitutionDetail
}

// newStillService has a page of 45 rates in dollars, one of the first ten, and 100 rows of history.
func newStillService(t testing.TB) *stillService {
	t.Helper()
	fake := newFakeService()
	fake.catalogue = engine.DefaultCatalogue()
	fake.published, fake.days = nil, nil
	for _, institution := range fake.catalogue.Institutions() {
		rate := fakeRate(institution, "USD", "58.75", "59.3125", engine.Branch, engine.Commercial)
		fake.published = append(fake.published, rate)
		for back := range 7 {
			fake.days = append(fake.days, engine.HistoryEntry{
				Date: engine.DateOf(fakeNow()).AddDays(-back), InstitutionID: institution.ID, Currency: "USD", Channel: rate.Channel,
				Kind: rate.Kind, Buy: rate.Buy, Sell: rate.Sell, SourceID: rate.SourceID, DatePrecision: rate.DatePrecision,
			})
		}
	}
	fake.published = fake.published[:45]
	still := new(stillService)
	question := engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, Operation: engine.Buy, Cut: engine.Cut{Limit: 100}}
	still.full, _ = fake.Ranking(question)
	question.Limit = 10
	still.ranking, _ = fake.Ranking(question)
	still.rates, _ = fake.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 100}})
	still.history, _ = fake.History(engine.HistoryQuery{Cut: engine.Cut{Limit: 100}, To: engine.DateOf(fakeNow())})
	still.currencies, _ = fake.Currencies()
	still.institutions, _ = fake.Institutions(engine.InstitutionsQuery{Cut: engine.Cut{Limit: 100}})
	still.detail, _ = fake.Institution("bhd")
	return still
}

func (s *stillService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return s.currencies, nil
}

func (s *stillService) Institutions(engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return s.institutions, nil
}
func (s *stillService) Institution(string) (*engine.InstitutionDetail, error) { return s.detail, nil }
func (s *stillService) Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return s.rates, nil
}

func (s *stillService) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	if q.Limit == 10 {
		return s.ranking, nil
	}
	return s.full, nil
}

func (s *stillService) History(engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	return s.history, nil
}

// newStillServer is a server over a still service, with ids as in production.
func newStillServer(t testing.TB) *Server {
	t.Helper()
	return New(Config{
		Service: newStillService(t), Catalogue: engine.DefaultCatalogue(), Clock: fakeNow, RequestID: RequestIDs(1),
	})
}

// bareHandler answers the bytes of a template and does nothing else: the yardstick.
func bareHandler(answered *fasthttp.Response) fasthttp.RequestHandler {
	header := new(fasthttp.ResponseHeader)
	answered.Header.SetContentLength(len(answered.Body()))
	if err := header.Read(bufio.NewReader(bytes.NewReader(answered.Header.Header()))); err != nil { // each of its lines a header of its own
		panic(err)
	}
	body := bytes.Clone(answered.Body())
	return func(ctx *fasthttp.RequestCtx) {
		header.CopyTo(&ctx.Response.Header)
		ctx.Response.SetBodyRaw(body)
	}
}

// readRequest parses a request into a context.
func readRequest(t testing.TB, ctx *fasthttp.RequestCtx, request []byte) {
	t.Helper()
	ok(t, ctx.Request.Header.Read(bufio.NewReader(bytes.NewReader(request))))
}

// benchRequest is what a client library sends.
func benchRequest(target string, lines string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: api.example.do\r\nUser-Agent: client/1.0\r\nAccept: */*\r\n" + lines + "\r\n")
}

// letterBox is a mailer that keeps the newest email.
type letterBox struct{ account.Letter }

func (b *letterBox) Send(l account.Letter) error {
	b.Letter = l
	return nil
}

// newBenchGate is a node with one account and its key. Its clock goes on with each look, so that no window fills up.
func newBenchGate(t testing.TB) (gate account.Gate, key string) {
	t.Helper()
	var looks atomic.Int64
	steady := func() time.Duration { return time.Duration(looks.Add(1)) * 10 * time.Millisecond }
	box := new(letterBox)
	system := must(actors.Open(actors.Config{
		Dir: t.TempDir(), Clock: func() time.Time { return fakeNow().Add(steady() / 1000) }, Steady: steady, Mailer: box,
		Log: actors.LogConfig{ReserveBytes: -1}, Terms: account.Terms{Allowance: account.Allowance{Day: 1e9, Minute: 100_000}, Lease: 100_000},
	}))
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	<-system.Ready()
	luz, nowhere := email("luz@example.do"), account.Caller{}.Address
	ok(t, system.RequestCode(luz, nowhere))
	token, _, err := system.OpenSession(luz, box.Code.Reveal(), nowhere)
	ok(t, err)
	_, secret, err := system.CreateKey(token.Digest(), "bench")
	ok(t, err)
	return system, secret.Reveal()
}

// stillGate admits everybody at no cost: what is measured is httpapi.
type stillGate struct {
	grant      account.Grant
	transition account.Transition
}

func newStillGate() *stillGate {
	return &stillGate{grant: account.Grant{Account: 1, Verdict: account.Verdict{
		Admitted: true,
		Day:      account.Window{Limit: 1000, Remaining: 734, Reset: engine.NextMidnight(fakeNow())},
		Minute:   account.Window{Limit: 60, Remaining: 31, Reset: fakeNow().Add(41 * time.Second)},
	}}}
}

func (g *stillGate) Admit(account.Caller) (account.Grant, error) { return g.grant, nil }
func (g *stillGate) Refund(account.Grant)                        {}
func (g *stillGate) Enforced() bool                              { return true }
func (g *stillGate) Transition() account.Transition              { return g.transition }

// newGatedStillServer is a still server with a gate, behind a proxy.
func newGatedStillServer(t testing.TB, gate account.Gate) *Server {
	t.Helper()
	return New(Config{
		Service: newStillService(t), Catalogue: engine.DefaultCatalogue(), Clock: fakeNow, RequestID: RequestIDs(1), Gate: gate,
		Accounts: newFakeAccounts(fakeNow), Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		DeprecationLink: "https://tasard.example/keys",
	})
}

const admissionTarget = "/v1/rates/best?currency=USD&operation=buy&limit=10"

// admissionLines are what a client with a key sends through a proxy.
func admissionLines() string {
	return bearer(testKey(1)) + "\r\nX-Forwarded-For: 198.51.100.7, 127.0.0.3\r\n"
}
