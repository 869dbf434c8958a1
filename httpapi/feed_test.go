package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// feedConn is a client in memory: it hands out the same request count times, one for each Read, and drops the answers.
type feedConn struct {
	request []byte
	count   int
	written int
}

func (c *feedConn) Read(b []byte) (int, error) {
	if c.count == 0 {
		return 0, io.EOF
	}
	c.count--
	return copy(b, c.request), nil
}

func (c *feedConn) Write(b []byte) (int, error) {
	c.written += len(b)
	return len(b), nil
}

func (c *feedConn) Close() error        { return nil }
func (c *feedConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
func (c *feedConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}
}
func (c *feedConn) SetDeadline(time.Time) error      { return nil }
func (c *feedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *feedConn) SetWriteDeadline(time.Time) error { return nil }

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
	if err := ctx.Request.Header.Read(bufio.NewReader(bytes.NewReader(request))); err != nil {
		t.Fatal(err)
	}
}

// newReusedContext is a context that a connection would use again and again.
func newReusedContext(t testing.TB, target, lines string) *fasthttp.RequestCtx {
	t.Helper()
	ctx := new(fasthttp.RequestCtx)
	// A connection's context keeps its buffer for bodies; one that was never on a connection would not.
	ctx.Init2(&feedConn{}, nil, false)
	readRequest(t, ctx, benchRequest(target, lines))
	return ctx
}
