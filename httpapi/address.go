package httpapi

import (
	"bytes"
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// forwardedFor is the one header that may name a client, and only when a trusted proxy sends it (L8). Forwarded and X-Real-IP
// never do: a proxy that is not told to overwrite them passes on what the client made up.
const forwardedFor = "X-Forwarded-For"

// addressBytesMax bounds an entry of X-Forwarded-For: an IPv6 address, its zone, brackets and port.
const addressBytesMax = 80

// proxies are the networks whose hosts may say for whom they ask.
type proxies []netip.Prefix

func (p proxies) trust(addr netip.Addr) bool {
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// clientAddress is who asks: the other end of the connection, or, when that is a trusted proxy, whom it names. Without zone,
// and an IPv4 address as one, however it was written. The zero address stands for a connection that has none.
func (s *Server) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	peer := peerOf(ctx)
	if len(s.proxies) == 0 || !s.proxies.trust(peer) {
		return peer
	}
	return s.proxies.client(peer, ctx.Request.Header.PeekAll(forwardedFor))
}

// peerOf is the other end of a connection.
func peerOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if c, ok := ctx.Conn().(*conn.Conn); ok {
		return c.Peer()
	}
	return conn.PeerOf(ctx.RemoteAddr())
}

// client walks the lists from the right, where the trusted hops wrote, to the first address that is no trusted proxy. What is
// left of it anybody may have written. An entry that is no address ends the walk at the hop that wrote it; a list of trusted
// hops alone ends at the first of them.
func (p proxies) client(peer netip.Addr, lines [][]byte) netip.Addr {
	client := peer
	for i := len(lines) - 1; i >= 0; i-- {
		rest := lines[i]
		for len(rest) > 0 {
			entry := rest
			if comma := bytes.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				rest = nil
			}
			if entry = fields.TrimBlanks(entry); len(entry) == 0 {
				continue
			}
			addr, ok := forwardedAddress(entry)
			if !ok {
				return client
			}
			if client = addr; !p.trust(addr) {
				return client
			}
		}
	}
	return client
}

// forwardedAddress reads 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80, each IPv6 address with or
// without a zone, which is dropped: it means something to the proxy alone.
func forwardedAddress(entry []byte) (addr netip.Addr, ok bool) {
	if len(entry) > addressBytesMax {
		return netip.Addr{}, false
	}
	var err error
	last, colon := len(entry)-1, bytes.IndexByte(entry, ':')
	switch {
	case entry[0] == '[' && entry[last] == ']':
		if colon >= 0 {
			addr, err = netip.ParseAddr(textOf(entry[1:last]))
		}
	case entry[0] == '[', colon >= 0 && bytes.IndexByte(entry[colon+1:], ':') < 0:
		if port := entry[bytes.LastIndexByte(entry, ':')+1:]; len(port) <= len("65535") {
			var at netip.AddrPort
			at, err = netip.ParseAddrPort(textOf(entry))
			addr = at.Addr()
		}
	default:
		addr, err = netip.ParseAddr(textOf(entry))
	}
	return addr.WithZone("").Unmap(), err == nil && addr.IsValid()
}
