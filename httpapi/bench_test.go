package httpapi

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// benchRequest is what a client library sends.
func benchRequest(target string, lines string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: api.example.do\r\nUser-Agent: client/1.0\r\nAccept: */*\r\n" + lines + "\r\n")
}

const benchKey = "Authorization: Bearer trd_live_abcdefgh_0123456789abcdef0123456789abcdef\r\n"

// benchPair measures an operation and, as "bare", a handler that answers the same bytes on the same server settings.
func benchPair(b *testing.B, target, lines string) {
	b.Helper()
	server := newStillServer(b)
	request := benchRequest(target, lines)
	ctx := new(fasthttp.RequestCtx)
	readRequest(b, ctx, request)
	server.Handler()(ctx)
	if ctx.Response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("status %d: %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	size := len(ctx.Response.Body())
	bare := newStillServer(b)
	bare.http.Handler = bareHandler(&ctx.Response)
	for _, run := range []struct {
		name string
		http *fasthttp.Server
	}{{"ours", server.http}, {"bare", bare.http}} {
		b.Run(run.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			conn := &feedConn{request: request, count: b.N}
			if err := run.http.ServeConn(conn); err != nil {
				b.Fatal(err)
			}
			if conn.written < b.N*size {
				b.Fatalf("%d bytes written for %d answers of %d", conn.written, b.N, size)
			}
		})
	}
}

func BenchmarkBest(b *testing.B) {
	benchPair(b, "/v1/rates/best?currency=USD&operation=buy&limit=10", benchKey)
}

func BenchmarkBestFull(b *testing.B) {
	benchPair(b, "/v1/rates/best?currency=USD&operation=buy", benchKey)
}

func BenchmarkBestFullGzip(b *testing.B) {
	benchPair(b, "/v1/rates/best?currency=USD&operation=buy", benchKey+"Accept-Encoding: gzip, deflate, br\r\n")
}

func BenchmarkRates(b *testing.B) { benchPair(b, "/v1/rates?currency=USD", benchKey) }

func BenchmarkHistory(b *testing.B) {
	benchPair(b, "/v1/rates/history?currency=USD&from=2025-11-15&to=2025-11-21", benchKey)
}

func BenchmarkCurrencies(b *testing.B) { benchPair(b, "/v1/currencies", benchKey) }

func BenchmarkInstitution(b *testing.B) { benchPair(b, "/v1/institutions/bhd", benchKey) }

// An amount is never kept, so each request is as one that was never seen before.
func BenchmarkConvert(b *testing.B) {
	benchPair(b, "/v1/convert?currency=USD&operation=buy&amount=1234.56", benchKey)
}

func BenchmarkConvertGzip(b *testing.B) {
	benchPair(b, "/v1/convert?currency=USD&operation=buy&amount=1234.56", benchKey+"Accept-Encoding: gzip\r\n")
}
