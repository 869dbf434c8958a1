package fields

import (
	"bytes"
	"net/netip"
	"slices"
	"unsafe"
)

// addressBytesMax is the maximum length of an address with zone, brackets and port.
const addressBytesMax = 80

// TrustedProxies are the networks of proxies with a trusted X-Forwarded-For.
type TrustedProxies []netip.Prefix

// Contains reports whether an address belongs to a trusted proxy.
func (p TrustedProxies) Contains(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// ClientAddress returns the address of a client behind proxies. peer is the last proxy, and lines are the values of the
// X-Forwarded-For headers.
//
// Each proxy appends the address of its peer, and a client can invent all earlier addresses. ClientAddress therefore
// goes from right to left, and returns the first address that is not of a trusted proxy (or the leftmost, if all are).
// At a malformed entry it returns the address of the proxy that wrote the entry.
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

// forwardedAddress parses 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80. It removes the zone
// of an IPv6 address, because a zone is meaningful only on the proxy.
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
			var addrPort netip.AddrPort
			addrPort, err = netip.ParseAddrPort(textOf(entry))
			addr = addrPort.Addr()
		}
	default:
		addr, err = netip.ParseAddr(textOf(entry))
	}
	return addr.WithZone("").Unmap(), err == nil && addr.IsValid()
}

// textOf returns bytes as a string without a copy. Danger: the string changes with the bytes, so do not retain it.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }

// LoggedNetwork returns the network of an address for logs: the /24 of an IPv4 address, the /48 of an IPv6 address, or
// "unknown" for the zero address.
func LoggedNetwork(addr netip.Addr) string {
	bits := 48
	if addr.Is4() {
		bits = 24
	}
	network, err := addr.Prefix(bits)
	if err != nil || !addr.IsValid() {
		return "unknown"
	}
	return network.String()
}
