package fields

import (
	"bytes"
	"net/netip"
	"slices"
	"unsafe"
)

// addressBytesMax bounds an entry of X-Forwarded-For: an IPv6 address, its zone, brackets and port.
const addressBytesMax = 80

// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted.
type TrustedProxies []netip.Prefix

// Contains reports whether an address belongs to a trusted proxy.
func (p TrustedProxies) Contains(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// ClientAddress finds the address of a client behind proxies in the lines of X-Forwarded-For. It walks the lists from
// the right, where trusted proxies wrote, to the first address that does not belong to a trusted proxy: any client can
// have written the entries to its left. A malformed entry ends the walk at the proxy that wrote it. If all entries
// belong to trusted proxies, the leftmost is the client.
func (p TrustedProxies) ClientAddress(peer netip.Addr, lines [][]byte) netip.Addr {
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
			if entry = TrimBlanks(entry); len(entry) == 0 {
				continue
			}
			addr, ok := forwardedAddress(entry)
			if !ok {
				return client
			}
			if client = addr; !p.Contains(addr) {
				return client
			}
		}
	}
	return client
}

// forwardedAddress reads 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80. It drops the zone of
// an IPv6 address, which has a meaning only on the proxy.
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

// textOf is a text over borrowed bytes. Danger: it lives only as long as they do; nothing may keep it.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }
