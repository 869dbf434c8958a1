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

// addressedConn is what connections in memory share: they have addresses and know no deadline.
type addressedConn struct{}

func (addressedConn) Close() error                     { return nil }
func (addressedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (addressedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (addressedConn) SetDeadline(time.Time) error      { return nil }
func (addressedConn) SetReadDeadline(time.Time) error  { return nil }
func (addressedConn) SetWriteDeadline(time.Time) error { return nil }

// repeatingConn is a client in memory: it hands out the same request count times, one for each Read, and drops the
// answers.
type repeatingConn struct {
	addressedConn
	request []byte
	count   int
	written int
	remote  net.Addr
}

func newRepeatingConn(request []byte, count int) *repeatingConn {
	return &repeatingConn{request: request, count: count, remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}}
}

func (c *repeatingConn) RemoteAddr() net.Addr { return c.remote }

func (c *repeatingConn) Read(b []byte) (int, error) {
	if c.count == 0 {
		return 0, io.EOF
	}
	c.count--
	return copy(b, c.request), nil
}

func (c *repeatingConn) Write(b []byte) (int, error) {
	c.written += len(b)
	return len(b), nil
}

// staticService gives the same pages for ever, at no cost: what is measured is httpapi.
type staticService struct {
	rates, ranking, full *engine.Page[*engine.Rate]
	history              *engine.Page[engine.HistoryEntry]
	currencies           *engine.Page[engine.CurrencyItem]
	institutions         *engine.Page[engine.InstitutionItem]
	detail               *engine.InstitutionDetail
}

// newStaticService has a page of 45 rates in dollars, one of the first ten, and 100 rows of history.
func newStaticService(t testing.TB) *staticService {
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
	still := new(staticService)
	question := engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, Operation: engine.Buy, PageRequest: engine.PageRequest{Limit: 100}}
	still.full, _ = fake.Ranking(question)
	question.Limit = 10
	still.ranking, _ = fake.Ranking(question)
	still.rates, _ = fake.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 100}})
	still.history, _ = fake.History(engine.HistoryQuery{PageRequest: engine.PageRequest{Limit: 100}, To: engine.DateOf(fakeNow())})
	still.currencies, _ = fake.Currencies()
	still.institutions, _ = fake.Institutions(engine.InstitutionsQuery{PageRequest: engine.PageRequest{Limit: 100}})
	still.detail, _ = fake.Institution("bhd")
	return still
}

func (s *staticService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return s.currencies, nil
}

func (s *staticService) Institutions(engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return s.institutions, nil
}
func (s *staticService) Institution(string) (*engine.InstitutionDetail, error) { return s.detail, nil }
func (s *staticService) Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return s.rates, nil
}

func (s *staticService) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	if q.Limit == 10 {
		return s.ranking, nil
	}
	return s.full, nil
}

func (s *staticService) History(engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	return s.history, nil
}

func newStaticServer(t testing.TB) *Server {
	t.Helper()
	return New(Config{
		Service: newStaticService(t), Catalogue: engine.DefaultCatalogue(), Clock: fakeNow, RequestID: RequestIDs(1),
	})
}

func readRequest(t testing.TB, ctx *fasthttp.RequestCtx, request []byte) {
	t.Helper()
	ok(t, ctx.Request.Header.Read(bufio.NewReader(bytes.NewReader(request))))
}

func benchRequest(target string, lines string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: api.example.do\r\nUser-Agent: client/1.0\r\nAccept: */*\r\n" + lines + "\r\n")
}

type lastMail struct{ account.LoginMail }

func (b *lastMail) Send(l account.LoginMail) error {
	b.LoginMail = l
	return nil
}

// tickingClock goes on with each look, so that no window of a quota fills up.
func tickingClock() func() time.Duration {
	var looks atomic.Int64
	return func() time.Duration { return time.Duration(looks.Add(1)) * 10 * time.Millisecond }
}

// newBenchSystem is a node with an account that has a key.
func newBenchSystem(t testing.TB) (system *actors.System, key string) {
	t.Helper()
	box, monotonic := new(lastMail), tickingClock()
	system = must(actors.Open(actors.Config{
		Dir: t.TempDir(), Clock: func() time.Time { return fakeNow().Add(monotonic() / 1000) }, Monotonic: monotonic, Mailer: box,
		Log: actors.LogConfig{ReserveBytes: -1}, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1e9, Minute: 100_000}, LeaseSize: 100_000},
	}))
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	<-system.Ready()
	ana, from := email("ana@example.do"), netip.MustParseAddr("198.18.0.1")
	ok(t, system.RequestCode(ana, account.Requester{Address: from}))
	token, _, err := system.OpenSession(ana, box.Code.Reveal(), account.Requester{Address: from})
	ok(t, err)
	_, secret, err := system.CreateKey(token.Digest(), "bench")
	ok(t, err)
	return system, secret.Reveal()
}
